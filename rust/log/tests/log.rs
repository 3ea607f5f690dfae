//! Appending, reading, rolling, retention, truncation and recovery of one log.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::case_sensitive_file_extension_comparisons, reason = "the log's own names")]

mod common;

use std::sync::Arc;

use common::watched_disk::WatchedDisk;
use common::{Bench, LEADER, NOW_MS, append, batch, batch_offsets, batch_with, end_transaction};
use pykafka_log::disk::{Fault, FaultyDisk, Operations};
use pykafka_log::{
    AppendError, AppendOptions, AppendOrigin, Checkpointed, Damage, Log, LogConfig, LogOptions,
    OpenMode, ReadError, Recovery, StorageError,
};
use pykafka_record::{
    BatchBuilder, BatchMut, BatchOptions, Compression, EndTransactionMarker, LeaderEpoch,
    ProducerEpoch, ProducerId,
};

#[test]
fn nothing_is_on_disk_before_the_first_append() {
    let bench = Bench::default();
    let (log, _) = bench.open(true);
    assert!(!bench.disk.exists(&bench.dir));
    assert_eq!((log.log_start_offset(), log.log_end_offset(), log.segments_count()), (0, 0, 0));
    log.assign_epoch(LeaderEpoch::new(3), 0).unwrap();
    assert!(!bench.disk.exists(&bench.dir));
    log.append_as_leader(
        &mut batch(1, 10, NOW_MS),
        AppendOptions { leader_epoch: LeaderEpoch::new(3), ..LEADER },
    )
    .unwrap();
    assert_eq!(bench.file("leader-epoch-checkpoint"), b"0\n1\n3 0\n");
    assert!(bench.file_names().contains(&"partition.metadata".to_owned()));
}

#[test]
fn batches_get_offsets_and_are_read_unchanged() {
    let bench = Bench::default();
    let (log, _) = bench.open(true);
    for n in 0..40 {
        let info = append(&log, 3, NOW_MS + n);
        assert_eq!((info.first_offset, info.last_offset), (n * 3, n * 3 + 2));
    }
    assert!(log.segments_count() > 3);
    for offset in 0..120 {
        let base = offset / 3 * 3;
        let data = log.read(offset, 1, 120, true).unwrap();
        assert_eq!((data.base_offset, data.next_offset), (base, base + 3), "at {offset}");
        assert_eq!(batch_offsets(&log, offset).len() as i64, 40 - offset / 3);
    }
}

#[test]
fn brief_validation_has_the_result_of_validation_or_changes_nothing() {
    const BRIEF: usize = 256 << 10;
    let (log, _) = Bench { config: LogConfig::default(), ..Bench::default() }.open(true);
    for compression in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd]
    {
        for (value_bytes, is_brief) in [(10, true), (200_000, true), (300_000, false)] {
            let options = BatchOptions { compression, ..BatchOptions::default() };
            let mut builder = BatchBuilder::new(options);
            builder.append(NOW_MS, None, Some(&vec![7; value_bytes]), &[]).unwrap();
            let mut bytes = Vec::new();
            builder.build(&mut bytes).unwrap();
            let (mut brief, mut full) = (bytes.clone(), bytes.clone());
            let validated = log.validate_briefly(&mut brief, AppendOrigin::Client, BRIEF).unwrap();
            assert_eq!(validated.is_some(), is_brief, "{compression:?}, {value_bytes}");
            let expected = log.validate(&mut full, AppendOrigin::Client).unwrap();
            assert!(validated.is_none_or(|validated| validated == expected));
            assert_eq!(brief, if is_brief { full } else { bytes });
        }
    }
}

#[test]
fn reads_end_at_their_bound_and_at_the_size() {
    let bench = Bench::default();
    let (log, _) = bench.open(true);
    for n in 0..4 {
        append(&log, 3, NOW_MS + n);
    }
    let one = log.read(0, 1, 12, true).unwrap().bytes.len();
    assert_eq!(log.read(0, 1, 12, false).unwrap().bytes.len(), 0);
    assert_eq!(log.read(0, 2 * one, 12, true).unwrap().next_offset, 6);
    assert_eq!(log.read(0, 2 * one + 100, 12, true).unwrap().next_offset, 6);
    assert_eq!(log.read(0, 100_000, 4, true).unwrap().next_offset, 6);
    assert_eq!(log.read(6, 100_000, 6, true).unwrap().bytes.len(), 0);
    assert_eq!(log.read(12, 100_000, 12, true).unwrap().bytes.len(), 0);
    assert!(matches!(log.read(13, 1, 12, true), Err(ReadError::OffsetOutOfRange { .. })));
    assert!(matches!(log.read(-1, 1, 12, true), Err(ReadError::OffsetOutOfRange { .. })));
}

#[test]
fn closed_log_opens_as_it_was_without_recovery() {
    let bench = Bench::default();
    let (log, _) = bench.open(true);
    for n in 0..40 {
        append(&log, 3, NOW_MS + n);
    }
    let before = batch_offsets(&log, 0);
    log.close().unwrap();
    assert!(matches!(log.read(0, 1, 1, true), Err(ReadError::Storage(StorageError::Closed))));
    let (log, recovery) = bench.open(true);
    assert_eq!(recovery.segments_recovered, 0);
    assert_eq!(batch_offsets(&log, 0), before);
    assert_eq!(append(&log, 1, NOW_MS).first_offset, 120);
}

#[test]
fn recovery_rebuilds_the_files_that_a_clean_close_writes() {
    let bench = Bench::default();
    let (log, _) = bench.open(true);
    for n in 0..40 {
        append(&log, 3, NOW_MS + (n * 37) % 90);
    }
    log.close().unwrap();
    let files = bench.files();
    for (name, _) in files.iter().filter(|(name, _)| !name.ends_with(".log")) {
        bench.disk.remove_file(&bench.dir.join(name)).unwrap();
    }
    let (log, recovery) = bench.open(false);
    assert_eq!(recovery.segments_recovered as usize, log.segments_count());
    assert_eq!(recovery.truncated_bytes, 0);
    log.close().unwrap();
    assert_eq!(bench.files(), files);
}

/// Name and content of the newest segment's file.
fn last_log(bench: &Bench) -> (String, Vec<u8>) {
    bench.files().into_iter().rfind(|(name, _)| name.ends_with(".log")).unwrap()
}

fn rewrite(bench: &Bench, name: &str, content: &[u8]) {
    let file = bench.disk.open(&bench.dir.join(name), OpenMode::Write).unwrap();
    file.set_len(0).unwrap();
    file.write_at(content, 0).unwrap();
}

fn filled(bench: &Bench) -> i64 {
    let (log, _) = bench.open(true);
    for n in 0..40 {
        append(&log, 3, NOW_MS + n);
    }
    log.close().unwrap();
    log_end(bench)
}

fn log_end(bench: &Bench) -> i64 {
    bench.open(true).0.log_end_offset()
}

