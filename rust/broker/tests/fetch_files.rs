//! Fetches whose records are sent from their file to the socket.

mod common;

use bytes::Bytes;
use common::{Broker, Client, encoded};
use pykafka_broker::ImageDelta;
use pykafka_record::{BatchBuilder, BatchOptions, batches};
use pykafka_wire::{ApiKey, Records, fetch, metadata, produce};

const TOPIC: [u8; 16] = [3; 16];
/// A version that uses topic names and no sessions.
const FETCH_VERSION: i16 = 6;
const PRODUCE_VERSION: i16 = 7;
const BATCH_BYTES: usize = 300_000;

fn produce_batch(client: &mut Client, filling: u8) {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    builder.append(-1, None, Some(&vec![filling; BATCH_BYTES]), &[]).expect("a record");
    let mut records = Vec::new();
    builder.build(&mut records).expect("a batch");
    let partitions = vec![produce::Partition { index: 0, records: Some(&records) }];
    let topics = vec![produce::Topic { name: "t", topic_id: TOPIC, partitions }];
    let request = produce::Request { acks: 1, timeout_ms: 1_000, topics, ..Default::default() };
    let body = encoded(|out| request.encode(PRODUCE_VERSION, out));
    let response = client.ask(ApiKey::PRODUCE, PRODUCE_VERSION, &body);
    let response = produce::Response::decode(PRODUCE_VERSION, &response).expect("a response");
    assert_eq!(response.responses[0].partitions[0].error_code, 0);
}

fn fetch_body(fetch_offset: i64, bytes_max: i32) -> Vec<u8> {
    let partition =
        fetch::Partition { fetch_offset, partition_max_bytes: bytes_max, ..Default::default() };
    let request = fetch::Request {
        min_bytes: 1,
        max_bytes: bytes_max,
        topics: vec![fetch::Topic { topic: "t", topic_id: TOPIC, partitions: vec![partition] }],
        ..Default::default()
    };
    encoded(|out| request.encode(FETCH_VERSION, out))
}

fn records(body: &[u8]) -> Bytes {
    let response = fetch::Response::decode(FETCH_VERSION, body).expect("a response");
    let partition = &response.responses[0].partitions[0];
    assert_eq!(partition.error_code, 0);
    let Some(Records::Bytes(records)) = &partition.records else { panic!("{partition:?}") };
    records.clone()
}

/// Base offset and fill byte of each batch; checks the checksums.
fn fillings(records: &Bytes) -> Vec<(i64, u8)> {
    let told = batches(records).map(|batch| {
        let batch = batch.expect("a whole batch");
        assert!(batch.is_crc_valid());
        (batch.base_offset(), batch.bytes()[batch.size() - 2])
    });
    told.collect()
}

fn filled(dir: &std::path::Path, settings: &[(&str, &str)]) -> Broker {
    let broker = Broker::on_disk(dir, settings);
    broker.create_topic("t", TOPIC, 1);
    let mut client = broker.connect();
    (0..30).for_each(|filling| produce_batch(&mut client, filling));
    broker
}

#[test]
fn large_fetches_return_produced_records_between_small_replies() {
    let dir = tempfile::tempdir().expect("a directory");
    let broker = filled(dir.path(), &[]);
    let mut client = broker.connect();
    let metadata = encoded(|out| metadata::Request::default().encode(9, out));
    client.send(ApiKey::METADATA, 9, &metadata);
    client.send(ApiKey::FETCH, FETCH_VERSION, &fetch_body(3, 8 << 20));
    client.send(ApiKey::METADATA, 9, &metadata);
    client.send(ApiKey::FETCH, FETCH_VERSION, &fetch_body(28, 8 << 20));
    client.receive(ApiKey::METADATA, 9);
    let large = records(&client.receive(ApiKey::FETCH, FETCH_VERSION).1);
    let expected: Vec<_> = (3..30).map(|index| (i64::from(index), index)).collect();
    assert_eq!(fillings(&large), expected);
    client.receive(ApiKey::METADATA, 9);
    let tail = records(&client.receive(ApiKey::FETCH, FETCH_VERSION).1);
    assert_eq!(fillings(&tail), [(28, 28), (29, 29)]);
}

#[test]
fn topic_deleted_while_its_records_are_sent_is_still_sent_to_the_end() {
    let dir = tempfile::tempdir().expect("a directory");
    let broker = filled(dir.path(), &[]);
    let mut slow = broker.connect();
    socket2::SockRef::from(&slow.stream).set_recv_buffer_size(1 << 16).expect("a socket");
    slow.send(ApiKey::FETCH, FETCH_VERSION, &fetch_body(0, 50 << 20));
    slow.stream.peek(&mut [0]).expect("the response begins");
    broker.apply(ImageDelta { deleted: vec![TOPIC], ..ImageDelta::default() });
    let all = records(&slow.receive(ApiKey::FETCH, FETCH_VERSION).1);
    assert_eq!(fillings(&all).len(), 30);
}

#[test]
fn file_truncated_by_another_process_ends_one_reply_and_is_an_error_in_the_next() {
    let dir = tempfile::tempdir().expect("a directory");
    let broker = filled(dir.path(), &[]);
    let path = dir.path().join("t-0/00000000000000000000.log");
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("the segment");
    // Within the last batch: its header, the only part of it that was read, is still there.
    file.set_len(29 * 300_000 + 200_000).expect("a file");
    let mut client = broker.connect();
    client.send(ApiKey::FETCH, FETCH_VERSION, &fetch_body(28, 8 << 20));
    let mut rest = Vec::new();
    std::io::Read::read_to_end(&mut client.stream, &mut rest).expect("an end");
    assert!(rest.len() > 300_000 && rest.len() < 600_000, "{}", rest.len());
    let body = broker.connect().ask(ApiKey::FETCH, FETCH_VERSION, &fetch_body(0, 8 << 20));
    let response = fetch::Response::decode(FETCH_VERSION, &body).expect("a response");
    assert_eq!(response.responses[0].partitions[0].error_code, 56);
}
