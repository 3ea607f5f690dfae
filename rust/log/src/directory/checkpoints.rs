//! When the checkpoints of a data directory are written, and what has to wait for them.
//!
//! - A recovery point is checkpointed after the data below it was synced: it is never ahead of the disk.
//! - A log start offset is checkpointed before `DeleteRecords` is acknowledged, and before retention renames a file: no
//!   crash brings deleted records back, and segments below the checkpoint are never missed.
//! - Where a log is truncated, the checkpoints give its records up first.
//!
//! So the log starts are written before the recovery points: a log whose first segments went is never compared with a
//! start that it had before.

use std::collections::BTreeMap;

use parking_lot::MutexGuard;

use super::checkpoint::{self, PartitionOffsets};
use super::library::partition_key;
use super::{DirectoryState, LogDirectory};
use crate::log::{Log, StorageError};

/// What the checkpoint files hold durably, by name, as far as this process has written them: a file that an earlier one
/// wrote may not have reached the disk.
#[derive(Default)]
pub(super) struct CheckpointFiles {
    durable: BTreeMap<&'static str, PartitionOffsets>,
}

/// Files that a change waits for.
const LOG_STARTS: &[&str] = &[checkpoint::LOG_START_OFFSET_FILE];
/// All of them, in the order in which they are written.
const ALL: &[&str] = &[
    checkpoint::LOG_START_OFFSET_FILE,
    checkpoint::RECOVERY_POINT_FILE,
    checkpoint::REPLICATION_OFFSET_FILE,
];

impl LogDirectory {
    /// Writes the checkpoints: recovery points and log start offsets of all open logs, and these high watermarks.
    pub fn checkpoint(&self, high_watermarks: &[(String, i32, i64)]) -> Result<(), StorageError> {
        let files = self.checkpoints.lock();
        self.state.lock().take_high_watermarks(high_watermarks);
        self.write_checkpoints(files, ALL)
    }

    /// Moves the log start of `log` up to `offset`, as [`Log::delete_before`] does; durable on return.
    ///
    /// # Errors
    /// As [`Log::delete_before`]. The checkpoint could not be written: readers see the new log start all the same, and the
    /// next checkpoint makes it durable.
    pub fn delete_before(&self, log: &Log, offset: i64) -> Result<i64, StorageError> {
        let log_start_offset = log.delete_before(offset)?;
        self.record_log_start(log)?;
        Ok(log_start_offset)
    }

    /// Removes segments as [`Log::expire_segments`] and [`Log::remove_expired`] do, and records the new log start between
    /// the two. Returns how many segments went.
    ///
    /// # Errors
    /// As those; the checkpoint could not be written. On a full disk the segments go all the same: that is what frees
    /// space.
    pub fn enforce_retention(&self, log: &Log, high_watermark: i64) -> Result<usize, StorageError> {
        if log.expire_segments(high_watermark)? {
            match self.record_log_start(log) {
                Err(error) if !error.is_refusal() => return Err(error),
                _ => {}
            }
        }
        log.remove_expired()
    }

    /// Gives up the records of `log` at and behind `offset`, as [`Log::truncate_to`] does.
    ///
    /// Before that the checkpoints give them up: a log that ends below what they tell is taken for damaged.
    pub fn truncate_log(&self, log: &Log, offset: i64) -> Result<(), StorageError> {
        let held = log.hold_recovery_point();
        let recovery_point = held.give_up(offset)?;
        if let Some(offset) = self.state.lock().high_watermarks.get_mut(&partition_key(log.dir())) {
            *offset = recovery_point.min(*offset);
        }
        self.checkpoint(&[])?;
        log.truncate_to(offset)
    }

    /// Makes the log start of `log` durable. Those who come while a file is written share the next one.
    fn record_log_start(&self, log: &Log) -> Result<(), StorageError> {
        let log_start_offset = log.log_start_offset();
        let files = self.checkpoints.lock();
        let durable = files.durable.get(checkpoint::LOG_START_OFFSET_FILE);
        let recorded = durable.and_then(|offsets| offsets.get(&partition_key(log.dir())));
        if recorded.is_some_and(|recorded| *recorded >= log_start_offset) {
            return Ok(());
        }
        self.write_checkpoints(files, LOG_STARTS)
    }

    /// Writes those of the files that differ from what is durable.
    fn write_checkpoints(
        &self,
        mut files: MutexGuard<'_, CheckpointFiles>,
        names: &[&'static str],
    ) -> Result<(), StorageError> {
        // Not locked while the disk works: logs are opened meanwhile.
        let (offsets, stale) = {
            let mut state = self.state.lock();
            state.take_offsets();
            let offsets: Vec<_> = names.iter().map(|name| (*name, state.offsets(name))).collect();
            (offsets, state.stale.clone())
        };
        for (name, offsets) in offsets {
            if files.durable.get(name) == Some(&offsets) {
                continue;
            }
            files.durable.remove(name);
            let path = self.dir.join(name);
            self.disk
                .write_atomically(&path, &checkpoint::write_offsets(&offsets))
                .map_err(|error| StorageError::io("write", &path, error))?;
            files.durable.insert(name, offsets);
        }
        if names.len() == ALL.len() {
            self.state.lock().stale.retain(|key| !stale.contains(key));
        }
        Ok(())
    }
}

impl DirectoryState {
    fn offsets(&self, name: &str) -> PartitionOffsets {
        match name {
            checkpoint::LOG_START_OFFSET_FILE => self.log_start_offsets.clone(),
            checkpoint::RECOVERY_POINT_FILE => self.recovery_points.clone(),
            _ => self.high_watermarks.clone(),
        }
    }

    fn take_high_watermarks(&mut self, high_watermarks: &[(String, i32, i64)]) {
        for (topic, partition, offset) in high_watermarks {
            let key = (topic.clone(), *partition);
            if self.logs.get(&key).is_none_or(|log| log.damage().is_none()) {
                self.high_watermarks.insert(key, *offset);
            }
        }
    }

    /// Takes the offsets of the open logs; one that is not on disk needs no lines. The lines of a damaged log stay, so
    /// that the next open finds the damage too.
    fn take_offsets(&mut self) {
        for (key, log) in &self.logs {
            let offsets = log.offsets();
            if log.damage().is_some() {
                self.recovery_points.insert(key.clone(), offsets.recovery_point);
                continue;
            }
            let first_base = log.segments().first().map(|(base_offset, _)| *base_offset);
            if first_base.is_some() {
                self.recovery_points.insert(key.clone(), offsets.recovery_point);
            }
            if offsets.log_start_offset > first_base.unwrap_or(0) {
                self.log_start_offsets.insert(key.clone(), offsets.log_start_offset);
            } else {
                self.log_start_offsets.remove(key);
            }
        }
    }
}
