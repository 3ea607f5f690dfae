//! Look-ups during removals: they find the content of the log at their end, and races do not cause
//! I/O errors.
#![allow(clippy::case_sensitive_file_extension_comparisons, reason = "the log's own names")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use common::watched_disk::WatchedDisk;
use common::{Bench, LEADER, NOW_MS, append, batch_with, end_transaction};
use pykafka_log::{
    Checkpointed, CompressionType, FetchedRecords, Log, LogConfig, LogOptions, OpenMode, ReadError,
    StorageError,
};
use pykafka_record::{
    BatchOptions, Compression, EndTransactionMarker, LeaderEpoch, ProducerEpoch, ProducerId,
};

fn bench(config: LogConfig) -> (Bench, WatchedDisk) {
    let disk = WatchedDisk::default();
    (Bench { disk: Arc::new(disk.clone()), config, ..Bench::default() }, disk)
}

/// The search started at the active segment's first byte.
#[test]
fn the_record_with_the_largest_timestamp_is_found_within_an_index_interval() {
    let interval = 1000;
    let config = LogConfig { index_interval_bytes: interval, ..LogConfig::default() };
    let (bench, disk) = bench(config);
    let (log, _) = bench.open(true);
    for n in 0..2000 {
        append(&log, 1, NOW_MS + n);
    }
    append(&log, 1, NOW_MS);
    let before = disk.hook().bytes_read();
    let found = log.offset_of_max_timestamp().unwrap().unwrap();
    assert_eq!((found.offset, found.timestamp), (1999, NOW_MS + 1999));
    let read = disk.hook().bytes_read() - before;
    assert!(read <= 8 * interval as u64, "{read} of {} bytes", log.size_bytes());
}

/// The broker itself may compress further than producers are allowed to.
#[test]
fn look_ups_read_batches_that_compression_type_shrank_more_than_a_thousandfold() {
    for codec in [Compression::Gzip, Compression::Zstd] {
        let config = LogConfig {
            segment_bytes: 64 << 20,
            max_message_bytes: 32 << 20,
            compression_type: CompressionType::Codec(codec),
            ..LogConfig::default()
        };
        let (log, _) = bench(config).0.open(true);
        let mut bytes = batch_with(BatchOptions::default(), 2, 12 << 20, NOW_MS);
        let sent = bytes.len();
        log.append_as_leader(&mut bytes, LEADER).unwrap();
        assert!(log.size_bytes() * 1000 < sent as u64, "{} bytes", log.size_bytes());
        let found = log.offset_for_timestamp(NOW_MS + 1, i64::MAX).unwrap().unwrap();
        assert_eq!(found.offset, 1);
        assert_eq!(log.offset_of_max_timestamp().unwrap().unwrap().offset, 1);
    }
}

/// Appends two records and aborts their transaction.
fn append_aborted(log: &Log, n: i32) {
    let options = BatchOptions {
        producer_id: ProducerId::new(9),
        producer_epoch: ProducerEpoch::new(1),
        base_sequence: 2 * n,
        transactional: true,
        ..BatchOptions::default()
    };
    let mut bytes = batch_with(options, 2, 50, NOW_MS + i64::from(n));
    log.append_as_leader(&mut bytes, LEADER).unwrap();
    let marker = EndTransactionMarker { committed: false, coordinator_epoch: 0 };
    end_transaction(log, ProducerId::new(9), ProducerEpoch::new(1), marker, LeaderEpoch::ZERO)
        .unwrap();
}

/// Segments with one aborted transaction each, whose marker is in the same segment. No file is
/// open.
fn aborted_segments(bench: &Bench, count: i32) -> Arc<Log> {
    let (log, _) = bench.open(true);
    for n in 0..count {
        append_aborted(&log, n);
        log.roll().unwrap();
    }
    log.release_idle_files().unwrap();
    Arc::new(log)
}

fn path(bench: &Bench, base_offset: i64, suffix: &str) -> PathBuf {
    bench.dir.join(format!("{base_offset:020}{suffix}"))
}

