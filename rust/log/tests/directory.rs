//! A data directory through several starts and stops.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{LEADER, NOW_MS, append, batch_with};
use pykafka_log::checkpoint::{self, PartitionIdentity};
use pykafka_log::disk::{Fault, FaultyDisk, Operations};
use pykafka_log::{
    CompactionOptions, Damage, DirectoryOptions, Disk, Log, LogConfig, LogDirectory, ManualClock,
    MemoryDisk, OpenError,
};
use pykafka_record::{BatchOptions, ProducerEpoch, ProducerId};

const ID: [u8; 16] = [7; 16];

fn try_open(disk: &Arc<dyn Disk>) -> Result<LogDirectory, OpenError> {
    let options = DirectoryOptions {
        dir: Path::new("/data"),
        disk: disk.clone(),
        lock: None,
        producer_id_expiration_ms: 86_400_000,
        random_seed: 1,
        buffers: Arc::default(),
    };
    LogDirectory::open(options, Arc::new(ManualClock::new(NOW_MS)))
}

fn open(disk: &Arc<dyn Disk>) -> LogDirectory {
    try_open(disk).unwrap()
}

fn open_log(directory: &LogDirectory, topic: &str) -> Arc<Log> {
    let config = LogConfig { segment_bytes: 1000, ..LogConfig::default() };
    directory.open_log(topic, 0, ID, Arc::new(config)).unwrap().0
}

fn memory() -> Arc<dyn Disk> {
    Arc::new(MemoryDisk::default())
}

/// A log of a topic with so many records that are synced, in a new directory.
fn synced(topic: &str, records: usize) -> (Arc<dyn Disk>, LogDirectory, Arc<Log>) {
    let disk = memory();
    let directory = open(&disk);
    let log = open_log(&directory, topic);
    append(&log, records, NOW_MS);
    log.flush().unwrap();
    (disk, directory, log)
}

#[test]
fn clean_stop_leaves_a_marker_that_the_next_start_takes() {
    let disk = memory();
    let directory = open(&disk);
    assert!(!directory.was_clean());
    append(&open_log(&directory, "t"), 3, NOW_MS);
    directory.set_broker_epoch(5);
    directory.close(true).unwrap();
    let marker = Path::new("/data/.kafka_cleanshutdown");
    assert_eq!(disk.read(marker).unwrap(), br#"{"version":0,"brokerEpoch":5}"#);
    assert!(open(&disk).was_clean());
    assert!(!disk.exists(marker));
    assert!(!open(&disk).was_clean());
}

#[test]
fn checkpoints_contain_recovery_points_log_starts_and_high_watermarks() {
    let disk = memory();
    let directory = open(&disk);
    let (log, _empty) = (open_log(&directory, "t"), open_log(&directory, "empty"));
    for _ in 0..10 {
        append(&log, 3, NOW_MS);
    }
    log.flush().unwrap();
    append(&log, 1, NOW_MS);
    log.delete_before(7).unwrap();
    directory.checkpoint(&[("t".to_owned(), 0, 29)]).unwrap();
    let read = |name: &str| disk.read(&Path::new("/data").join(name)).unwrap();
    assert_eq!(read("recovery-point-offset-checkpoint"), b"0\n1\nt 0 30\n");
    assert_eq!(read("log-start-offset-checkpoint"), b"0\n1\nt 0 7\n");
    assert_eq!(read("replication-offset-checkpoint"), b"0\n1\nt 0 29\n");
    drop((directory, log));
    let directory = open(&disk);
    assert_eq!(directory.high_watermark("t", 0), Some(29));
    let log = open_log(&directory, "t");
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (7, 31));
}

#[test]
fn no_marker_while_a_log_was_not_recovered() {
    let disk = memory();
    let directory = open(&disk);
    append(&open_log(&directory, "t"), 3, NOW_MS);
    drop(directory);
    let directory = open(&disk);
    directory.close(true).unwrap();
    assert!(!open(&disk).was_clean());
}

