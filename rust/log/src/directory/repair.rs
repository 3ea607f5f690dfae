//! Repair of a directory that is not in use: shows the records that a log would lose, and cuts
//! them.
//!
//! A log with valid batches after a damaged one refuses writes until an administrator decides (see
//! [`Log::open`]). `pykafka-core repair` is that decision. The directory's lock is held from the
//! first look to the cut, so exactly the records that were shown are removed.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::checkpoint::{self, PartitionOffsets};
use crate::clock::Clock;
use crate::config::LogConfig;
use crate::directory::checkpoints::Checkpoints;
use crate::directory::library::{PRODUCER_ID_EXPIRATION_MS, container, resolve};
use crate::directory::lock::DirectoryLock;
use crate::directory_names::{parse_partition_dir, partition_dir, partition_key};
use crate::disk::{DirEntry, Disk, RealDisk};
use crate::error::{Damage, OpenError, StorageError};
use crate::file_names::{FileKind, parse_file_name};
use crate::log::Log;
use crate::log::recovery::input::RecoveryInput;
use crate::log::types::{Checkpointed, LogOptions, OnDamage};

/// The part of a log that will be removed: everything from a position in one segment on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The log end offset after the cut (exclusive).
    pub offset: i64,
    /// Base offset of the segment that is cut.
    pub segment: i64,
    /// Position of the cut in its `.log`.
    pub position: u64,
    /// Number of removed bytes in all segments, without the zeros at their ends; 0 if records are
    /// missing at the end.
    pub bytes: u64,
    /// Base offsets of the later segments, which are removed entirely.
    pub removed_segments: Vec<i64>,
    /// The log start offset after the repair, if the checkpointed one is above the log end offset.
    /// Then nothing is removed.
    pub log_start: Option<i64>,
    /// The end of a gap (exclusive), from which on the records may be kept.
    pub gap_end: Option<i64>,
    /// The damage, as a broker reports it; `None` for a torn tail, which opening the log cuts in
    /// any case.
    pub damage: Option<Damage>,
}

/// A partition's directory, or a data directory with several, locked for repair.
pub struct Repair {
    dir: PathBuf,
    /// The directory with the lock and the checkpoints: `dir` or its parent.
    container: PathBuf,
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    _lock: DirectoryLock,
}

impl Repair {
    /// Locks `dir`, or its data directory.
    ///
    /// # Errors
    /// The directory does not exist, or another process has it open ([`OpenError::Locked`]).
    pub fn open(dir: &Path, clock: Arc<dyn Clock>) -> Result<Repair, OpenError> {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let dir = &resolve(dir);
        let container = container(&*disk, dir);
        if container == *dir {
            disk.list(dir).map_err(|error| StorageError::io("list", dir, error))?;
        }
        let lock = DirectoryLock::acquire(&container).map_err(|error| OpenError::Locked {
            path: container.clone(),
            reason: error.to_string(),
        })?;
        Ok(Repair { dir: dir.to_owned(), container, disk, clock, _lock: lock })
    }

    /// The partition directories. If `dir` is a partition directory (it may be empty or missing if
    /// a checkpoint lists it): only `dir`. Otherwise its partition directories, by name, and
    /// missing ones that had synced records according to a checkpoint.
    pub fn partitions(&self) -> Result<Vec<PathBuf>, OpenError> {
        let checkpoints = Checkpoints::read(&*self.disk, &self.container)?;
        let entries = self.entries(&self.dir)?;
        // The log of a library contains its checkpoints, as a data directory does.
        let has_checkpoint = checkpoints.of(&partition_key(&self.dir)) != Checkpointed::default();
        let is_of_segment = |entry: &DirEntry| entry.name.to_str().and_then(parse_file_name);
        if entries.iter().any(|entry| is_of_segment(entry).is_some()) || has_checkpoint {
            return Ok(vec![self.dir.clone()]);
        }
        if self.container != self.dir {
            return Ok(Vec::new());
        }
        let names = entries.iter().filter(|entry| entry.is_dir).filter_map(|e| e.name.to_str());
        let there = names.filter(|name| parse_partition_dir(name).is_some()).map(ToOwned::to_owned);
        let synced = checkpoints.recovery_points.into_iter().filter(|(_, offset)| *offset > 0);
        let all: BTreeSet<_> = there.chain(synced.map(|(key, _)| partition_dir(&key))).collect();
        Ok(all.into_iter().map(|name| self.dir.join(name)).collect())
    }

