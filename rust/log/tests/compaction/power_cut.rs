//! Cuts the power, and kills the process, at every disk operation of compactions. No last value is
//! lost, no replaced or deleted value reappears, and the log can be used afterwards.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::common::{LEADER, NOW_MS, all, end_transaction, open_directory};
use pykafka_log::disk::{Fault, FaultyDisk, Operations};
use pykafka_log::{
    CompactionOptions, Disk, FetchedRecords, Log, LogConfig, LogDirectory, Recovery, checkpoint,
};
use pykafka_record::{
    BatchBuilder, BatchOptions, EndTransactionMarker, LeaderEpoch, Limits, ProducerEpoch,
    ProducerId,
};

const DATA: &str = "/data";
const SEEDS: std::ops::Range<u64> = 0..5;
const RETENTION_MS: i64 = 100;

fn new_disk() -> FaultyDisk {
    let disk = FaultyDisk::default();
    disk.create_dir_all(Path::new(DATA)).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    disk
}

fn config(syncs_every_append: bool) -> LogConfig {
    let mut config = LogConfig {
        segment_bytes: 900,
        index_interval_bytes: 200,
        file_delete_delay_ms: 0,
        delete_retention_ms: RETENTION_MS,
        flush_messages: if syncs_every_append { 1 } else { i64::MAX },
        ..LogConfig::default()
    };
    config.cleanup_policy.compact = true;
    config.cleanup_policy.delete = false;
    config
}

fn open(disk: &FaultyDisk, config: &LogConfig) -> (LogDirectory, Arc<Log>, Recovery) {
    open_directory(Arc::new(disk.clone()), Arc::new(config.clone()))
}

fn append(log: &Log, pairs: &[(u8, Option<&str>)], transaction: Option<(i64, i32)>) {
    let mut options = BatchOptions::default();
    if let Some((id, sequence)) = transaction {
        options.producer_id = ProducerId::new(id);
        options.producer_epoch = ProducerEpoch::new(0);
        options.base_sequence = sequence;
        options.transactional = true;
    }
    let mut builder = BatchBuilder::new(options);
    for (key, value) in pairs {
        builder.append(NOW_MS, Some(&[*key]), value.map(str::as_bytes), &[]).unwrap();
    }
    let mut bytes = Vec::new();
    builder.build(&mut bytes).unwrap();
    log.append_as_leader(&mut bytes, LEADER).unwrap();
}

fn end(log: &Log, id: i64, committed: bool) {
    let marker = EndTransactionMarker { committed, coordinator_epoch: 0 };
    let (id, epoch) = (ProducerId::new(id), ProducerEpoch::new(0));
    end_transaction(log, id, epoch, marker, LeaderEpoch::ZERO).unwrap();
}

/// Several segments with replaced and deleted keys, and with aborted and committed transactions.
fn fill(log: &Log) {
    for round in 0..4 {
        append(log, &[(1, Some("one")), (2, Some("two")), (3, Some("three"))], None);
        append(log, &[(4, Some("four")), (5, Some("aborted"))], Some((9, 3 * round)));
        append(log, &[(6, Some("aborted"))], Some((9, 3 * round + 2)));
        end(log, 9, round == 3);
        append(log, &[(2, None), (10 + round as u8, Some("once"))], None);
        append(log, &[(3, None)], None);
        if round % 2 == 1 {
            log.roll().unwrap();
        }
    }
    append(log, &[(3, Some("again"))], None);
    log.roll().unwrap();
    append(log, &[(20, Some("active"))], None);
    log.flush().unwrap();
}

/// The last committed values that a consumer reads.
fn readable(log: &Log) -> BTreeMap<u8, String> {
    let (mut next, end) = (log.log_start_offset(), log.log_end_offset());
    let mut last = BTreeMap::new();
    while next < end {
        let (fetched, aborted) = log.fetch_committed(next, 1 << 16, end, true).unwrap();
        let FetchedRecords::Read(bytes) = &fetched.records else { panic!("a small read") };
        for batch in all(bytes).iter().filter(|batch| !batch.is_control()) {
            assert!(batch.is_crc_valid());
            let is_aborted = batch.is_transactional()
                && aborted.iter().any(|txn| {
                    txn.producer_id == batch.producer_id()
                        && (txn.first_offset..=txn.last_offset).contains(&batch.base_offset())
                });
            let mut scratch = Vec::new();
            for record in batch.records(&mut scratch, Limits::default()).unwrap() {
                let record = record.unwrap();
                let key = record.key.unwrap()[0];
                match record.value {
                    _ if is_aborted => {}
                    Some(value) => {
                        last.insert(key, String::from_utf8(value.to_vec()).unwrap());
                    }
                    None => {
                        last.remove(&key);
                    }
                }
            }
        }
        assert!(fetched.next_offset > next, "nothing to read at {next} of {end}");
        next = fetched.next_offset;
    }
    last
}