#[test]
fn a_copy_of_another_partition_is_refused_and_kept() {
    let disk = memory();
    let directory = open(&disk);
    append(&open_log(&directory, "t"), 3, NOW_MS);
    directory.close(true).unwrap();
    let (source, copy) = (Path::new("/data/t-0"), Path::new("/data/t-1"));
    disk.create_dir_all(copy).unwrap();
    for entry in disk.list(source).unwrap() {
        let bytes = disk.read(&source.join(&entry.name)).unwrap();
        disk.write_atomically(&copy.join(&entry.name), &bytes).unwrap();
    }
    let directory = open(&disk);
    let opened = directory.open_log("t", 1, ID, Arc::default());
    assert!(matches!(opened, Err(OpenError::OtherPartition { found: 0, .. })), "{opened:?}");
    let inspected = directory.inspect("t", 1, ID, Arc::default());
    assert!(matches!(inspected, Err(OpenError::OtherPartition { .. })), "{inspected:?}");
    assert_eq!(open_log(&directory, "t").log_end_offset(), 3);
    // As Kafka writes it, without the partition: it matches any partition.
    let identity = disk.read(&copy.join("partition.metadata")).unwrap();
    let end = identity.len() - b"\npartition: 0".len();
    disk.write_atomically(&copy.join("partition.metadata"), &identity[..end]).unwrap();
    let (log, _) = directory.open_log("t", 1, ID, Arc::default()).unwrap();
    assert_eq!(log.log_end_offset(), 3);
}

#[test]
fn partition_metadata_of_a_later_version_is_refused_and_kept() {
    let disk = memory();
    let directory = open(&disk);
    append(&open_log(&directory, "t"), 3, NOW_MS);
    directory.close(true).unwrap();
    let path = Path::new("/data/t-0/partition.metadata");
    let written = disk.read(path).unwrap();
    // The beginning of an id may be that of another topic.
    let cut = [&written[..20], &written[..30]].map(|bytes| std::str::from_utf8(bytes).unwrap());
    let others = ["version: 1\ntopic_id: 1", "version: 0\ntopic: t", "\u{0}x"];
    for other in others.iter().chain(&cut) {
        disk.write_atomically(path, other.as_bytes()).unwrap();
        let directory = open(&disk);
        let opened = directory.open_log("t", 0, ID, Arc::default());
        assert!(matches!(opened, Err(OpenError::Malformed { .. })), "{other:?}: {opened:?}");
        assert_eq!(disk.read(path).unwrap(), other.as_bytes());
    }
    for blank in [&written[..0], &[0; 40]] {
        disk.write_atomically(path, blank).unwrap();
        let (log, recovery) = open(&disk).open_log("t", 0, ID, Arc::default()).unwrap();
        assert_eq!((log.log_end_offset(), recovery.warnings.len()), (3, 1), "{blank:?}");
        assert_eq!(disk.read(path).unwrap(), written);
    }
}

#[test]
fn deleted_partitions_are_removed_after_their_delay_and_the_name_can_be_reused() {
    let disk = memory();
    let directory = open(&disk);
    let log = open_log(&directory, "a.b-c");
    append(&log, 3, NOW_MS);
    assert_eq!(directory.partitions().len(), 1);
    let wrong = directory.open_log("a.b-c", 0, [8; 16], Arc::default());
    assert!(matches!(wrong, Err(OpenError::TopicIdMismatch { .. })));
    directory.delete_log(&log).unwrap();
    assert_eq!(directory.partitions(), []);
    let deleted = |disk: &Arc<dyn Disk>| {
        let names = disk.list(Path::new("/data")).unwrap().into_iter();
        names.filter(|entry| entry.name.to_string_lossy().ends_with("-delete")).count()
    };
    assert_eq!(deleted(&disk), 1);
    directory.remove_deleted(NOW_MS + 59_999).unwrap();
    assert_eq!(deleted(&disk), 1);
    assert_eq!(append(&open_log(&directory, "a.b-c"), 1, NOW_MS).first_offset, 0);
    directory.remove_deleted(NOW_MS + 60_000).unwrap();
    assert_eq!(deleted(&disk), 0);
    directory.mark_stray("a.b-c", 0).unwrap();
    directory.delete_partition("never-made", 3).unwrap();
    assert_eq!(directory.partitions(), []);
}

#[test]
fn recreated_partition_keeps_its_checkpoints_next_to_the_deleted_directory() {
    let (disk, directory, log) = synced("orders", 5);
    directory.checkpoint(&[("orders".into(), 0, 5)]).unwrap();
    directory.delete_log(&log).unwrap();
    let log = open_log(&directory, "orders");
    append(&log, 2, NOW_MS);
    log.flush().unwrap();
    drop((log, directory)); // killed: the deleted log's rows are removed already
    let directory = open(&disk);
    let log = open_log(&directory, "orders");
    assert_eq!((log.log_end_offset(), log.damage()), (2, None));
    append(&log, 1, NOW_MS);
    log.flush().unwrap();
    directory.checkpoint(&[("orders".into(), 0, 3)]).unwrap();
    drop((log, directory));
    let name = disk.list(Path::new("/data/orders-0")).unwrap().into_iter();
    let log_file =
        name.map(|entry| entry.name).find(|name| name.to_string_lossy().ends_with(".log"));
    disk.remove_file(&Path::new("/data/orders-0").join(log_file.unwrap())).unwrap();
    assert!(open_log(&open(&disk), "orders").damage().is_some(), "what was synced is missed");
}

