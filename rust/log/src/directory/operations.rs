//! When the checkpoints of a data directory are written, and which changes wait for them.
//!
//! - A recovery point is checkpointed after the data below it was synced: it is never ahead of the
//!   disk.
//! - A log start offset is checkpointed before `DeleteRecords` is acknowledged, and before
//!   retention renames a file. So deleted records do not reappear after a crash, and segments below
//!   the checkpoint are never reported as lost.
//! - When a log is truncated, its checkpoints are lowered first. When damaged records are cut, they
//!   are lowered afterwards.
//! - The cleaner offset is checkpointed after the compacted segments replaced the old ones. If the
//!   process dies in between, the compaction is repeated.
//!
//! The log start offsets are written before the recovery points. So a log whose first segments were
//! removed is never compared with its previous log start offset. The topic ids are written last, so
//! that a removed row is never that of a new topic. An added row without one gets that of the
//! directory.

use std::sync::Arc;

use pykafka_forks::MutexGuard;

use super::checkpoints::{CheckpointFiles, LOG_BOUNDS, has_log_start};
use super::{DirectoryState, LogDirectory};
use crate::checkpoint::{self, PartitionOffsets};
use crate::directory_names::{PartitionKey, partition_key};
use crate::error::{OpenError, StorageError};
use crate::log::Log;
use crate::log::compaction::{CompactionOptions, CompactionReport, Dirtiness};
use crate::log::truncate::Remains;
use crate::log::types::{LogOffsets, OnDamage, Recovery};

/// The files that a new log start offset must reach.
const LOG_STARTS: &[&str] = &[checkpoint::LOG_START_OFFSET_FILE];
/// The files that a compaction changes.
const CLEANED: &[&str] = &[checkpoint::CLEANER_OFFSET_FILE];
/// All files, in the order in which they are written.
const ALL: &[&str] = &[
    checkpoint::LOG_START_OFFSET_FILE,
    checkpoint::CLEANER_OFFSET_FILE,
    checkpoint::RECOVERY_POINT_FILE,
    checkpoint::REPLICATION_OFFSET_FILE,
    checkpoint::UNREADABLE_SEGMENT_FILE,
    checkpoint::TOPIC_ID_FILE,
];
/// Files that are only created once they have an entry.
const RARE: &[&str] = &[
    checkpoint::CLEANER_OFFSET_FILE,
    checkpoint::UNREADABLE_SEGMENT_FILE,
    checkpoint::TOPIC_ID_FILE,
];

impl LogDirectory {
    /// Writes all checkpoints: recovery points and log start offsets of all open logs, and these
    /// high watermarks.
    pub fn checkpoint(&self, high_watermarks: &[(String, i32, i64)]) -> Result<(), StorageError> {
        let files = self.checkpoints.lock();
        self.state.lock().take_high_watermarks(high_watermarks);
        self.write_checkpoints(files, ALL)
    }

    /// Writes the log start offsets and recovery points of open logs, so that the loss of a segment
    /// between them is detected.
    pub fn checkpoint_bounds(&self) -> Result<(), StorageError> {
        self.write_checkpoints(self.checkpoints.lock(), LOG_BOUNDS)
    }

    /// Raises the log start offset of `log` to `offset`, as [`Log::delete_before`] does; durable on
    /// return.
    ///
    /// # Errors
    /// Those of [`Log::delete_before`] and [`LogDirectory::record_log_starts`].
    pub fn delete_before(&self, log: &Log, offset: i64) -> Result<i64, StorageError> {
        let log_start_offset = log.delete_before(offset)?;
        self.record_log_starts([log])?;
        Ok(log_start_offset)
    }

    /// Removes segments, as [`Log::expire_segments`] and [`Log::remove_expired`] do, and
    /// checkpoints the new log start offset between the two steps. Returns the number of removed
    /// segments.
    ///
    /// # Errors
    /// Those of the two methods; the checkpoint could not be written. If the disk is full, the
    /// segments are removed without the checkpoint, to free space.
    pub fn enforce_retention(&self, log: &Log, high_watermark: i64) -> Result<usize, StorageError> {
        let Some(expired) = log.expire_segments(high_watermark)? else { return Ok(0) };
        match self.record_log_starts([log]) {
            Err(error) if !error.is_refusal() => Err(error),
            _ => log.remove_expired(expired),
        }
    }

    /// Removes the records of `log` from `offset` on, as [`Log::truncate_to`] does.
    ///
    /// Lowers the checkpoints first, because a log that ends below its checkpoints is treated as
    /// damaged.
    pub fn truncate_log(&self, log: &Log, offset: i64) -> Result<(), StorageError> {
        let held = log.hold_recovery_point();
        let remains = held.give_up(offset)?;
        self.lower_checkpoints(log, remains)?;
        log.truncate_to(offset)?;
        let log_end_offset = log.log_end_offset();
        if log_end_offset < remains.log_end_offset {
            // A compaction that ended in between left a gap before `offset`.
            self.lower_checkpoints(log, Remains { log_end_offset, ..remains })?;
        }
        Ok(())
    }