#[test]
fn torn_tail_is_cut_at_the_last_valid_batch_and_reported() {
    for cut in [1, 40, 100, 200] {
        let bench = Bench::default();
        let end = filled(&bench);
        let (name, content) = last_log(&bench);
        rewrite(&bench, &name, &content[..content.len() - cut]);
        let (log, recovery) = bench.open(false);
        assert_eq!(log.log_end_offset(), end - 3);
        assert_eq!(recovery.truncated_at, Some(end - 3));
        assert!(recovery.truncated_bytes > 0 && recovery.damaged_at().is_none());
        assert_eq!(append(&log, 1, NOW_MS).first_offset, end - 3);
    }
}

#[test]
fn preallocated_zeros_are_cut_silently() {
    for clean in [true, false] {
        let bench = Bench::default();
        let end = filled(&bench);
        let (name, content) = last_log(&bench);
        rewrite(&bench, &name, &[&content[..], &[0; 5000]].concat());
        let (log, recovery) = bench.open(clean);
        assert_eq!((log.log_end_offset(), recovery.truncated_bytes), (end, 0));
        log.close().unwrap();
        if !clean {
            assert_eq!(last_log(&bench).1, content);
        }
    }
}

#[test]
fn log_with_valid_batches_after_a_bad_one_is_read_only_until_repaired() {
    let bench = Bench::default();
    let end = filled(&bench);
    let (log, _) = bench.open(true);
    let (base, _) = log.segments()[1];
    log.close().unwrap();
    let name = format!("{base:020}.log");
    let mut content = bench.file(&name);
    content[100] ^= 255;
    rewrite(&bench, &name, &content);
    let before = bench.files();
    let (log, recovery) = bench.open(false);
    assert_eq!((recovery.damaged_at(), log.log_end_offset()), (Some(base), base));
    assert_eq!(batch_offsets(&log, 0).len() as i64, base / 3);
    let refused = log.append_as_leader(&mut batch(1, 1, NOW_MS), LEADER);
    assert!(
        matches!(refused, Err(AppendError::Storage(StorageError::Damaged(damage))) if damage.offset() == base)
    );
    log.close().unwrap();
    let logs = |files: Vec<(String, Vec<u8>)>| -> Vec<_> {
        files.into_iter().filter(|(name, _)| name.ends_with(".log")).collect()
    };
    assert_eq!(logs(bench.files()), logs(before));
    let repaired = Log::repair(bench.options(false)).unwrap();
    assert_eq!(repaired.truncated_at, Some(base));
    assert!(base < end);
    let (log, recovery) = bench.open(false);
    assert_eq!((recovery.damaged_at(), log.log_end_offset()), (None, base));
    assert_eq!(append(&log, 1, NOW_MS).first_offset, base);
}

#[test]
fn truncation_cuts_whole_batches_and_their_derived_files() {
    for offset in [0, 1, 3, 50, 51, 52, 118, 119, 120, 200] {
        let bench = Bench::default();
        filled(&bench);
        let (log, _) = bench.open(true);
        log.truncate_to(offset).unwrap();
        let batches_left = offset.min(120) / 3;
        assert_eq!(log.log_end_offset(), 3 * batches_left);
        assert_eq!(batch_offsets(&log, 0).len() as i64, batches_left);
        let info = append(&log, 3, NOW_MS + 500);
        assert_eq!(info.first_offset, 3 * batches_left);
        log.close().unwrap();
        let files = bench.files();
        for (name, _) in files.iter().filter(|(name, _)| name.ends_with("index")) {
            bench.disk.remove_file(&bench.dir.join(name)).unwrap();
        }
        let (log, _) = bench.open(false);
        log.close().unwrap();
        assert_eq!(bench.files(), files, "after truncation to {offset}");
    }
}

#[test]
fn truncation_inside_a_batch_leaves_no_gap_for_recovery_to_find() {
    let bench = Bench::default();
    let (log, _) = bench.open(true);
    append(&log, 1, NOW_MS);
    append(&log, 2, NOW_MS);
    log.truncate_to(2).unwrap();
    log.roll().unwrap();
    assert_eq!(append(&log, 1, NOW_MS).first_offset, 1);
    let (log, recovery) = bench.open(false);
    assert_eq!((recovery.damaged_at(), log.log_end_offset()), (None, 2));
}

/// A log of three records, then a segment with base offset 7 and three more.
fn with_gap(bench: &Bench) {
    let (log, _) = bench.open(true);
    append(&log, 3, NOW_MS);
    log.roll().unwrap();
    let mut bytes = batch(3, 1, NOW_MS);
    let mut stamped = BatchMut::new(&mut bytes).unwrap();
    stamped.set_base_offset(7);
    stamped.set_partition_leader_epoch(LeaderEpoch::ZERO);
    log.append_as_follower(&bytes, LeaderEpoch::ZERO).unwrap();
    log.close().unwrap();
    for (name, _) in bench.files().iter().filter(|(name, _)| name.contains("0003.")) {
        let to = bench.dir.join(name.replace("0003.", "0007."));
        bench.disk.rename(&bench.dir.join(name), &to).unwrap();
    }
}

fn remove_indexes(bench: &Bench) {
    for (name, _) in bench.files().iter().filter(|(name, _)| name.ends_with("index")) {
        bench.disk.remove_file(&bench.dir.join(name)).unwrap();
    }
}

/// Apache Kafka only requires that offsets increase. Here synced records must exist, unless the log
/// was compacted.
#[test]
fn a_gap_is_damage_below_the_recovery_point_and_reported_above() {
    let bench = Bench::default();
    with_gap(&bench);
    let options = |recovery_point, cleaner_offset| {
        let checkpointed =
            Checkpointed { recovery_point, cleaner_offset, ..Checkpointed::default() };
        LogOptions { checkpointed, ..bench.options(false) }
    };
    remove_indexes(&bench);
    let (log, recovery) = Log::open(options(10, 0)).unwrap();
    assert_eq!(recovery.damage, Some(Damage::Gap { offset: 3, last_offset: 6 }));
    assert_eq!(batch_offsets(&log, 0), [(0, 2)]);
    let (_, recovery) = Log::open(options(10, 7)).unwrap();
    assert_eq!((recovery.damage, recovery.gaps_below), (None, None));
    for recovery_point in [3, 0] {
        remove_indexes(&bench);
        let (log, recovery) = Log::open(options(recovery_point, 0)).unwrap();
        assert_eq!((recovery.damaged_at(), recovery.truncated_at), (None, None));
        assert_eq!(recovery.gaps_below, Some(7));
        assert!(recovery.warnings[0].contains("no offsets 3 to 6"), "{:?}", recovery.warnings);
        assert_eq!(batch_offsets(&log, 0), [(0, 2), (7, 9)]);
        assert_eq!(log.read(4, 1, 10, true).unwrap().base_offset, 7);
        log.close().unwrap();
    }
    let (log, recovery) = bench.open(false);
    assert!(recovery.warnings[0].contains("no offsets 3 to 6"), "{:?}", recovery.warnings);
    assert_eq!(append(&log, 1, NOW_MS).first_offset, 10);
}