#[test]
fn directories_of_unknown_partitions_become_strays_without_checkpoints() {
    let disk = memory();
    let directory = open(&disk);
    for topic in ["kept", "returned", "removed-by-hand"] {
        let log = open_log(&directory, topic);
        append(&log, 3, NOW_MS);
        log.flush().unwrap();
    }
    directory.checkpoint(&[]).unwrap();
    drop(directory);
    disk.remove_dir_all(Path::new("/data/removed-by-hand-0")).unwrap();
    let directory = open(&disk);
    let strays = directory.mark_strays(|topic, index| (topic, index) == ("kept", 0));
    let strays: Vec<_> = strays.into_iter().map(|(key, renamed)| (key, renamed.is_ok())).collect();
    assert_eq!(strays, [(("returned".to_owned(), 0), true)]);
    let left: Vec<_> =
        directory.partitions().into_iter().map(|partition| partition.topic).collect();
    assert_eq!(left, ["kept"]);
    for topic in ["returned", "removed-by-hand"] {
        let log = open_log(&directory, topic);
        assert_eq!((log.log_end_offset(), log.damage()), (0, None), "{topic} is new");
        assert_eq!(append(&log, 1, NOW_MS).first_offset, 0);
    }
    assert_eq!(open_log(&directory, "kept").log_end_offset(), 3);
}

#[test]
fn partition_that_cannot_be_removed_does_not_block_others_and_is_removed_later() {
    let faulty = FaultyDisk::default();
    let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
    let directory = open(&disk);
    for topic in ["a", "b", "c"] {
        let log = open_log(&directory, topic);
        append(&log, 3, NOW_MS);
        directory.delete_log(&log).unwrap();
    }
    let left = || disk.list(Path::new("/data")).unwrap().len();
    assert_eq!(left(), 3);
    directory.checkpoint(&[]).unwrap();
    assert_eq!(left(), 6, "with three checkpoints");
    faulty.arm(Fault::Error(std::io::ErrorKind::PermissionDenied), Operations::All, 0);
    directory.remove_deleted(NOW_MS + 60_000).unwrap_err();
    assert_eq!(left(), 4);
    directory.remove_deleted(NOW_MS + 60_000).unwrap();
    assert_eq!(left(), 3);
}

#[test]
fn many_logs_are_all_closed_before_the_marker() {
    let disk = memory();
    let directory = open(&disk);
    let logs: Vec<_> = (0..100).map(|n| open_log(&directory, &format!("t{n}"))).collect();
    for log in &logs {
        append(log, 3, NOW_MS);
    }
    directory.close(true).unwrap();
    assert!(logs.iter().all(|log| log.is_read_only() && log.recovery_point() == 3));
    assert!(open(&disk).was_clean());
}

#[test]
fn producer_expiration_reaches_logs_that_are_open_and_those_to_come() {
    let disk = memory();
    let clock = Arc::new(ManualClock::new(NOW_MS));
    let options = DirectoryOptions {
        dir: Path::new("/data"),
        disk: disk.clone(),
        lock: None,
        producer_id_expiration_ms: 86_400_000,
        random_seed: 1,
        buffers: Arc::default(),
    };
    let directory = LogDirectory::open(options, clock.clone()).unwrap();
    let before = open_log(&directory, "before");
    directory.set_producer_id_expiration_ms(1_000);
    let after = open_log(&directory, "after");
    for log in [&before, &after] {
        let producer = BatchOptions {
            producer_id: ProducerId::new(1),
            producer_epoch: ProducerEpoch::new(0),
            base_sequence: 0,
            ..BatchOptions::default()
        };
        log.append_as_leader(&mut batch_with(producer, 1, 10, NOW_MS), LEADER).unwrap();
        assert_eq!(log.active_producers().len(), 1);
    }
    clock.advance_ms(2_000);
    for log in [&before, &after] {
        log.expire_producers(directory.producer_id_expiration_ms());
        assert!(log.active_producers().is_empty());
    }
}

