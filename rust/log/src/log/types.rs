//! Arguments and results of a log's operations.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use pykafka_record::LeaderEpoch;

use crate::buffer_pool::BufferPool;
use crate::checkpoint::PartitionIdentity;
use crate::clock::Clock;
use crate::config::LogConfig;
use crate::disk::Disk;
use crate::error::Damage;
use crate::log::producer_state::AppendOrigin;
use crate::log::verification::TransactionRule;

/// The dependencies of a log. It uses no other clock, disk or source of randomness.
#[derive(Clone)]
pub struct LogOptions {
    /// The partition's directory, `<topic>-<partition>`; it need not exist.
    pub dir: PathBuf,
    /// Settings of the topic.
    pub config: Arc<LogConfig>,
    /// The disk that holds the files.
    pub disk: Arc<dyn Disk>,
    /// Source of time.
    pub clock: Arc<dyn Clock>,
    /// The log's entries in the checkpoints.
    pub checkpointed: Checkpointed,
    /// How damage is treated.
    pub on_damage: OnDamage,
    /// True if the directory was closed cleanly, so that no recovery is needed.
    pub clean: bool,
    /// Compared with the content of `partition.metadata`, or written to it if the file does not
    /// exist.
    pub identity: Option<PartitionIdentity>,
    /// `producer.id.expiration.ms`.
    pub producer_id_expiration_ms: i64,
    /// True to change nothing on disk: recovery happens in memory only.
    pub read_only: bool,
    /// Seed of the random numbers for `segment.jitter.ms`.
    pub jitter_seed: u64,
    /// Buffers that all logs of a process share.
    pub buffers: Arc<BufferPool>,
}

/// Fields that do not change while a log is open.
pub(crate) struct Shared {
    pub(crate) dir: Arc<Path>,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) buffers: Arc<BufferPool>,
    pub(crate) identity: Option<PartitionIdentity>,
}

/// The entries of one log in the checkpoints of a data directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checkpointed {
    /// Everything below was synced: a log that ends before it is damaged. Without a clean stop,
    /// segments that reach beyond it are recovered.
    pub recovery_point: i64,
    /// 0 without an entry. After a clean stop a log that ends before it is damaged.
    pub high_watermark: i64,
    /// The log start offset. A log whose first segment starts above it lacks records; without an
    /// entry this is not checked.
    pub log_start_offset: Option<i64>,
    /// Offsets below may be missing between segments, because the log was compacted up to there, or
    /// recovery or an administrator accepted a gap. 0 without an entry.
    pub cleaner_offset: i64,
    /// True for a log outside a data directory and without a recovery point, like a copy of a
    /// single partition. Its gaps are attributed to compaction, unless an index contradicts.
    pub is_copy: bool,
}

/// How an open treats damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamage {
    /// Changes nothing: the log is readable up to the damage and refuses writes.
    #[default]
    Keep,
    /// Cuts the log at the damage if everything below the recovery point is kept; otherwise like
    /// `Keep`. For logs that promise no more, since a power cut may damage unsynced records.
    CutUnsynced,
    /// Cuts the log at the damage in any case, as Apache Kafka does.
    Cut,
}

/// Findings and changes of an open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Number of segments whose batches were checked one by one and whose indexes were rebuilt.
    pub segments_recovered: u32,
    /// Number of bytes that were cut, except for preallocated zeros.
    pub truncated_bytes: u64,
    /// The log end offset after that cut.
    pub truncated_at: Option<i64>,
    /// Damage that was kept: the log ends there for readers, and writes are refused.
    pub damage: Option<Damage>,
    /// Number of bytes after that damage, without the zeros at their ends.
    pub damaged_bytes: u64,
    /// End of the last gap between segments that was accepted, since nothing in it was synced.
    pub gaps_below: Option<i64>,
    /// Texts for the log output about derived files that were unreadable and rebuilt, and about
    /// missing offsets.
    pub warnings: Vec<String>,
}

impl Recovery {
    /// The end (exclusive) of the readable part of a damaged log.
    pub fn damaged_at(&self) -> Option<i64> {
        self.damage.as_ref().map(Damage::offset)
    }
}

/// Options of a leader's append.
#[derive(Debug, Clone, Copy)]
pub struct AppendOptions {
    /// The leader's epoch, which is written into the batch.
    pub leader_epoch: LeaderEpoch,
    /// The sender, which decides about the checks.
    pub origin: AppendOrigin,
    /// How transactions are checked.
    pub transaction: TransactionRule,
    /// Sequence of a batch of the same producer and epoch that was rejected and will be retried:
    /// later batches must follow it.
    pub refused_sequence: Option<i32>,
}

impl AppendOptions {
    /// Options for transactions that the caller guarantees, without an earlier rejected batch.
    pub const fn new(leader_epoch: LeaderEpoch, origin: AppendOrigin) -> AppendOptions {
        let transaction = TransactionRule::Vouched;
        AppendOptions { leader_epoch, origin, transaction, refused_sequence: None }
    }
}

/// Result of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendInfo {
    /// Offset of the first record appended, or of the original batch of a duplicate.
    pub first_offset: i64,
    /// Offset of the last record (inclusive).
    pub last_offset: i64,
    /// The largest timestamp appended.
    pub max_timestamp: i64,
    /// The append time with `LogAppendTime`, the original max timestamp of a duplicate, otherwise
    /// −1.
    pub log_append_time_ms: i64,
    /// The log start offset at that time.
    pub log_start_offset: i64,
    /// The log end offset after it (exclusive).
    pub log_end_offset: i64,
    /// Number of appended records, or of those in a duplicate.
    pub records_count: i32,
    /// True if nothing was appended because the batch is in the log already.
    pub duplicate: bool,
}

impl AppendInfo {
    /// Combines this result with that of the `next` append.
    pub(crate) fn followed_by(self, next: AppendInfo) -> AppendInfo {
        if self.records_count == 0 {
            return next;
        }
        AppendInfo {
            first_offset: self.first_offset,
            max_timestamp: self.max_timestamp.max(next.max_timestamp),
            records_count: self.records_count.saturating_add(next.records_count),
            ..next
        }
    }
}

/// Result of a read.
#[derive(Debug, Clone)]
pub struct FetchData {
    /// Whole batches as stored, in any message format, concatenated. The first may start below the
    /// requested offset.
    pub bytes: Bytes,
    /// Base offset of the first batch, or a lower bound of it
    /// ([`pykafka_record::BatchHeader::first_offset_min`]); the requested offset without a batch.
    pub base_offset: i64,
    /// Where to continue: the offset after the last batch, or the next segment's base offset if it
    /// was the last batch of its segment. The requested offset without a batch.
    pub next_offset: i64,
}

/// The offsets of a log at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogOffsets {
    /// First offset that can be read.
    pub log_start_offset: i64,
    /// Log end offset (exclusive).
    pub log_end_offset: i64,
    /// First offset of the oldest open transaction, or of one whose marker is above the high
    /// watermark.
    pub first_unstable_offset: Option<i64>,
    /// Everything below is on disk, if the disk honours syncs.
    pub recovery_point: i64,
    /// The latest leader epoch.
    pub latest_epoch: Option<LeaderEpoch>,
}

/// A record that was found by its timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimestampOffset {
    /// The record's offset.
    pub offset: i64,
    /// Its timestamp, milliseconds since the Unix epoch.
    pub timestamp: i64,
    /// The leader epoch of its batch.
    pub leader_epoch: Option<LeaderEpoch>,
}