#[test]
fn damage_after_a_gap_is_damage() {
    let bench = Bench::default();
    with_gap(&bench);
    let (log, _) = bench.open(true);
    append(&log, 3, NOW_MS);
    log.close().unwrap();
    let (name, mut content) = last_log(&bench);
    content[70] ^= 255;
    rewrite(&bench, &name, &content);
    let (log, recovery) = bench.open(false);
    assert!(recovery.damaged_at().is_some() && log.is_read_only());
    assert_eq!(batch_offsets(&log, 0), [(0, 2)]);
}

/// A checkpointed gap allows missing records anywhere below it.
#[test]
fn gaps_of_a_damaged_log_are_not_checkpointed() {
    let bench = Bench::default();
    with_gap(&bench);
    let (log, _) = bench.open(true);
    append(&log, 3, NOW_MS);
    append(&log, 3, NOW_MS);
    log.close().unwrap();
    let (name, mut content) = last_log(&bench);
    let batch_size = content.len() / 3;
    content[batch_size + 70] ^= 255;
    rewrite(&bench, &name, &content);
    let (_, recovery) = bench.open(false);
    assert_eq!(recovery.damage, Some(Damage::Batch { offset: 10 }));
    assert_eq!(recovery.gaps_below, None);
}

#[test]
fn log_ends_before_a_gap_without_later_batches() {
    let bench = Bench::default();
    with_gap(&bench);
    let (name, _) = last_log(&bench);
    for behind in [&[][..], &[0; 5000], &[0, 1, 2, 3]] {
        rewrite(&bench, &name, behind);
        let (log, recovery) = bench.open(false);
        assert_eq!((recovery.damaged_at(), log.log_end_offset()), (None, 3));
        assert_eq!(recovery.truncated_at.is_some(), behind.len() == 4);
        log.roll().unwrap();
        drop(log);
        let from = bench.dir.join(format!("{:020}.log", 3));
        bench.disk.rename(&from, &bench.dir.join(&name)).unwrap();
    }
}

/// A power cut lost the first segment's records, but not the snapshot of their producers, nor the
/// records after them.
#[test]
fn retry_of_a_batch_lost_in_a_gap_is_not_a_duplicate() {
    let bench = Bench::default();
    let (log, _) = bench.open(true);
    let mut lost = batch_with(producer(0, false), 2, 50, NOW_MS);
    log.append_as_leader(&mut lost, LEADER).unwrap();
    log.roll().unwrap();
    append(&log, 3, NOW_MS);
    drop(log);
    rewrite(&bench, "00000000000000000000.log", &[]);
    for _ in 0..2 {
        let (log, recovery) = bench.open(false);
        assert_eq!((recovery.damaged_at(), log.log_end_offset()), (None, 5));
        assert_eq!(log.active_producers().len(), 0);
        drop(log);
        // Now the newest snapshot below the recovery point is used.
        let checkpointed = Checkpointed { recovery_point: 3, ..Checkpointed::default() };
        let options = LogOptions { checkpointed, ..bench.options(false) };
        assert_eq!(Log::open(options).unwrap().0.active_producers().len(), 0);
    }
    let (log, _) = bench.open(false);
    let mut again = batch_with(producer(0, false), 2, 50, NOW_MS);
    let info = log.append_as_leader(&mut again, LEADER).unwrap();
    assert_eq!((info.first_offset, info.duplicate), (5, false));
}

#[test]
fn truncation_inside_the_batch_that_holds_the_log_start_leaves_nothing() {
    let bench = Bench::default();
    let (log, _) = bench.open(true);
    append(&log, 5, NOW_MS);
    append(&log, 5, NOW_MS);
    log.delete_before(7).unwrap();
    log.truncate_to(8).unwrap();
    assert_eq!((log.log_start_offset(), log.log_end_offset(), log.size_bytes()), (7, 7, 0));
    assert_eq!(append(&log, 1, NOW_MS).first_offset, 7);
}

#[test]
fn retention_by_time_takes_old_segments_and_rolls_the_active_one() {
    let mut bench = Bench::default();
    bench.config.retention_ms = 1000;
    let (log, _) = bench.open(true);
    for n in 0..40 {
        append(&log, 3, NOW_MS + n * 100);
    }
    bench.clock.advance_ms(3000);
    assert!(log.enforce_retention(60).unwrap() > 0);
    assert!(log.log_start_offset() > 0 && log.log_start_offset() <= 60);
    bench.clock.advance_ms(3000);
    log.enforce_retention(120).unwrap();
    assert_eq!((log.log_start_offset(), log.log_end_offset(), log.size_bytes()), (120, 120, 0));
    assert!(bench.file_names().iter().any(|name| name.ends_with(".log.deleted")));
    bench.clock.advance_ms(60_000);
    log.delete_expired_files(NOW_MS + 66_000).unwrap();
    assert!(!bench.file_names().iter().any(|name| name.ends_with(".deleted")));
    assert_eq!(append(&log, 1, NOW_MS + 70_000).first_offset, 120);
}

#[test]
fn file_that_cannot_be_removed_does_not_block_others_and_is_removed_later() {
    let faulty = FaultyDisk::default();
    let bench = Bench { disk: Arc::new(faulty.clone()), ..Bench::default() };
    let end = filled(&bench);
    let (log, _) = bench.open(true);
    log.delete_before(end - 1).unwrap();
    assert!(log.enforce_retention(end).unwrap() > 2);
    let left = || bench.file_names().iter().filter(|name| name.ends_with(".deleted")).count();
    assert!(left() > 6);
    faulty.arm(Fault::Error(std::io::ErrorKind::PermissionDenied), Operations::All, 0);
    log.delete_expired_files(i64::MAX).unwrap_err();
    assert_eq!((left(), log.is_read_only()), (1, false));
    assert_eq!(log.delete_expired_files(i64::MAX).unwrap(), 0);
    assert_eq!(left(), 0);
}

/// Like a full disk or a lack of descriptors, it is not a fault of the files.
#[test]
fn memory_that_the_system_lacks_is_a_refusal_wherever_an_append_meets_it() {
    let batches = 12;
    let mut refused = 0;
    for skipped in 0.. {
        let faulty = FaultyDisk::default();
        let bench = Bench { disk: Arc::new(faulty.clone()), ..Bench::default() };
        let (log, _) = bench.open(true);
        faulty.arm(Fault::Error(std::io::ErrorKind::OutOfMemory), Operations::All, skipped);
        for n in 0..batches {
            let Err(error) = log.append_as_leader(&mut batch(3, 50, NOW_MS + n), LEADER) else {
                continue;
            };
            let AppendError::Storage(error) = error else { panic!("{error}") };
            assert!(matches!(error, StorageError::Exhausted { .. }) && error.is_refusal());
            assert_eq!((log.is_read_only(), log.log_end_offset()), (false, 3 * n));
            append(&log, 3, NOW_MS + n);
            refused += 1;
        }
        assert_eq!(log.log_end_offset(), 3 * batches);
        if faulty.is_armed() {
            break;
        }
        drop(log);
        let (log, recovery) = bench.open(false);
        assert_eq!((log.log_end_offset(), recovery.damage), (3 * batches, None));
    }
    assert!(refused > 0);
}

