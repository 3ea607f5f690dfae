//! Tests that a disk that hangs, or slow work, blocks no connection thread: handlers return at
//! once, whatever their partition waits for, and other requests are served. The control thread is
//! not blocked either.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use pykafka_log::{AppendOrigin, Durability};
use pykafka_record::{
    BatchOptions, Compression, HEADER_SIZE, LeaderEpoch, ProducerEpoch, ProducerId, compress,
    crc32c,
};
use pykafka_wire::{ApiKey, Records, fetch, list_offsets, metadata, produce};
use tokio::task::JoinHandle;

use crate::control_api::event::Event;
use crate::control_api::image::delta::{ImageDelta, TopicImage};
use crate::control_api::image::{PartitionEntry, TopicId};
use crate::kafka_error::KafkaError;
use crate::network::engine::Engine;
use crate::network::outcome::Outcome;
use crate::partition::Partition;
use crate::partition::append::outcome::AppendOutcome;
use crate::partition::append::queued::Append;
use crate::partition::partition_table::command::BatchKind;
use crate::partition::threads::may_wait::MayWait;
use crate::partition::waiters::{AckWaiter, Promise};
use crate::testing::gate_disk::Op;
use crate::testing::{
    Broker, TOPIC, batch, batch_with, connection, header, led_here, pending, poll, replied,
    request_of, settled, topic,
};

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// More than the number of connection threads.
const BLOCKED: i32 = 6;
/// The gate never holds this partition.
const FREE: i32 = 7;
/// Node id of another broker.
const OTHER_NODE: i32 = 9;
/// Another topic, or the one that is created under the name of a deleted one.
const AGAIN: TopicId = [8; 16];

/// Number of consecutive writes after which a disk counts as fast.
const WRITES: usize = 70;

/// Runs a test that would hang if a handler waited for the disk.
fn within_patience(test: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    let running = thread::spawn(move || {
        test();
        done.send(()).unwrap();
    });
    match ended.recv_timeout(PATIENCE) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("a handler waits for the disk"),
        _ => running.join().unwrap(),
    }
}

fn dir(partition: i32) -> String {
    format!("/data/t-{partition}")
}

fn produce_to(broker: &Broker, partition: i32, acks: i16, records: &[u8]) -> Outcome {
    broker.produce_request(9, &request_of(acks, &[(partition, Some(records))]))
}

/// Error code and base offset of the only partition.
fn produced(outcome: Outcome) -> (i16, i64) {
    let response = replied(outcome);
    let response = produce::Response::decode(9, &response).unwrap();
    let partition = &response.responses[0].partitions[0];
    (partition.error_code, partition.base_offset)
}

fn fetch_from(broker: &Broker, partition: i32) -> Outcome {
    let partition = fetch::Partition {
        partition,
        current_leader_epoch: -1,
        fetch_offset: 0,
        last_fetched_epoch: -1,
        partition_max_bytes: 1 << 20,
        ..fetch::Partition::default()
    };
    let topic = fetch::Topic { topic: "t", partitions: vec![partition], ..fetch::Topic::default() };
    broker.fetch(
        11,
        &fetch::Request {
            replica_id: -1,
            max_wait_ms: 0,
            min_bytes: 1,
            max_bytes: 1 << 20,
            session_epoch: -1,
            topics: vec![topic],
            ..fetch::Request::default()
        },
    )
}

fn fetched_count(outcome: Outcome) -> usize {
    let bytes = replied(outcome);
    let response = fetch::Response::decode(11, &bytes).unwrap();
    match &response.responses[0].partitions[0].records {
        Some(Records::Bytes(bytes)) => pykafka_record::batches(bytes).count(),
        other => panic!("{other:?}"),
    }
}

fn is_at_once(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Reply(_))
}

