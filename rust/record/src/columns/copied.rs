//! Columns with their own copy of the bytes.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;

use super::binary::BinaryColumn;
use super::error::ColumnsError;
use super::schema::schema;
use super::shared::Shared;
use crate::batch::Batch;
use crate::compression::Limits;
use crate::record::Record;

/// Rows collected from batches, each byte copied once; the module lists the columns.
#[derive(Debug)]
pub struct Columns {
    shared: Shared,
    keys: BinaryColumn,
    values: BinaryColumn,
    scratch: Vec<u8>,
    limits: Limits,
}

impl Columns {
    /// Creates empty columns; `limits` apply to the decompression of each batch.
    pub fn new(limits: Limits) -> Self {
        Self {
            shared: Shared::default(),
            keys: BinaryColumn::new("key"),
            values: BinaryColumn::new("value"),
            scratch: Vec::new(),
            limits,
        }
    }

    /// Number of rows so far.
    pub fn len(&self) -> usize {
        self.shared.offsets.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size of keys and values so far.
    pub fn bytes_count(&self) -> usize {
        self.keys.bytes_count() + self.values.bytes_count()
    }

    /// Reserve capacity for this size of values, if the caller can predict it.
    pub fn reserve(&mut self, bytes: usize) {
        self.values.reserve(0, bytes);
    }

    /// Add the records of `batch` with offsets in `wanted` (half-open). The caller must leave out
    /// markers. After an error, some records of the batch may have been added.
    pub fn append_batch(
        &mut self,
        batch: Batch<'_>,
        wanted: &Range<i64>,
    ) -> Result<(), ColumnsError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let appended = self.append_records(batch, wanted, &mut scratch);
        self.scratch = scratch;
        appended
    }

    fn append_records(
        &mut self,
        batch: Batch<'_>,
        wanted: &Range<i64>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), ColumnsError> {
        let records = batch.records(scratch, self.limits)?;
        // Reserve no more than the available bytes can hold. Keys are short, and grow as needed.
        let rows = records.size_hint().1.unwrap_or_default();
        self.shared.reserve(rows);
        self.keys.reserve(rows, 0);
        self.values.reserve(rows, records.rest().len());
        for record in records {
            let record = record?;
            if self.shared.wants(wanted, &record) {
                self.append(&record)?;
            }
        }
        Ok(())
    }

    /// Add one record.
    pub fn append(&mut self, record: &Record<'_>) -> Result<(), ColumnsError> {
        self.keys.check(record.key)?;
        self.values.check(record.value)?;
        self.shared.append(record)?;
        self.keys.append(record.key);
        self.values.append(record.value);
        Ok(())
    }

    /// Return the rows and clear the columns.
    pub fn finish(&mut self) -> Result<RecordBatch, ColumnsError> {
        let (keys, values) = (Arc::new(self.keys.finish()), Arc::new(self.values.finish()));
        self.shared.finish(schema(), keys, values)
    }
}
