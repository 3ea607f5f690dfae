//! The state of a log that its mutex protects.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use pykafka_record::LeaderEpoch;

use super::sync::RecoveryPoint;
use crate::config::LogConfig;
use crate::epoch_cache::EpochCache;
use crate::error::{Damage, StorageError};
use crate::file_names::{FileKind, file_name};
use crate::log::producer_state::ProducerStateManager;
use crate::log::sync::unsynced::Unsynced;
use crate::log::types::Shared;
use crate::log::verification::Transactions;
use crate::segment::appender::Appender;
use crate::segment::indexes::ActiveIndexes;
use crate::segment::{Segment, segment_of};
use crate::{checkpoint, disk};

/// The allowed operations of a log.
#[derive(Debug, Clone)]
pub(crate) enum Status {
    /// All operations.
    Open,
    /// Reads only, because it was opened so.
    ReadOnly,
    /// Reads up to the damage.
    Damaged(Damage),
    /// Reads only, after an I/O error.
    Failed(Arc<str>),
    /// No operations.
    Closed,
}

impl Status {
    /// Returns the reason why writes are not allowed.
    pub(crate) fn check_writable(&self) -> Result<(), StorageError> {
        match self {
            Status::Open => Ok(()),
            Status::ReadOnly => Err(StorageError::ReadOnly),
            Status::Damaged(damage) => Err(StorageError::Damaged(damage.clone())),
            Status::Failed(reason) => Err(StorageError::Failed { reason: reason.clone() }),
            Status::Closed => Err(StorageError::Closed),
        }
    }

    /// Returns the reason why reads are not allowed.
    pub(crate) fn check_readable(&self) -> Result<(), StorageError> {
        match self {
            Status::Closed => Err(StorageError::Closed),
            _ => Ok(()),
        }
    }
}

pub(crate) struct State {
    pub(crate) status: Status,
    pub(crate) config: Arc<LogConfig>,
    /// True if the directory exists.
    pub(crate) is_on_disk: bool,
    /// By base offset; the last one is active. Empty until the first append.
    pub(crate) segments: Vec<Segment>,
    /// The writer of the last segment, while it is in use.
    pub(crate) appender: Option<Appender>,
    /// The last segment's indexes; always set if `appender` is, and after a recovery that must not
    /// store them.
    pub(crate) indexes: Option<ActiveIndexes>,
    /// ≤ log end offset.
    pub(crate) log_start_offset: i64,
    pub(crate) log_end_offset: i64,
    /// ≤ log end offset, except in a damaged log.
    pub(crate) recovery_point: RecoveryPoint,
    pub(crate) epochs: EpochCache,
    /// True if `leader-epoch-checkpoint` could not be updated to `epochs`, for lack of space.
    pub(crate) are_epochs_unstored: bool,
    /// The counts in `transaction-index-checkpoint`, by the base offset of the segment.
    pub(crate) aborted_counts: BTreeMap<i64, usize>,
    pub(crate) producers: ProducerStateManager,
    /// A copy of the facts in `producers` that must be available while this state is locked.
    pub(crate) transactions: Arc<Transactions>,
    /// The high watermark that `producers` uses.
    pub(crate) high_watermark: i64,
    /// Offset of the newest producer snapshot on disk; 0 without one.
    pub(crate) snapshot_offset: i64,
    /// Small files and directories that were changed since the last sync.
    pub(crate) unsynced: Unsynced,
    pub(crate) unsynced_records: i64,
    pub(crate) unsynced_since_ms: Option<i64>,
    /// Renamed files, and when (ms) they may be removed.
    pub(crate) deleted: Vec<(i64, PathBuf)>,
    /// State of the generator for `segment.jitter.ms`.
    pub(crate) jitter: u64,
}

impl State {
    /// Returns the reason why writes are not allowed.
    pub(crate) fn check_writable(&self) -> Result<(), StorageError> {
        self.status.check_writable()
    }

    /// Sets the high watermark: transactions that ended below it are stable.
    pub(crate) fn take_high_watermark(&mut self, high_watermark: i64) {
        if self.high_watermark != high_watermark {
            self.high_watermark = high_watermark;
            self.producers.on_high_watermark_updated(high_watermark);
        }
    }

    /// Handles the error of an operation: every error except a lack of resources closes this log
    /// for writing.
    pub(crate) fn fail<T>(&mut self, result: Result<T, StorageError>) -> Result<T, StorageError> {
        if let Err(error @ (StorageError::Io { .. } | StorageError::Malformed { .. })) = &result {
            self.status = Status::Failed(error.to_string().into());
        }
        result
    }

    /// First offset of the oldest transaction that is open, or whose marker is above the high
    /// watermark.
    pub(crate) fn first_unstable_offset(&self) -> Option<i64> {
        self.producers.first_unstable_offset().map(|offset| offset.max(self.log_start_offset))
    }

    /// Adds an epoch and stores all epochs, if the epoch is new or an earlier attempt failed.
    pub(crate) fn assign_epoch(
        &mut self,
        shared: &Shared,
        epoch: Option<LeaderEpoch>,
        start_offset: i64,
    ) -> Result<(), StorageError> {
        let is_news = epoch.is_some_and(|epoch| self.epochs.assign(epoch, start_offset));
        if is_news || self.are_epochs_unstored { self.store_epochs(shared) } else { Ok(()) }
    }

    /// Writes `leader-epoch-checkpoint` if the directory exists; the next sync makes it durable.
    pub(crate) fn store_epochs(&mut self, shared: &Shared) -> Result<(), StorageError> {
        if !self.is_on_disk {
            return Ok(());
        }
        let path = shared.dir.join(checkpoint::LEADER_EPOCH_FILE);
        let bytes = checkpoint::write_epochs(self.epochs.entries());
        let result = self.replace_file(shared, path, &bytes);
        self.are_epochs_unstored = result.is_err();
        self.fail(result)
    }

