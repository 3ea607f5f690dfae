//! A data directory: its logs, their checkpoints, and the marker of a clean stop.
//!
//! The checkpoints hold the facts that cannot be derived from a log's own files: up to which offset
//! it was synced, its log start offset and its high watermark. The lines of a log that is not open
//! are kept.

pub(crate) mod checkpoints;
pub(crate) mod library;
pub(crate) mod lock;
mod operations;
pub(crate) mod repair;
pub(crate) mod survey;
mod topic_ids;
mod unreadable;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use pykafka_forks::Mutex;

use self::checkpoints::{CheckpointFiles, Checkpoints};
use crate::buffer_pool::BufferPool;
use crate::checkpoint::{self, CleanShutdown, PartitionIdentity};
use crate::clock::Clock;
use crate::config::LogConfig;
use crate::directory::lock::DirectoryLock;
use crate::directory::survey::LogSurvey;
use crate::directory_names::{self, PartitionKey, parse_partition_dir, partition_key};
use crate::disk::{DirEntry, Disk};
use crate::error::{Damage, OpenError, StorageError};
use crate::log::Log;
use crate::log::compaction::Dirtiness;
use crate::log::recovery::input::RecoveryInput;
use crate::log::types::{LogOptions, OnDamage, Recovery};
use crate::syncer::SYNC_THREADS_MAX;

/// When the directory is closed, there is one more thread for this many logs.
const LOGS_PER_THREAD: usize = 8;

/// The dependencies and settings of a data directory.
#[derive(Debug)]
pub struct DirectoryOptions<'a> {
    /// The directory; created if it does not exist.
    pub dir: &'a Path,
    /// The disk that holds it.
    pub disk: Arc<dyn Disk>,
    /// The lock of `dir`, held until the directory is dropped; `None` for a disk that no other
    /// process can use.
    pub lock: Option<DirectoryLock>,
    /// `producer.id.expiration.ms` of all logs.
    pub producer_id_expiration_ms: i64,
    /// Seed of the random numbers for directory suffixes and segment jitter.
    pub random_seed: u64,
    /// Shared by all logs.
    pub buffers: Arc<BufferPool>,
}

/// A partition's directory on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionDir {
    /// Full path.
    pub path: PathBuf,
    /// The topic in its name.
    pub topic: String,
    /// Its index in the topic.
    pub partition: i32,
    /// The topic id in `partition.metadata`; `None` if the file is missing or unreadable.
    pub topic_id: Option<[u8; 16]>,
}

/// An open data directory. All methods may be called from any thread.
pub struct LogDirectory {
    dir: PathBuf,
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    buffers: Arc<BufferPool>,
    was_clean: bool,
    producer_id_expiration_ms: AtomicI64,
    broker_epoch: AtomicI64,
    random: AtomicU64,
    /// Locked before `state`, also while the disk works.
    checkpoints: Mutex<CheckpointFiles>,
    state: Mutex<DirectoryState>,
    _lock: Option<DirectoryLock>,
}

#[derive(Default)]
struct DirectoryState {
    logs: BTreeMap<(String, i32), Arc<Log>>,
    offsets: Checkpoints,
    /// Renamed directories, and when (ms) they may be removed.
    deleted: Vec<(i64, PathBuf)>,
    /// Partition directories that existed at the open; emptied by [`LogDirectory::mark_strays`].
    found: Vec<(String, i32)>,
}

