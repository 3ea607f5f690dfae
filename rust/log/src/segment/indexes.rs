//! The offset and time index of a segment in memory, for the active segment and for segments
//! rebuilt from their batches.

use std::sync::Arc;

use pykafka_forks::{Mutex, MutexGuard};
use pykafka_record::BatchHeader;

use crate::config::LogConfig;
use crate::segment::offset_index::{self, OffsetEntry, OffsetIndex};
use crate::segment::time_index::{self, TimeEntry, TimeIndex};

/// Both indexes, which get their entries together.
#[derive(Debug, PartialEq)]
pub(crate) struct Indexes {
    pub(crate) offsets: OffsetIndex,
    pub(crate) times: TimeIndex,
    /// Bytes of batches since the batch of the last offset entry, that batch included.
    bytes_since_entry: u64,
}

impl Indexes {
    pub(crate) fn new(base_offset: i64) -> Indexes {
        let (offsets, times) = (OffsetIndex::new(base_offset), TimeIndex::new(base_offset));
        Indexes { offsets, times, bytes_since_entry: 0 }
    }

    /// Decodes the bytes of the index files of a segment of `size` bytes; `None` if they are
    /// invalid.
    pub(crate) fn decode(
        offsets: &[u8],
        times: &[u8],
        base_offset: i64,
        size: u64,
    ) -> Option<Indexes> {
        let offsets = OffsetIndex::decode(offsets, base_offset)?;
        let times = TimeIndex::decode(times, base_offset)?;
        let last_position = offsets.last().map_or(0, |last| last.position);
        let fits = offsets.last().is_none_or(|last| last.position < size);
        fits.then(|| Indexes { offsets, times, bytes_since_entry: size - last_position })
    }

    /// Adds the batch at `position`; `max` is the segment's largest timestamp, including this
    /// batch.
    pub(crate) fn note(
        &mut self,
        batch: &BatchHeader<'_>,
        position: u64,
        max: TimeEntry,
        interval: u64,
    ) {
        if self.bytes_since_entry > interval {
            self.offsets.append(batch.last_offset(), position);
            self.times.append(max);
            self.bytes_since_entry = 0;
        }
        self.bytes_since_entry += batch.size() as u64;
    }

    /// Makes look-ups from `batch.offset` on start at its batch, which is added next.
    pub(crate) fn begin_at(&mut self, batch: OffsetEntry) {
        self.offsets.append(batch.offset, batch.position);
        self.bytes_since_entry = 0;
    }

    /// Releases memory for further entries, because none will be added.
    pub(crate) fn shrink(&mut self) {
        self.offsets.shrink();
        self.times.shrink();
    }

    /// Number of entries in both indexes.
    pub(crate) fn count(&self) -> usize {
        self.offsets.count() + self.times.count()
    }

    /// Removes every other entry of indexes that are not stored.
    pub(crate) fn thin(&mut self) {
        self.offsets.thin();
        self.times.thin();
    }

    /// True if one more entry might exceed `segment.index.bytes`; the time index needs space for
    /// its last entry.
    pub(crate) fn are_full(&self, config: &LogConfig) -> bool {
        let bytes = config.segment_index_bytes as usize;
        self.offsets.count() >= bytes / offset_index::ENTRY_SIZE
            || self.times.count() + 1 >= bytes / time_index::ENTRY_SIZE
    }

    /// True if there are enough unstored entries to write them to the files.
    pub(crate) fn is_storing_due(&self) -> bool {
        self.offsets.is_storing_due() || self.times.is_storing_due()
    }

    /// Drops the entries of batches at or after `position` and `offset`, where the segment is cut.
    pub(crate) fn truncate(&mut self, position: u64, offset: i64) {
        self.offsets.truncate_to_position(position);
        self.times.truncate_to(offset);
        self.bytes_since_entry = position - self.offsets.last().map_or(0, |last| last.position);
    }

    pub(super) fn unstored(&self) -> Unstored {
        let ((offsets, offsets_at), (times, times_at)) =
            (self.offsets.unstored(), self.times.unstored());
        Unstored {
            offsets: (offsets, offsets_at, self.offsets.size_bytes()),
            times: (times, times_at, self.times.size_bytes()),
        }
    }

    pub(super) fn set_stored(&mut self) {
        self.offsets.set_stored();
        self.times.set_stored();
    }

    pub(super) fn drop_stored(&mut self) {
        self.offsets.drop_stored();
        self.times.drop_stored();
    }
}

/// For each index file: its missing bytes, their position, and the total size.
pub(super) struct Unstored {
    pub(super) offsets: (Vec<u8>, u64, u64),
    pub(super) times: (Vec<u8>, u64, u64),
}

/// The indexes of the active segment: one writer adds entries while readers search. Stored entries
/// are not kept.
#[derive(Debug, Clone)]
pub(crate) struct ActiveIndexes(Arc<Mutex<Indexes>>);

impl ActiveIndexes {
    pub(crate) fn new(mut indexes: Indexes) -> ActiveIndexes {
        indexes.drop_stored();
        ActiveIndexes(Arc::new(Mutex::new(indexes)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Indexes> {
        self.0.lock()
    }
}