#[test]
fn closed_log_is_surveyed_without_being_opened() {
    let disk = memory();
    let directory = open(&disk);
    let (log, _empty) = (open_log(&directory, "t"), open_log(&directory, "empty"));
    for _ in 0..10 {
        append(&log, 3, NOW_MS);
    }
    let size = log.size_bytes();
    assert!(log.segments_count() > 2);
    directory.close(true).unwrap();
    let directory = open(&disk);
    assert_eq!(directory.survey("empty", 0), None);
    let (survey, start) = directory.survey("t", 0).unwrap();
    assert_eq!((survey.size_bytes, start), (size, 0));
    let by_age = LogConfig { retention_ms: 1000, retention_bytes: -1, ..LogConfig::default() };
    assert!(!survey.may_expire(&by_age, 0, NOW_MS + 1000));
    assert!(survey.may_expire(&by_age, 0, NOW_MS + 1010));
    let by_size = LogConfig { retention_ms: -1, retention_bytes: 100, ..LogConfig::default() };
    assert!(survey.may_expire(&by_size, 0, NOW_MS));
    let never = LogConfig { retention_ms: -1, retention_bytes: -1, ..LogConfig::default() };
    assert!(!survey.may_expire(&never, 0, NOW_MS));
    assert!(survey.may_expire(&never, 29, NOW_MS), "below the log start");
}

/// The directory with the closed log "t" of ten segments.
fn closed(disk: &Arc<dyn Disk>) -> LogDirectory {
    let directory = open(disk);
    let log = open_log(&directory, "t");
    for batch in 0..10 {
        append(&log, 3, NOW_MS + batch);
        log.roll().unwrap();
    }
    directory.close(true).unwrap();
    open(disk)
}

#[test]
fn a_closed_log_with_files_that_the_next_open_removes_is_opened() {
    let never = LogConfig { retention_ms: -1, retention_bytes: -1, ..LogConfig::default() };
    for name in ["00000000000000000000.log.deleted", "00000000000000000003.log.cleaned"] {
        let disk = memory();
        let directory = closed(&disk);
        let left = Path::new("/data/t-0").join(name);
        disk.write_atomically(&left, b"old records").unwrap();
        let (survey, start) = directory.survey("t", 0).unwrap();
        assert!(survey.may_expire(&never, start, NOW_MS), "{name}");
        open_log(&directory, "t");
        assert!(!disk.exists(&left));
    }
}

#[test]
fn a_closed_log_without_a_time_index_is_opened() {
    let disk = memory();
    let directory = closed(&disk);
    disk.remove_file(Path::new("/data/t-0/00000000000000000000.timeindex")).unwrap();
    let (survey, start) = directory.survey("t", 0).unwrap();
    let by_age = LogConfig { retention_ms: i64::MAX, retention_bytes: -1, ..LogConfig::default() };
    assert!(survey.may_expire(&by_age, start, NOW_MS));
    let never = LogConfig { retention_ms: -1, ..by_age };
    assert!(!survey.may_expire(&never, start, NOW_MS));
}

#[test]
fn closed_log_is_as_dirty_as_the_open_log() {
    let compacts = pykafka_log::CleanupPolicy { compact: true, delete: false };
    for lag_ms in [i64::MAX, 1000] {
        let config = LogConfig {
            segment_bytes: 1000,
            cleanup_policy: compacts,
            max_compaction_lag_ms: lag_ms,
            ..LogConfig::default()
        };
        let disk = memory();
        let directory = closed(&disk);
        for compacts_first in [false, true] {
            let surveyed = directory.survey_dirtiness("t", 0, &config).unwrap();
            let (log, _) = directory.open_log("t", 0, ID, Arc::new(config.clone())).unwrap();
            let mut found = directory.dirtiness(&log, i64::MAX, NOW_MS).unwrap();
            if lag_ms == i64::MAX {
                found.first_dirty_timestamp = None;
            }
            assert_eq!(surveyed, found, "{lag_ms} {compacts_first}");
            assert_eq!(
                surveyed.is_due(&config, NOW_MS + 2000),
                found.is_due(&config, NOW_MS + 2000)
            );
            if !compacts_first {
                directory.compact(&log, &CompactionOptions::default(), NOW_MS).unwrap();
                drop(log);
                directory.close(true).unwrap();
            }
        }
    }
}

#[test]
fn a_topic_of_any_name_length_is_writable_after_deletion_re_creation_and_a_crash() {
    for length in [1, 213, 214, 215, 238, 249] {
        let topic = "L".repeat(length);
        let (disk, directory, log) = synced(&topic, 5);
        directory.checkpoint(&[(topic.clone(), 0, 5)]).unwrap();
        directory.delete_log(&log).unwrap();
        drop((log, open_log(&directory, &topic), directory)); // killed before the next checkpoint
        let directory = open(&disk);
        assert_eq!(directory.high_watermark(&topic, 0), None, "{length}");
        let log = open_log(&directory, &topic);
        assert_eq!((log.log_end_offset(), log.damage()), (0, None), "{length}");
        assert_eq!(append(&log, 1, NOW_MS).first_offset, 0);
    }
}

