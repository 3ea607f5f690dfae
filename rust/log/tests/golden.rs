//! Directories that Apache Kafka wrote (`tests/formats/golden`): a log must find the same in them
//! as Kafka.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pykafka_log::{
    AbortedTxn, BufferPool, Checkpointed, CleanupPolicy, Disk, Log, LogConfig, LogOptions,
    ManualClock, MemoryDisk, OnDamage, OpenMode, PartitionIdentity, Recovery, checkpoint,
};
use pykafka_record::{Batch, EndTransactionMarker, LeaderEpoch, Limits, batches};
use serde_json::{Value, json};

/// One partition, with Kafka's results for it.
struct Golden {
    name: String,
    expected: Value,
    /// The broker's responses.
    responses: Value,
    disk: Arc<dyn Disk>,
    recovery_point: i64,
    high_watermark: i64,
    log_start_offset: i64,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats/golden")
}

/// All partitions of `set`, with their files on a memory disk; `responses` selects a set of
/// responses, or is empty.
fn golden(set: &str, responses: &str) -> Vec<Golden> {
    let set = root().join(set);
    let offsets = |name: &str| {
        let bytes = std::fs::read(set.join("data").join(name)).unwrap();
        checkpoint::read_offsets(&bytes).unwrap()
    };
    let recovery_points = offsets(checkpoint::RECOVERY_POINT_FILE);
    let high_watermarks = offsets(checkpoint::REPLICATION_OFFSET_FILE);
    let starts = offsets(checkpoint::LOG_START_OFFSET_FILE);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(set.join("expected")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if name == "cluster" {
            continue;
        }
        let expected: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let responses =
            if responses.is_empty() { expected.clone() } else { expected[responses].clone() };
        let (topic, partition) = name.rsplit_once('-').unwrap();
        let key = (topic.to_owned(), partition.parse().unwrap());
        let offset = |of: &checkpoint::PartitionOffsets| of.get(&key).copied().unwrap_or(0);
        let (recovery_point, high_watermark) = (offset(&recovery_points), offset(&high_watermarks));
        let log_start_offset = offset(&starts);
        let disk = memory_copy(&set.join("data").join(&name));
        found.push(Golden {
            name,
            expected,
            responses,
            disk,
            recovery_point,
            high_watermark,
            log_start_offset,
        });
    }
    assert!(found.len() > 20);
    found
}

fn memory_copy(dir: &Path) -> Arc<dyn Disk> {
    let disk = MemoryDisk::default();
    disk.create_dir_all(Path::new("/log")).unwrap();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let to = Path::new("/log").join(path.file_name().unwrap());
        let file = disk.open(&to, OpenMode::Create).unwrap();
        file.write_at(&std::fs::read(&path).unwrap(), 0).unwrap();
    }
    Arc::new(disk)
}

impl Golden {
    fn options(&self, clean: bool) -> LogOptions {
        // The topics' `index.interval.bytes`, if it is not Kafka's default.
        const DAMAGED: [&str; 6] = ["torn", "bad", "no-", "zero", "garbage", "untouched"];
        let index_interval_bytes = match self.name.as_str() {
            "segments-0" => 1024,
            "torn-transaction-0" => 4096,
            name if DAMAGED.iter().any(|prefix| name.starts_with(prefix)) => 512,
            _ => 4096,
        };
        LogOptions {
            dir: PathBuf::from("/log"),
            config: Arc::new(LogConfig {
                index_interval_bytes,
                retention_ms: -1,
                cleanup_policy: CleanupPolicy { delete: true, compact: clean },
                ..LogConfig::default()
            }),
            disk: self.disk.clone(),
            clock: Arc::new(ManualClock::new(number(&self.responses["asked_at_ms"]))),
            checkpointed: Checkpointed {
                // Apache Kafka writes it with the marker of a clean stop.
                recovery_point: if clean { self.recovery_point } else { 0 },
                high_watermark: self.high_watermark,
                log_start_offset: Some(self.log_start_offset).filter(|offset| *offset > 0),
                cleaner_offset: 0,
                is_copy: false,
            },
            on_damage: OnDamage::Keep,
            clean,
            identity: Some(PartitionIdentity {
                topic_id: uuid(self.responses["topic_id"].as_str().unwrap()),
                partition: None,
            }),
            producer_id_expiration_ms: 86_400_000,
            read_only: false,
            jitter_seed: 1,
            buffers: Arc::new(BufferPool::default()),
        }
    }

