//! Makes appends durable, by rounds of syncs, one at a time for each log.
//!
//! # Theory of operation
//! A round collects the changes that are not durable under the log's lock, syncs them without the
//! lock, and then raises the recovery point to the log end offset at the time of the collection.
//! Two concurrent rounds would be wrong: the second does not sync the changes that the first one
//! collected and has not finished, so its recovery point would be ahead of the disk. So there is
//! only one [`Round`] at a time, and only a successful round can raise a [`RecoveryPoint`].
//!
//! A caller that needs a sync waits for the running round, and then for one that started after the
//! call: the first caller runs it, the others share it. There is no timer: the slower the disk, the
//! more appends share a round.

mod recovery_point;
pub(super) mod rounds;
pub(super) mod unsynced;

use std::io;
use std::sync::Arc;

pub(crate) use self::recovery_point::RecoveryPoint;
use self::rounds::RoundsState;
use self::unsynced::Unsynced;
use super::Log;
use super::state::{State, Status};
use crate::disk::open_files::is_out_of_descriptors;
use crate::disk::{Disk, OpenMode};
use crate::error::StorageError;
use crate::file_names::SYNC_FAILED_FILE;
use crate::segment::SegmentFiles;

/// The right to raise or lower a log's recovery point. Only one exists at a time; dropping it
/// allows the next one.
pub(crate) struct Round<'a> {
    log: &'a Log,
    number: u64,
    is_done: bool,
}

impl RoundsState {
    fn begin<'a>(&mut self, log: &'a Log) -> Round<'a> {
        self.in_flight = true;
        self.begun += 1;
        Round { log, number: self.begun, is_done: false }
    }
}

impl Round<'_> {
    pub(super) fn log(&self) -> &Log {
        self.log
    }

    /// Syncs all changes that are not durable, blocking, and raises the recovery point to the log
    /// end offset at the start.
    fn run(mut self) -> Result<(), StorageError> {
        if let Some(unsynced) = self.collect()? {
            let result = unsynced.sync(&*self.log.shared.disk);
            self.publish(&unsynced, result)?;
        }
        self.is_done = true;
        Ok(())
    }

    /// Collects the changes whose sync makes all current records durable; `None` if they are
    /// durable already.
    fn collect(&self) -> Result<Option<Collected>, StorageError> {
        let mut state = self.log.write();
        state.check_writable()?;
        let recovery_point = state.recovery_point;
        if recovery_point.offset() >= state.log_end_offset && state.unsynced.is_empty() {
            return Ok(None);
        }
        let first = state.segment_of(recovery_point.offset()).unwrap_or(0);
        let dirty = state.segments.get(first..).unwrap_or_default();
        Ok(Some(Collected {
            segments: dirty.iter().map(|segment| segment.files.clone()).collect(),
            others: std::mem::take(&mut state.unsynced),
            recovery_point,
            upto: state.log_end_offset,
            unsynced_records: std::mem::take(&mut state.unsynced_records),
            unsynced_since_ms: state.unsynced_since_ms.take(),
        }))
    }

    /// Stores the result of the sync. An error closes this log for writing, unless a file could not
    /// even be opened for lack of descriptors: then the changes still have to be synced.
    fn publish(&self, collected: &Collected, result: io::Result<()>) -> Result<(), StorageError> {
        let mut state = self.log.write();
        if matches!(state.status, Status::Closed) {
            return Err(StorageError::Closed);
        }
        let Err(error) = result else {
            state.recovery_point.raise(collected.recovery_point, collected.upto);
            return Ok(());
        };
        let (path, source) = (self.log.shared.dir.to_path_buf(), Arc::new(error));
        if is_out_of_descriptors(&source) {
            state.take_back(collected);
            return Err(StorageError::Exhausted { action: "sync", path, source });
        }
        let marker = path.join(SYNC_FAILED_FILE);
        // Without space for the marker, the log is opened as after a crash, which cannot be
        // improved.
        let _ = self.log.shared.disk.open(&marker, OpenMode::Create);
        // Final for any kind of error: after a failed sync the kernel may have dropped the pages.
        let error = StorageError::Io { action: "sync", path, source };
        state.status = Status::Failed(error.to_string().into());
        Err(error)
    }
}