#[test]
fn deleted_topic_with_a_long_name_keeps_the_checkpoints_of_a_topic_with_the_same_prefix() {
    let (disk, name) = (memory(), "L".repeat(240));
    let (deleted, kept) = (format!("{name}-1"), format!("{name}-2"));
    let directory = open(&disk);
    let logs = [open_log(&directory, &deleted), open_log(&directory, &kept)];
    for log in &logs {
        append(log, 5, NOW_MS);
        log.flush().unwrap();
    }
    let other_partition = directory.open_log(&deleted, 11, ID, Arc::default()).unwrap().0;
    append(&other_partition, 5, NOW_MS);
    other_partition.flush().unwrap();
    directory.checkpoint(&[(deleted.clone(), 11, 5), (kept.clone(), 0, 5)]).unwrap();
    directory.delete_log(&logs[0]).unwrap();
    drop((logs, other_partition, directory));
    disk.remove_dir_all(&Path::new("/data").join(format!("{deleted}-11"))).unwrap();
    let directory = open(&disk);
    assert_eq!(open_log(&directory, &deleted).damage(), None);
    assert_eq!(directory.high_watermark(&kept, 0), Some(5));
    let missing = directory.open_log(&deleted, 11, ID, Arc::default()).unwrap().0;
    assert!(missing.damage().is_some(), "what was synced is missed");
}

#[test]
fn renamed_directory_keeps_its_partition_and_a_long_topic_is_shortened_like_in_kafka() {
    for suffix in ["delete", "stray"] {
        let (disk, topic) = (memory(), "L".repeat(249));
        let directory = open(&disk);
        let log = directory.open_log(&topic, 1234, ID, Arc::default()).unwrap().0;
        append(&log, 1, NOW_MS);
        match suffix {
            "delete" => directory.delete_log(&log).unwrap(),
            _ => directory.mark_stray(&topic, 1234).unwrap(),
        }
        let entries = disk.list(Path::new("/data")).unwrap().into_iter();
        let renamed = entries.map(|entry| entry.name.into_string().unwrap());
        let renamed = renamed.filter(|name| name.ends_with(suffix)).collect::<Vec<_>>();
        let [name] = &renamed[..] else { panic!("{renamed:?}") };
        let (stem, id) = name.split_once('.').unwrap();
        assert_eq!((name.len(), id.len()), (255, 33 + suffix.len()));
        assert_eq!(stem.trim_start_matches('L'), "-1234");
    }
}

#[test]
fn only_directories_renamed_for_deletion_are_removed() {
    let disk = memory();
    drop(open(&disk));
    let notes = Path::new("/data/what-to-delete");
    disk.create_dir_all(notes).unwrap();
    open(&disk).remove_deleted(NOW_MS).unwrap();
    assert!(disk.exists(notes));
}

#[test]
fn a_recreated_topic_is_writable_after_its_stray_and_a_crash() {
    let (disk, directory, log) = synced("orders", 5);
    directory.checkpoint(&[]).unwrap();
    drop((log, directory));
    let directory = open(&disk);
    assert_eq!(directory.mark_strays(|_, _| false).len(), 1);
    drop(directory); // killed before the next checkpoint
    assert_eq!(open_log(&open(&disk), "orders").damage(), None);
}

/// One open later, after a clean stop, it was reported as the loss of synced records.
#[test]
fn a_high_watermark_above_the_end_after_a_crash_is_lowered_to_it() {
    let disk = memory();
    let directory = open(&disk);
    append(&open_log(&directory, "t"), 3, NOW_MS);
    directory.checkpoint(&[("t".to_owned(), 0, 5)]).unwrap();
    drop(directory);
    let checkpoint = b"0\n1\nt 0 5\n";
    disk.write_atomically(Path::new("/data/replication-offset-checkpoint"), checkpoint).unwrap();
    for _ in 0..2 {
        let directory = open(&disk);
        assert_eq!(open_log(&directory, "t").damage(), None);
        directory.close(true).unwrap();
        assert_eq!(directory.high_watermark("t", 0), Some(3));
    }
}