impl LogDirectory {
    /// Opens a data directory: reads its checkpoints and removes the marker of a clean stop.
    ///
    /// # Errors
    /// The directory cannot be created or read, or its log start offsets are unreadable: without
    /// them deleted records would reappear.
    pub fn open(
        options: DirectoryOptions<'_>,
        clock: Arc<dyn Clock>,
    ) -> Result<LogDirectory, OpenError> {
        let (disk, dir) = (options.disk, options.dir);
        let error = |source| StorageError::io("open", dir, source);
        disk.create_dir_all(dir).map_err(error)?;
        let entries = disk.list(dir).map_err(error)?;
        let mut offsets = Checkpoints::read(&*disk, dir)?;
        offsets.adopt_topic_ids(&*disk, dir);
        let state = DirectoryState {
            logs: BTreeMap::new(),
            offsets,
            deleted: deleted_dirs(dir, &entries),
            found: partition_dirs(&entries),
        };
        let marker = take_clean_marker(&*disk, dir).map_err(error)?;
        Ok(LogDirectory {
            dir: dir.to_owned(),
            disk,
            clock,
            buffers: options.buffers,
            was_clean: marker.is_some(),
            producer_id_expiration_ms: AtomicI64::new(options.producer_id_expiration_ms),
            broker_epoch: AtomicI64::new(marker.map_or(-1, |marker| marker.broker_epoch)),
            random: AtomicU64::new(options.random_seed),
            checkpoints: Mutex::default(),
            state: Mutex::new(state),
            _lock: options.lock,
        })
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// The disk that holds the directory.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// One line for each checkpoint that could not be read at the open, with the consequences.
    pub fn warnings(&self) -> Vec<String> {
        self.state.lock().offsets.warnings().to_vec()
    }

    /// Whether the last stop was clean, so that no log needs recovery.
    pub fn was_clean(&self) -> bool {
        self.was_clean
    }

    /// Sets the epoch for the marker of a clean stop; by default that of the last marker.
    pub fn set_broker_epoch(&self, broker_epoch: i64) {
        self.broker_epoch.store(broker_epoch, Ordering::Relaxed);
    }

    /// `producer.id.expiration.ms` of logs that are opened later; [`Log::expire_producers`] sets it
    /// for an open log.
    pub fn producer_id_expiration_ms(&self) -> i64 {
        self.producer_id_expiration_ms.load(Ordering::Relaxed)
    }

    /// Changes [`Self::producer_id_expiration_ms`]; never waits.
    pub fn set_producer_id_expiration_ms(&self, expiration_ms: i64) {
        self.producer_id_expiration_ms.store(expiration_ms, Ordering::Relaxed);
    }

    /// The checkpointed high watermark of a partition.
    pub fn high_watermark(&self, topic: &str, partition: i32) -> Option<i64> {
        self.state.lock().offsets.high_watermarks.get(&(topic.to_owned(), partition)).copied()
    }

    /// The partition directories, by name, without those renamed for deletion or as strays.
    pub fn partitions(&self) -> Vec<PartitionDir> {
        let entries = self.disk.list(&self.dir).unwrap_or_default();
        let dirs = entries.into_iter().filter(|entry| entry.is_dir);
        dirs.filter_map(|entry| self.partition_dir(entry.name.to_str()?)).collect()
    }

    fn partition_dir(&self, name: &str) -> Option<PartitionDir> {
        let (topic, partition) = parse_partition_dir(name)?;
        let path = self.dir.join(name);
        let identity = checkpoint::identity_in(&*self.disk, &path).ok().flatten();
        let topic_id = identity.map(|identity| identity.topic_id);
        Some(PartitionDir { path, topic: topic.to_owned(), partition, topic_id })
    }

    /// The files of a log that is not open, and its checkpointed log start offset.
    ///
    /// `None` if there are no files, or after an unclean stop, when only recovery finds out.
    pub fn survey(&self, topic: &str, partition: i32) -> Option<(LogSurvey, i64)> {
        if !self.was_clean {
            return None;
        }
        let key = (topic.to_owned(), partition);
        let start = self.state.lock().offsets.log_starts.get(&key).copied().unwrap_or(0);
        let survey = LogSurvey::of(&*self.disk, &self.partition_path(topic, partition)).ok()??;
        Some((survey, start))
    }

    /// How much a compaction might clean of a log that is not open and has records; `None` after an
    /// unclean stop.
    pub fn survey_dirtiness(
        &self,
        topic: &str,
        partition: i32,
        config: &LogConfig,
    ) -> Option<Dirtiness> {
        if !self.was_clean {
            return None;
        }
        let checkpointed = self.state.lock().offsets.of(&(topic.to_owned(), partition));
        let dir = self.partition_path(topic, partition);
        survey::dirtiness(&*self.disk, &dir, &checkpointed, config).ok()
    }

    /// True if a directory of the partition exists.
    pub fn has_partition(&self, topic: &str, partition: i32) -> bool {
        self.disk.exists(&self.partition_path(topic, partition))
    }

    /// Opens a partition's log; nothing is written before its first append.
    ///
    /// # Errors
    /// Those of [`Log::open`]; [`OpenError::TopicIdMismatch`] if the directory belongs to an
    /// earlier topic of that name, [`OpenError::OtherPartition`] if it is a copy of another
    /// partition's directory.
    pub fn open_log(
        &self,
        topic: &str,
        partition: i32,
        topic_id: [u8; 16],
        config: Arc<LogConfig>,
    ) -> Result<(Arc<Log>, Recovery), OpenError> {
        let path = self.partition_path(topic, partition);
        self.open_at(path, (topic.to_owned(), partition), Some(topic_id), config)
    }

    /// Opens the log of a partition, or a log that is this directory itself, with any topic id.
    pub(crate) fn open_log_in(
        &self,
        path: &Path,
        config: Arc<LogConfig>,
    ) -> Result<(Arc<Log>, Recovery), OpenError> {
        self.state.lock().offsets.bind(&*self.disk, &self.dir, path);
        self.open_at(path.to_owned(), partition_key(path), None, config)
    }

    /// The damage that an open would find in a log that is not open. Changes nothing.
    ///
    /// # Errors
    /// Those of [`LogDirectory::open_log`].
    pub fn inspect(
        &self,
        topic: &str,
        partition: i32,
        topic_id: [u8; 16],
        config: Arc<LogConfig>,
    ) -> Result<Option<Damage>, OpenError> {
        let (dir, key) = (self.partition_path(topic, partition), (topic.to_owned(), partition));
        let mut options = self.options(dir, &key, Some(topic_id), config)?;
        if options.checkpointed.recovery_point == 0 && !self.disk.exists(&options.dir) {
            return Ok(None);
        }
        let mut found = Log::inspect_files(&options, RecoveryInput::of(&options));
        if matches!(found, Err(OpenError::TopicIdMismatch { .. })) {
            // An open looks again once the directory is a stray.
            options.dir = self.renamed(&key, directory_names::STRAY);
            found = Log::inspect_files(&options, RecoveryInput::of(&options));
        }
        Ok(found?.verdict.damage)
    }

    fn open_at(
        &self,
        dir: PathBuf,
        key: (String, i32),
        topic_id: Option<[u8; 16]>,
        config: Arc<LogConfig>,
    ) -> Result<(Arc<Log>, Recovery), OpenError> {
        if let Some(topic_id) = topic_id {
            self.forget_earlier_topic(&key, topic_id)?;
        }
        self.checkpoint_before_reuse(&dir, &key)?;
        let (log, recovery) = Log::open(self.options(dir, &key, topic_id, config)?)?;
        let log = Arc::new(log);
        let mut state = self.state.lock();
        state.offsets.accept_gaps(&key, recovery.gaps_below);
        state.logs.insert(key, log.clone());
        drop(state);
        Ok((log, recovery))
    }

    /// Writes the checkpoints without the rows of a deleted partition before a new partition gets
    /// its directory: from then on the rows of that name belong to the new partition.
    fn checkpoint_before_reuse(&self, dir: &Path, key: &(String, i32)) -> Result<(), StorageError> {
        let is_stale = self.state.lock().offsets.is_stale(key);
        if is_stale && !self.disk.exists(dir) { self.checkpoint(&[]) } else { Ok(()) }
    }

    fn options(
        &self,
        dir: PathBuf,
        key: &(String, i32),
        topic_id: Option<[u8; 16]>,
        config: Arc<LogConfig>,
    ) -> Result<LogOptions, OpenError> {
        let checkpointed = self.rows_of(key, topic_id)?;
        let may_cut = {
            let offsets = &self.state.lock().offsets;
            offsets.knows_recovery_points && !offsets.is_of_one_log
        };
        // With a sync for each append, appends are acknowledged before a checkpoint contains them.
        // A library never cuts valid batches, because its next append may have any durability.
        let on_damage = if config.syncs_every_append() || !may_cut {
            OnDamage::Keep
        } else {
            OnDamage::CutUnsynced
        };
        Ok(LogOptions {
            dir,
            config,
            disk: self.disk.clone(),
            clock: self.clock.clone(),
            checkpointed,
            on_damage,
            clean: self.was_clean,
            identity: topic_id
                .map(|topic_id| PartitionIdentity { topic_id, partition: Some(key.1) }),
            producer_id_expiration_ms: self.producer_id_expiration_ms.load(Ordering::Relaxed),
            read_only: false,
            jitter_seed: self.draw(),
            buffers: self.buffers.clone(),
        })
    }

    /// Closes a partition's log and renames its directory; [`Self::remove_deleted`] removes it
    /// later.
    ///
    /// The rename becomes durable with the next sync of the parent directory, for a checkpoint or a
    /// new partition. One sync for each of a thousand deleted topics would take seconds; after an
    /// earlier power cut the directories reappear, as strays.
    pub fn delete_log(&self, log: &Log) -> Result<(), StorageError> {
        let key = partition_key(log.dir());
        let delay_ms = log.config().file_delete_delay_ms;
        let to = self.renamed(&key, directory_names::DELETE);
        log.delete(&to)?;
        self.forget_and_remove(&key, delay_ms, to);
        Ok(())
    }

    /// Renames the directory of a partition that is not open, for removal. Does nothing without a
    /// directory.
    pub fn delete_partition(&self, topic: &str, partition: i32) -> Result<(), StorageError> {
        let key = (topic.to_owned(), partition);
        let to = self.rename_partition(&key, directory_names::DELETE)?;
        self.forget_and_remove(&key, 0, to);
        Ok(())
    }

    /// Renames each partition directory that existed at the open and for which `is_known` returns
    /// false. It is kept for an administrator. Also drops the checkpoint rows of all other unknown
    /// partitions: their directories are gone.
    ///
    /// Such a directory belongs to a deleted topic: it could not be renamed for deletion, or a
    /// power cut undid the rename.
    pub fn mark_strays(
        &self,
        is_known: impl Fn(&str, i32) -> bool,
    ) -> Vec<(PartitionKey, Result<(), StorageError>)> {
        let found = std::mem::take(&mut self.state.lock().found).into_iter();
        let strays = found.filter(|(topic, partition)| !is_known(topic, *partition));
        let marked = strays.map(|key| {
            let renamed = self.rename_stray(&key);
            (key, renamed)
        });
        let marked: Vec<_> = marked.collect();
        let is_known = |(topic, partition): &PartitionKey| is_known(topic, *partition);
        self.state.lock().forget_unknown(&is_known);
        if !marked.is_empty() {
            self.checkpoint_strays();
        }
        marked
    }

    /// Renames the directory of a partition that is not in the metadata, and drops all state of it.
    fn rename_stray(&self, key: &PartitionKey) -> Result<(), StorageError> {
        self.rename_partition(key, directory_names::STRAY)?;
        self.state.lock().forget(key);
        Ok(())
    }

    /// Writes the checkpoints without the strays. Unlike directories renamed for deletion, strays
    /// remain, so an open cannot conclude from them which rows are outdated.
    fn checkpoint_strays(&self) {
        // If it fails, as on a full disk, a log that is created later under this name may seem
        // damaged.
        let _ = self.checkpoint(&[]);
    }

    /// Renames a partition's directory, if it exists, and returns the new path.
    fn rename_partition(&self, key: &PartitionKey, suffix: &str) -> Result<PathBuf, StorageError> {
        let (from, to) =
            (self.dir.join(directory_names::partition_dir(key)), self.renamed(key, suffix));
        match self.disk.rename(&from, &to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => result.map_err(|error| StorageError::io("rename", &from, error))?,
        }
        Ok(to)
    }

    /// Drops all state of a partition whose directory was renamed to `path`, and schedules the
    /// removal of `path`.
    fn forget_and_remove(&self, key: &PartitionKey, delay_ms: i64, path: PathBuf) {
        let expiry_ms = self.clock.now_ms().saturating_add(delay_ms);
        let mut state = self.state.lock();
        state.deleted.push((expiry_ms, path));
        state.forget(key);
    }

    /// Removes renamed directories whose delay has ended at `now_ms`.
    ///
    /// # Errors
    /// The first error. All directories are tried, and those that remain are tried again by the
    /// next call.
    pub fn remove_deleted(&self, now_ms: i64) -> Result<(), StorageError> {
        let expired: Vec<_> = {
            let mut state = self.state.lock();
            state.deleted.extract_if(.., |(expiry, _)| *expiry <= now_ms).collect()
        };
        if expired.is_empty() {
            return Ok(());
        }
        // While a checkpoint may contain a deleted log, its directory must stay: an open then
        // ignores those rows. If the checkpoint cannot be written because the disk is full, the
        // directory is removed anyway, to free space.
        let _ = self.checkpoint(&[]);
        let mut result = Ok(());
        for (expiry, path) in expired {
            let removed = remove_dir(&*self.disk, &path);
            if removed.is_err() {
                self.state.lock().deleted.push((expiry, path));
            }
            result = result.and(removed);
        }
        result
    }

    /// Closes all logs and writes the checkpoints; with `clean`, and if everything succeeded, also
    /// the marker.
    ///
    /// The marker is not written if any log is damaged, failed or was never recovered.
    pub fn close(&self, clean: bool) -> Result<(), StorageError> {
        let logs: Vec<_> = self.state.lock().logs.values().cloned().collect();
        let is_whole = logs.iter().all(|log| !log.is_read_only()) && self.is_recovered();
        let result = close_all(&logs);
        self.checkpoint(&[])?;
        result?;
        if !clean || !is_whole {
            return Ok(());
        }
        let marker = CleanShutdown { broker_epoch: self.broker_epoch.load(Ordering::Relaxed) };
        let path = self.dir.join(checkpoint::CLEAN_SHUTDOWN_FILE);
        self.disk
            .write_atomically(&path, &marker.write())
            .map_err(|error| StorageError::io("write", &path, error))
    }

    /// Closes all logs and stores nothing: the disk stays as after the death of the process.
    pub fn abandon(&self) {
        let logs = std::mem::take(&mut self.state.lock().logs);
        for log in logs.values() {
            log.discard();
        }
    }

    /// Closes all logs and removes every file: for a disk that is not used again, and that may not
    /// have the space for a clean stop.
    pub fn discard(&self) -> Result<(), StorageError> {
        self.abandon();
        remove_dir(&*self.disk, &self.dir)
    }

    /// False if a log on disk still needs recovery after an unclean stop.
    fn is_recovered(&self) -> bool {
        let state = self.state.lock();
        self.was_clean
            || self
                .partitions()
                .into_iter()
                .all(|partition| state.logs.contains_key(&(partition.topic, partition.partition)))
    }

    fn partition_path(&self, topic: &str, partition: i32) -> PathBuf {
        self.dir.join(directory_names::partition_dir(&(topic.to_owned(), partition)))
    }

    /// A new path for a partition's directory, with a name like Kafka's.
    fn renamed(&self, key: &PartitionKey, suffix: &str) -> PathBuf {
        let unique_id = (u128::from(self.draw()) << 64) | u128::from(self.draw());
        self.dir.join(directory_names::renamed(key, unique_id, suffix))
    }

    /// The next number of a 64-bit mixer over a counter.
    fn draw(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut number = self.random.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }
}

impl std::fmt::Debug for LogDirectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogDirectory").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl DirectoryState {
    /// Drops all state of a partition.
    fn forget(&mut self, key: &PartitionKey) {
        self.logs.remove(key);
        self.offsets.forget(key);
    }

