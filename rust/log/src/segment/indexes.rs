//! The offset and time index of a segment in memory: of the active one, and of those rebuilt from their batches.

use std::sync::Arc;

use pykafka_forks::{Mutex, MutexGuard};
use pykafka_record::BatchHeader;

use crate::config::LogConfig;
use crate::disk::{Disk, OpenMode};
use crate::log::StorageError;
use crate::segment::offset_index::{self, OffsetEntry, OffsetIndex};
use crate::segment::time_index::{self, TimeEntry, TimeIndex};
use crate::segment::{FileKind, Segment, SegmentFiles};

/// Both indexes, which grow together.
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

    /// The stored indexes of `segment`; `None` if they are missing or garbage.
    pub(crate) fn load(segment: &Segment) -> Result<Option<Indexes>, StorageError> {
        let files = &segment.files;
        let (Some(offsets), Some(times)) =
            (files.read(FileKind::OffsetIndex)?, files.read(FileKind::TimeIndex)?)
        else {
            return Ok(None);
        };
        Ok(Indexes::decode(&offsets, &times, files.base_offset(), segment.size))
    }

    /// The indexes in files' bytes, of a segment of `size` bytes; `None` if they are garbage.
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

    /// Takes note of the batch at `position`; `max` is the segment's largest timestamp, this batch included.
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

    /// Lets look-ups from `batch.offset` on begin at its batch, the next one to be noted.
    pub(crate) fn begin_at(&mut self, batch: OffsetEntry) {
        self.offsets.append(batch.offset, batch.position);
        self.bytes_since_entry = 0;
    }

    /// Gives back the room for entries that will not come.
    pub(crate) fn shrink(&mut self) {
        self.offsets.shrink();
        self.times.shrink();
    }

    /// Entries of both.
    pub(crate) fn count(&self) -> usize {
        self.offsets.count() + self.times.count()
    }

    /// Leaves out every other entry of indexes that are nowhere stored.
    pub(crate) fn thin(&mut self) {
        self.offsets.thin();
        self.times.thin();
    }

    /// Whether one more entry might not fit `segment.index.bytes`; the time index keeps room for its last.
    pub(crate) fn are_full(&self, config: &LogConfig) -> bool {
        let bytes = config.segment_index_bytes as usize;
        self.offsets.count() >= bytes / offset_index::ENTRY_SIZE
            || self.times.count() + 1 >= bytes / time_index::ENTRY_SIZE
    }

    /// Whether there are so many entries that the files lack that they should be stored.
    pub(crate) fn is_storing_due(&self) -> bool {
        self.offsets.is_storing_due() || self.times.is_storing_due()
    }

    /// Drops what tells of batches at or behind `position` and `offset`, where the segment is cut.
    pub(crate) fn truncate(&mut self, position: u64, offset: i64) {
        self.offsets.truncate_to_position(position);
        self.times.truncate_to(offset);
        self.bytes_since_entry = position - self.offsets.last().map_or(0, |last| last.position);
    }

    /// Writes what the files lack and cuts them to their length. Not synced: they can be rebuilt.
    pub(crate) fn store(&self, disk: &dyn Disk, files: &SegmentFiles) -> Result<(), StorageError> {
        self.unstored().write(disk, files)?;
        files.forget_indexes();
        Ok(())
    }

    fn unstored(&self) -> Unstored {
        let ((offsets, offsets_at), (times, times_at)) =
            (self.offsets.unstored(), self.times.unstored());
        Unstored {
            offsets: (offsets, offsets_at, self.offsets.size_bytes()),
            times: (times, times_at, self.times.size_bytes()),
        }
    }

    fn set_stored(&mut self) {
        self.offsets.set_stored();
        self.times.set_stored();
    }

    fn drop_stored(&mut self) {
        self.offsets.drop_stored();
        self.times.drop_stored();
    }
}

/// For each index file what it lacks, where that goes, and the size of the whole.
struct Unstored {
    offsets: (Vec<u8>, u64, u64),
    times: (Vec<u8>, u64, u64),
}

impl Unstored {
    fn write(&self, disk: &dyn Disk, files: &SegmentFiles) -> Result<(), StorageError> {
        let (bytes, position, size) = &self.offsets;
        write(disk, files, FileKind::OffsetIndex, bytes, *position, *size)?;
        let (bytes, position, size) = &self.times;
        write(disk, files, FileKind::TimeIndex, bytes, *position, *size)
    }
}

/// The indexes of the active segment: one writer adds to them while readers search. What the files have is not kept.
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

    /// As [`Indexes::store`]; readers go on searching while it is written.
    pub(crate) fn store(&self, disk: &dyn Disk, files: &SegmentFiles) -> Result<(), StorageError> {
        let unstored = self.lock().unstored();
        unstored.write(disk, files)?;
        // Before entries are dropped: who looks for one of those opens the file as it is now.
        files.forget_indexes();
        let mut indexes = self.lock();
        indexes.set_stored();
        indexes.drop_stored();
        Ok(())
    }
}

fn write(
    disk: &dyn Disk,
    files: &SegmentFiles,
    kind: FileKind,
    bytes: &[u8],
    position: u64,
    size: u64,
) -> Result<(), StorageError> {
    let write = || {
        let file = disk.open(&files.path(kind), OpenMode::Create)?;
        file.write_at(bytes, position)?;
        if file.size()? == size { Ok(()) } else { file.set_len(size) }
    };
    write().map_err(files.error("write", kind))
}