/// Its records looked like those of a deleted topic: the log was opened empty, without damage, and
/// its followers truncated theirs to 0.
#[test]
fn a_directory_of_another_topic_does_not_hide_the_loss_of_the_records() {
    let zero = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA";
    for (is_clean, id) in [(true, None), (false, None), (true, Some(zero)), (false, Some(zero))] {
        let (disk, directory, log) = synced("t", 3);
        append(&directory.open_log("other", 0, [8; 16], Arc::default()).unwrap().0, 1, NOW_MS);
        directory.checkpoint(&[("t".to_owned(), 0, 3)]).unwrap();
        if is_clean {
            directory.close(true).unwrap();
        }
        drop((log, directory));
        if let Some(id) = id {
            disk.write_atomically(Path::new("/data/t-0/partition.metadata"), id).unwrap();
        } else {
            disk.rename(Path::new("/data/t-0"), Path::new("/data/backup")).unwrap();
            disk.rename(Path::new("/data/other-0"), Path::new("/data/t-0")).unwrap();
        }
        for _ in 0..2 {
            let directory = open(&disk);
            let lost = Some(Damage::Lost { offset: 0, synced_end: 3 });
            assert_eq!(directory.inspect("t", 0, ID, Arc::default()).unwrap(), lost);
            assert_eq!(open_replacing(&directory, ID).damage(), lost);
            assert_eq!(directory.high_watermark("t", 0), Some(3));
            directory.close(true).unwrap();
        }
    }
}

/// Opens the log of `t`; the directory of another topic becomes a stray.
fn open_replacing(directory: &LogDirectory, topic_id: [u8; 16]) -> Arc<Log> {
    let open = || directory.open_log("t", 0, topic_id, Arc::default());
    match open() {
        Err(OpenError::TopicIdMismatch { .. }) => {
            directory.mark_stray("t", 0).unwrap();
            open().unwrap().0
        }
        opened => opened.unwrap().0,
    }
}

#[test]
fn a_topic_created_again_begins_empty_whatever_is_left_of_the_deleted_one() {
    let topic_ids = Path::new("/data/topic-id-checkpoint");
    // Earlier versions and Apache Kafka write no topic ids.
    for (has_directory, has_ids) in [(true, true), (true, false), (false, true)] {
        let (disk, directory, log) = synced("t", 3);
        directory.checkpoint(&[("t".to_owned(), 0, 3)]).unwrap();
        drop((log, directory));
        if !has_directory {
            disk.remove_dir_all(Path::new("/data/t-0")).unwrap();
        }
        if !has_ids {
            disk.remove_file(topic_ids).unwrap();
        }
        let directory = open(&disk);
        assert_eq!(directory.inspect("t", 0, [8; 16], Arc::default()).unwrap(), None);
        let log = open_replacing(&directory, [8; 16]);
        assert_eq!((log.damage(), directory.high_watermark("t", 0)), (None, None));
        append(&log, 1, NOW_MS);
        drop((log, directory)); // killed before the next checkpoint
        let log = open_replacing(&open(&disk), [8; 16]);
        assert_eq!((log.damage(), log.log_end_offset()), (None, 1));
    }
}

/// Its records become those of the new topic, and the deleted ones reappeared.
#[test]
fn a_topic_created_again_keeps_the_log_start_of_a_directory_without_id() {
    let disk = memory();
    let directory = open(&disk);
    let log = open_log(&directory, "t");
    for _ in 0..3 {
        append(&log, 1, NOW_MS);
    }
    directory.delete_before(&log, 2).unwrap();
    directory.checkpoint(&[("t".to_owned(), 0, 3)]).unwrap();
    drop((log, directory));
    disk.remove_file(Path::new("/data/t-0/partition.metadata")).unwrap();
    for _ in 0..2 {
        let directory = open(&disk); // killed before the next checkpoint
        assert_eq!(directory.inspect("t", 0, [8; 16], Arc::default()).unwrap(), None);
        let log = open_replacing(&directory, [8; 16]);
        assert_eq!((log.damage(), log.log_start_offset(), log.log_end_offset()), (None, 2, 3));
    }
}

#[test]
fn checkpoints_written_without_topic_ids_get_those_of_the_directories() {
    let disk = memory();
    let directory = open(&disk);
    append(&open_log(&directory, "t"), 3, NOW_MS);
    directory.close(true).unwrap();
    let topic_ids = Path::new("/data/topic-id-checkpoint");
    let written = disk.read(topic_ids).unwrap();
    disk.remove_file(topic_ids).unwrap();
    open(&disk).close(true).unwrap();
    assert_eq!(disk.read(topic_ids).unwrap(), written);
}