#[test]
fn retention_by_size_keeps_at_least_that_much() {
    let mut bench = Bench::default();
    bench.config.retention_bytes = 4000;
    let (log, _) = bench.open(true);
    for n in 0..40 {
        append(&log, 3, NOW_MS + n);
    }
    let before = log.size_bytes();
    log.enforce_retention(120).unwrap();
    assert!(log.size_bytes() >= 4000 && log.size_bytes() < 6000 && before > 6000);
}

#[test]
fn records_below_the_log_start_are_gone_for_readers_and_for_time_lookups() {
    let bench = Bench::default();
    filled(&bench);
    let (log, _) = bench.open(true);
    assert_eq!(log.delete_before(50).unwrap(), 50);
    assert!(matches!(log.read(49, 1, 120, true), Err(ReadError::OffsetOutOfRange { .. })));
    assert_eq!(log.read(50, 1, 120, true).unwrap().base_offset, 48);
    let found = log.offset_for_timestamp(NOW_MS, 120).unwrap().unwrap();
    assert_eq!(found.offset, 50);
    assert_eq!(log.delete_before(1000).unwrap(), 120);
}

#[test]
fn offset_for_a_timestamp_is_the_first_record_not_older() {
    let bench = Bench::default();
    let (log, _) = bench.open(true);
    let times: Vec<i64> = (0..40).map(|n| NOW_MS + (n * 37) % 90).collect();
    for time in &times {
        append(&log, 3, *time);
    }
    let records: Vec<i64> = times.iter().flat_map(|time| [*time, time + 1, time + 2]).collect();
    let check = |log: &Log| {
        for wanted in NOW_MS - 1..NOW_MS + 95 {
            let expected = records.iter().position(|time| *time >= wanted).map(|at| at as i64);
            let found = log.offset_for_timestamp(wanted, 120).unwrap();
            assert_eq!(found.map(|found| found.offset), expected);
        }
    };
    check(&log);
    let max = *records.iter().max().unwrap();
    let found = log.offset_of_max_timestamp().unwrap().unwrap();
    assert_eq!(found.timestamp, max);
    assert_eq!(found.offset, records.iter().position(|time| *time == max).unwrap() as i64);
    log.close().unwrap();
    check(&bench.open(true).0);
}

fn producer(sequence: i32, transactional: bool) -> BatchOptions {
    BatchOptions {
        producer_id: ProducerId::new(9),
        producer_epoch: ProducerEpoch::new(1),
        base_sequence: sequence,
        transactional,
        ..BatchOptions::default()
    }
}

#[test]
fn retried_batch_is_a_duplicate_also_after_a_restart() {
    for clean in [true, false] {
        let bench = Bench::default();
        let (log, _) = bench.open(true);
        for n in 0..20 {
            log.append_as_leader(&mut batch_with(producer(n * 2, false), 2, 50, NOW_MS), LEADER)
                .unwrap();
        }
        log.close().unwrap();
        let (log, _) = bench.open(clean);
        let again = log
            .append_as_leader(&mut batch_with(producer(38, false), 2, 50, NOW_MS), LEADER)
            .unwrap();
        assert!(again.duplicate);
        assert_eq!((again.first_offset, again.last_offset, again.log_end_offset), (38, 39, 40));
        let gap = log.append_as_leader(&mut batch_with(producer(50, false), 1, 5, NOW_MS), LEADER);
        assert!(matches!(gap, Err(AppendError::Producer(_))));
        assert_eq!(log.log_end_offset(), 40);
    }
}

#[test]
fn aborted_transactions_are_indexed_and_bound_the_last_stable_offset() {
    let bench = Bench::default();
    let (log, _) = bench.open(true);
    append(&log, 2, NOW_MS);
    log.append_as_leader(&mut batch_with(producer(0, true), 2, 50, NOW_MS), LEADER).unwrap();
    assert_eq!(log.last_stable_offset(4), 2);
    let marker = EndTransactionMarker { committed: false, coordinator_epoch: 0 };
    let info =
        end_transaction(&log, ProducerId::new(9), ProducerEpoch::new(1), marker, LeaderEpoch::ZERO)
            .unwrap();
    assert_eq!(info.first_offset, 4);
    assert_eq!((log.last_stable_offset(4), log.last_stable_offset(5)), (2, 5));
    let aborted_in = |log: &Log, from, upto| log.fetch_committed(from, 1000, upto, true).unwrap().1;
    let aborted = aborted_in(&log, 0, 5);
    assert_eq!(aborted.len(), 1);
    assert_eq!((aborted[0].first_offset, aborted[0].last_offset), (2, 4));
    assert_eq!(aborted_in(&log, 0, 2), []);
    assert_eq!(aborted_in(&log, 5, 9), []);
    log.close().unwrap();
    let files = bench.files();
    bench.disk.remove_file(&bench.dir.join("00000000000000000000.txnindex")).unwrap();
    let (log, _) = bench.open(false);
    assert_eq!(aborted_in(&log, 0, 5), aborted);
    log.close().unwrap();
    assert_eq!(bench.files(), files);
}

#[test]
fn an_unsynced_transaction_index_may_lack_entries_that_its_checkpoint_counts() {
    for (recovery_point, is_told) in [(0, false), (9, true)] {
        let mut bench = Bench::default();
        let (log, _) = bench.open(true);
        let options = BatchOptions {
            producer_id: ProducerId::new(9),
            producer_epoch: ProducerEpoch::new(0),
            base_sequence: 0,
            transactional: true,
            ..BatchOptions::default()
        };
        log.append_as_leader(&mut batch_with(options, 2, 9, NOW_MS), LEADER).unwrap();
        let marker = EndTransactionMarker { committed: false, coordinator_epoch: 0 };
        end_transaction(
            &log,
            options.producer_id,
            options.producer_epoch,
            marker,
            LeaderEpoch::ZERO,
        )
        .unwrap();
        log.roll().unwrap();
        append(&log, 9, NOW_MS);
        let aborted = log.fetch_committed(0, 1000, 9, true).unwrap().1;
        assert_eq!(aborted.len(), 1);
        bench.disk = bench.copied_disk();
        bench.disk.remove_file(&bench.dir.join("00000000000000000000.txnindex")).unwrap();
        let mut options = bench.options(false);
        options.checkpointed.recovery_point = recovery_point;
        let (log, recovery) = Log::open(options).unwrap();
        let warns = recovery.warnings.iter().any(|warning| warning.contains("0 of 1 entries"));
        assert_eq!((warns, recovery.damage), (is_told, None));
        assert_eq!(log.fetch_committed(0, 1000, 9, true).unwrap().1, aborted);
    }
}

