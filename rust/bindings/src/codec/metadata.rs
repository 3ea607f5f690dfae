//! Records of the cluster metadata log: a frame version (1), the number of the record's type and
//! its version, all as unsigned varints, then the message.

use pykafka_record::{Limits, batches};
use pykafka_wire::schema::{Kind, Message, metadata_record_of};
use pykafka_wire::{Reader, encode_uvarint};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::errors::ProtocolError;
use super::layout::message_of;
use super::whole::{decode, encode};

const FRAME_VERSION: u32 = 1;

/// Kafka writes metadata batches uncompressed and up to 8 MiB; a larger batch is not metadata.
const LIMITS: Limits = Limits { bytes_max: 64 << 20, ratio_max: 1000, ..Limits::NONE };

#[pyfunction]
pub fn decode_metadata_record<'py>(py: Python<'py>, value: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let (message, version, body) = split_frame(value)?;
    decode(py, message, version, body)
}

#[pyfunction]
pub fn encode_metadata_record<'py>(
    py: Python<'py>,
    message: &Bound<'py, PyAny>,
    version: i16,
) -> PyResult<Bound<'py, PyBytes>> {
    let schema = message_of(message)?;
    if schema.kind != Kind::Metadata {
        return Err(ProtocolError::new_err(format!("{} is not a metadata record", schema.name)));
    }
    let mut out = Vec::with_capacity(128);
    for number in [FRAME_VERSION, schema.api_key as u32, version as u32] {
        let (encoded, size) = encode_uvarint(number);
        out.extend_from_slice(&encoded[..size]);
    }
    encode(message, version, &mut out)?;
    Ok(PyBytes::new(py, &out))
}

#[pyfunction]
pub fn decode_metadata_records<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyList>> {
    let records = PyList::empty(py);
    let mut scratch = Vec::new();
    for batch in batches(bytes) {
        let batch = batch.map_err(failed)?;
        if !batch.is_crc_valid() {
            let offset = batch.base_offset();
            return Err(ProtocolError::new_err(format!("batch at {offset} has a wrong CRC")));
        }
        if batch.is_control() {
            continue;
        }
        scratch.clear();
        for record in batch.records(&mut scratch, LIMITS).map_err(failed)? {
            let record = record.map_err(failed)?;
            let value = record.value.unwrap_or_default();
            records.append((record.offset, decode_metadata_record(py, value)?))?;
        }
    }
    Ok(records)
}

fn failed(error: impl std::error::Error) -> PyErr {
    ProtocolError::new_err(error.to_string())
}

fn split_frame(value: &[u8]) -> PyResult<(&'static Message, i16, &[u8])> {
    let mut reader = Reader::new(value, 0, true);
    let mut number = || reader.uvarint().map_err(failed);
    let (frame, api_key, version) = (number()?, number()?, number()?);
    if frame != FRAME_VERSION {
        return Err(ProtocolError::new_err(format!("unknown frame version {frame}")));
    }
    let message = i16::try_from(api_key)
        .ok()
        .and_then(metadata_record_of)
        .ok_or_else(|| ProtocolError::new_err(format!("unknown metadata record type {api_key}")))?;
    let version = i16::try_from(version).map_err(failed)?;
    Ok((message, version, reader.rest()))
}
