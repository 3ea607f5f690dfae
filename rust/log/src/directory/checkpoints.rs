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
//! removed is never compared with its previous log start offset.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use pykafka_forks::MutexGuard;

use super::{DirectoryState, LogDirectory};
use crate::checkpoint::{self, CheckpointError, PartitionOffsets};
use crate::directory_names::{self, PartitionKey, partition_key};
use crate::disk::{DirEntry, Disk};
use crate::error::{OpenError, StorageError};
use crate::log::sync::Round;
use crate::log::{
    Checkpointed, CompactionOptions, CompactionReport, Dirtiness, Log, LogOffsets, OnDamage,
    Recovery,
};

/// Contents of the checkpoint files of a data directory.
#[derive(Default)]
pub(crate) struct Checkpoints {
    pub(crate) recovery_points: PartitionOffsets,
    pub(super) log_starts: PartitionOffsets,
    pub(super) high_watermarks: PartitionOffsets,
    cleaner_offsets: PartitionOffsets,
    /// Base offsets of segments; see [`LogDirectory::note_unreadable`].
    pub(super) unreadable_segments: PartitionOffsets,
    /// True if the recovery points could be read; otherwise everything on disk may have been
    /// synced.
    pub(super) knows_recovery_points: bool,
    /// True if the files are in the directory of one log, opened by a library, and not in a data
    /// directory.
    pub(super) is_of_one_log: bool,
    /// Deleted partitions that the files may still contain.
    stale: BTreeSet<PartitionKey>,
    /// Files that could not be read, with the consequences.
    warnings: Vec<String>,
}