    /// Reads every batch of a partition and returns the cut that it needs; `None` for an undamaged
    /// log. Changes nothing.
    ///
    /// `config` must state whether the topic is compacted: a compacted log may end with a gap and
    /// an empty segment.
    ///
    /// # Errors
    /// [`OpenError::NotRepairable`] for a log with a batch of an unknown format.
    pub fn look(
        &self,
        partition: &Path,
        config: &Arc<LogConfig>,
    ) -> Result<Option<Cut>, OpenError> {
        let options = self.options(partition, config)?;
        let recovered = Log::inspect_files(&options, RecoveryInput::of(&options).checking_all())?;
        let last = recovered.last_segment().map(|last| (last.base_offset, last.size));
        let found = recovered.verdict;
        if let Some(damage) = found.damage.as_ref().filter(|damage| !damage.may_be_cut()) {
            let (path, reason) = (partition.to_owned(), damage.to_string());
            return Err(OpenError::NotRepairable { path, reason });
        }
        let offset = match &found.damage {
            // The log starts after the damage, and everything that is left is kept.
            Some(Damage::Beginning { .. }) => Some(recovered.log_end_offset),
            damage => damage.as_ref().map(Damage::offset).or(found.truncated_at),
        };
        let Some(offset) = offset else { return Ok(None) };
        let (segment, position) = last.unwrap_or((offset, 0));
        Ok(Some(Cut {
            offset,
            segment,
            position,
            bytes: found.truncated_bytes + found.damaged_bytes,
            removed_segments: self.segments_behind(partition, segment)?,
            log_start: match &found.damage {
                Some(Damage::LogStart { .. }) => {
                    Some(recovered.segments.first().map_or(0, |first| first.base_offset))
                }
                _ => None,
            },
            gap_end: match &found.damage {
                Some(Damage::Gap { last_offset, .. }) => Some(last_offset + 1),
                _ => None,
            },
            damage: found.damage,
        }))
    }

    /// Cuts a partition as [`Self::look`] reported, rebuilds its derived files and syncs all of it.
    pub fn cut(&self, partition: &Path, config: &Arc<LogConfig>) -> Result<(), OpenError> {
        if let Some(Cut { offset, log_start: Some(start), .. }) = self.look(partition, config)? {
            // The records count, not the checkpoint.
            self.promise_no_more_than(offset, partition)?;
            let name = checkpoint::LOG_START_OFFSET_FILE;
            return self.change_checkpoint(name, partition, |_| start);
        }
        let recovery = Log::repair(self.options(partition, config)?)?;
        // If the beginning is missing, the log starts with the records that are left.
        let first_base = self.segments_behind(partition, -1)?.into_iter().min().unwrap_or(0);
        self.change_checkpoint(checkpoint::LOG_START_OFFSET_FILE, partition, |offset| {
            offset.max(first_base)
        })?;
        recovery.truncated_at.map_or(Ok(()), |end| self.promise_no_more_than(end, partition))
    }

    /// Lowers the checkpoints to the remaining log end offset.
    fn promise_no_more_than(&self, log_end_offset: i64, partition: &Path) -> Result<(), OpenError> {
        let names = [
            checkpoint::RECOVERY_POINT_FILE,
            checkpoint::REPLICATION_OFFSET_FILE,
            checkpoint::CLEANER_OFFSET_FILE,
        ];
        names.into_iter().try_for_each(|name| {
            self.change_checkpoint(name, partition, |offset| offset.min(log_end_offset))
        })
    }

