//! Truncation: removes the end of the log, as a follower does if its log differs from the leader's.

use std::cmp::Ordering;
use std::ops::Range;

use pykafka_record::BatchHeader;

use super::state::{State, Status};
use super::sync::Round;
use super::{Log, producers};
use crate::error::StorageError;
use crate::file_names::FileKind;
use crate::log::append::error::AppendError;
use crate::log::types::{AppendInfo, Shared};
use crate::log::writing::Writing;
use crate::segment::index_storage::store_aborted;
use crate::segment::indexes::{ActiveIndexes, Indexes};
use crate::segment::scan::{BatchScanner, ScanError};
use crate::segment::shorten::shorten;
use crate::segment::time_index::TimeEntry;
use crate::segment::transaction_index::AbortedTxn;
use crate::segment::withdrawn::{Taken, Withdrawn};
use crate::segment::{Segment, SegmentFiles};

impl Log {
    /// Removes all records from `offset` on, including the whole batch that contains `offset`.
    ///
    /// The log then ends after its last batch: at `offset`, or below if `offset` was inside of a
    /// batch. Apache Kafka sets the log end offset to `offset` until the log is opened again; here
    /// it is the end of the last batch from the start. Epochs and producer state become those of
    /// the remaining records.
    pub fn truncate_to(&self, offset: i64) -> Result<(), StorageError> {
        check_offset(offset)?;
        let mut state = self.write();
        state.check_writable()?;
        let shared = &self.shared;
        if offset < state.log_end_offset {
            let first = state.segments.first().map_or(state.log_start_offset, Segment::base_offset);
            if offset < first {
                return state.truncate_fully(shared, offset);
            }
            state.truncate(shared, offset)?;
        }
        // Also if no record is removed: an epoch may start at the log end offset without a record.
        let offset = offset.min(state.log_end_offset);
        if state.epochs.truncate_from_end(offset) { state.store_epochs(shared) } else { Ok(()) }
    }

    /// Checks that `offset` is between 0 and the log end offset. Only replicas may truncate beyond
    /// their own end.
    pub(crate) fn check_within(&self, offset: i64) -> Result<(), StorageError> {
        let state = self.write();
        state.check_writable()?;
        let log_end_offset = state.log_end_offset;
        if (0..=log_end_offset).contains(&offset) {
            return Ok(());
        }
        Err(StorageError::OffsetOutOfRange { offset, log_end_offset })
    }

    /// Removes all records. The log then starts at `offset`, with an empty segment there, as in
    /// Apache Kafka: for the metadata log only this segment records the start.
    pub fn truncate_fully_and_start_at(&self, offset: i64) -> Result<(), StorageError> {
        check_offset(offset)?;
        let mut state = self.write();
        state.check_writable()?;
        state.truncate_fully(&self.shared, offset)?;
        state.begin_first_segment(&self.shared, offset)?;
        let synced = self.shared.disk.sync_dir(&self.shared.dir);
        synced.map_err(|error| StorageError::io("sync", &self.shared.dir, error))
    }
}

/// The bounds of a log that is about to be truncated. They limit its checkpoints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Remains {
    /// The lowest log end offset that a kill during the truncation leaves.
    pub(crate) log_end_offset: i64,
    /// The largest log start offset of a log that ends there.
    pub(crate) log_start_offset: i64,
}

impl Round<'_> {
    /// Lowers the recovery point to the end of the last batch that [`Log::truncate_to`] keeps.
    pub(crate) fn give_up(&self, offset: i64) -> Result<Remains, StorageError> {
        check_offset(offset)?;
        let log = self.log();
        let mut state = log.write();
        state.check_writable()?;
        let remains = state.remains_below(&log.shared, offset)?;
        state.recovery_point.lower_to(remains.log_end_offset);
        Ok(remains)
    }

    /// Lowers the recovery point to 0, because all records will be removed.
    pub(crate) fn give_up_all(&self) -> Result<(), StorageError> {
        let mut state = self.log().write();
        state.check_writable()?;
        state.recovery_point.lower_to(0);
        Ok(())
    }
}

fn check_offset(offset: i64) -> Result<(), StorageError> {
    if offset < 0 { Err(StorageError::NegativeOffset { offset }) } else { Ok(()) }
}

