//! Produce requests that start transactions, over connections: the requests that wait for them, and
//! the events that end them (KIP-890).

mod common;

use common::{Broker, Client, encoded};
use pykafka_broker::{Event, Marker, VerifyTransaction};
use pykafka_record::{BatchBuilder, BatchOptions, EndTransactionMarker, ProducerEpoch, ProducerId};
use pykafka_wire::{ApiKey, produce};

const TOPIC: [u8; 16] = [6; 16];
const VERSION: i16 = 12;
const PRODUCER: ProducerId = ProducerId::new(7);
const GRACE_MS: u64 = 60_000;

fn broker() -> Broker {
    let broker = Broker::start(&[]);
    broker.create_topic("t", TOPIC, 2);
    broker
}

fn produce_body(partition: i32, base_sequence: i32) -> Vec<u8> {
    let options = BatchOptions {
        producer_id: PRODUCER,
        producer_epoch: ProducerEpoch::new(0),
        base_sequence,
        transactional: true,
        ..BatchOptions::default()
    };
    let mut builder = BatchBuilder::new(options);
    builder.append(-1, None, Some(b"value"), &[]).expect("a record");
    let mut records = Vec::new();
    builder.build(&mut records).expect("a batch");
    let partitions = vec![produce::Partition { index: partition, records: Some(&records) }];
    let request = produce::Request {
        transactional_id: Some("tx"),
        acks: -1,
        timeout_ms: 600_000,
        topics: vec![produce::Topic { name: "t", topic_id: TOPIC, partitions }],
    };
    encoded(|out| request.encode(VERSION, out))
}

fn send(client: &mut Client, partition: i32, base_sequence: i32) -> i32 {
    client.send(ApiKey::PRODUCE, VERSION, &produce_body(partition, base_sequence))
}

/// Correlation id, error code and offset of the next response.
fn received(client: &mut Client) -> (i32, i16, i64) {
    let (id, body) = client.receive(ApiKey::PRODUCE, VERSION);
    let response = produce::Response::decode(VERSION, &body).expect("a response");
    let partition = &response.responses[0].partitions[0];
    (id, partition.error_code, partition.base_offset)
}

/// The next question; partition states are skipped.
fn question(broker: &Broker) -> VerifyTransaction {
    loop {
        if let Event::VerifyTransaction(question) = broker.event() {
            return *question;
        }
    }
}

#[test]
fn a_pipelined_produce_does_not_overtake_one_under_verification() {
    let broker = broker();
    let mut client = broker.connect();
    let sent: Vec<i32> = (0..4).map(|sequence| send(&mut client, 0, sequence)).collect();
    let asked = question(&broker);
    assert_eq!(broker.statistic("records_appended"), 0);
    broker.core.verified(asked.token, vec![0]);
    for (offset, id) in sent.into_iter().enumerate() {
        assert_eq!(received(&mut client), (id, 0, offset as i64), "one question is enough");
    }
}

#[test]
fn a_rejected_transaction_rejects_later_pipelined_batches() {
    let broker = broker();
    let mut client = broker.connect();
    let (first, second) = (send(&mut client, 0, 0), send(&mut client, 0, 1));
    broker.core.verified(question(&broker).token, vec![16]);
    assert_eq!(received(&mut client), (first, 19, -1));
    // The coordinator permits the batch, but the first one is missing.
    broker.core.verified(question(&broker).token, vec![0]);
    assert_eq!(received(&mut client), (second, 45, -1));
}

#[test]
fn other_connections_are_served_during_a_verification() {
    let broker = broker();
    let (mut held, mut other) = (broker.connect(), broker.connect());
    let waiting = send(&mut held, 0, 0);
    let first = question(&broker);
    send(&mut other, 1, 0);
    broker.core.verified(question(&broker).token, vec![0]);
    assert_eq!(received(&mut other).1, 0);
    broker.core.verified(first.token, vec![0]);
    assert_eq!(received(&mut held), (waiting, 0, 0));
}

#[test]
fn a_marker_after_a_transaction_ends_it_for_pipelined_produces() {
    let broker = broker();
    let mut client = broker.connect();
    send(&mut client, 0, 0);
    broker.core.verified(question(&broker).token, vec![0]);
    assert_eq!(received(&mut client).1, 0);
    let marker = Marker {
        partition: (TOPIC, 0),
        producer_id: PRODUCER,
        producer_epoch: ProducerEpoch::new(1),
        marker: EndTransactionMarker { committed: true, coordinator_epoch: 0 },
        transaction_version: 2,
    };
    broker.core.write_markers(3, &[marker]);
    let Event::MarkersWritten { token: 3, error_codes } = broker.event() else { panic!("written") };
    assert_eq!(error_codes, [0]);
    // Too late: the epoch has been raised.
    send(&mut client, 0, 1);
    broker.core.verified(question(&broker).token, vec![0]);
    assert_eq!(received(&mut client).1, 47);
}

#[test]
fn a_half_closed_connection_gets_its_transaction_started() {
    let broker = broker();
    let mut client = broker.connect();
    let id = send(&mut client, 0, 0);
    let asked = question(&broker);
    client.finish();
    broker.core.verified(asked.token, vec![0]);
    assert_eq!(received(&mut client), (id, 0, 0));
    assert!(client.is_closed());
}

#[test]
fn a_stop_does_not_wait_for_a_coordinator() {
    let broker = broker();
    let mut client = broker.connect();
    let id = send(&mut client, 0, 0);
    question(&broker);
    broker.core.stop(GRACE_MS);
    assert_eq!(received(&mut client), (id, 19, -1));
}
