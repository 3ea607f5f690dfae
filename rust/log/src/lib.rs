//! One partition's log on disk: segments, indexes, epochs, producer state, recovery, retention.

mod append;
mod buffer_pool;
pub mod checkpoint;
mod clock;
mod config;
mod directory;
mod directory_lock;
pub mod disk;
mod epoch_cache;
mod flusher;
pub mod fuzz;
mod index_entries;
mod index_file;
mod indexes;
mod library;
mod log;
mod offset_index;
mod producer_state;
mod repair;
mod scan;
mod segment;
mod survey;
mod syncer;
mod time_index;
mod transaction_index;
pub mod validate;

pub use append::{AppendRule, Appender, MAPPED_BATCH_BYTES_MAX};
pub use buffer_pool::BufferPool;
pub use clock::{Clock, ManualClock, SystemClock};
pub use config::{
    CleanupPolicy, CompressionType, ConfigError, Durability, LogConfig, MessageTimestampType,
};
pub use directory::{DirectoryOptions, LogDirectory, PartitionDir};
pub use directory_lock::{DirectoryLock, LOCK_FILE, LockError};
pub use disk::{DirEntry, Disk, DiskFile, MemoryDisk, OpenMode, ReadMap, RealDisk, Space, Window};
pub use epoch_cache::{EpochCache, EpochEntry};
pub use flusher::Flusher;
pub use library::LibraryLog;
pub use log::{
    AppendError, AppendInfo, AppendOptions, FetchData, Fetched, FetchedRecords, Log, LogOffsets,
    LogOptions, OpenError, ReadError, RecordsSlice, Recovery, SegmentEntries, SliceError,
    StorageError, SyncJob, TimestampOffset, Unsynced,
};
pub use offset_index::OffsetEntry;
pub use producer_state::{
    AppendOrigin, BatchMetadata, BatchSummary, Check, CompletedTxn, ProducerEntry, ProducerError,
    ProducerStateManager, SnapshotError,
};
pub use repair::{Cut, Repair};
pub use survey::LogSurvey;
pub use syncer::{OnSynced, SYNC_THREADS_MAX, Syncer};
pub use time_index::TimeEntry;
pub use transaction_index::AbortedTxn;
pub use validate::{RecordFault, RecordFaultKind, ValidateError, Validated};