fn latest(broker: &Broker, partition: i32) -> Outcome {
    let partition = list_offsets::Partition {
        partition_index: partition,
        current_leader_epoch: -1,
        timestamp: -1,
    };
    let topic = list_offsets::Topic { name: "t", partitions: vec![partition] };
    let request =
        list_offsets::Request { replica_id: -1, topics: vec![topic], ..Default::default() };
    let mut body = bytes::BytesMut::new();
    request.encode(5, &mut body).unwrap();
    let header = header(ApiKey::LIST_OFFSETS, 5);
    crate::api::list_offsets::handle(
        &broker.ctx,
        &connection(),
        &header,
        &body.freeze(),
        broker.room(),
    )
}

fn metadata_of_all(broker: &Broker) -> Outcome {
    let mut body = Vec::new();
    metadata::Request { topics: None, ..Default::default() }.encode(9, &mut body).unwrap();
    let header = header(ApiKey::METADATA, 9);
    crate::api::metadata::handle(&broker.ctx, &connection(), &header, &body, broker.room())
}

/// A broker whose partitions have one record each.
fn broker_with_records(durability: Durability) -> Broker {
    let broker = Broker::on_disk(durability).with_topic(FREE + 1, &[]);
    for partition in 0..=FREE {
        assert_eq!(produced(produce_to(&broker, partition, -1, &batch(&["a"]))), (0, 0));
    }
    broker
}

fn everybody_else_is_served(broker: &Broker) {
    assert!(is_at_once(&metadata_of_all(broker)));
    for partition in 0..=FREE {
        let fetched = fetch_from(broker, partition);
        assert!(is_at_once(&fetched));
        assert_eq!(fetched_count(fetched), 1, "what was there before");
        assert!(is_at_once(&latest(broker, partition)));
    }
    assert_eq!(produced(produce_to(broker, FREE, -1, &batch(&["b"]))), (0, 1));
}

/// A batch that is written, not copied into memory.
fn large() -> Vec<u8> {
    batch(&[&"v".repeat(50_000)])
}

/// A broker whose partitions have several large batches, all of which were written fast.
fn broker_on_a_quick_disk() -> Arc<Broker> {
    let broker = broker_with_records(Durability::Os);
    for n in 0..WRITES as i32 {
        assert_eq!(produced(produce_to(&broker, n % (FREE + 1), 1, &large())).0, 0);
    }
    Arc::new(broker)
}

/// Runs `act` on a network thread.
fn on_the_network<T: Send + 'static>(
    broker: &Arc<Broker>,
    act: impl FnOnce(&Broker) -> T + Send + 'static,
) -> JoinHandle<T> {
    let broker = broker.clone();
    Engine::shared().unwrap().handle().spawn(async move { act(&broker) })
}

fn result<T>(task: JoinHandle<T>) -> T {
    Engine::shared().unwrap().handle().block_on(task).unwrap()
}

/// Returns true if the connection's thread writes a large batch itself.
fn is_written_at_once(broker: &Arc<Broker>, partition: i32) -> bool {
    let produce = move |broker: &Broker| produce_to(broker, partition, 1, &large());
    assert_eq!(produced(result(on_the_network(broker, produce))).0, 0);
    broker.gate.last_writer() == "pykafka-net"
}

#[test]
fn connection_threads_write_to_a_fast_disk() {
    within_patience(|| {
        let broker = broker_on_a_quick_disk();
        // Threads must not wait while another test has a long wait.
        while !is_written_at_once(&broker, 1) {}
        broker.gate.hold_at(Op::Write, dir(1));
        let slow = on_the_network(&broker, |broker| produce_to(broker, 1, 1, &large()));
        broker.gate.until_waiting(1);
        broker.clock.advance_ms(10);
        broker.gate.open();
        assert_eq!(produced(result(slow)).0, 0);
        for _ in 0..WRITES / 2 {
            assert!(!is_written_at_once(&broker, 1), "it was slow");
        }
        for _ in 0..WRITES {
            is_written_at_once(&broker, 2);
        }
        while !is_written_at_once(&broker, 1) {}
    });
}

#[test]
fn a_request_for_many_partitions_leaves_all_writes_but_one_to_the_pool() {
    within_patience(|| {
        let broker = broker_on_a_quick_disk();
        while !is_written_at_once(&broker, 1) {}
        let outcome = result(on_the_network(&broker, |broker| {
            let batch = large();
            let all: Vec<_> = (0..=FREE).map(|partition| (partition, Some(&batch[..]))).collect();
            broker.produce_request(9, &request_of(1, &all))
        }));
        assert_eq!(produced(outcome).0, 0);
        assert_ne!(broker.gate.last_writer(), "pykafka-net");
    });
}

