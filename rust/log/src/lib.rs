//! One partition's log on disk: segments, indexes, epochs, producer state, recovery, retention.

mod append;
pub mod checkpoint;
mod clock;
mod config;
mod directory_lock;
pub mod disk;
mod epoch_cache;
mod producer_state;
mod syncer;
pub mod validate;

pub use append::{AppendRule, Appender, MAPPED_BATCH_BYTES_MAX};
pub use clock::{Clock, ManualClock, SystemClock};
pub use config::{
    CleanupPolicy, CompressionType, ConfigError, Durability, LogConfig, MessageTimestampType,
};
pub use directory_lock::{DirectoryLock, LOCK_FILE, LockError};
pub use disk::{DirEntry, Disk, DiskFile, MemoryDisk, OpenMode, ReadMap, RealDisk, Space, Window};
pub use epoch_cache::{EpochCache, EpochEntry};
pub use producer_state::{
    AppendOrigin, BatchMetadata, BatchSummary, Check, CompletedTxn, ProducerEntry, ProducerError,
    ProducerStateManager, SnapshotError,
};
pub use syncer::{OnSynced, SYNC_THREADS_MAX, Syncer};
