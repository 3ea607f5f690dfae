//! What Rust tells Python: requests, completions and facts. They wait in a queue whose size is bounded by connections, open
//! tokens and partitions (`queue`).

pub(crate) mod faults;
pub(crate) mod queue;

use std::sync::Arc;

use bytes::Bytes;
use pykafka_client::SendError;
use pykafka_log::ProducerEntry;
use pykafka_record::{LeaderEpoch, ProducerEpoch, ProducerId};

use self::faults::Faults;
#[cfg(test)]
use self::faults::LogFault;
use crate::request::{ConnectionInfo, Header};
use crate::seam::image::{PartitionId, TopicId};
use crate::seam::requests::Room;

/// The result of a request to another node.
pub type Replied = Result<Bytes, SendError>;

/// Chosen by Python, completed exactly once.
pub type Token = u64;

/// Names in one `TopicsMissing`; what is beyond is asked for again by the client's next Metadata.
const TOPICS_MISSING_MAX: usize = 1_000;

/// A request that Python answers.
#[derive(Debug, Clone)]
pub struct RequestEvent {
    /// Generation-tagged; what `respond` names.
    pub id: u64,
    /// Who asks.
    pub connection: ConnectionInfo,
    /// What is asked, and when it arrived (docs/SEAM.md S6).
    pub header: Header,
    /// What follows the request header.
    pub body: Bytes,
    /// The body's share of the broker's memory: to be kept with it, and with copies of it.
    pub room: Room,
}

/// How a follower stands in the eyes of its leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaStateKind {
    /// Keeps up as a member of the ISR, or may join it.
    CaughtUp,
    /// Behind since `since_ns`, or outside of the ISR and not yet able to join it.
    Lagging,
    /// Keeps up, but its registration is another one than is known, or is not eligible.
    StaleEpoch,
}

impl ReplicaStateKind {
    /// As Python names it.
    pub fn name(self) -> &'static str {
        match self {
            ReplicaStateKind::CaughtUp => "caught_up",
            ReplicaStateKind::Lagging => "lagging",
            ReplicaStateKind::StaleEpoch => "stale_epoch",
        }
    }
}

/// How the data directory stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskStateKind {
    /// Writable.
    Ok,
    /// Appends fail until there is space.
    Full,
    /// A failed sync or a lost device: final.
    Failed,
}

impl DiskStateKind {
    /// As Python names it.
    pub fn name(self) -> &'static str {
        match self {
            DiskStateKind::Ok => "ok",
            DiskStateKind::Full => "full",
            DiskStateKind::Failed => "failed",
        }
    }
}

/// Records for the control plane.
#[derive(Debug, Clone)]
pub struct RecordsRead {
    /// Whole batches; the first may begin before `offset`.
    pub records: Bytes,
    /// Where reading began: what was asked for, or the log start.
    pub offset: i64,
    /// Where to go on.
    pub next_offset: i64,
    /// Exclusive.
    pub log_end_offset: i64,
}

/// A question to the coordinator of a transaction.
#[derive(Debug, Clone)]
pub struct VerifyTransaction {
    /// Chosen by Rust; what `verified` names.
    pub token: Token,
    /// Of the produce request.
    pub transactional_id: Arc<str>,
    /// Of its batches.
    pub producer_id: ProducerId,
    /// Of its batches.
    pub producer_epoch: ProducerEpoch,
    /// Where they go.
    pub partitions: Vec<PartitionId>,
    /// Whether the partitions become part of the transaction, or must be so.
    pub add: bool,
    /// When the request arrived (docs/SEAM.md S6).
    pub received_ns: u64,
}

