//! Finds records by time, and aborted transactions by offset.

use std::cmp::Reverse;
use std::ops::Range;

use pykafka_record::{Batch, BatchHeader, Compression, LeaderEpoch, Limits, RecordError, Window};

use crate::buffer_pool::BufferPool;
use crate::disk::ReadMap;
use crate::error::StorageError;
use crate::file_names::FileKind;
use crate::log::Log;
use crate::log::append::validate::{Scratch, ValidateError};
use crate::log::snapshot::Snapshot;
use crate::log::types::TimestampOffset;
use crate::segment::indexes::Indexes;
use crate::segment::offset_index::{self, OffsetEntry};
use crate::segment::scan::{BatchScanner, HeaderScanner, ScanError, StoredBatch, names_a_batch};
use crate::segment::time_index::{self, TimeEntry};
use crate::segment::transaction_index::AbortedTxn;
use crate::segment::{Segment, SegmentFiles};

/// A segment in which a record is searched.
struct Candidate<'a> {
    segment: &'a Segment,
    /// The position where the search starts.
    position: u64,
    inflater: Inflater<'a>,
}

/// Buffers for decompression, and which batches are decompressed.
#[derive(Clone, Copy)]
struct Inflater<'a> {
    buffers: &'a BufferPool,
    reach: Reach,
    /// Only records are limited, not stored batches: the broker itself may have compressed a batch
    /// to a thousandth and less.
    limits: Limits,
}

#[derive(Clone, Copy)]
enum Reach {
    /// Batches that are small enough to be read and decompressed concurrently.
    Small,
    /// Every batch.
    All,
}

/// The reason why a look-up failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LookupError {
    /// A large batch must be read.
    #[error("a large batch has to be read")]
    Large,
    /// The log cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl LookupError {
    /// The result of a look-up that may wait to decompress large batches.
    fn waited<T>(result: Result<T, LookupError>) -> Result<T, StorageError> {
        result.map_err(|error| match error {
            LookupError::Storage(error) => error,
            LookupError::Large => unreachable!("it reads every batch"),
        })
    }
}

impl Log {
    /// The first record, by offset, at or above the log start offset whose timestamp is at least
    /// `timestamp`.
    ///
    /// `None` if there is no such record below `upto`. Only one thread at a time searches large
    /// batches; a second caller blocks.
    pub fn offset_for_timestamp(
        &self,
        timestamp: i64,
        upto: i64,
    ) -> Result<Option<TimestampOffset>, StorageError> {
        LookupError::waited(self.first_at_least(timestamp, upto, Reach::All))
    }

    /// Finds the same record as [`Log::offset_for_timestamp`], but does not read a large batch.
    ///
    /// # Errors
    /// [`LookupError::Large`]: a large batch must be read.
    pub fn offset_for_timestamp_small(
        &self,
        timestamp: i64,
        upto: i64,
    ) -> Result<Option<TimestampOffset>, LookupError> {
        self.first_at_least(timestamp, upto, Reach::Small)
    }

    fn first_at_least(
        &self,
        timestamp: i64,
        upto: i64,
        reach: Reach,
    ) -> Result<Option<TimestampOffset>, LookupError> {
        let inflater = self.inflater(reach);
        let found = self.undisturbed(|snapshot| snapshot.first_at_least(timestamp, inflater))?;
        Ok(found.filter(|found| found.offset < upto))
    }

    /// The first record with the largest timestamp; `None` if no record has a timestamp. Blocks
    /// like [`Log::offset_for_timestamp`].
    pub fn offset_of_max_timestamp(&self) -> Result<Option<TimestampOffset>, StorageError> {
        LookupError::waited(self.first_with_max_timestamp(Reach::All))
    }

    /// Finds the same record as [`Log::offset_of_max_timestamp`], but does not read a large batch.
    ///
    /// # Errors
    /// [`LookupError::Large`]: a large batch must be read.
    pub fn offset_of_max_timestamp_small(&self) -> Result<Option<TimestampOffset>, LookupError> {
        self.first_with_max_timestamp(Reach::Small)
    }

    fn first_with_max_timestamp(
        &self,
        reach: Reach,
    ) -> Result<Option<TimestampOffset>, LookupError> {
        let inflater = self.inflater(reach);
        self.undisturbed(|snapshot| snapshot.first_with_max_timestamp(inflater))
    }

