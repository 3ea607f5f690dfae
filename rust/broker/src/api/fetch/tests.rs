//! Tests of the fetch handler on in-memory logs: sizes, sessions, waits and fencing.

use pykafka_record::{LeaderEpoch, batches};
use pykafka_wire::Records;
use pykafka_wire::fetch::{
    ForgottenTopic, Partition, PartitionResponse, ReplicaState, Request, Response, Topic,
};

use crate::api::PARTITIONS_AT_ONCE_MAX;
use crate::control_api::image::client_quotas::{ClientQuota, Metered, Named};
use crate::control_api::image::delta::ImageDelta;
use crate::network::outcome::{Outcome, PendingOutcome};
use crate::partition::threads::may_wait::MayWait;
use crate::testing::{Broker, TOPIC, batch, led_here, pending, poll, replied, settled, topic};

/// The contents of a response, owned.
#[derive(Debug)]
struct Decoded {
    error_code: i16,
    session_id: i32,
    throttle_time_ms: i32,
    partitions: Vec<PartitionResponse>,
}

fn response(version: i16, outcome: Outcome) -> Decoded {
    let bytes = replied(outcome);
    let response = Response::decode_shared(version, &bytes).unwrap();
    Decoded {
        error_code: response.error_code,
        session_id: response.session_id,
        throttle_time_ms: response.throttle_time_ms,
        partitions: response.responses.into_iter().flat_map(|topic| topic.partitions).collect(),
    }
}

fn wanting(partition: i32, fetch_offset: i64) -> Partition {
    Partition { partition, fetch_offset, partition_max_bytes: 1 << 20, ..Partition::default() }
}

/// A fetch of `t` that does not wait.
fn request<'a>(partitions: Vec<Partition>) -> Request<'a> {
    Request {
        max_bytes: 1 << 20,
        min_bytes: 1,
        topics: vec![Topic { topic: "t", topic_id: TOPIC, partitions }],
        ..Request::default()
    }
}

fn values_count(records: Option<&Records>) -> i32 {
    let Some(Records::Bytes(records)) = records else { panic!("{records:?}") };
    batches(records).map(|batch| batch.unwrap().records_count()).sum()
}

fn broker() -> Broker {
    Broker::in_memory().with_topic(3, &[])
}

#[test]
fn every_version_reads_appended_records() {
    let broker = broker();
    broker.append(&batch(&["a", "b"]));
    for version in 4..=18 {
        let response = response(version, broker.fetch(version, &request(vec![wanting(0, 0)])));
        let partition = &response.partitions[0];
        assert_eq!((partition.error_code, partition.high_watermark), (0, 2), "{version}");
        assert_eq!(values_count(partition.records.as_ref()), 2);
    }
}

/// contract/kafka.md#24.
#[test]
fn offsets_inside_and_at_the_end_are_served_and_those_outside_are_rejected() {
    let broker = broker();
    broker.append(&batch(&["a", "b"]));
    for (offset, code, count) in [(1, 0, 2), (2, 0, 0), (3, 1, 0), (-5, 1, 0), (i64::MAX, 1, 0)] {
        let response = response(12, broker.fetch(12, &request(vec![wanting(0, offset)])));
        let partition = &response.partitions[0];
        assert_eq!(partition.error_code, code, "{offset}");
        assert_eq!(values_count(partition.records.as_ref()), count, "{offset}");
    }
}

/// contract/kafka.md#25.
#[test]
fn first_partition_gives_a_whole_batch_and_later_ones_keep_the_limit() {
    let broker = broker();
    let large = "x".repeat(500);
    for index in [0, 1] {
        let records = batch(&[&large]);
        let request = crate::testing::request_of(-1, &[(index, Some(&records))]);
        replied(broker.produce_request(9, &request));
    }
    let mut small = request(vec![wanting(0, 0), wanting(1, 0)]);
    small.max_bytes = 1;
    let response = response(12, broker.fetch(12, &small));
    let counts: Vec<i32> =
        response.partitions.iter().map(|p| values_count(p.records.as_ref())).collect();
    assert_eq!(counts, [1, 0]);
}

/// contract/kafka.md#26.
#[test]
fn parked_fetch_is_answered_when_bytes_arrive() {
    let broker = broker();
    let mut long = request(vec![wanting(0, 0)]);
    long.max_wait_ms = 60_000;
    let mut waiting = pending(broker.fetch(12, &long));
    assert!(poll(&mut waiting).is_none());
    broker.append(&batch(&["a"]));
    let response = response(12, Outcome::Pending(waiting));
    assert_eq!(values_count(response.partitions[0].records.as_ref()), 1);
    assert_eq!(broker.ctx.purgatory.parked_count(), 0);
}

