//! Finding records by time, and aborted transactions by offset.

use std::sync::Arc;

use pykafka_record::{Batch, Limits, RecordError};

use crate::disk::ReadMap;
use crate::log::{Log, StorageError, TimestampOffset};
use crate::segment::indexes::Indexes;
use crate::segment::offset_index::OffsetEntry;
use crate::segment::scan::{BatchScanner, ScanError};
use crate::segment::time_index::TimeEntry;
use crate::segment::transaction_index::AbortedTxn;
use crate::segment::{FileKind, Segment, SegmentFiles};

/// A segment to search, as it was under the lock.
struct Candidate {
    files: Arc<SegmentFiles>,
    size: u64,
    max_timestamp: TimeEntry,
    /// Where to begin, by the indexes in memory.
    position: Option<u64>,
}

impl Log {
    /// The first record, by offset, at or after the log start whose timestamp is not below `timestamp`.
    ///
    /// `None` if there is none, or if it lies at or behind `upto`.
    pub fn offset_for_timestamp(
        &self,
        timestamp: i64,
        upto: i64,
    ) -> Result<Option<TimestampOffset>, StorageError> {
        let (candidates, log_start_offset) = self.candidates(timestamp)?;
        for candidate in candidates {
            let position = match candidate.position {
                Some(position) => position,
                None => candidate.position_of_time(timestamp, log_start_offset)?,
            };
            let wanted = |offset, time| offset >= log_start_offset && time >= timestamp;
            let is_worth = |batch: &Batch<'_>| {
                batch.max_timestamp() >= timestamp && batch.last_offset() >= log_start_offset
            };
            if let Some(found) = candidate.find(position, is_worth, wanted)? {
                return Ok(Some(found).filter(|found| found.offset < upto));
            }
        }
        Ok(None)
    }

    /// The first record that has the largest timestamp; `None` if no record has one.
    pub fn offset_of_max_timestamp(&self) -> Result<Option<TimestampOffset>, StorageError> {
        let (candidates, _) = self.candidates(0)?;
        let Some(candidate) =
            candidates.into_iter().rev().max_by_key(|candidate| candidate.max_timestamp.timestamp)
        else {
            return Ok(None);
        };
        let max = candidate.max_timestamp;
        let position = match candidate.position {
            Some(_) => 0,
            None => candidate.files.position_of(max.offset)?,
        };
        let is_worth = |batch: &Batch<'_>| batch.max_timestamp() == max.timestamp;
        candidate.find(position, is_worth, |_, time| time == max.timestamp)
    }

    /// Aborted transactions with records in `from..upto`, in the order of their markers.
    ///
    /// More than that may be returned; a reader drops those whose records it did not get.
    pub fn aborted_transactions(
        &self,
        from: i64,
        upto: i64,
    ) -> Result<Vec<AbortedTxn>, StorageError> {
        let mut found = Vec::new();
        for files in self.files_from(from)? {
            for txn in files.aborted()?.iter() {
                if txn.last_offset >= from && txn.first_offset < upto {
                    found.push(*txn);
                }
                // Everything below the bound was decided when this marker came.
                if txn.last_stable_offset >= upto {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    /// The index entries of the segment at `base_offset`, and its aborted transactions; `None` without it.
    ///
    /// For tools; readers search them in place.
    pub fn segment_entries(
        &self,
        base_offset: i64,
    ) -> Result<Option<SegmentEntries>, StorageError> {
        let segment = {
            let view = self.view.lock();
            view.check_readable()?;
            let found = view.segments.iter().find(|s| s.base_offset() == base_offset);
            let Some(segment) = found else { return Ok(None) };
            let is_last = view.segments.last().map(Segment::base_offset) == Some(base_offset);
            if let (true, Some(indexes)) = (is_last, &view.indexes) {
                return Ok(Some(SegmentEntries::of(&indexes.lock(), &segment.files.aborted()?)));
            }
            segment.clone()
        };
        let aborted = segment.files.aborted()?;
        if let Some(entries) =
            segment.files.with_rebuilt(|indexes| SegmentEntries::of(indexes, &aborted))
        {
            return Ok(Some(entries));
        }
        let indexes = Indexes::load(&*self.shared.disk, &segment)?;
        Ok(indexes.map(|indexes| SegmentEntries::of(&indexes, &aborted)))
    }

    /// The sealed segments that hold offsets of `from..upto`, mapped for reading, with their base offsets.
    ///
    /// Their inodes are never shortened afterwards. Not for a log opened read-only: only the process that holds
    /// the directory's lock may map.
    pub fn map_sealed(&self, from: i64, upto: i64) -> Result<Vec<(i64, ReadMap)>, StorageError> {
        let view = self.view.lock();
        view.check_writable()?;
        let first = view.segment_of(from).unwrap_or(0);
        let sealed = view.segments.len().saturating_sub(1);
        let range = view.segments.get(first..sealed).unwrap_or_default().iter();
        range
            .take_while(|segment| segment.base_offset() < upto)
            .map(|segment| {
                let map = segment.files.log()?.map_read(segment.size as usize);
                let map = map.map_err(segment.files.error("map", FileKind::Log))?;
                Ok((segment.base_offset(), map))
            })
            .collect()
    }

    fn files_from(&self, offset: i64) -> Result<Vec<Arc<SegmentFiles>>, StorageError> {
        let view = self.view.lock();
        view.check_readable()?;
        let first = view.segment_of(offset).unwrap_or(0);
        Ok(view.segments[first..].iter().map(|segment| segment.files.clone()).collect())
    }

    /// Segments with a timestamp that large, oldest first, and the log start offset.
    fn candidates(&self, timestamp: i64) -> Result<(Vec<Candidate>, i64), StorageError> {
        let view = self.view.lock();
        view.check_readable()?;
        let last = view.segments.len().wrapping_sub(1);
        let start = view.log_start_offset;
        let candidates = view.segments.iter().enumerate();
        let candidates = candidates
            .filter(|(_, segment)| segment.size > 0)
            .filter(|(_, segment)| segment.max_timestamp.timestamp >= timestamp)
            .map(|(index, segment)| Candidate {
                files: segment.files.clone(),
                size: segment.size,
                max_timestamp: segment.max_timestamp,
                position: view.indexes.as_ref().filter(|_| index == last).map(|indexes| {
                    let indexes = indexes.lock();
                    let offset = indexes.times.offset_of(timestamp).max(start);
                    indexes.offsets.position_of(offset)
                }),
            })
            .collect();
        Ok((candidates, start))
    }
}

/// What a segment's index files hold, offsets made absolute.
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
}

impl Candidate {
    fn position_of_time(&self, timestamp: i64, log_start_offset: i64) -> Result<u64, StorageError> {
        let offset = self.files.offset_of_time(timestamp)?.max(log_start_offset);
        self.files.position_of(offset)
    }

    /// The first record from `position` on that is `wanted`, by offset and timestamp.
    fn find(
        &self,
        position: u64,
        is_worth: impl Fn(&Batch<'_>) -> bool,
        wanted: impl Fn(i64, i64) -> bool,
    ) -> Result<Option<TimestampOffset>, StorageError> {
        let file = self.files.log()?;
        let mut scanner = BatchScanner::new(&*file, position, self.size);
        let mut scratch = Vec::new();
        loop {
            let batch = match scanner.next() {
                Ok(Some((_, batch))) => batch,
                Ok(None) => return Ok(None),
                Err(ScanError::Io(error)) => {
                    return Err(self.files.error("read", FileKind::Log)(error));
                }
                Err(ScanError::Bad(error)) => {
                    return Err(self.malformed(scanner.position(), error.to_string()));
                }
            };
            if !is_worth(&batch) {
                continue;
            }
            let found = find_in(&batch, &mut scratch, &wanted);
            match found.map_err(|error| error.to_string()) {
                Ok(Some(found)) => return Ok(Some(found)),
                Ok(None) => {}
                Err(reason) => return Err(self.malformed(scanner.position(), reason)),
            }
        }
    }

    fn malformed(&self, position: u64, reason: String) -> StorageError {
        StorageError::Malformed { path: self.files.path(FileKind::Log), position, reason }
    }
}

fn find_in(
    batch: &Batch<'_>,
    scratch: &mut Vec<u8>,
    wanted: impl Fn(i64, i64) -> bool,
) -> Result<Option<TimestampOffset>, RecordError> {
    for record in batch.records(scratch, Limits::default())? {
        let record = record?;
        if wanted(record.offset, record.timestamp) {
            let epoch = batch.partition_leader_epoch();
            return Ok(Some(TimestampOffset {
                offset: record.offset,
                timestamp: record.timestamp,
                leader_epoch: (epoch >= 0).then_some(epoch),
            }));
        }
    }
    Ok(None)
}
