//! A log that is opened on its own, without a broker: which directory is locked, and where its
//! offsets are stored.
//!
//! A partition inside a data directory (its parent contains `meta.properties`) is opened under that
//! directory's lock and with its checkpoints. Any other directory contains its own lock,
//! checkpoints and clean marker.

mod copies;
mod seen;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pykafka_forks::Mutex;

use self::seen::{Identity, Seen};
use crate::checkpoint;
use crate::clock::Clock;
use crate::config::LogConfig;
use crate::directory::lock::DirectoryLock;
use crate::directory::{DirectoryOptions, LogDirectory};
use crate::disk::{Disk, MemoryDisk, RealDisk};
use crate::error::{OpenError, StorageError};
use crate::flusher::Flusher;
use crate::log::Log;
use crate::log::types::{LogOptions, OnDamage, Recovery};

/// Kafka's `producer.id.expiration.ms`.
pub(crate) const PRODUCER_ID_EXPIRATION_MS: i64 = 86_400_000;

/// How often an open for reading tries again while other processes change the directory. A look
/// takes some milliseconds. While a busy machine compacts a log continuously, most looks see a
/// change, and 16 were not enough.
const LOOKS_MAX: usize = 200;

/// Pause before a second look at the damage of a log that has a writer. Kafka writes the cleaner
/// checkpoint shortly after it has renamed the compacted files, and a busy machine delays that.
const PAUSE: Duration = Duration::from_millis(500);

/// A log with its dependencies, on the real disk or in memory.
#[derive(Debug)]
pub struct LibraryLog {
    /// Replaced by [`LibraryLog::refresh`].
    log: Mutex<Arc<Log>>,
    /// Dropped before the lock is released.
    flusher: Option<Arc<Flusher>>,
    home: Home,
}

/// Where the files are, and how they are closed.
#[derive(Debug)]
enum Home {
    /// A directory that is left as after a clean stop.
    Disk(LogDirectory),
    /// Memory that is freed at the close.
    Memory(LogDirectory),
    /// A directory of another process: no lock is taken and nothing is written.
    Foreign(Box<Foreign>),
}

/// A log that other processes may write.
struct Foreign {
    /// The options of the open, except the checkpoints.
    options: LogOptions,
    container: PathBuf,
    identity: Identity,
    /// The directory as it was before the last open.
    seen: Mutex<Option<Seen>>,
}

impl fmt::Debug for Foreign {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Foreign").field("dir", &self.options.dir).finish_non_exhaustive()
    }
}

impl Foreign {
    /// Opens the log in its current state, and again while other processes change its directory.
    fn open(&self, mut seen: Seen) -> Result<(Log, Recovery), OpenError> {
        let mut found_before = None;
        for _ in 0..LOOKS_MAX {
            let checkpointed = seen.checkpointed;
            let opened = Log::open(LogOptions { checkpointed, ..self.options.clone() });
            let now = self.see()?;
            let found = wrong_in(&opened);
            let is_settled = match &found {
                // A listing of a directory may miss a file that is being renamed.
                None => now.extends(&seen),
                Some(_) if DirectoryLock::is_held(&self.container) => {
                    found == found_before && now.has_sealed_of(&seen)
                }
                Some(_) => now == seen,
            };
            if is_settled {
                *self.seen.lock() = Some(seen);
                return opened;
            }
            found_before = found.filter(|_| now.has_sealed_of(&seen));
            if found_before.is_some() {
                thread::sleep(PAUSE);
            }
            seen = now;
        }
        Err(OpenError::Changing { path: self.options.dir.clone(), looks: LOOKS_MAX })
    }

    fn see(&self) -> Result<Seen, OpenError> {
        let (disk, path) = (&*self.options.disk, &self.options.dir);
        let seen = Seen::of(disk, &self.container, path)?;
        // Checked afterwards, so that nothing of another log was seen.
        self.identity.check(&Identity::of(disk, path)?, path)?;
        Ok(seen)
    }

    /// True if the directory is as it was when the log was opened.
    fn is_seen(&self, now: &Seen) -> bool {
        self.seen.lock().as_ref() == Some(now)
    }
}

impl LibraryLog {
    /// Opens the log in `path` for reading and writing; creates the directory if needed.
    ///
    /// # Errors
    /// [`OpenError::Locked`] if a broker or another library has it open;
    /// [`OpenError::OtherPartition`] in a data directory, as for a broker.
    pub fn open(
        path: &Path,
        config: Arc<LogConfig>,
        clock: Arc<dyn Clock>,
    ) -> Result<(LibraryLog, Recovery), OpenError> {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let path = &resolve(path);
        let dir = container(&*disk, path);
        disk.create_dir_all_durably(&dir)
            .map_err(|error| StorageError::io("create", &dir, error))?;
        let lock = DirectoryLock::acquire(&dir)
            .map_err(|error| OpenError::Locked { path: dir.clone(), reason: error.to_string() })?;
        LibraryLog::open_in(&dir, path, disk, Some(lock), config, clock, Home::Disk)
    }

