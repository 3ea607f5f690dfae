//! Batches that Apache Kafka 4.2.1 stored, sent by its Java client, librdkafka and kafka-python.
//!
//! `data/*.expected` is what Kafka's own reader found in `data/*.log`, a line for each batch and
//! record. Bytes are in hex, or as length and CRC-32 where they are more than 40.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;
use std::path::Path;

use pykafka_record::{
    Batch, BatchBuilder, BatchOptions, Compression, ControlType, EndTransactionMarker, LeaderEpoch,
    Limits, Record, batches, crc32,
};

const NAMES: [&str; 8] = [
    "codec-none-0",
    "codec-gzip-0",
    "codec-snappy-0",
    "codec-lz4-0",
    "codec-zstd-0",
    "codec-mixed-0",
    "raw-0",
    "transactions-0",
];

fn data(name: &str, extension: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    std::fs::read(folder.join(format!("{name}.{extension}"))).unwrap()
}

fn field(bytes: Option<&[u8]>) -> String {
    match bytes {
        None => "null".into(),
        Some([]) => "empty".into(),
        Some(bytes) if bytes.len() > 40 => format!("{}:{:08x}", bytes.len(), crc32(bytes)),
        Some(bytes) => bytes.iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}")),
    }
}

fn batch_line(batch: Batch<'_>) -> String {
    let flag = |set: bool, letter: char| if set { letter } else { '-' };
    format!(
        "batch {} {} {} {} {:08x} {} {} {} {} {} {} {}{} {}\n",
        batch.base_offset(),
        batch.last_offset(),
        LeaderEpoch::to_wire(batch.partition_leader_epoch()),
        batch.size(),
        batch.crc(),
        batch.compression().unwrap().name(),
        batch.timestamp_type().name(),
        batch.max_timestamp(),
        batch.producer_id(),
        batch.producer_epoch(),
        batch.base_sequence(),
        flag(batch.is_transactional(), 'T'),
        flag(batch.is_control(), 'C'),
        batch.records_count(),
    )
}

fn content(batch: Batch<'_>, record: &Record<'_>) -> String {
    if !batch.is_control() {
        return format!("{} {}", field(record.key), field(record.value));
    }
    let (key, value) = (record.key.unwrap(), record.value.unwrap());
    let marker = EndTransactionMarker::from_record(key, value).unwrap();
    let kind = match ControlType::from_key(key).unwrap() {
        ControlType::Abort => "ABORT",
        ControlType::Commit => "COMMIT",
        other => panic!("{other:?} in a data partition"),
    };
    format!("{kind} {}", marker.coordinator_epoch)
}

fn record_line(batch: Batch<'_>, record: &Record<'_>) -> String {
    let headers: Vec<_> = record
        .headers
        .iter()
        .map(|(key, value)| format!("{}={}", field(Some(key)), field(value)))
        .collect();
    let headers = if headers.is_empty() { "-".into() } else { headers.join(",") };
    let Record { offset, timestamp, sequence, .. } = record;
    format!("record {offset} {timestamp} {sequence} {} {headers}\n", content(batch, record))
}

#[test]
fn every_batch_and_record_is_read_as_by_kafka() {
    for name in NAMES {
        let bytes = data(name, "log");
        let mut found = String::new();
        let mut scratch = Vec::new();
        let mut walk = batches(&bytes);
        for batch in &mut walk {
            let batch = batch.unwrap();
            assert!(batch.is_crc_valid());
            found.write_str(&batch_line(batch)).unwrap();
            for record in batch.records(&mut scratch, Limits::default()).unwrap() {
                found.push_str(&record_line(batch, &record.unwrap()));
            }
        }
        assert!(walk.rest().is_empty());
        let expected = String::from_utf8(data(name, "expected")).unwrap();
        for (line, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
            assert_eq!(found, expected, "{name} line {}", line + 1);
        }
        assert_eq!(found.len(), expected.len(), "{name}");
    }
}

#[test]
fn rebuilt_uncompressed_batches_equal_those_of_kafka() {
    for name in ["codec-none-0", "transactions-0"] {
        for batch in batches(&data(name, "log")) {
            let batch = batch.unwrap();
            let mut builder = BatchBuilder::new(BatchOptions {
                compression: Compression::None,
                level: None,
                timestamp_type: batch.timestamp_type(),
                base_offset: batch.base_offset(),
                partition_leader_epoch: batch.partition_leader_epoch(),
                producer_id: batch.producer_id(),
                producer_epoch: batch.producer_epoch(),
                base_sequence: batch.base_sequence(),
                transactional: batch.is_transactional(),
                control: batch.is_control(),
            });
            for record in batch.records(&mut Vec::new(), Limits::default()).unwrap() {
                builder.append_record(&record.unwrap()).unwrap();
            }
            let mut built = Vec::new();
            builder.build(&mut built).unwrap();
            assert_eq!(built, batch.bytes(), "{name} at {}", batch.base_offset());
        }
    }
}
