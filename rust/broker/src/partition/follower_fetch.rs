//! The leader's side of followers' fetches.
//!
//! The progress of a follower is recorded before anything is read for it, once per request:
//! acknowledgements that wait for it never wait for its response. A diverging fetch does not show
//! which records the follower has, and records nothing (contract/replication.md#12).

use std::sync::atomic::Ordering;

use super::Partition;
use super::guard::PartitionGuard;
use super::log::read::diverging_epoch;
use super::replication::follower::FollowerFetch;
use super::replication::{Role, View};
use crate::control_api::event::{Event, ReplicaStateKind};
use crate::kafka_error::KafkaError;
use crate::partition::log::open_log::log_slot::LogSlot;
use crate::partition::log::read::{Isolation, ReadRequest};

/// A follower that fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replica {
    /// Node id.
    pub broker_id: i32,
    /// The broker epoch of its request; −1 from a broker without KIP-903.
    pub broker_epoch: i64,
    /// The broker epoch of its latest registration that is known here; −1 if that has none.
    pub registered_epoch: i64,
    /// Arrival time of its request.
    pub arrived_ns: u64,
}

impl Replica {
    /// True if the request is from before the latest registration.
    fn is_stale(&self) -> bool {
        self.broker_epoch != -1 && self.broker_epoch < self.registered_epoch
    }
}

impl Partition {
    /// Records a follower's fetch unless it diverges, and updates the high watermark
    /// (contract/replication.md#11, #12, #24–#28).
    ///
    /// # Errors
    /// First the epoch errors and `NOT_LEADER_OR_FOLLOWER`; then `UNKNOWN_LEADER_EPOCH` for a
    /// broker outside the assignment; `OFFSET_OUT_OF_RANGE` as for a read; `NOT_LEADER_OR_FOLLOWER`
    /// for a request from before the latest registration; `KAFKA_STORAGE_ERROR` for a damaged log.
    /// In all these cases nothing is recorded. `NOT_LEADER_OR_FOLLOWER` for an ISR member that
    /// lacks committed records; its fetch is recorded (docs/DURABILITY.md).
    pub fn follower_fetched(
        &self,
        replica: &Replica,
        request: &ReadRequest,
        log_start_offset: i64,
    ) -> Result<(), KafkaError> {
        debug_assert_eq!(request.isolation, Isolation::Replica(replica.broker_id));
        let (mut guard, log) = self.lock_as_leader(request.current_leader_epoch)?;
        guard.replication.follower(replica.broker_id)?;
        if request.fetch_offset < 0 {
            return Err(KafkaError::OffsetOutOfRange);
        }
        if log.damage().is_some() {
            // The missing records are unknown; followers would truncate records that they have.
            return Err(KafkaError::KafkaStorageError);
        }
        let offsets = guard.offsets(&log);
        // A follower that lacks committed records is not checked for divergence.
        let has_lost = guard.replication.has_lost(replica.broker_id, request.fetch_offset);
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
        let booked = guard.replication.follower_fetched(id, fetch, end).map(drop);
        guard.progress(&log);
        guard.tell_standings(Repeat::No);
        booked
    }

    /// True if a replica is in the ISR, or in a pending ISR, as far as is known here.
    pub(crate) fn is_in_sync(&self, broker_id: i32) -> bool {
        self.lock().replication.is_in_sync(broker_id)
    }
}

/// Determines which follower states are reported to Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Those that differ from the last report.
    No,
    /// In addition, those that still require a change of the ISR, because the report may have been
    /// lost.
    Asking,
}

impl Partition {
    /// Log end offset (exclusive) of a follower, as far as it is known.
    #[cfg(test)]
    pub(crate) fn log_end_of_follower(&self, broker_id: i32) -> i64 {
        self.lock().replication.follower(broker_id).unwrap().log_end_offset
    }

    /// Checks the followers periodically, because a follower that has stopped sends no fetches
    /// (contract/replication.md#28). Returns false once this broker is not the leader, or the
    /// partition has no followers.
    pub(super) fn scan_followers(&self) -> bool {
        let mut guard = self.lock();
        if !guard.is_replicated() {
            guard.is_scanned = false;
            return false;
        }
        // A lagging follower does not hold back the high watermark any more.
        if let Some(log) = guard.opened() {
            guard.progress(&log);
        }
        guard.tell_standings(Repeat::Asking);
        true
    }
}

impl PartitionGuard<'_> {
    fn is_replicated(&self) -> bool {
        self.replication.role() == Role::Leader && !self.replication.followers().is_empty()
    }

    /// Adds the partition to the periodic checks, if it has followers.
    pub(super) fn list_as_replicated(&mut self) {
        if self.is_replicated() && !std::mem::replace(&mut self.is_scanned, true) {
            let partition = self.partition();
            partition.host.replicated.lock().push(partition.me.clone());
        }
    }

    /// Reports the states of the followers to Python (docs/PLANES.md S5).
    fn tell_standings(&mut self, repeat: Repeat) {
        let answers_no_follower = match &self.log {
            LogSlot::Open(log) => log.damage().is_some(),
            LogSlot::Failed => true,
            LogSlot::Unopened | LogSlot::Left(_) => false,
        };
        if answers_no_follower {
            // Followers with all records must not be removed from the ISR.
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
    use crate::control_api::event::Event;
    use crate::partition::follower_fetch::Replica;
    use crate::partition::log::read::{Isolation, ReadRequest};
    use crate::partition::threads::may_wait::MayWait;
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

    /// The other replica would leave the ISR, and only this unreadable one would remain.
    #[test]
    fn a_leader_whose_log_failed_reports_no_lagging_follower() {
        let mut broker = Broker::in_memory().in_cluster();
        broker.replicate(replicated(0, &[1, 2], &[1, 2]), &[]);
        broker.append_waiting_for_nobody(&batch(&["a"]));
        fetched(&broker, 1, 0);
        broker.events();
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        partition.lock().fail("an I/O error");
        broker.clock.advance_ms(60_000);
        assert!(partition.scan_followers());
        let is_standing = |event: &Event| matches!(event, Event::Replica { .. });
        assert!(!broker.events().iter().any(is_standing));
    }

    #[test]
    fn progress_of_a_follower_is_recorded() {
        let mut broker = Broker::in_memory().in_cluster();
        broker.replicate(replicated(0, &[1, 2], &[1, 2]), &[]);
        broker.append_waiting_for_nobody(&batch(&["a", "b"]));
        fetched(&broker, 2, 1);
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        let guard = partition.lock();
        let follower = guard.replication.follower(2).unwrap();
        assert_eq!((follower.log_end_offset, follower.log_start_offset), (2, 1));
        assert_eq!((follower.broker_epoch, follower.caught_up_ns), (Some(5), 1_000_000));
    }

    /// A log that is read is never idle, and would keep its reserved space.
    #[test]
    fn an_idle_partition_releases_its_reserved_space_at_a_tick() {
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
    fn idle_partition_closes_its_files_and_continues_to_serve() {
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