impl Writing<'_> {
    /// The bounds that a truncation to `offset` leaves.
    fn remains_below(&mut self, shared: &Shared, offset: i64) -> Result<Remains, StorageError> {
        let log_end_offset = self.end_below(shared, offset)?;
        let is_start_kept = self.log_start_offset <= offset;
        let log_start_offset = if is_start_kept { i64::MAX } else { log_end_offset };
        Ok(Remains { log_end_offset, log_start_offset })
    }

    /// The end of the last batch that ends at or below `offset`, or the base offset of its segment.
    fn end_below(&mut self, shared: &Shared, offset: i64) -> Result<i64, StorageError> {
        if offset >= self.log_end_offset {
            return Ok(offset);
        }
        // Its indexes are stored, which are read.
        self.deactivate(shared)?;
        let keep = self.segments.partition_point(|segment| segment.base_offset() <= offset);
        let Some(last) = self.segments[..keep].last() else { return Ok(offset) };
        let cut = Cut::find(last, offset);
        Ok(self.fail(cut)?.end_offset)
    }

    fn truncate_fully(&mut self, shared: &Shared, offset: i64) -> Result<(), StorageError> {
        let lowered = self.lower_aborted_counts(shared, |_| 0);
        self.fail(lowered)?;
        let start = self.log_start_offset.min(offset);
        let taken = self.begin_at(offset);
        let withdrawn = self.withdraw_truncated(taken);
        self.store_emptied(shared, &withdrawn, start)
    }

    /// Appends batches from `base_offset` on, below the log start offset of this log, which has no
    /// records. The log's bounds are never lowered, because a checkpoint may read them at any time.
    pub(super) fn append_across_start(
        &mut self,
        shared: &Shared,
        base_offset: i64,
        bytes: &[u8],
    ) -> Result<AppendInfo, AppendError> {
        let start = self.log_start_offset;
        self.truncate_fully(shared, start)?;
        self.begin_first_segment(shared, base_offset)?;
        let appended = self.append_each(shared, bytes);
        self.drop_epochs_below_start(shared)?;
        appended
    }

    /// Cuts at `offset`, which is within the first segment or after it.
    fn truncate(&mut self, shared: &Shared, offset: i64) -> Result<(), StorageError> {
        self.deactivate(shared)?;
        self.drop_writer();
        let keep = self.segments.partition_point(|segment| segment.base_offset() <= offset);
        let last = self.segments[..keep].last().expect("the first segment begins at or before it");
        let (files, cut) = (last.files.clone(), Cut::find(last, offset));
        let cut = self.fail(cut)?;
        if cut.end_offset < self.log_start_offset && self.log_start_offset <= offset {
            // The removed batch reaches below the log start offset, so no readable record is left.
            let start = self.log_start_offset;
            return self.truncate_fully(shared, start);
        }
        let lowered = self.lower_aborted_counts_above(shared, &files, cut.end_offset);
        self.fail(lowered)?;
        let taken = self.end_at(cut, keep);
        let withdrawn = self.withdraw_truncated(taken);
        let result = self.cut_files(shared, &withdrawn);
        if let Err(error) = &result {
            // For any kind of error: the state in memory and the files no longer match.
            self.status = Status::Failed(error.to_string().into());
        }
        result
    }
}

impl State {
    /// Makes the state that of an empty log that starts at `offset`. The files are not changed.
    pub(crate) fn begin_at(&mut self, offset: i64) -> Taken {
        self.drop_writer();
        self.log_start_offset = offset;
        self.log_end_offset = offset;
        self.recovery_point.restart_at(offset);
        self.producers.truncate_fully_and_start_at(offset);
        self.transactions.reload(&self.producers);
        self.epochs.truncate_from_end(i64::MIN);
        self.take_segments(0..self.segments.len())
    }

    /// Removes the files of a log that is now empty and whose checkpointed log start offset is
    /// `start`.
    fn store_emptied(
        &mut self,
        shared: &Shared,
        withdrawn: &Withdrawn,
        start: i64,
    ) -> Result<(), StorageError> {
        if !self.is_on_disk {
            return Ok(());
        }
        let segments = withdrawn.segments();
        let from_start = segments.partition_point(|segment| segment.base_offset() <= start);
        let (deleted, kept) = segments.split_at(from_start.saturating_sub(1));
        // First those below the log start offset, because a log that ends there is damaged. Then
        // from the end, so that a kill leaves a log with the same start and an earlier end.
        for segment in deleted.iter().chain(kept.iter().rev()) {
            self.mark_segment_deleted(shared, segment)?;
        }
        producers::remove_snapshots_behind(shared, i64::MIN)?;
        self.snapshot_offset = 0;
        self.store_epochs(shared)?;
        // Before the new log start offset is checkpointed: segments that reappeared would end below
        // it.
        let synced = shared.disk.sync_dir(&shared.dir);
        synced.map_err(|error| StorageError::io("sync", &shared.dir, error))
    }

    /// Lowers `transaction-index-checkpoint` to the entries that remain once the log ends at
    /// `end_offset`, in the segment whose files are `last`.
    fn lower_aborted_counts_above(
        &mut self,
        shared: &Shared,
        last: &SegmentFiles,
        end_offset: i64,
    ) -> Result<(), StorageError> {
        let known = last.aborted()?;
        let kept = known.iter().filter(|txn| txn.last_offset < end_offset).count();
        self.lower_aborted_counts(shared, |base| match base.cmp(&last.base_offset()) {
            Ordering::Less => usize::MAX,
            Ordering::Equal => kept,
            Ordering::Greater => 0,
        })
    }