    /// Removes all records of `log`, which then starts at `offset`, as
    /// [`Log::truncate_fully_and_start_at`] does; durable on return.
    ///
    /// Lowers the checkpoints first, as [`LogDirectory::truncate_log`] does.
    pub fn restart_log(&self, log: &Log, offset: i64) -> Result<(), StorageError> {
        {
            // Lowered to 0, because a kill may leave a log without segments and without a recorded
            // start, which ends at 0.
            let held = log.hold_recovery_point();
            held.give_up_all()?;
            let remains = Remains { log_end_offset: 0, log_start_offset: offset };
            self.lower_checkpoints(log, remains)?;
            log.truncate_fully_and_start_at(offset)?;
        }
        self.lower_cleaner_offset(log, offset);
        self.record_log_starts([log])
    }

    /// Checks every batch of `log` after contradictory evidence. Returns the log that replaces it:
    /// an equal one, or one that is damaged and refuses writes. The next open finds that damage
    /// too.
    ///
    /// # Errors
    /// Those of [`Log::close`] and [`Log::open`]. `log` is closed in any case.
    pub fn look_again(
        &self,
        log: &Log,
        topic_id: [u8; 16],
    ) -> Result<(Arc<Log>, Recovery), OpenError> {
        log.close()?;
        // So that lost records that were synced are detected.
        self.checkpoint(&[])?;
        let key = partition_key(log.dir());
        let options = self.options(log.dir().to_owned(), &key, Some(topic_id), log.config())?;
        let (found, recovery) = Log::reopen(options, OnDamage::Keep)?;
        let found = Arc::new(found);
        self.forget_unreadable(&key);
        self.state.lock().logs.insert(key, found.clone());
        self.checkpoint(&[])?;
        Ok((found, recovery))
    }

    /// Cuts `log` at the first unreadable record. Returns the log that replaces it, which accepts
    /// writes again. If the beginning of the log is missing, the new log is empty and keeps the old
    /// log start offset.
    ///
    /// Reads every batch: a disk that has lost some may have lost others. The checkpoints are
    /// lowered after the cut; if the process dies in between, the next open finds that the end of
    /// the log is missing.
    ///
    /// # Errors
    /// Those of [`Log::open`]. `log` is closed in any case.
    pub fn give_up_damage(
        &self,
        log: &Log,
        topic_id: [u8; 16],
    ) -> Result<(Arc<Log>, Recovery), OpenError> {
        let key = partition_key(log.dir());
        log.discard();
        let options = self.options(log.dir().to_owned(), &key, Some(topic_id), log.config())?;
        let begins_at = options.checkpointed.log_start_offset.unwrap_or(0);
        let (left, recovery) = Log::reopen(options, OnDamage::Cut)?;
        if left.log_start_offset() > begins_at {
            left.truncate_fully_and_start_at(begins_at)?;
        }
        let (end, left) = (left.log_end_offset(), Arc::new(left));
        self.forget_unreadable(&key);
        {
            let mut state = self.state.lock();
            state.logs.insert(key.clone(), left.clone());
            for offsets in state.offsets.promised_mut() {
                lower(offsets, &key, end);
            }
        }
        self.checkpoint(&[])?;
        Ok((left, recovery))
    }

    /// Lowers the checkpoints of `log` to the bounds that a truncation leaves.
    fn lower_checkpoints(&self, log: &Log, remains: Remains) -> Result<(), StorageError> {
        let key = partition_key(log.dir());
        {
            let offsets = &mut self.state.lock().offsets;
            // Also the recovery point, which an emptied log keeps from the time before.
            for offsets in offsets.promised_mut() {
                lower(offsets, &key, remains.log_end_offset);
            }
        }
        self.checkpoint(&[])?;
        // Afterwards, because a synced record between the log start offset and the first segment
        // counts as lost.
        lower(&mut self.state.lock().offsets.log_starts, &key, remains.log_start_offset);
        self.write_checkpoints(self.checkpoints.lock(), LOG_STARTS)
    }

    fn lower_cleaner_offset(&self, log: &Log, offset: i64) {
        let offsets = &mut self.state.lock().offsets;
        lower(&mut offsets.cleaner_offsets, &partition_key(log.dir()), offset);
    }

