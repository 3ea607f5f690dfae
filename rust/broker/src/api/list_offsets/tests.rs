//! Tests of the handlers for offsets by timestamp, by end of log and by leader epoch.

use std::sync::Arc;

use bytes::BytesMut;
use pykafka_log::Durability;
use pykafka_record::{BatchBuilder, BatchOptions, Compression, LeaderEpoch};
use pykafka_wire::list_offsets::{Partition, Request, Response, Topic};
use pykafka_wire::{ApiKey, offset_for_leader_epoch as epochs};

use crate::api::list_offsets::{Search, Searched};
use crate::control_api::event::Event;
use crate::control_api::image::delta::ImageDelta;
use crate::kafka_error::KafkaError;
use crate::partition::log::lookup::{LookUp, OffsetQuery};
use crate::partition::log::read::Isolation;
use crate::request::ConnectionInfo;
use crate::testing::gate_disk::Op;
use crate::testing::{
    Broker, REPLICATION, START_MS, TOPIC, batch, connection, header, led_here, replicated, replied,
    topic,
};

/// Error code, offset, timestamp and leader epoch of each requested partition.
fn ask(
    broker: &Broker,
    version: i16,
    isolation_level: i8,
    of: &[Partition],
) -> Vec<(i16, i64, i64, i32)> {
    let partitions = of.to_vec();
    let topics = vec![Topic { name: "t", partitions }];
    let request = Request { replica_id: -1, isolation_level, topics, timeout_ms: 0 };
    let mut body = BytesMut::new();
    request.encode(version, &mut body).unwrap();
    let header = header(ApiKey::LIST_OFFSETS, version);
    let bytes =
        replied(super::handle(&broker.ctx, &connection(), &header, &body.freeze(), broker.room()));
    let response = Response::decode(version, &bytes).unwrap();
    (response.topics[0].partitions.iter())
        .map(|p| (p.error_code, p.offset, p.timestamp, p.leader_epoch))
        .collect()
}

fn at(timestamp: i64) -> Partition {
    Partition { partition_index: 0, current_leader_epoch: -1, timestamp }
}

fn find(broker: &Broker, version: i16, timestamp: i64) -> (i16, i64, i64) {
    let (code, offset, timestamp, _) = ask(broker, version, 0, &[at(timestamp)])[0];
    (code, offset, timestamp)
}

/// A partition whose offsets 0, 1 and 2 have timestamps 10, 30 and 20 ms after the start.
fn broker() -> Broker {
    let broker = Broker::in_memory().with_topic(1, &[]);
    for after_ms in [10, 30, 20] {
        let mut builder = BatchBuilder::new(BatchOptions::default());
        builder.append(START_MS + after_ms, None, Some(b"v"), &[]).unwrap();
        let mut records = Vec::new();
        builder.build(&mut records).unwrap();
        broker.append(&records);
    }
    broker
}

#[test]
fn every_version_answers_and_carries_an_epoch_from_4_on() {
    let broker = broker();
    for version in 1..=11 {
        let epoch = if version < 4 { -1 } else { 0 };
        assert_eq!(ask(&broker, version, 0, &[at(-1)]), [(0, 3, -1, epoch)], "v{version}");
    }
}

/// A follower truncates its log to this offset.
#[test]
fn a_follower_gets_the_log_end_and_other_replica_ids_get_the_high_watermark() {
    let mut broker = Broker::in_memory().in_cluster();
    broker.replicate(replicated(0, &[1, 2], &[1, 2]), &[]);
    broker.append_waiting_for_nobody(&batch(&["a", "b"]));
    let latest = |listener: &str, replica_id| {
        let topics = vec![Topic { name: "t", partitions: vec![at(-1)] }];
        let request = Request { replica_id, isolation_level: 0, topics, timeout_ms: 0 };
        let mut body = BytesMut::new();
        request.encode(9, &mut body).unwrap();
        let conn = ConnectionInfo { listener: Arc::from(listener), ..connection() };
        let header = header(ApiKey::LIST_OFFSETS, 9);
        let body = body.freeze();
        let bytes = replied(super::handle(&broker.ctx, &conn, &header, &body, broker.room()));
        Response::decode(9, &bytes).unwrap().topics[0].partitions[0].offset
    };
    assert_eq!(latest(REPLICATION, 2), 2);
    for (listener, replica_id) in [(REPLICATION, -1), (REPLICATION, 9), ("PLAINTEXT", 2)] {
        assert_eq!(latest(listener, replica_id), 0, "{listener} {replica_id}");
    }
}

