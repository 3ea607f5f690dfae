//! Commands of the metadata quorum to its log on this node, in addition to appends: batches of
//! other nodes, truncation and commits.

use std::sync::Arc;

use bytes::BytesMut;
use pykafka_record::LeaderEpoch;

use super::PartitionTable;
use super::command::TokenWaiter;
use crate::control_api::event::Token;
use crate::control_api::image::PartitionId;
use crate::kafka_error::KafkaError;
use crate::partition::Partition;
use crate::partition::append::outcome::AppendRefusal;
use crate::partition::follower::append::Fetched;
use crate::partition::threads::background::Urgency;
use crate::partition::waiters::AckWaiter;

impl PartitionTable {
    /// Appends a leader's batches unchanged; `Appended` follows when they are synced, or with the
    /// error.
    pub fn append_fetched(
        &self,
        token: Token,
        id: &PartitionId,
        leader_epoch: LeaderEpoch,
        batches: BytesMut,
    ) {
        let waiter = Arc::new(TokenWaiter { events: self.host().events.clone(), token });
        let refuse = |waiter: &TokenWaiter, error| {
            waiter.acknowledged(0, Err(AppendRefusal::Partition(error)));
        };
        let partition = match self.quorum_partition(id) {
            Ok(partition) => partition,
            Err(error) => return refuse(&waiter, error),
        };
        partition.command(Urgency::Asked, move |partition, writer| match writer {
            Ok(writer) => {
                partition.append_fetched(Fetched { batches, leader_epoch, waiter }, writer);
            }
            Err(error) => refuse(&waiter, error),
        });
    }

    /// Truncates the log to `offset`; `Maintained` has the new log end offset.
    pub fn truncate(&self, token: Token, id: &PartitionId, offset: i64) {
        let tell = self.maintained(token);
        match self.quorum_partition(id) {
            Ok(partition) => partition.command(Urgency::Asked, move |partition, writer| {
                tell(writer.and_then(|writer| partition.truncate(offset, writer)));
            }),
            Err(error) => tell(Err(error)),
        }
    }

    /// Empties the log, which then starts at `offset`; `Maintained` has its log start offset.
    pub fn restart_log(&self, token: Token, id: &PartitionId, offset: i64) {
        let tell = self.maintained(token);
        match self.quorum_partition(id) {
            Ok(partition) => partition.command(Urgency::Asked, move |partition, writer| {
                tell(writer.and_then(|writer| partition.restart_log(offset, writer)));
            }),
            Err(error) => tell(Err(error)),
        }
    }

    /// Raises the high watermark, at most to the log end offset. Does nothing without such a
    /// partition.
    pub fn commit(&self, id: &PartitionId, high_watermark: i64) {
        if let Ok(partition) = self.quorum_partition(id) {
            partition.follow_high_watermark(high_watermark);
        }
    }

    /// A partition that the quorum commits.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC_ID`; `INVALID_REQUEST` if the in-sync replicas commit.
    fn quorum_partition(&self, id: &PartitionId) -> Result<Arc<Partition>, KafkaError> {
        let partition = self.partition(id)?;
        if partition.hidden { Ok(partition) } else { Err(KafkaError::InvalidRequest) }
    }
}