    fn inflater(&self, reach: Reach) -> Inflater<'_> {
        let limits = self.config().limits(Limits::NONE);
        Inflater { buffers: &self.shared.buffers, reach, limits }
    }

    /// The index entries and aborted transactions of the segment at `base_offset`; `None` if it
    /// does not exist.
    ///
    /// For tools only; readers search the indexes in place.
    pub fn segment_entries(
        &self,
        base_offset: i64,
    ) -> Result<Option<SegmentEntries>, StorageError> {
        self.undisturbed(|snapshot| snapshot.segment_entries(base_offset))
    }

    /// Maps the sealed segments with offsets in `from..upto` for reading; returns them with their
    /// base offsets.
    ///
    /// Mapped files are never shortened afterwards. Fails for a log that was opened read-only: only
    /// the process with the directory's lock may map.
    pub fn map_sealed(&self, from: i64, upto: i64) -> Result<Vec<(i64, ReadMap)>, StorageError> {
        self.undisturbed(|snapshot| {
            self.view.lock().check_writable()?;
            let sealed = snapshot.segments.len().saturating_sub(1);
            let sealed = snapshot.segments.iter().take(sealed).enumerate();
            sealed
                .skip_while(|(index, _)| snapshot.end_of(*index) <= from)
                .take_while(|(_, segment)| segment.base_offset() < upto)
                .map(|(_, segment)| {
                    let map = segment.files.log()?.map_read(segment.size as usize);
                    let map = map.map_err(segment.files.error("map", FileKind::Log))?;
                    Ok((segment.base_offset(), map))
                })
                .collect()
        })
    }
}

