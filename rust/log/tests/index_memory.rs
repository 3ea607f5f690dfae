//! The index entries of the active segment do not stay in memory: the files have all but the last
//! one, and look-ups use them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Bench, NOW_MS, append, batch_offsets};
use pykafka_log::{Log, LogConfig};

const BATCHES: i64 = 3000;
/// Number of entries that a log keeps before it stores them.
const UNSTORED_MAX: i64 = 1024;

/// With an entry for each batch except the first.
fn bench() -> Bench {
    let config = LogConfig { index_interval_bytes: 0, ..LogConfig::default() };
    Bench { config, ..Bench::default() }
}

/// A batch with one record for each offset, each a millisecond later than the previous one.
fn fill(log: &Log, from: i64, to: i64) {
    for n in from..to {
        append(log, 1, NOW_MS + n);
    }
}

/// Checks that each offset and each timestamp up to `end` is found.
fn assert_found(log: &Log, end: i64) {
    for offset in (0..end).step_by(13).chain([end - 1]) {
        let data = log.read(offset, 1, end, true).unwrap();
        assert_eq!((data.base_offset, data.next_offset), (offset, offset + 1));
        let found = log.offset_for_timestamp(NOW_MS + offset, end).unwrap().unwrap();
        assert_eq!((found.offset, found.timestamp), (offset, NOW_MS + offset));
    }
    let all: Vec<_> = (0..end).map(|offset| (offset, offset)).collect();
    assert_eq!(batch_offsets(log, 0), all);
}

/// The entries of an index that was not stored before the end.
fn entries_of(bench: &Bench, end: i64) -> Option<pykafka_log::SegmentEntries> {
    let twin = Bench { config: bench.config.clone(), ..Bench::default() };
    let (log, _) = twin.open(true);
    fill(&log, 0, end);
    let (killed, recovery) = twin.open(false);
    assert_eq!(recovery.segments_recovered, 1, "its indexes are made of its batches");
    killed.segment_entries(0).unwrap()
}

#[test]
fn entries_are_stored_while_the_segment_grows_and_found_there() {
    let bench = bench();
    let (log, _) = bench.open(true);
    fill(&log, 0, BATCHES);
    let in_file =
        |suffix: &str, size: usize| (bench.file(&format!("{:020}{suffix}", 0)).len() / size) as i64;
    assert!(in_file(".index", 8) >= BATCHES - 1 - UNSTORED_MAX);
    assert!(in_file(".timeindex", 12) >= BATCHES - 1 - UNSTORED_MAX);
    assert_found(&log, BATCHES);
    let found = log.segment_entries(0).unwrap();
    assert_eq!(found.as_ref().unwrap().offsets.len() as i64, BATCHES - 1);
    let recovered = entries_of(&bench, BATCHES).unwrap();
    assert_eq!(found.unwrap().offsets, recovered.offsets);
}

#[test]
fn a_killed_writer_leaves_an_index_that_recovery_completes() {
    let bench = bench();
    let (log, _) = bench.open(true);
    fill(&log, 0, BATCHES);
    let before = log.segment_entries(0).unwrap().unwrap();
    let (killed, _) = bench.open(false);
    assert_eq!(killed.segment_entries(0).unwrap().unwrap().offsets, before.offsets);
    fill(&killed, BATCHES, 2 * BATCHES);
    assert_found(&killed, 2 * BATCHES);
}

#[test]
fn log_that_is_cut_below_its_stored_entries_continues_there() {
    let bench = bench();
    let (log, _) = bench.open(true);
    fill(&log, 0, BATCHES);
    for end in [BATCHES - 5, 1500, 1, 1200] {
        if log.log_end_offset() < end {
            fill(&log, log.log_end_offset(), end);
        } else {
            log.truncate_to(end).unwrap();
        }
        assert_found(&log, end);
    }
    fill(&log, 1200, BATCHES);
    assert_found(&log, BATCHES);
    log.close().unwrap();
    let (again, recovery) = bench.open(true);
    assert_eq!(recovery.segments_recovered, 0);
    assert_found(&again, BATCHES);
    fill(&again, BATCHES, BATCHES + 10);
    assert_found(&again, BATCHES + 10);
}