/// A fetch that waits for bytes after another thread found too few.
fn parked_elsewhere(broker: &Broker, outcome: Outcome) -> PendingOutcome {
    let mut waiting = pending(outcome);
    let host = broker.ctx.partitions.host().clone();
    loop {
        host.workers.wait_idle(&MayWait::as_documented());
        match poll(&mut waiting) {
            Some(next) => waiting = pending(next),
            None if broker.ctx.purgatory.parked_count() > 0 => return waiting,
            None => {}
        }
    }
}

#[test]
fn fetches_of_thousands_of_partitions_are_read_by_another_thread() {
    const COUNT: i32 = PARTITIONS_AT_ONCE_MAX as i32 + 1;
    let broker = Broker::in_memory().with_topic(COUNT, &[]);
    broker.append(&batch(&["a"]));
    let wanted = (0..COUNT).map(|partition| wanting(partition, 0)).collect();
    let opened = broker.fetch(12, &Request { session_epoch: 0, ..request(wanted) });
    let opened = response(12, Outcome::Pending(pending(opened)));
    assert_eq!((opened.error_code, opened.partitions.len()), (0, COUNT as usize));
    assert_eq!(values_count(opened.partitions[0].records.as_ref()), 1);

    let mut long = request(vec![wanting(0, 1)]);
    (long.session_id, long.session_epoch, long.max_wait_ms) = (opened.session_id, 1, 60_000);
    let waiting = parked_elsewhere(&broker, broker.fetch(12, &long));
    broker.append(&batch(&["b"]));
    let woken = response(12, Outcome::Pending(waiting));
    assert_eq!(woken.partitions.len(), 1);
    assert_eq!(values_count(woken.partitions[0].records.as_ref()), 1);
    assert_eq!(broker.ctx.purgatory.parked_count(), 0);
}

/// contract/kafka.md#26.
#[test]
fn parked_fetch_waits_for_min_bytes_and_returns_fewer_at_its_timeout() {
    let broker = broker();
    let mut long = request(vec![wanting(0, 0)]);
    (long.max_wait_ms, long.min_bytes) = (500, 100_000);
    let mut waiting = pending(broker.fetch(12, &long));
    broker.append(&batch(&["a"]));
    assert!(poll(&mut waiting).is_none());
    broker.clock.advance_ms(500);
    broker.expire();
    let response = response(12, Outcome::Pending(waiting));
    assert_eq!(values_count(response.partitions[0].records.as_ref()), 1);
}

/// Appends batches that together exceed the records of one response, for a broker with a
/// `memory_max` of 1 MiB.
fn append_more_than_a_response_holds(broker: &Broker) {
    let value = "x".repeat(30_000);
    (0..3).for_each(|_| _ = broker.append(&batch(&[&value])));
}

#[test]
fn fetch_with_min_bytes_above_the_reply_limit_waits_only_for_the_limit() {
    let broker = Broker::in_memory_of(1 << 20).with_topic(1, &[]);
    let mut large = request(vec![wanting(0, 0)]);
    (large.max_wait_ms, large.min_bytes) = (60_000, 1 << 20);
    let mut waiting = pending(broker.fetch(12, &large));
    assert!(poll(&mut waiting).is_none());
    append_more_than_a_response_holds(&broker);
    let waiting = poll(&mut waiting).expect("it waits for no more");
    for outcome in [waiting, broker.fetch(12, &large)] {
        assert!(matches!(outcome, Outcome::Reply(_)), "it waits although no more can be answered");
        let response = response(12, outcome);
        assert_eq!(values_count(response.partitions[0].records.as_ref()), 2);
    }
}

#[test]
fn fetch_whose_min_bytes_is_its_maximum_gets_the_whole_batches_that_fit() {
    let broker = broker();
    append_more_than_a_response_holds(&broker);
    for (bytes_max, partition_bytes_max) in [(70_000, 1 << 20), (1 << 20, 70_000)] {
        let mut limited = request(vec![wanting(0, 0)]);
        (limited.max_wait_ms, limited.min_bytes, limited.max_bytes) = (60_000, 70_000, bytes_max);
        limited.topics[0].partitions[0].partition_max_bytes = partition_bytes_max;
        let outcome = broker.fetch(12, &limited);
        assert!(matches!(outcome, Outcome::Reply(_)), "it waits although it has its maximum");
        let response = response(12, outcome);
        assert_eq!(values_count(response.partitions[0].records.as_ref()), 2);
    }
}