    fn open(&self, clean: bool) -> (Log, Recovery) {
        Log::open(self.options(clean)).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn uuid(text: &str) -> [u8; 16] {
    u128::from_str_radix(&text.replace('-', ""), 16).unwrap().to_be_bytes()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - chunk.len()));
        for index in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * index) & 63) as usize] as char;
            text.push(if index <= chunk.len() { digit } else { '=' });
        }
    }
    text
}

fn nullable(bytes: Option<&[u8]>) -> Value {
    bytes.map_or(Value::Null, |bytes| base64(bytes).into())
}

fn check_segments(golden: &Golden, log: &Log) {
    let found: Vec<Value> = log
        .segments()
        .into_iter()
        .map(|(base_offset, size)| {
            let entries = log.segment_entries(base_offset).unwrap().unwrap();
            let offsets = entries.offsets.iter().map(|entry| json!([entry.offset, entry.position]));
            let times = entries.times.iter().map(|entry| json!([entry.timestamp, entry.offset]));
            json!({
                "base_offset": base_offset,
                "size": size,
                "offset_index": offsets.collect::<Vec<_>>(),
                "time_index": times.collect::<Vec<_>>(),
                "aborted_transactions": entries.aborted.iter().map(aborted).collect::<Vec<_>>(),
            })
        })
        .collect();
    let mut expected = golden.expected["segments"].clone();
    for segment in expected.as_array_mut().unwrap() {
        segment.as_object_mut().unwrap().remove("sha256");
    }
    assert_eq!(Value::from(found), expected, "segments of {}", golden.name);
}

fn aborted(txn: &AbortedTxn) -> Value {
    json!({
        "version": 0,
        "producer_id": txn.producer_id.get(),
        "first_offset": txn.first_offset,
        "last_offset": txn.last_offset,
        "last_stable_offset": txn.last_stable_offset,
    })
}

fn check_batches(golden: &Golden, log: &Log) {
    let bytes = read_all(log, log.log_end_offset());
    let found: Vec<Value> = batches(&bytes).map(|batch| describe(&batch.unwrap())).collect();
    let mut expected = golden.expected["batches"].as_array().unwrap().clone();
    let start = number(&golden.responses["log_start_offset"]);
    expected.retain(|batch| number(&batch["last_offset"]) >= start);
    for batch in &mut expected {
        let batch = batch.as_object_mut().unwrap();
        batch.remove("segment");
        batch.remove("position");
    }
    assert_eq!(found.len(), expected.len(), "batches of {}", golden.name);
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected, "batch of {}", golden.name);
    }
}