impl Drop for Round<'_> {
    fn drop(&mut self) {
        let rounds = &self.log.rounds;
        let mut state = rounds.state.lock();
        state.in_flight = false;
        if self.is_done {
            state.done = self.number;
        }
        rounds.ended.notify_all();
    }
}

/// The changes that a round syncs.
#[derive(Debug)]
struct Collected {
    /// The segments, oldest first. Their files are opened one by one: waiting rounds hold no
    /// descriptors.
    segments: Vec<Arc<SegmentFiles>>,
    others: Unsynced,
    /// The recovery point at the collection.
    recovery_point: RecoveryPoint,
    /// The log end offset at the collection.
    upto: i64,
    /// Counters that were reset by the collection, for a round that must be repeated.
    unsynced_records: i64,
    unsynced_since_ms: Option<i64>,
}

impl Collected {
    fn sync(&self, disk: &dyn Disk) -> io::Result<()> {
        for segment in &self.segments {
            segment.sync_log()?;
        }
        self.others.sync(disk)
    }
}

impl Log {
    /// Everything below this offset is durable, if the disk honours syncs.
    pub fn recovery_point(&self) -> i64 {
        self.view.lock().recovery_point
    }

    /// The log end offset, if not everything below it is durable.
    pub fn unsynced_end(&self) -> Option<i64> {
        let view = self.view.lock();
        (view.recovery_point < view.log_end_offset).then_some(view.log_end_offset)
    }

    /// True if not all sealed segments are durable.
    pub fn has_unsynced_sealed_segment(&self) -> bool {
        let view = self.view.lock();
        view.segments.last().is_some_and(|active| view.recovery_point < active.base_offset())
    }

    /// True if `flush.messages` or `flush.ms` requires a sync now.
    pub fn sync_due(&self, now_ms: i64) -> bool {
        let view = self.view.lock();
        let waited_ms = view.unsynced_since_ms.map_or(0, |since| now_ms.saturating_sub(since));
        view.unsynced_records >= view.config.flush_messages
            || (view.unsynced_since_ms.is_some() && waited_ms >= view.config.flush_ms)
    }

    /// Makes everything appended so far durable, blocking. An error closes this log for writing.
    pub fn flush(&self) -> Result<(), StorageError> {
        self.sync_until(|| false)
    }

    /// Waits until everything below `end` is durable, or was truncated.
    ///
    /// # Errors
    /// Those of [`Log::flush`].
    pub fn sync_to(&self, end: i64) -> Result<(), StorageError> {
        self.sync_until(|| self.recovery_point() >= end)
    }

    /// Syncs after an append that ended at `end`, if `flush.messages` or `flush.ms` requires it;
    /// `false` if no sync is required yet.
    ///
    /// # Errors
    /// Those of [`Log::flush`].
    pub fn sync_appended(&self, end: i64) -> Result<bool, StorageError> {
        if self.config().syncs_every_append() {
            return self.sync_to(end).map(|()| true);
        }
        let is_due = self.sync_due(self.shared.clock.now_ms());
        if is_due { self.flush().map(|()| true) } else { Ok(false) }
    }

    /// Waits until `is_done` after the running round, or else for a round that started after this
    /// call.
    fn sync_until(&self, is_done: impl Fn() -> bool) -> Result<(), StorageError> {
        let mut rounds = self.rounds.state.lock();
        let wanted = rounds.begun + 1;
        while !is_done() && rounds.done < wanted {
            if !rounds.in_flight {
                let round = rounds.begin(self);
                drop(rounds);
                return round.run();
            }
            rounds = self.rounds.ended.wait(rounds);
        }
        Ok(())
    }

    /// Prevents new rounds, so that the recovery point is not raised; waits for the running one.
    pub(crate) fn hold_recovery_point(&self) -> Round<'_> {
        let mut rounds = self.rounds.state.lock();
        rounds = self.rounds.ended.wait_while(rounds, |rounds| rounds.in_flight);
        rounds.begin(self)
    }
}

impl State {
    /// Adds the collected changes again.
    fn take_back(&mut self, collected: &Collected) {
        self.unsynced.take_back(&collected.others);
        self.unsynced_records += collected.unsynced_records;
        self.unsynced_since_ms = collected.unsynced_since_ms.or(self.unsynced_since_ms);
    }
}
