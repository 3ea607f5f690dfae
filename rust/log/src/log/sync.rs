//! Making appends durable: what to sync is collected under the lock, and synced without it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::state::{State, Status};
use super::{Log, StorageError};
use crate::disk::open_files::is_out_of_descriptors;
use crate::disk::{Disk, OpenMode};
use crate::segment::SegmentFiles;

/// What must be synced so that everything below `upto` is durable.
#[derive(Debug)]
pub struct SyncJob {
    /// The segments, oldest first. Their files are opened one by one: jobs that wait hold no descriptors.
    segments: Vec<Arc<SegmentFiles>>,
    others: Unsynced,
    /// The log end offset when the job was made.
    upto: i64,
    truncations: u64,
    /// What the log forgot when the job was made, for a job that was refused.
    unsynced_records: i64,
    unsynced_since_ms: Option<i64>,
}

impl SyncJob {
    /// Syncs all of it, blocking. After an error the log must be told, and is closed for writing.
    pub fn run(&self, disk: &dyn Disk) -> io::Result<()> {
        for segment in &self.segments {
            segment.sync_log()?;
        }
        self.others.sync(disk)
    }
}

/// Small files and directories that were changed since the last sync, each once.
#[derive(Debug, Default)]
pub struct Unsynced {
    files: Vec<PathBuf>,
    dirs: Vec<PathBuf>,
}

impl Unsynced {
    pub(crate) fn add_file(&mut self, path: PathBuf) {
        if !self.files.contains(&path) {
            self.files.push(path);
        }
    }

    pub(crate) fn add_dir(&mut self, path: PathBuf) {
        if !self.dirs.contains(&path) {
            self.dirs.push(path);
        }
    }

    fn is_empty(&self) -> bool {
        self.files.is_empty() && self.dirs.is_empty()
    }

    /// Files first, then their names. What is gone meanwhile needs no sync.
    fn sync(&self, disk: &dyn Disk) -> io::Result<()> {
        let is_there = |result: io::Result<()>| match result {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        };
        for path in &self.files {
            is_there(disk.open(path, OpenMode::Read).and_then(|file| file.sync_data()))?;
        }
        self.dirs.iter().try_for_each(|dir| is_there(disk.sync_dir(dir)))
    }
}

/// Left in a log's directory by a failed sync, and removed once everything that it may have lost was written again.
///
/// After a failed sync the kernel may hold pages as clean that never reached the disk. Whoever opens the log reads them,
/// and no further sync of that file saves them. The marker need not be durable: the pages go with it.
pub(crate) const SYNC_FAILED_FILE: &str = "sync-failed";

impl Log {
    /// Everything below is durable, as far as the disk tells the truth.
    pub fn recovery_point(&self) -> i64 {
        self.view.lock().recovery_point
    }

    /// The log end, if not all below it is durable.
    pub fn unsynced_end(&self) -> Option<i64> {
        let view = self.view.lock();
        (view.recovery_point < view.log_end_offset).then_some(view.log_end_offset)
    }

    /// Whether a segment that was rolled is not all durable.
    pub fn has_unsynced_sealed_segment(&self) -> bool {
        let view = self.view.lock();
        view.segments.last().is_some_and(|active| view.recovery_point < active.base_offset())
    }

    /// Whether `flush.messages` or `flush.ms` asks for a sync now.
    pub fn sync_due(&self, now_ms: i64) -> bool {
        let view = self.view.lock();
        let waited_ms = view.unsynced_since_ms.map_or(0, |since| now_ms.saturating_sub(since));
        view.unsynced_records >= view.config.flush_messages
            || (view.unsynced_since_ms.is_some() && waited_ms >= view.config.flush_ms)
    }

    /// What to sync so that all that is appended now becomes durable; `None` if it is.
    pub fn prepare_sync(&self) -> Result<Option<SyncJob>, StorageError> {
        let mut state = self.write();
        state.check_writable()?;
        let recovery_point = state.recovery_point;
        if recovery_point >= state.log_end_offset && state.unsynced.is_empty() {
            return Ok(None);
        }
        let upto = state.log_end_offset;
        let first = state.segment_of(recovery_point).unwrap_or(0);
        let dirty = state.segments.get(first..).unwrap_or_default();
        Ok(Some(SyncJob {
            segments: dirty.iter().map(|segment| segment.files.clone()).collect(),
            others: std::mem::take(&mut state.unsynced),
            upto,
            truncations: self.truncations.load(Ordering::SeqCst),
            unsynced_records: std::mem::take(&mut state.unsynced_records),
            unsynced_since_ms: state.unsynced_since_ms.take(),
        }))
    }

    /// Tells how a job ended; returns the recovery point. An error is final for this log, unless a file could not even be
    /// opened for want of descriptors: then what the job was to sync is still to be synced.
    pub fn complete_sync(
        &self,
        job: &SyncJob,
        result: io::Result<()>,
    ) -> Result<i64, StorageError> {
        let mut state = self.write();
        if matches!(state.status, Status::Closed) {
            return Err(StorageError::Closed);
        }
        if let Err(error) = result {
            let (path, source) = (self.shared.dir.to_path_buf(), Arc::new(error));
            if is_out_of_descriptors(&source) {
                state.take_back(job);
                return Err(StorageError::Exhausted { action: "sync", path, source });
            }
            let marker = path.join(SYNC_FAILED_FILE);
            // Without space for it the log is opened as after a crash: there is no better way.
            let _ = self.shared.disk.open(&marker, OpenMode::Create);
            // Whatever it lacked: after a sync that failed the kernel may have dropped the pages.
            let error = StorageError::Io { action: "sync", path, source };
            state.status = Status::Failed(error.to_string().into());
            return Err(error);
        }
        // Bytes that replaced truncated ones may not be what was synced.
        if job.truncations == self.truncations.load(Ordering::SeqCst) {
            state.recovery_point = state.recovery_point.max(job.upto);
        }
        Ok(state.recovery_point)
    }

    /// Makes everything appended so far durable, blocking. An error is final for this log.
    pub fn flush(&self) -> Result<(), StorageError> {
        let Some(job) = self.prepare_sync()? else { return Ok(()) };
        let result = job.run(&*self.shared.disk);
        self.complete_sync(&job, result).map(|_| ())
    }
}

impl State {
    /// Notes again what `job` was to sync.
    fn take_back(&mut self, job: &SyncJob) {
        job.others.files.iter().for_each(|path| self.unsynced.add_file(path.clone()));
        job.others.dirs.iter().for_each(|path| self.unsynced.add_dir(path.clone()));
        self.unsynced_records += job.unsynced_records;
        self.unsynced_since_ms = job.unsynced_since_ms.or(self.unsynced_since_ms);
    }
}
