//! Which records compaction keeps, and that everything derived from batches stays correct.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common::{Bench, LEADER, NOW_MS, all, end_transaction};
use pykafka_log::{
    Clock, CompactionOptions, CompactionReport, Log, LogConfig, LogOptions, OpenMode,
    ProducerEntry, StorageError,
};
use pykafka_record::{
    Batch, BatchBuilder, BatchOptions, Compression, EndTransactionMarker, LeaderEpoch, Limits,
    ProducerEpoch, ProducerId,
};

const RETENTION_MS: i64 = 1000;

fn bench() -> Bench {
    let mut bench = Bench::default();
    bench.config.cleanup_policy.compact = true;
    bench.config.cleanup_policy.delete = false;
    bench.config.delete_retention_ms = RETENTION_MS;
    bench.config.file_delete_delay_ms = 0;
    bench
}

type Pair<'a> = (&'a str, Option<&'a str>);

fn append_with(log: &Log, options: BatchOptions, pairs: &[Pair<'_>]) -> i64 {
    let mut builder = BatchBuilder::new(options);
    for (key, value) in pairs {
        builder.append(NOW_MS, Some(key.as_bytes()), value.map(str::as_bytes), &[]).unwrap();
    }
    let mut bytes = Vec::new();
    builder.build(&mut bytes).unwrap();
    log.append_as_leader(&mut bytes, LEADER).unwrap().first_offset
}

fn append(log: &Log, pairs: &[Pair<'_>]) -> i64 {
    append_with(log, BatchOptions::default(), pairs)
}

fn producer(id: i64, sequence: i32, transactional: bool) -> BatchOptions {
    BatchOptions {
        producer_id: ProducerId::new(id),
        producer_epoch: ProducerEpoch::new(0),
        base_sequence: sequence,
        transactional,
        ..BatchOptions::default()
    }
}

fn end(log: &Log, id: i64, committed: bool) -> i64 {
    let marker = EndTransactionMarker { committed, coordinator_epoch: 0 };
    let (id, epoch) = (ProducerId::new(id), ProducerEpoch::new(0));
    end_transaction(log, id, epoch, marker, LeaderEpoch::ZERO).unwrap().first_offset
}

fn compact_from(log: &Log, clean_offset: i64, now_ms: i64) -> CompactionReport {
    let options = CompactionOptions { clean_offset, ..at_end(log) };
    let report = log.compact(&options, now_ms).unwrap();
    assert!(report.is_complete);
    report
}

fn at_end(log: &Log) -> CompactionOptions {
    CompactionOptions { high_watermark: log.log_end_offset(), ..CompactionOptions::default() }
}

fn compact(log: &Log) -> CompactionReport {
    compact_from(log, 0, NOW_MS)
}

fn stored(log: &Log) -> Vec<u8> {
    stored_upto_end(log).0
}

/// All batches, and the log end that was reached.
fn stored_upto_end(log: &Log) -> (Vec<u8>, i64) {
    let (mut next, mut bytes) = (log.log_start_offset(), Vec::new());
    loop {
        let end = log.log_end_offset();
        if next >= end {
            return (bytes, next);
        }
        let data = log.read(next, 1 << 20, end, true).unwrap();
        // In between, all records up to that end may have been removed in favour of later ones.
        let has_moved = log.log_end_offset() > end;
        assert!(data.next_offset > next || has_moved, "nothing to read at {next} of {end}");
        bytes.extend_from_slice(&data.bytes);
        next = data.next_offset;
    }
}

/// Offset, key and value of each remaining record, without markers.
fn records(log: &Log) -> Vec<(i64, String, Option<String>)> {
    records_in(&stored(log))
}

fn records_in(bytes: &[u8]) -> Vec<(i64, String, Option<String>)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut found = Vec::new();
    for batch in all(bytes).iter().filter(|batch| !batch.is_control()) {
        assert!(batch.is_crc_valid());
        let mut scratch = Vec::new();
        for record in batch.records(&mut scratch, Limits::default()).unwrap() {
            let record = record.unwrap();
            found.push((record.offset, record.key.map(text).unwrap(), record.value.map(text)));
        }
    }
    found
}

fn offsets(log: &Log) -> Vec<i64> {
    records(log).into_iter().map(|(offset, ..)| offset).collect()
}

fn headers<T>(log: &Log, of: impl Fn(&Batch<'_>) -> T) -> Vec<T> {
    all(&stored(log)).iter().map(of).collect()
}

fn reopened(bench: &Bench, log: &Log, clean: bool) -> Log {
    log.close().unwrap();
    let (log, recovery) = bench.open(clean);
    assert_eq!((recovery.damage, recovery.truncated_bytes), (None, 0));
    assert_eq!(recovery.warnings, Vec::<String>::new());
    log
}

#[test]
fn the_last_record_of_each_key_stays_with_its_offset() {
    let bench = bench();
    let (log, _) = bench.open(true);
    append(&log, &[("a", Some("1")), ("b", Some("1")), ("c", Some("1"))]);
    append(&log, &[("a", Some("2"))]);
    log.roll().unwrap();
    append(&log, &[("b", Some("2")), ("d", Some("1"))]);
    log.roll().unwrap();
    append(&log, &[("c", Some("not sealed"))]);
    let report = compact(&log);
    assert_eq!(report.clean_offset, 6);
    assert_eq!((report.segments_before, report.segments_after), (2, 1));
    assert_eq!(report.records_removed, 2);
    let expected = [(2, "c"), (3, "a"), (4, "b"), (5, "d"), (6, "c")];
    let found = records(&log);
    let found: Vec<_> = found.iter().map(|(offset, key, _)| (*offset, key.as_str())).collect();
    assert_eq!(found, expected);
    assert_eq!(log.segments().iter().map(|(base, _)| *base).collect::<Vec<_>>(), [0, 6]);
    for clean in [true, false] {
        let log = reopened(&bench, &log, clean);
        assert_eq!(offsets(&log), [2, 3, 4, 5, 6]);
        assert_eq!(log.log_end_offset(), 7);
        log.close().unwrap();
    }
    let names = bench.file_names();
    let is_left = |name: &String| [".cleaned", ".swap"].iter().any(|suffix| name.ends_with(suffix));
    assert!(!names.iter().any(is_left), "{names:?}");
}

#[test]
fn segment_without_remaining_records_keeps_its_end_offset() {
    let bench = bench();
    let (log, _) = bench.open(true);
    for _ in 0..3 {
        append(&log, &[("a", Some("old")), ("b", Some("old"))]);
    }
    log.roll().unwrap();
    append(&log, &[("a", Some("new")), ("b", Some("new"))]);
    log.roll().unwrap();
    let small = pykafka_log::LogConfig { segment_bytes: 100, ..bench.config.clone() };
    log.update_config(Arc::new(small));
    compact(&log);
    assert_eq!(offsets(&log), [6, 7]);
    let found = headers(&log, |batch| (batch.base_offset(), batch.last_offset()));
    assert_eq!(found, [(4, 5), (6, 7)]);
    let log = reopened(&bench, &log, false);
    assert_eq!((log.segments_count(), offsets(&log)), (3, vec![6, 7]));
}

#[test]
fn tombstones_stay_until_their_horizon() {
    let bench = bench();
    let (log, _) = bench.open(true);
    append(&log, &[("a", Some("1")), ("b", Some("1"))]);
    append(&log, &[("a", None), ("c", Some("1"))]);
    append(&log, &[("d", Some("1"))]);
    log.roll().unwrap();
    let clean_offset = compact(&log).clean_offset;
    assert_eq!(offsets(&log), [1, 2, 3, 4]);
    let horizons = headers(&log, |batch| batch.delete_horizon_ms());
    assert_eq!(horizons, [None, Some(NOW_MS + RETENTION_MS), None]);
    // The horizon is set at the first compaction only.
    compact_from(&log, clean_offset, NOW_MS + RETENTION_MS - 1);
    assert_eq!(offsets(&log), [1, 2, 3, 4]);
    assert_eq!(headers(&log, |batch| batch.delete_horizon_ms()), horizons);
    compact_from(&log, clean_offset, NOW_MS + RETENTION_MS);
    assert_eq!(offsets(&log), [1, 3, 4]);
}

#[test]
fn tombstone_below_the_clean_offset_without_a_horizon_is_kept() {
    let bench = bench();
    let (log, _) = bench.open(true);
    append(&log, &[("a", Some("1"))]);
    append(&log, &[("a", None)]);
    append(&log, &[("b", Some("1"))]);
    log.roll().unwrap();
    for round in 0..3 {
        compact_from(&log, 3, NOW_MS + round * 10 * RETENTION_MS);
        assert_eq!(offsets(&log), [0, 1, 2]);
    }
}

#[test]
fn aborted_records_are_removed_and_do_not_count_as_last() {
    let bench = bench();
    let (log, _) = bench.open(true);
    append(&log, &[("a", Some("1")), ("b", Some("1"))]);
    append_with(&log, producer(1, 0, true), &[("a", Some("aborted"))]);
    append_with(&log, producer(2, 0, true), &[("b", Some("committed"))]);
    end(&log, 1, false);
    end(&log, 2, true);
    append_with(&log, producer(1, 1, true), &[("x", Some("1"))]);
    append_with(&log, producer(2, 1, true), &[("y", Some("1"))]);
    end(&log, 1, true);
    end(&log, 2, true);
    log.roll().unwrap();
    let clean_offset = compact(&log).clean_offset;
    assert_eq!(offsets(&log), [0, 3, 6, 7]);
    let markers = |log: &Log| {
        let found = headers(log, |b| (b.is_control(), b.base_offset(), b.delete_horizon_ms()));
        let markers = found.into_iter().filter(|(is_control, ..)| *is_control);
        markers.map(|(_, offset, horizon)| (offset, horizon)).collect::<Vec<_>>()
    };
    // The transactions had data in the log until now.
    assert_eq!(markers(&log), [(4, None), (5, None), (8, None), (9, None)]);
    assert_eq!(log.segment_entries(0).unwrap().unwrap().aborted.len(), 1);
    compact_from(&log, clean_offset, NOW_MS);
    let horizon = Some(NOW_MS + RETENTION_MS);
    assert_eq!(markers(&log), [(4, horizon), (5, None), (8, None), (9, None)]);
    assert!(log.segment_entries(0).unwrap().unwrap().aborted.is_empty());
    let log = reopened(&bench, &log, false);
    compact_from(&log, clean_offset, NOW_MS + RETENTION_MS);
    assert_eq!(markers(&log), [(5, None), (8, None), (9, None)]);
    let log = reopened(&bench, &log, false);
    assert_eq!(offsets(&log), [0, 3, 6, 7]);
    assert_eq!(log.first_unstable_offset(log.log_end_offset()), None);
}

#[test]
fn nothing_at_or_above_an_open_transaction_is_touched() {
    let bench = bench();
    let (log, _) = bench.open(true);
    append(&log, &[("a", Some("1"))]);
    append(&log, &[("a", Some("2"))]);
    log.roll().unwrap();
    append(&log, &[("a", Some("3"))]);
    append_with(&log, producer(1, 0, true), &[("b", Some("open"))]);
    append(&log, &[("a", Some("4"))]);
    log.roll().unwrap();
    append(&log, &[("a", Some("5"))]);
    log.roll().unwrap();
    let report = compact(&log);
    assert_eq!((report.clean_offset, offsets(&log)), (2, vec![1, 2, 3, 4, 5]));
    // Records above the high watermark are not changed either.
    end(&log, 1, true);
    let options = CompactionOptions { high_watermark: 4, ..at_end(&log) };
    assert_eq!(log.compact(&options, NOW_MS).unwrap().clean_offset, 2);
    assert_eq!(compact(&log).clean_offset, 6);
    assert_eq!(offsets(&log), [3, 5]);
}

#[test]
fn the_last_batch_of_a_producer_stays_without_records() {
    let bench = bench();
    let (log, _) = bench.open(true);
    append_with(&log, producer(1, 0, false), &[("a", Some("1"))]);
    append_with(&log, producer(1, 1, false), &[("a", Some("2")), ("b", Some("1"))]);
    append(&log, &[("a", Some("3")), ("b", Some("2"))]);
    log.roll().unwrap();
    let state = |log: &Log| {
        let last = |entry: &ProducerEntry| (entry.last_sequence(), entry.last_data_offset());
        log.active_producers().iter().map(last).collect::<Vec<_>>()
    };
    assert_eq!(state(&log), [(2, 2)]);
    compact(&log);
    let found = headers(&log, |batch| (batch.base_offset(), batch.records_count()));
    assert_eq!(found, [(1, 0), (3, 2)]);
    log.close().unwrap();
    for name in bench.file_names().iter().filter(|name| name.ends_with(".snapshot")) {
        bench.disk.remove_file(&bench.dir.join(name)).unwrap();
    }
    let (log, _) = bench.open(false);
    assert_eq!(state(&log), [(2, 2)]);
    append_with(&log, producer(1, 3, false), &[("c", Some("1"))]);
    log.roll().unwrap();
    compact(&log);
    assert_eq!(headers(&log, |batch| batch.base_offset()), [3, 5]);
}

#[test]
fn young_segments_and_all_later_ones_are_kept() {
    let mut bench = bench();
    bench.config.min_compaction_lag_ms = 500;
    let (log, _) = bench.open(true);
    for _ in 0..3 {
        append(&log, &[("a", Some("1")), ("a", Some("2"))]);
        log.roll().unwrap();
    }
    assert_eq!(compact_from(&log, 0, NOW_MS + 499).records_removed, 0);
    let dirtiness = log.dirtiness(0, i64::MAX, NOW_MS + 499).unwrap();
    assert_eq!((dirtiness.dirty_bytes, dirtiness.clean_bytes), (0, 0));
    assert_eq!(dirtiness.first_dirty_timestamp, Some(NOW_MS));
    assert_eq!(compact_from(&log, 0, NOW_MS + 500).records_removed, 5);
}

#[test]
fn small_map_limits_the_cleaned_range() {
    let bench = bench();
    let (log, _) = bench.open(true);
    let keys: Vec<String> = (0..20).map(|key| format!("key-{key}")).collect();
    for round in 0..3 {
        for key in &keys {
            append(&log, &[(key, Some(if round == 2 { "last" } else { "old" }))]);
        }
    }
    log.roll().unwrap();
    let (mut clean_offset, mut rounds) = (0, 0);
    while clean_offset < 60 {
        let options = CompactionOptions { clean_offset, key_bytes_max: 500, ..at_end(&log) };
        let report = log.compact(&options, NOW_MS).unwrap();
        assert!(report.clean_offset > clean_offset, "no progress at {clean_offset}");
        clean_offset = report.clean_offset;
        rounds += 1;
    }
    assert!(rounds > 5, "the map held everything");
    assert_eq!(offsets(&log), (40..60).collect::<Vec<_>>());
}

#[test]
fn codecs_and_timestamps_stay_as_they_are() {
    let bench = bench();
    let (log, _) = bench.open(true);
    for compression in Compression::ALL {
        let options = BatchOptions { compression, ..BatchOptions::default() };
        let key = compression.name();
        append_with(&log, options, &[("all", Some("1")), (key, Some("1")), ("gone", None)]);
    }
    append(&log, &[("all", Some("last"))]);
    log.roll().unwrap();
    compact(&log);
    compact_from(&log, 16, NOW_MS + RETENTION_MS);
    assert_eq!(offsets(&log), [1, 4, 7, 10, 13, 15]);
    let codecs = headers(&log, |batch| batch.compression().unwrap());
    assert_eq!(codecs[..5], Compression::ALL);
    assert!(headers(&log, |batch| batch.max_timestamp()).iter().all(|time| *time == NOW_MS));
    let found = log.offset_for_timestamp(NOW_MS, 100).unwrap().unwrap();
    assert_eq!(found.offset, 1);
}

#[test]
fn a_second_compaction_of_the_same_changes_no_byte() {
    let bench = bench();
    let (log, _) = bench.open(true);
    for round in 0..40 {
        append(&log, &[(&format!("key-{}", round % 7), Some("value")), ("all", Some("v"))]);
    }
    log.roll().unwrap();
    let report = compact(&log);
    assert!(report.segments_before > 1);
    compact_from(&log, report.clean_offset, NOW_MS);
    log.delete_expired_files(i64::MAX).unwrap();
    log.flush().unwrap();
    let files = bench.files();
    let again = compact_from(&log, report.clean_offset, NOW_MS);
    assert_eq!((again.segments_before, again.records_removed), (0, 0));
    assert_eq!(bench.files(), files);
}

#[test]
fn a_damaged_batch_is_never_written_again() {
    let bench = bench();
    let (log, _) = bench.open(true);
    append(&log, &[("a", Some("1")), ("b", Some("1"))]);
    append(&log, &[("a", Some("2"))]);
    log.roll().unwrap();
    let path = bench.dir.join("00000000000000000000.log");
    let file = bench.disk.open(&path, OpenMode::Write).unwrap();
    file.write_at(b"?", 70).unwrap();
    let before = bench.files();
    let refused = log.compact(&at_end(&log), NOW_MS);
    assert!(matches!(refused, Err(StorageError::Malformed { .. })), "{refused:?}");
    assert_eq!(bench.files(), before);
    assert!(log.write_error().is_none());
}

/// In Kafka 4.4 the compaction of the whole log fails.
#[test]
fn a_batch_with_a_record_above_a_lowered_maximum_stays_as_it_is() {
    let bench = bench();
    let (log, _) = bench.open(true);
    let large = "v".repeat(500);
    let lz4 = BatchOptions { compression: Compression::Lz4, ..BatchOptions::default() };
    append_with(&log, lz4, &[("a", Some("1")), ("b", Some(&large))]);
    append_with(&log, lz4, &[("a", Some("2")), ("b", Some("2")), ("c", Some("2"))]);
    append(&log, &[("a", Some("3")), ("c", Some(&large))]);
    log.roll().unwrap();
    let config = LogConfig { max_decompressed_message_bytes: 100, ..(*log.config()).clone() };
    log.update_config(Arc::new(config));
    compact(&log);
    assert_eq!(offsets(&log), [0, 1, 3, 5, 6]);
    log.update_config(Arc::new(bench.config.clone()));
    compact(&log);
    assert_eq!(offsets(&log), [3, 5, 6]);
}

#[test]
fn retention_and_truncation_end_a_running_compaction_early() {
    let bench = bench();
    let (log, _) = bench.open(true);
    for _ in 0..4 {
        append(&log, &[("a", Some("1")), ("b", Some("1"))]);
        log.roll().unwrap();
    }
    let log = Arc::new(log);
    for change in [
        |log: &Log| log.truncate_to(7).unwrap(),
        |log: &Log| {
            log.delete_before(2).unwrap();
            log.enforce_retention(log.log_end_offset()).unwrap();
        },
    ] {
        let (changing, is_done) = (log.clone(), AtomicBool::new(false));
        let hook = move || {
            if !is_done.swap(true, Ordering::SeqCst) {
                change(&changing);
            }
            false
        };
        let cancellation = pykafka_record::Cancellation::when(hook);
        let options = CompactionOptions { cancellation, clean_offset: 0, ..at_end(&log) };
        let before = log.segments_count();
        let report = log.compact(&options, NOW_MS).unwrap();
        assert!(!report.is_complete, "{report:?} of {before} segments");
        assert_eq!(report.segments_before, 0);
        assert!(log.write_error().is_none());
    }
    assert!(!bench.file_names().iter().any(|name| name.ends_with(".cleaned")));
    append(&log, &[("c", Some("1"))]);
    log.roll().unwrap();
    assert!(compact(&log).is_complete);
}

#[test]
fn last_record_of_each_key_in_a_large_batch_is_kept() {
    let mut bench = bench();
    bench.config.segment_bytes = 1 << 20;
    let (log, _) = bench.open(true);
    let names: Vec<String> = (0..20_000).map(|n| (n % 7_001).to_string()).collect();
    append(&log, &names.iter().map(|name| (name.as_str(), Some("v"))).collect::<Vec<_>>());
    log.roll().unwrap();
    assert_eq!(compact(&log).records_removed, 20_000 - 7_001);
    let left = records(&log);
    assert!(left.iter().map(|(offset, ..)| *offset).eq(20_000 - 7_001..20_000));
}

#[test]
fn compaction_keeps_to_its_pace() {
    let bench = bench();
    let (log, _) = bench.open(true);
    append(&log, &[("a", Some("1")), ("b", Some("1"))]);
    append(&log, &[("a", Some("1"))]);
    log.roll().unwrap();
    let (clock, calls) = (bench.clock.clone(), AtomicU64::new(0));
    // The hook is called more often than there are batches, because the compaction also calls it
    // while it waits.
    let hook = move || {
        if calls.fetch_add(1, Ordering::SeqCst) == 10 {
            clock.advance_ms(3_600_000);
        }
        false
    };
    let options = CompactionOptions {
        cancellation: pykafka_record::Cancellation::when(hook),
        bytes_per_second_max: 1.0,
        ..at_end(&log)
    };
    let begun = bench.clock.now_ms();
    assert_eq!(log.compact(&options, NOW_MS).unwrap().records_removed, 1);
    assert_eq!(bench.clock.now_ms() - begun, 3_600_000);
}

#[test]
fn readers_during_compactions_always_find_the_last_values() {
    let bench = bench();
    let (log, _) = bench.open(true);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let read = || {
            while !is_over.load(Ordering::SeqCst) {
                let (bytes, end) = stored_upto_end(&log);
                let found = records_in(&bytes);
                let last: BTreeMap<_, _> =
                    found.iter().map(|(offset, key, _)| (key.clone(), *offset)).collect();
                assert_eq!(last.len() as i64, end.min(5));
                assert!(last.values().all(|offset| *offset >= end - 5), "{last:?} of {end}");
                let found = log.offset_for_timestamp(NOW_MS, i64::MAX).unwrap();
                assert!(found.is_some() || end == 0);
            }
        };
        let readers = [scope.spawn(read), scope.spawn(read)];
        let mut clean_offset = 0;
        for number in 0..600 {
            append(&log, &[(&format!("key-{}", number % 5), Some("value"))]);
            if number % 20 == 0 {
                clean_offset = compact_from(&log, clean_offset, NOW_MS).clean_offset;
                log.delete_expired_files(i64::MAX).unwrap();
            }
        }
        is_over.store(true, Ordering::SeqCst);
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn a_log_for_reading_only_refuses() {
    let bench = bench();
    let (log, _) = bench.open(true);
    append(&log, &[("a", Some("1"))]);
    log.close().unwrap();
    let options = LogOptions { read_only: true, ..bench.options(true) };
    let (log, _) = Log::open(options).unwrap();
    assert!(matches!(log.compact(&at_end(&log), NOW_MS), Err(StorageError::ReadOnly)));
}