impl Snapshot {
    fn first_at_least(
        &self,
        timestamp: i64,
        inflater: Inflater<'_>,
    ) -> Result<Option<TimestampOffset>, LookupError> {
        let start = self.log_start_offset;
        let wanted = |offset, time| offset >= start && time >= timestamp;
        let is_worth = |batch: &BatchHeader<'_>| {
            batch.max_timestamp() >= timestamp && batch.last_offset() >= start
        };
        for (index, segment) in self.segments.iter().enumerate() {
            if segment.size == 0 || segment.max_timestamp.timestamp < timestamp {
                continue;
            }
            let position = self.position_of_time(index, segment, timestamp)?;
            let found = Candidate { segment, position, inflater }.find(is_worth, wanted)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The search starts at the index entry before the batch that has the largest timestamp, as in
    /// Kafka.
    fn first_with_max_timestamp(
        &self,
        inflater: Inflater<'_>,
    ) -> Result<Option<TimestampOffset>, LookupError> {
        let dated = (self.segments.iter().enumerate())
            .filter(|(_, segment)| segment.size > 0 && segment.max_timestamp.timestamp >= 0);
        let newest =
            dated.max_by_key(|(index, segment)| (segment.max_timestamp.timestamp, Reverse(*index)));
        let Some((index, segment)) = newest else { return Ok(None) };
        let max = segment.max_timestamp;
        let position = self.position_of(index, segment, max.offset)?;
        let is_worth = |batch: &BatchHeader<'_>| batch.max_timestamp() == max.timestamp;
        Candidate { segment, position, inflater }.find(is_worth, |_, time| time == max.timestamp)
    }

    /// The position where the search for `timestamp` starts in the segment at `index`: from its
    /// time index, or the beginning if the index entry does not match a batch of the segment.
    fn position_of_time(
        &self,
        index: usize,
        segment: &Segment,
        timestamp: i64,
    ) -> Result<u64, StorageError> {
        let start = self.log_start_offset;
        let indexes = self.indexes_of(index);
        let entry = match indexes.and_then(|indexes| indexes.lock().times.entry_of(timestamp)) {
            Some(entry) => entry,
            None => segment.files.entry_of_time(timestamp)?,
        };
        if entry.timestamp < 0 {
            return self.position_of(index, segment, start);
        }
        let position = self.position_of(index, segment, entry.offset)?;
        let file = segment.files.log()?;
        let mut headers = HeaderScanner::new(&*file, position, segment.size);
        let is_true = names_a_batch(&mut headers, entry)
            .map_err(segment.files.error("read", FileKind::Log))?;
        match is_true {
            true if entry.offset < start => self.position_of(index, segment, start),
            true => Ok(position),
            false => Ok(0),
        }
    }

    /// The position where the search for `offset` starts in the segment at `index`; `offset` is in
    /// that segment or before it.
    pub(super) fn position_of(
        &self,
        index: usize,
        segment: &Segment,
        offset: i64,
    ) -> Result<u64, StorageError> {
        let indexes = self.indexes_of(index);
        match indexes.and_then(|indexes| indexes.lock().offsets.position_of(offset)) {
            Some(position) => Ok(position),
            None => segment.files.position_of(offset),
        }
    }

    /// Aborted transactions with records in `offsets`, in the order of their markers.
    pub(in crate::log) fn aborted_transactions(
        &self,
        offsets: Range<i64>,
    ) -> Result<Vec<AbortedTxn>, StorageError> {
        let mut found = Vec::new();
        if offsets.is_empty() {
            return Ok(found);
        }
        for segment in self.segments_from(offsets.start) {
            for txn in segment.files.aborted()?.iter() {
                if txn.last_offset >= offsets.start && txn.first_offset < offsets.end {
                    found.push(*txn);
                }
                // All transactions below the end had a marker when this one was written.
                if txn.last_stable_offset >= offsets.end {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    fn segment_entries(&self, base_offset: i64) -> Result<Option<SegmentEntries>, StorageError> {
        let mut segments = self.segments.iter().enumerate();
        let found = segments.find(|(_, segment)| segment.base_offset() == base_offset);
        let Some((index, segment)) = found else { return Ok(None) };
        let aborted = segment.files.aborted()?;
        if let Some(active) = self.indexes_of(index) {
            // Entries in memory are copied first: the writer may store and drop them during the
            // read.
            let (before, unstored) = {
                let active = active.lock();
                let before = (active.offsets.dropped(), active.times.dropped());
                (before, SegmentEntries::of(&active, &aborted))
            };
            let stored = stored_before(&segment.files, before)?;
            return Ok(stored.map(|stored| unstored.behind(stored)));
        }
        let rebuilt = segment.files.with_rebuilt(|indexes| SegmentEntries::of(indexes, &aborted));
        if rebuilt.is_some() {
            return Ok(rebuilt);
        }
        let indexes = Indexes::load(segment)?;
        Ok(indexes.map(|indexes| SegmentEntries::of(&indexes, &aborted)))
    }
}

/// The entries of a segment's index files, with absolute offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentEntries {
    /// The offset index.
    pub offsets: Vec<OffsetEntry>,
    /// The time index.
    pub times: Vec<TimeEntry>,
    /// The transaction index.
    pub aborted: Vec<AbortedTxn>,
}

impl SegmentEntries {
    fn of(indexes: &Indexes, aborted: &[AbortedTxn]) -> SegmentEntries {
        SegmentEntries {
            offsets: indexes.offsets.entries().to_vec(),
            times: indexes.times.entries().to_vec(),
            aborted: aborted.to_vec(),
        }
    }

    /// Appends these entries to those of `stored`.
    fn behind(mut self, mut stored: SegmentEntries) -> SegmentEntries {
        stored.offsets.append(&mut self.offsets);
        stored.times.append(&mut self.times);
        SegmentEntries { aborted: self.aborted, ..stored }
    }
}

/// The first entries of both stored indexes, in these numbers, while a writer may add more; `None`
/// if they are invalid.
fn stored_before(
    files: &SegmentFiles,
    (offsets, times): (usize, usize),
) -> Result<Option<SegmentEntries>, StorageError> {
    let bytes_of = |kind, size: usize| -> Result<Vec<u8>, StorageError> {
        let mut bytes = files.read(kind)?.unwrap_or_default();
        bytes.truncate(size);
        Ok(bytes)
    };
    let offset_bytes = bytes_of(FileKind::OffsetIndex, offsets * offset_index::ENTRY_SIZE)?;
    let time_bytes = bytes_of(FileKind::TimeIndex, times * time_index::ENTRY_SIZE)?;
    let indexes = Indexes::decode(&offset_bytes, &time_bytes, files.base_offset(), u64::MAX);
    let are_there =
        |found: &Indexes| (found.offsets.count(), found.times.count()) == (offsets, times);
    Ok(indexes.filter(are_there).map(|found| SegmentEntries::of(&found, &[])))
}

impl Candidate<'_> {
    /// The first record for which `wanted` accepts the offset and timestamp.
    fn find(
        &self,
        is_worth: impl Fn(&BatchHeader<'_>) -> bool,
        wanted: impl Fn(i64, i64) -> bool,
    ) -> Result<Option<TimestampOffset>, LookupError> {
        match self.find_from(self.position, &is_worth, &wanted) {
            // An index entry is wrong: search all batches.
            Err(LookupError::Storage(StorageError::Malformed { .. })) if self.position > 0 => {
                self.find_from(0, &is_worth, &wanted)
            }
            found => found,
        }
    }

    fn find_from(
        &self,
        position: u64,
        is_worth: &impl Fn(&BatchHeader<'_>) -> bool,
        wanted: &impl Fn(i64, i64) -> bool,
    ) -> Result<Option<TimestampOffset>, LookupError> {
        let files = &self.segment.files;
        let file = files.log()?;
        let mut scanner = BatchScanner::new(&*file, position, self.segment.size);
        loop {
            let batch = match scanner.next() {
                Ok(Some(batch)) => batch,
                Ok(None) => return Ok(None),
                Err(error) => return Err(self.unreadable(scanner.position(), error)),
            };
            if !is_worth(&batch) {
                continue;
            }
            match self.inflater.find_in(&batch, wanted) {
                Ok(Some(found)) => return Ok(Some(found)),
                Ok(None) => {}
                Err(Unread::Large) => return Err(LookupError::Large),
                Err(Unread::Scan(error)) => return Err(self.unreadable(batch.position(), error)),
                Err(Unread::Malformed(ValidateError::Records(
                    error @ RecordError::TooLarge { .. },
                ))) => {
                    let path = self.segment.files.path(FileKind::Log);
                    let (position, reason) = (batch.position(), error.to_string());
                    return Err(StorageError::RecordTooLarge { path, position, reason }.into());
                }
                Err(Unread::Malformed(error)) => {
                    return Err(self.malformed(batch.position(), error.to_string()));
                }
            }
        }
    }

    fn unreadable(&self, position: u64, error: ScanError) -> LookupError {
        match error {
            ScanError::Io(error) => self.segment.files.error("read", FileKind::Log)(error).into(),
            ScanError::Bad(error) => self.malformed(position, error.to_string()),
        }
    }

    fn malformed(&self, position: u64, reason: String) -> LookupError {
        let path = self.segment.files.path(FileKind::Log);
        StorageError::Malformed { path, position, reason }.into()
    }
}

/// The reason why a batch was not searched.
enum Unread {
    /// It is too large for this look-up.
    Large,
    Scan(ScanError),
    Malformed(ValidateError),
}

impl From<ScanError> for Unread {
    fn from(error: ScanError) -> Self {
        Unread::Scan(error)
    }
}

impl From<ValidateError> for Unread {
    fn from(error: ValidateError) -> Self {
        Unread::Malformed(error)
    }
}

impl Inflater<'_> {
    fn find_in(
        self,
        batch: &StoredBatch<'_>,
        wanted: impl Fn(i64, i64) -> bool,
    ) -> Result<Option<TimestampOffset>, Unread> {
        let find = |limits, scratch: &mut Scratch| match batch.read(&mut scratch.stored) {
            Ok(batch) => find_through(&batch, limits, &mut scratch.window, &wanted).map(Ok),
            Err(error) => Ok(Err(error)),
        };
        let needs_no_room =
            batch.bytes_to_read() == 0 && batch.compression() == Ok(Compression::None);
        if needs_no_room {
            return Ok(find(self.limits, &mut Scratch::default())??);
        }
        match (
            self.buffers.inflate_small_stored(self.limits, batch.bytes_to_read(), find)?,
            self.reach,
        ) {
            (Some(found), _) => Ok(found?),
            (None, Reach::All) => Ok(self.buffers.inflate_large(self.limits, find)??),
            (None, Reach::Small) => Err(Unread::Large),
        }
    }
}

fn find_through(
    batch: &Batch<'_>,
    limits: Limits,
    window: &mut Window,
    wanted: impl Fn(i64, i64) -> bool,
) -> Result<Option<TimestampOffset>, ValidateError> {
    for record in batch.read(window, limits)? {
        let record = record?;
        if wanted(record.offset, record.timestamp) {
            return Ok(Some(TimestampOffset {
                offset: record.offset,
                timestamp: record.timestamp,
                leader_epoch: (batch.partition_leader_epoch())
                    .filter(|epoch| *epoch >= LeaderEpoch::ZERO),
            }));
        }
    }
    Ok(None)
}