    /// Keeps the records after a gap, because compaction removed the records or an administrator
    /// accepts their loss. Changes no record.
    ///
    /// The cleaner offset does not excuse the loss of records that an index contains. So the
    /// indexes of the missing records are removed first: otherwise the gap would still be damage.
    pub fn keep(&self, partition: &Path, config: &Arc<LogConfig>) -> Result<(), OpenError> {
        let Some(cut) = self.look(partition, config)? else { return Ok(()) };
        let Some(gap_end) = cut.gap_end else { return Ok(()) };
        self.remove_indexes(partition, |base_offset, kind| match kind {
            FileKind::Log | FileKind::Snapshot => false,
            // The indexes of the segment that ends at the gap are rebuilt from its batches.
            _ => base_offset == cut.segment || (cut.offset..gap_end).contains(&base_offset),
        })?;
        let name = checkpoint::CLEANER_OFFSET_FILE;
        let mut offsets = self.checkpoints(partition)?.offsets(name).clone();
        // Later gaps may have been accepted before.
        let accepted = offsets.entry(partition_key(partition)).or_default();
        *accepted = gap_end.max(*accepted);
        self.write_checkpoint(name, &offsets)
    }

    /// Removes index files of a partition; durable on return.
    fn remove_indexes(
        &self,
        partition: &Path,
        goes: impl Fn(i64, FileKind) -> bool,
    ) -> Result<(), StorageError> {
        for entry in self.entries(partition)? {
            let Some((base_offset, kind)) = entry.name.to_str().and_then(parse_file_name) else {
                continue;
            };
            if goes(base_offset, kind) {
                let path = partition.join(&entry.name);
                let removed = self.disk.remove_file(&path);
                removed.map_err(|error| StorageError::io("remove", &path, error))?;
            }
        }
        let synced = self.disk.sync_dir(partition);
        synced.map_err(|error| StorageError::io("sync", partition, error))
    }

    fn options(&self, partition: &Path, config: &Arc<LogConfig>) -> Result<LogOptions, OpenError> {
        Ok(LogOptions {
            dir: partition.to_owned(),
            config: config.clone(),
            disk: self.disk.clone(),
            clock: self.clock.clone(),
            checkpointed: self.checkpoints(partition)?.of(&partition_key(partition)),
            on_damage: OnDamage::Keep,
            clean: self.disk.exists(&self.container.join(checkpoint::CLEAN_SHUTDOWN_FILE)),
            identity: None,
            producer_id_expiration_ms: PRODUCER_ID_EXPIRATION_MS,
            read_only: false,
            jitter_seed: 0,
            buffers: Arc::default(),
        })
    }

    fn checkpoints(&self, partition: &Path) -> Result<Checkpoints, OpenError> {
        Checkpoints::read_for(&*self.disk, &self.container, partition)
    }

    fn segments_behind(&self, partition: &Path, segment: i64) -> Result<Vec<i64>, StorageError> {
        let entries = self.entries(partition)?;
        let files = entries.iter().filter(|entry| !entry.is_dir);
        let logs = files.filter(|entry| is_segment(entry.name.to_str()));
        let offsets = logs.filter_map(|entry| parse_file_name(entry.name.to_str()?));
        Ok(offsets.map(|(offset, _)| offset).filter(|offset| *offset > segment).collect())
    }

    /// The entries of a directory; empty if it does not exist.
    fn entries(&self, dir: &Path) -> Result<Vec<DirEntry>, StorageError> {
        match self.disk.list(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            entries => entries.map_err(|error| StorageError::io("list", dir, error)),
        }
    }

    /// Changes the row of a log in a checkpoint. Does nothing without a row or with an unreadable
    /// file.
    fn change_checkpoint(
        &self,
        name: &str,
        partition: &Path,
        change: impl Fn(i64) -> i64,
    ) -> Result<(), OpenError> {
        let mut offsets = self.checkpoints(partition)?.offsets(name).clone();
        match offsets.get_mut(&partition_key(partition)) {
            Some(offset) if *offset != change(*offset) => *offset = change(*offset),
            _ => return Ok(()),
        }
        self.write_checkpoint(name, &offsets)
    }

    fn write_checkpoint(&self, name: &str, offsets: &PartitionOffsets) -> Result<(), OpenError> {
        let path = self.container.join(name);
        let written = self.disk.write_atomically(&path, &checkpoint::write_offsets(offsets));
        Ok(written.map_err(|error| StorageError::io("write", &path, error))?)
    }
}

impl std::fmt::Debug for Repair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Repair").field("dir", &self.dir).finish_non_exhaustive()
    }
}

fn is_segment(name: Option<&str>) -> bool {
    name.and_then(parse_file_name).is_some_and(|(_, kind)| kind == FileKind::Log)
}
