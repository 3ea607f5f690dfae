//! Errors of a log; the broker maps them to Kafka's codes in one place.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use crate::disk::open_files::is_exhausted;
use crate::file_names::{FileKind, file_name};

/// The log cannot be used, or not for this operation. Every variant is Kafka's
/// `KAFKA_STORAGE_ERROR` on the wire.
#[derive(Debug, Clone, Error)]
pub enum StorageError {
    /// The file system is full. Nothing was appended; the log works again when there is space.
    #[error("no space left for {path}")]
    NoSpace {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// The process or the system lacks descriptors or memory. Nothing was changed; the log works
    /// again when some are released.
    #[error("cannot {action} {path} now: {source}")]
    Exhausted {
        /// The attempted action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system call.
        source: Arc<io::Error>,
    },
    /// An operation failed. The log refuses all writes until it is reopened.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The attempted action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system call.
        source: Arc<io::Error>,
    },
    /// An earlier I/O error closed this log for writing.
    #[error("log refuses writes since an I/O error: {reason}")]
    Failed {
        /// The earlier error.
        reason: Arc<str>,
    },
    /// The log is readable up to the damage. It accepts writes again once an administrator has
    /// decided about the records after the damage.
    #[error("log is damaged: {0}; pykafka-core repair shows what can be done")]
    Damaged(Damage),
    /// A batch in the middle of the log cannot be read.
    #[error("malformed batch in {path} at position {position}: {reason}")]
    Malformed {
        /// The segment.
        path: PathBuf,
        /// Position of the batch.
        position: u64,
        /// The problem.
        reason: String,
    },
    /// A stored record exceeds `max.decompressed.message.bytes`, which was lowered after the
    /// append.
    #[error("a record of the batch in {path} at position {position} cannot be read: {reason}")]
    RecordTooLarge {
        /// The segment.
        path: PathBuf,
        /// Position of the batch.
        position: u64,
        /// The record's size and the limit.
        reason: String,
    },
    /// A log cannot be truncated to an offset below 0.
    #[error("{offset} is not an offset")]
    NegativeOffset {
        /// The invalid offset.
        offset: i64,
    },
    /// The library cannot move a bound of a log beyond its end, or below 0.
    #[error("offset {offset} is not within the log, which ends at {log_end_offset}")]
    OffsetOutOfRange {
        /// The offset of the call.
        offset: i64,
        /// Exclusive end of the log.
        log_end_offset: i64,
    },
    /// The log was opened for reading only.
    #[error("log was opened read-only")]
    ReadOnly,
    /// The log was closed or deleted.
    #[error("log is closed")]
    Closed,
}

impl StorageError {
    /// An I/O error on `path`. A full file system and a lack of descriptors or memory, which are
    /// not faults of the file, have separate variants.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> StorageError {
        if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            return StorageError::NoSpace { path: path.to_owned() };
        }
        let is_exhausted = is_exhausted(&source);
        let (path, source) = (path.to_owned(), Arc::new(source));
        if is_exhausted {
            StorageError::Exhausted { action, path, source }
        } else {
            StorageError::Io { action, path, source }
        }
    }

    /// True if the operation changed nothing and may succeed later, so that the log can still be
    /// used.
    pub fn is_refusal(&self) -> bool {
        matches!(self, StorageError::NoSpace { .. } | StorageError::Exhausted { .. })
    }
}

/// Damage that makes a log refuse writes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Damage {
    /// A damaged batch is followed by valid ones, which a crash of the process cannot cause.
    #[error("valid batches follow a damaged one at offset {offset}")]
    Batch {
        /// Offset of the first record that cannot be read.
        offset: i64,
    },
    /// A whole batch has offsets that cannot follow the end of the log: its offsets were damaged,
    /// as the CRC does not cover them, or files were exchanged, or batches of another log were
    /// inserted.
    #[error(
        "a batch of offsets {first_offset} to {last_offset} is stored at offset {offset}{}",
        NextSegment(*next_base)
    )]
    Misplaced {
        /// The log end offset before the batch.
        offset: i64,
        /// The base offset of the batch.
        first_offset: i64,
        /// Its last offset (inclusive).
        last_offset: i64,
        /// Base offset of the next segment, if that is at or below the last offset.
        next_base: Option<i64>,
    },
    /// A batch has an unsupported message format. It is never cut.
    #[error(
        "a batch at or above offset {offset} has message format {magic}, which this version cannot read"
    )]
    UnknownFormat {
        /// The log end offset before the batch.
        offset: i64,
        /// The number of the format.
        magic: i8,
    },
    /// Records are missing at the end of the log.
    #[error("it ends at offset {offset}, but offsets below {synced_end} were synced")]
    Lost {
        /// The remaining log end offset.
        offset: i64,
        /// All offsets below were synced.
        synced_end: i64,
    },
    /// Records are missing at the beginning of the log. The records after them are readable.
    #[error("offsets {offset} to {last_offset} were synced and are gone from its beginning")]
    Beginning {
        /// The log start offset that was checkpointed.
        offset: i64,
        /// The last offset that is missing (inclusive).
        last_offset: i64,
    },
    /// The checkpointed log start offset is above the log end offset. Log start offsets are
    /// checkpointed after everything below them was synced, so either the checkpoint is wrong or
    /// records are missing.
    #[error(
        "its log start is checkpointed at offset {log_start_offset}, but it ends at offset {offset}{}",
        Synced { below: *synced_end, end: *offset }
    )]
    LogStart {
        /// The remaining log end offset.
        offset: i64,
        /// The log start offset that was checkpointed.
        log_start_offset: i64,
        /// All offsets below were synced, as far as known: records are missing if this is above the
        /// log end offset.
        synced_end: i64,
    },
    /// Records are missing in the middle of the log.
    #[error("offsets {offset} to {last_offset} were synced and are gone")]
    Gap {
        /// The first missing offset.
        offset: i64,
        /// The last missing offset (inclusive).
        last_offset: i64,
    },
}