    /// Ends the log at `cut`, in the last of `keep` segments. The files are not changed.
    fn end_at(&mut self, cut: Cut, keep: usize) -> Taken {
        self.log_end_offset = cut.end_offset;
        self.recovery_point.lower_to(cut.end_offset);
        self.log_start_offset = self.log_start_offset.min(cut.end_offset);
        let taken = self.take_segments(keep..self.segments.len());
        let last = self.segments.last_mut().expect("the cut was found in it");
        let files = last.files.successor();
        let replaced = std::mem::replace(&mut last.files, files);
        last.size = cut.position;
        last.max_timestamp = cut.max_timestamp;
        if cut.position == 0 {
            last.first_timestamp = None;
        }
        // The segment is active again: its last time entry is added when it is rolled or closed.
        self.indexes = Some(ActiveIndexes::new(cut.indexes));
        taken.and_replaced(replaced)
    }

    /// Shortens the files to the new log end.
    fn cut_files(&mut self, shared: &Shared, withdrawn: &Withdrawn) -> Result<(), StorageError> {
        // From the end, so that a kill leaves no gap.
        for segment in withdrawn.segments().iter().rev() {
            self.mark_segment_deleted(shared, segment)?;
        }
        let was_sealed = !withdrawn.segments().is_empty();
        if was_sealed {
            // Before the last segment is shortened: if a removed segment reappeared, there would be
            // a gap before it.
            let synced = shared.disk.sync_dir(&shared.dir);
            synced.map_err(|error| StorageError::io("sync", &shared.dir, error))?;
        }
        let segment = self.segments.last().expect("the log was cut in it");
        let (files, end_offset) = (segment.files.clone(), self.log_end_offset);
        shorten(&*shared.disk, &files, segment.size, was_sealed)?;
        if let Some(indexes) = &self.indexes {
            indexes.store(&*shared.disk, &files)?;
        }
        let known = files.aborted()?;
        let is_kept = |txn: &&AbortedTxn| txn.last_offset < end_offset;
        if !known.iter().all(|txn| is_kept(&txn)) {
            let kept: Vec<_> = known.iter().filter(is_kept).copied().collect();
            store_aborted(&*shared.disk, &files, &kept)?;
        }
        producers::remove_snapshots_behind(shared, end_offset)?;
        producers::reload_producers(self, shared)
    }

    /// Drops the writer and the indexes without storing them.
    fn drop_writer(&mut self) {
        self.appender = None;
        self.indexes = None;
    }
}

/// The position where a segment is cut, and the state of the remaining part.
struct Cut {
    /// Start of the batch that contains the requested offset, or of the first batch after it.
    position: u64,
    /// End of the previous batch (exclusive); without one, the segment's base offset.
    end_offset: i64,
    max_timestamp: TimeEntry,
    indexes: Indexes,
}

impl Cut {
    fn find(segment: &Segment, offset: i64) -> Result<Cut, StorageError> {
        let (files, base_offset) = (&segment.files, segment.base_offset());
        let indexes = Indexes::load(segment)?;
        let mut indexes = indexes.unwrap_or_else(|| Indexes::new(base_offset));
        let (mut position, mut end_offset) = (segment.size, base_offset);
        // Starts at a batch that is kept, to get its end.
        let start = indexes.offsets.position_of(offset - 1).unwrap_or(0);
        walk(files, start..segment.size, |at, batch| {
            if batch.last_offset() < offset {
                end_offset = batch.next_offset();
            } else {
                position = position.min(at);
            }
        })?;
        indexes.truncate(position, end_offset);
        let mut max_timestamp = indexes.times.last();
        let start = indexes.offsets.position_of(max_timestamp.offset).unwrap_or(0);
        walk(files, start..position, |_, batch| max_timestamp.note(batch))?;
        Ok(Cut { position, end_offset, max_timestamp, indexes })
    }
}

/// Calls `see(position, batch)` for each batch in a range of positions.
fn walk(
    files: &SegmentFiles,
    range: Range<u64>,
    mut see: impl FnMut(u64, &BatchHeader<'_>),
) -> Result<(), StorageError> {
    let file = files.log()?;
    let mut scanner = BatchScanner::new(&*file, range.start, range.end);
    loop {
        match scanner.next() {
            Ok(Some(batch)) => see(batch.position(), &batch),
            Ok(None) => return Ok(()),
            Err(ScanError::Io(error)) => return Err(files.error("read", FileKind::Log)(error)),
            Err(ScanError::Bad(error)) => {
                let (path, position) = (files.path(FileKind::Log), scanner.position());
                return Err(StorageError::Malformed { path, position, reason: error.to_string() });
            }
        }
    }
}