/// More writes than there are connection threads.
#[test]
fn writes_by_connection_threads_block_no_other_requests() {
    within_patience(|| {
        let broker = broker_on_a_quick_disk();
        (0..BLOCKED).for_each(|partition| broker.gate.hold_at(Op::Write, dir(partition)));
        let produce = |partition| {
            on_the_network(&broker, move |broker| produce_to(broker, partition, 1, &large()))
        };
        let written: Vec<_> = (0..BLOCKED).map(produce).collect();
        broker.gate.until_waiting(BLOCKED as usize);
        for partition in 0..=FREE {
            assert!(is_at_once(&result(on_the_network(&broker, move |broker| {
                fetch_from(broker, partition)
            }))));
            assert!(is_at_once(&result(on_the_network(&broker, move |broker| {
                latest(broker, partition)
            }))));
        }
        assert!(is_at_once(&result(on_the_network(&broker, metadata_of_all))));
        let free = on_the_network(&broker, |broker| produce_to(broker, FREE, 1, &large()));
        assert_eq!(produced(result(free)).0, 0);
        let queued = on_the_network(&broker, |broker| produce_to(broker, 0, 1, &large()));
        let queued = result(queued);
        broker.gate.open();
        let offsets: Vec<_> =
            written.into_iter().map(|written| produced(result(written))).collect();
        assert!(offsets.iter().all(|(error_code, _)| *error_code == 0), "{offsets:?}");
        assert_eq!(produced(queued), (0, offsets[0].1 + 1), "in the order of the calls");
    });
}

#[test]
fn blocked_writes_block_no_other_requests() {
    within_patience(|| {
        for durability in [Durability::Os, Durability::Fsync] {
            let broker = broker_with_records(durability);
            (0..BLOCKED).for_each(|partition| broker.gate.hold_at(Op::Write, dir(partition)));
            let waiting: Vec<_> = (0..BLOCKED)
                .map(|partition| pending(produce_to(&broker, partition, -1, &batch(&["b"]))))
                .collect();
            broker.gate.until_waiting(BLOCKED as usize);
            everybody_else_is_served(&broker);
            broker.gate.open();
            for waiting in waiting {
                assert_eq!(produced(Outcome::Pending(waiting)), (0, 1));
            }
        }
    });
}

#[test]
fn slow_recoveries_block_no_other_requests() {
    within_patience(|| {
        let broker = broker_with_records(Durability::Os).killed_and_restarted(Durability::Os);
        let broker = broker.with_topic(FREE + 1, &[]);
        (0..BLOCKED).for_each(|partition| broker.gate.hold_at(Op::Read, dir(partition)));
        let fetches: Vec<_> =
            (0..BLOCKED).map(|partition| pending(fetch_from(&broker, partition))).collect();
        let produces: Vec<_> = (0..BLOCKED)
            .map(|partition| pending(produce_to(&broker, partition, 1, &batch(&["b"]))))
            .collect();
        broker.gate.until_waiting(BLOCKED as usize);
        assert!(is_at_once(&metadata_of_all(&broker)));
        assert_eq!(produced(produce_to(&broker, FREE, -1, &batch(&["b"]))), (0, 1));
        broker.gate.open();
        for fetch in fetches {
            assert!(fetched_count(Outcome::Pending(fetch)) >= 1);
        }
        for produce in produces {
            assert_eq!(produced(Outcome::Pending(produce)), (0, 1));
        }
    });
}

#[test]
fn compressed_batches_are_decompressed_by_threads_that_may_wait() {
    let records = compressed(Compression::Gzip, "a");
    for broker in [Broker::in_memory(), Broker::on_disk(Durability::Os)] {
        let broker = broker.with_topic(1, &[]);
        // The other thread can be so fast that a request finds its append done.
        let is_another_thread = (0..1_000).any(|offset| {
            let outcome = produce_to(&broker, 0, -1, &records);
            let is_at_once = is_at_once(&outcome);
            assert_eq!(produced(outcome), (0, offset));
            !is_at_once
        });
        assert!(is_another_thread);
    }
}

