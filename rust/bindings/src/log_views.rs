//! A log's records as Arrow views: sealed segments are mapped, later records are read.
//!
//! The arrays keep the maps alive. Only the owner of the directory's lock maps; a log that is
//! opened read-only is read completely by `pread`.

use std::ops::Range;

use arrow_array::RecordBatch;
use bytes::Bytes;
use pykafka_log::{Log, OpenError, ReadError, StorageError};
use pykafka_record::columns::{ColumnViews, ColumnsError};
use pykafka_record::{Batch, BatchError, Limits, batches};
use pyo3::prelude::*;

use super::log_errors::{error, open_error, read_error};
use super::record::{ArrowBatches, columns_error};

/// Bytes of one read of segments that are not mapped.
const CHUNK_BYTES: usize = 1 << 20;

/// An error in reading a log, or in creating columns of its records.
pub(crate) enum ReadingError {
    /// A log that others changed cannot be opened again.
    Open(OpenError),
    Read(ReadError),
    Batch(BatchError),
    Crc(i64),
    Columns(ColumnsError),
}

impl From<OpenError> for ReadingError {
    fn from(error: OpenError) -> ReadingError {
        ReadingError::Open(error)
    }
}

impl From<ReadError> for ReadingError {
    fn from(error: ReadError) -> ReadingError {
        ReadingError::Read(error)
    }
}

impl From<StorageError> for ReadingError {
    fn from(error: StorageError) -> ReadingError {
        ReadingError::Read(error.into())
    }
}

impl ReadingError {
    pub(crate) fn to_python(&self, py: Python<'_>) -> PyErr {
        match self {
            ReadingError::Open(cause) => open_error(py, cause),
            ReadingError::Read(cause) => read_error(py, cause),
            ReadingError::Batch(cause) => error(py, "CorruptMessageError", &cause.to_string()),
            ReadingError::Crc(offset) => {
                let text = format!("batch at offset {offset} fails its checksum");
                error(py, "CorruptMessageError", &text)
            }
            ReadingError::Columns(cause) => columns_error(py, cause),
        }
    }
}

/// The records in `wanted`: one batch of rows per sealed segment, and one per chunk after them.
///
/// CRCs are only checked for chunks; bytes of mapped segments are not read.
pub(crate) fn collect(log: &Log, wanted: &Range<i64>) -> Result<ArrowBatches, ReadingError> {
    let empty = ColumnViews::new(Limits::default()).finish().map_err(ReadingError::Columns)?;
    let read = |offset, bytes_max| log.read(offset, bytes_max, wanted.end, bytes_max > 0);
    // Checks that the offset is in range.
    read(wanted.start, 0)?;
    let maps =
        if log.is_read_only() { Vec::new() } else { log.map_sealed(wanted.start, wanted.end)? };
    let mut offset = wanted.start;
    let mut found = Vec::new();
    for (_, map) in maps {
        let (rows, next_offset) = rows_of(Bytes::from_owner(map), &(offset..wanted.end), false)?;
        found.push(rows);
        offset = offset.max(next_offset);
    }
    while offset < wanted.end {
        let data = read(offset, CHUNK_BYTES)?;
        if data.bytes.is_empty() {
            break;
        }
        found.push(rows_of(data.bytes, &(offset..wanted.end), true)?.0);
        offset = data.next_offset;
    }
    found.retain(|rows| rows.num_rows() > 0);
    Ok(ArrowBatches::new(empty.schema(), found))
}

/// Rows over `bytes`, and the offset after their last batch.
fn rows_of(
    bytes: Bytes,
    wanted: &Range<i64>,
    checks_crc: bool,
) -> Result<(RecordBatch, i64), ReadingError> {
    let mut next_offset = 0;
    let mut walk = batches(&bytes);
    for batch in walk.by_ref() {
        let batch = batch.map_err(ReadingError::Batch)?;
        if checks_crc && !batch.is_crc_valid() {
            return Err(ReadingError::Crc(batch.base_offset()));
        }
        next_offset = batch.next_offset();
    }
    if !walk.rest().is_empty() {
        Batch::split(walk.rest()).map_err(ReadingError::Batch)?;
    }
    let is_wanted = |batch: Batch<'_>| {
        let overlaps = batch.next_offset() > wanted.start && batch.base_offset() < wanted.end;
        overlaps && !batch.is_control()
    };
    let mut columns = ColumnViews::new(Limits::default());
    let rows = columns
        .append_buffer(&bytes.into(), wanted, is_wanted)
        .and_then(|()| columns.finish())
        .map_err(ReadingError::Columns)?;
    Ok((rows, next_offset))
}