/// contract/replication.md#attack-17.
#[test]
fn waits_are_clamped_and_memory_for_them_is_bounded() {
    let broker = broker();
    let mut greedy = request(vec![wanting(0, 0)]);
    (greedy.max_wait_ms, greedy.min_bytes) = (i32::MAX, i32::MAX);
    (greedy.max_bytes, greedy.topics[0].partitions[0].partition_max_bytes) = (i32::MAX, i32::MAX);
    let mut waiting = pending(broker.fetch(12, &greedy));
    assert!(poll(&mut waiting).is_none());
    broker.clock.advance_ms(300_000);
    broker.expire();
    settled(Outcome::Pending(waiting));
    let mut wide = request((0..300_000).map(|_| wanting(0, 0)).collect());
    wide.max_wait_ms = 1_000;
    let waiting = parked_elsewhere(&broker, broker.fetch(12, &wide));
    let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
    assert!(partition.is_waited_on());
    drop(waiting);
    assert!(!partition.is_waited_on(), "named 300,000 times, it is one partition");
}

#[test]
fn partition_named_twice_is_answered_once_as_last_requested() {
    let broker = broker();
    broker.append(&batch(&["a", "b"]));
    let response = response(12, broker.fetch(12, &request(vec![wanting(0, 99), wanting(0, 0)])));
    let codes: Vec<i16> = response.partitions.iter().map(|p| p.error_code).collect();
    assert_eq!(codes, [0]);
}

#[test]
fn only_errors_without_a_log_have_a_list_of_aborted_transactions() {
    let broker = broker();
    let response = response(12, broker.fetch(12, &request(vec![wanting(9, 0), wanting(0, 7)])));
    let outcomes: Vec<(i16, bool)> = (response.partitions.iter())
        .map(|p| (p.error_code, p.aborted_transactions.is_some()))
        .collect();
    assert_eq!(outcomes, [(3, true), (1, false)]);
}

#[test]
fn parked_fetch_ends_with_the_partition_or_its_leadership() {
    // A client that can fetch from followers continues to wait at this broker, unless its request
    // had the leader epoch.
    for (deleted, version, code) in [(true, 12, 3), (false, 10, 6), (false, 12, 74), (true, 13, 3)]
    {
        let mut broker = broker();
        let mut long = request(vec![wanting(0, 0)]);
        long.topics[0].partitions[0].current_leader_epoch = if code == 74 { 0 } else { -1 };
        (long.max_wait_ms, long.session_epoch) = (60_000, -1);
        let mut waiting = pending(broker.fetch(version, &long));
        assert!(poll(&mut waiting).is_none());
        let mut moved = topic("t", TOPIC, 1, &[]);
        moved.partitions[0].leader = 2;
        moved.partitions[0].leader_epoch = LeaderEpoch::new(1);
        moved.partitions[0].partition_epoch = 1;
        broker.apply(if deleted {
            ImageDelta { deleted: vec![TOPIC], ..ImageDelta::default() }
        } else {
            ImageDelta { topics: vec![moved], ..ImageDelta::default() }
        });
        let response = response(version, Outcome::Pending(waiting));
        assert_eq!(response.partitions[0].error_code, code);
    }
}

#[test]
fn dropped_fetch_leaves_no_watcher() {
    let broker = broker();
    let mut long = request(vec![wanting(0, 0), wanting(1, 0)]);
    long.max_wait_ms = 60_000;
    drop(pending(broker.fetch(12, &long)));
    assert_eq!(broker.ctx.purgatory.parked_count(), 0);
    for partition in broker.ctx.partitions.all() {
        assert!(!partition.is_waited_on());
    }
}

/// contract/replication.md#attack-16.
#[test]
fn fetch_of_a_replica_is_rejected() {
    let broker = broker();
    broker.append(&batch(&["a"]));
    let old = Request { replica_id: 2, ..request(vec![wanting(0, 0)]) };
    let refused = response(12, broker.fetch(12, &old));
    assert_eq!((refused.error_code, refused.partitions[0].error_code), (31, 31));
    let replica_state = ReplicaState { replica_id: 2, replica_epoch: 1 };
    let new = Request { replica_state, ..request(vec![wanting(0, 0)]) };
    let refused = response(16, broker.fetch(16, &new));
    assert_eq!((refused.error_code, refused.partitions.len()), (31, 0));
}