fn compressed(compression: Compression, value: &str) -> Vec<u8> {
    batch_with(BatchOptions { compression, ..BatchOptions::default() }, &[value])
}

/// A batch of two records with the same offset: the broker has to compress it again.
fn compressed_with_equal_offsets() -> Vec<u8> {
    let one = batch_with(BatchOptions::default(), &["a"]);
    let (mut bytes, mut payload) = (one[..HEADER_SIZE].to_vec(), Vec::new());
    compress(Compression::Lz4, None, &one[HEADER_SIZE..].repeat(2), &mut payload).unwrap();
    bytes.extend(payload);
    let size = bytes.len() as i32 - 12;
    bytes[8..12].copy_from_slice(&size.to_be_bytes());
    bytes[21..23].copy_from_slice(&3i16.to_be_bytes());
    bytes[23..27].copy_from_slice(&1i32.to_be_bytes());
    bytes[57..61].copy_from_slice(&2i32.to_be_bytes());
    let crc = crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// Number of tasks of the write pool that a request of a network thread submits.
fn pool_tasks(broker: &Arc<Broker>, partitions: i32, records: &[u8]) -> u64 {
    let begun = || broker.ctx.partitions.host().writers.begun();
    let before = begun();
    let records = records.to_vec();
    let outcome = result(on_the_network(broker, move |broker| {
        let all: Vec<_> = (0..partitions).map(|index| (index, Some(&records[..]))).collect();
        broker.produce_request(9, &request_of(1, &all))
    }));
    assert_eq!(produced(outcome).0, 0);
    begun() - before
}

#[test]
fn connection_threads_decompress_small_batches() {
    within_patience(|| {
        let broker = Arc::new(Broker::in_memory().with_topic(BLOCKED, &[]));
        for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
            let records = compressed(codec, "a");
            // Threads must not wait while another test has a long wait.
            while pool_tasks(&broker, BLOCKED, &records) != 0 {}
        }
    });
}

#[test]
fn connection_threads_decompress_only_small_batches_and_few_of_a_request() {
    within_patience(|| {
        let broker = Arc::new(Broker::in_memory().with_topic(20, &[]));
        let small = compressed(Compression::Lz4, "a");
        while pool_tasks(&broker, 1, &small) != 0 {}
        let large = compressed(Compression::Lz4, &"v".repeat(300_000));
        assert!(large.len() < 10_000);
        assert_eq!(pool_tasks(&broker, 1, &large), 1);
        assert_eq!(pool_tasks(&broker, 1, &compressed_with_equal_offsets()), 1);
        assert!(pool_tasks(&broker, 20, &small) >= 12);
        // Together they take as long as one batch of the maximum size.
        let half = compressed(Compression::Lz4, &"v".repeat(140_000));
        while pool_tasks(&broker, 1, &half) != 0 {}
        assert!(pool_tasks(&broker, 8, &half) >= 7);
        let other_codec = Broker::in_memory().with_topic(1, &[("compression.type", "zstd")]);
        assert_eq!(pool_tasks(&Arc::new(other_codec), 1, &small), 1);
    });
}

#[test]
fn large_metadata_is_encoded_by_another_thread() {
    let broker = Broker::in_memory().with_topic(2_001, &[]);
    let outcome = metadata_of_all(&broker);
    assert!(!is_at_once(&outcome));
    let bytes = replied(outcome);
    let response = metadata::Response::decode(9, &bytes).unwrap();
    assert_eq!(response.topics[0].partitions.len(), 2_001);
}

