//! Tests of followers that fetch from a leader: the rules of the replication contract, with
//! requests as sent over a socket.

use pykafka_record::{LeaderEpoch, batches};
use pykafka_wire::fetch::{
    EpochEndOffset, Partition, PartitionResponse, ReplicaState, Request, Response, Topic,
};
use pykafka_wire::{Records, produce};

use crate::control_api::event::{Event, ReplicaStateKind};
use crate::control_api::image::BrokerEndpoint;
use crate::control_api::image::client_quotas::{ClientQuota, Metered, Named};
use crate::control_api::image::delta::ImageDelta;
use crate::network::outcome::{Outcome, PendingOutcome};
use crate::partition::replication::isr::{BrokerState, IsrOutcome};
use crate::partition::threads::may_wait::MayWait;
use crate::testing::{
    Broker, REPLICATION, TOPIC, batch, endpoint, pending, poll, replicated, replied, settled,
};

const NOT_LEADER_OR_FOLLOWER: i16 = 6;
const OFFSET_OUT_OF_RANGE: i16 = 1;
const CLUSTER_AUTHORIZATION_FAILED: i16 = 31;
const FENCED_LEADER_EPOCH: i16 = 74;
const UNKNOWN_LEADER_EPOCH: i16 = 75;

/// Node 1 leads `t`-0, whose replicas are nodes 1 to 3.
fn leader(isr: &[i32], overrides: &[(&str, &str)]) -> Broker {
    let mut broker = Broker::in_memory().in_cluster();
    broker.replicate(replicated(0, &[1, 2, 3], isr), overrides);
    broker
}

/// A follower's fetch of `t`-0; it does not wait.
#[derive(Debug, Clone)]
struct Fetch {
    broker_id: i32,
    broker_epoch: i64,
    partition: Partition,
    wait_ms: i32,
    bytes_min: i32,
}

fn fetch(broker_id: i32, fetch_offset: i64) -> Fetch {
    Fetch {
        broker_id,
        broker_epoch: 5,
        partition: Partition {
            fetch_offset,
            current_leader_epoch: 0,
            log_start_offset: 0,
            partition_max_bytes: 1 << 20,
            ..Partition::default()
        },
        wait_ms: 0,
        bytes_min: 1,
    }
}

impl Fetch {
    /// Waits for `bytes_min` bytes.
    fn waiting(self, bytes_min: i32) -> Fetch {
        Fetch { wait_ms: 60_000, bytes_min, ..self }
    }

    fn with(self, change: impl FnOnce(&mut Partition)) -> Fetch {
        let mut fetch = self;
        change(&mut fetch.partition);
        fetch
    }

    fn of(self, broker: &Broker) -> Outcome {
        broker.fetch_on(REPLICATION, 17, &self.request())
    }

    fn request<'a>(self) -> Request<'a> {
        Request {
            replica_state: ReplicaState {
                replica_id: self.broker_id,
                replica_epoch: self.broker_epoch,
            },
            max_wait_ms: self.wait_ms,
            min_bytes: self.bytes_min,
            max_bytes: 1 << 20,
            topics: vec![Topic { topic: "t", topic_id: TOPIC, partitions: vec![self.partition] }],
            ..Request::default()
        }
    }

    /// The response for the partition.
    fn response(self, broker: &Broker) -> PartitionResponse {
        response(self.of(broker))
    }

    fn error_code(self, broker: &Broker) -> i16 {
        self.response(broker).error_code
    }
}

fn response(outcome: Outcome) -> PartitionResponse {
    let bytes = replied(outcome);
    let response = Response::decode_shared(17, &bytes).unwrap();
    assert_eq!(response.error_code, 0);
    let mut topics = response.responses.into_iter();
    topics.next().unwrap().partitions.remove(0)
}

fn values_count(response: &PartitionResponse) -> i32 {
    let Some(Records::Bytes(records)) = &response.records else { panic!("{response:?}") };
    batches(records).map(|batch| batch.unwrap().records_count()).sum()
}

fn high_watermark(broker: &Broker) -> i64 {
    broker.offsets().high_watermark
}

#[test]
fn a_follower_reads_to_the_log_end_and_a_client_to_the_high_watermark() {
    let broker = leader(&[1, 2, 3], &[]);
    broker.append_waiting_for_nobody(&batch(&["a", "b"]));
    let read = fetch(2, 0).response(&broker);
    assert_eq!((read.error_code, values_count(&read)), (0, 2));
    assert_eq!((read.high_watermark, read.log_start_offset), (0, 0));
    let of_client = Request { replica_state: ReplicaState::CONSUMER, ..fetch(2, 0).request() };
    assert_eq!(values_count(&response(broker.fetch(17, &of_client))), 0);
}