#[test]
fn follower_appends_batches_unchanged_and_only_at_its_log_end() {
    let (leader, follower) = (Bench::default(), Bench::default());
    let epoch = LeaderEpoch::new(5);
    let (log, _) = leader.open(true);
    for n in 0..10 {
        let options = AppendOptions::new(epoch, AppendOrigin::Client);
        log.append_as_leader(&mut batch(3, 20, NOW_MS + n), options).unwrap();
    }
    let data = log.read(0, 500, 30, true).unwrap();
    let rest = log.read(data.next_offset, 100_000, 30, true).unwrap();
    let (copy, _) = follower.open(true);
    assert_eq!(
        copy.append_as_follower(&data.bytes, epoch).unwrap().log_end_offset,
        data.next_offset
    );
    let again = copy.append_as_follower(&data.bytes, epoch);
    assert!(matches!(again, Err(AppendError::UnexpectedOffset { .. })));
    assert_eq!(copy.append_as_follower(&rest.bytes, LeaderEpoch::new(4)).unwrap().records_count, 0);
    assert_eq!(copy.epoch_entries(), log.epoch_entries());
    assert_eq!(copy.end_offset_for_epoch(epoch), Some((epoch, data.next_offset)));
}

#[test]
fn read_only_log_changes_nothing_on_disk() {
    let bench = Bench::default();
    let end = filled(&bench);
    let (name, content) = last_log(&bench);
    rewrite(&bench, &name, &content[..content.len() - 9]);
    bench.disk.remove_file(&bench.dir.join("00000000000000000000.index")).unwrap();
    let before = bench.files();
    let options = pykafka_log::LogOptions { read_only: true, ..bench.options(false) };
    let (log, recovery) = Log::open(options).unwrap();
    assert_eq!((log.log_end_offset(), recovery.truncated_at), (end - 3, Some(end - 3)));
    assert_eq!(batch_offsets(&log, 0).len(), 39);
    let refused = log.append_as_leader(&mut batch(1, 1, NOW_MS), LEADER);
    assert!(matches!(refused, Err(AppendError::Storage(StorageError::ReadOnly))));
    log.close().unwrap();
    assert_eq!(bench.files(), before);
}

#[test]
fn idle_log_releases_its_files_and_can_be_used_again() {
    let bench = Bench::default();
    let (log, _) = bench.open(true);
    for n in 0..10 {
        append(&log, 3, NOW_MS + n);
        log.release_idle_files().unwrap();
        assert_eq!(batch_offsets(&log, 0).len() as i64, n + 1);
    }
    log.close().unwrap();
    assert_eq!(log_end(&bench), 30);
}

/// The size of the last segment's file, and of its batches.
fn last_segment(bench: &Bench, log: &Log) -> (u64, u64) {
    let mut entries = bench.disk.list(&bench.dir).unwrap().into_iter();
    let is_log = |name: &std::ffi::OsString| name.to_str().unwrap().ends_with(".log");
    let file = entries.rfind(|entry| is_log(&entry.name)).unwrap();
    let name = file.name.to_str().unwrap();
    let base_offset = name.strip_suffix(".log").unwrap().parse().unwrap();
    let data = log.read(base_offset, usize::MAX, log.log_end_offset(), true).unwrap();
    (file.size, data.bytes.len() as u64)
}

/// Bytes of the last segment's file after its batches.
fn reserved_bytes(bench: &Bench, log: &Log) -> u64 {
    let (size, written) = last_segment(bench, log);
    size - written
}

/// Appends until a second segment is started.
fn roll_when_full(log: &Log) {
    while log.segments_count() < 2 {
        append(log, 1, NOW_MS);
    }
}

#[test]
fn a_segment_that_was_filled_fast_has_the_next_one_reserved_as_a_whole() {
    let bench = Bench::default();
    let (log, _) = bench.open(true);
    append(&log, 1, NOW_MS);
    bench.clock.advance_ms(9_999);
    roll_when_full(&log);
    assert_eq!(last_segment(&bench, &log).0, 2000);
    log.close().unwrap();
    assert_eq!(reserved_bytes(&bench, &bench.open(true).0), 0, "given back");
}

#[test]
fn no_segment_is_reserved_after_a_slow_unfilled_or_found_segment() {
    let slow = Bench::default();
    let (log, _) = slow.open(true);
    append(&log, 1, NOW_MS);
    slow.clock.advance_ms(10_000);
    roll_when_full(&log);
    assert_eq!(reserved_bytes(&slow, &log), 0);

    let rolled = Bench::default();
    let (log, _) = rolled.open(true);
    while log.size_bytes() < 1500 {
        append(&log, 1, NOW_MS);
    }
    log.roll().unwrap();
    assert_eq!(last_segment(&rolled, &log), (0, 0));

    let found = Bench::default();
    let (log, _) = found.open(true);
    append(&log, 1, NOW_MS);
    log.close().unwrap();
    let (log, _) = found.open(true);
    roll_when_full(&log);
    assert_eq!(reserved_bytes(&found, &log), 0);
}

#[test]
fn a_segment_is_reserved_as_a_whole_only_where_eight_of_them_fit() {
    const SEGMENT_PAGES: u64 = 4;
    let segment_bytes = SEGMENT_PAGES as i32 * 4096;
    for (pages, reserved) in [(8 * SEGMENT_PAGES, false), (16 * SEGMENT_PAGES, true)] {
        let disk = Arc::new(pykafka_log::MemoryDisk::new(pages * 4096));
        let config = LogConfig { segment_bytes, ..LogConfig::default() };
        let bench = Bench { disk, config, ..Bench::default() };
        let (log, _) = bench.open(true);
        roll_when_full(&log);
        let (size, written) = last_segment(&bench, &log);
        assert_eq!(size == segment_bytes as u64, reserved, "{pages} pages");
        assert_eq!(size == written, !reserved, "{pages} pages");
    }
}

const MB: usize = 1 << 20;

/// A log whose last segment, of 80 MiB, was just reserved completely.
fn reserved_log(bench: &mut Bench) -> Log {
    bench.config = LogConfig {
        segment_bytes: 80 * MB as i32,
        max_message_bytes: 2 * MB as i32,
        ..LogConfig::default()
    };
    let (log, _) = bench.open(true);
    while log.segments_count() < 2 {
        log.append_as_leader(&mut batch(1, MB, NOW_MS), LEADER).unwrap();
    }
    append(&log, 1, NOW_MS);
    assert_eq!(last_segment(bench, &log).0, 80 * MB as u64);
    log
}