impl Checkpoints {
    /// Reads the files in `dir`; a missing file has no entries. Entries of deleted partitions are
    /// dropped.
    ///
    /// # Errors
    /// The log start offsets are unreadable: without them deleted records would reappear. `dir`
    /// cannot be listed.
    pub(crate) fn read(disk: &dyn Disk, dir: &Path) -> Result<Checkpoints, OpenError> {
        let begun = FilesBegun::of(disk, dir);
        let mut warnings = Vec::new();
        let mut read_or_warn = |name, what_follows| match read_offsets(disk, dir, name, begun) {
            Ok(offsets) => Some(offsets),
            Err(error) => {
                warnings.push(format!("{error}; {what_follows}"));
                None
            }
        };
        let recovery_points = read_or_warn(
            checkpoint::RECOVERY_POINT_FILE,
            "after a crash every log is read from its beginning, damage in it is kept, and a lost end is not noticed",
        );
        let high_watermarks = read_or_warn(
            checkpoint::REPLICATION_OFFSET_FILE,
            "high watermarks are recovered from the logs",
        );
        let cleaner_offsets = read_or_warn(
            checkpoint::CLEANER_OFFSET_FILE,
            "a gap that compaction left below a recovery point is taken for damage unless the topic is still compacted",
        );
        let unreadable_segments = read_or_warn(
            checkpoint::UNREADABLE_SEGMENT_FILE,
            "a batch that cannot be read is reported once a read meets it again",
        );
        let mut checkpoints = Checkpoints {
            knows_recovery_points: recovery_points.is_some(),
            recovery_points: recovery_points.unwrap_or_default(),
            log_starts: read_offsets(disk, dir, checkpoint::LOG_START_OFFSET_FILE, begun)
                .map_err(with_remedy)?,
            high_watermarks: high_watermarks.unwrap_or_default(),
            cleaner_offsets: cleaner_offsets.unwrap_or_default(),
            unreadable_segments: unreadable_segments.unwrap_or_default(),
            is_of_one_log: false,
            stale: BTreeSet::new(),
            warnings,
        };
        // A clean stop writes the checkpoints after the last deletion.
        if !disk.exists(&dir.join(checkpoint::CLEAN_SHUTDOWN_FILE)) {
            match disk.list(dir) {
                Ok(entries) => {
                    checkpoints.warn_of_new(begun, &entries);
                    checkpoints.forget_deleted(&entries);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(StorageError::io("list", dir, error).into()),
            }
        }
        Ok(checkpoints)
    }

    /// Adds a warning for logs whose start offsets were never checkpointed, as Apache Kafka leaves
    /// them in its first half minute. A directory whose checkpoints were all emptied looks the
    /// same.
    fn warn_of_new(&mut self, begun: FilesBegun, entries: &[DirEntry]) {
        let has = |is_wanted: &dyn Fn(&str) -> bool| {
            entries.iter().filter_map(|entry| entry.name.to_str()).any(is_wanted)
        };
        let is_log = |name: &str| {
            directory_names::parse_partition_dir(name)
                .is_some_and(|(topic, _)| topic != checkpoint::METADATA_TOPIC)
        };
        let file = checkpoint::LOG_START_OFFSET_FILE;
        if begun == FilesBegun::No && has(&|name| name == file) && has(&is_log) {
            self.warnings.push(format!("{file} is empty: each log begins with its first segment"));
        }
    }

    /// Drops the entries of logs that an earlier run deleted if it ended before it wrote the
    /// checkpoints. If a directory of the same name exists, it belongs to a later log and was
    /// created after the checkpoints were written, so its entries are kept.
    fn forget_deleted(&mut self, entries: &[DirEntry]) {
        let names: BTreeSet<_> = entries.iter().filter_map(|entry| entry.name.to_str()).collect();
        let stems: BTreeSet<_> =
            names.iter().filter_map(|name| directory_names::deleted_stem(name)).collect();
        if stems.is_empty() {
            return;
        }
        let is_deleted = |key: &&PartitionKey| {
            stems.contains(&*directory_names::deleted_stem_of(key))
                && !names.contains(&*directory_names::partition_dir(key))
        };
        let keys = self.all_mut().into_iter().flat_map(|offsets| offsets.keys());
        let deleted: BTreeSet<_> = keys.filter(is_deleted).cloned().collect();
        for key in &deleted {
            self.forget(key);
        }
    }

    /// Files that could not be read, with the consequences.
    pub(super) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// True if the files may still contain a deleted partition.
    pub(super) fn is_stale(&self, key: &PartitionKey) -> bool {
        self.stale.contains(key)
    }

    /// Reads the files in `container` for the log in `path`.
    pub(crate) fn read_for(
        disk: &dyn Disk,
        container: &Path,
        path: &Path,
    ) -> Result<Checkpoints, OpenError> {
        let mut checkpoints = Checkpoints::read(disk, container)?;
        checkpoints.bind(disk, container, path);
        Ok(checkpoints)
    }

    /// Checkpoints inside the directory of a log belong to that log alone, whatever name it had
    /// when it was opened before. So each file keeps one row, under the name in `path`.
    ///
    /// Earlier versions may have left several rows. The row of that name counts; without one, the
    /// row that neither brings deleted records back nor reports records as lost that never existed.
    pub(super) fn bind(&mut self, disk: &dyn Disk, container: &Path, path: &Path) {
        if container != path || disk.exists(&path.join(checkpoint::META_PROPERTIES_FILE)) {
            return;
        }
        let key = partition_key(path);
        self.is_of_one_log = true;
        // Other rows describe an earlier state: records that were synced since must not be cut.
        self.knows_recovery_points &=
            self.recovery_points.len() <= 1 || self.recovery_points.contains_key(&key);
        keep_row(&mut self.recovery_points, &key, Ord::min);
        keep_row(&mut self.high_watermarks, &key, Ord::min);
        keep_row(&mut self.log_starts, &key, Ord::max);
        keep_row(&mut self.cleaner_offsets, &key, Ord::max);
        keep_row(&mut self.unreadable_segments, &key, Ord::max);
    }

    /// Returns the entries of one log.
    pub(crate) fn of(&self, key: &(String, i32)) -> Checkpointed {
        let offset = |offsets: &PartitionOffsets| offsets.get(key).copied().unwrap_or(0);
        Checkpointed {
            recovery_point: offset(&self.recovery_points),
            high_watermark: offset(&self.high_watermarks),
            log_start_offset: self.log_starts.get(key).copied().filter(|_| has_log_start(key)),
            cleaner_offset: offset(&self.cleaner_offsets),
            // The close of a damaged log may have stored a recovery point of 0.
            is_copy: self.is_of_one_log
                && self.knows_recovery_points
                && offset(&self.recovery_points) == 0,
        }
    }

    /// Allows missing offsets below `gaps_below` between segments of a log.
    pub(crate) fn accept_gaps(&mut self, key: &(String, i32), gaps_below: Option<i64>) {
        if let Some(offset) = gaps_below {
            let accepted = self.cleaner_offsets.entry(key.clone()).or_default();
            *accepted = offset.max(*accepted);
        }
    }

    pub(super) fn forget(&mut self, key: &(String, i32)) {
        for offsets in self.all_mut() {
            offsets.remove(key);
        }
        self.stale.insert(key.clone());
    }

    pub(super) fn retain(&mut self, is_kept: impl Fn(&(String, i32)) -> bool) {
        for offsets in self.all_mut() {
            offsets.retain(|key, _| is_kept(key));
        }
    }

    fn all_mut(&mut self) -> [&mut PartitionOffsets; 5] {
        [
            &mut self.recovery_points,
            &mut self.log_starts,
            &mut self.high_watermarks,
            &mut self.cleaner_offsets,
            &mut self.unreadable_segments,
        ]
    }

    /// The entries that limit the end of a log.
    fn promised_mut(&mut self) -> [&mut PartitionOffsets; 3] {
        [&mut self.recovery_points, &mut self.high_watermarks, &mut self.cleaner_offsets]
    }

    pub(super) fn offsets(&self, name: &str) -> &PartitionOffsets {
        match name {
            checkpoint::LOG_START_OFFSET_FILE => &self.log_starts,
            checkpoint::RECOVERY_POINT_FILE => &self.recovery_points,
            checkpoint::CLEANER_OFFSET_FILE => &self.cleaner_offsets,
            checkpoint::UNREADABLE_SEGMENT_FILE => &self.unreadable_segments,
            _ => &self.high_watermarks,
        }
    }
}

/// Lowers the checkpointed offset of a log to `offset` if it is higher.
fn lower(offsets: &mut PartitionOffsets, key: &PartitionKey, offset: i64) {
    if let Some(stored) = offsets.get_mut(key) {
        *stored = offset.min(*stored);
    }
}

/// True if the log start offset of a log is checkpointed. As in Kafka, the metadata log starts with
/// its first segment: snapshots replace the records before it.
fn has_log_start((topic, _): &PartitionKey) -> bool {
    topic != checkpoint::METADATA_TOPIC
}

/// Keeps only the row of `key`. Without one, `safer` chooses a value from the other rows.
fn keep_row(offsets: &mut PartitionOffsets, key: &(String, i32), safer: fn(i64, i64) -> i64) {
    let own = offsets.get(key).copied();
    let row = own.or_else(|| offsets.values().copied().reduce(safer));
    *offsets = row.map(|offset| (key.clone(), offset)).into_iter().collect();
}

/// Adds advice to an error about unreadable log start offsets.
fn with_remedy(error: OpenError) -> OpenError {
    let OpenError::Malformed { path, reason } = error else { return error };
    let remedy = "restore or correct it, or remove it: each log begins with its first segment then, and deleted records \
                  that are still there come back";
    OpenError::Malformed { path, reason: format!("{reason}; {remedy}") }
}

/// Tells apart directories in which the bounds of logs were never checkpointed.
///
/// Apache Kafka creates empty files at its first start. It writes these two half a minute later,
/// the others only once they have a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FilesBegun {
    /// A data directory that was not stopped cleanly and in which both files are empty.
    No,
    Yes,
}