/// The position of the replica id in the request depends on the version.
#[test]
fn every_version_recognizes_followers() {
    for version in 4..=18 {
        let broker = leader(&[1, 2, 3], &[]);
        broker.append_waiting_for_nobody(&batch(&["a"]));
        let new = fetch(2, 0).request();
        let old = Request { replica_id: 2, replica_state: ReplicaState::CONSUMER, ..new.clone() };
        let request = if version < 15 { &old } else { &new };
        let bytes = replied(broker.fetch_on(REPLICATION, version, request));
        let response = Response::decode_shared(version, &bytes).unwrap();
        assert_eq!(values_count(&response.responses[0].partitions[0]), 1, "{version}");
    }
}

#[test]
fn a_waiting_follower_is_answered_by_appends_that_only_the_leader_has() {
    let broker = leader(&[1, 2, 3], &[]);
    let records = batch(&["a"]);
    let bytes_min = 3 * records.len() as i32;
    let mut waiting = pending(fetch(2, 0).waiting(bytes_min).of(&broker));
    for _ in 0..2 {
        broker.append_waiting_for_nobody(&records);
        assert!(poll(&mut waiting).is_none());
    }
    broker.append_waiting_for_nobody(&records);
    let Some(outcome) = poll(&mut waiting) else { panic!("three batches are enough") };
    assert_eq!(values_count(&response(outcome)), 3);
    assert_eq!(high_watermark(&broker), 0);
    assert_eq!(broker.ctx.purgatory.parked_count(), 0);
    assert!(!broker.ctx.partitions.get(&TOPIC, 0).unwrap().is_waited_on());
}

#[test]
fn a_waiting_client_is_not_answered_before_the_followers_have_it() {
    let broker = leader(&[1, 2, 3], &[]);
    let of_client =
        Request { replica_state: ReplicaState::CONSUMER, ..fetch(2, 0).waiting(1).request() };
    let mut waiting = pending(broker.fetch(17, &of_client));
    broker.append_waiting_for_nobody(&batch(&["a"]));
    fetch(2, 1).response(&broker);
    assert!(poll(&mut waiting).is_none());
    fetch(3, 1).response(&broker);
    assert_eq!(values_count(&response(Outcome::Pending(waiting))), 1);
}

#[test]
fn a_waiting_fetch_of_a_follower_fails_when_the_leader_changes() {
    let mut broker = leader(&[1, 2, 3], &[]);
    let waiting = pending(fetch(2, 0).waiting(1).of(&broker));
    let mut moved = replicated(1, &[1, 2, 3], &[1, 2, 3]);
    moved.leader = 3;
    moved.leader_epoch = LeaderEpoch::new(1);
    broker.replicate(moved, &[]);
    // The epoch of the waiting fetch is outdated now.
    assert_eq!(response(Outcome::Pending(waiting)).error_code, FENCED_LEADER_EPOCH);
}

/// contract/replication.md#24: also if it was in the assignment when its wait started.
#[test]
fn a_waiting_follower_that_left_the_assignment_gets_no_records() {
    let mut broker = leader(&[1, 2], &[]);
    let waiting = pending(fetch(3, 0).waiting(1).of(&broker));
    broker.replicate(replicated(1, &[1, 2], &[1, 2]), &[]);
    broker.append_waiting_for_nobody(&batch(&["a"]));
    let response = response(Outcome::Pending(waiting));
    assert_eq!((response.error_code, values_count(&response)), (UNKNOWN_LEADER_EPOCH, 0));
}

/// contract/replication.md#10: records that were appended during a fetch do not count as lag.
#[test]
fn a_follower_under_steady_writes_stays_in_sync() {
    let broker = leader(&[1, 2], &[]);
    let mut offset = 0;
    broker.append_waiting_for_nobody(&batch(&["a"]));
    for _ in 0..20 {
        broker.clock.advance_ms(10_000);
        let read = fetch(2, offset).response(&broker);
        assert_eq!(read.high_watermark, offset);
        offset += i64::from(values_count(&read));
        broker.append_waiting_for_nobody(&batch(&["b"]));
        scan(&broker);
    }
    assert_eq!(told(&broker), []);
}

/// contract/replication.md#11, #24.
#[test]
fn epochs_are_checked_before_membership() {
    let broker = leader(&[1, 2, 3], &[]);
    let of_epoch = |broker_id, epoch| {
        fetch(broker_id, 0).with(|partition| partition.current_leader_epoch = epoch)
    };
    let mut broker = broker;
    let mut next = replicated(1, &[1, 2, 3], &[1, 2, 3]);
    next.leader_epoch = LeaderEpoch::new(4);
    broker.replicate(next, &[]);
    for broker_id in [2, 4] {
        assert_eq!(of_epoch(broker_id, 3).error_code(&broker), FENCED_LEADER_EPOCH);
        assert_eq!(of_epoch(broker_id, 5).error_code(&broker), UNKNOWN_LEADER_EPOCH);
    }
    assert_eq!(of_epoch(2, 4).error_code(&broker), 0);
    assert_eq!(of_epoch(4, 4).error_code(&broker), UNKNOWN_LEADER_EPOCH);
    assert_eq!(of_epoch(4, -1).error_code(&broker), UNKNOWN_LEADER_EPOCH);
}