/// Apache Kafka deleted the first topic, created it again and wrote all checkpoints but that of the
/// topic ids. Its rows were dropped, so deleted records reappeared.
#[test]
fn rows_of_a_topic_that_another_program_created_again_are_kept() {
    let disk = memory();
    let directory = open(&disk);
    let log = open_log(&directory, "t");
    for _ in 0..3 {
        append(&log, 1, NOW_MS);
    }
    directory.delete_before(&log, 2).unwrap();
    directory.close(true).unwrap();
    let topic_ids = Path::new("/data/topic-id-checkpoint");
    disk.write_atomically(topic_ids, b"0\n1\nt 0 12345\n").unwrap();
    for _ in 0..2 {
        let directory = open(&disk); // killed before the next checkpoint
        let log = open_log(&directory, "t");
        assert_eq!((log.damage(), log.log_start_offset(), log.log_end_offset()), (None, 2, 3));
    }
}

/// Kafka wrote the recovery points of the new topic, and ended before it wrote its high watermark.
#[test]
fn high_watermark_of_a_deleted_topic_reports_no_loss_in_the_one_created_again() {
    let (disk, directory, log) = synced("t", 3);
    directory.checkpoint(&[]).unwrap();
    drop((log, directory));
    for (name, row) in [("topic-id-checkpoint", 12345), ("replication-offset-checkpoint", 50)] {
        let bytes = format!("0\n1\nt 0 {row}\n");
        disk.write_atomically(&Path::new("/data").join(name), bytes.as_bytes()).unwrap();
    }
    let directory = open(&disk);
    let (log, recovery) = directory.open_log("t", 0, ID, Arc::default()).unwrap();
    assert_eq!((log.log_end_offset(), recovery.warnings), (3, vec![]));
    assert_eq!(directory.high_watermark("t", 0), Some(3));
}

/// Gives the directory of a deleted topic a `partition.metadata` that cannot be read, after
/// `change`, and checks that a topic created again is refused and gets no rows.
fn assert_rows_keep_their_topic_id(change: impl Fn(&dyn Disk, &Path)) {
    let disk = memory();
    let directory = open(&disk);
    append(&open_log(&directory, "t"), 3, NOW_MS);
    directory.close(true).unwrap();
    let topic_ids = Path::new("/data/topic-id-checkpoint");
    let written = disk.read(topic_ids).unwrap();
    let path = Path::new("/data/t-0");
    change(&*disk, path);
    let metadata = path.join("partition.metadata");
    disk.write_atomically(&metadata, b"version: 1\ntopic: t").unwrap();
    let directory = open(&disk);
    let opened = directory.open_log("t", 0, [8; 16], Arc::default());
    assert!(matches!(opened, Err(OpenError::Malformed { .. })), "{opened:?}");
    assert!(directory.inspect("t", 0, [8; 16], Arc::default()).is_err());
    directory.checkpoint(&[]).unwrap();
    assert_eq!(disk.read(topic_ids).unwrap(), written);
}

/// The rows of the deleted topic became those of the new one.
#[test]
fn rows_get_no_topic_id_while_that_of_the_directory_cannot_be_read() {
    assert_rows_keep_their_topic_id(|_, _| ());
}

/// The directory of the new topic is refused, so the rows stay those of the deleted one.
#[test]
fn rows_get_no_topic_id_while_the_directory_has_metadata_of_a_later_version() {
    assert_rows_keep_their_topic_id(|disk, path| {
        for entry in disk.list(path).unwrap() {
            disk.remove_file(&path.join(&entry.name)).unwrap();
        }
    });
}

/// The remaining digits name another partition.
#[test]
fn partition_metadata_without_its_last_digits_is_written_again_in_a_new_directory() {
    let disk = memory();
    drop(open(&disk).open_log("t", 12, ID, Arc::default()).unwrap());
    let metadata = Path::new("/data/t-12/partition.metadata");
    let identity = PartitionIdentity { topic_id: ID, partition: Some(12) };
    let written = checkpoint::write_partition_metadata(identity);
    disk.create_dir_all(Path::new("/data/t-12")).unwrap();
    disk.write_atomically(metadata, &written[..written.len() - 1]).unwrap();
    let (log, recovery) = open(&disk).open_log("t", 12, ID, Arc::default()).unwrap();
    assert_eq!((log.log_end_offset(), recovery.warnings.len()), (0, 1));
    append(&log, 1, NOW_MS);
    drop(log);
    assert_eq!(disk.read(metadata).unwrap(), written);
    disk.write_atomically(metadata, &written[..written.len() - 1]).unwrap();
    let opened = open(&disk).open_log("t", 12, ID, Arc::default());
    assert!(matches!(opened, Err(OpenError::OtherPartition { found: 1, .. })), "{opened:?}");
}