#[test]
fn appends_keep_their_order_and_duplicates_while_a_write_blocks() {
    within_patience(|| {
        let broker = broker_with_records(Durability::Os);
        broker.gate.hold_at(Op::Write, dir(0));
        let records = |sequence| {
            let options = BatchOptions {
                producer_id: ProducerId::new(5),
                producer_epoch: ProducerEpoch::new(0),
                base_sequence: sequence,
                ..BatchOptions::default()
            };
            batch_with(options, &["b"])
        };
        let sequences = [0, 1, 1, 2, 9, 0];
        let waiting =
            sequences.map(|sequence| pending(produce_to(&broker, 0, 1, &records(sequence))));
        broker.gate.until_waiting(1);
        broker.gate.open();
        let out_of_order = (KafkaError::OutOfOrderSequenceNumber.code(), -1);
        let expected = [(0, 1), (0, 2), (0, 2), (0, 3), out_of_order, (0, 1)];
        assert_eq!(waiting.map(|waiting| produced(Outcome::Pending(waiting))), expected);
    });
}

#[test]
fn a_deleted_partition_replies_at_once_and_is_removed_when_its_write_has_ended() {
    within_patience(|| {
        let mut broker = broker_with_records(Durability::Os);
        broker.gate.hold_at(Op::Write, dir(0));
        let produce = |broker: &Broker| pending(produce_to(broker, 0, 1, &batch(&["b"])));
        let written = produce(&broker);
        broker.gate.until_waiting(1);
        let queued = [produce(&broker), produce(&broker)];
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        broker.apply(ImageDelta { deleted: vec![TOPIC], ..ImageDelta::default() });
        let unknown = (KafkaError::UnknownTopicOrPartition.code(), -1);
        for queued in queued {
            assert_eq!(produced(Outcome::Pending(queued)), unknown);
        }
        assert!(partition.opened_log().is_none());
        let is_there = |broker: &Broker| {
            let disk = broker.ctx.partitions.host().directory.disk();
            disk.exists(std::path::Path::new(&dir(0)))
        };
        assert!(is_there(&broker), "somebody writes to it");
        broker.gate.open();
        assert_eq!(produced(Outcome::Pending(written)), unknown);
        broker.wait_idle();
        assert!(!is_there(&broker));
    });
}

/// As in Kafka while the topic exists. Regression test: an unfinished write failed as if the topic
/// did not exist.
#[test]
fn requests_to_a_partition_that_moves_are_redirected_to_its_leader() {
    within_patience(|| {
        let mut broker = broker_with_records(Durability::Os);
        broker.gate.hold_at(Op::Write, dir(0));
        let produce = |broker: &Broker| pending(produce_to(broker, 0, -1, &batch(&["b"])));
        let written = produce(&broker);
        broker.gate.until_waiting(1);
        let queued = produce(&broker);
        broker.ctx.partitions.delete_before(1, &(TOPIC, 0), 0);
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        let mut moved = topic("t", TOPIC, FREE + 1, &[]);
        moved.partitions[0] = PartitionEntry {
            leader: OTHER_NODE,
            replicas: vec![OTHER_NODE],
            isr: vec![OTHER_NODE],
            ..led_here(0, 1, 1)
        };
        broker.apply(ImageDelta { topics: vec![moved], ..ImageDelta::default() });
        broker.gate.open();
        let elsewhere = KafkaError::NotLeaderOrFollower;
        for append in [queued, written] {
            assert_eq!(produced(Outcome::Pending(append)), (elsewhere.code(), -1));
        }
        assert_eq!(tokens_told(&broker), [(1, elsewhere.code())]);
        assert_eq!(partition.offsets(&MayWait::as_documented()).unwrap_err(), elsewhere);
    });
}

