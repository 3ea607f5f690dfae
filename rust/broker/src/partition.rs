//! One partition on this broker: its replication state, its log and everyone who waits on it, under one mutex.
//!
//! Theory of operation. Every change (append, sync done, follower fetch, transition) is a [`turn::Turn`]: it runs under
//! the mutex, which nobody holds while a disk works, and calls `progress`, which recomputes the high watermark from what the change made true and collects whom
//! to wake; they are woken when the turn ends, after the mutex is released. Reads take the mutex only to check leadership and to take the offsets; the bytes
//! are read outside of it, bounded by those offsets (contract/replication.md#10).
//!
//! A batch counts for the high watermark, and so for acks=1 as well as acks=all, only when its promise holds: in
//! `fsync` mode when a finished sync covers it, otherwise once it is in the log. So in the other modes every
//! acknowledgement is there when the append returns, and nothing waits.
//!
//! What changes the log's files (appends, opening, retention, deletion, the start of a leader epoch) is done by the one
//! thread that has the right to write, without the mutex (see [`work`]). Nobody else waits for a disk: threads that serve
//! connections, and the control thread, leave what they want in the partition's queue. A thread that serves connections
//! writes one batch itself while the disk is quick (see [`append`]).
//!
//! The log is opened by the first call that needs it: an idle partition is this struct and a line in the image.

mod append;
#[cfg(test)]
mod blocked_tests;
pub(crate) mod compaction;
mod describe;
pub(crate) mod fetcher;
mod follow;
mod follower_log;
mod idle;
pub(crate) mod large;
#[cfg(test)]
mod large_tests;
mod leaving;
mod log_starts;
mod lookup;
pub(crate) mod maintenance;
mod open;
pub(crate) mod opening;
pub(crate) mod partition_table;
pub(crate) mod purgatory;
mod read;
mod refused;
mod replicate;
pub mod replication;
pub(crate) mod storage;
mod sync;
pub(crate) mod threads;
mod transition;
mod turn;
mod verification;
pub mod waiters;
mod work;

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

use self::large::LargeRooms;
pub use append::{Append, AppendOutcome, AppendRefusal};
pub(crate) use large::LargeRoom;
pub use lookup::{LookUp, OffsetAnswer, OffsetQuery};
pub use read::{Isolation, Read, ReadRequest};
pub use replicate::Replica;

use self::leaving::{Departure, Leaving};
use self::log_starts::LogStarts;
use self::refused::Refused;
use self::replication::{CommitRule, EligibleBrokers, Replication};
use self::threads::lane::Lane;
use self::threads::pace::Pace;
use self::threads::pool::{MayWait, Pool};
use self::turn::{Guarded, Turn};
use self::waiters::Waiters;
use self::work::WorkQueue;
use crate::kafka_error::KafkaError;
use crate::seam::event::faults::Faults;
use crate::seam::event::queue::EventQueue;
use crate::seam::image::TopicId;
use crate::seam::log_ring::{Level, LogRing};
use crate::seam::statistics::AppendStatistics;

const TARGET: &str = "broker.partition";

/// What all partitions of one broker share.
pub struct Host {
    /// This broker.
    pub node_id: i32,
    /// The broker's clock.
    pub clock: Arc<dyn Clock>,
    /// Facts for Python.
    pub events: Arc<EventQueue>,
    /// Opens logs.
    pub directory: LogDirectory,
    /// Whether logs live in memory: then there is nothing to sync.
    pub in_memory: bool,
    /// Brokers that may join an ISR.
    pub eligible: ArcSwap<EligibleBrokers>,
    /// `replica.lag.time.max.ms`: a follower silent for longer does not hold the high watermark back.
    pub replica_lag_ns_max: AtomicU64,
    /// Counts logs of followers in which a batch could not be read; fetchers look at theirs then.
    pub doubts: AtomicU64,
    /// Whether an append last failed for want of space.
    pub is_disk_full: AtomicBool,
    /// Counts what clients append.
    pub appended: AppendStatistics,
    /// Log lines on their way to Python.
    pub log_ring: Arc<LogRing>,
    /// Threads that wait for syncs in the background.
    pub syncer: Pool,
    /// Threads for checkpoints. The stop does not wait for them as for the other pools: they may wait for its end.
    pub checkpointers: Pool,
    /// The thread of probes of the disk. The stop does not wait for it: the disk may hang.
    pub(crate) probers: Pool,
    /// Threads that open logs and write to them.
    pub writers: Pool,
    /// The room for batches that are large.
    pub(crate) large: Arc<LargeRooms>,
    /// How quick the disk has been.
    pub(crate) pace: Pace,
    /// Threads for answers that take long.
    pub workers: Pool,
    /// Threads for deletions, retention and other upkeep.
    pub(crate) lane: Lane,
    /// Deleted partitions whose directories are still there.
    pub(crate) leaving: Leaving,
    /// Log starts that are not durable yet.
    pub(crate) log_starts: LogStarts,
    /// Partitions with unsynced data and a time to sync it by (`flush.ms`).
    pub dirty: Mutex<Vec<Arc<Partition>>>,
    /// Told when one is listed, and when settings change.
    pub upkeep_changed: Notify,
    /// Partitions that are led here and have followers, and some that were.
    pub(crate) replicated: Mutex<Vec<Weak<Partition>>>,
    /// Partitions whose logs were used and not released since.
    pub listed: Mutex<Vec<Weak<Partition>>>,
}