#[test]
fn negative_log_start_refuses_the_open_and_a_negative_topic_id_does_not() {
    let disk = memory();
    let directory = open(&disk);
    let (log, _) = directory.open_log("t", 0, [255; 16], Arc::default()).unwrap();
    append(&log, 3, NOW_MS);
    directory.close(true).unwrap();
    assert_eq!(disk.read(Path::new("/data/topic-id-checkpoint")).unwrap(), b"0\n1\nt 0 -1\n");
    assert_eq!(open(&disk).warnings(), Vec::<String>::new());
    let row = b"0\n1\nt 0 -5\n";
    disk.write_atomically(Path::new("/data/recovery-point-offset-checkpoint"), row).unwrap();
    assert_eq!(open(&disk).warnings().len(), 1);
    disk.write_atomically(Path::new("/data/log-start-offset-checkpoint"), row).unwrap();
    let opened = try_open(&disk);
    assert!(matches!(opened, Err(OpenError::Malformed { .. })), "{:?}", opened.err());
}

/// A log start is checkpointed before the first recovery point.
#[test]
fn a_topic_created_again_does_not_inherit_a_log_start_without_recovery_point() {
    let disk = memory();
    let directory = open(&disk);
    let log = open_log(&directory, "t");
    for _ in 0..3 {
        append(&log, 1, NOW_MS);
    }
    directory.delete_before(&log, 2).unwrap();
    drop((log, directory)); // killed before the first checkpoint of all files
    let log = open_replacing(&open(&disk), [8; 16]);
    assert_eq!((log.damage(), log.log_start_offset(), log.log_end_offset()), (None, 0, 0));
}

/// Such a row made a start and `repair` fail.
#[test]
fn metadata_log_begins_with_its_first_segment_whatever_is_checkpointed() {
    let disk = memory();
    let directory = open(&disk);
    let log = open_log(&directory, "__cluster_metadata");
    for _ in 0..10 {
        append(&log, 3, NOW_MS);
    }
    log.flush().unwrap();
    directory.checkpoint(&[]).unwrap();
    let path = Path::new("/data/log-start-offset-checkpoint");
    assert_eq!(disk.read(path).unwrap(), b"0\n0\n");
    drop((directory, log));
    for told in [7, 30, 900] {
        let row = format!("0\n1\n__cluster_metadata 0 {told}\n");
        disk.write_atomically(path, row.as_bytes()).unwrap();
        let log = open_log(&open(&disk), "__cluster_metadata");
        assert_eq!((log.damage(), log.log_start_offset(), log.log_end_offset()), (None, 0, 30));
    }
    let directory = open(&disk);
    let log = open_log(&directory, "__cluster_metadata");
    directory.delete_before(&log, 15).unwrap();
    directory.enforce_retention(&log, 30).unwrap();
    drop((directory, log));
    let log = open_log(&open(&disk), "__cluster_metadata");
    assert_eq!((log.damage(), log.log_start_offset(), log.log_end_offset()), (None, 12, 30));
}

/// Apache Kafka creates empty files at its first start and writes them half a minute later.
#[test]
fn empty_log_starts_open_only_where_none_was_ever_written() {
    let path = |name| Path::new("/data").join(name);
    let (starts, points) = ("log-start-offset-checkpoint", "recovery-point-offset-checkpoint");
    let disk = memory();
    let directory = open(&disk);
    append(&open_log(&directory, "t"), 3, NOW_MS);
    drop(directory);
    let empty = |name| disk.write_atomically(&path(name), b"").unwrap();
    empty("meta.properties");
    empty(starts);
    empty(points);
    let directory = open(&disk);
    let warning = "log-start-offset-checkpoint is empty: each log begins with its first segment";
    assert_eq!(directory.warnings(), [warning]);
    assert_eq!(open_log(&directory, "t").log_end_offset(), 3);
    directory.checkpoint(&[]).unwrap();
    drop(directory);
    empty(points);
    let warnings = open(&disk).warnings();
    assert!(warnings[0].contains(&format!("{points} is malformed: it is empty; ")), "{warnings:?}");
    open(&disk).checkpoint(&[]).unwrap();
    empty(starts);
    let refused = try_open(&disk).map(drop).unwrap_err().to_string();
    assert!(refused.contains("it is empty; restore or correct it"), "{refused}");
}
