//! Columns whose keys and values point into the buffers of the batches.
//!
//! Values are not read, so only the first bytes of a large record are loaded, and they contain the
//! position of the next record: iteration would wait for memory once per record. Most records of a
//! batch have about the size of the previous one, so the expected starts of the next records are
//! loaded first, all in parallel.

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::builder::BinaryViewBuilder;
use arrow_buffer::Buffer;

use super::error::ColumnsError;
use super::schema::schema_of_views;
use super::shared::Shared;
use crate::batch::{Batch, batches};
use crate::compression::Limits;
use crate::record::Record;

/// Records whose starts are loaded together: about the parallel loads of a processor core.
const RECORDS_AHEAD: usize = 16;
/// For smaller records, the processor's own prefetcher suffices.
const STRIDE_MIN: usize = 256;

/// Rows collected from buffers of batches without copying keys and values.
#[derive(Debug, Default)]
pub struct ColumnViews {
    shared: Shared,
    keys: BinaryViewBuilder,
    values: BinaryViewBuilder,
    limits: Limits,
}

impl ColumnViews {
    /// Creates empty columns; `limits` apply to the decompression of each batch.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Number of rows so far.
    pub fn len(&self) -> usize {
        self.shared.offsets.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Add the records in `buffer`, whole batches of less than 4 GiB, with offsets in `wanted`
    /// (half-open). `accept` selects batches: it filters markers, aborted transactions and wrong
    /// CRCs.
    ///
    /// The arrays share `buffer`, which must not change as long as one of them lives. Iteration
    /// ends at an invalid or incomplete batch; an invalid record is an error.
    pub fn append_buffer(
        &mut self,
        buffer: &Buffer,
        wanted: &Range<i64>,
        mut accept: impl FnMut(Batch<'_>) -> bool,
    ) -> Result<(), ColumnsError> {
        if buffer.len() >= u32::MAX as usize {
            return Err(ColumnsError::TooLarge("value"));
        }
        let blocks =
            (self.keys.append_block(buffer.clone()), self.values.append_block(buffer.clone()));
        let mut scratch = Vec::new();
        for batch in batches(buffer).flatten() {
            if !accept(batch) {
                continue;
            }
            let is_plain = batch.is_plain();
            let mut records = batch.records(&mut scratch, self.limits)?;
            let mut ahead = Ahead::default();
            while let Some(record) = records.next() {
                ahead.passed(records.rest());
                let record = record?;
                if !self.shared.wants(wanted, &record) {
                    continue;
                }
                self.shared.append(&record)?;
                if is_plain {
                    put(&mut self.keys, blocks.0, buffer, record.key)?;
                    put(&mut self.values, blocks.1, buffer, record.value)?;
                } else {
                    self.copy(&record);
                }
            }
        }
        Ok(())
    }

    fn copy(&mut self, record: &Record<'_>) {
        self.keys.append_option(record.key);
        self.values.append_option(record.value);
    }

    /// Return the rows and clear the columns, which then hold no buffer.
    pub fn finish(&mut self) -> Result<RecordBatch, ColumnsError> {
        let (keys, values) = (Arc::new(self.keys.finish()), Arc::new(self.values.finish()));
        self.shared.finish(schema_of_views(), keys, values)
    }
}

/// Loads the starts of the next records; see the module.
#[derive(Debug, Default)]
struct Ahead {
    rest_size: usize,
    loaded: usize,
}

impl Ahead {
    /// Records that `rest` follows the last record.
    #[inline]
    fn passed(&mut self, rest: &[u8]) {
        let stride = self.rest_size.wrapping_sub(rest.len());
        self.rest_size = rest.len();
        if self.loaded > 0 {
            self.loaded -= 1;
        } else if (STRIDE_MIN..=rest.len()).contains(&stride) {
            let places = rest.iter().step_by(stride).take(RECORDS_AHEAD);
            black_box(places.fold(0, |seen, byte| seen ^ byte));
            self.loaded = RECORDS_AHEAD - 1;
        }
    }
}

/// Append a view of `bytes`, which are part of `buffer`, block `block` of `column`.
fn put(
    column: &mut BinaryViewBuilder,
    block: u32,
    buffer: &Buffer,
    bytes: Option<&[u8]>,
) -> Result<(), ColumnsError> {
    let Some(bytes) = bytes else {
        column.append_null();
        return Ok(());
    };
    let position = bytes.as_ptr().addr() - buffer.as_ptr().addr();
    Ok(column.try_append_view(block, position as u32, bytes.len() as u32)?)
}