/// contract/kafka.md#31.
#[test]
fn ends_and_times_are_found() {
    let broker = broker();
    assert_eq!(find(&broker, 9, -1), (0, 3, -1));
    assert_eq!(find(&broker, 9, -2), (0, 0, -1));
    assert_eq!(find(&broker, 9, -3), (0, 1, START_MS + 30));
    assert_eq!(find(&broker, 9, -4), (0, 0, -1));
    assert_eq!(find(&broker, 9, -5), (0, -1, -1));
    assert_eq!(find(&broker, 11, -6), (0, -1, -1));
    assert_eq!(find(&broker, 9, START_MS + 15), (0, 1, START_MS + 30));
    assert_eq!(find(&broker, 9, 0), (0, 0, START_MS + 10));
    assert_eq!(find(&broker, 9, START_MS + 31), (0, -1, -1));
    assert_eq!(ask(&broker, 9, 1, &[at(-1)])[0], (0, 3, -1, 0));
}

#[test]
fn a_search_that_ran_out_of_time_continues_in_the_next_turn() {
    let broker = broker();
    let asked = [at(-1), at(0), at(-1)].map(|one| Partition { partition_index: 0, ..one });
    let mut partitions = asked.to_vec();
    partitions[1].partition_index = 1;
    partitions[2].partition_index = 2;
    let request = Request { topics: vec![Topic { name: "t", partitions }], ..Request::default() };
    let mut search = Search::new(None, broker.room());
    let mut searched = || search.go_on(&broker.ctx, 9, &request, None, &|| true);
    let turns = [searched(), searched(), searched(), searched()];
    assert_eq!(turns, [Searched::UntilOver, Searched::UntilOver, Searched::All, Searched::All]);
    let bytes = replied(search.response(9, &request));
    let response = Response::decode(9, &bytes).unwrap();
    let found: Vec<_> = response.topics[0].partitions.iter().map(|one| one.offset).collect();
    assert_eq!(found, [3, -1, -1], "one is there");
}

/// contract/kafka.md#31.
#[test]
fn negative_times_need_their_version() {
    let broker = broker();
    for (version, timestamp) in [(6, -3), (7, -4), (8, -5), (10, -6), (11, -7), (11, i64::MIN)] {
        assert_eq!(find(&broker, version, timestamp), (35, -1, -1), "{version} {timestamp}");
    }
}

/// contract/kafka.md#31.
#[test]
fn partition_named_twice_is_an_invalid_request() {
    let broker = broker();
    let codes: Vec<i16> =
        ask(&broker, 9, 0, &[at(-1), at(-2)]).into_iter().map(|response| response.0).collect();
    assert_eq!(codes, [42], "answered once, as by Kafka");
}

/// contract/kafka.md#29.
#[test]
fn wrong_epochs_are_fenced() {
    let broker = broker();
    for (current_leader_epoch, code) in [(0, 0), (1, 75), (-1, 0)] {
        let partition = Partition { current_leader_epoch, ..at(-1) };
        assert_eq!(ask(&broker, 9, 0, &[partition])[0].0, code);
    }
    let missing = Partition { partition_index: 9, ..at(-1) };
    assert_eq!(ask(&broker, 9, 0, &[missing])[0].0, 3);
    assert_eq!(ask(&broker, 9, 7, &[at(-1)])[0].0, -1);
}

