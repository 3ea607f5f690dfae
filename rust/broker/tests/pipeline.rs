//! Produce requests of one connection that wait for acknowledgements together (docs/PLANES.md S7).

mod common;

use std::thread;
use std::time::Duration;

use common::{Broker, Client, NODE, encoded};
use pykafka_broker::{
    BrokerState, ImageDelta, IsrOutcome, PartitionEntry, PartitionId, TopicImage,
};
use pykafka_record::{BatchBuilder, BatchOptions, LeaderEpoch, ProducerEpoch, ProducerId};
use pykafka_wire::{ApiKey, api_versions, produce};

const TOPIC: [u8; 16] = [6; 16];
const VERSION: i16 = 7;
const FOLLOWER: i32 = 2;
/// See `connection::pipeline`.
const PRODUCES_MAX: u64 = 64;

/// Applies the ISR of the topic; its follower never fetches.
fn apply_isr(broker: &Broker, isr: Vec<i32>, partition_epoch: i32) {
    let partition = PartitionEntry {
        leader: NODE,
        partition_epoch,
        replicas: vec![NODE, FOLLOWER],
        isr,
        ..PartitionEntry::default()
    };
    let topic = TopicImage {
        name: "t".into(),
        topic_id: TOPIC,
        partitions: vec![partition],
        ..TopicImage::default()
    };
    broker.apply(ImageDelta { topics: vec![topic], ..ImageDelta::default() });
}

/// A broker on which acks=all waits until [`acknowledge`] is called.
fn broker_with_follower() -> Broker {
    let broker = Broker::start(&[]);
    apply_isr(&broker, vec![NODE, FOLLOWER], 0);
    broker
}

fn acknowledge(broker: &Broker) {
    apply_isr(broker, vec![NODE], 1);
}

fn produce_body(acks: i16, sequence: i32) -> Vec<u8> {
    produce_body_of(acks, sequence, b"value")
}

fn produce_body_of(acks: i16, sequence: i32, value: &[u8]) -> Vec<u8> {
    let options = BatchOptions {
        producer_id: ProducerId::new(7),
        producer_epoch: ProducerEpoch::new(0),
        base_sequence: sequence,
        ..BatchOptions::default()
    };
    let mut builder = BatchBuilder::new(options);
    builder.append(-1, None, Some(value), &[]).expect("a record");
    let mut records = Vec::new();
    builder.build(&mut records).expect("a batch");
    let partitions = vec![produce::Partition { index: 0, records: Some(&records) }];
    let topics = vec![produce::Topic { name: "t", topic_id: TOPIC, partitions }];
    let request = produce::Request { acks, timeout_ms: 600_000, topics, ..Default::default() };
    encoded(|out| request.encode(VERSION, out))
}

fn send_produces(client: &mut Client, sequences: std::ops::Range<i32>) -> Vec<i32> {
    let send = |sequence| client.send(ApiKey::PRODUCE, VERSION, &produce_body(-1, sequence));
    sequences.map(send).collect()
}

/// Correlation id, error code and offset of the next response.
fn receive_produced(client: &mut Client) -> (i32, i16, i64) {
    let (id, body) = client.receive(ApiKey::PRODUCE, VERSION);
    let response = produce::Response::decode(VERSION, &body).expect("a response");
    let partition = &response.responses[0].partitions[0];
    (id, partition.error_code, partition.base_offset)
}

fn assert_produced(client: &mut Client, sent: &[i32]) {
    for (offset, id) in sent.iter().enumerate() {
        assert_eq!(receive_produced(client), (*id, 0, offset as i64));
    }
}

fn api_versions_body() -> Vec<u8> {
    encoded(|out| api_versions::Request::default().encode(0, out))
}

/// Does many round trips on another connection, after which the broker has done all possible work
/// for the first one.
fn let_others_run(broker: &Broker) {
    let mut other = broker.connect();
    for _ in 0..50 {
        other.ask(ApiKey::API_VERSIONS, 0, &api_versions_body());
    }
}

#[test]
fn produces_are_appended_while_earlier_ones_wait_and_answered_in_order() {
    let broker = broker_with_follower();
    let mut client = broker.connect();
    let sent = send_produces(&mut client, 0..5);
    broker.wait_statistic("records_appended", 5);
    acknowledge(&broker);
    assert_produced(&mut client, &sent);
}

/// Makes `count` produce requests with values of `size` bytes wait together; returns the input
/// memory that they hold.
fn held_by(count: u64, size: usize) -> u64 {
    let broker = broker_with_follower();
    let mut client = broker.connect();
    let value = vec![0; size];
    for sequence in 0..count as i32 {
        client.send(ApiKey::PRODUCE, VERSION, &produce_body_of(-1, sequence, &value));
    }
    broker.wait_statistic("records_appended", count);
    let held = broker.statistic("input_held_bytes");
    acknowledge(&broker);
    (0..count).for_each(|_| assert_eq!(receive_produced(&mut client).1, 0));
    drop(client);
    broker.wait_statistic("connections_open", 0);
    assert_eq!(broker.statistic("input_held_bytes"), 0);
    held
}

#[test]
fn waiting_produces_hold_the_memory_of_their_frames() {
    let large = 200 << 10;
    assert!(held_by(4, large) >= 4 * large as u64);
    let (small, uncounted) = (10 << 10, 64 << 10);
    assert!(held_by(30, small) >= 29 * small as u64 - uncounted);
}

