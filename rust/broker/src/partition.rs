//! One partition on this broker: its replication state, its log and everything that waits for it,
//! under one mutex.
//!
//! Theory of operation. Every change (append, finished sync, follower fetch, transition) is a
//! [`guard::PartitionGuard`]. It runs under the mutex, which is never held during disk I/O, and
//! calls `progress`, which recomputes the high watermark and collects the waiters to wake. They are
//! woken when the guard is dropped, after the mutex is released. Reads lock the mutex only to check
//! leadership and to read the offsets; the bytes are read without it, within those offsets
//! (contract/replication.md#10).
//!
//! A batch counts for the high watermark, and so for acks=1 as well as acks=all, only when its
//! promise holds: in `fsync` mode after a sync that covers it, otherwise as soon as it is in the
//! log. So in the other modes every acknowledgement is due when the append returns, and nothing
//! waits.
//!
//! Changes of the log's files (appends, opening, retention, deletion, the start of a leader epoch)
//! are made by the one thread that has the writer token, without the mutex (see [`write_queue`]).
//! No other thread waits for a disk: connection threads and the control thread put their work into
//! the partition's queue. A connection thread writes one batch itself while the disk is fast (see
//! [`append`]).
//!
//! The first call that needs the log opens it. An idle partition is only this struct and an entry
//! of the image.

pub(crate) mod append;
mod apply_assignment;
#[cfg(test)]
mod blocked_tests;
pub(crate) mod follower;
pub(crate) mod follower_fetch;
mod guard;
pub(crate) mod log;
mod log_starts;
pub(crate) mod partition_table;
mod pending_deletions;
pub(crate) mod purgatory;
pub mod replication;
pub(crate) mod threads;
pub mod waiters;
pub(crate) mod write_queue;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use pykafka_forks::Mutex;
use pykafka_log::{
    Clock, Dirtiness, Log, LogConfig, LogDirectory, LogSurvey, Recovery, StorageError,
};
use pykafka_record::LeaderEpoch;
use tokio::sync::Notify;

use self::append::large_batches::LargeBatchPermits;
use self::append::retry_order::RetryOrder;
use self::guard::guarded::Guarded;
use self::log::open_log::log_slot::LogSlot;
use self::log::sync::round::SyncRound;
use self::log_starts::moved::LogStarts;
use self::pending_deletions::names::PendingDeletions;
use self::replication::{CommitRule, EligibleBrokers, Replication};
use self::threads::background::BackgroundQueue;
use self::threads::disk_latency::DiskLatency;
use self::threads::may_wait::MayWait;
use self::threads::pool::Pool;
use self::waiters::Waiters;
use crate::control_api::event::faults::Faults;
use crate::control_api::event::queue::EventQueue;
use crate::control_api::image::TopicId;
use crate::control_api::log_ring::{Level, LogRing};
use crate::control_api::statistics::AppendStatistics;
use crate::kafka_error::KafkaError;
use crate::network::reply::ReadFailures;
use crate::partition::write_queue::queue::WorkQueue;

const TARGET: &str = "broker.partition";

