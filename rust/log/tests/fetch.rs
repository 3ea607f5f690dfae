//! Fetches that leave records in their file return the same as reads.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;

use bytes::Bytes;
use common::{Bench, LEADER, NOW_MS, all, batch};
use proptest::prelude::*;
use pykafka_log::{Fetched, FetchedRecords, Log, LogConfig, RealDisk, RecordsSlice, SliceError};

/// Results of this size or larger may stay in their file.
const LARGE: usize = 256 << 10;

fn bench(dir: &tempfile::TempDir, segment_bytes: i32, index_interval_bytes: i32) -> Bench {
    let config = LogConfig { segment_bytes, index_interval_bytes, ..LogConfig::default() };
    let dir = dir.path().join("topic-0");
    Bench { disk: Arc::new(RealDisk), dir, config, ..Bench::default() }
}

fn fill(log: &Log, sizes: &[usize]) {
    for (index, size) in sizes.iter().enumerate() {
        let mut bytes = batch(1 + index % 3, *size, NOW_MS);
        log.append_as_leader(&mut bytes, LEADER).unwrap();
    }
}

fn slice_of(fetched: Fetched) -> RecordsSlice {
    match fetched.records {
        FetchedRecords::Slice(slice) => slice,
        FetchedRecords::Read(bytes) => panic!("{} bytes were read", bytes.len()),
    }
}

fn bytes_of(records: &FetchedRecords) -> Bytes {
    match records {
        FetchedRecords::Read(bytes) => bytes.clone(),
        FetchedRecords::Slice(slice) => {
            let mut bytes = vec![0; slice.len()];
            slice.read(&mut bytes).unwrap();
            bytes.into()
        }
    }
}

/// The whole batches among the first `bytes_max` bytes, at least one.
fn first_bytes(bytes: &Bytes, bytes_max: usize) -> Bytes {
    let mut end = 0;
    for batch in all(bytes) {
        if end > 0 && end + batch.size() > bytes_max {
            break;
        }
        end += batch.size();
    }
    bytes.slice(..end)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn fetch_and_read_return_the_same_records(
        sizes in proptest::collection::vec(prop_oneof![3 => 50..3_000usize, 1 => 20_000..90_000usize], 20..120),
        index_interval_bytes in prop_oneof![Just(0), Just(4096), Just(200_000)],
        segment_bytes in prop_oneof![Just(700_000), Just(1 << 30)],
        closed in any::<bool>(),
        requests in proptest::collection::vec((0..=100i64, 0..=100i64, LARGE..1_500_000), 12),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let bench = bench(&dir, segment_bytes, index_interval_bytes);
        let (mut log, _) = bench.open(false);
        fill(&log, &sizes);
        if closed {
            log.close().unwrap();
            log = bench.open(true).0;
        }
        let end = log.log_end_offset();
        for (from, upto, bytes_max) in requests {
            let (offset, upto) = (from * (end - 1) / 100, upto * end / 100);
            let read = log.read(offset, 1 << 30, upto, true).unwrap();
            let fetched = log.fetch(offset, bytes_max, upto, true).unwrap();
            let expected = first_bytes(&read.bytes, bytes_max);
            let found = bytes_of(&fetched.records);
            // A read may end earlier, because it starts at an index entry.
            let is_slice = matches!(fetched.records, FetchedRecords::Slice(_));
            let is_as_expected =
                if is_slice { found == expected } else { expected.starts_with(&found) };
            prop_assert!(is_as_expected, "{offset} {upto} {bytes_max}");
            let last = all(&found).last().map_or(offset, |last| last.last_offset() + 1);
            prop_assert!(fetched.next_offset >= last);
            let next = log.read(fetched.next_offset, 1, end, true).unwrap().base_offset;
            prop_assert!(found.is_empty() || next == fetched.next_offset, "a batch begins there");
        }
    }
}

#[test]
fn large_fetches_stay_in_their_file_and_small_ones_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = bench(&dir, 1 << 30, 4096).open(false);
    fill(&log, &[10_000; 100]);
    let end = log.log_end_offset();
    let is_slice = |offset, bytes_max, upto| {
        let fetched = log.fetch(offset, bytes_max, upto, true).unwrap();
        matches!(fetched.records, FetchedRecords::Slice(_))
    };
    assert!(is_slice(0, LARGE + 50_000, end));
    assert!(!is_slice(0, LARGE - 1, end), "little is wanted");
    assert!(!is_slice(end - 10, 1 << 20, end), "little is there");
    assert!(!is_slice(0, 1 << 20, 10), "little is visible");
}

#[test]
fn slice_survives_retention_and_close_but_not_truncation() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = bench(&dir, 500_000, 4096).open(false);
    fill(&log, &[10_000; 100]);
    let end = log.log_end_offset();
    let slice = slice_of(log.fetch(0, 1 << 20, end, true).unwrap());
    let expected = log.read(0, slice.len(), end, true).unwrap().bytes;
    let read = || {
        let mut bytes = vec![0; slice.len()];
        slice.read(&mut bytes).map(|()| bytes)
    };
    log.delete_before(end - 1).unwrap();
    log.enforce_retention(end).unwrap();
    log.delete_expired_files(i64::MAX).unwrap();
    assert!(log.segments_count() < 3, "the slice's segment is gone");
    assert!(read().unwrap() == expected);
    log.close().unwrap();
    assert!(read().unwrap() == expected);
    let (log, _) = bench(&dir, 500_000, 4096).open(true);
    fill(&log, &[10_000; 30]);
    let slice = slice_of(log.fetch(end, 1 << 20, log.log_end_offset(), true).unwrap());
    log.truncate_to(end + 1).unwrap();
    assert!(matches!(slice.read(&mut [0; 10]), Err(SliceError::Truncated)));
    assert!(slice.descriptor().is_err());
}

#[test]
fn wrong_index_is_not_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let bench = bench(&dir, 500_000, 4096);
    let (log, _) = bench.open(false);
    fill(&log, &[10_000; 100]);
    let end = log.log_end_offset();
    let expected = log.read(0, 400_000, end, true).unwrap().bytes;
    log.close().unwrap();
    let path = bench.dir.join("00000000000000000000.index");
    let mut index = std::fs::read(&path).unwrap();
    // Every entry except the first has a position that is one byte too large.
    index.chunks_mut(8).skip(1).for_each(|entry| entry[7] ^= 1);
    std::fs::write(&path, index).unwrap();
    let (log, _) = bench.open(true);
    let fetched = log.fetch(0, 400_000, end, true).unwrap();
    assert!(bytes_of(&fetched.records) == expected);
    assert_eq!(all(&expected).first().unwrap().base_offset(), 0);
}