    /// Creates an empty log that exists as long as this object, in at most `memory_max` bytes.
    /// `path` is only its name.
    pub fn open_in_memory(
        path: &Path,
        memory_max: u64,
        config: Arc<LogConfig>,
        clock: Arc<dyn Clock>,
    ) -> Result<(LibraryLog, Recovery), OpenError> {
        let disk = Arc::new(MemoryDisk::new(memory_max));
        LibraryLog::open_in(path, path, disk, None, config, clock, Home::Memory)
    }

    fn open_in(
        dir: &Path,
        path: &Path,
        disk: Arc<dyn Disk>,
        lock: Option<DirectoryLock>,
        config: Arc<LogConfig>,
        clock: Arc<dyn Clock>,
        home: fn(LogDirectory) -> Home,
    ) -> Result<(LibraryLog, Recovery), OpenError> {
        let options = DirectoryOptions {
            dir,
            disk,
            lock,
            producer_id_expiration_ms: PRODUCER_ID_EXPIRATION_MS,
            random_seed: clock.now_ms() as u64 ^ clock.now_ns(),
            buffers: Arc::default(),
        };
        let identity = checkpoint::identity_in(&*options.disk, path).ok().flatten();
        let warning = copies::check_name(identity, dir, path)?;
        let directory = LogDirectory::open(options, clock)?;
        let (log, mut recovery) = directory.open_log_in(path, config)?;
        recovery.warnings.extend(warning);
        let flusher = Flusher::of(&log).map(Arc::new);
        Ok((LibraryLog { log: Mutex::new(log), flusher, home: home(directory) }, recovery))
    }

    /// Opens the log in `path` for reading only: takes no lock, writes nothing, reads files with
    /// `pread`.
    ///
    /// Other processes may append to it, compact it and truncate it. The log is complete as of the
    /// open: it only reads the files that had their names then, or fails. So the caller should call
    /// [`LibraryLog::refresh`] after a failed read, and read again; the log end offset is then that
    /// of the new open. Compaction removes a record only if there is a later one of its key, and
    /// each open has all records up to its end: so reads up to the last end, of parts of different
    /// opens, have the latest value of each key as of the first open, or a later one.
    ///
    /// # Errors
    /// Those of [`Log::open`]; [`OpenError::Gone`] without the directory;
    /// [`OpenError::OtherPartition`] in a data directory, as for a broker.
    pub fn open_read_only(
        path: &Path,
        config: Arc<LogConfig>,
        clock: Arc<dyn Clock>,
    ) -> Result<(LibraryLog, Recovery), OpenError> {
        LibraryLog::open_read_only_on(Arc::new(RealDisk), &resolve(path), config, clock)
    }

    /// Opens a log for reading on any disk; see [`Self::open_read_only`].
    ///
    /// # Errors
    /// Those of [`Log::open`].
    pub fn open_read_only_on(
        disk: Arc<dyn Disk>,
        path: &Path,
        config: Arc<LogConfig>,
        clock: Arc<dyn Clock>,
    ) -> Result<(LibraryLog, Recovery), OpenError> {
        let container = container(&*disk, path);
        let identity = Identity::of(&*disk, path)?;
        let warning = copies::check_name(identity.partition, &container, path)?;
        let seen = Seen::of(&*disk, &container, path)?;
        let options = LogOptions {
            dir: path.to_owned(),
            config,
            disk,
            clock,
            checkpointed: seen.checkpointed,
            on_damage: OnDamage::Keep,
            clean: false,
            identity: None,
            producer_id_expiration_ms: PRODUCER_ID_EXPIRATION_MS,
            read_only: true,
            jitter_seed: 0,
            buffers: Arc::default(),
        };
        let foreign = Foreign { options, container, identity, seen: Mutex::new(None) };
        let (log, mut recovery) = foreign.open(seen)?;
        recovery.warnings.extend(warning);
        let (log, home) = (Mutex::new(Arc::new(log)), Home::Foreign(Box::new(foreign)));
        Ok((LibraryLog { log, flusher: None, home }, recovery))
    }

    /// Opens a read-only log again if it or its directory has changed since it was opened. Returns
    /// `false` if the log is unchanged, or open for writing.
    ///
    /// # Errors
    /// Those of [`Log::open`]; [`OpenError::Gone`] and [`OpenError::Recreated`], and the log
    /// remains as it was.
    pub fn refresh(&self) -> Result<bool, OpenError> {
        let Home::Foreign(foreign) = &self.home else { return Ok(false) };
        let now = foreign.see()?;
        // An append into a mapped window changes neither the size nor the time of a file.
        if foreign.is_seen(&now) && !self.log().has_batch_after_end() {
            return Ok(false);
        }
        *self.log.lock() = Arc::new(foreign.open(now)?.0);
        Ok(true)
    }

    /// The current log; [`LibraryLog::refresh`] may replace it.
    pub fn log(&self) -> Arc<Log> {
        self.log.lock().clone()
    }

    /// The flusher, which the caller must notify of each append; `None` if the settings do not
    /// limit the time without a sync.
    pub fn flusher(&self) -> Option<&Arc<Flusher>> {
        self.flusher.as_ref()
    }