/// Makes retention remove the first segment right before `look` opens its file with `suffix`.
fn overtaken<T>(suffix: &str, look: impl Fn(&Log) -> T) -> T {
    let (bench, disk) = bench(LogConfig::default());
    let log = aborted_segments(&bench, 3);
    let retaining = log.clone();
    disk.hook().before_open(path(&bench, 0, suffix), move || {
        retaining.delete_before(3).unwrap();
        assert_eq!(retaining.enforce_retention(9).unwrap(), 1);
    });
    let found = look(&log);
    assert!(disk.hook().has_acted(), "{suffix} was not opened");
    assert!(log.write_error().is_none());
    found
}

#[test]
fn look_ups_during_retention_use_the_remaining_segments() {
    let first = |log: &Log| log.offset_for_timestamp(NOW_MS, 9).unwrap().unwrap().offset;
    assert_eq!(overtaken(".log", first), 3);
    assert_eq!(overtaken(".timeindex", first), 3);
    let mapped = |log: &Log| log.map_sealed(0, 9).unwrap().len();
    assert_eq!(overtaken(".log", mapped), 2);
    let is_out_of_range =
        |log: &Log| matches!(log.read(0, 1000, 9, true), Err(ReadError::OffsetOutOfRange { .. }));
    assert!(overtaken(".log", is_out_of_range));
    assert!(overtaken(".index", is_out_of_range));
    assert_eq!(overtaken(".txnindex", |log| log.segment_entries(0).unwrap()), None);
}

/// Retention came after the batches were read, and the missing transaction index was treated as one
/// without aborted transactions.
#[test]
fn records_are_not_returned_without_their_aborted_transactions_when_retention_comes_between() {
    let found = overtaken(".txnindex", |log| log.fetch_committed(0, 1000, 9, true));
    match found {
        Err(ReadError::OffsetOutOfRange { log_start_offset: 3, .. }) => {}
        found => panic!("{found:?}"),
    }
}

/// The segment with the largest timestamp, which is not the last one, is removed during the search.
#[test]
fn largest_timestamp_is_found_in_the_remaining_segments() {
    let (bench, disk) = bench(LogConfig::default());
    let (log, _) = bench.open(true);
    for timestamp in [NOW_MS + 9, NOW_MS, NOW_MS + 1] {
        append(&log, 1, timestamp);
        log.roll().unwrap();
    }
    log.release_idle_files().unwrap();
    let log = Arc::new(log);
    let retaining = log.clone();
    disk.hook().before_open(path(&bench, 0, ".log"), move || {
        retaining.delete_before(1).unwrap();
        retaining.enforce_retention(3).unwrap();
    });
    let found = log.offset_of_max_timestamp().unwrap().unwrap();
    assert_eq!((found.offset, found.timestamp), (2, NOW_MS + 1));
    assert!(disk.hook().has_acted());
}

/// The batches after each truncation have its number as timestamp: a read must not show batches of
/// two histories, or none.
#[test]
fn read_during_truncations_shows_one_history() {
    let (bench, _) = bench(LogConfig { index_interval_bytes: 0, ..LogConfig::default() });
    let log = Arc::new(bench.open(true).0);
    append(&log, 2, NOW_MS);
    let append_history = |history: i64| {
        for _ in 0..3 {
            append(&log, 1, NOW_MS + history);
        }
    };
    append_history(0);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::SeqCst) {
                let data = log.read(0, 100_000, i64::MAX, true).unwrap();
                let batches = common::all(&data.bytes);
                assert_eq!(batches[0].last_offset(), 1);
                let histories: Vec<_> =
                    batches[1..].iter().map(|batch| batch.max_timestamp()).collect();
                assert!(histories.windows(2).all(|pair| pair[0] == pair[1]), "{histories:?}");
            }
        });
        for history in 1..300 {
            // Every other truncation cuts a sealed segment, which gets another file.
            if history % 2 == 0 {
                log.roll().unwrap();
                append(&log, 1, NOW_MS);
            }
            log.truncate_to(2).unwrap();
            append_history(history);
        }
        is_done.store(true, Ordering::SeqCst);
    });
    assert_eq!(log.log_end_offset(), 5);
}

