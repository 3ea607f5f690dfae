//! A log's records as Arrow columns that own their bytes.
//!
//! The log is read in pieces that fit into a core's cache, each into the buffer of the previous
//! one; a batch is checked and copied while it is cached. Most of the remaining cost is the new
//! memory of the columns.

use std::ops::Range;

use arrow_array::RecordBatch;
use pykafka_log::Log;
use pykafka_record::columns::Columns;
use pykafka_record::{Limits, batches};

use super::log_views::ReadingError;
use super::record::ArrowBatches;

/// Bytes read at once.
const PIECE_BYTES: usize = 256 << 10;
/// Bytes of the log in a batch of rows.
const ROWS_BYTES: usize = 1 << 20;

/// The records in `wanted`, without control records; CRCs are checked.
pub(crate) fn collect(log: &Log, wanted: &Range<i64>) -> Result<ArrowBatches, ReadingError> {
    let empty = Columns::new(Limits::default()).finish().map_err(ReadingError::Columns)?;
    let mut found = Vec::new();
    let mut offset = wanted.start;
    while offset < wanted.end {
        let (rows, next_offset) = rows_from(log, offset, wanted)?;
        if next_offset == offset {
            break;
        }
        if rows.num_rows() > 0 {
            found.push(rows);
        }
        offset = next_offset;
    }
    Ok(ArrowBatches::new(empty.schema(), found))
}

/// About [`ROWS_BYTES`] of rows from `offset` on, and the offset of the next ones: `offset` if
/// there are none.
fn rows_from(
    log: &Log,
    mut offset: i64,
    wanted: &Range<i64>,
) -> Result<(RecordBatch, i64), ReadingError> {
    let wanted = offset..wanted.end;
    let mut columns = Columns::new(Limits::default());
    // Reserved once for all pieces, because a growing column is copied repeatedly.
    columns.reserve((log.size_bytes() as usize).min(ROWS_BYTES + PIECE_BYTES));
    let mut size = 0;
    while offset < wanted.end && size < ROWS_BYTES {
        let data = log.read(offset, PIECE_BYTES, wanted.end, true)?;
        if data.bytes.is_empty() {
            break;
        }
        for batch in batches(&data.bytes) {
            let batch = batch.map_err(ReadingError::Batch)?;
            if !batch.is_crc_valid() {
                return Err(ReadingError::Crc(batch.base_offset()));
            }
            if !batch.is_control() {
                columns.append_batch(batch, &wanted).map_err(ReadingError::Columns)?;
            }
        }
        size += data.bytes.len();
        offset = data.next_offset;
    }
    Ok((columns.finish().map_err(ReadingError::Columns)?, offset))
}