/// contract/kafka.md#31.
#[test]
fn lagging_high_watermark_is_offset_not_available() {
    let mut broker = Broker::in_memory();
    let mut replicated = topic("t", TOPIC, 1, &[]);
    replicated.partitions[0].replicas = vec![1, 2];
    broker.apply(ImageDelta { topics: vec![replicated.clone()], ..ImageDelta::default() });
    broker.append(&batch(&["a"]));
    replicated.partitions[0] = led_here(0, 1, 1);
    replicated.partitions[0].replicas = vec![1, 2];
    replicated.partitions[0].isr = vec![1, 2];
    broker.append(&batch(&["b"]));
    // Appended but not committed, because the ISR has a second replica; then a new leader epoch
    // starts.
    broker.apply(ImageDelta { topics: vec![replicated.clone()], ..ImageDelta::default() });
    assert!(matches!(
        broker.produce(9, 1, &batch(&["c"])),
        crate::network::outcome::Outcome::Reply(_)
    ));
    replicated.partitions[0].leader_epoch = LeaderEpoch::new(2);
    replicated.partitions[0].partition_epoch = 2;
    broker.apply(ImageDelta { topics: vec![replicated], ..ImageDelta::default() });
    assert_eq!(find(&broker, 5, -1), (78, -1, -1));
    assert_eq!(find(&broker, 4, -1), (5, -1, -1));
    assert_eq!(find(&broker, 5, -2), (0, 0, -1));
}

fn end_of(broker: &Broker, leader_epoch: i32, current_leader_epoch: i32) -> (i16, i32, i64) {
    let partition = epochs::Partition { partition: 0, current_leader_epoch, leader_epoch };
    let topics = vec![epochs::Topic { topic: "t", partitions: vec![partition] }];
    let mut body = BytesMut::new();
    epochs::Request { replica_id: -2, topics }.encode(4, &mut body).unwrap();
    let header = header(ApiKey::OFFSET_FOR_LEADER_EPOCH, 4);
    let (ctx, body) = (&broker.ctx, body.freeze());
    let outcome = crate::api::offset_for_leader_epoch::handle(ctx, &connection(), &header, &body);
    let bytes = replied(outcome);
    let response = epochs::Response::decode(4, &bytes).unwrap();
    let partition = &response.topics[0].partitions[0];
    (partition.error_code, partition.leader_epoch, partition.end_offset)
}

/// contract/kafka.md#30.
#[test]
fn the_end_of_each_epoch_is_returned() {
    let mut broker = Broker::in_memory();
    let mut led = topic("t", TOPIC, 1, &[]);
    for epoch in [2, 5] {
        led.partitions = vec![led_here(0, epoch, epoch)];
        broker.apply(ImageDelta { topics: vec![led.clone()], ..ImageDelta::default() });
        broker.append(&batch(&["a", "b"]));
    }
    assert_eq!(end_of(&broker, 5, -1), (0, 5, 4), "latest epoch: log end");
    assert_eq!(end_of(&broker, 3, -1), (0, 2, 2), "between: largest below, start of next");
    assert_eq!(end_of(&broker, 1, -1), (0, 1, 0), "older than all: first start");
    assert_eq!(
        end_of(&broker, -5, -1),
        (0, -5, 0),
        "negative, but not undefined: as older than all"
    );
    assert_eq!(end_of(&broker, -1, -1), (0, -1, -1), "undefined");
    assert_eq!(end_of(&broker, 9, -1), (0, -1, -1), "unknown");
    assert_eq!(end_of(&broker, 5, 4), (74, -1, -1));
}

/// contract/kafka.md#39, #56.
#[test]
fn delete_records_moves_the_start_within_the_high_watermark() {
    let broker = broker();
    broker.events();
    for (token, offset) in [(1, 2), (2, 4), (3, -2), (4, -1)] {
        broker.ctx.partitions.delete_before(token, &(TOPIC, 0), offset);
    }
    assert_eq!(broker.maintained(), [(1, 0, 2), (2, 1, -1), (3, 1, -1), (4, 0, 3)]);
    assert_eq!(find(&broker, 9, -2), (0, 3, -1));
    assert_eq!(broker.append(&batch(&["next"])), 3);
}

