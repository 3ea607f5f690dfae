//! The stored indexes that an open trusts, so that it does not read the batches of their segments.
#![allow(clippy::case_sensitive_file_extension_comparisons, reason = "the log's own names")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Bench, NOW_MS, append};
use pykafka_log::{LogConfig, OpenMode};

const RECORDS: i64 = 100;

/// Writes and closes a log of many segments.
fn closed(bench: &Bench, timestamp: impl Fn(i64) -> i64) {
    let (log, _) = bench.open(true);
    for n in 0..RECORDS {
        append(&log, 1, timestamp(n));
    }
    log.close().unwrap();
}

#[test]
fn entries_for_several_batches_of_one_append_are_believed() {
    let bench = Bench::default();
    closed(&bench, |n| NOW_MS + n);
    let batch_size = common::all(&bench.file("00000000000000000000.log"))[0].size() as u32;
    for name in bench.file_names().iter().filter(|name| name.ends_with(".index")) {
        let mut bytes = bench.file(name);
        // As if the previous batch had been appended together with each entry's batch.
        for entry in bytes.chunks_mut(8) {
            let position = u32::from_be_bytes(*entry.last_chunk().unwrap()) - batch_size;
            entry[4..].copy_from_slice(&position.to_be_bytes());
        }
        bench
            .disk
            .open(&bench.dir.join(name), OpenMode::Create)
            .unwrap()
            .write_at(&bytes, 0)
            .unwrap();
    }
    let (log, recovery) = bench.open(true);
    assert_eq!(recovery.segments_recovered, 0);
    for offset in 0..RECORDS {
        assert_eq!(log.read(offset, 1, RECORDS, true).unwrap().base_offset, offset);
    }
}

#[test]
fn a_time_index_whose_one_entry_is_all_zeros_is_believed() {
    let single = LogConfig { index_interval_bytes: 300, ..LogConfig::default() };
    for config in [Bench::default().config, single] {
        let bench = Bench { config, ..Bench::default() };
        closed(&bench, |_| 0);
        let (log, recovery) = bench.open(true);
        assert_eq!(recovery.segments_recovered, 0);
        let newest = log.offset_of_max_timestamp().unwrap().unwrap();
        assert_eq!((newest.offset, newest.timestamp), (0, 0));
        let first = log.offset_for_timestamp(0, RECORDS).unwrap().unwrap();
        assert_eq!((first.offset, first.timestamp), (0, 0));
    }
}