/// contract/kafka.md#27.
#[test]
fn session_is_created_used_and_closed() {
    let broker = broker();
    broker.append(&batch(&["a"]));
    let open = Request { session_epoch: 0, ..request(vec![wanting(0, 0), wanting(1, 0)]) };
    let opened = response(12, broker.fetch(12, &open));
    let id = opened.session_id;
    assert!(id > 0);
    assert_eq!(opened.partitions.len(), 2);

    let next = |epoch, partitions: Vec<Partition>| Request {
        session_id: id,
        session_epoch: epoch,
        ..if partitions.is_empty() {
            Request { topics: Vec::new(), ..request(Vec::new()) }
        } else {
            request(partitions)
        }
    };
    let moved = response(12, broker.fetch(12, &next(1, vec![wanting(0, 1)])));
    assert_eq!((moved.session_id, moved.partitions.len()), (id, 0), "nothing is new");
    let wrong = response(12, broker.fetch(12, &next(1, Vec::new())));
    assert_eq!((wrong.error_code, wrong.session_id), (71, 0));
    let switched = response(13, broker.fetch(13, &next(2, Vec::new())));
    assert_eq!(switched.error_code, 106);
    broker.append(&batch(&["b"]));
    let news = response(12, broker.fetch(12, &next(2, Vec::new())));
    assert_eq!(news.partitions.len(), 1);
    assert_eq!(news.partitions[0].partition_index, 0);
    let mut forget = next(3, Vec::new());
    forget.forgotten_topics_data =
        vec![ForgottenTopic { topic: "t", topic_id: TOPIC, partitions: vec![0, 1] }];
    let empty = response(12, broker.fetch(12, &forget));
    assert_eq!((empty.error_code, empty.session_id), (0, 0), "an empty session ends");
    assert_eq!(response(12, broker.fetch(12, &next(4, Vec::new()))).error_code, 70);
}

/// contract/kafka.md#28, #63.
#[test]
fn unknown_ids_and_topics_deleted_inside_a_session() {
    let mut broker = broker();
    let mut unknown = request(vec![wanting(0, 0)]);
    unknown.topics[0].topic_id = [9; 16];
    unknown.session_epoch = 0;
    let opened = response(17, broker.fetch(17, &unknown));
    assert_eq!(opened.partitions[0].error_code, 100);
    let known = Request { session_epoch: 0, ..request(vec![wanting(0, 0)]) };
    let opened = response(17, broker.fetch(17, &known));
    broker.apply(ImageDelta { deleted: vec![TOPIC], ..ImageDelta::default() });
    let next = Request {
        session_id: opened.session_id,
        session_epoch: 1,
        topics: Vec::new(),
        ..request(Vec::new())
    };
    let deleted = response(17, broker.fetch(17, &next));
    assert_eq!(deleted.partitions[0].error_code, 3);
    let by_name = response(12, broker.fetch(12, &request(vec![wanting(0, 0)])));
    assert_eq!(by_name.partitions[0].error_code, 3);
}

/// contract/kafka.md#29, contract/replication.md#attack-18.
#[test]
fn wrong_epochs_are_fenced() {
    let mut broker = broker();
    let mut newer = topic("t", TOPIC, 1, &[]);
    newer.partitions = vec![led_here(0, 4, 4)];
    broker.apply(ImageDelta { topics: vec![newer], ..ImageDelta::default() });
    for (epoch, code) in [(3, 74), (4, 0), (5, 75), (i32::MAX, 75), (-1, 0), (-2, 0)] {
        let mut fenced = request(vec![wanting(0, 0)]);
        fenced.topics[0].partitions[0].current_leader_epoch = epoch;
        let response = response(12, broker.fetch(12, &fenced));
        assert_eq!(response.partitions[0].error_code, code, "{epoch}");
    }
}

/// contract/kafka.md#30.
#[test]
fn diverging_epoch_is_returned_without_records() {
    let mut broker = Broker::in_memory().with_topic(1, &[]);
    broker.append(&batch(&["a", "b"]));
    let mut newer = topic("t", TOPIC, 1, &[]);
    newer.partitions = vec![led_here(0, 3, 3)];
    broker.apply(ImageDelta { topics: vec![newer], ..ImageDelta::default() });
    broker.append(&batch(&["c"]));
    let mut diverged = request(vec![wanting(0, 3)]);
    diverged.topics[0].partitions[0].last_fetched_epoch = 0;
    let response = response(12, broker.fetch(12, &diverged));
    let partition = &response.partitions[0];
    assert_eq!((partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset), (0, 2));
    assert_eq!(partition.records.as_ref().map(Records::len), Some(0));
}

