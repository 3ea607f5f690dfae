//! Iterates the records of a batch whose payload is in memory.

use super::error::RecordError;
use super::fields::{Context, Record, read_record};
use super::legacy::{Contents, read_payload};
use crate::batch::Batch;
use crate::compression::{self, Compression, Limits};

impl<'a> Batch<'a> {
    /// Iterate the records.
    ///
    /// `scratch` receives the decompressed bytes, or the records of format 0 or 1 converted to
    /// format 2; it is unused if [`crate::BatchHeader::is_plain`]. Keep it between calls, because
    /// its capacity is reused. The iterator ends after its first error.
    pub fn records<'s>(
        &self,
        scratch: &'s mut Vec<u8>,
        limits: Limits,
    ) -> Result<RecordIter<'s>, RecordError>
    where
        'a: 's,
    {
        if self.is_legacy() {
            let contents = read_payload(self, limits, scratch)?;
            return Ok(RecordIter::of_legacy(self, contents, scratch));
        }
        let compression = self.readable_compression()?;
        if compression == Compression::None {
            return Ok(RecordIter::new(*self, self.payload(), limits));
        }
        compression::decompress(compression, self.payload(), scratch, limits)?;
        Ok(RecordIter::new(*self, scratch, limits))
    }

    /// The codec, if the header is valid.
    pub(super) fn readable_compression(&self) -> Result<Compression, RecordError> {
        let compression = self.compression()?;
        if self.records_count() < 0 {
            return Err(RecordError::NegativeCount(self.records_count()));
        }
        Ok(compression)
    }
}

/// Iterator of [`Batch::records`].
#[derive(Debug, Clone)]
pub struct RecordIter<'a> {
    pub(super) rest: &'a [u8],
    pub(super) context: Context,
    pub(super) index: i32,
    pub(super) count: i32,
}

impl<'a> RecordIter<'a> {
    /// Iterate `payload`, the uncompressed records of `batch`.
    fn new(batch: Batch<'_>, payload: &'a [u8], limits: Limits) -> Self {
        let context = Context::of(&batch, limits);
        Self { rest: payload, context, index: 0, count: batch.records_count() }
    }

    /// Iterate `payload`, which [`read_payload`] wrote.
    pub(crate) fn of_legacy(batch: &Batch<'_>, contents: Contents, payload: &'a [u8]) -> Self {
        let context = Context {
            base_offset: contents.base_offset,
            last_offset_delta: contents.last_offset_delta,
            base_timestamp: 0,
            // The records already contain it.
            log_append_time: None,
            base_sequence: batch.base_sequence(),
            record_bytes_max: usize::MAX,
        };
        Self { rest: payload, context, index: 0, count: contents.records_count }
    }

    /// Number of expected records that remain.
    pub fn records_left(&self) -> i32 {
        self.count - self.index
    }

    /// The remaining bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn step(&mut self) -> Result<Option<Record<'a>>, RecordError> {
        if self.index == self.count {
            let left = self.rest.len();
            return if left == 0 { Ok(None) } else { Err(RecordError::LeftOver(left)) };
        }
        if self.rest.is_empty() {
            return Err(RecordError::TooFew { expected: self.count, found: self.index });
        }
        let record =
            read_record(&mut self.rest, &self.context).map_err(|fault| fault.at(self.index))?;
        self.index += 1;
        Ok(Some(record))
    }
}

impl<'a> Iterator for RecordIter<'a> {
    type Item = Result<Record<'a>, RecordError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            // Bytes after a fault cannot be trusted: end, and skip the check for remaining bytes.
            self.rest = &[];
            self.index = self.count;
        }
        step.transpose()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // A record has at least 7 bytes, and a fault may end iteration: the count is untrusted.
        let left = (self.count - self.index) as usize;
        (0, Some(left.min(self.rest.len() / 7).saturating_add(1)))
    }
}

impl std::iter::FusedIterator for RecordIter<'_> {}
