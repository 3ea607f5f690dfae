//! Connections take turns, however much data one of them sends or receives.

mod common;

use std::io::Write;
use std::net::Shutdown;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::{Broker, Client, encoded, frame};
use pykafka_record::{BatchBuilder, BatchOptions, Compression, ProducerEpoch, ProducerId};
use pykafka_wire::{ApiKey, api_versions, produce};

const TOPIC: [u8; 16] = [5; 16];
const PRODUCE_VERSION: i16 = 7;
/// More than the turns of a broker's connections take together, and far less than a socket that
/// stays full would deliver.
const BYTES_BETWEEN_MAX: u64 = 32 << 20;
/// More than the socket buffers of one connection hold.
const PROGRESS_BYTES: usize = 16 << 20;
const PROBES: usize = 50;

/// About a megabyte of frames with acks=0. All except the first are duplicates, so the log does not
/// grow.
fn frames(partition: i32, record_bytes: usize, compression: Compression) -> Vec<u8> {
    let options = BatchOptions {
        compression,
        producer_id: ProducerId::new(i64::from(partition)),
        producer_epoch: ProducerEpoch::new(0),
        base_sequence: 0,
        ..BatchOptions::default()
    };
    // Codecs do not make it smaller.
    let noise: Vec<u8> =
        (0..record_bytes as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut builder = BatchBuilder::new(options);
    builder.append(-1, None, Some(&noise), &[]).expect("a record");
    let mut records = Vec::new();
    builder.build(&mut records).expect("a batch");
    let partitions = vec![produce::Partition { index: partition, records: Some(&records) }];
    let topics = vec![produce::Topic { name: "t", topic_id: TOPIC, partitions }];
    let request = produce::Request { acks: 0, timeout_ms: 1_000, topics, ..Default::default() };
    let body = encoded(|out| request.encode(PRODUCE_VERSION, out));
    let frame = frame(ApiKey::PRODUCE, PRODUCE_VERSION, 0, &body);
    frame.repeat((1 << 20) / frame.len())
}

/// Closes the connections even if an assertion fails, so that no thread continues to send.
struct CloseAtEnd(Vec<Client>);

impl Drop for CloseAtEnd {
    fn drop(&mut self) {
        for client in &self.0 {
            // The connection may have ended already.
            let _ = client.stream.shutdown(Shutdown::Both);
        }
    }
}

/// Number of bytes that the broker receives on all connections between a request and its response.
fn bytes_between(broker: &Broker, probe: &mut Client) -> u64 {
    let before = broker.statistic("bytes_received");
    let request = api_versions::Request::default();
    probe.ask(ApiKey::API_VERSIONS, 0, &encoded(|out| request.encode(0, out)));
    broker.statistic("bytes_received") - before
}

fn assert_everybody_is_served(record_bytes: usize, compression: Compression) {
    const PRODUCERS: i32 = 8;
    let broker = Broker::start(&[]);
    broker.create_topic("t", TOPIC, PRODUCERS);
    let sent: Vec<_> = (0..PRODUCERS).map(|_| AtomicUsize::new(0)).collect();
    thread::scope(|scope| {
        let clients = CloseAtEnd((0..PRODUCERS).map(|_| broker.connect()).collect());
        for (partition, (client, sent)) in clients.0.iter().zip(&sent).enumerate() {
            let (mut client, frames) =
                (client.clone(), frames(partition as i32, record_bytes, compression));
            scope.spawn(move || {
                while client.stream.write_all(&frames).is_ok() {
                    sent.fetch_add(frames.len(), Ordering::Relaxed);
                }
            });
        }
        let mut probe = broker.connect();
        let mut between: Vec<_> = (0..PROBES).map(|_| bytes_between(&broker, &mut probe)).collect();
        between.sort_unstable();
        assert!(between[PROBES / 2] < BYTES_BETWEEN_MAX, "{between:?}");
        while sent.iter().any(|sent| sent.load(Ordering::Relaxed) < PROGRESS_BYTES) {
            bytes_between(&broker, &mut probe);
        }
    });
}

#[test]
fn producers_of_small_requests_with_full_sockets_delay_no_other_clients() {
    assert_everybody_is_served(1_900, Compression::None);
}

#[test]
fn producers_of_large_requests_with_full_sockets_delay_no_other_clients() {
    assert_everybody_is_served(60_000, Compression::None);
}

/// The slowest codec, and batches that the threads of the connections decompress.
#[test]
fn producers_of_compressed_requests_with_full_sockets_delay_no_other_clients() {
    assert_everybody_is_served(60_000, Compression::Gzip);
}
