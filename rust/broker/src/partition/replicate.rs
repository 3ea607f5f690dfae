//! Followers' fetches, as the leader books them. No request comes here before there is a cluster.

use pykafka_record::LeaderEpoch;

use std::sync::atomic::Ordering;

use super::Partition;
use super::replication::follower::FollowerFetch;
use crate::kafka_error::KafkaError;
use crate::seam::event::{Event, ReplicaStateKind};

impl Partition {
    /// Books a follower's fetch that did not diverge, lets the high watermark follow, and tells Python how the
    /// follower stands (contract/replication.md#12, #24–#28).
    ///
    /// # Errors
    /// The epoch errors and `NOT_LEADER_OR_FOLLOWER` first; then `UNKNOWN_LEADER_EPOCH` for a broker outside of the
    /// assignment.
    pub fn follower_fetched(
        &self,
        broker_id: i32,
        current_leader_epoch: Option<LeaderEpoch>,
        fetch: FollowerFetch,
    ) -> Result<(), KafkaError> {
        let (mut turn, log) = self.turn_as_leader(current_leader_epoch)?;
        let log_end_offset = log.log_end_offset();
        let eligible = self.host.eligible.load();
        let now_ns = self.host.clock.now_ns();
        let lag_ns_max = self.host.replica_lag_ns_max.load(Ordering::Relaxed);
        let follower = turn.replication.follower_fetched(broker_id, fetch, log_end_offset)?;
        let caught_up = follower.is_caught_up(log_end_offset, now_ns, lag_ns_max);
        let (since_ns, epoch) = (follower.caught_up_ns, follower.broker_epoch);
        let follower = follower.clone();
        turn.progress(&log);
        let state = if eligible.get(&broker_id).copied() != epoch {
            ReplicaStateKind::StaleEpoch
        } else if turn.replication.may_join(&follower, &eligible) || caught_up {
            ReplicaStateKind::CaughtUp
        } else {
            ReplicaStateKind::Lagging
        };
        self.host.events.push(Event::Replica {
            topic_id: self.topic_id,
            partition: self.index,
            leader_epoch: turn.replication.assignment().leader_epoch,
            follower: broker_id,
            state,
            since_ns: if state == ReplicaStateKind::Lagging { since_ns } else { 0 },
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pykafka_record::LeaderEpoch;

    use crate::api::context::Outcome;
    use crate::partition::replication::follower::FollowerFetch;
    use crate::partition::threads::pool::MayWait;
    use crate::seam::event::{Event, ReplicaStateKind};
    use crate::seam::image::delta::ImageDelta;
    use crate::testing::{Broker, TOPIC, batch, topic};

    #[test]
    fn acks_all_waits_for_the_follower_in_the_isr() {
        let mut broker = Broker::in_memory();
        let mut replicated = topic("t", TOPIC, 1, &[]);
        replicated.partitions[0].replicas = vec![1, 2];
        replicated.partitions[0].isr = vec![1, 2];
        broker.apply(ImageDelta { topics: vec![replicated], ..ImageDelta::default() });
        let mut waiting = crate::testing::pending(broker.produce(9, -1, &batch(&["a"])));
        assert!(crate::testing::poll(&mut waiting).is_none());
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        let epoch = LeaderEpoch::from_wire(0);
        let fetch = |fetch_offset| FollowerFetch {
            fetch_offset,
            log_start_offset: 0,
            broker_epoch: 9,
            arrived_ns: 1,
        };
        broker.events();
        partition.follower_fetched(2, epoch, fetch(0)).unwrap();
        assert!(crate::testing::poll(&mut waiting).is_none());
        partition.follower_fetched(2, epoch, fetch(1)).unwrap();
        let settled = crate::testing::settled(Outcome::Pending(waiting));
        assert!(matches!(settled, Outcome::Reply(_)));
        assert_eq!(partition.high_watermark(), 1);
        let stale = |event: &Event| {
            matches!(event, Event::Replica { state: ReplicaStateKind::StaleEpoch, .. })
        };
        assert!(broker.events().iter().any(stale), "broker 2 is not registered");
        assert!(partition.follower_fetched(3, epoch, fetch(1)).is_err());
    }

    #[test]
    fn idle_partition_gives_its_files_back_and_serves_on() {
        let broker = Broker::on_disk(pykafka_log::Durability::Os).with_topic(1, &[]);
        broker.append(&batch(&["a"]));
        for _ in 0..13 {
            broker.ctx.partitions.release_idle();
        }
        broker.wait_idle();
        assert_eq!(broker.append(&batch(&["b"])), 1);
        let may_wait = MayWait::as_documented();
        let bytes = broker.ctx.partitions.read(&may_wait, &(TOPIC, 0), 0, 1 << 20, false).unwrap();
        assert_eq!(pykafka_record::batches(&bytes).count(), 2);
    }
}