/// One thing that Python must know.
#[derive(Debug, Clone)]
pub enum Event {
    /// A request to answer.
    Request(Box<RequestEvent>),
    /// The connection of request `id` went away.
    Cancelled {
        /// Of the request.
        id: u64,
    },
    /// Completes `append`.
    Appended {
        /// As given.
        token: Token,
        /// Kafka's code, 0 for success.
        error_code: i16,
        /// Base offset of the batch, -1 on error.
        offset: i64,
    },
    /// Completes a maintenance command.
    Maintained {
        /// As given.
        token: Token,
        /// Kafka's code, 0 for success.
        error_code: i16,
        /// What the command says it is, -1 on error.
        offset: i64,
    },
    /// Completes `describe_log_dirs`.
    LogDirs {
        /// As given.
        token: Token,
        /// Of each log that exists, its size in bytes.
        sizes: Vec<(TopicId, i32, u64)>,
        /// Of the file system; −1 in memory.
        total_bytes: i64,
        /// What is left of it.
        usable_bytes: i64,
    },
    /// Completes `describe_producers`.
    Producers {
        /// As given.
        token: Token,
        /// Kafka's code, 0 for success.
        error_code: i16,
        /// Those that the log remembers.
        producers: Vec<ProducerEntry>,
    },
    /// Completes `read_records`.
    RecordsRead {
        /// As given.
        token: Token,
        /// What was read, or Kafka's code.
        read: Result<RecordsRead, i16>,
    },
    /// A produce request is about to begin a transaction in these partitions; answered by `verified`.
    VerifyTransaction(Box<VerifyTransaction>),
    /// Completes `write_markers`.
    MarkersWritten {
        /// As given.
        token: Token,
        /// Of each marker, in their order: Kafka's code, 0 for success.
        error_codes: Vec<i16>,
    },
    /// Completes `send`.
    Replied {
        /// As given.
        token: Token,
        /// The body of the answer.
        replied: Replied,
    },
    /// Metadata requests that allow auto-creation named these topics.
    TopicsMissing {
        /// Without duplicates.
        names: Vec<Arc<str>>,
        /// Who asked first.
        principal: Arc<str>,
    },
    /// Level.
    PartitionState {
        /// Of the partition.
        topic_id: TopicId,
        /// Index.
        partition: i32,
        /// All that its log has now.
        faults: Faults,
    },
    /// Level.
    Replica {
        /// Of the partition.
        topic_id: TopicId,
        /// Index.
        partition: i32,
        /// Of the leader that saw it.
        leader_epoch: LeaderEpoch,
        /// Node id.
        follower: i32,
        /// The latest.
        state: ReplicaStateKind,
        /// Monotonic; 0 unless lagging.
        since_ns: u64,
    },
    /// Level.
    DiskState {
        /// The latest.
        state: DiskStateKind,
        /// Empty if well.
        reason: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Level {
    TopicsMissing,
    Partition(TopicId, i32),
    Replica(TopicId, i32, i32),
    Disk,
}

impl Event {
    /// The faults of a log that it reports.
    #[cfg(test)]
    pub(crate) fn faults(&self) -> Option<impl Iterator<Item = LogFault>> {
        let Event::PartitionState { faults, .. } = self else { return None };
        Some(faults.iter().map(|(fault, _)| fault))
    }

    fn level(&self) -> Option<Level> {
        match *self {
            Event::TopicsMissing { .. } => Some(Level::TopicsMissing),
            Event::PartitionState { topic_id, partition, .. } => {
                Some(Level::Partition(topic_id, partition))
            }
            Event::Replica { topic_id, partition, follower, .. } => {
                Some(Level::Replica(topic_id, partition, follower))
            }
            Event::DiskState { .. } => Some(Level::Disk),
            _ => None,
        }
    }

    /// Takes over what `newer` says of the same level.
    fn merge(&mut self, newer: Event) {
        match (self, newer) {
            (Event::TopicsMissing { names, .. }, Event::TopicsMissing { names: more, .. }) => {
                for name in more {
                    if names.len() == TOPICS_MISSING_MAX {
                        break;
                    }
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
            }
            // It is final.
            (Event::DiskState { state: DiskStateKind::Failed, .. }, Event::DiskState { .. }) => {}
            (older, newer) => *older = newer,
        }
    }
}