fn describe(batch: &Batch<'_>) -> Value {
    let mut scratch = Vec::new();
    let records = batch.records(&mut scratch, Limits::default()).unwrap();
    let records = records.map(|record| {
        let record = record.unwrap();
        let headers = record.headers.iter();
        let headers =
            headers.map(|(key, value)| json!([String::from_utf8_lossy(key), nullable(value)]));
        let mut described = json!({
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": nullable(record.key),
            "value": nullable(record.value),
        });
        if batch.is_control() {
            let (key, value) = (record.key.unwrap(), record.value.unwrap());
            let marker = EndTransactionMarker::from_record(key, value).unwrap();
            described["control_type"] = if marker.committed { "COMMIT" } else { "ABORT" }.into();
            described["coordinator_epoch"] = marker.coordinator_epoch.into();
        } else {
            let headers: Vec<Value> = headers.collect();
            if !headers.is_empty() {
                described["headers"] = headers.into();
            }
            if record.sequence >= 0 {
                described["sequence"] = record.sequence.into();
            }
        }
        described
    });
    let mut described = json!({
        "size": batch.size(),
        "base_offset": batch.base_offset(),
        "last_offset": batch.last_offset(),
        "leader_epoch": LeaderEpoch::to_wire(batch.partition_leader_epoch()),
        "crc": batch.crc(),
        "valid": batch.is_crc_valid(),
        "codec": batch.compression().unwrap().name(),
        "timestamp_type": batch.timestamp_type().name(),
        "max_timestamp": batch.max_timestamp(),
        "producer_id": batch.producer_id().get(),
        "producer_epoch": batch.producer_epoch().get(),
        "base_sequence": batch.base_sequence(),
        "transactional": batch.is_transactional(),
        "control": batch.is_control(),
        "count": batch.records_count(),
        "records": records.collect::<Vec<_>>(),
    });
    if let Some(horizon) = batch.delete_horizon_ms() {
        described["delete_horizon_ms"] = horizon.into();
    }
    described
}

/// All bytes from the log start offset to `upto`, read in pieces.
fn read_all(log: &Log, upto: i64) -> Vec<u8> {
    let (mut bytes, mut offset) = (Vec::new(), log.log_start_offset());
    loop {
        let data = log.read(offset, 3000, upto, true).unwrap();
        if data.bytes.is_empty() {
            return bytes;
        }
        bytes.extend_from_slice(&data.bytes);
        offset = data.next_offset;
    }
}

fn check_responses(golden: &Golden, log: &Log) {
    let (name, responses) = (&golden.name, &golden.responses);
    let high_watermark = number(&responses["high_watermark"]);
    let last_stable_offset = number(&responses["last_stable_offset"]);
    assert_eq!(log.log_start_offset(), number(&responses["log_start_offset"]), "{name}");
    assert_eq!(log.log_end_offset(), high_watermark, "{name}");
    assert_eq!(log.last_stable_offset(high_watermark), last_stable_offset, "{name}");
    // Like in Kafka, a read ends with its segment.
    let start = log.log_start_offset();
    let uncommitted = log.read(start, 1 << 20, high_watermark, true).unwrap();
    let expected = &responses["fetch_read_uncommitted"];
    assert_eq!(uncommitted.bytes.len() as i64, number(&expected["bytes"]), "{name}");
    let committed = log.fetch_committed(start, 1 << 20, last_stable_offset, true);
    let (committed, aborted) = committed.unwrap();
    let expected = &responses["fetch_read_committed"];
    assert_eq!(committed.records.len() as i64, number(&expected["bytes"]), "{name}");
    let aborted: Vec<Value> = aborted
        .iter()
        .map(|txn| json!({"ProducerId": txn.producer_id.get(), "FirstOffset": txn.first_offset}))
        .collect();
    assert_eq!(&Value::from(aborted), &expected["aborted_transactions"], "aborted of {name}");
    for row in responses["list_offsets"].as_array().unwrap() {
        check_list_offsets(golden, log, row);
    }
    for row in responses["offset_for_leader_epoch"].as_array().unwrap() {
        let epoch = LeaderEpoch::from_wire(number(&row[0]) as i32);
        let found = epoch.and_then(|epoch| log.end_offset_for_epoch(epoch));
        let found = found.map_or((-1, -1), |(epoch, end)| (epoch.get(), end));
        let expected = (number(&row[2]) as i32, number(&row[3]));
        assert_eq!(found, expected, "end of epoch {epoch:?} of {name}");
    }
    let producers: Vec<Value> = log
        .active_producers()
        .iter()
        .map(|entry| {
            json!({
                "ProducerId": entry.producer_id.get(),
                "ProducerEpoch": entry.producer_epoch.get(),
                "LastSequence": entry.last_sequence(),
                "LastTimestamp": entry.last_timestamp,
                "CoordinatorEpoch": entry.coordinator_epoch,
                "CurrentTxnStartOffset": entry.current_txn_first_offset.unwrap_or(-1),
            })
        })
        .collect();
    let mut expected = responses["active_producers"].as_array().unwrap().clone();
    expected.sort_by_key(|producer| number(&producer["ProducerId"]));
    assert_eq!(producers, expected, "producers of {name}");
}