    /// Truncates the log as [`LogDirectory::truncate_log`] does.
    ///
    /// # Errors
    /// Those of that method; [`StorageError::OffsetOutOfRange`] below 0 or above the log end
    /// offset.
    pub fn truncate_to(&self, offset: i64) -> Result<(), StorageError> {
        self.log().check_within(offset)?;
        match &self.home {
            Home::Disk(directory) => directory.truncate_log(&self.log(), offset),
            Home::Memory(_) | Home::Foreign(_) => self.log().truncate_to(offset),
        }
    }

    /// Raises the log start offset as [`LogDirectory::delete_before`] does.
    ///
    /// # Errors
    /// Those of that method; [`StorageError::OffsetOutOfRange`] below 0 or above the log end
    /// offset.
    pub fn delete_before(&self, offset: i64) -> Result<i64, StorageError> {
        self.log().check_within(offset)?;
        match &self.home {
            Home::Disk(directory) => directory.delete_before(&self.log(), offset),
            Home::Memory(_) | Home::Foreign(_) => self.log().delete_before(offset),
        }
    }

    /// Writes the bounds as [`LogDirectory::checkpoint_bounds`] does. A caller that syncs appends
    /// must call it after the first append to each segment: if the process is killed and all files
    /// of that segment are lost, only the checkpoint reveals the loss.
    pub fn checkpoint_bounds(&self) -> Result<(), StorageError> {
        match &self.home {
            Home::Disk(directory) => directory.checkpoint_bounds(),
            Home::Memory(_) | Home::Foreign(_) => Ok(()),
        }
    }

    /// Removes expired segments as [`LogDirectory::enforce_retention`] does, and files whose delay
    /// has ended at `now_ms`.
    pub fn enforce_retention(&self, now_ms: i64) -> Result<(), StorageError> {
        let log = self.log();
        let log_end_offset = log.log_end_offset();
        match &self.home {
            Home::Disk(directory) => directory.enforce_retention(&log, log_end_offset)?,
            Home::Memory(_) | Home::Foreign(_) => log.enforce_retention(log_end_offset)?,
        };
        log.delete_expired_files(now_ms).map(drop)
    }

    /// Stores and syncs everything, and leaves the directory as after a clean stop. Frees the
    /// memory of a log in memory.
    pub fn close(self) -> Result<(), StorageError> {
        if let Some(flusher) = &self.flusher {
            flusher.close();
        }
        match &self.home {
            Home::Disk(directory) => directory.close(true),
            Home::Memory(directory) => directory.discard(),
            Home::Foreign(_) => self.log().close(),
        }
    }
}

/// The damage of a log, or the reason why it cannot be opened.
fn wrong_in(opened: &Result<(Log, Recovery), OpenError>) -> Option<String> {
    match opened {
        Ok((_, recovery)) => recovery.damage.as_ref().map(ToString::to_string),
        Err(error) => Some(error.to_string()),
    }
}

/// The absolute path of a log without symbolic links. A link or a relative path hides the log's
/// name and its data directory, and the working directory may change.
pub(crate) fn resolve(path: &Path) -> PathBuf {
    (path.canonicalize().or_else(|_| std::path::absolute(path))).unwrap_or_else(|_| path.to_owned())
}

/// The directory that contains a log's lock and checkpoints.
pub(crate) fn container(disk: &dyn Disk, path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if disk.exists(&parent.join(checkpoint::META_PROPERTIES_FILE)) => {
            parent.to_owned()
        }
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use pykafka_record::{BatchBuilder, BatchOptions, LeaderEpoch};

    use super::*;
    use crate::clock::ManualClock;
    use crate::log::append::error::AppendError;
    use crate::log::producer_state::AppendOrigin;
    use crate::log::types::AppendOptions;

    const LEADER: AppendOptions = AppendOptions::new(LeaderEpoch::ZERO, AppendOrigin::Client);

    fn append(log: &Log) -> Result<(), AppendError> {
        let mut builder = BatchBuilder::new(BatchOptions::default());
        builder.append(0, None, Some(&[7; 3000]), &[]).unwrap();
        let mut bytes = Vec::new();
        builder.build(&mut bytes).unwrap();
        log.append_as_leader(&mut bytes, LEADER).map(drop)
    }

    #[test]
    fn full_log_in_memory_closes_and_gives_its_memory_back() {
        let path = Path::new("/events-0");
        let clock = Arc::new(ManualClock::new(0));
        let opened = LibraryLog::open_in_memory(path, 40_960, Arc::default(), clock);
        let (library, _) = opened.unwrap();
        let log = library.log();
        let Home::Memory(directory) = &library.home else { panic!("it is in memory") };
        let disk = directory.disk().clone();
        let refused = std::iter::repeat_with(|| append(&log)).find_map(Result::err).unwrap();
        assert!(matches!(refused, AppendError::Storage(StorageError::NoSpace { .. })));
        assert!(disk.available_bytes(path).unwrap().usable < 4096);
        library.close().unwrap();
        assert_eq!(disk.available_bytes(path).unwrap().usable, 40_960);
        assert!(matches!(append(&log), Err(AppendError::Storage(StorageError::Closed))));
    }
}