/// Names the next segment if a batch reaches into it.
struct NextSegment(Option<i64>);

impl fmt::Display for NextSegment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(next_base) = self.0 else { return Ok(()) };
        write!(formatter, ", but the next segment is {}", file_name(next_base, FileKind::Log))
    }
}

/// Adds the synced offsets if there are more than those that remain.
struct Synced {
    below: i64,
    end: i64,
}

impl fmt::Display for Synced {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.below <= self.end {
            return Ok(());
        }
        write!(formatter, ", and offsets below {} were synced", self.below)
    }
}

impl Damage {
    /// True if it may be cut. Only bytes that are certainly damaged are cut.
    pub fn may_be_cut(&self) -> bool {
        !matches!(self, Damage::UnknownFormat { .. })
    }

    /// Offset of the first unreadable record: the remaining log end offset, except for damage to
    /// the beginning.
    pub fn offset(&self) -> i64 {
        match self {
            Damage::Batch { offset }
            | Damage::UnknownFormat { offset, .. }
            | Damage::Misplaced { offset, .. }
            | Damage::Lost { offset, .. }
            | Damage::Beginning { offset, .. }
            | Damage::LogStart { offset, .. }
            | Damage::Gap { offset, .. } => *offset,
        }
    }
}

/// The reason why nothing was read.
#[derive(Debug, Clone, Error)]
pub enum ReadError {
    /// The offset is below the log start offset or above the log end offset.
    #[error(
        "offset {offset} is out of range: log start offset {log_start_offset}, log end offset {log_end_offset}"
    )]
    OffsetOutOfRange {
        /// The requested offset.
        offset: i64,
        /// First offset that can be read.
        log_start_offset: i64,
        /// Log end offset (exclusive).
        log_end_offset: i64,
    },
    /// The log cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The reason why a log cannot be opened.
#[derive(Debug, Clone, Error)]
pub enum OpenError {
    /// A file cannot be read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A file that cannot be rebuilt has invalid content.
    #[error("{path} is malformed: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// A log that this version cannot read to its end, and must not cut.
    #[error("{path} is left as it is: {reason}")]
    NotRepairable {
        /// The partition's directory.
        path: PathBuf,
        /// The batch that cannot be read.
        reason: String,
    },
    /// The directory belongs to an earlier topic of the same name.
    #[error("{path} belongs to another topic of the same name")]
    TopicIdMismatch {
        /// The partition's directory.
        path: PathBuf,
    },
    /// The directory is a copy of another partition's directory.
    #[error(
        "{path} has the files of partition {found} of its topic: restore its own files, or move it away; if its \
         name is wrong, rename it"
    )]
    OtherPartition {
        /// The partition's directory.
        path: PathBuf,
        /// The partition that its `partition.metadata` names.
        found: i32,
    },
    /// Other processes changed the log's segments during each attempt.
    #[error("{path} changed each of the {looks} times that it was looked at: open it again")]
    Changing {
        /// The partition's directory.
        path: PathBuf,
        /// Number of attempts.
        looks: usize,
    },
    /// The directory of a log that is open for reading was deleted, renamed or moved.
    #[error("{path} no longer exists: the log was deleted, or its directory was renamed")]
    Gone {
        /// The partition's directory.
        path: PathBuf,
    },
    /// Another log is in the directory of a log that is open for reading.
    #[error(
        "{path} is another log now, of a topic that was deleted and recreated, or of another partition: open it again"
    )]
    Recreated {
        /// The partition's directory.
        path: PathBuf,
    },
    /// Another process, or another part of this one, has the directory open.
    #[error("{reason}")]
    Locked {
        /// The directory.
        path: PathBuf,
        /// The holder of the lock.
        reason: String,
    },
}