#[test]
fn other_requests_start_after_all_earlier_replies() {
    let broker = broker_with_follower();
    let mut client = broker.connect();
    let sent = send_produces(&mut client, 0..2);
    let other = client.send(ApiKey::LIST_OFFSETS, 1, &[255, 255, 255, 255, 0, 0, 0, 0]);
    let behind = send_produces(&mut client, 2..3);
    broker.wait_statistic("records_appended", 2);
    let_others_run(&broker);
    assert_eq!(broker.statistic("requests_list_offsets"), 0);
    assert_eq!(broker.statistic("records_appended"), 2);
    acknowledge(&broker);
    assert_produced(&mut client, &sent);
    assert_eq!(client.receive(ApiKey::LIST_OFFSETS, 1).0, other);
    assert_eq!(receive_produced(&mut client), (behind[0], 0, 2));
}

#[test]
fn waiting_produces_are_limited_and_later_ones_follow() {
    let broker = broker_with_follower();
    let mut client = broker.connect();
    let sent = send_produces(&mut client, 0..150);
    broker.wait_statistic("records_appended", PRODUCES_MAX);
    let_others_run(&broker);
    assert_eq!(broker.statistic("records_appended"), PRODUCES_MAX);
    acknowledge(&broker);
    assert_produced(&mut client, &sent);
}

#[test]
fn the_bytes_of_waiting_produces_are_limited() {
    let broker = broker_with_follower();
    let mut client = broker.connect();
    let mut sender = client.clone();
    let sending = thread::spawn(move || {
        let large = |sequence| {
            let mut builder = BatchBuilder::new(BatchOptions::default());
            builder.append(-1, None, Some(&vec![sequence; 900_000]), &[]).expect("a record");
            let mut records = Vec::new();
            builder.build(&mut records).expect("a batch");
            let partitions = vec![produce::Partition { index: 0, records: Some(&records) }];
            let topics = vec![produce::Topic { name: "t", topic_id: TOPIC, partitions }];
            let request =
                produce::Request { acks: -1, timeout_ms: 600_000, topics, ..Default::default() };
            encoded(|out| request.encode(VERSION, out))
        };
        (0..30).map(|at| sender.send(ApiKey::PRODUCE, VERSION, &large(at))).collect::<Vec<_>>()
    });
    broker.wait_statistic("records_appended", 10);
    let_others_run(&broker);
    assert_eq!(broker.statistic("records_appended"), 10);
    acknowledge(&broker);
    for offset in 0..30 {
        assert_eq!(receive_produced(&mut client).2, offset);
    }
    sending.join().expect("all was sent");
}

#[test]
fn a_request_that_closes_the_connection_lets_earlier_replies_pass() {
    let broker = broker_with_follower();
    let refused: [fn(&mut Client); 4] = [
        |client| client.send_raw(&(-1_i32).to_be_bytes()),
        |client| _ = client.send(ApiKey::PRODUCE, VERSION, &[1]),
        |client| _ = client.send(ApiKey::PRODUCE, 99, &[1]),
        // Out of sequence; with acks=0, closing is the only way to report it.
        |client| _ = client.send(ApiKey::PRODUCE, VERSION, &produce_body(0, 1_000)),
    ];
    let mut appended = 0;
    for (at, refuse) in refused.into_iter().enumerate() {
        let mut client = broker.connect();
        let sent = send_produces(&mut client, at as i32 * 2..at as i32 * 2 + 2);
        refuse(&mut client);
        appended += 2;
        broker.wait_statistic("records_appended", appended);
        apply_isr(&broker, vec![NODE], at as i32 * 2 + 1);
        for id in sent {
            let (received, error, _) = receive_produced(&mut client);
            assert_eq!((received, error), (id, 0));
        }
        assert!(client.is_closed());
        apply_isr(&broker, vec![NODE, FOLLOWER], at as i32 * 2 + 2);
    }
}

#[test]
fn a_half_closed_connection_gets_the_replies_to_all_its_produces() {
    let broker = broker_with_follower();
    let mut client = broker.connect();
    let sent = send_produces(&mut client, 0..100);
    client.finish();
    broker.wait_statistic("records_appended", PRODUCES_MAX);
    acknowledge(&broker);
    assert_produced(&mut client, &sent);
    assert!(client.is_closed());
}

#[test]
fn a_reset_connection_forgets_its_produces() {
    let broker = broker_with_follower();
    let mut client = broker.connect();
    send_produces(&mut client, 0..5);
    broker.wait_statistic("records_appended", 5);
    let socket = socket2::SockRef::from(&client.stream);
    socket.set_linger(Some(Duration::ZERO)).expect("a socket");
    drop(client);
    broker.wait_statistic("connections_open", 0);
    acknowledge(&broker);
}

#[test]
fn a_stop_waits_for_the_acknowledgements_of_appended_records() {
    let broker = broker_with_follower();
    let mut client = broker.connect();
    let sent = send_produces(&mut client, 0..5);
    broker.wait_statistic("records_appended", 5);
    let alone = BrokerState { broker_id: NODE, broker_epoch: -1 };
    let partition: PartitionId = (TOPIC, 0);
    let proposal =
        broker.core.propose_isr(&partition, LeaderEpoch::ZERO, 0, vec![alone]).expect("a proposal");
    let core = broker.core.clone();
    let stopping = thread::spawn(move || core.stop(60_000));
    while std::net::TcpStream::connect(("127.0.0.1", broker.port)).is_ok() {
        thread::yield_now();
    }
    client.send(ApiKey::API_VERSIONS, 0, &api_versions_body());
    let committed = IsrOutcome::Committed { isr: vec![NODE], partition_epoch: 1 };
    broker.core.settle_isr(proposal, committed);
    assert_produced(&mut client, &sent);
    // It may have been read before the connection was notified of the stop; nothing is read after
    // it.
    assert!(client.receive_frame().is_none() || client.is_closed());
    stopping.join().expect("it stopped");
}