/// contract/replication.md#12.
#[test]
fn a_fetch_that_diverges_records_no_progress() {
    let mut broker = leader(&[1, 2], &[]);
    broker.append_waiting_for_nobody(&batch(&["a", "b"]));
    let mut next = replicated(1, &[1, 2, 3], &[1, 2]);
    next.leader_epoch = LeaderEpoch::new(2);
    broker.replicate(next, &[]);
    broker.append_waiting_for_nobody(&batch(&["c", "d"]));
    // Epoch 0 ends at offset 2 here; the follower has more records of it.
    let diverging = fetch(2, 4).with(|partition| {
        (partition.current_leader_epoch, partition.last_fetched_epoch) = (2, 0);
    });
    let response = diverging.response(&broker);
    assert_eq!(response.diverging_epoch, EpochEndOffset { epoch: 0, end_offset: 2 });
    assert_eq!((response.error_code, values_count(&response), response.high_watermark), (0, 0, 0));
    let same = fetch(2, 4).with(|partition| {
        (partition.current_leader_epoch, partition.last_fetched_epoch) = (2, 2);
    });
    assert_eq!(same.response(&broker).high_watermark, 4);
}

/// contract/replication.md#12.
#[test]
fn an_offset_before_the_log_start_precedes_divergence_and_records_no_progress() {
    let broker = leader(&[1], &[]);
    broker.append(&batch(&["a", "b"]));
    broker.ctx.partitions.delete_before(1, &(TOPIC, 0), 1);
    broker.wait_idle();
    let early = fetch(2, 0).with(|partition| partition.last_fetched_epoch = 7);
    let late = fetch(2, 3);
    for outside in [early, late] {
        assert_eq!(outside.error_code(&broker), OFFSET_OUT_OF_RANGE);
    }
    assert_eq!(told(&broker), []);
}

fn begins_at(broker_id: i32, fetch_offset: i64, log_start_offset: i64) -> Fetch {
    fetch(broker_id, fetch_offset).with(|partition| partition.log_start_offset = log_start_offset)
}

/// contract/kafka.md#39.
#[test]
fn records_are_deleted_once_every_live_replica_has_deleted_them() {
    let mut broker = leader(&[1], &[]);
    broker.append(&batch(&["a", "b"]));
    broker.ctx.partitions.delete_before(7, &(TOPIC, 0), 1);
    broker.ctx.partitions.delete_before(8, &(TOPIC, 0), 2);
    assert_eq!(broker.maintained(), []);
    begins_at(2, 2, 1).response(&broker);
    assert_eq!(broker.maintained(), []);
    begins_at(3, 2, 1).response(&broker);
    assert_eq!(broker.maintained(), [(7, 0, 1)]);
    begins_at(2, 2, 2).response(&broker);
    assert_eq!(broker.maintained(), []);
    // Node 3 is fenced.
    broker.register(&[(1, 5), (2, 5)]);
    broker.ctx.partitions.scan_followers();
    assert_eq!(broker.maintained(), [(8, 0, 2)]);
}

#[test]
fn the_oldest_of_too_many_waiting_deletions_fail() {
    let broker = leader(&[1], &[]);
    broker.append(&batch(&["a"]));
    for token in 0..1_003 {
        broker.ctx.partitions.delete_before(token, &(TOPIC, 0), 1);
    }
    let given_up: Vec<_> = broker.maintained().into_iter().map(|(token, ..)| token).collect();
    assert_eq!(given_up, [0, 1, 2]);
}

#[test]
fn a_waiting_deletion_ends_with_the_leadership() {
    let mut broker = leader(&[1], &[]);
    broker.append(&batch(&["a"]));
    broker.ctx.partitions.delete_before(7, &(TOPIC, 0), 1);
    assert_eq!(broker.maintained(), []);
    let mut moved = replicated(1, &[1, 2, 3], &[1, 2]);
    (moved.leader, moved.leader_epoch) = (2, LeaderEpoch::new(1));
    broker.replicate(moved, &[]);
    assert_eq!(broker.maintained(), [(7, NOT_LEADER_OR_FOLLOWER, -1)]);
}