#[test]
fn look_up_during_a_deletion_fails_because_the_log_is_closed() {
    let (bench, disk) = bench(LogConfig::default());
    let log = aborted_segments(&bench, 2);
    let deleting = log.clone();
    disk.hook().before_open(path(&bench, 0, ".log"), move || {
        let closing = deleting.clone();
        std::thread::spawn(move || closing.delete(Path::new("/data/topic-0-delete")).unwrap());
        while deleting.write_error().is_none() {
            std::thread::yield_now();
        }
    });
    let found = log.read(0, 1000, 6, true);
    assert!(matches!(found, Err(ReadError::Storage(StorageError::Closed))), "{found:?}");
}

fn aborted_in(log: &Log) -> Vec<(i64, i64)> {
    let mut found = Vec::new();
    let mut offset = log.log_start_offset();
    while offset < log.log_end_offset() {
        let (data, aborted) = log.fetch_committed(offset, 1, i64::MAX, true).unwrap();
        found.extend(aborted.iter().map(|txn| (txn.first_offset, txn.last_offset)));
        offset = data.next_offset;
    }
    found.dedup();
    found
}

/// A segment without aborted transactions has no transaction index, so a missing index was treated
/// as empty.
#[test]
fn missing_or_short_transaction_index_is_rebuilt_from_the_batches() {
    let expected = [(0, 2), (3, 5), (6, 8)];
    for (base_offset, clean) in [(0, true), (3, true), (6, true), (3, false)] {
        for is_gone in [true, false] {
            let (bench, _) = bench(LogConfig::default());
            let log = aborted_segments(&bench, 3);
            log.close().unwrap();
            let index = path(&bench, base_offset, ".txnindex");
            let whole = bench.disk.read(&index).unwrap();
            if is_gone {
                bench.disk.remove_file(&index).unwrap();
            } else {
                bench.disk.open(&index, OpenMode::Write).unwrap().set_len(0).unwrap();
            }
            // Synced up to the end, so that only the missing entries make an open read the segment.
            let checkpointed = Checkpointed { recovery_point: 9, ..Checkpointed::default() };
            let options =
                |read_only| LogOptions { checkpointed, read_only, ..bench.options(clean) };
            let (log, recovery) = Log::open(options(true)).unwrap();
            assert_eq!(aborted_in(&log), expected, "{base_offset} read-only");
            assert!(recovery.warnings[0].contains("0 of 1 entries"), "{recovery:?}");
            let (log, recovery) = Log::open(options(false)).unwrap();
            assert_eq!((aborted_in(&log), recovery.damage), (expected.to_vec(), None));
            log.close().unwrap();
            assert_eq!(bench.disk.read(&index).unwrap(), whole);
            let (log, recovery) = Log::open(options(false)).unwrap();
            assert_eq!((aborted_in(&log), recovery.warnings), (expected.to_vec(), vec![]));
        }
    }
}

/// A fetch with `read_committed` tried to open an index of each segment from its offset to the log
/// end offset.
#[test]
fn no_index_is_opened_for_a_segment_without_aborted_transactions() {
    let (bench, disk) = bench(LogConfig::default());
    let (log, _) = bench.open(true);
    for n in 0..3 {
        append(&log, 1, NOW_MS + n);
        log.roll().unwrap();
    }
    log.close().unwrap();
    let (log, _) = bench.open(true);
    disk.hook().before_open(path(&bench, 1, ".txnindex"), || {});
    assert_eq!(log.fetch_committed(0, 1000, 3, true).unwrap().1, []);
    assert!(!disk.hook().has_acted());
}

#[test]
fn removal_of_a_transaction_index_of_an_open_log_is_an_error() {
    let (bench, _) = bench(LogConfig::default());
    let log = aborted_segments(&bench, 2);
    bench.disk.remove_file(&path(&bench, 0, ".txnindex")).unwrap();
    let found = log.fetch_committed(0, 1000, 6, true);
    assert!(matches!(found, Err(ReadError::Storage(StorageError::Malformed { .. }))), "{found:?}");
}

