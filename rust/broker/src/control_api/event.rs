//! Events for Python: requests, completions and facts. They wait in a queue whose size is bounded
//! by connections, open tokens and partitions (`queue`).

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
use crate::control_api::image::{PartitionId, TopicId};
use crate::control_api::requests::Room;
use crate::request::{ConnectionInfo, Header};

/// The result of a request to another node.
pub type Replied = Result<Bytes, SendError>;

/// Identifies a command; chosen by Python, completed exactly once.
pub type Token = u64;

/// Maximum names in one `TopicsMissing`; the client's next Metadata requests the others again.
const TOPICS_MISSING_MAX: usize = 1_000;

/// A request that Python handles.
#[derive(Debug, Clone)]
pub struct RequestEvent {
    /// The id for `respond`; includes a generation.
    pub id: u64,
    /// The client's connection.
    pub connection: ConnectionInfo,
    /// The request header, and the arrival time (docs/PLANES.md S6).
    pub header: Header,
    /// The request without its header.
    pub body: Bytes,
    /// The body's share of the broker's memory: must be kept with the body and its copies.
    pub room: Room,
}

/// State of a follower, as its leader sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaStateKind {
    /// A member of the ISR that keeps up, or a follower that may join it.
    CaughtUp,
    /// Lagging since `since_ns`, or outside of the ISR and not yet able to join it.
    Lagging,
    /// Keeps up, but its registration differs from the known one, or is not eligible.
    StaleEpoch,
}

impl ReplicaStateKind {
    /// The name in Python.
    pub fn name(self) -> &'static str {
        match self {
            ReplicaStateKind::CaughtUp => "caught_up",
            ReplicaStateKind::Lagging => "lagging",
            ReplicaStateKind::StaleEpoch => "stale_epoch",
        }
    }
}

/// State of the data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskStateKind {
    /// Writable.
    Ok,
    /// Full: appends fail until there is space.
    Full,
    /// A failed sync or a lost device; permanent.
    Failed,
}

impl DiskStateKind {
    /// The name in Python.
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
    /// Start of the read: the requested offset, or the log start offset.
    pub offset: i64,
    /// Offset of the next read.
    pub next_offset: i64,
    /// Exclusive.
    pub log_end_offset: i64,
}

/// A query to the coordinator of a transaction.
#[derive(Debug, Clone)]
pub struct VerifyTransaction {
    /// The token for `verified`; chosen by Rust.
    pub token: Token,
    /// The transactional id of the produce request.
    pub transactional_id: Arc<str>,
    /// The value in the batches of the request.
    pub producer_id: ProducerId,
    /// The value in the batches of the request.
    pub producer_epoch: ProducerEpoch,
    /// The partitions of the batches.
    pub partitions: Vec<PartitionId>,
    /// Whether the partitions are added to the transaction; otherwise they must be part of it.
    pub add: bool,
    /// When the request arrived (docs/PLANES.md S6).
    pub received_ns: u64,
}

/// An event for Python.
#[derive(Debug, Clone)]
pub enum Event {
    /// A request that needs a response.
    Request(Box<RequestEvent>),
    /// The connection of request `id` was closed.
    Cancelled {
        /// Id of the request.
        id: u64,
    },
    /// Completes `append` and `append_fetched`.
    Appended {
        /// Token of the command.
        token: Token,
        /// Kafka's code, 0 for success.
        error_code: i16,
        /// Base offset of the batch, -1 on error.
        offset: i64,
    },
    /// Completes a maintenance command, or `reserve_response`.
    Maintained {
        /// Token of the command.
        token: Token,
        /// Kafka's code, 0 for success.
        error_code: i16,
        /// The meaning depends on the command; -1 on error.
        offset: i64,
    },
    /// Completes `describe_log_dirs`.
    LogDirs {
        /// Token of the command.
        token: Token,
        /// Size in bytes of each existing log.
        sizes: Vec<(TopicId, i32, u64)>,
        /// Size of the file system; −1 in memory.
        total_bytes: i64,
        /// Free space of the file system.
        usable_bytes: i64,
    },
    /// Completes `describe_producers`.
    Producers {
        /// Token of the command.
        token: Token,
        /// Kafka's code, 0 for success.
        error_code: i16,
        /// The producers in the log's state.
        producers: Vec<ProducerEntry>,
    },
    /// Completes `read_records`.
    RecordsRead {
        /// Token of the command.
        token: Token,
        /// The records, or Kafka's code.
        read: Result<RecordsRead, i16>,
    },
    /// A produce request starts a transaction in these partitions; Python responds with `verified`.
    VerifyTransaction(Box<VerifyTransaction>),
    /// Completes `write_markers`.
    MarkersWritten {
        /// Token of the command.
        token: Token,
        /// Kafka's code for each marker, in order; 0 for success.
        error_codes: Vec<i16>,
    },
    /// Completes `send`.
    Replied {
        /// Token of the command.
        token: Token,
        /// The body of the response, or the error.
        replied: Replied,
    },
    /// Metadata requests that allow auto-creation named these topics.
    TopicsMissing {
        /// Without duplicates.
        names: Vec<Arc<str>>,
        /// The principal of the first request.
        principal: Arc<str>,
    },
    /// The faults of a partition's log; a level, so a newer report replaces an older one.
    PartitionState {
        /// Topic of the partition.
        topic_id: TopicId,
        /// Index of the partition in the topic.
        partition: i32,
        /// All current faults of the log.
        faults: Faults,
    },
    /// The state of a follower; a level.
    Replica {
        /// Topic of the partition.
        topic_id: TopicId,
        /// Index of the partition in the topic.
        partition: i32,
        /// The epoch of the leader that reports it.
        leader_epoch: LeaderEpoch,
        /// Node id of the follower.
        follower: i32,
        /// The latest state.
        state: ReplicaStateKind,
        /// Monotonic; 0 unless lagging.
        since_ns: u64,
    },
    /// The state of the data directory; a level.
    DiskState {
        /// The latest state.
        state: DiskStateKind,
        /// Empty if the state is `Ok`.
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
    /// The faults in a `PartitionState`.
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

    /// Updates this event with a newer one of the same level.
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
            // `Failed` is permanent.
            (Event::DiskState { state: DiskStateKind::Failed, .. }, Event::DiskState { .. }) => {}
            (older, newer) => *older = newer,
        }
    }
}
