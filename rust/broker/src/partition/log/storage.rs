//! The storage of a broker's logs: one locked directory, or memory.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pykafka_log::{
    BufferPool, Clock, DirectoryLock, DirectoryOptions, Disk, LockError, LogDirectory, MemoryDisk,
    OpenError, RealDisk,
};

use crate::control_api::settings::Settings;
use crate::network::memory::Parts;

/// The reason why the storage cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StorageOpenError {
    /// Another process has the directory open.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Its checkpoints cannot be read.
    #[error(transparent)]
    Directory(#[from] OpenError),
    /// The directory cannot be created.
    #[error("cannot make {dir}: {source}")]
    Make {
        /// Path of the directory.
        dir: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// The storage of a broker, until it stops.
pub(crate) struct Storage {
    pub(crate) directory: LogDirectory,
    /// Owned by the core, so that a stop releases the lock although the directory object continues
    /// to exist.
    pub(crate) lock: Option<DirectoryLock>,
    pub(crate) in_memory: bool,
}

impl Storage {
    /// Locks and opens `data_dir`; without a directory, logs are in memory and take at most
    /// `memory_max` bytes.
    pub(crate) fn open(
        data_dir: Option<&Path>,
        memory_max: u64,
        clock: Arc<dyn Clock>,
        random_seed: u64,
    ) -> Result<Storage, StorageOpenError> {
        let disk: Arc<dyn Disk> = match data_dir {
            Some(_) => Arc::new(RealDisk),
            None => Arc::new(MemoryDisk::new(memory_max)),
        };
        let lock = data_dir.map(locked).transpose()?;
        let parts = Parts::of(memory_max);
        let options = DirectoryOptions {
            dir: data_dir.unwrap_or(Path::new("memory")),
            disk,
            lock: None,
            producer_id_expiration_ms: Settings::default().producer_id_expiration_ms,
            random_seed,
            buffers: Arc::new(BufferPool::new(parts.read_buffers, parts.inflated)),
        };
        let directory = LogDirectory::open(options, clock)?;
        Ok(Storage { directory, lock, in_memory: data_dir.is_none() })
    }
}

fn locked(dir: &Path) -> Result<DirectoryLock, StorageOpenError> {
    RealDisk
        .create_dir_all_durably(dir)
        .map_err(|source| StorageOpenError::Make { dir: dir.into(), source })?;
    Ok(DirectoryLock::acquire(dir)?)
}
