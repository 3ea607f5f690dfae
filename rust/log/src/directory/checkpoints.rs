//! The content of the checkpoint files of a data directory.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use crate::checkpoint::{self, CheckpointError, PartitionOffsets};
use crate::directory_names::{self, PartitionKey, partition_key};
use crate::disk::{DirEntry, Disk};
use crate::error::{OpenError, StorageError};
use crate::log::Log;
use crate::log::types::Checkpointed;

/// Contents of the checkpoint files of a data directory.
#[derive(Default)]
pub(crate) struct Checkpoints {
    pub(crate) recovery_points: PartitionOffsets,
    pub(super) log_starts: PartitionOffsets,
    pub(super) high_watermarks: PartitionOffsets,
    pub(super) cleaner_offsets: PartitionOffsets,
    /// Base offsets of segments; see [`LogDirectory::note_unreadable`].
    pub(super) unreadable_segments: PartitionOffsets,
    /// See [`super::topic_ids`].
    pub(super) topic_ids: PartitionOffsets,
    /// True if the recovery points could be read; otherwise everything on disk may have been
    /// synced.
    pub(super) knows_recovery_points: bool,
    /// True if the files are in the directory of one log, opened by a library, and not in a data
    /// directory.
    pub(super) is_of_one_log: bool,
    /// Deleted partitions that the files may still contain.
    pub(super) stale: BTreeSet<PartitionKey>,
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
            "a gap that compaction left below a recovery point counts as damage unless the topic is still compacted",
        );
        let unreadable_segments = read_or_warn(
            checkpoint::UNREADABLE_SEGMENT_FILE,
            "a batch that cannot be read is reported once a read meets it again",
        );
        let topic_ids = read_or_warn(
            checkpoint::TOPIC_ID_FILE,
            "the ids in the directories of the partitions are used",
        );
        let mut checkpoints = Checkpoints {
            knows_recovery_points: recovery_points.is_some(),
            recovery_points: recovery_points.unwrap_or_default(),
            log_starts: read_offsets(disk, dir, checkpoint::LOG_START_OFFSET_FILE, begun)
                .map_err(with_remedy)?,
            high_watermarks: high_watermarks.unwrap_or_default(),
            cleaner_offsets: cleaner_offsets.unwrap_or_default(),
            unreadable_segments: unreadable_segments.unwrap_or_default(),
            topic_ids: topic_ids.unwrap_or_default(),
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

    pub(super) fn all_mut(&mut self) -> [&mut PartitionOffsets; 6] {
        [
            &mut self.recovery_points,
            &mut self.log_starts,
            &mut self.high_watermarks,
            &mut self.cleaner_offsets,
            &mut self.unreadable_segments,
            &mut self.topic_ids,
        ]
    }

    /// The entries that limit the end of a log.
    pub(super) fn promised_mut(&mut self) -> [&mut PartitionOffsets; 3] {
        [&mut self.recovery_points, &mut self.high_watermarks, &mut self.cleaner_offsets]
    }

    pub(super) fn offsets(&self, name: &str) -> &PartitionOffsets {
        match name {
            checkpoint::LOG_START_OFFSET_FILE => &self.log_starts,
            checkpoint::RECOVERY_POINT_FILE => &self.recovery_points,
            checkpoint::CLEANER_OFFSET_FILE => &self.cleaner_offsets,
            checkpoint::UNREADABLE_SEGMENT_FILE => &self.unreadable_segments,
            checkpoint::TOPIC_ID_FILE => &self.topic_ids,
            _ => &self.high_watermarks,
        }
    }
}

/// True if the log start offset of a log is checkpointed. As in Kafka, the metadata log starts with
/// its first segment: snapshots replace the records before it.
pub(super) fn has_log_start((topic, _): &PartitionKey) -> bool {
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
    let remedy = "restore or correct it, or remove it: each log then begins with its first segment, and deleted records \
                  that are still stored become visible";
    OpenError::Malformed { path, reason: format!("{reason}; {remedy}") }
}

/// Files that reveal missing segments at the start or end of a log.
pub(super) const LOG_BOUNDS: &[&str] =
    &[checkpoint::LOG_START_OFFSET_FILE, checkpoint::RECOVERY_POINT_FILE];

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
        Ok(bytes) if name == checkpoint::TOPIC_ID_FILE => {
            checkpoint::read_topic_ids(&bytes).map_err(malformed)
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
    pub(super) durable: BTreeMap<&'static str, PartitionOffsets>,
}

impl CheckpointFiles {
    /// True if the log start offset of `log` is durable. A log without an entry starts at 0.
    pub(super) fn tell_log_start_of(&self, log: &Log) -> bool {
        let log_start_offset = log.log_start_offset();
        let durable = self.durable.get(checkpoint::LOG_START_OFFSET_FILE);
        let stored = durable.and_then(|offsets| offsets.get(&partition_key(log.dir())));
        log_start_offset == 0 || stored.is_some_and(|stored| *stored >= log_start_offset)
    }
}
