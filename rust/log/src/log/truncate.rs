//! Truncation: the end of the log is given up, as a follower does that finds its leader disagree.

use std::path::Path;
use std::sync::Arc;

use super::state::{State, Status};
use super::view::Truncating;
use super::{Log, Shared, StorageError, recovery};
use crate::disk::{DiskFile, OpenMode};
use crate::segment::indexes::{ActiveIndexes, Indexes};
use crate::segment::scan::{BatchScanner, ScanError};
use crate::segment::time_index::TimeEntry;
use crate::segment::transaction_index::AbortedTxn;
use crate::segment::{FileKind, Segment, SegmentFiles};

/// Bytes copied at once when a segment gets a new inode.
const COPY_BYTES: usize = 1 << 20;

impl Log {
    /// Gives up all records at and behind `offset`; a batch that holds it goes whole.
    ///
    /// The log then ends where its last batch does: at `offset`, or below if that lay inside of a batch. Apache
    /// Kafka ends it at `offset` until it is opened again, and here in any case. Epochs and producer state are
    /// those of the rest.
    pub fn truncate_to(&self, offset: i64) -> Result<(), StorageError> {
        check_offset(offset)?;
        let _truncating = Truncating::begin(&self.truncations);
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
        // Also where no record goes: an epoch may begin at the log end without any.
        let offset = offset.min(state.log_end_offset);
        if state.epochs.truncate_from_end(offset) { state.store_epochs(shared) } else { Ok(()) }
    }

    /// Gives up the promise that records at and behind `offset` are durable, and that of the batch that holds it.
    pub(crate) fn lower_recovery_point(&self, offset: i64) -> Result<(), StorageError> {
        check_offset(offset)?;
        let end = match self.read(offset.max(self.log_start_offset()), 0, i64::MAX, true) {
            Ok(data) if !data.bytes.is_empty() => data.base_offset,
            // Behind the log end, or not readable: the promise ends where the truncation was asked for.
            _ => offset,
        };
        let mut state = self.write();
        state.check_writable()?;
        state.recovery_point = state.recovery_point.min(end.min(offset));
        Ok(())
    }

    /// Gives up everything; the log is empty and begins at `offset`.
    pub fn truncate_fully_and_start_at(&self, offset: i64) -> Result<(), StorageError> {
        check_offset(offset)?;
        let _truncating = Truncating::begin(&self.truncations);
        let mut state = self.write();
        state.check_writable()?;
        state.truncate_fully(&self.shared, offset)
    }
}

fn check_offset(offset: i64) -> Result<(), StorageError> {
    if offset < 0 { Err(StorageError::NegativeOffset { offset }) } else { Ok(()) }
}

impl State {
    pub(crate) fn truncate_fully(
        &mut self,
        shared: &Shared,
        offset: i64,
    ) -> Result<(), StorageError> {
        self.drop_writer();
        let count = self.segments.len();
        self.remove_segments(shared, 0..count)?;
        self.remove_snapshots(shared, i64::MIN)?;
        self.snapshot_offset = 0;
        self.log_start_offset = offset;
        self.log_end_offset = offset;
        self.recovery_point = offset;
        self.producers.truncate_fully_and_start_at(offset);
        self.epochs.truncate_from_end(i64::MIN);
        self.store_epochs(shared)
    }

    /// Cuts at `offset`, which lies inside of the first segment or behind it.
    fn truncate(&mut self, shared: &Shared, offset: i64) -> Result<(), StorageError> {
        self.deactivate(shared)?;
        self.drop_writer();
        let keep = self.segments.partition_point(|segment| segment.base_offset() <= offset);
        let last = self.segments[..keep].last().expect("the first segment begins at or before it");
        let cut = Cut::find(shared, last, offset);
        let cut = self.fail(cut)?;
        if cut.end_offset < self.log_start_offset && self.log_start_offset <= offset {
            // The batch that goes reaches below the log start: nothing is left to read.
            return self.truncate_fully(shared, self.log_start_offset);
        }
        // First of all, so that readers of a log that fails on the way are not sent behind the cut.
        self.log_end_offset = cut.end_offset;
        self.recovery_point = self.recovery_point.min(cut.end_offset);
        self.log_start_offset = self.log_start_offset.min(cut.end_offset);
        let result = self.cut_at(shared, cut, keep);
        if let Err(error) = &result {
            // Whatever was lacking: what is known and what is on disk no longer agree.
            self.status = Status::Failed(error.to_string().into());
        }
        result
    }

    /// Removes the segments from `keep` on, and what the one before them holds behind `cut`.
    fn cut_at(&mut self, shared: &Shared, cut: Cut, keep: usize) -> Result<(), StorageError> {
        let count = self.segments.len();
        self.remove_segments(shared, keep..count)?;
        if keep < count {
            // Before the last one is shortened: a segment that comes back must not leave a hole before it.
            let synced = shared.disk.sync_dir(&shared.dir);
            synced.map_err(|error| StorageError::io("sync", &shared.dir, error))?;
        }
        let end_offset = cut.end_offset;
        self.cut_last_segment(shared, cut, keep < count)?;
        self.remove_snapshots(shared, end_offset)?;
        recovery::reload_producers(self, shared)
    }

