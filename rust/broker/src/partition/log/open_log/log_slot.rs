//! The log of a partition, before, while and after it is open.

use std::sync::Arc;

use pykafka_log::Log;

use crate::kafka_error::KafkaError;

/// The log of a partition.
pub(in crate::partition) enum LogSlot {
    Unopened,
    Open(Arc<Log>),
    /// Failed by an I/O error, which is final until restart (contract/replication.md#D2).
    Failed,
    /// Its directory is being removed.
    Left(Departure),
}

/// The reason why this broker does not have a partition any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::partition) enum Departure {
    /// The topic is deleted.
    Deleted,
    /// Its replicas are only on other brokers now.
    Moved,
}

impl Departure {
    /// The error of requests to the partition, as in Kafka's `ReplicaManager.getPartitionOrError`.
    pub(in crate::partition) fn error(self) -> KafkaError {
        match self {
            Departure::Deleted => KafkaError::UnknownTopicId,
            Departure::Moved => KafkaError::NotLeaderOrFollower,
        }
    }
}