fn check_list_offsets(golden: &Golden, log: &Log, row: &Value) {
    let upto = match row[1].as_str().unwrap() {
        "read_committed" => number(&golden.responses["last_stable_offset"]),
        _ => number(&golden.responses["high_watermark"]),
    };
    let found = match number(&row[0]) {
        -3 => log.offset_of_max_timestamp().unwrap().filter(|found| found.offset < upto),
        -2 => {
            let start = log.log_start_offset();
            assert_eq!(start, number(&row[3]), "earliest of {}", golden.name);
            return;
        }
        timestamp if timestamp >= 0 => log.offset_for_timestamp(timestamp, upto).unwrap(),
        _ => return,
    };
    let found = found.map_or((-1, -1, -1), |found| {
        (found.offset, found.timestamp, i64::from(LeaderEpoch::to_wire(found.leader_epoch)))
    });
    let expected = (number(&row[3]), number(&row[4]), number(&row[5]));
    assert_eq!(found, expected, "{row} of {}", golden.name);
}

fn check_epochs(golden: &Golden, log: &Log) {
    let entries = log.epoch_entries();
    let found: Vec<Value> =
        entries.iter().map(|entry| json!([entry.epoch.get(), entry.start_offset])).collect();
    assert_eq!(&Value::from(found), &golden.expected["leader_epochs"], "epochs of {}", golden.name);
}

#[test]
fn closed_directories_of_kafka_open_with_the_same_results() {
    for golden in golden("clean", "") {
        let (log, recovery) = golden.open(true);
        assert_eq!(recovery, Recovery::default(), "{}", golden.name);
        check_segments(&golden, &log);
        check_batches(&golden, &log);
        check_responses(&golden, &log);
        check_epochs(&golden, &log);
    }
}

/// Kafka's recovery accepts the gaps of compaction, and has no setting to control this.
#[test]
fn closed_directories_of_kafka_without_marker_and_recovery_point_recover_to_the_same() {
    for mut golden in golden("clean", "") {
        if golden.name == "compacted-transactions-0" {
            // Its records were removed, and its marker is the first batch after a gap. Kafka has it
            // from a snapshot that was not synced.
            golden.responses["fetch_read_committed"]["aborted_transactions"] = json!([]);
        }
        let (log, recovery) = golden.open(false);
        assert_eq!((recovery.damaged_at(), recovery.truncated_at), (None, None), "{}", golden.name);
        check_batches(&golden, &log);
        check_responses(&golden, &log);
        check_epochs(&golden, &log);
    }
}

#[test]
fn killed_directories_of_kafka_recover_to_where_kafka_recovers_them() {
    for golden in golden("killed", "after_recovery") {
        if golden.name == "bad-crc-early-0" {
            let (log, recovery) = golden.open(false);
            assert_eq!((recovery.damaged_at(), log.log_end_offset()), (Some(100), 100));
            assert!(log.is_read_only());
            log.close().unwrap();
            let repaired = Log::repair(golden.options(false)).unwrap();
            assert_eq!(repaired.truncated_at, Some(100));
        }
        let (log, recovery) = golden.open(false);
        assert_eq!(recovery.damaged_at(), None, "{}", golden.name);
        // The broker had become leader again before the responses: a new epoch without a record.
        let epochs = golden.expected["leader_epochs"].as_array().unwrap();
        if let Some(epoch) = epochs.last() {
            let begun = LeaderEpoch::new(number(&epoch[0]) as i32);
            log.assign_epoch(begun, number(&epoch[1])).unwrap();
        }
        check_responses(&golden, &log);
        // Kafka had removed the segments below the log start offset.
        log.enforce_retention(log.log_end_offset()).unwrap();
        check_segments(&golden, &log);
        check_batches(&golden, &log);
        check_epochs(&golden, &log);
    }
}
