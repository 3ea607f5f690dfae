//! Columns that own their bytes.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::builder::BinaryBuilder;

use super::{ColumnsError, Shared, schema, wants};
use crate::batch::Batch;
use crate::compression::Limits;
use crate::record::Record;

/// Rows gathered from batches, each byte copied once; see the module's table of columns.
#[derive(Debug, Default)]
pub struct Columns {
    shared: Shared,
    keys: BinaryBuilder,
    values: BinaryBuilder,
    scratch: Vec<u8>,
    limits: Limits,
}

impl Columns {
    /// No rows yet; `limits` are those of decompression, batch by batch.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Rows so far.
    pub fn len(&self) -> usize {
        self.shared.offsets.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of keys and values so far.
    pub fn bytes_count(&self) -> usize {
        self.keys.values_slice().len() + self.values.values_slice().len()
    }

    /// Add the records of `batch` whose offsets lie in `wanted` (half open). Markers are the
    /// caller's to leave out. After an error, records of the batch may have been added.
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
        for record in batch.records(scratch, self.limits)? {
            let record = record?;
            if wants(wanted, &record) {
                self.append(&record)?;
            }
        }
        Ok(())
    }

    /// Add one record.
    pub fn append(&mut self, record: &Record<'_>) -> Result<(), ColumnsError> {
        check_room(&self.keys, record.key, "key")?;
        check_room(&self.values, record.value, "value")?;
        self.shared.append(record)?;
        self.keys.append_option(record.key);
        self.values.append_option(record.value);
        Ok(())
    }

    /// The rows; the columns are empty again.
    pub fn finish(&mut self) -> Result<RecordBatch, ColumnsError> {
        let (keys, values) = (Arc::new(self.keys.finish()), Arc::new(self.values.finish()));
        self.shared.finish(schema(), keys, values)
    }
}

fn check_room(
    column: &BinaryBuilder,
    bytes: Option<&[u8]>,
    name: &'static str,
) -> Result<(), ColumnsError> {
    let size = column.values_slice().len() + bytes.unwrap_or_default().len();
    if size > i32::MAX as usize { Err(ColumnsError::TooLarge(name)) } else { Ok(()) }
}