/// The state that all partitions of one broker share.
pub struct Host {
    /// Node id of this broker.
    pub node_id: i32,
    /// The broker's clock.
    pub clock: Arc<dyn Clock>,
    /// Events for Python.
    pub events: Arc<EventQueue>,
    /// The directory that opens the logs.
    pub directory: LogDirectory,
    /// True if logs are in memory, where no sync is needed.
    pub in_memory: bool,
    /// Brokers that may join an ISR.
    pub eligible: ArcSwap<EligibleBrokers>,
    /// `replica.lag.time.max.ms`: a follower that did not fetch for longer does not hold back the
    /// high watermark.
    pub replica_lag_ns_max: AtomicU64,
    /// Number of times that a batch in a follower's log could not be read; fetchers check their
    /// logs when it changes.
    pub doubts: AtomicU64,
    /// True after the disk refused a write for lack of space, until enough of it is free again.
    pub is_disk_full: AtomicBool,
    /// Statistics of the batches that clients append.
    pub appended: AppendStatistics,
    /// Log lines for Python.
    pub log_ring: Arc<LogRing>,
    /// Threads that wait for background syncs.
    pub syncer: Pool,
    /// Threads for checkpoints. Unlike for the other pools, a stop does not wait for these threads,
    /// because they may wait for the end of the stop.
    pub checkpointers: Pool,
    /// Thread that probes the disk. A stop does not wait for it, because the disk may hang.
    pub(crate) probers: Pool,
    /// Threads that open logs and write to them.
    pub writers: Pool,
    /// The permit for large batches.
    pub(crate) large: Arc<LargeBatchPermits>,
    /// Recent write times of the disk.
    pub(crate) disk_latency: DiskLatency,
    /// Threads for requests that take long.
    pub workers: Pool,
    /// Threads for deletions, retention and other upkeep.
    pub(crate) background: BackgroundQueue,
    /// Deleted partitions whose directories still exist.
    pub(crate) pending_deletions: PendingDeletions<Partition>,
    /// Log start offsets that are not durable yet.
    pub(crate) log_starts: LogStarts,
    /// Partitions with unsynced data and a time to sync it by (`flush.ms`).
    pub dirty: Mutex<Vec<Arc<Partition>>>,
    /// Notified when a partition is added, and when settings change.
    pub upkeep_changed: Notify,
    /// Partitions that are led here and have followers; may contain former ones.
    pub(crate) replicated: Mutex<Vec<Weak<Partition>>>,
    /// Partitions whose logs were used since they were last released.
    pub listed: Mutex<Vec<Weak<Partition>>>,
}

/// A partition; its methods never wait for the disk unless they take a [`MayWait`].
pub struct Partition {
    /// Name of the topic.
    pub topic: Arc<str>,
    /// Id of the topic; a recreated topic has another one.
    pub topic_id: TopicId,
    /// Index of the partition in the topic.
    pub index: i32,
    me: Weak<Partition>,
    host: Arc<Host>,
    /// True if only the control plane uses it: then every append is synced
    /// (contract/replication.md#D1), and the metadata quorum determines the high watermark.
    hidden: bool,
    retry_order: RetryOrder,
    inner: Guarded<Inner>,
}

struct Inner {
    replication: Replication,
    log: LogSlot,
    /// The last reported faults.
    faults: Faults,
    /// Survey of an unopened log, after the first request for it.
    survey: Option<Survey>,
    /// Dirtiness of an unopened log with the current settings, after the first request for it.
    dirtiness_on_disk: Option<Dirtiness>,
    /// True if the last attempt to open the log failed; the next use retries.
    is_opening_refused: bool,
    /// The leader epoch in which a batch could not be read; before the replica follows, the whole
    /// log is checked.
    suspect_in: Option<LeaderEpoch>,
    /// The leader epoch in which such a check found damage or a later epoch: fetch requests for
    /// later offsets may still reach the leader.
    damaged_in: Option<LeaderEpoch>,
    config: Arc<LogConfig>,
    queue: WorkQueue<Partition>,
    waiters: Waiters,
    /// True if the partition is listed for the periodic scan of followers.
    is_scanned: bool,
    sync: SyncRound,
    idleness: Idleness,
    /// Appended bytes that are not yet credited to waiting fetches.
    uncredited_bytes: i64,
    /// The last stable offset at the last check, if a transaction held it back.
    unstable_from: Option<i64>,
    /// Increased with every change that a fetch might wait for, so that a watch misses no change.
    version: u64,
}

/// The idle time of a partition.
#[derive(Debug, Default)]
struct Idleness {
    is_listed: bool,
    ticks: u8,
}

/// Facts about a log before it is opened.
#[derive(Debug, Clone, Copy)]
enum Survey {
    /// Nothing was ever appended.
    Nothing,
    /// The survey and the log start offset.
    Done(LogSurvey, i64),
    /// Only recovery can determine them.
    Unknown,
}