/// Runs three compactions: the first one, one that only sets horizons, and one after the horizons.
/// Returns the error of the operation that failed.
fn compact(directory: &LogDirectory, log: &Log) -> Result<(), pykafka_log::StorageError> {
    for round in 0..3 {
        let options = CompactionOptions {
            high_watermark: log.log_end_offset(),
            ..CompactionOptions::default()
        };
        directory.compact(log, &options, NOW_MS + round * RETENTION_MS)?;
        log.delete_expired_files(i64::MAX)?;
    }
    Ok(())
}

fn check(disk: &FaultyDisk, config: &LogConfig, expected: &BTreeMap<u8, String>, what: &str) {
    let (directory, log, recovery) = open(disk, config);
    assert_eq!((recovery.damage, recovery.truncated_bytes), (None, 0), "{what}");
    assert_eq!(&readable(&log), expected, "{what}");
    assert_eq!(log.first_unstable_offset(log.log_end_offset()), None, "{what}");
    compact(&directory, &log).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(&readable(&log), expected, "{what}, compacted");
    append(&log, &[(200, Some("more"))], None);
    directory.close(true).unwrap();
    // Also for a topic that is no longer compacted: recovery must not report the gaps of earlier
    // compactions.
    let mut plain = config.clone();
    plain.cleanup_policy.compact = false;
    let (_, log, recovery) = open(disk, &plain);
    assert_eq!((recovery.damage, recovery.truncated_bytes), (None, 0), "{what}, reopened");
    assert_eq!(recovery.warnings, Vec::<String>::new(), "{what}, reopened");
    assert_eq!(readable(&log).len(), expected.len() + 1, "{what}, reopened");
    let names = disk.list(&Path::new(DATA).join("topic-0")).unwrap();
    let is_left = |name: &str| [".cleaned", ".swap"].iter().any(|end| name.ends_with(end));
    assert!(!names.iter().any(|entry| is_left(entry.name.to_str().unwrap())), "{what}: {names:?}");
}

#[test]
fn a_power_cut_at_any_operation_keeps_every_last_value() {
    for syncs_every_append in [true, false] {
        let config = config(syncs_every_append);
        for operation in 0.. {
            let disk = new_disk();
            let (directory, log, _) = open(&disk, &config);
            fill(&log);
            directory.checkpoint(&[("topic".to_owned(), 0, log.log_end_offset())]).unwrap();
            let expected = readable(&log);
            assert_eq!(expected.len(), 10);
            disk.arm(Fault::PowerCut, Operations::All, operation);
            let ended = compact(&directory, &log);
            for seed in SEEDS {
                let what = format!("operation {operation}, seed {seed}, {ended:?}");
                check(&disk.after_power_cut(seed), &config, &expected, &what);
            }
            if ended.is_ok() {
                assert!(operation > 60, "the compactions have {operation} operations only");
                break;
            }
        }
    }
}

/// After a failed operation the log can be read, and either works normally or refuses writes until
/// it is opened again.
#[test]
fn a_failed_operation_keeps_every_last_value_with_and_without_a_kill() {
    let config = config(true);
    for fault in [Fault::Error(std::io::ErrorKind::StorageFull), Fault::Torn] {
        for operation in 0.. {
            let disk = new_disk();
            let (directory, log, _) = open(&disk, &config);
            fill(&log);
            directory.checkpoint(&[("topic".to_owned(), 0, log.log_end_offset())]).unwrap();
            let expected = readable(&log);
            disk.arm(fault, Operations::All, operation);
            let ended = compact(&directory, &log);
            let was_hit = !disk.is_armed();
            disk.disarm();
            let what = format!("{fault:?} at operation {operation}, {ended:?}");
            assert_eq!(readable(&log), expected, "{what}");
            if ended.is_err() && log.write_error().is_none() {
                compact(&directory, &log).unwrap();
                assert_eq!(readable(&log), expected, "{what}, repeated");
            }
            // As after a kill: the kernel has all written bytes.
            check(&disk, &config, &expected, &what);
            if !was_hit {
                break;
            }
        }
    }
}

#[test]
fn cleaner_offset_is_checkpointed_and_lowered_by_a_truncation() {
    let (disk, config) = (new_disk(), config(true));
    let (directory, log, _) = open(&disk, &config);
    fill(&log);
    compact(&directory, &log).unwrap();
    let told = || {
        let bytes = disk.read(&Path::new(DATA).join(checkpoint::CLEANER_OFFSET_FILE)).unwrap();
        checkpoint::read_offsets(&bytes).unwrap()[&("topic".to_owned(), 0)]
    };
    let active = log.active_base_offset().unwrap();
    assert_eq!(told(), active);
    assert_eq!(directory.dirtiness(&log, i64::MAX, NOW_MS).unwrap().dirty_bytes, 0);
    directory.truncate_log(&log, active - 1).unwrap();
    assert!(told() < active);
    append(&log, &[(3, Some("changed"))], None);
    log.roll().unwrap();
    assert!(directory.dirtiness(&log, i64::MAX, NOW_MS).unwrap().dirty_bytes > 0);
    compact(&directory, &log).unwrap();
    assert_eq!(readable(&log)[&3], "changed");
    assert_eq!(told(), log.active_base_offset().unwrap());
}