    /// Writes `transaction-index-checkpoint` if it differs from the segments; the next sync makes
    /// it durable.
    ///
    /// A segment without aborted transactions has no index file, so only this checkpoint shows the
    /// loss of one.
    pub(crate) fn store_aborted_counts(&mut self, shared: &Shared) -> Result<(), StorageError> {
        let counts = self.segments.iter().map(|segment| &segment.files);
        let counts = counts.map(|files| (files.base_offset(), files.aborted_count()));
        let counts: BTreeMap<_, _> = counts.filter(|(_, count)| *count > 0).collect();
        if counts == self.aborted_counts {
            return Ok(());
        }
        let path = shared.dir.join(checkpoint::TRANSACTION_INDEX_FILE);
        let bytes = checkpoint::write_transaction_indexes(&counts);
        let stored = self.replace_file(shared, path, &bytes);
        self.fail(stored)?;
        self.aborted_counts = counts;
        Ok(())
    }

    /// Lowers the counts of `transaction-index-checkpoint` durably to at most `have(base_offset)`,
    /// before an index gets fewer entries: one with fewer than its count is treated as damaged.
    pub(crate) fn lower_aborted_counts(
        &mut self,
        shared: &Shared,
        have: impl Fn(i64) -> usize,
    ) -> Result<(), StorageError> {
        let counts =
            self.aborted_counts.iter().map(|(base, count)| (*base, have(*base).min(*count)));
        let counts: BTreeMap<_, _> = counts.filter(|(_, count)| *count > 0).collect();
        if counts == self.aborted_counts {
            return Ok(());
        }
        let path = shared.dir.join(checkpoint::TRANSACTION_INDEX_FILE);
        let bytes = checkpoint::write_transaction_indexes(&counts);
        let written = shared.disk.write_atomically(&path, &bytes);
        written.map_err(|error| StorageError::io("write", &path, error))?;
        self.aborted_counts = counts;
        Ok(())
    }

    /// Writes a small file in a new directory: there is no old content to keep, and an open of the
    /// log rewrites an incomplete file. The next sync makes it durable.
    pub(crate) fn begin_file(
        &mut self,
        shared: &Shared,
        path: PathBuf,
        bytes: &[u8],
    ) -> Result<(), StorageError> {
        write_file(shared, &path, bytes)
            .map_err(|error| StorageError::io("write", &path, error))?;
        self.unsynced.add_file(path);
        self.unsynced.add_dir(shared.dir.to_path_buf());
        Ok(())
    }

    /// Replaces a small file; a crash of the process leaves the old or the new one. The next sync
    /// makes it durable.
    pub(crate) fn replace_file(
        &mut self,
        shared: &Shared,
        path: PathBuf,
        bytes: &[u8],
    ) -> Result<(), StorageError> {
        let replace = if self.config.syncs_every_append() {
            shared.disk.write_atomically(&path, bytes)
        } else {
            disk::replace(&*shared.disk, &path, |file| file.write_at(bytes, 0))
        };
        replace.map_err(|error| StorageError::io("write", &path, error))?;
        if !self.config.syncs_every_append() {
            self.unsynced.add_file(path);
            self.unsynced.add_dir(shared.dir.to_path_buf());
        }
        Ok(())
    }

    /// Writes the producer state at the log end, unless there is a snapshot for it.
    pub(crate) fn store_snapshot(&mut self, shared: &Shared) -> Result<(), StorageError> {
        self.store_snapshot_at(shared, self.log_end_offset)
    }

    /// Writes the producer state at `offset`, which is the log end or where the log continues after
    /// a gap.
    pub(crate) fn store_snapshot_at(
        &mut self,
        shared: &Shared,
        offset: i64,
    ) -> Result<(), StorageError> {
        if !self.is_on_disk || offset <= self.snapshot_offset {
            return Ok(());
        }
        let bytes = self.producers.snapshot_bytes();
        self.write_snapshot(shared, offset, &bytes)
    }

    /// Writes the producer state at `offset`; the next sync makes it durable.
    pub(crate) fn write_snapshot(
        &mut self,
        shared: &Shared,
        offset: i64,
        bytes: &[u8],
    ) -> Result<(), StorageError> {
        let path = shared.dir.join(file_name(offset, FileKind::Snapshot));
        let result = write_file(shared, &path, bytes)
            .map_err(|error| StorageError::io("write", &path, error));
        if result.is_err() {
            // An incomplete snapshot is useless. If it cannot be removed, it is rejected by its
            // checksum when it is read.
            let _ = shared.disk.remove_file(&path);
        }
        self.fail(result)?;
        self.snapshot_offset = offset;
        self.unsynced.add_file(path);
        self.unsynced.add_dir(shared.dir.to_path_buf());
        Ok(())
    }

    /// Index of the segment that contains `offset`, or of the first one.
    pub(crate) fn segment_of(&self, offset: i64) -> Option<usize> {
        segment_of(&self.segments, offset)
    }

    /// Drops all file handles.
    pub(crate) fn release(&mut self) {
        self.appender = None;
        for segment in &self.segments {
            segment.files.release();
        }
    }
}

fn write_file(shared: &Shared, path: &std::path::Path, bytes: &[u8]) -> std::io::Result<()> {
    let file = shared.disk.open(path, crate::disk::OpenMode::Create)?;
    file.set_len(0)?;
    file.write_at(bytes, 0)
}