/// contract/replication.md#27.
#[test]
fn a_fetch_of_an_older_registration_is_rejected() {
    let mut broker = leader(&[1, 2], &[]);
    broker.append_waiting_for_nobody(&batch(&["a"]));
    let of = |broker_epoch| Fetch { broker_epoch, ..fetch(2, 1) };
    assert_eq!(of(4).error_code(&broker), NOT_LEADER_OR_FOLLOWER, "5 is registered");
    assert_eq!(high_watermark(&broker), 0);
    assert_eq!(of(5).error_code(&broker), 0);
    assert_eq!(high_watermark(&broker), 1);
    // The broker registers again; the new image arrives after its first fetch.
    broker.append_waiting_for_nobody(&batch(&["b"]));
    assert_eq!(Fetch { broker_epoch: 7, ..fetch(2, 1) }.error_code(&broker), 0);
    assert_eq!(
        Fetch { broker_epoch: 6, ..fetch(2, 2) }.error_code(&broker),
        NOT_LEADER_OR_FOLLOWER
    );
    assert_eq!(high_watermark(&broker), 1);
    broker.register(&[(1, 5), (2, 8)]);
    assert_eq!(
        Fetch { broker_epoch: 7, ..fetch(2, 2) }.error_code(&broker),
        NOT_LEADER_OR_FOLLOWER
    );
    assert_eq!(Fetch { broker_epoch: 8, ..fetch(2, 2) }.error_code(&broker), 0);
    assert_eq!(high_watermark(&broker), 2);
}

#[test]
fn progress_of_a_fetch_is_recorded_once_before_it_waits() {
    let broker = leader(&[1, 2, 3], &[]);
    broker.append_waiting_for_nobody(&batch(&["a", "b"]));
    fetch(3, 2).response(&broker);
    assert_eq!(high_watermark(&broker), 0);
    let mut waiting = pending(fetch(2, 2).waiting(1).of(&broker));
    assert!(poll(&mut waiting).is_none());
    assert_eq!(high_watermark(&broker), 2);
    // The follower has lost all records in the meantime and fetches from 0; its former progress is
    // not recorded again.
    broker.append_waiting_for_nobody(&batch(&["c"]));
    fetch(3, 3).response(&broker);
    fetch(2, 0).response(&broker);
    broker.append_waiting_for_nobody(&batch(&["d"]));
    assert_eq!(values_count(&response(Outcome::Pending(waiting))), 2);
    let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
    assert_eq!(partition.log_end_of_follower(2), 0);
}

/// The follower's progress is recorded before the fetch waits for memory.
#[test]
fn progress_of_a_fetch_is_recorded_while_memory_for_replies_is_full() {
    let broker = leader(&[1, 2], &[]);
    let produced = pending(broker.produce(9, -1, &batch(&["a"])));
    let responses = &broker.ctx.network.memory.responses;
    let others: Vec<_> = std::iter::from_fn(|| responses.try_room(1 << 20)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _timers = runtime.enter();
    let mut waiting = pending(fetch(2, 1).of(&broker));
    assert!(poll(&mut waiting).is_none(), "others hold all of the room");
    assert!(matches!(settled(Outcome::Pending(produced)), Outcome::Reply(_)));
    drop(others);
}

/// contract/kafka.md#27: the next request of a session names only changes, and counts for all
/// partitions of the session.
#[test]
fn a_session_request_records_progress_of_all_its_partitions() {
    let broker = leader(&[1, 2], &[]);
    broker.append_waiting_for_nobody(&batch(&["a"]));
    let full = Request { session_epoch: 0, ..fetch(2, 1).request() };
    let of = |request: &Request<'_>| {
        let bytes = replied(broker.fetch_on(REPLICATION, 17, request));
        let response = Response::decode(17, &bytes).unwrap();
        let partitions = response.responses.iter().map(|topic| topic.partitions.len()).sum();
        (response.error_code, response.session_id, partitions)
    };
    let (code, session_id, partitions) = of(&full);
    assert_eq!((code, session_id > 0, partitions), (0, true, 1_usize));
    let next =
        |session_epoch| Request { session_id, session_epoch, topics: Vec::new(), ..full.clone() };
    for session_epoch in 1..10 {
        broker.clock.advance_ms(20_000);
        assert_eq!(of(&next(session_epoch)), (0, session_id, 0), "nothing changed");
        scan(&broker);
    }
    broker.append_waiting_for_nobody(&batch(&["b"]));
    assert_eq!(of(&next(10)), (0, session_id, 1));
    assert_eq!(told(&broker), [], "it never lagged");
    let by_another =
        Request { replica_state: ReplicaState { replica_id: 3, replica_epoch: 5 }, ..next(11) };
    assert_eq!(of(&by_another), (70, 0, 0));
    assert_eq!(of(&next(11)).0, 0);
}