fn append_at_once(log: &Log) -> bool {
    let mut bytes = batch(1, 50, NOW_MS);
    let mut validated = log.validate(&mut bytes, AppendOrigin::Client).unwrap();
    log.try_append_validated(&mut bytes, &mut validated, LEADER).is_some()
}

/// A partition that was filled once and then gets a record occasionally would keep an unused
/// gigabyte.
#[test]
fn surplus_space_is_released_by_an_append() {
    let mut bench = Bench::default();
    let log = reserved_log(&mut bench);
    bench.clock.advance_ms(9_999);
    assert!(append_at_once(&log) && !log.has_space_to_give_back());
    bench.clock.advance_ms(1);
    assert!(!append_at_once(&log), "it would wait for the disk");
    assert_eq!(last_segment(&bench, &log).0, 80 * MB as u64);
    let before = last_segment(&bench, &log).1;
    append(&log, 1, NOW_MS);
    assert_eq!(last_segment(&bench, &log).0, before + 32 * MB as u64);
    assert!(append_at_once(&log), "once");
}

/// A partition that is only read is not idle and gets no append.
#[test]
fn surplus_space_is_released_without_an_append() {
    let mut bench = Bench::default();
    let log = reserved_log(&mut bench);
    log.give_back_space().unwrap();
    assert_eq!(last_segment(&bench, &log).0, 80 * MB as u64, "it may be needed");
    bench.clock.advance_ms(10_000);
    assert!(log.has_space_to_give_back());
    log.give_back_space().unwrap();
    let (size, written) = last_segment(&bench, &log);
    assert_eq!(size, written + 32 * MB as u64);
    assert!(!log.has_space_to_give_back());
    log.close().unwrap();
    log.give_back_space().unwrap();
}

#[test]
fn log_whose_file_could_not_be_shortened_refuses_writes() {
    let disk = FaultyDisk::default();
    let mut bench = Bench { disk: Arc::new(disk.clone()), ..Bench::default() };
    let log = reserved_log(&mut bench);
    bench.clock.advance_ms(10_000);
    disk.arm(Fault::Error(std::io::ErrorKind::Other), Operations::All, 0);
    assert!(log.give_back_space().is_err());
    let refused = log.append_as_leader(&mut batch(1, 1, NOW_MS), LEADER);
    assert!(matches!(refused, Err(AppendError::Storage(StorageError::Failed { .. }))));
}

/// An idle log needs space for its files, and on a full disk the only space may be the one that its
/// segment has reserved.
#[test]
fn idle_log_on_a_full_disk_releases_its_reserved_space() {
    const PAGE: u64 = 4096;
    for has_aborted in [false, true] {
        let disk = FaultyDisk::default();
        let mut bench = Bench { disk: Arc::new(disk.clone()), ..Bench::default() };
        bench.config = LogConfig { segment_bytes: 100 * PAGE as i32, ..LogConfig::default() };
        let (log, _) = bench.open(true);
        roll_when_full(&log);
        if has_aborted {
            let (producer_id, producer_epoch) = (ProducerId::new(7), ProducerEpoch::new(0));
            let options = BatchOptions {
                producer_id,
                producer_epoch,
                base_sequence: 0,
                transactional: true,
                ..BatchOptions::default()
            };
            log.append_as_leader(&mut batch_with(options, 1, 50, NOW_MS), LEADER).unwrap();
            let aborted = EndTransactionMarker { committed: false, coordinator_epoch: 0 };
            end_transaction(&log, producer_id, producer_epoch, aborted, LeaderEpoch::ZERO).unwrap();
        }
        assert_eq!(last_segment(&bench, &log).0, 100 * PAGE);
        disk.set_space(disk.used_bytes());
        let _ = log.release_idle_files();
        assert_eq!(reserved_bytes(&bench, &log), 0);
    }
}

#[test]
fn sync_raises_the_recovery_point_to_the_log_end_at_its_start() {
    let mut bench = Bench::default();
    bench.config = LogConfig { flush_messages: 4, flush_ms: 100, ..bench.config };
    let (log, _) = bench.open(true);
    assert_eq!((log.unsynced_end(), log.sync_due(NOW_MS)), (None, false));
    append(&log, 3, NOW_MS);
    assert_eq!((log.unsynced_end(), log.sync_due(NOW_MS + 99)), (Some(3), false));
    assert!(log.sync_due(NOW_MS + 100));
    append(&log, 1, NOW_MS);
    assert!(log.sync_due(NOW_MS));
    assert!(log.sync_appended(4).unwrap());
    append(&log, 1, NOW_MS);
    assert!(!log.sync_appended(5).unwrap());
    assert_eq!((log.recovery_point(), log.unsynced_end()), (4, Some(5)));
}

#[test]
fn failed_sync_is_final() {
    let disk = FaultyDisk::default();
    let bench = Bench { disk: Arc::new(disk.clone()), ..Bench::default() };
    let (log, _) = bench.open(true);
    append(&log, 3, NOW_MS);
    disk.arm(Fault::Error(std::io::ErrorKind::Other), Operations::Syncs, 0);
    assert!(log.flush().is_err());
    assert_eq!(log.recovery_point(), 0);
    let refused = log.append_as_leader(&mut batch(1, 1, NOW_MS), LEADER);
    assert!(matches!(refused, Err(AppendError::Storage(StorageError::Failed { .. }))));
    assert_eq!(batch_offsets(&log, 0), [(0, 2)]);
}

#[test]
fn segment_rolls_by_time_of_its_records() {
    let mut bench = Bench::default();
    bench.config.segment_ms = 1000;
    let (log, _) = bench.open(true);
    append(&log, 1, NOW_MS);
    append(&log, 1, NOW_MS + 1000);
    assert_eq!(log.segments_count(), 1);
    append(&log, 1, NOW_MS + 1001);
    assert_eq!(log.segments_count(), 2);
}

#[test]
fn segment_rolls_when_an_index_is_full() {
    let mut bench = Bench::default();
    bench.config = LogConfig {
        segment_bytes: 1 << 20,
        segment_index_bytes: 48,
        index_interval_bytes: 0,
        ..bench.config
    };
    let (log, _) = bench.open(true);
    for n in 0..20 {
        append(&log, 1, NOW_MS + n);
    }
    assert!(log.segments_count() > 3);
    log.close().unwrap();
    for (name, content) in bench.files().iter().filter(|(name, _)| name.ends_with("index")) {
        assert!(content.len() <= 48, "{name} has {} bytes", content.len());
    }
}

