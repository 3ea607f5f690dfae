//! Followers' fetches, as the leader books them.
//!
//! What a follower says it has is booked before anything is read for it, once for each of its requests: acknowledgements
//! that wait for it never wait for its answer. A fetch that diverges says nothing of what the follower has, and books
//! nothing (contract/replication.md#12).

use std::sync::atomic::Ordering;

use super::read::diverging_epoch;
use super::replication::follower::FollowerFetch;
use super::replication::{Role, View};
use super::turn::Turn;
use super::{Isolation, LogSlot, Partition, ReadRequest};
use crate::kafka_error::KafkaError;
use crate::seam::event::{Event, ReplicaStateKind};

/// A follower that fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replica {
    /// Node id.
    pub broker_id: i32,
    /// The registration under which it fetches; −1 from before KIP-903.
    pub broker_epoch: i64,
    /// Its latest registration that is known here; −1 if that has no epoch.
    pub registered_epoch: i64,
    /// When its request arrived.
    pub arrived_ns: u64,
}

impl Replica {
    /// Whether it fetches under a registration that another one has replaced.
    fn is_stale(&self) -> bool {
        self.broker_epoch != -1 && self.broker_epoch < self.registered_epoch
    }
}

impl Partition {
    /// Books a follower's fetch unless it diverges, and lets the high watermark follow (contract/replication.md#11, #12,
    /// #24–#28).
    ///
    /// # Errors
    /// The epoch errors and `NOT_LEADER_OR_FOLLOWER` first; then `UNKNOWN_LEADER_EPOCH` for a broker outside of the
    /// assignment; `OFFSET_OUT_OF_RANGE` as for a read; `NOT_LEADER_OR_FOLLOWER` for one that fetches under an older
    /// registration than is known; `KAFKA_STORAGE_ERROR` of a damaged log. Nothing is booked then. `NOT_LEADER_OR_FOLLOWER` for
    /// one that is in the ISR without what is committed, which is booked (docs/DURABILITY.md).
    pub fn follower_fetched(
        &self,
        replica: &Replica,
        request: &ReadRequest,
        log_start_offset: i64,
    ) -> Result<(), KafkaError> {
        debug_assert_eq!(request.isolation, Isolation::Replica(replica.broker_id));
        let (mut turn, log) = self.turn_as_leader(request.current_leader_epoch)?;
        turn.replication.follower(replica.broker_id)?;
        if request.fetch_offset < 0 {
            return Err(KafkaError::OffsetOutOfRange);
        }
        if log.damage().is_some() {
            // It does not know what it lacks: followers would give up what they have.
            return Err(KafkaError::KafkaStorageError);
        }
        let offsets = turn.offsets(&log);
        // One that lacks what is committed is not asked where the logs part.
        let has_lost = turn.replication.has_lost(replica.broker_id, request.fetch_offset);
        if !has_lost && diverging_epoch(&log, &offsets, request)?.is_some() {
            return Ok(());
        }
        if replica.is_stale() {
            return Err(KafkaError::NotLeaderOrFollower);
        }
        let fetch = FollowerFetch {
            fetch_offset: request.fetch_offset,
            log_start_offset,
            broker_epoch: replica.broker_epoch,
            arrived_ns: replica.arrived_ns,
        };
        let (id, end) = (replica.broker_id, offsets.log_end_offset);
        let booked = turn.replication.follower_fetched(id, fetch, end).map(drop);
        turn.progress(&log);
        turn.tell_standings(Repeat::No);
        booked
    }

    /// Whether a replica is in the ISR, or about to join it, as far as is known here.
    pub(crate) fn is_in_sync(&self, broker_id: i32) -> bool {
        self.turn().replication.is_in_sync(broker_id)
    }
}

/// Whether followers that Python was told of are told of again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Those that stand otherwise than it was told.
    No,
    /// Those that still ask for a change of the ISR too: what was wished may have been lost.
    Asking,
}

impl Partition {
    /// Exclusive end of what a follower is known to have.
    #[cfg(test)]
    pub(crate) fn log_end_of_follower(&self, broker_id: i32) -> i64 {
        self.turn().replication.follower(broker_id).unwrap().log_end_offset
    }

    /// Looks at the followers by the clock, as one that does not fetch any more is not heard of (contract/replication.md#28).
    /// `false` once the partition is not led here, or has no followers.
    pub(super) fn scan_followers(&self) -> bool {
        let mut turn = self.turn();
        if !turn.is_replicated() {
            turn.is_scanned = false;
            return false;
        }
        // A follower that lags does not hold the high watermark back any more.
        if let Some(log) = turn.opened() {
            turn.progress(&log);
        }
        turn.tell_standings(Repeat::Asking);
        true
    }
}

