//! Columns whose keys and values point into the buffers that the batches lie in.
//!
//! Nothing reads the values, so of a large record only its first bytes are loaded, and where the next one begins is known
//! only when they are there: a walk would wait for memory once a record. Records of a batch are mostly about as large as
//! the one before, so the places where the next ones should begin are loaded first, all at the same time.

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::builder::BinaryViewBuilder;
use arrow_buffer::Buffer;

use super::{ColumnsError, Shared, schema_of_views};
use crate::batch::{Batch, batches};
use crate::compression::Limits;
use crate::record::Record;

/// Records whose beginnings are loaded together: about as many loads as a core can have under way.
const RECORDS_AHEAD: usize = 16;
/// The processor itself looks ahead where records are smaller.
const STRIDE_MIN: usize = 256;

/// Rows gathered from buffers of batches without copying keys and values.
#[derive(Debug, Default)]
pub struct ColumnViews {
    shared: Shared,
    keys: BinaryViewBuilder,
    values: BinaryViewBuilder,
    limits: Limits,
}

impl ColumnViews {
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

    /// Add the records in `buffer`, whole batches of less than 4 GiB, whose offsets lie in
    /// `wanted` (half open). `accept` says which batches to take: there markers, aborted
    /// transactions and wrong CRCs are sorted out.
    ///
    /// The arrays share `buffer`: it must not change while one of them lives. Batches that do
    /// not parse end the walk, as an incomplete one does; records that do not are an error.
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

    /// The rows; the columns are empty again, and hold no buffer.
    pub fn finish(&mut self) -> Result<RecordBatch, ColumnsError> {
        let (keys, values) = (Arc::new(self.keys.finish()), Arc::new(self.values.finish()));
        self.shared.finish(schema_of_views(), keys, values)
    }
}

/// Loads the beginnings of the records to come; see the module.
#[derive(Debug, Default)]
struct Ahead {
    rest_size: usize,
    loaded: usize,
}

impl Ahead {
    /// Takes note that `rest` is behind the last record.
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

/// Append a view of `bytes`, which lie in `buffer`, block `block` of `column`.
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