/// The process was killed after the segments of an emptied log were deleted, and before its epochs
/// were written.
#[test]
fn no_epoch_ends_after_the_log_end_if_emptying_the_log_was_interrupted() {
    let bench = Bench::default();
    let (log, _) = bench.open(true);
    for (epoch, offset) in [(0, 0), (2, 3), (5, 6)] {
        let epoch = LeaderEpoch::new(epoch);
        log.assign_epoch(epoch, offset).unwrap();
        log.append_as_leader(
            &mut batch(3, 50, NOW_MS),
            AppendOptions { leader_epoch: epoch, ..LEADER },
        )
        .unwrap();
    }
    let epochs = bench.file("leader-epoch-checkpoint");
    log.truncate_fully_and_start_at(1).unwrap();
    drop(log);
    let file = bench.dir.join("leader-epoch-checkpoint");
    bench.disk.write_atomically(&file, &epochs).unwrap();
    let checkpointed = Checkpointed { log_start_offset: Some(1), ..Checkpointed::default() };
    let (log, _) = Log::open(LogOptions { checkpointed, ..bench.options(false) }).unwrap();
    assert_eq!(log.log_end_offset(), 1);
    for epoch in 0..=5 {
        let end = log.end_offset_for_epoch(LeaderEpoch::new(epoch));
        assert!(end.is_none_or(|(_, end)| end <= 1), "epoch {epoch}");
    }
}

#[test]
fn no_segment_above_the_recorded_log_start_is_removed() {
    let config = LogConfig { retention_bytes: 3000, segment_bytes: 500, ..LogConfig::default() };
    let bench = Bench { config, ..Bench::default() };
    let (log, _) = bench.open(true);
    for _ in 0..60 {
        append(&log, 1, NOW_MS);
    }
    let expired = log.expire_segments(60).unwrap().unwrap();
    let recorded = log.log_start_offset();
    log.delete_before(59).unwrap();
    assert!(log.remove_expired(expired).unwrap() > 0);
    let first = log.segments()[0].0;
    assert!(0 < first && first <= recorded, "{first} is above {recorded}");
}

/// An earlier batch was rejected and will be retried: later ones must follow it, even if no batch
/// of the producer is cached, or the retried batch is in the log.
#[test]
fn batch_after_a_rejected_one_is_early_and_not_out_of_order() {
    let bench = Bench::default();
    let (log, _) = bench.open(true);
    let send = |base_sequence, refused_sequence| {
        let batch_options = BatchOptions {
            producer_id: ProducerId::new(1),
            producer_epoch: ProducerEpoch::new(0),
            base_sequence,
            ..BatchOptions::default()
        };
        let options = AppendOptions { refused_sequence, ..LEADER };
        log.append_as_leader(&mut batch_with(batch_options, 1, 10, NOW_MS), options)
    };
    let is_early = |result| matches!(result, Err(AppendError::BehindRefused));
    assert!(is_early(send(1, Some(0))));
    send(0, Some(0)).unwrap();
    send(1, Some(0)).unwrap_err();
    send(1, Some(1)).unwrap();
    assert!(is_early(send(3, Some(2))));
    assert!(send(1, Some(2)).unwrap().duplicate);
    assert!(matches!(send(3, Some(3)), Err(AppendError::Producer(_))));
    assert!(matches!(send(3, None), Err(AppendError::Producer(_))));
}

const EPOCHS: &str = "leader-epoch-checkpoint";
const EPOCHS_OF_SIX: &str = "0\n3\n0 0\n2 6\n5 12\n";

/// A closed log of six batches with three records each, two in each of the epochs 0, 2 and 5.
fn with_epochs() -> Bench {
    let bench = Bench::default();
    let (log, _) = bench.open(true);
    for epoch in [0, 2, 5].map(LeaderEpoch::new) {
        let leader = AppendOptions { leader_epoch: epoch, ..LEADER };
        log.append_as_leader(&mut batch(3, 50, NOW_MS), leader).unwrap();
        log.append_as_leader(&mut batch(3, 500, NOW_MS), leader).unwrap();
    }
    log.close().unwrap();
    assert_eq!(bench.file(EPOCHS), EPOCHS_OF_SIX.as_bytes());
    bench
}

/// Opens a log with this content of the file. Returns the content after the open, and the verdict.
fn epochs_after(bench: &Bench, file: &str, log_start_offset: Option<i64>) -> (String, Recovery) {
    bench.disk.write_atomically(&bench.dir.join(EPOCHS), file.as_bytes()).unwrap();
    let checkpointed = Checkpointed { log_start_offset, ..Checkpointed::default() };
    let (log, recovery) = Log::open(LogOptions { checkpointed, ..bench.options(true) }).unwrap();
    log.close().unwrap();
    (String::from_utf8(bench.file(EPOCHS)).unwrap(), recovery)
}

/// Every open compares the file with the batches, also after a clean stop.
#[test]
fn damaged_leader_epochs_are_rebuilt_from_the_batches() {
    let bench = with_epochs();
    assert_eq!(epochs_after(&bench, EPOCHS_OF_SIX, Some(0)).1, Recovery::default());
    for damaged in [
        "0\n0\n",
        "0\n2\n0 0\n2 6\n",
        "0\n2\n0 0\n5 12\n",
        "0\n2\n2 6\n5 12\n",
        "0\n3\n0 0\n2 5\n5 12\n",
        "0\n3\n0 0\n2 9\n5 12\n",
        "0\n3\n0 0\n2 6\n5 1000\n",
        "0\n3\n0 0\n2 6\n9 12\n",
        "0\n4\n0 0\n2 6\n5 12\n9 15\n",
        "0\n3\n0 0\n5 12\n2 6\n",
    ] {
        let (after, recovery) = epochs_after(&bench, damaged, Some(0));
        assert_eq!(after, EPOCHS_OF_SIX, "{damaged:?}");
        assert_eq!(recovery.segments_recovered, 0, "{damaged:?}");
        assert!(recovery.warnings[0].contains(EPOCHS), "{damaged:?}: {recovery:?}");
    }
    for damaged in ["", "\u{0}\u{0}\u{0}", "0\n3\n0 0\n2 6\n5 "] {
        let (after, recovery) = epochs_after(&bench, damaged, Some(0));
        assert_eq!(after, EPOCHS_OF_SIX, "{damaged:?}");
        assert!(recovery.warnings[0].contains(EPOCHS), "{damaged:?}: {recovery:?}");
    }
}

/// A metadata log that was trimmed inside a segment has no checkpointed log start offset.
#[test]
fn epochs_that_begin_at_a_log_start_without_checkpoint_are_believed() {
    let bench = with_epochs();
    for trimmed in ["0\n3\n0 4\n2 6\n5 12\n", "0\n2\n2 8\n5 12\n", "0\n1\n5 14\n", "0\n0\n"] {
        let (after, recovery) = epochs_after(&bench, trimmed, None);
        assert_eq!((after.as_str(), recovery), (trimmed, Recovery::default()));
    }
    let (after, _) = epochs_after(&bench, "0\n2\n2 8\n9 12\n", None);
    assert_eq!(after, "0\n2\n2 8\n5 12\n");
}

