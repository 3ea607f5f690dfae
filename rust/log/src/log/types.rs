//! What goes into a log's operations and what comes out.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use pykafka_record::LeaderEpoch;

use crate::buffer_pool::BufferPool;
use crate::clock::Clock;
use crate::config::LogConfig;
use crate::directory::checkpoint::PartitionIdentity;
use crate::disk::Disk;
use crate::log::Damage;
use crate::log::producer_state::AppendOrigin;
use crate::log::verification::TransactionRule;

/// What a log needs from outside. It reads no other clock, disk or randomness.
#[derive(Clone)]
pub struct LogOptions {
    /// The partition's directory, `<topic>-<partition>`; it need not exist.
    pub dir: PathBuf,
    /// The topic's settings.
    pub config: Arc<LogConfig>,
    /// Where files are.
    pub disk: Arc<dyn Disk>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// What the checkpoints tell of it.
    pub checkpointed: Checkpointed,
    /// What to do about damage.
    pub on_damage: OnDamage,
    /// Whether the directory was closed cleanly, so that nothing needs recovery.
    pub clean: bool,
    /// Written to `partition.metadata`, and compared with its contents if the file is there.
    pub identity: Option<PartitionIdentity>,
    /// `producer.id.expiration.ms`.
    pub producer_id_expiration_ms: i64,
    /// Touch nothing on disk: what needs recovery is recovered in memory only.
    pub read_only: bool,
    /// Where `segment.jitter.ms` draws from.
    pub jitter_seed: u64,
    /// Buffers of all logs of a process.
    pub buffers: Arc<BufferPool>,
}

/// What the checkpoints of a data directory tell of one log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checkpointed {
    /// Everything below was synced: a log that ends before it is damaged. Without a clean stop, segments that reach beyond
    /// it are recovered.
    pub recovery_point: i64,
    /// 0 for none. After a clean stop a log that ends before it is damaged.
    pub high_watermark: i64,
    /// Where the log begins. A log whose first segment begins behind it lacks records; without one nothing is compared.
    pub log_start_offset: Option<i64>,
    /// Offsets below may be missing between segments: the log was compacted up to there, or recovery or a person took it as
    /// it is. 0 for none.
    pub cleaner_offset: i64,
    /// Whether it lies in no data directory and has no recovery points, as a partition that was
    /// copied alone. Compaction may have left its gaps, unless an index contradicts.
    pub is_copy: bool,
}

/// What opening a log may do about damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamage {
    /// Nothing: the log is readable up to the damage and refuses writes.
    #[default]
    Keep,
    /// Cut where the damage begins, if everything below the recovery point stays; else as `Keep`. For logs that do not
    /// promise more: a power cut leaves damage among what was not synced.
    CutUnsynced,
    /// Cut where the damage begins, whatever goes. Apache Kafka always does that.
    Cut,
}

/// What opening a log found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Segments whose batches were checked one by one and whose indexes were rebuilt.
    pub segments_recovered: u32,
    /// Bytes cut off that were not just preallocated zeros.
    pub truncated_bytes: u64,
    /// The log end left by that cut.
    pub truncated_at: Option<i64>,
    /// Damage that was left as it is: the log ends there for readers, and writes are refused.
    pub damage: Option<Damage>,
    /// Bytes behind that damage that are not zeros.
    pub damaged_bytes: u64,
    /// Where the last gap between segments ends that was taken as it is, since nothing in it was synced.
    pub gaps_below: Option<i64>,
    /// Derived files that were unreadable and rebuilt, and offsets that are missing, in words for a log line.
    pub warnings: Vec<String>,
}

impl Recovery {
    /// The log end for readers of a damaged log.
    pub fn damaged_at(&self) -> Option<i64> {
        self.damage.as_ref().map(Damage::offset)
    }
}

/// How a leader appends.
#[derive(Debug, Clone, Copy)]
pub struct AppendOptions {
    /// The leader's epoch, stamped into the batch.
    pub leader_epoch: LeaderEpoch,
    /// Who sends it: decides which checks apply.
    pub origin: AppendOrigin,
    /// How it is judged as part of a transaction.
    pub transaction: TransactionRule,
    /// Sequence of a batch of the same producer and epoch that was refused and comes again: those behind it come after it.
    pub refused_sequence: Option<i32>,
}

impl AppendOptions {
    /// Transactions are vouched for, and nothing was refused before.
    pub const fn new(leader_epoch: LeaderEpoch, origin: AppendOrigin) -> AppendOptions {
        let transaction = TransactionRule::Vouched;
        AppendOptions { leader_epoch, origin, transaction, refused_sequence: None }
    }
}

/// What an append did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendInfo {
    /// Offset of the first record appended, or of the original batch of a duplicate.
    pub first_offset: i64,
    /// Offset of the last record (inclusive).
    pub last_offset: i64,
    /// The largest timestamp appended.
    pub max_timestamp: i64,
    /// The stamp with `LogAppendTime`, the original max timestamp of a duplicate, else −1.
    pub log_append_time_ms: i64,
    /// The log start offset at that moment.
    pub log_start_offset: i64,
    /// The log end offset after it (exclusive).
    pub log_end_offset: i64,
    /// Records appended; those of a duplicate count too.
    pub records_count: i32,
    /// Nothing was appended: the same batch is in the log already.
    pub duplicate: bool,
}

impl AppendInfo {
    /// This append and the `next` one as one.
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

/// Whole batches read.
#[derive(Debug, Clone)]
pub struct FetchData {
    /// Batches as stored, of any message format, concatenated; the first may begin before the
    /// offset asked for.
    pub bytes: Bytes,
    /// Base offset of the first batch, or a lower bound of it
    /// ([`pykafka_record::BatchHeader::first_offset_min`]); the offset asked for when there is
    /// none.
    pub base_offset: i64,
    /// Where to read on: the offset after the last batch, or, where that was the last of its segment, the next
    /// segment's base offset. The offset asked for when there is no batch.
    pub next_offset: i64,
}

/// The offsets of a log, taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogOffsets {
    /// First offset that can be read.
    pub log_start_offset: i64,
    /// Exclusive end.
    pub log_end_offset: i64,
    /// First offset of the oldest undecided transaction, or of one whose marker is above the high watermark.
    pub first_unstable_offset: Option<i64>,
    /// Everything below is on disk, as far as the disk tells the truth.
    pub recovery_point: i64,
    /// The latest leader epoch.
    pub latest_epoch: Option<LeaderEpoch>,
}

/// A record found by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimestampOffset {
    /// The record's offset.
    pub offset: i64,
    /// Its timestamp, milliseconds since the Unix epoch.
    pub timestamp: i64,
    /// The leader epoch of its batch.
    pub leader_epoch: Option<LeaderEpoch>,
}