impl FilesBegun {
    fn of(disk: &dyn Disk, dir: &Path) -> FilesBegun {
        let exists = |name| disk.exists(&dir.join(name));
        let has_bytes = |name: &&str| disk.read(&dir.join(name)).is_ok_and(|it| !it.is_empty());
        let is_new = exists(checkpoint::META_PROPERTIES_FILE)
            && !exists(checkpoint::CLEAN_SHUTDOWN_FILE)
            && !LOG_BOUNDS.iter().any(has_bytes);
        if is_new { FilesBegun::No } else { FilesBegun::Yes }
    }

    /// True if the file `name` must have had content: an empty one has lost it.
    fn has_content(self, name: &str) -> bool {
        self == FilesBegun::Yes && LOG_BOUNDS.contains(&name)
    }
}

/// The offsets of a checkpoint; empty without a file.
fn read_offsets(
    disk: &dyn Disk,
    dir: &Path,
    name: &str,
    begun: FilesBegun,
) -> Result<PartitionOffsets, OpenError> {
    let path = dir.join(name);
    let malformed = |error: CheckpointError| OpenError::Malformed {
        path: dir.join(name),
        reason: error.to_string(),
    };
    match disk.read(&path) {
        Ok(bytes) if bytes.is_empty() && begun.has_content(name) => {
            Err(malformed(CheckpointError::Empty))
        }
        Ok(bytes) => checkpoint::read_offsets(&bytes).map_err(malformed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(PartitionOffsets::new()),
        Err(error) => Err(StorageError::io("read", &path, error).into()),
    }
}

/// The durable contents of the checkpoint files, by name, as far as this process has written them:
/// a file from an earlier process may not have reached the disk.
#[derive(Default)]
pub(super) struct CheckpointFiles {
    durable: BTreeMap<&'static str, PartitionOffsets>,
}

impl CheckpointFiles {
    /// True if the log start offset of `log` is durable. A log without an entry starts at 0.
    fn tell_log_start_of(&self, log: &Log) -> bool {
        let log_start_offset = log.log_start_offset();
        let durable = self.durable.get(checkpoint::LOG_START_OFFSET_FILE);
        let stored = durable.and_then(|offsets| offsets.get(&partition_key(log.dir())));
        log_start_offset == 0 || stored.is_some_and(|stored| *stored >= log_start_offset)
    }
}

/// The files that a new log start offset must reach.
const LOG_STARTS: &[&str] = &[checkpoint::LOG_START_OFFSET_FILE];
/// Files that reveal missing segments at the start or end of a log.
const LOG_BOUNDS: &[&str] = &[checkpoint::LOG_START_OFFSET_FILE, checkpoint::RECOVERY_POINT_FILE];
/// The files that a compaction changes.
const CLEANED: &[&str] = &[checkpoint::CLEANER_OFFSET_FILE];
/// All files, in the order in which they are written.
const ALL: &[&str] = &[
    checkpoint::LOG_START_OFFSET_FILE,
    checkpoint::CLEANER_OFFSET_FILE,
    checkpoint::RECOVERY_POINT_FILE,
    checkpoint::REPLICATION_OFFSET_FILE,
    checkpoint::UNREADABLE_SEGMENT_FILE,
];
/// Files that are only created once they have an entry.
const RARE: &[&str] = &[checkpoint::CLEANER_OFFSET_FILE, checkpoint::UNREADABLE_SEGMENT_FILE];

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
        let _held = self.give_up(log, offset)?;
        log.truncate_to(offset)?;
        // A compaction may have ended in between, and a gap that it left before `offset` makes the
        // log end earlier.
        self.lower_cleaner_offset(log, offset.min(log.log_end_offset()));
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
            let _held = self.give_up(log, 0)?;
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
        let options = self.options(log.dir().to_owned(), &key, Some(topic_id), log.config());
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
        let options = self.options(log.dir().to_owned(), &key, Some(topic_id), log.config());
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

    /// Lowers the checkpoints of `log` to at most `offset`. The recovery point stays there while
    /// the returned [`Round`] exists.
    fn give_up<'a>(&self, log: &'a Log, offset: i64) -> Result<Round<'a>, StorageError> {
        let held = log.hold_recovery_point();
        let recovery_point = held.give_up(offset)?;
        let key = partition_key(log.dir());
        {
            let offsets = &mut self.state.lock().offsets;
            lower(&mut offsets.high_watermarks, &key, recovery_point);
            lower(&mut offsets.cleaner_offsets, &key, offset);
        }
        self.checkpoint(&[])?;
        Ok(held)
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
            if log.damage().is_some() {
                self.offsets.recovery_points.insert(key.clone(), offsets.recovery_point);
                continue;
            }
            if log.segments_count() > 0 {
                self.offsets.recovery_points.insert(key.clone(), offsets.recovery_point);
            }
            if has_log_start(key) && (log.segments_count() > 0 || offsets.log_start_offset > 0) {
                let stored = self.offsets.log_starts.entry(key.clone()).or_default();
                *stored = offsets.log_start_offset.min(offsets.recovery_point.max(*stored));
            } else {
                self.offsets.log_starts.remove(key);
            }
        }
    }
}