#[test]
fn limits_of_a_client_do_not_apply_to_a_follower() {
    let mut broker = leader(&[1], &[]);
    let quota = ClientQuota {
        user: Named::Nobody,
        client_id: Named::Default,
        metered: Metered::Fetched,
        bytes_per_second: 1.0,
    };
    let settings = [("inter.broker.listener.name", REPLICATION), ("fetch.max.bytes", "1")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    broker.apply(ImageDelta {
        broker_settings: Some(settings.into()),
        client_quotas: Some(vec![quota]),
        ..ImageDelta::default()
    });
    for _ in 0..3 {
        broker.append(&batch(&["a"]));
    }
    for _ in 0..3 {
        assert_eq!(values_count(&fetch(2, 0).response(&broker)), 3);
    }
    let small = Request { max_bytes: 1, ..fetch(2, 0).request() };
    assert_eq!(
        values_count(&response(broker.fetch_on(REPLICATION, 17, &small))),
        1,
        "its own limit"
    );
    let of_client = Request { replica_state: ReplicaState::CONSUMER, ..fetch(2, 0).request() };
    assert!(throttle_ms(broker.fetch(17, &of_client)) > 0);
    assert_eq!(throttle_ms(fetch(2, 0).of(&broker)), 0);
}

fn throttle_ms(outcome: Outcome) -> i32 {
    Response::decode(17, &replied(outcome)).unwrap().throttle_time_ms
}

/// contract/replication.md#attack-16.
#[test]
fn only_another_registered_broker_on_the_inter_broker_listener_is_a_replica() {
    let mut broker = leader(&[1, 2, 3], &[]);
    broker.append_waiting_for_nobody(&batch(&["a"]));
    fetch(3, 1).response(&broker);
    let refused = |broker: &Broker, listener: &str, broker_id: i32| {
        let new = fetch(broker_id, 1).request();
        let bytes = replied(broker.fetch_on(listener, 17, &new));
        let of_new = Response::decode(17, &bytes).unwrap().error_code;
        let old = Request { replica_id: broker_id, replica_state: ReplicaState::CONSUMER, ..new };
        let bytes = replied(broker.fetch_on(listener, 12, &old));
        let response = Response::decode(12, &bytes).unwrap();
        assert_eq!(response.error_code, of_new);
        assert_eq!(response.responses[0].partitions[0].error_code, of_new);
        of_new == CLUSTER_AUTHORIZATION_FAILED
    };
    assert!(refused(&broker, "PLAINTEXT", 2), "a listener for clients");
    assert!(refused(&broker, REPLICATION, 1), "this broker itself");
    assert!(refused(&broker, REPLICATION, 9), "not registered");
    broker.apply(ImageDelta { broker_settings: Some([].into()), ..ImageDelta::default() });
    assert!(refused(&broker, REPLICATION, 2), "no listener is for brokers");
    assert_eq!(high_watermark(&broker), 0);
    assert_eq!(told(&broker), []);
}

/// A produce request that waits for the in-sync replicas.
fn produced(broker: &Broker) -> PendingOutcome {
    let mut waiting = pending(broker.produce(9, -1, &batch(&["a"])));
    assert!(poll(&mut waiting).is_none());
    waiting
}

#[test]
fn acks_all_waits_for_every_follower_in_the_isr() {
    let broker = leader(&[1, 2, 3], &[("min.insync.replicas", "2")]);
    let mut waiting = produced(&broker);
    for (broker_id, fetch_offset) in [(2, 0), (3, 0), (2, 1)] {
        fetch(broker_id, fetch_offset).response(&broker);
        assert!(poll(&mut waiting).is_none(), "{broker_id} at {fetch_offset}");
    }
    fetch(3, 1).response(&broker);
    assert!(matches!(settled(Outcome::Pending(waiting)), Outcome::Reply(_)));
    assert_eq!(high_watermark(&broker), 1);
}

fn propose(broker: &Broker, partition_epoch: i32, isr: &[i32]) -> u64 {
    let isr = isr.iter().map(|broker_id| BrokerState { broker_id: *broker_id, broker_epoch: 5 });
    let (id, isr) = ((TOPIC, 0), isr.collect());
    let proposed = broker.ctx.partitions.propose_isr(&id, LeaderEpoch::ZERO, partition_epoch, isr);
    proposed.expect("a proposal")
}

fn committed(isr: &[i32], partition_epoch: i32) -> IsrOutcome {
    IsrOutcome::Committed { isr: isr.to_vec(), partition_epoch }
}

/// contract/replication.md#1, #29: the follower counts until it is known whether it leaves the ISR.
#[test]
fn a_pending_shrink_holds_back_acks_all_until_the_controller_has_committed_it() {
    let broker = leader(&[1, 2, 3], &[]);
    let mut waiting = produced(&broker);
    fetch(2, 1).response(&broker);
    let proposal = propose(&broker, 0, &[1, 2]);
    assert!(poll(&mut waiting).is_none());
    broker.ctx.partitions.settle_isr(proposal, IsrOutcome::Unknown);
    assert!(poll(&mut waiting).is_none());
    broker.ctx.partitions.settle_isr(proposal, committed(&[1, 2], 1));
    assert!(matches!(settled(Outcome::Pending(waiting)), Outcome::Reply(_)));
    assert_eq!(high_watermark(&broker), 1);
}

/// contract/replication.md#1: the controller may have committed the new member already.
#[test]
fn a_pending_expansion_makes_acks_all_wait_for_the_follower_that_joins() {
    let broker = leader(&[1, 2], &[]);
    broker.append_waiting_for_nobody(&batch(&["a"]));
    fetch(2, 1).response(&broker);
    fetch(3, 1).response(&broker);
    let proposal = propose(&broker, 0, &[1, 2, 3]);
    let mut waiting = produced(&broker);
    fetch(2, 2).response(&broker);
    // It lags, so it counts only because of the proposal.
    broker.clock.advance_ms(30_001);
    fetch(2, 2).response(&broker);
    scan(&broker);
    assert!(poll(&mut waiting).is_none());
    broker.ctx.partitions.settle_isr(proposal, IsrOutcome::Rejected);
    assert!(matches!(settled(Outcome::Pending(waiting)), Outcome::Reply(_)));
    assert_eq!(high_watermark(&broker), 2);
}

/// The ISR in the controller's response counts, not the proposed one; a later image repeats it.
#[test]
fn the_isr_is_the_one_that_the_controller_committed() {
    let mut broker = leader(&[1, 2, 3], &[("min.insync.replicas", "2")]);
    fetch(2, 0).response(&broker);
    let proposal = propose(&broker, 0, &[1, 2]);
    broker.ctx.partitions.settle_isr(proposal, committed(&[1], 4));
    assert_eq!(produced_code(&broker), 19, "one is not enough");
    broker.replicate(replicated(3, &[1, 2, 3], &[1, 2, 3]), &[("min.insync.replicas", "2")]);
    assert_eq!(produced_code(&broker), 19, "that image is older");
    broker.replicate(replicated(5, &[1, 2, 3], &[1, 2]), &[("min.insync.replicas", "2")]);
    let waiting = produced(&broker);
    fetch(2, 1).response(&broker);
    assert!(matches!(settled(Outcome::Pending(waiting)), Outcome::Reply(_)));
}

/// contract/replication.md#6: with too few replicas left, the record may or may not be committed.
#[test]
fn a_shrink_below_min_isr_fails_waiting_produces_as_ambiguous() {
    let broker = leader(&[1, 2, 3], &[("min.insync.replicas", "2")]);
    let waiting = produced(&broker);
    let proposal = propose(&broker, 0, &[1]);
    broker.ctx.partitions.settle_isr(proposal, committed(&[1], 1));
    assert_eq!(code_of(Outcome::Pending(waiting)), 20);
    // contract/replication.md#3
    fetch(2, 1).response(&broker);
    assert_eq!(high_watermark(&broker), 0);
}

fn produced_code(broker: &Broker) -> i16 {
    code_of(broker.produce(9, -1, &batch(&["a"])))
}

fn code_of(produced: Outcome) -> i16 {
    let bytes = replied(produced);
    produce::Response::decode(9, &bytes).unwrap().responses[0].partitions[0].error_code
}

/// Runs the scan of followers, as upkeep does.
fn scan(broker: &Broker) {
    broker.ctx.partitions.scan_followers();
    broker.wait_idle();
}

/// The follower states that were reported to Python, in order.
fn told(broker: &Broker) -> Vec<(i32, ReplicaStateKind)> {
    let of_event = |event| match event {
        Event::Replica { follower, state, .. } => Some((follower, state)),
        _ => None,
    };
    broker.events().into_iter().filter_map(of_event).collect()
}

#[test]
fn a_follower_that_stops_fetching_is_reported_as_lagging_until_it_left_the_isr() {
    use ReplicaStateKind::Lagging;
    let mut broker = leader(&[1, 2, 3], &[]);
    broker.append_waiting_for_nobody(&batch(&["a"]));
    let both = |broker: &Broker| {
        fetch(2, 1).response(broker);
        fetch(3, 1).response(broker);
    };
    both(&broker);
    broker.append_waiting_for_nobody(&batch(&["b"]));
    scan(&broker);
    assert_eq!(told(&broker), []);
    broker.clock.advance_ms(30_000);
    fetch(2, 2).response(&broker);
    scan(&broker);
    assert_eq!(told(&broker), [], "30 s are not more than 30 s");
    broker.clock.advance_ms(1);
    assert_eq!(told(&broker), []);
    scan(&broker);
    assert_eq!(told(&broker), [(3, Lagging)]);
    fetch(2, 2).response(&broker);
    assert_eq!(told(&broker), [], "no news");
    scan(&broker);
    assert_eq!(told(&broker), [(3, Lagging)], "the wish may have been lost");
    broker.replicate(replicated(1, &[1, 2, 3], &[1, 2]), &[]);
    scan(&broker);
    assert_eq!(told(&broker), []);
    assert_eq!(high_watermark(&broker), 2);
}

/// A follower that never fetched counts as lagging, like one that stopped.
#[test]
fn a_follower_that_never_fetched_is_reported_as_lagging_even_if_the_log_is_unopened() {
    let broker = leader(&[1, 2, 3], &[]);
    broker.clock.advance_ms(30_001);
    scan(&broker);
    let mut lagging = told(&broker);
    lagging.sort_by_key(|(follower, _)| *follower);
    assert_eq!(lagging, [(2, ReplicaStateKind::Lagging), (3, ReplicaStateKind::Lagging)]);
}

#[test]
fn a_caught_up_follower_is_reported_at_once_and_again_until_it_is_in_the_isr() {
    use ReplicaStateKind::CaughtUp;
    let mut broker = leader(&[1, 2], &[]);
    broker.append_waiting_for_nobody(&batch(&["a"]));
    fetch(2, 1).response(&broker);
    fetch(3, 0).response(&broker);
    assert_eq!(told(&broker), []);
    fetch(3, 1).response(&broker);
    assert_eq!(told(&broker), [(3, CaughtUp)]);
    fetch(3, 1).response(&broker);
    assert_eq!(told(&broker), []);
    scan(&broker);
    assert_eq!(told(&broker), [(3, CaughtUp)]);
    broker.replicate(replicated(1, &[1, 2, 3], &[1, 2, 3]), &[]);
    scan(&broker);
    assert_eq!(told(&broker), []);
}

#[test]
fn a_caught_up_follower_of_another_registration_is_stale() {
    let mut broker = leader(&[1], &[]);
    broker.register(&[(1, 5), (2, 9), (3, 5)]);
    assert_eq!(Fetch { broker_epoch: 10, ..fetch(2, 0) }.error_code(&broker), 0);
    assert_eq!(told(&broker), [(2, ReplicaStateKind::StaleEpoch)]);
    broker.register(&[(1, 5), (2, 10), (3, 5)]);
    scan(&broker);
    assert_eq!(told(&broker), [(2, ReplicaStateKind::CaughtUp)]);
}

/// contract/replication.md#26: a fenced follower catches up, and one in controlled shutdown is
/// served to the end, but neither joins the ISR.
#[test]
fn a_follower_that_is_fenced_or_shuts_down_can_fetch_but_not_join() {
    use ReplicaStateKind::{CaughtUp, StaleEpoch};
    let mut broker = leader(&[1], &[]);
    let me = endpoint(1, 5);
    let fenced = BrokerEndpoint { fenced: true, ..endpoint(2, 5) };
    let leaving = BrokerEndpoint { in_controlled_shutdown: true, ..endpoint(3, 5) };
    let brokers = Some(vec![me, fenced, leaving]);
    broker.apply(ImageDelta { brokers, ..ImageDelta::default() });
    let ids = |broker: &Broker| {
        broker.ctx.image.load().brokers.iter().map(|one| one.node_id).collect::<Vec<_>>()
    };
    assert_eq!(ids(&broker), [1, 3], "as clients see it");
    for broker_id in [2, 3] {
        assert_eq!(fetch(broker_id, 0).error_code(&broker), 0);
    }
    assert_eq!(told(&broker), [(2, StaleEpoch), (3, StaleEpoch)]);
    broker.append(&batch(&["a"]));
    assert_eq!(high_watermark(&broker), 1, "neither holds it back");
    broker.register(&[(1, 5), (2, 5), (3, 5)]);
    for broker_id in [2, 3] {
        assert_eq!(fetch(broker_id, 1).error_code(&broker), 0);
    }
    assert_eq!(told(&broker), [(2, CaughtUp), (3, CaughtUp)]);
}

/// contract/replication.md#2: the follower holds back the high watermark only while it keeps up.
#[test]
fn a_lagging_follower_outside_the_isr_does_not_hold_back_the_high_watermark() {
    let broker = leader(&[1], &[]);
    fetch(2, 0).response(&broker);
    broker.append_waiting_for_nobody(&batch(&["a"]));
    assert_eq!(high_watermark(&broker), 0);
    broker.clock.advance_ms(30_001);
    scan(&broker);
    assert_eq!(high_watermark(&broker), 1);
}

#[test]
fn only_partitions_with_followers_are_scanned() {
    let mut broker = Broker::in_memory().in_cluster().with_topic(3, &[]);
    let listed = |broker: &Broker| broker.ctx.partitions.host().replicated.lock().len();
    assert_eq!(listed(&broker), 0);
    broker.replicate(replicated(1, &[1, 2], &[1, 2]), &[]);
    broker.replicate(replicated(2, &[1, 2, 3], &[1, 2]), &[]);
    assert_eq!(listed(&broker), 1);
    broker.replicate(replicated(3, &[1], &[1]), &[]);
    scan(&broker);
    assert_eq!(listed(&broker), 0);
    broker.replicate(replicated(4, &[1, 3], &[1]), &[]);
    assert_eq!(listed(&broker), 1);
    broker.ctx.partitions.close(&MayWait::as_documented());
}

/// Node 1 leads `t`-0 for nodes 1 to 3, and is throttled as leader to `bytes_per_second`.
fn throttled_leader(isr: &[i32], replicas: &str, bytes_per_second: &str) -> Broker {
    let mut broker = leader(isr, &[("leader.replication.throttled.replicas", replicas)]);
    broker.set(&[("leader.replication.throttled.rate", bytes_per_second)]);
    broker
}

#[test]
fn a_throttled_follower_out_of_sync_gets_nothing_while_the_rate_is_above_the_limit() {
    let broker = throttled_leader(&[1, 2], "0:1", "100");
    broker.append_waiting_for_nobody(&batch(&[&"a".repeat(1_000)]));
    assert_eq!(
        values_count(&fetch(3, 0).response(&broker)),
        1,
        "the rate is known once it was sent"
    );
    let held = fetch(3, 0).response(&broker);
    assert_eq!((held.error_code, values_count(&held)), (0, 0));
    assert_eq!((held.high_watermark, held.log_start_offset), (0, 0));
    // An ISR member is not held back, but its bytes count.
    assert_eq!(values_count(&fetch(2, 0).response(&broker)), 1);
    let of_client = Request { replica_state: ReplicaState::CONSUMER, ..fetch(2, 0).request() };
    fetch(2, 1).response(&broker);
    assert_eq!(values_count(&response(broker.fetch(17, &of_client))), 1, "nor is a client");
    broker.clock.advance_ms(11_000);
    assert_eq!(values_count(&fetch(3, 0).response(&broker)), 1);
}

#[test]
fn only_named_replicas_are_throttled() {
    for (replicas, expected) in [("0:1", 0), ("*", 0), ("0:2", 1), ("1:1", 1), ("", 1)] {
        let broker = throttled_leader(&[1, 2], replicas, "0");
        broker.append_waiting_for_nobody(&batch(&["a"]));
        fetch(3, 0).response(&broker);
        assert_eq!(values_count(&fetch(3, 0).response(&broker)), expected, "{replicas:?}");
    }
}

/// Available records that may not be sent do not complete the fetch; otherwise the follower would
/// fetch in a loop.
#[test]
fn a_throttled_follower_waits_at_the_leader() {
    let broker = throttled_leader(&[1, 2], "*", "100");
    broker.append_waiting_for_nobody(&batch(&[&"a".repeat(1_000)]));
    fetch(3, 0).response(&broker);
    let mut waiting = pending(fetch(3, 0).waiting(1).of(&broker));
    broker.append_waiting_for_nobody(&batch(&["b"]));
    assert!(poll(&mut waiting).is_none());
    broker.clock.advance_ms(60_000);
    broker.expire();
    let Some(outcome) = poll(&mut waiting) else { panic!("its time is over, and so is the rate") };
    assert_eq!(values_count(&response(outcome)), 2);
}

#[test]
fn a_removed_throttle_ends_at_the_next_check() {
    let mut broker = throttled_leader(&[1, 2], "*", "0");
    broker.append_waiting_for_nobody(&batch(&["a"]));
    fetch(3, 0).response(&broker);
    let mut waiting = pending(fetch(3, 0).waiting(1).of(&broker));
    broker.set(&[]);
    broker.append_waiting_for_nobody(&batch(&["b"]));
    let Some(outcome) = poll(&mut waiting) else { panic!("nothing holds it back") };
    assert_eq!(values_count(&response(outcome)), 2);
}

/// A follower gets errors whether it is held back or not.
#[test]
fn a_throttled_follower_gets_out_of_range_errors() {
    let broker = throttled_leader(&[1, 2], "*", "0");
    broker.append_waiting_for_nobody(&batch(&["a"]));
    fetch(3, 0).response(&broker);
    assert_eq!(fetch(3, 9).error_code(&broker), OFFSET_OUT_OF_RANGE);
    let stale = fetch(3, 0).with(|partition| partition.current_leader_epoch = 1);
    assert_eq!(stale.error_code(&broker), UNKNOWN_LEADER_EPOCH);
}
