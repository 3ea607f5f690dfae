//! Messages that are decoded or encoded as a whole.

use pykafka_wire::schema::{Message, message_by_name, request_of, response_of};
use pykafka_wire::{ApiKey, codec};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::errors::{ProtocolError, unknown_api, unsupported};
use super::layout::{layouts_of, message_of};
use super::objects::{Objects, Slots};

#[pyfunction]
pub(super) fn decode_request<'py>(
    py: Python<'py>,
    api_key: i16,
    version: i16,
    body: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let message = request_of(ApiKey(api_key)).ok_or_else(|| unknown_api(api_key))?;
    decode(py, message, version, body)
}

#[pyfunction]
pub(super) fn decode_response<'py>(
    py: Python<'py>,
    api_key: i16,
    version: i16,
    body: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let message = response_of(ApiKey(api_key)).ok_or_else(|| unknown_api(api_key))?;
    decode(py, message, version, body)
}

#[pyfunction]
pub(super) fn decode_message<'py>(
    py: Python<'py>,
    name: &str,
    version: i16,
    body: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    decode(py, named(name)?, version, body)
}

#[pyfunction]
pub(super) fn encode_message<'py>(
    py: Python<'py>,
    message: &Bound<'py, PyAny>,
    version: i16,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut out = Vec::with_capacity(256);
    encode(message, version, &mut out)?;
    Ok(PyBytes::new(py, &out))
}

pub(super) fn named(name: &str) -> PyResult<&'static Message> {
    message_by_name(name).ok_or_else(|| ProtocolError::new_err(format!("no message {name:?}")))
}

pub(super) fn decode<'py>(
    py: Python<'py>,
    message: &'static Message,
    version: i16,
    body: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let plan = message.plan(version).map_err(|_| unsupported(message, version))?;
    let mut objects = Objects::new(py, layouts_of(py, message)?);
    Ok(codec::decode(plan, body, &mut objects)?)
}

/// Appends a message to `out`.
pub(super) fn encode(object: &Bound<'_, PyAny>, version: i16, out: &mut Vec<u8>) -> PyResult<()> {
    let message = message_of(object)?;
    let plan = message.plan(version).map_err(|_| unsupported(message, version))?;
    let slots = Slots::new(layouts_of(object.py(), message)?);
    Ok(codec::encode(plan, object.as_borrowed(), &slots, out)?)
}