/// Regression test: the failed look-up was reported as a disk error, which took the partition
/// offline once.
#[test]
fn a_failed_look_up_by_time_in_a_deleted_topic_is_an_unknown_partition() {
    let broker = broker();
    let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
    let log = partition.opened_log().unwrap();
    log.roll().unwrap();
    broker.append(&batch(&["later"]));
    log.release_idle_files().unwrap();
    let index = log.dir().join("00000000000000000000.timeindex");
    broker.gate.hold_at(Op::Open, &index);
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| find(&broker, 9, START_MS));
        broker.gate.until_waiting(1);
        let deletion =
            ImageDelta { deleted: vec![TOPIC], metadata_offset: 9, ..ImageDelta::default() };
        let step = broker.ctx.image.load().step(deletion).unwrap();
        broker.ctx.partitions.apply(&step.image, &step.changed, &step.deleted);
        broker.gate.fail_at(Op::Open, &index);
        broker.gate.open();
        assert_eq!(asked.join().unwrap(), (3, -1, -1));
    });
    let failed = |event: &Event| matches!(event, Event::DiskState { .. });
    assert!(!broker.events().iter().any(failed), "nothing is wrong with the disk");
}

/// As Kafka 4.4.0: the record that is found before is returned.
#[test]
fn look_ups_refuse_stored_records_above_a_lowered_maximum() {
    let broker = Broker::in_memory().with_topic(1, &[]);
    for (compression, large_at) in [(Compression::None, 0), (Compression::Lz4, 10)] {
        let options = BatchOptions { compression, ..BatchOptions::default() };
        let mut builder = BatchBuilder::new(options);
        for (after_ms, size) in [(0, 1), (1, 500), (2, 1)] {
            let value = vec![b'v'; size];
            builder.append(START_MS + large_at + after_ms, None, Some(&value), &[]).unwrap();
        }
        let mut records = Vec::new();
        builder.build(&mut records).unwrap();
        broker.append(&records);
    }
    let broker = broker.with_topic(1, &[("max.decompressed.message.bytes", "100")]);
    let refused = (KafkaError::InvalidRecord.code(), -1, -1);
    assert_eq!(find(&broker, 9, START_MS + 1), (0, 1, START_MS + 1));
    assert_eq!(find(&broker, 9, START_MS + 10), (0, 3, START_MS + 10));
    assert_eq!(find(&broker, 9, START_MS + 12), refused);
    assert_eq!(find(&broker, 9, -3), refused);
    assert_eq!(find(&broker, 9, -1), (0, 6, -1));
    let broker = broker.with_topic(1, &[]);
    assert_eq!(find(&broker, 9, -3), (0, 5, START_MS + 12));
}

/// Regression test: a request during the open of the log was answered with a storage error.
#[test]
fn an_unopened_log_is_not_a_disk_fault() {
    let broker = Broker::on_disk(Durability::Os).with_topic(1, &[]);
    broker.append(&batch(&["a"]));
    let broker = broker.killed_and_restarted(Durability::Os).with_topic(1, &[]);
    let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
    let ask = || {
        let isolation = Isolation::ReadUncommitted;
        partition.find_offset(OffsetQuery::Latest, LookUp::Small, isolation, None).map(drop)
    };
    assert_eq!(ask(), Err(KafkaError::NotLeaderOrFollower));
    // No file descriptors are left: the log stays unopened, and its next use retries.
    broker.gate.refuse_at(Op::Open, "/data/t-0");
    assert_eq!(find(&broker, 9, -1).0, KafkaError::KafkaStorageError.code());
    assert_eq!(ask(), Err(KafkaError::KafkaStorageError));
    broker.gate.heal();
    assert_eq!(find(&broker, 9, -1), (0, 1, -1));
    assert_eq!(ask(), Ok(()));
}

/// Regression test: a file that retention had removed before it was opened took the partition
/// offline.
#[test]
fn a_look_up_by_time_during_retention_uses_the_remaining_segments() {
    let broker = broker();
    let image = broker.ctx.image.load();
    let partition = broker.ctx.partitions.find(image.topic("t").unwrap(), 0).unwrap();
    let log = partition.opened_log().unwrap();
    log.roll().unwrap();
    broker.append(&batch(&["later"]));
    log.release_idle_files().unwrap();
    broker.gate.hold_at(Op::Open, log.dir().join("00000000000000000000.timeindex"));
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| find(&broker, 9, START_MS));
        broker.gate.until_waiting(1);
        log.delete_before(3).unwrap();
        assert_eq!(log.enforce_retention(4).unwrap(), 1);
        broker.gate.open();
        assert_eq!(asked.join().unwrap(), (0, 3, START_MS));
    });
    assert_eq!(find(&broker, 9, -2), (0, 3, -1));
}
