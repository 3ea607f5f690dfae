//! One partition's log on disk: segments, indexes, epochs, producer state, recovery, retention.

mod buffer_pool;
pub mod checkpoint;
mod clock;
mod config;
mod directory;
mod directory_names;
pub mod disk;
mod epoch_cache;
mod error;
mod file_names;
mod flusher;
pub mod fuzz;
mod log;
pub mod perturb;
mod segment;
mod syncer;

pub use buffer_pool::BufferPool;
pub use checkpoint::PartitionIdentity;
pub use clock::{Clock, ManualClock, SystemClock};
pub use config::{
    CleanupPolicy, CompressionType, ConfigError, Durability, LogConfig, MessageTimestampType,
};
pub use directory::library::LibraryLog;
pub use directory::lock::{DirectoryLock, LOCK_FILE, LockError};
pub use directory::repair::{Cut, Repair};
pub use directory::survey::LogSurvey;
pub use directory::{DirectoryOptions, LogDirectory, PartitionDir};
pub use directory_names::PartitionKey;
pub use disk::{
    Allocated, DirEntry, Disk, DiskFile, MemoryDisk, OpenMode, ReadFile, ReadMap, RealDisk,
    Reserved, Space, Window,
};
pub use epoch_cache::{EpochCache, EpochEntry};
pub use error::{Damage, OpenError, ReadError, StorageError};
pub use flusher::Flusher;
pub use log::Log;
pub use log::append::error::AppendError;
pub use log::append::validate::{self, RecordFault, RecordFaultKind, ValidateError, Validated};
pub use log::compaction::{CompactionOptions, CompactionReport, Dirtiness};
pub use log::producer_state::snapshot::SnapshotError;
pub use log::producer_state::{
    AppendOrigin, AppendedMarker, BatchMetadata, BatchSummary, Check, CompletedTxn, ProducerEntry,
    ProducerError, ProducerStateManager,
};
pub use log::read::lookup::{LookupError, SegmentEntries};
pub use log::read::slice::{Fetched, FetchedRecords, RecordsSlice, SliceError};
pub use log::retention::Expired;
pub use log::types::{
    AppendInfo, AppendOptions, Checkpointed, FetchData, LogOffsets, LogOptions, OnDamage, Recovery,
    TimestampOffset,
};
pub use log::verification::{FirstBatch, TransactionRule, VerificationGuard};
pub use segment::appender::{AppendRule, Appender, MAPPED_BATCH_BYTES_MAX};
pub use segment::offset_index::OffsetEntry;
pub use segment::time_index::TimeEntry;
pub use segment::transaction_index::AbortedTxn;
pub use syncer::{SYNC_THREADS_MAX, Syncer};
