//! Offsets, timestamps and headers, which copied columns and views have in common.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMillisecondArray};
use arrow_schema::SchemaRef;

use super::error::ColumnsError;
use super::headers::HeaderColumn;
use crate::record::Record;

/// The columns that both forms have in common.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) offsets: Vec<i64>,
    pub(super) timestamps: Vec<i64>,
    pub(super) headers: HeaderColumn,
}

impl Shared {
    pub(super) fn reserve(&mut self, rows: usize) {
        self.offsets.reserve(rows);
        self.timestamps.reserve(rows);
    }

    /// Whether a record is in `wanted`, which is half-open. Its offset must be above that of the
    /// previous row; Kafka's consumers skip others, too.
    #[inline]
    pub(super) fn wants(&self, wanted: &Range<i64>, record: &Record<'_>) -> bool {
        wanted.contains(&record.offset)
            && self.offsets.last().is_none_or(|last| *last < record.offset)
    }

    #[inline]
    pub(super) fn append(&mut self, record: &Record<'_>) -> Result<(), ColumnsError> {
        self.headers.append(record.headers)?;
        self.offsets.push(record.offset);
        self.timestamps.push(record.timestamp);
        Ok(())
    }

    pub(super) fn finish(
        &mut self,
        schema: SchemaRef,
        key: ArrayRef,
        value: ArrayRef,
    ) -> Result<RecordBatch, ColumnsError> {
        let offsets = Int64Array::from(std::mem::take(&mut self.offsets));
        let timestamps = TimestampMillisecondArray::from(std::mem::take(&mut self.timestamps));
        let timestamps = timestamps.with_timezone("UTC");
        let headers = Arc::new(self.headers.finish());
        let columns: Vec<ArrayRef> =
            vec![Arc::new(offsets), Arc::new(timestamps), key, value, headers];
        Ok(RecordBatch::try_new(schema, columns)?)
    }
}