    /// Forgets writer and indexes without storing them.
    fn drop_writer(&mut self) {
        self.appender = None;
        self.indexes = None;
    }

    fn cut_last_segment(
        &mut self,
        shared: &Shared,
        cut: Cut,
        was_sealed: bool,
    ) -> Result<(), StorageError> {
        let Cut { position, end_offset, mut indexes } = cut;
        let segment = self.segments.last_mut().expect("it was looked at");
        let files = segment.files.clone();
        shorten(shared, &files, position, was_sealed)?;
        segment.size = position;
        indexes.truncate(position, end_offset);
        segment.max_timestamp = max_timestamp(segment, &indexes)?;
        indexes.store(&*shared.disk, &files)?;
        let known = files.aborted()?;
        let is_kept = |txn: &&AbortedTxn| txn.last_offset < end_offset;
        if !known.iter().all(|txn| is_kept(&txn)) {
            let kept: Vec<_> = known.iter().filter(is_kept).copied().collect();
            recovery::store_aborted(shared, &files, &kept)?;
        }
        if position == 0 {
            segment.first_timestamp = None;
        }
        // The segment is active again: its last time entry comes when it is rolled or closed.
        self.indexes = Some(ActiveIndexes::new(indexes));
        Ok(())
    }
}

/// Where a segment is cut.
struct Cut {
    /// Where the batch begins that holds the offset wanted, or the first behind it.
    position: u64,
    /// Where the batch before ends (exclusive); without one, where the segment begins.
    end_offset: i64,
    indexes: Indexes,
}

impl Cut {
    fn find(shared: &Shared, segment: &Segment, offset: i64) -> Result<Cut, StorageError> {
        let base_offset = segment.base_offset();
        let indexes =
            Indexes::load(&*shared.disk, segment)?.unwrap_or_else(|| Indexes::new(base_offset));
        // From a batch that stays, whose end is asked for.
        let start = indexes.offsets.position_of(offset - 1);
        let mut cut = Cut { position: segment.size, end_offset: base_offset, indexes };
        walk(segment, start, |position, _, last_offset, _| {
            if last_offset < offset {
                cut.end_offset = last_offset + 1;
            } else {
                cut.position = cut.position.min(position);
            }
        })?;
        Ok(cut)
    }
}

/// The largest timestamp of what a segment holds.
fn max_timestamp(segment: &Segment, indexes: &Indexes) -> Result<TimeEntry, StorageError> {
    let mut max = indexes.times.last();
    let start = indexes.offsets.position_of(max.offset);
    walk(segment, start, |_, timestamp, offset, _| {
        if timestamp > max.timestamp {
            max = TimeEntry { timestamp, offset };
        }
    })?;
    Ok(max)
}

/// Calls `see(position, max timestamp, last offset, size)` for each batch from `start` on.
fn walk(
    segment: &Segment,
    start: u64,
    mut see: impl FnMut(u64, i64, i64, usize),
) -> Result<(), StorageError> {
    let file = segment.files.log()?;
    let mut scanner = BatchScanner::new(&*file, start, segment.size);
    loop {
        match scanner.next() {
            Ok(Some((position, batch))) => {
                see(position, batch.max_timestamp(), batch.last_offset(), batch.size());
            }
            Ok(None) => return Ok(()),
            Err(ScanError::Io(error)) => {
                return Err(segment.files.error("read", FileKind::Log)(error));
            }
            Err(ScanError::Bad(error)) => {
                let path = segment.files.path(FileKind::Log);
                let position = scanner.position();
                return Err(StorageError::Malformed { path, position, reason: error.to_string() });
            }
        }
    }
}

/// Shortens a `.log`. One that was ever sealed keeps its inode whole and is replaced by a copy: it may be mapped
/// for reading, by an earlier holder of the directory's lock too.
pub(super) fn shorten(
    shared: &Shared,
    files: &Arc<SegmentFiles>,
    size: u64,
    was_sealed: bool,
) -> Result<(), StorageError> {
    let path = files.path(FileKind::Log);
    let file =
        shared.disk.open(&path, OpenMode::Write).map_err(files.error("open", FileKind::Log))?;
    files.release();
    let result =
        if was_sealed { replace_by_copy(shared, &*file, &path, size) } else { file.set_len(size) };
    result.map_err(files.error("truncate", FileKind::Log))
}

fn replace_by_copy(
    shared: &Shared,
    file: &dyn DiskFile,
    path: &Path,
    size: u64,
) -> std::io::Result<()> {
    let mut copy_path = path.as_os_str().to_owned();
    // Recovery removes files of this name, should the process end here.
    copy_path.push(".cleaned");
    let copy = shared.disk.create_anew(Path::new(&copy_path))?;
    let mut buffer = vec![0; COPY_BYTES.min(size as usize)];
    let mut position = 0;
    while position < size {
        let wanted = buffer.len().min((size - position) as usize);
        let read = file.read_at(&mut buffer[..wanted], position)?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        copy.write_at(&buffer[..read], position)?;
        position += read as u64;
    }
    copy.sync_data()?;
    shared.disk.rename(Path::new(&copy_path), path)?;
    shared.disk.sync_dir(path.parent().unwrap_or(path))
}