/// See the module.
pub struct Partition {
    /// Name of the topic.
    pub topic: Arc<str>,
    /// Id of the topic; a recreated topic has another one.
    pub topic_id: TopicId,
    /// Within the topic.
    pub index: i32,
    me: Weak<Partition>,
    host: Arc<Host>,
    /// Whether only the control plane uses it: then every append is synced (contract/replication.md#D1), and the
    /// metadata quorum decides what is committed.
    hidden: bool,
    refused: Refused,
    inner: Guarded,
}

struct Inner {
    replication: Replication,
    log: LogSlot,
    /// As they were last reported.
    faults: Faults,
    /// Of an unopened log, once somebody asked.
    survey: Option<Survey>,
    /// Dirtiness of an unopened log with the present settings, after the first look.
    dirtiness_on_disk: Option<Dirtiness>,
    /// Whether the last attempt to open the log was refused, and the next use tries again.
    is_opening_refused: bool,
    /// The leader epoch in which a batch could not be read: the next follower reads the whole log.
    suspect_in: Option<LeaderEpoch>,
    /// The epoch of damage that was found so: its fetches from after the damage may still arrive.
    damaged_in: Option<LeaderEpoch>,
    config: Arc<LogConfig>,
    queue: WorkQueue,
    waiters: Waiters,
    /// Whether it is in the list of those whose followers are looked at by the clock.
    is_scanned: bool,
    sync: sync::SyncRound,
    idleness: idle::Idleness,
    /// Bytes appended and not yet credited to watching fetches.
    uncredited_bytes: i64,
    /// The last stable offset when it was looked at last, if a transaction held it back.
    unstable_from: Option<i64>,
    /// Raised with everything a fetch might be waiting for, so that a watch never misses a change.
    version: u64,
}

/// What is known of a log before it is opened.
#[derive(Debug, Clone, Copy)]
enum Survey {
    /// It was never appended to.
    Nothing,
    /// This, with its log start offset.
    Done(LogSurvey, i64),
    /// Only recovery can tell.
    Unknown,
}

enum LogSlot {
    Unopened,
    Open(Arc<Log>),
    /// An I/O error is final until restart (contract/replication.md#D2).
    Failed,
    /// Its directory goes.
    Left(Departure),
}

/// Log start, high watermark, last stable and log end offset: one consistent snapshot. All but the first are ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionOffsets {
    /// First offset that can be read.
    pub log_start_offset: i64,
    /// Exclusive end of what is committed.
    pub high_watermark: i64,
    /// Exclusive end of what is committed and belongs to no open transaction.
    pub last_stable_offset: i64,
    /// Exclusive end of the log.
    pub log_end_offset: i64,
    /// The leader epoch they hold in.
    pub leader_epoch: LeaderEpoch,
}

impl Partition {
    /// Whether its log is in memory, and so is what is read of it.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.host.in_memory
    }

    /// A partition that no image has assigned yet.
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
            sync: sync::SyncRound::default(),
            idleness: idle::Idleness::default(),
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
            refused: Refused::default(),
            inner: Guarded::new(inner),
        })
    }

    /// The offsets, read together.
    ///
    /// # Errors
    /// `NOT_LEADER_OR_FOLLOWER`, or `KAFKA_STORAGE_ERROR` if the log cannot be opened.
    pub(crate) fn offsets(&self, may_wait: &MayWait) -> Result<PartitionOffsets, KafkaError> {
        self.log(may_wait)?;
        let (turn, log) = self.turn_as_leader(None)?;
        Ok(turn.offsets(&log))
    }

    /// Exclusive end of what is committed, as far as is known.
    pub fn high_watermark(&self) -> i64 {
        self.turn().replication.high_watermark()
    }

    /// Takes note of an error that upkeep, or sending from a file, met in this partition's log.
    pub fn note_storage_error(&self, error: &StorageError) {
        self.turn().storage_failed(error);
    }

    /// The log, if anything has opened it, without opening it.
    pub fn opened_log(&self) -> Option<Arc<Log>> {
        self.turn().opened()
    }

    /// A turn and the log, for the leader of `current_leader_epoch` (`None` for whichever it is).
    fn turn_as_leader(
        &self,
        current_leader_epoch: Option<LeaderEpoch>,
    ) -> Result<(Turn<'_>, Arc<Log>), KafkaError> {
        let turn = self.turn();
        turn.check_leader(current_leader_epoch)?;
        turn.with_log()
    }

    /// The same for a reader, whom a follower may serve as well.
    fn turn_to_read(&self, request: &ReadRequest<'_>) -> Result<(Turn<'_>, Arc<Log>), KafkaError> {
        let turn = self.turn();
        if request.any_replica {
            turn.check_replica(request.current_leader_epoch)?;
        } else {
            turn.check_leader(request.current_leader_epoch)?;
        }
        turn.with_log()
    }

    /// Reports what recovery cut off and what it had to rebuild: nobody acknowledged it, but somebody may have seen it.
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

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Partition({}-{})", self.topic, self.index)
    }
}