/// All commands of the control thread, for partition 0 of `t`, which waits for the disk. The last
/// one deletes it.
fn ask_all(broker: &mut Broker) {
    let partitions = &broker.ctx.partitions;
    let records = [(None, Some("c".into()))];
    partitions.append(1, &(TOPIC, 0), Some(LeaderEpoch::ZERO), &records, BatchKind::Data);
    partitions.delete_before(2, &(TOPIC, 0), 0);
    partitions.enforce_retention(3);
    partitions.describe_log_dirs(4, &[(TOPIC, 0), (TOPIC, FREE)]);
    partitions.describe_producers(5, &(TOPIC, 0));
    partitions.sync_due();
    let settings = [("producer.id.expiration.ms".to_owned(), "1000".to_owned())];
    let broker_settings = Some(settings.into());
    broker.apply(ImageDelta { broker_settings, ..ImageDelta::default() });
    let mut next = topic("t", TOPIC, FREE + 1, &[("retention.ms", "1000000")]);
    next.partitions[0] = led_here(0, 1, 1);
    broker.apply(ImageDelta { topics: vec![next], ..ImageDelta::default() });
    broker.apply(ImageDelta { deleted: vec![TOPIC], ..ImageDelta::default() });
    let again = TopicImage { topic_id: AGAIN, ..topic("t", AGAIN, 1, &[]) };
    broker.apply(ImageDelta { topics: vec![again], ..ImageDelta::default() });
}

/// The results of `ask_all`, in the order of the tokens.
fn tokens_told(broker: &Broker) -> Vec<(u64, i16)> {
    let token = |event| match event {
        Event::Maintained { token, error_code, .. }
        | Event::Appended { token, error_code, .. }
        | Event::Producers { token, error_code, .. } => Some((token, error_code)),
        Event::LogDirs { token, .. } => Some((token, 0)),
        _ => None,
    };
    let mut told: Vec<_> = broker.events().into_iter().filter_map(token).collect();
    told.sort_unstable();
    told
}

#[test]
fn the_control_thread_waits_neither_for_a_write_nor_for_a_recovery() {
    within_patience(|| {
        for op in [Op::Write, Op::Read] {
            let broker = broker_with_records(Durability::Os);
            let mut broker = match op {
                Op::Write => broker,
                _ => broker.killed_and_restarted(Durability::Os).with_topic(FREE + 1, &[]),
            };
            broker.gate.hold_at(op, dir(0));
            let written = pending(produce_to(&broker, 0, 1, &batch(&["b"])));
            broker.gate.until_waiting(1);
            ask_all(&mut broker);
            // The control plane's append and the command: both complete at once, because the topic
            // is deleted.
            let unknown_id = KafkaError::UnknownTopicId.code();
            let fenced = KafkaError::NotLeaderOrFollower.code();
            let told = tokens_told(&broker);
            assert!(told.contains(&(1, fenced)) || told.contains(&(1, unknown_id)), "{told:?}");
            assert!(told.contains(&(2, unknown_id)), "{told:?}");
            let recreated = broker.ctx.partitions.get(&AGAIN, 0).unwrap();
            let opening = recreated.opening().expect("its predecessor's directory is there");
            broker.gate.open();
            let unknown = KafkaError::UnknownTopicOrPartition.code();
            let error_code = produced(Outcome::Pending(written)).0;
            assert!(error_code == unknown || error_code == fenced, "{error_code}");
            let _ = opening.blocking_recv();
            let log = recreated.opened_log().expect("it is open");
            assert_eq!(log.log_end_offset(), 0, "nothing of its predecessor");
            broker.wait_idle();
            let told = [told, tokens_told(&broker)].concat();
            for token in 1..=5 {
                let count = told.iter().filter(|(of, _)| *of == token).count();
                assert_eq!(count, 1, "{token} of {told:?}");
            }
        }
    });
}

#[test]
fn a_topic_created_and_deleted_repeatedly_during_a_write_holds_no_thread() {
    within_patience(|| {
        let mut broker = broker_with_records(Durability::Os);
        broker.gate.hold_at(Op::Write, dir(0));
        let written = pending(produce_to(&broker, 0, 1, &batch(&["b"])));
        broker.gate.until_waiting(1);
        let mut id = TOPIC;
        for round in 0..40 {
            broker.apply(ImageDelta { deleted: vec![id], ..ImageDelta::default() });
            id = [100 + round; 16];
            broker.apply(ImageDelta {
                topics: vec![topic("t", id, 1, &[])],
                ..ImageDelta::default()
            });
            let partition = broker.ctx.partitions.get(&id, 0).unwrap();
            assert!(partition.opening().is_some());
        }
        let free = topic("free", AGAIN, 1, &[]);
        broker.apply(ImageDelta { topics: vec![free], ..ImageDelta::default() });
        let free = broker.ctx.partitions.get(&AGAIN, 0).unwrap();
        if let Some(opening) = free.opening() {
            let _ = opening.blocking_recv();
        }
        assert!(free.opened_log().is_some());
        broker.gate.open();
        drop(written);
        broker.wait_idle();
        let last = broker.ctx.partitions.get(&id, 0).unwrap();
        assert_eq!(last.opened_log().expect("its opening was asked for").log_end_offset(), 0);
    });
}