/// contract/kafka.md#30.
#[test]
fn reader_past_the_end_gets_the_end_offset_of_its_epoch() {
    let broker = broker();
    broker.append(&batch(&["a", "b"]));
    for (offset, last_fetched_epoch, code, end) in [(99, 0, 0, 2), (99, -1, 1, -1), (99, 3, 1, -1)]
    {
        let mut ahead = request(vec![wanting(0, offset)]);
        ahead.topics[0].partitions[0].last_fetched_epoch = last_fetched_epoch;
        let response = response(12, broker.fetch(12, &ahead));
        let partition = &response.partitions[0];
        assert_eq!((partition.error_code, partition.diverging_epoch.end_offset), (code, end));
    }
}

/// contract/kafka.md#62.
#[test]
fn negative_sizes_and_unknown_isolation_are_unknown_server_errors() {
    let broker = broker();
    broker.append(&batch(&["a"]));
    let mut negative = request(vec![wanting(0, 0)]);
    negative.topics[0].partitions[0].partition_max_bytes = -1;
    assert_eq!(response(12, broker.fetch(12, &negative)).partitions[0].error_code, -1);
    let negative = Request { max_bytes: -1, ..request(vec![wanting(0, 0)]) };
    assert_eq!(response(12, broker.fetch(12, &negative)).partitions[0].error_code, -1);
    let strange = Request { isolation_level: 7, ..request(vec![wanting(0, 0)]) };
    assert_eq!(response(12, broker.fetch(12, &strange)).error_code, -1);
}

/// contract/kafka.md#22.
#[test]
fn read_uncommitted_has_no_list_of_aborted_transactions() {
    let broker = broker();
    broker.append(&batch(&["a"]));
    let uncommitted = response(12, broker.fetch(12, &request(vec![wanting(0, 0)])));
    assert_eq!(uncommitted.partitions[0].aborted_transactions, None);
    let committed = Request { isolation_level: 1, ..request(vec![wanting(0, 0)]) };
    let committed = response(12, broker.fetch(12, &committed));
    assert_eq!(committed.partitions[0].aborted_transactions, Some(Vec::new()));
    assert_eq!(committed.partitions[0].last_stable_offset, 1);
}

#[test]
fn hidden_topics_are_unknown_to_clients() {
    let mut broker = Broker::in_memory();
    let mut hidden = topic("t", TOPIC, 1, &[]);
    hidden.hidden = true;
    broker.apply(ImageDelta { topics: vec![hidden], ..ImageDelta::default() });
    for (version, code) in [(12, 3), (13, 100)] {
        let response = response(version, broker.fetch(version, &request(vec![wanting(0, 0)])));
        assert_eq!(response.partitions[0].error_code, code);
    }
}

fn with_quota(mut broker: Broker, bytes_per_second: f64) -> Broker {
    let quota = ClientQuota {
        user: Named::Nobody,
        client_id: Named::Default,
        metered: Metered::Fetched,
        bytes_per_second,
    };
    broker.apply(ImageDelta { client_quotas: Some(vec![quota]), ..ImageDelta::default() });
    broker
}

/// contract/kafka.md#33.
#[test]
fn a_fetch_over_the_quota_returns_no_records_and_its_session_continues() {
    let broker = with_quota(broker(), 100.0);
    let records = batch(&["x".repeat(900).as_str()]);
    broker.append(&records);
    let first = response(
        12,
        broker.fetch(12, &Request { session_epoch: 0, ..request(vec![wanting(0, 0)]) }),
    );
    assert_eq!(values_count(first.partitions[0].records.as_ref()), 1);
    let next =
        Request { session_id: first.session_id, session_epoch: 1, ..request(vec![wanting(0, 0)]) };
    let throttled = response(12, broker.fetch(12, &next));
    assert_eq!((throttled.error_code, throttled.session_id), (0, first.session_id));
    assert!(throttled.partitions.is_empty());
    assert!(throttled.throttle_time_ms > 1_000, "{}", throttled.throttle_time_ms);
    broker.clock.advance_ms(11_000);
    let again = Request { session_epoch: 2, topics: Vec::new(), ..next };
    let answered = response(12, broker.fetch(12, &again));
    assert_eq!((answered.throttle_time_ms, answered.session_id), (0, first.session_id));
    assert_eq!(values_count(answered.partitions[0].records.as_ref()), 1);
}

/// A fetch does not wait for more bytes than its quota ever allows at once.
#[test]
fn min_bytes_of_a_fetch_is_capped_by_its_quota() {
    let broker = with_quota(broker(), 100.0);
    broker.append(&batch(&["x".repeat(600).as_str()]));
    broker.append(&batch(&["x".repeat(600).as_str()]));
    let wanted = Request { min_bytes: 1 << 20, max_wait_ms: 1_000, ..request(vec![wanting(0, 0)]) };
    let response = response(12, broker.fetch(12, &wanted));
    assert_eq!(values_count(response.partitions[0].records.as_ref()), 1);
}
