//! ISR proposals in flight, with ids that are unique in this broker.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use crate::control_api::image::{PartitionId, TopicId};
use crate::partition::Partition;
use crate::partition::replication::isr::ProposalId;

/// At most one proposal per partition: the latest. A proposal that an image replaced stays until
/// the partition has another one, or is deleted.
#[derive(Default)]
pub(super) struct Proposals {
    last_id: u64,
    open: HashMap<u64, (Weak<Partition>, ProposalId)>,
    latest: HashMap<PartitionId, u64>,
}

impl Proposals {
    /// Adds a proposal; returns its id.
    pub(super) fn open(&mut self, partition: &Arc<Partition>, proposal: ProposalId) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        if let Some(replaced) = self.latest.insert((partition.topic_id, partition.index), id) {
            self.open.remove(&replaced);
        }
        self.open.insert(id, (Arc::downgrade(partition), proposal));
        id
    }

    /// The proposal, unless it was closed or replaced.
    pub(super) fn find(&self, id: u64) -> Option<(Arc<Partition>, ProposalId)> {
        let (partition, proposal) = self.open.get(&id)?;
        Some((partition.upgrade()?, *proposal))
    }

    /// Removes a settled proposal.
    pub(super) fn close(&mut self, id: u64) {
        let closed = self.open.remove(&id).and_then(|(partition, _)| partition.upgrade());
        if let Some(partition) = closed {
            self.latest.remove(&(partition.topic_id, partition.index));
        }
    }

    /// Removes the proposals of deleted topics.
    pub(super) fn forget(&mut self, is_deleted: impl Fn(&TopicId) -> bool) {
        let open = &mut self.open;
        self.latest.retain(|(topic_id, _), id| {
            let is_kept = !is_deleted(topic_id);
            if !is_kept {
                open.remove(id);
            }
            is_kept
        });
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        assert_eq!(self.open.len(), self.latest.len());
        self.open.len()
    }
}

#[cfg(test)]
mod tests {
    use pykafka_record::LeaderEpoch;

    use crate::control_api::image::delta::ImageDelta;
    use crate::partition::replication::isr::{BrokerState, IsrOutcome};
    use crate::testing::{Broker, NODE, TOPIC, replicated};

    fn leader() -> Broker {
        let mut broker = Broker::in_memory().in_cluster();
        broker.replicate(replicated(0, &[1, 2], &[1, 2]), &[]);
        broker
    }

    fn propose(broker: &Broker, partition_epoch: i32) -> Option<u64> {
        let alone = vec![BrokerState { broker_id: NODE, broker_epoch: 5 }];
        let id = (TOPIC, 0);
        broker.ctx.partitions.propose_isr(&id, LeaderEpoch::ZERO, partition_epoch, alone)
    }

    fn open(broker: &Broker) -> usize {
        broker.ctx.partitions.proposals.lock().count()
    }

    fn committed(partition_epoch: i32) -> IsrOutcome {
        IsrOutcome::Committed { isr: vec![NODE], partition_epoch }
    }

    #[test]
    fn a_proposal_with_an_unknown_outcome_is_settled_by_a_later_reply() {
        let broker = leader();
        let id = propose(&broker, 0).unwrap();
        for _ in 0..2 {
            broker.ctx.partitions.settle_isr(id, IsrOutcome::Unknown);
            assert_eq!((open(&broker), propose(&broker, 0)), (1, None));
        }
        broker.ctx.partitions.settle_isr(id, committed(3));
        assert_eq!(open(&broker), 0);
        assert!(propose(&broker, 0).is_none(), "the controller has gone on to 3");
        assert!(propose(&broker, 3).is_some());
    }

    #[test]
    fn a_proposal_replaced_by_an_image_is_not_settled() {
        let mut broker = leader();
        let first = propose(&broker, 0).unwrap();
        broker.replicate(replicated(1, &[1, 2], &[1, 2]), &[]);
        let second = propose(&broker, 1).unwrap();
        assert_eq!(open(&broker), 1);
        broker.ctx.partitions.settle_isr(first, committed(2));
        assert!(propose(&broker, 1).is_none() && propose(&broker, 2).is_none());
        broker.ctx.partitions.settle_isr(second, IsrOutcome::Rejected);
        assert_eq!(open(&broker), 0);
        assert!(propose(&broker, 1).is_some());
    }

    #[test]
    fn proposals_of_deleted_topics_are_forgotten() {
        let mut broker = leader();
        let id = propose(&broker, 0).unwrap();
        broker.apply(ImageDelta { deleted: vec![TOPIC], ..ImageDelta::default() });
        assert_eq!(open(&broker), 0);
        broker.ctx.partitions.settle_isr(id, committed(1));
    }
}
