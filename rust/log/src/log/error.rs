//! What can go wrong with a log; the broker maps these to Kafka's codes in one place.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pykafka_record::LeaderEpoch;
use thiserror::Error;

use crate::disk::open_files::is_exhausted;
use crate::log::append::validate::ValidateError;
use crate::log::producer_state::ProducerError;
use crate::segment::{FileKind, file_name};

/// The log cannot be used, or not for this. Every variant is Kafka's `KAFKA_STORAGE_ERROR` on the wire.
#[derive(Debug, Clone, Error)]
pub enum StorageError {
    /// The file system is full. Nothing was appended; the log goes on when space returns.
    #[error("no space left for {path}")]
    NoSpace {
        /// The file that was to grow.
        path: PathBuf,
    },
    /// The process or the system lacks descriptors or memory. Nothing was done; the log goes on when others gave some back.
    #[error("cannot {action} {path} now: {source}")]
    Exhausted {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's words.
        source: Arc<io::Error>,
    },
    /// An operation failed, and this log refuses everything that writes until it is reopened.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's words.
        source: Arc<io::Error>,
    },
    /// An earlier I/O error closed this log for writing.
    #[error("log refuses writes since an I/O error: {reason}")]
    Failed {
        /// That error.
        reason: Arc<str>,
    },
    /// Readable up to the damage, and written again only once somebody agreed to lose what is behind it.
    #[error("log is damaged: {0}; pykafka-core repair shows what can be done")]
    Damaged(Damage),
    /// A batch in the middle of the log cannot be read.
    #[error("malformed batch in {path} at position {position}: {reason}")]
    Malformed {
        /// The segment.
        path: PathBuf,
        /// Where the batch begins.
        position: u64,
        /// What is wrong.
        reason: String,
    },
    /// A stored record exceeds `max.decompressed.message.bytes`, which has been lowered since.
    #[error("a record of the batch in {path} at position {position} cannot be read: {reason}")]
    RecordTooLarge {
        /// The segment.
        path: PathBuf,
        /// Where the batch begins.
        position: u64,
        /// Its size and the bound.
        reason: String,
    },
    /// A log cannot be truncated to an offset below 0.
    #[error("{offset} is not an offset")]
    NegativeOffset {
        /// As given.
        offset: i64,
    },
    /// The library moves no bound of a log beyond its end, or below 0.
    #[error("offset {offset} is not within the log, which ends at {log_end_offset}")]
    OffsetOutOfRange {
        /// Offset that was given.
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
    /// An I/O error on `path`; what says nothing about the file is told apart: a full file system, no descriptor left.
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

    /// Whether the operation was refused, changed nothing and may succeed later: the log is as healthy as before.
    pub fn is_refusal(&self) -> bool {
        matches!(self, StorageError::NoSpace { .. } | StorageError::Exhausted { .. })
    }
}

/// Why a log ends earlier than it should.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Damage {
    /// A batch is damaged and others behind it are not: no crash of a process leaves that.
    #[error("valid batches follow a damaged one at offset {offset}")]
    Batch {
        /// Offset of the first record that cannot be read.
        offset: i64,
    },
    /// A whole batch has offsets that cannot follow the log's end: no CRC covers them, or files
    /// were exchanged, or batches of another log were put there.
    #[error(
        "a batch of offsets {first_offset} to {last_offset} stands at offset {offset}{}",
        NextSegment(*next_base)
    )]
    Misplaced {
        /// Where the log ends.
        offset: i64,
        /// The base offset of the batch.
        first_offset: i64,
        /// Its last offset (inclusive).
        last_offset: i64,
        /// Base offset of the next segment, if that is at or below the last offset.
        next_base: Option<i64>,
    },
    /// A batch of a message format that is not supported. It is never cut.
    #[error(
        "a batch at or above offset {offset} has message format {magic}, which this version cannot read"
    )]
    UnknownFormat {
        /// The end of the log before it.
        offset: i64,
        /// The number of the format.
        magic: i8,
    },
    /// Records are gone from the end of the log.
    #[error("it ends at offset {offset}, but offsets below {synced_end} were synced")]
    Lost {
        /// The log end that is left.
        offset: i64,
        /// Everything below was synced.
        synced_end: i64,
    },
    /// Records are gone from the beginning of the log. It is readable behind them.
    #[error("offsets {offset} to {last_offset} were synced and are gone from its beginning")]
    Beginning {
        /// The log start offset that was checkpointed.
        offset: i64,
        /// The last offset that is missing (inclusive).
        last_offset: i64,
    },
    /// The checkpointed log start is above the log end. Log starts are checkpointed once everything below them was synced,
    /// so that either the checkpoint is wrong or records are gone.
    #[error(
        "its log start is checkpointed at offset {log_start_offset}, but it ends at offset {offset}{}",
        Synced { below: *synced_end, end: *offset }
    )]
    LogStart {
        /// The log end that is left.
        offset: i64,
        /// The log start offset that was checkpointed.
        log_start_offset: i64,
        /// Everything below was synced, as far as is known: records are gone if this is above the log end.
        synced_end: i64,
    },
    /// Records are gone from the middle of the log.
    #[error("offsets {offset} to {last_offset} were synced and are gone")]
    Gap {
        /// The first offset that is missing.
        offset: i64,
        /// The last one (inclusive).
        last_offset: i64,
    },
}