impl Turn<'_> {
    fn is_replicated(&self) -> bool {
        self.replication.role() == Role::Leader && !self.replication.followers().is_empty()
    }

    /// Has the followers looked at by the clock from now on, if there are any.
    pub(super) fn list_as_replicated(&mut self) {
        if self.is_replicated() && !std::mem::replace(&mut self.is_scanned, true) {
            let partition = self.partition();
            partition.host.replicated.lock().push(partition.me.clone());
        }
    }

    /// Tells Python how the followers stand (docs/SEAM.md S5).
    fn tell_standings(&mut self, repeat: Repeat) {
        let answers_no_follower = match &self.log {
            LogSlot::Open(log) => log.damage().is_some(),
            LogSlot::Failed => true,
            LogSlot::Unopened | LogSlot::Left(_) => false,
        };
        if answers_no_follower {
            // Followers that have all records must not leave the ISR.
            return;
        }
        let partition = self.partition();
        let host = &partition.host;
        let view = View {
            log_end_offset: self.opened().map_or(i64::MAX, |log| log.log_end_offset()),
            now_ns: host.clock.now_ns(),
            lag_ns_max: host.replica_lag_ns_max.load(Ordering::Relaxed),
            eligible: &host.eligible.load(),
        };
        let leader_epoch = self.replication.assignment().leader_epoch;
        for (follower, standing) in self.replication.news(&view, repeat == Repeat::Asking) {
            let is_lagging = standing.state == ReplicaStateKind::Lagging;
            host.events.push(Event::Replica {
                topic_id: partition.topic_id,
                partition: partition.index,
                leader_epoch,
                follower: follower.broker_id,
                state: standing.state,
                since_ns: if is_lagging { follower.caught_up_ns } else { 0 },
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::partition::threads::pool::MayWait;
    use crate::partition::{Isolation, ReadRequest, Replica};
    use crate::seam::event::Event;
    use crate::testing::{Broker, TOPIC, batch, replicated};

    /// Node 2 fetches from `t`-0.
    fn fetched(broker: &Broker, fetch_offset: i64, log_start_offset: i64) {
        let replica =
            Replica { broker_id: 2, broker_epoch: 5, registered_epoch: 5, arrived_ns: 1_000_000 };
        let request = ReadRequest {
            fetch_offset,
            bytes_max: 0,
            at_least_one: false,
            current_leader_epoch: None,
            last_fetched_epoch: None,
            isolation: Isolation::Replica(2),
            any_replica: false,
            nearby: &[],
        };
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        partition.follower_fetched(&replica, &request, log_start_offset).unwrap();
    }

    /// It would leave the ISR with the only replica that cannot be read.
    #[test]
    fn a_leader_whose_log_failed_reports_no_lagging_follower() {
        let mut broker = Broker::in_memory().in_cluster();
        broker.replicate(replicated(0, &[1, 2], &[1, 2]), &[]);
        broker.append_waiting_for_nobody(&batch(&["a"]));
        fetched(&broker, 1, 0);
        broker.events();
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        partition.turn().fail("an I/O error");
        broker.clock.advance_ms(60_000);
        assert!(partition.scan_followers());
        let is_standing = |event: &Event| matches!(event, Event::Replica { .. });
        assert!(!broker.events().iter().any(is_standing));
    }

    #[test]
    fn what_a_follower_says_it_has_is_booked() {
        let mut broker = Broker::in_memory().in_cluster();
        broker.replicate(replicated(0, &[1, 2], &[1, 2]), &[]);
        broker.append_waiting_for_nobody(&batch(&["a", "b"]));
        fetched(&broker, 2, 1);
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        let turn = partition.turn();
        let follower = turn.replication.follower(2).unwrap();
        assert_eq!((follower.log_end_offset, follower.log_start_offset), (2, 1));
        assert_eq!((follower.broker_epoch, follower.caught_up_ns), (Some(5), 1_000_000));
    }

    /// One that is read never gets idle, and would keep it.
    #[test]
    fn a_partition_that_is_not_written_any_more_gives_back_what_it_reserved_at_a_tick() {
        const MB: usize = 1 << 20;
        let segment_bytes = ("segment.bytes", &*(64 * MB).to_string());
        let settings = [segment_bytes, ("max.message.bytes", "9000000")];
        let broker = Broker::on_disk(pykafka_log::Durability::Os).with_topic(1, &settings);
        let log = || broker.ctx.partitions.get(&TOPIC, 0).unwrap().opened_log().unwrap();
        broker.append(&batch(&["a"]));
        let value = "x".repeat(8 * MB);
        while log().segments_count() < 2 {
            broker.append(&batch(&[&value]));
        }
        let tick = || {
            broker.ctx.partitions.release_idle();
            broker.wait_idle();
        };
        tick();
        broker.clock.advance_ms(10_000);
        assert!(log().has_space_to_give_back());
        tick();
        assert!(!log().has_space_to_give_back());
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