#[test]
fn maintenance_of_other_partitions_continues_while_many_wait_for_the_disk() {
    within_patience(|| {
        // Held during the survey: only maintenance uses these partitions.
        let broker = broker_with_records(Durability::Os).stopped_and_restarted(Durability::Os);
        let broker = broker.with_topic(FREE + 1, &[("retention.bytes", "1")]);
        (0..BLOCKED).for_each(|partition| broker.gate.hold_at(Op::Open, dir(partition)));
        (0..BLOCKED).for_each(|partition| {
            broker.ctx.partitions.delete_before(partition as u64, &(TOPIC, partition), 0);
        });
        broker.gate.until_waiting(BLOCKED as usize);
        broker.ctx.partitions.enforce_retention(50);
        broker.ctx.partitions.delete_before(51, &(TOPIC, FREE), -1);
        let told = until_told(&broker, 2);
        assert_eq!(told, [(50, 0), (51, 0)]);
        broker.gate.open();
        assert_eq!(until_told(&broker, BLOCKED as usize).len(), BLOCKED as usize);
    });
}

#[test]
fn known_sizes_are_returned_while_the_disk_stalls() {
    within_patience(|| {
        let broker = broker_with_records(Durability::Os);
        broker.gate.hold_at(Op::Write, dir(0));
        let written = pending(produce_to(&broker, 0, 1, &batch(&["b"])));
        broker.gate.until_waiting(1);
        broker.ctx.partitions.describe_log_dirs(1, &[(TOPIC, 0), (TOPIC, FREE), (AGAIN, 0)]);
        let told = loop {
            let mut events = broker.events().into_iter();
            if let Some(Event::LogDirs { sizes, .. }) =
                events.find(|event| matches!(event, Event::LogDirs { .. }))
            {
                break sizes;
            }
            thread::yield_now();
        };
        let size = batch(&["a"]).len() as u64;
        assert_eq!(told, [(TOPIC, 0, size), (TOPIC, FREE, size)]);
        broker.gate.open();
        drop(written);
    });
}

/// Waits for `count` completions.
fn until_told(broker: &Broker, count: usize) -> Vec<(u64, i16)> {
    let mut told = Vec::new();
    while told.len() < count {
        thread::yield_now();
        told.extend(tokens_told(broker));
    }
    told.sort_unstable();
    told
}

#[test]
fn an_append_queue_that_never_empties_does_not_block_maintenance() {
    within_patience(|| {
        let broker = Arc::new(broker_with_records(Durability::Os));
        let is_told = Arc::new(AtomicBool::new(false));
        // The draining thread acknowledges each append and so appends the next one: the queue is
        // never empty.
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        let feeder =
            Arc::new(Feeder { broker: broker.clone(), partition, is_told: is_told.clone() });
        (0..8).for_each(|_| feeder.clone().append());
        broker.ctx.partitions.delete_before(1, &(TOPIC, 0), 1);
        broker.ctx.partitions.enforce_retention(2);
        assert_eq!(until_told(&broker, 2), [(1, 0), (2, 0)]);
        is_told.store(true, Ordering::Relaxed);
    });
}

/// Appends the next batch as soon as one is acknowledged.
struct Feeder {
    broker: Arc<Broker>,
    partition: Arc<Partition>,
    is_told: Arc<AtomicBool>,
}

impl Feeder {
    fn append(self: Arc<Self>) {
        // Too large to be copied into memory at once.
        let value = "v".repeat(100_000);
        let append = Append {
            batch: bytes::BytesMut::from(&batch(&[&value])[..]),
            origin: AppendOrigin::Client,
            connection: 0,
            transaction: pykafka_log::TransactionRule::Vouched,
            needs_isr: false,
            leader_epoch: None,
            promise: Promise::Durable,
            waiter: self.clone(),
            slot: 0,
        };
        assert!(self.partition.append(append).is_none(), "it is queued");
    }
}