    /// Compacts `log` from its cleaner offset on, as [`Log::compact`] does, and checkpoints the new
    /// cleaner offset. Ignores the `clean_offset` of `options`.
    ///
    /// # Errors
    /// Those of [`Log::compact`]; the checkpoint could not be written.
    pub fn compact(
        &self,
        log: &Log,
        options: &CompactionOptions,
        now_ms: i64,
    ) -> Result<CompactionReport, StorageError> {
        let options = CompactionOptions { clean_offset: self.clean_offset(log), ..options.clone() };
        let report = log.compact(&options, now_ms)?;
        if report.clean_offset == options.clean_offset {
            return Ok(report);
        }
        {
            let offsets = &mut self.state.lock().offsets;
            if log.is_current(&report) {
                offsets.cleaner_offsets.insert(partition_key(log.dir()), report.clean_offset);
            }
        }
        self.write_checkpoints(self.checkpoints.lock(), CLEANED)?;
        Ok(report)
    }

    /// Returns how much [`LogDirectory::compact`] would clean.
    ///
    /// # Errors
    /// Those of [`Log::dirtiness`].
    pub fn dirtiness(
        &self,
        log: &Log,
        high_watermark: i64,
        now_ms: i64,
    ) -> Result<Dirtiness, StorageError> {
        log.dirtiness(self.clean_offset(log), high_watermark, now_ms)
    }

    fn clean_offset(&self, log: &Log) -> i64 {
        self.state.lock().offsets.of(&partition_key(log.dir())).cleaner_offset
    }

    /// Makes the log start offsets of `logs` durable, by one write, or without one if they are
    /// durable already.
    ///
    /// Data below a log start offset is synced first, because a log that ends below its
    /// checkpointed start is damaged.
    ///
    /// # Errors
    /// A log could not be synced, or the checkpoint could not be written. Readers use the new log
    /// start offsets anyway, and the next checkpoint makes them durable.
    pub fn record_log_starts<'a>(
        &self,
        logs: impl IntoIterator<Item = &'a Log>,
    ) -> Result<(), StorageError> {
        let logs: Vec<_> = logs.into_iter().collect();
        for log in &logs {
            let LogOffsets { log_start_offset, recovery_point, .. } = log.offsets();
            if recovery_point < log_start_offset {
                log.flush()?;
            }
        }
        let files = self.checkpoints.lock();
        if logs.into_iter().all(|log| files.tell_log_start_of(log)) {
            return Ok(());
        }
        self.write_checkpoints(files, LOG_STARTS)
    }

    /// Writes the given files if their content differs from the durable content.
    fn write_checkpoints(
        &self,
        mut files: MutexGuard<'_, CheckpointFiles>,
        names: &[&'static str],
    ) -> Result<(), StorageError> {
        // The state is not locked while the disk works, so that logs can be opened concurrently.
        let (offsets, stale) = {
            let mut state = self.state.lock();
            state.take_offsets();
            let offsets: Vec<_> =
                names.iter().map(|name| (*name, state.offsets.offsets(name).clone())).collect();
            (offsets, state.offsets.stale.clone())
        };
        for (name, offsets) in offsets {
            let durable = files.durable.get(name);
            let is_absent =
                durable.is_none() && offsets.is_empty() && !self.disk.exists(&self.dir.join(name));
            if durable == Some(&offsets) || (RARE.contains(&name) && is_absent) {
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
            self.state.lock().offsets.stale.retain(|key| !stale.contains(key));
        }
        Ok(())
    }
}

impl DirectoryState {
    fn take_high_watermarks(&mut self, high_watermarks: &[(String, i32, i64)]) {
        for (topic, partition, offset) in high_watermarks {
            let key = (topic.clone(), *partition);
            if self.logs.get(&key).is_none_or(|log| log.damage().is_none()) {
                self.offsets.high_watermarks.insert(key, *offset);
            }
        }
    }

    /// Stores the offsets of the open logs; a log without segments has no recovery point. The
    /// entries of a damaged log are kept, so that the next open finds the damage too. A new log
    /// start offset is not stored before the records below it were synced.
    fn take_offsets(&mut self) {
        for (key, log) in &self.logs {
            let offsets = log.offsets();
            let is_damaged = log.damage().is_some();
            if is_damaged || log.segments_count() > 0 {
                self.offsets.recovery_points.insert(key.clone(), offsets.recovery_point);
                if let Some(topic_id) = log.topic_id() {
                    self.offsets.note_topic_id(key, topic_id);
                }
            }
            if is_damaged {
                continue;
            }
            // After a crash the log may end below it.
            lower(&mut self.offsets.high_watermarks, key, offsets.log_end_offset);
            if has_log_start(key) && (log.segments_count() > 0 || offsets.log_start_offset > 0) {
                let stored = self.offsets.log_starts.entry(key.clone()).or_default();
                *stored = offsets.log_start_offset.min(offsets.recovery_point.max(*stored));
            } else {
                self.offsets.log_starts.remove(key);
            }
        }
    }
}

/// Lowers the checkpointed offset of a log to `offset` if it is higher.
pub(super) fn lower(offsets: &mut PartitionOffsets, key: &PartitionKey, offset: i64) {
    if let Some(stored) = offsets.get_mut(key) {
        *stored = offset.min(*stored);
    }
}