/// A consistent snapshot of the offsets. All except the log start offset are exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionOffsets {
    /// First readable offset.
    pub log_start_offset: i64,
    /// High watermark (exclusive).
    pub high_watermark: i64,
    /// Last stable offset (exclusive): the end of the committed records that do not belong to an
    /// open transaction.
    pub last_stable_offset: i64,
    /// Log end offset (exclusive).
    pub log_end_offset: i64,
    /// The leader epoch of the snapshot.
    pub leader_epoch: LeaderEpoch,
}

impl Partition {
    /// True if the log, and so the records that are read from it, are in memory.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.host.in_memory
    }

    /// Creates a partition that has no assignment yet.
    pub fn new(
        host: Arc<Host>,
        topic: Arc<str>,
        topic_id: TopicId,
        index: i32,
        hidden: bool,
        config: Arc<LogConfig>,
    ) -> Arc<Partition> {
        let commit_rule = if hidden { CommitRule::Quorum } else { CommitRule::InSync };
        let inner = Inner {
            replication: Replication::new(host.node_id).committed_by(commit_rule),
            log: LogSlot::Unopened,
            faults: Faults::default(),
            survey: None,
            dirtiness_on_disk: None,
            is_opening_refused: false,
            suspect_in: None,
            damaged_in: None,
            config,
            queue: WorkQueue::default(),
            waiters: Waiters::default(),
            is_scanned: false,
            sync: SyncRound::default(),
            idleness: Idleness::default(),
            uncredited_bytes: 0,
            unstable_from: None,
            version: 0,
        };
        Arc::new_cyclic(|me| Partition {
            topic,
            topic_id,
            index,
            me: me.clone(),
            host,
            hidden,
            retry_order: RetryOrder::default(),
            inner: Guarded::new(inner),
        })
    }

    /// Returns a consistent snapshot of the offsets.
    ///
    /// # Errors
    /// `NOT_LEADER_OR_FOLLOWER`, or `KAFKA_STORAGE_ERROR` if the log cannot be opened.
    pub(crate) fn offsets(&self, may_wait: &MayWait) -> Result<PartitionOffsets, KafkaError> {
        self.log(may_wait)?;
        let (guard, log) = self.lock_as_leader(None)?;
        Ok(guard.offsets(&log))
    }

    /// The high watermark (exclusive), as far as it is known here.
    pub fn high_watermark(&self) -> i64 {
        self.lock().replication.high_watermark()
    }

    /// The log end offset of the first follower.
    #[cfg(test)]
    pub(crate) fn follower_log_end_offset(&self) -> i64 {
        self.lock().replication.followers()[0].log_end_offset
    }

    /// Handles an error of this partition's log that occurred during upkeep or while sending from a
    /// file.
    pub fn note_storage_error(&self, error: &StorageError) {
        self.lock().storage_failed(error);
    }

    /// The log if it is open; does not open it.
    pub fn opened_log(&self) -> Option<Arc<Log>> {
        self.lock().opened()
    }

    /// Reports truncated and rebuilt data of a recovery: it was not acknowledged, but may have been
    /// read.
    fn report_recovery(&self, recovery: &Recovery) {
        let (topic, index) = (&self.topic, self.index);
        let warn = |text: String| {
            let text = format!("{topic}-{index}: recovery {text}");
            self.host.log_ring.report(Level::Warning, TARGET, text);
        };
        if let (Some(offset), bytes @ 1..) = (recovery.truncated_at, recovery.truncated_bytes) {
            warn(format!("cut a torn tail of {bytes} bytes: the log ends at offset {offset}"));
        }
        for warning in &recovery.warnings {
            warn(format!("found {warning}"));
        }
    }
}

impl ReadFailures for Partition {
    fn read_failed(&self, error: &StorageError) {
        self.note_storage_error(error);
    }
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Partition({}-{})", self.topic, self.index)
    }
}