impl AckWaiter for Feeder {
    fn acknowledged(&self, _: usize, outcome: AppendOutcome) {
        outcome.unwrap();
        if !self.is_told.load(Ordering::Relaxed) {
            let Feeder { broker, partition, is_told } = self;
            let next = Feeder {
                broker: broker.clone(),
                partition: partition.clone(),
                is_told: is_told.clone(),
            };
            Arc::new(next).append();
        }
    }
}

#[test]
fn a_new_leader_epoch_starts_after_the_write_of_the_old_one() {
    within_patience(|| {
        let mut broker = broker_with_records(Durability::Os);
        broker.gate.hold_at(Op::Write, dir(0));
        let written = pending(produce_to(&broker, 0, 1, &batch(&["b"])));
        broker.gate.until_waiting(1);
        let queued = pending(produce_to(&broker, 0, 1, &batch(&["c"])));
        let mut next = topic("t", TOPIC, FREE + 1, &[]);
        next.partitions[0] = led_here(0, 1, 1);
        broker.apply(ImageDelta { topics: vec![next], ..ImageDelta::default() });
        let behind = pending(produce_to(&broker, 0, 1, &batch(&["d"])));
        broker.gate.open();
        assert_eq!(produced(Outcome::Pending(written)), (0, 1), "written in the old epoch");
        let refused = (KafkaError::NotLeaderOrFollower.code(), -1);
        assert_eq!(produced(Outcome::Pending(queued)), refused);
        assert_eq!(produced(Outcome::Pending(behind)), (0, 2));
        let log = broker.ctx.partitions.get(&TOPIC, 0).unwrap().opened_log().unwrap();
        let last = *log.epoch_entries().last().unwrap();
        assert_eq!((last.epoch, last.start_offset), (LeaderEpoch::new(1), 2));
    });
}

#[test]
fn a_failed_write_fails_all_queued_appends() {
    within_patience(|| {
        let broker = broker_with_records(Durability::Os);
        broker.gate.hold_at(Op::Write, dir(0));
        let waiting: Vec<_> =
            (0..3).map(|_| pending(produce_to(&broker, 0, -1, &batch(&["b"])))).collect();
        broker.gate.until_waiting(1);
        broker.gate.fail_at(Op::Write, dir(0));
        broker.gate.open();
        for waiting in waiting {
            let told = produced(Outcome::Pending(waiting));
            assert_eq!(told, (KafkaError::KafkaStorageError.code(), -1));
        }
        assert_eq!(produced(produce_to(&broker, 1, -1, &batch(&["b"]))), (0, 1));
    });
}

#[test]
fn a_queued_append_of_a_closed_connection_is_dropped() {
    within_patience(|| {
        let broker = broker_with_records(Durability::Os);
        broker.gate.hold_at(Op::Write, dir(0));
        let first = pending(produce_to(&broker, 0, 1, &batch(&["b"])));
        broker.gate.until_waiting(1);
        drop(pending(produce_to(&broker, 0, 1, &batch(&["c"]))));
        let last = pending(produce_to(&broker, 0, 1, &batch(&["d"])));
        broker.gate.open();
        assert_eq!(produced(Outcome::Pending(first)), (0, 1));
        assert_eq!(produced(Outcome::Pending(last)), (0, 2));
    });
}

#[test]
fn without_acks_the_next_request_waits_for_the_write() {
    within_patience(|| {
        let broker = broker_with_records(Durability::Os);
        broker.gate.hold_at(Op::Write, dir(0));
        let mut waiting = pending(produce_to(&broker, 0, 0, &batch(&["b"])));
        broker.gate.until_waiting(1);
        assert!(poll(&mut waiting).is_none());
        broker.gate.open();
        assert!(matches!(settled(Outcome::Pending(waiting)), Outcome::NoReply));
    });
}