/// Names the next segment, if a batch reaches it.
struct NextSegment(Option<i64>);

impl fmt::Display for NextSegment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(next_base) = self.0 else { return Ok(()) };
        write!(formatter, ", but the next segment is {}", file_name(next_base, FileKind::Log))
    }
}

/// Says what was synced, if that is more than is left.
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
    /// Whether it may be cut. Only bytes that are known to be damaged are cut.
    pub fn may_be_cut(&self) -> bool {
        !matches!(self, Damage::UnknownFormat { .. })
    }

    /// Offset of the first record that cannot be read: the log end that is left, except of damage to its beginning.
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

/// Why nothing was appended.
#[derive(Debug, Error)]
pub enum AppendError {
    /// The batch itself is refused.
    #[error(transparent)]
    Invalid(#[from] ValidateError),
    /// The batch does not fit the state of its producer.
    #[error(transparent)]
    Producer(#[from] ProducerError),
    /// The batch, as it would be stored, does not fit a segment.
    #[error("batch of {size} bytes is larger than a segment of {segment_bytes}")]
    LargerThanSegment {
        /// Bytes of the batch.
        size: usize,
        /// `segment.bytes`.
        segment_bytes: i32,
    },
    /// A follower's batch fails its CRC.
    #[error("batch at offset {offset} fails its checksum")]
    Corrupt {
        /// Its base offset.
        offset: i64,
    },
    /// A follower's batch does not begin at the log end.
    #[error("batch begins at offset {found}, not at the log end {expected}")]
    UnexpectedOffset {
        /// The log end offset.
        expected: i64,
        /// The batch's base offset.
        found: i64,
    },
    /// Of several batches some are in the log already and others are not.
    #[error("{duplicates} of {count} batches were appended before: leave those out")]
    PartlyDuplicate {
        /// How many were.
        duplicates: usize,
        /// Of how many.
        count: usize,
    },
    /// The batch is of an older leader epoch than the log.
    #[error("leader epoch {given} is older than the log's {current}")]
    StaleLeaderEpoch {
        /// The log's latest epoch.
        current: LeaderEpoch,
        /// The epoch given.
        given: LeaderEpoch,
    },
    /// A batch of the same producer before it was refused, and comes again: this one has to come after it.
    #[error("an earlier batch of this producer was refused: send both again")]
    BehindRefused,
    /// The log cannot be written.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why nothing was read.
#[derive(Debug, Clone, Error)]
pub enum ReadError {
    /// The offset lies before the log start or behind the log end.
    #[error(
        "offset {offset} is out of range: log start offset {log_start_offset}, log end offset {log_end_offset}"
    )]
    OffsetOutOfRange {
        /// The offset asked for.
        offset: i64,
        /// First offset that can be read.
        log_start_offset: i64,
        /// Exclusive end.
        log_end_offset: i64,
    },
    /// The log cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why a log cannot be opened.
#[derive(Debug, Clone, Error)]
pub enum OpenError {
    /// A file cannot be read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A file that cannot be rebuilt is not what its name says.
    #[error("{path} is malformed: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
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
    /// The directory belongs to another incarnation of the topic.
    #[error("{path} belongs to another topic of the same name")]
    TopicIdMismatch {
        /// The partition's directory.
        path: PathBuf,
    },
    /// The directory is a copy of another partition's.
    #[error(
        "{path} has the files of partition {found} of its topic: restore its own files, or move it away"
    )]
    OtherPartition {
        /// The partition's directory.
        path: PathBuf,
        /// The partition that its `partition.metadata` names.
        found: i32,
    },
    /// Other processes changed the log's segments each time that it was looked at.
    #[error("{path} changed each of the {looks} times that it was looked at: open it again")]
    Changing {
        /// The partition's directory.
        path: PathBuf,
        /// Times that it was looked at.
        looks: usize,
    },
    /// Another process, or another part of this one, holds the directory.
    #[error("{reason}")]
    Locked {
        /// The directory.
        path: PathBuf,
        /// Who has it.
        reason: String,
    },
}