/// The offsets of the fetched data batches that no aborted transaction covers.
fn uncovered(log: &Log, offset: i64, upto: i64) -> Result<Vec<i64>, ReadError> {
    let (data, aborted) = log.fetch_committed(offset, 1500, upto, true)?;
    let FetchedRecords::Read(bytes) = data.records else { panic!("a memory disk sends nothing") };
    let batches = common::all(&bytes);
    let offsets =
        batches.iter().filter(|batch| !batch.is_control()).map(|batch| batch.base_offset());
    let is_covered = |offset: &i64| {
        aborted.iter().any(|txn| (txn.first_offset..txn.last_offset).contains(offset))
    };
    Ok(offsets.filter(|offset| !is_covered(offset)).collect())
}

#[test]
fn look_ups_during_rolls_and_retention_meet_no_error_and_no_aborted_record() {
    let config = LogConfig {
        segment_bytes: 1000,
        index_interval_bytes: 200,
        retention_bytes: 3000,
        retention_ms: -1,
        file_delete_delay_ms: 0,
        ..LogConfig::default()
    };
    let (bench, _) = bench(config);
    let log = bench.open(true).0;
    append_aborted(&log, 0);
    let stable = AtomicI64::new(log.log_end_offset());
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (log, stable, is_done) = (&log, &stable, &is_done);
            scope.spawn(move || {
                let mut n = thread;
                while !is_done.load(Ordering::SeqCst) {
                    n += 1;
                    let upto = stable.load(Ordering::SeqCst);
                    let start = log.log_start_offset();
                    match uncovered(log, start + n % (upto - start).max(1), upto) {
                        Ok(found) => assert_eq!(found, [0; 0]),
                        Err(ReadError::OffsetOutOfRange { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                    log.offset_for_timestamp(NOW_MS + upto / 3, upto).unwrap();
                    log.offset_of_max_timestamp().unwrap().unwrap();
                    log.segment_entries(log.segments()[0].0).unwrap();
                    log.map_sealed(start, upto).unwrap();
                }
            });
        }
        for n in 1..600 {
            append_aborted(&log, n);
            stable.store(log.log_end_offset(), Ordering::SeqCst);
            log.enforce_retention(log.log_end_offset()).unwrap();
            log.delete_expired_files(i64::MAX).unwrap();
            if n % 5 == 0 {
                log.release_idle_files().unwrap();
            }
        }
        is_done.store(true, Ordering::SeqCst);
    });
    assert!(log.log_start_offset() > 0 && log.write_error().is_none());
}

/// Recovery had already processed the transaction when it reached the unreadable batch.
#[test]
fn a_damaged_log_without_producer_snapshots_names_its_aborted_transactions() {
    let bench = Bench::default();
    let (log, _) = bench.open(true);
    append_aborted(&log, 0);
    for n in 0..60 {
        append(&log, 1, NOW_MS + n);
    }
    let end = log.log_end_offset();
    let (_, before) = log.fetch_committed(0, 500, end, true).unwrap();
    assert_eq!(before.len(), 1);
    log.close().unwrap();
    for name in bench.file_names().iter().filter(|name| name.ends_with(".snapshot")) {
        bench.disk.remove_file(&bench.dir.join(name)).unwrap();
    }
    let bytes = bench.file("00000000000000000000.log");
    let sixth: usize = common::all(&bytes)[..5].iter().map(|batch| batch.size()).sum();
    let magic = 16;
    let log_file = bench.disk.open(&path(&bench, 0, ".log"), OpenMode::Write).unwrap();
    log_file.write_at(&[9], (sixth + magic) as u64).unwrap();
    let (log, recovery) = bench.open(true);
    assert!(recovery.damage.is_some());
    let (_, after) = log.fetch_committed(0, 500, log.log_end_offset(), true).unwrap();
    assert_eq!(after, before);
}

#[test]
fn entries_that_are_stored_while_they_are_looked_at_are_not_missed() {
    let config = LogConfig { index_interval_bytes: 0, ..LogConfig::default() };
    let (bench, disk) = bench(config);
    let log = Arc::new(bench.open(true).0);
    for n in 0..1100 {
        append(&log, 1, NOW_MS + n);
    }
    let before = log.segment_entries(0).unwrap().unwrap();
    let writer = log.clone();
    disk.hook().before_open(path(&bench, 0, ".index"), move || {
        for n in 1100..3300 {
            append(&writer, 1, NOW_MS + n);
        }
    });
    assert_eq!(log.segment_entries(0).unwrap().unwrap(), before);
}