#[test]
fn epochs_trimmed_before_the_checkpoint_of_the_log_start_are_restored() {
    let bench = with_epochs();
    for log_start_offset in [0, 4, 7] {
        let (after, recovery) = epochs_after(&bench, "0\n1\n5 12\n", Some(log_start_offset));
        let covering = if log_start_offset < 6 { "3\n0" } else { "2\n2" };
        let begins = format!("0\n{covering} {log_start_offset}\n");
        assert!(after.starts_with(&begins) && after.ends_with("5 12\n"), "{after:?}");
        assert_eq!((recovery.segments_recovered, recovery.warnings.len()), (0, 1));
    }
}

/// Overwrites the epoch in the header of a batch, which no CRC covers.
fn set_epoch(bench: &Bench, number: usize, epoch: i32) {
    let logs = bench.files().into_iter().filter(|(name, _)| name.ends_with(".log"));
    let positions = logs.flat_map(|(name, bytes)| {
        let sizes = common::all(&bytes).iter().map(|one| one.bytes().len()).collect::<Vec<_>>();
        (0..sizes.len()).map(move |batch| (name.clone(), sizes[..batch].iter().sum::<usize>()))
    });
    let (name, position) = positions.collect::<Vec<_>>().swap_remove(number);
    let file = bench.disk.open(&bench.dir.join(name), OpenMode::Write).unwrap();
    file.write_at(&epoch.to_be_bytes(), position as u64 + 12).unwrap();
}

/// Epochs decrease when a topic is created again, and batches of old brokers have none.
#[test]
fn epochs_of_a_log_whose_batches_fall_or_have_none_are_believed() {
    for epoch in [7, -1, -3] {
        let bench = with_epochs();
        set_epoch(&bench, 0, epoch);
        for stored in [EPOCHS_OF_SIX, "0\n2\n2 6\n5 12\n"] {
            let (after, recovery) = epochs_after(&bench, stored, Some(0));
            assert_eq!((after.as_str(), recovery), (stored, Recovery::default()), "{epoch}");
        }
    }
}

/// An epoch is stored before its first append, so either the file or the batch is damaged.
#[test]
fn epoch_of_a_single_batch_does_not_change_a_file_without_it() {
    for (batch, epoch) in [(5, 7), (5, 6), (3, 4), (2, 1), (1, 1)] {
        let bench = with_epochs();
        set_epoch(&bench, batch, epoch);
        let (after, recovery) = epochs_after(&bench, EPOCHS_OF_SIX, Some(0));
        assert_eq!((after.as_str(), recovery), (EPOCHS_OF_SIX, Recovery::default()), "{epoch}");
    }
}

/// A file that another batch contradicts is not more reliable than the batch.
#[test]
fn epoch_of_a_single_batch_is_added_to_a_file_that_is_contradicted_elsewhere() {
    let bench = with_epochs();
    set_epoch(&bench, 5, 7);
    let (after, recovery) = epochs_after(&bench, "0\n2\n0 0\n2 9\n", Some(0));
    assert_eq!(after, "0\n4\n0 0\n2 6\n5 12\n7 15\n");
    assert_eq!(recovery.warnings.len(), 1, "{recovery:?}");
}

/// They belong to epochs whose records were compacted, or that have no records yet.
#[test]
fn epochs_that_no_batch_contradicts_are_kept() {
    let bench = with_epochs();
    let (after, _) = epochs_after(&bench, "0\n3\n0 0\n2 6\n6 18\n", Some(0));
    assert_eq!(after, "0\n4\n0 0\n2 6\n5 12\n6 18\n");
    let compacted = format!("{:020}.", 6);
    for name in bench.file_names().iter().filter(|name| name.starts_with(&compacted)) {
        bench.disk.remove_file(&bench.dir.join(name)).unwrap();
    }
    let checkpointed = Checkpointed { cleaner_offset: 12, ..Checkpointed::default() };
    let stored = "0\n3\n0 0\n2 7\n6 12\n";
    bench.disk.write_atomically(&bench.dir.join(EPOCHS), stored.as_bytes()).unwrap();
    let (log, _) = Log::open(LogOptions { checkpointed, ..bench.options(true) }).unwrap();
    log.close().unwrap();
    assert_eq!(bench.file(EPOCHS), "0\n3\n0 0\n2 7\n5 12\n".as_bytes());
}

/// If a voter's own epochs changed, it would compare its log with others by a history that it never
/// had.
#[test]
fn epochs_of_the_metadata_log_are_not_corrected() {
    let bench = Bench { dir: "/data/__cluster_metadata-0".into(), ..with_epochs() };
    let moved = bench.disk.rename(std::path::Path::new("/data/topic-0"), &bench.dir);
    moved.unwrap();
    for stored in ["0\n0\n", "0\n2\n0 0\n2 6\n", "0\n2\n2 8\n9 12\n"] {
        let (after, recovery) = epochs_after(&bench, stored, None);
        assert_eq!((after.as_str(), recovery), (stored, Recovery::default()));
    }
}

fn write_epochs(log: &Log, epoch_of: fn(i32) -> i32, batches: i32) {
    for leader_epoch in (0..batches).map(|number| LeaderEpoch::new(epoch_of(number))) {
        let leader = AppendOptions { leader_epoch, ..LEADER };
        log.append_as_leader(&mut batch(1, 50, NOW_MS), leader).unwrap();
    }
}

/// As after a kill: look-ups without an index read the active segment once, not once for each
/// epoch.
#[test]
fn epochs_without_an_index_are_looked_up_in_one_walk() {
    let bytes_read = |epoch_of: fn(i32) -> i32| {
        let disk = WatchedDisk::default();
        let config = LogConfig { segment_bytes: 1 << 30, ..LogConfig::default() };
        let bench = Bench { disk: Arc::new(disk.clone()), config, ..Bench::default() };
        let (log, _) = bench.open(true);
        write_epochs(&log, epoch_of, 2000);
        log.close().unwrap();
        bench.disk.remove_file(&bench.dir.join(format!("{:020}.index", 0))).unwrap();
        let before = disk.hook().bytes_read();
        assert_eq!(bench.open(false).0.log_end_offset(), 2000);
        disk.hook().bytes_read() - before
    };
    let (one, many) = (bytes_read(|_| 0), bytes_read(|number| number));
    assert!(many < 2 * one, "{one}, then {many}");
}

#[test]
fn few_of_many_epochs_are_compared_with_the_batches() {
    let bytes_read = |epoch_of: fn(i32) -> i32, batches: i32| {
        let disk = WatchedDisk::default();
        let bench = Bench { disk: Arc::new(disk.clone()), ..Bench::default() };
        let (log, _) = bench.open(true);
        write_epochs(&log, epoch_of, batches);
        log.close().unwrap();
        let before = disk.hook().bytes_read();
        assert_eq!(bench.open(true).1, Recovery::default());
        disk.hook().bytes_read() - before
    };
    let of_epochs = |batches| bytes_read(|number| number, batches) - bytes_read(|_| 0, batches);
    let (few, many) = (of_epochs(100), of_epochs(800));
    assert!(many < 2 * few, "{few}, then {many}");
}