    /// Drops the checkpoint rows of partitions that do not exist.
    fn forget_unknown(&mut self, is_known: &impl Fn(&PartitionKey) -> bool) {
        self.offsets.retain(is_known);
    }
}

/// Removes a directory and its contents, if it exists.
fn remove_dir(disk: &dyn Disk, path: &Path) -> Result<(), StorageError> {
    match disk.remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(StorageError::io("remove", path, error))
        }
        _ => Ok(()),
    }
}

/// Closes logs, with several threads if there are many, because each waits for its own syncs.
fn close_all(logs: &[Arc<Log>]) -> Result<(), StorageError> {
    let next = AtomicUsize::new(0);
    let close_some = &|| {
        let mut result = Ok(());
        while let Some(log) = logs.get(next.fetch_add(1, Ordering::Relaxed)) {
            result = result.and(log.close());
        }
        result
    };
    let helpers_count = (logs.len() / LOGS_PER_THREAD).min(SYNC_THREADS_MAX);
    thread::scope(|scope| {
        // If no thread can be started, it only takes longer.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, close_some).ok();
        let helpers: Vec<_> = (0..helpers_count).map_while(spawn).collect();
        let result = close_some();
        helpers.into_iter().fold(result, |result, helper| {
            result.and(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    })
}

/// Directories that an earlier run renamed for deletion. They may be removed immediately.
fn deleted_dirs(dir: &Path, entries: &[DirEntry]) -> Vec<(i64, PathBuf)> {
    (entries.iter())
        .filter(|entry| entry.is_dir)
        .filter(|entry| directory_names::deleted_stem(&entry.name.to_string_lossy()).is_some())
        .map(|entry| (i64::MIN, dir.join(&entry.name)))
        .collect()
}

fn partition_dirs(entries: &[DirEntry]) -> Vec<(String, i32)> {
    (entries.iter())
        .filter(|entry| entry.is_dir)
        .filter_map(|entry| parse_partition_dir(entry.name.to_str()?))
        .map(|(topic, partition)| (topic.to_owned(), partition))
        .collect()
}

/// Returns the marker of a clean stop, if it exists, and removes it before anything else is
/// written.
fn take_clean_marker(disk: &dyn Disk, dir: &Path) -> io::Result<Option<CleanShutdown>> {
    let path = dir.join(checkpoint::CLEAN_SHUTDOWN_FILE);
    if !disk.exists(&path) {
        return Ok(None);
    }
    let marker = disk.read(&path).ok().and_then(|bytes| CleanShutdown::read(&bytes).ok());
    disk.remove_file(&path)?;
    disk.sync_dir(dir)?;
    Ok(marker)
}
