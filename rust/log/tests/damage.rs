//! Damage to files of a closed or interrupted log: synced records are never lost silently, and no
//! offset is assigned twice.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{LEADER, NOW_MS, append, batch};
use pykafka_log::disk::{Fault, FaultyDisk, Operations};
use pykafka_log::{
    CleanupPolicy, Damage, DirectoryOptions, Disk, LibraryLog, Log, LogConfig, LogDirectory,
    ManualClock, MemoryDisk, OpenMode, ReadError, RealDisk, Recovery, Repair, StorageError,
};
use pykafka_record::{Batch, BatchBuilder, BatchOptions, Cancellation, batches};

const ID: [u8; 16] = [7; 16];

/// A data directory with one partition, and the sync policy of its appends.
struct Home {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    config: LogConfig,
    topic: &'static str,
}

impl Home {
    fn new(flush_messages: i64) -> Home {
        let config = LogConfig {
            segment_bytes: 1000,
            index_interval_bytes: 300,
            flush_messages,
            ..LogConfig::default()
        };
        let disk = Arc::new(MemoryDisk::default());
        Home { disk, dir: PathBuf::from("/data"), config, topic: "t" }
    }

    fn open(&self) -> (LogDirectory, Arc<Log>, Recovery) {
        let options = DirectoryOptions {
            dir: &self.dir,
            disk: self.disk.clone(),
            lock: None,
            producer_id_expiration_ms: 86_400_000,
            random_seed: 1,
            buffers: Arc::default(),
        };
        let clock = Arc::new(ManualClock::new(NOW_MS));
        let directory = LogDirectory::open(options, clock).unwrap();
        let (log, recovery) =
            directory.open_log(self.topic, 0, ID, Arc::new(self.config.clone())).unwrap();
        (directory, log, recovery)
    }

    /// Writes ten batches of three records, all synced and checkpointed, in more than three
    /// segments.
    fn filled(&self, clean: bool) {
        self.filled_with(10, 0, clean);
    }

    /// Writes batches of three records, all synced and checkpointed, and deletes the records below
    /// `start`.
    fn filled_with(&self, batches: i64, start: i64, clean: bool) {
        let (directory, log, _) = self.open();
        for n in 0..batches {
            append(&log, 3, NOW_MS + n * 10);
        }
        log.flush().unwrap();
        directory.delete_before(&log, start).unwrap();
        directory.checkpoint(&[("t".to_owned(), 0, batches * 3)]).unwrap();
        assert!(log.segments_count() >= 3);
        if clean {
            directory.close(true).unwrap();
        }
    }

    fn partition(&self) -> PathBuf {
        self.dir.join("t-0")
    }

    /// The `.log` files, by base offset.
    fn segments(&self) -> Vec<PathBuf> {
        let names = self.disk.list(&self.partition()).unwrap();
        let logs = names.iter().filter(|entry| entry.name.to_string_lossy().ends_with(".log"));
        logs.map(|entry| self.partition().join(&entry.name)).collect()
    }

    fn rewrite(&self, path: &Path, bytes: &[u8]) {
        let file = self.disk.open(path, OpenMode::Write).unwrap();
        file.set_len(0).unwrap();
        file.write_at(bytes, 0).unwrap();
    }

    /// Removes these files of a segment if they exist.
    fn remove(&self, suffixes: &[&str], segment: usize) {
        let log = self.segments()[segment].clone();
        for path in suffixes.iter().map(|suffix| log.with_extension(suffix)) {
            if self.disk.exists(&path) {
                self.disk.remove_file(&path).unwrap();
            }
        }
    }

    /// Syncs everything.
    fn sync(&self) {
        self.disk.sync_dir(&self.dir).unwrap();
        if self.disk.exists(&self.partition()) {
            for entry in self.disk.list(&self.partition()).unwrap() {
                let path = self.partition().join(entry.name);
                self.disk.open(&path, OpenMode::Write).unwrap().sync_data().unwrap();
            }
            self.disk.sync_dir(&self.partition()).unwrap();
        }
    }

    /// The start position of each batch of a segment, and the end of the last one.
    fn boundaries(&self, path: &Path) -> Vec<usize> {
        let bytes = self.disk.read(path).unwrap();
        let sizes = batches(&bytes).map_while(Result::ok).map(|batch| batch.size());
        let ends = sizes.scan(0, |end, size| {
            *end += size;
            Some(*end)
        });
        [0].into_iter().chain(ends).collect()
    }

    /// Cuts off the last batch of a segment.
    fn cut_last_batch(&self, path: &Path) {
        let bytes = self.disk.read(path).unwrap();
        let boundaries = self.boundaries(path);
        self.rewrite(path, &bytes[..boundaries[boundaries.len() - 2]]);
    }

    /// Cuts a segment at one of its boundaries.
    fn keep_bytes(&self, segment: usize, end: fn(&[usize]) -> usize) {
        let path = &self.segments()[segment];
        let bytes = self.disk.read(path).unwrap();
        self.rewrite(path, &bytes[..end(&self.boundaries(path))]);
    }

    /// Flips a bit of one byte of a segment.
    fn flip(&self, segment: usize, position: usize) {
        let path = &self.segments()[segment];
        let mut bytes = self.disk.read(path).unwrap();
        bytes[position] ^= 64;
        self.rewrite(path, &bytes);
    }

    /// Repairs the log until it is whole: once for each gap and once for its end.
    fn agree(&self, keeps: bool, what: &str) {
        let config = Arc::new(self.config.clone());
        let (repair, partition) = (repair(&self.dir), self.partition());
        let mut before = None;
        while let Some(cut) = repair.look(&partition, &config).unwrap() {
            let (offset, is_kept) = (cut.offset, keeps && cut.gap_end.is_some());
            assert!(before < Some(offset), "{what}: {:?} stays", cut.damage);
            before = Some(offset);
            let agree = if is_kept { Repair::keep } else { Repair::cut };
            agree(&repair, &partition, &config).unwrap();
        }
    }

    /// Opens the log three times, and checks that it has the same damage each time and refuses
    /// appends.
    fn assert_damaged(&self, what: &str) -> Damage {
        let mut found = None;
        for open in 0..3 {
            let (directory, log, recovery) = self.open();
            let damage = recovery.damage.unwrap_or_else(|| panic!("{what}, open {open}: whole"));
            assert_eq!(found.get_or_insert(damage.clone()), &damage, "{what}, open {open}");
            assert_eq!(log.damage(), Some(damage.clone()));
            match damage {
                Damage::Beginning { last_offset, .. } => {
                    let left = (log.log_start_offset(), log.log_end_offset());
                    assert_eq!(left, (last_offset + 1, 30), "{what}");
                }
                _ => assert_eq!(log.log_end_offset(), damage.offset(), "{what}"),
            }
            assert!(log.append_as_leader(&mut batch(1, 10, NOW_MS), LEADER).is_err());
            directory.checkpoint(&[("t".to_owned(), 0, log.log_end_offset())]).unwrap();
            directory.close(true).unwrap();
        }
        found.unwrap()
    }
}

type Hurt = fn(&Home);

/// Losses of whole batches: a name, the change of the files, and the end of the remaining log.
const LOSSES: [(&str, Hurt, i64); 10] = [
    (
        "the active segment lost its last batch",
        |home| {
            home.cut_last_batch(home.segments().last().unwrap());
        },
        27,
    ),
    (
        "the active segment was emptied",
        |home| {
            home.rewrite(home.segments().last().unwrap(), b"");
        },
        24,
    ),
    (
        "the active segment was deleted",
        |home| {
            home.disk.remove_file(home.segments().last().unwrap()).unwrap();
        },
        24,
    ),
    (
        "a middle segment was deleted",
        |home| {
            home.disk.remove_file(&home.segments()[1]).unwrap();
        },
        12,
    ),
    ("the first segment was deleted", |home| home.remove(&["log"], 0), 0),
    (
        "the first segment was deleted with its indexes",
        |home| home.remove(&["log", "index", "timeindex"], 0),
        0,
    ),
    (
        "a middle segment was deleted with all its files",
        |home| home.remove(&["log", "index", "timeindex", "snapshot"], 1),
        12,
    ),
    ("a middle segment lost its last batch", |home| home.cut_last_batch(&home.segments()[1]), 21),
    ("a middle segment was emptied", |home| home.rewrite(&home.segments()[1], b""), 12),
    (
        "the partition's directory was deleted",
        |home| {
            home.disk.remove_dir_all(&home.partition()).unwrap();
        },
        0,
    ),
];

/// Calls `check` for each kind of loss, with its name, the log, and the first missing offset.
fn each_loss(check: impl Fn(&str, &Home, i64)) {
    for clean in [true, false] {
        for (what, hurt, end) in LOSSES {
            for flush_messages in [1, i64::MAX] {
                let home = Home::new(flush_messages);
                home.filled(clean);
                hurt(&home);
                check(&format!("{what}, clean: {clean}"), &home, end);
            }
        }
    }
}

#[test]
fn synced_records_that_are_missing_make_the_log_read_only_at_each_open() {
    each_loss(|what, home, end| {
        let damage = home.assert_damaged(what);
        assert_eq!(damage.offset(), end, "{what}: {damage}");
    });
}

/// docs/design/0020-damaged-replicas.md.
#[test]
fn follower_cuts_a_log_at_the_damage_and_the_next_open_finds_it_whole() {
    each_loss(|what, home, end| {
        let (directory, damaged, recovery) = home.open();
        assert!(recovery.damage.is_some(), "{what}");
        let (log, recovery) = directory.give_up_damage(&damaged, ID).unwrap();
        assert!(matches!(damaged.write_error(), Some(StorageError::Closed)), "{what}");
        assert_eq!((recovery.damage, log.damage()), (None, None), "{what}");
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (0, end), "{what}");
        assert_eq!(directory.high_watermark("t", 0), Some(end), "{what}");
        drop((directory, damaged, log));
        let (_, log, recovery) = home.open();
        assert_eq!((recovery.damage, log.log_end_offset()), (None, end), "{what}");
        assert_eq!(append(&log, 1, NOW_MS).first_offset, end);
    });
}

/// docs/design/0020-damaged-replicas.md.
#[test]
fn power_cut_while_damage_is_cut_leaves_the_damage_or_the_cut_log() {
    for (what, hurt, end) in LOSSES {
        for operation in 0.. {
            let disk = FaultyDisk::default();
            let home = Home { disk: Arc::new(disk.clone()), ..Home::new(1) };
            home.filled(true);
            hurt(&home);
            home.sync();
            let (directory, damaged, _) = home.open();
            disk.arm(Fault::PowerCut, Operations::All, operation);
            if directory.give_up_damage(&damaged, ID).is_ok() {
                assert!(operation > 3, "{what}: it has {operation} operations only");
                break;
            }
            let left = disk.after_power_cut(operation);
            let home = Home { disk: Arc::new(left), ..Home::new(1) };
            let (directory, log, recovery) = home.open();
            if let Some(damage) = recovery.damage {
                assert!(damage.offset() <= end, "{what}, {operation}: {damage}");
                directory.give_up_damage(&log, ID).unwrap();
            }
            drop((directory, log));
            let (_, log, recovery) = home.open();
            let left = (recovery.damage, log.log_start_offset());
            assert_eq!(left, (None, 0), "{what}, {operation}");
            assert!(log.log_end_offset() <= end, "{what}, {operation}");
        }
    }
}

/// docs/design/0020-damaged-replicas.md.
#[test]
fn second_look_finds_the_same_log_or_damage() {
    let home = Home::new(1);
    home.filled(false);
    let (directory, log, _) = home.open();
    let (log, recovery) = directory.look_again(&log, ID).unwrap();
    assert_eq!((recovery.damage, log.log_end_offset()), (None, 30));
    assert_eq!(append(&log, 3, NOW_MS).first_offset, 30);
    home.flip(1, 100);
    let (log, recovery) = directory.look_again(&log, ID).unwrap();
    assert!(matches!(recovery.damage, Some(Damage::Batch { .. })), "{recovery:?}");
    assert!(log.append_as_leader(&mut batch(1, 10, NOW_MS), LEADER).is_err());
    drop((directory, log));
    assert!(matches!(home.open().2.damage, Some(Damage::Batch { .. })));
}

#[test]
fn compacted_log_may_have_gaps_but_a_missing_segment_is_damage() {
    let compacted = || {
        let mut home = Home::new(1);
        home.config.cleanup_policy = CleanupPolicy { delete: false, compact: true };
        home.filled(true);
        home
    };
    let home = compacted();
    let segment = home.segments()[1].clone();
    for suffix in ["log", "index", "timeindex"] {
        let path = segment.with_extension(suffix);
        home.disk.rename(&path, &home.dir.join(suffix)).unwrap();
    }
    let (_, log, recovery) = home.open();
    assert_eq!((recovery, log.log_end_offset()), (Recovery::default(), 30));
    let home = compacted();
    home.disk.remove_file(&home.segments()[1]).unwrap();
    let damage = home.assert_damaged("a middle segment was deleted");
    assert_eq!(damage, Damage::Gap { offset: 12, last_offset: 23 });
}

/// A second open used the end of a damaged log as its recovery point, and cut the records after it.
#[test]
fn a_damaged_log_keeps_its_recovery_point_and_its_records() {
    let home = Home::new(i64::MAX);
    home.filled(false);
    let path = home.segments()[1].clone();
    let mut bytes = home.disk.read(&path).unwrap();
    bytes[70] ^= 255;
    home.rewrite(&path, &bytes);
    // A segment without its index is not trusted, so it is read again.
    home.disk.remove_file(&path.with_extension("index")).unwrap();
    let before = home.segments();
    let damage = home.assert_damaged("a batch was damaged");
    assert_eq!(damage, Damage::Batch { offset: 12 });
    assert_eq!((home.segments(), home.disk.read(&path).unwrap()), (before, bytes));
}

/// In mode `os` a power cut left most logs read-only, although the damaged records had not been
/// promised.
#[test]
fn damage_above_the_recovery_point_is_cut_and_reported_unless_each_append_was_synced() {
    for (flush_messages, is_cut) in [(i64::MAX, true), (1, false)] {
        let home = Home::new(flush_messages);
        home.filled(false);
        let (_, log, _) = home.open();
        for n in 0..2 {
            append(&log, 3, NOW_MS + n);
        }
        drop(log);
        let path = home.segments().last().unwrap().clone();
        let mut bytes = home.disk.read(&path).unwrap();
        let boundaries = home.boundaries(&path);
        bytes[boundaries[boundaries.len() - 2] - 1] ^= 255;
        home.rewrite(&path, &bytes);
        let (_, log, recovery) = home.open();
        assert_eq!(recovery.damage.is_none(), is_cut, "{recovery:?}");
        assert_eq!(log.log_end_offset(), 30);
        if is_cut {
            assert_eq!((recovery.truncated_at, log.is_read_only()), (Some(30), false));
            assert_eq!(append(&log, 1, NOW_MS).first_offset, 30);
        }
    }
}

/// No CRC covers base offsets: repair cut one batch after the one with the wrong base offset.
#[test]
fn log_ends_before_a_batch_whose_base_offset_contradicts_its_neighbours() {
    for batch in 0..4 {
        let dir = tempfile::tempdir().unwrap();
        let home = on_real_disk(dir.path());
        home.filled_with(60, 0, true);
        let position = home.boundaries(&home.segments()[1])[batch];
        home.flip(1, position + 7);
        let end = 12 + 3 * batch as i64;
        let repair = repair(&home.dir);
        let cut = repair.look(&home.partition(), &Arc::default()).unwrap().unwrap();
        let first_offset = end ^ 64;
        let (last_offset, next_base) = (first_offset + 2, Some(24));
        let damage = Damage::Misplaced { offset: end, first_offset, last_offset, next_base };
        assert_eq!((cut.offset, cut.damage), (end, Some(damage)));
        repair.cut(&home.partition(), &Arc::default()).unwrap();
        assert_eq!(repair.look(&home.partition(), &Arc::default()).unwrap(), None);
        drop(repair);
        let (_, log, recovery) = home.open();
        assert_eq!((recovery.damage, log.log_end_offset()), (None, end));
        assert_eq!(append(&log, 1, NOW_MS).first_offset, end);
    }
}

#[test]
fn log_starts_that_are_malformed_are_named_with_a_remedy() {
    for content in [&b"?"[..], b"0\n1\nt 0\n", b"0\n2\nt 0 3\n", b"\xff", b"", b"0\n1\nt 0 3"] {
        let dir = tempfile::tempdir().unwrap();
        let home = on_real_disk(dir.path());
        home.filled(true);
        let path = home.dir.join("log-start-offset-checkpoint");
        home.rewrite(&path, content);
        let repair = repair(&home.dir);
        let error = repair.look(&home.partition(), &Arc::default()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{} is malformed: ", path.display())), "{error}");
        assert!(error.contains("restore or correct it, or remove it"), "{error}");
        home.disk.remove_file(&path).unwrap();
        assert_eq!(repair.look(&home.partition(), &Arc::default()).unwrap(), None);
        drop(repair);
        let (_, log, recovery) = home.open();
        assert_eq!((recovery, log.log_end_offset()), (Recovery::default(), 30));
    }
}

#[test]
fn other_checkpoints_that_are_malformed_are_reported_and_written_again() {
    let names = [
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "cleaner-offset-checkpoint",
    ];
    let home = Home::new(1);
    home.filled(true);
    for name in &names {
        home.disk.write_atomically(&home.dir.join(name), b"?").unwrap();
    }
    let (directory, log, recovery) = home.open();
    let warnings = directory.warnings();
    assert_eq!((warnings.len(), log.log_end_offset(), recovery.damage), (3, 30, None));
    for (name, warning) in names.iter().zip(&warnings) {
        let path = home.dir.join(name);
        assert!(warning.starts_with(&format!("{} is malformed: ", path.display())), "{warning}");
    }
    directory.checkpoint(&[]).unwrap();
    drop((directory, log));
    assert_eq!(home.open().0.warnings(), Vec::<String>::new());
}

#[test]
fn unreadable_recovery_points_let_nothing_be_cut() {
    let home = Home::new(i64::MAX);
    home.filled(false);
    home.rewrite(&home.dir.join("recovery-point-offset-checkpoint"), b"?");
    let path = home.segments()[1].clone();
    let mut bytes = home.disk.read(&path).unwrap();
    bytes[70] ^= 255;
    home.rewrite(&path, &bytes);
    let (_, _, recovery) = home.open();
    assert_eq!(recovery.damage, Some(Damage::Batch { offset: 12 }));
}

/// A truncation that a crash interrupts is not a loss: the checkpoints are lowered before records
/// are removed.
#[test]
fn truncation_lowers_the_recovery_point_before_it_removes_records() {
    let home = Home::new(1);
    home.filled(false);
    let (directory, log, _) = home.open();
    log.flush().unwrap();
    directory.checkpoint(&[]).unwrap();
    directory.truncate_log(&log, 13).unwrap();
    drop((directory, log));
    let (_, log, recovery) = home.open();
    assert_eq!((recovery.damage, log.log_end_offset()), (None, 12));
    assert_eq!(append(&log, 1, NOW_MS).first_offset, 12);
}

/// Like a follower whose log ends below its leader's log start offset (contract/replication.md#22).
#[test]
fn log_restarted_above_its_end_is_not_damaged_and_keeps_its_start() {
    let home = Home::new(1);
    home.filled(false);
    let (directory, log, _) = home.open();
    log.flush().unwrap();
    directory.checkpoint(&[("t".to_owned(), 0, 20)]).unwrap();
    directory.restart_log(&log, 100).unwrap();
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (100, 100));
    drop((directory, log));
    let (directory, log, recovery) = home.open();
    assert_eq!((recovery.damage, log.log_start_offset()), (None, 100));
    assert_eq!(append(&log, 2, NOW_MS).first_offset, 100);
    log.flush().unwrap();
    directory.checkpoint(&[]).unwrap();
    drop((directory, log));
    let (_, log, recovery) = home.open();
    let offsets = (log.log_start_offset(), log.log_end_offset());
    assert_eq!((recovery.damage, offsets), (None, (100, 102)));
}

/// Nothing is appended after the new start, and the stop is clean.
#[test]
fn empty_restarted_log_is_not_damaged_after_a_clean_stop() {
    for topic in ["t", "__cluster_metadata"] {
        let home = Home { topic, ..Home::new(1) };
        home.filled(false);
        let (directory, log, _) = home.open();
        directory.restart_log(&log, 50).unwrap();
        directory.close(true).unwrap();
        for start in [50, 60, 60] {
            let (directory, log, recovery) = home.open();
            assert_eq!(recovery.damage, None, "{topic}");
            assert!([50, 60].contains(&log.log_start_offset()), "{topic}");
            directory.restart_log(&log, start).unwrap();
            assert_eq!((log.log_start_offset(), log.log_end_offset()), (start, start));
            directory.close(true).unwrap();
        }
    }
}

/// A kill at any operation on files.
#[test]
fn interrupted_restart_of_a_log_is_not_damage() {
    for operation in 0.. {
        let disk = FaultyDisk::default();
        let home = Home { disk: Arc::new(disk.clone()), ..Home::new(1) };
        home.filled(false);
        let (directory, log, _) = home.open();
        log.flush().unwrap();
        directory.checkpoint(&[("t".to_owned(), 0, 20)]).unwrap();
        // Restarted once before: its start offset is the base offset of its first segment, and
        // recorded nowhere else.
        directory.restart_log(&log, 50).unwrap();
        append(&log, 2, NOW_MS);
        log.flush().unwrap();
        directory.checkpoint(&[("t".to_owned(), 0, 52)]).unwrap();
        drop((directory, log));
        let (directory, log, _) = home.open();
        directory.checkpoint(&[]).unwrap();
        disk.arm(Fault::PowerCut, Operations::All, operation);
        let ended = directory.restart_log(&log, 100);
        let killed = Home { disk: Arc::new(disk.after_power_cut(1)), ..Home::new(1) };
        drop((directory, log));
        let (directory, log, recovery) = killed.open();
        assert_eq!(recovery.damage, None, "operation {operation}");
        let offsets = (log.log_start_offset(), log.log_end_offset());
        let is_old = offsets.1 <= 52;
        assert!(is_old || offsets == (100, 100), "operation {operation}: {offsets:?}");
        directory.restart_log(&log, 100).unwrap();
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (100, 100));
        if ended.is_ok() {
            assert!(operation > 10, "it has {operation} operations only");
            break;
        }
    }
}

#[test]
fn checkpoints_of_a_deleted_log_do_not_make_a_new_one_damaged() {
    let home = Home::new(1);
    home.filled(false);
    let (directory, log, _) = home.open();
    directory.delete_log(&log).unwrap();
    let config = Arc::new(home.config.clone());
    let (log, _) = directory.open_log("t", 0, ID, config).unwrap();
    append(&log, 3, NOW_MS);
    drop((directory, log));
    let (directory, log, recovery) = home.open();
    assert_eq!((recovery.damage, log.log_end_offset()), (None, 3));
    directory.remove_deleted(NOW_MS + 100_000).unwrap();
    drop((directory, log));
    let (_, log, recovery) = home.open();
    assert_eq!((recovery.damage, log.log_end_offset()), (None, 3));
}

#[test]
fn repair_reports_the_damage_of_the_broker_and_makes_the_log_writable() {
    for (what, hurt, end) in LOSSES {
        let dir = tempfile::tempdir().unwrap();
        let home = on_real_disk(dir.path());
        home.filled(true);
        hurt(&home);
        let damage = home.assert_damaged(what);
        let repair = repair(&home.dir);
        let partitions = repair.partitions().unwrap();
        assert_eq!(partitions, [home.partition()], "{what}");
        let config = Arc::default();
        let cut = repair.look(&partitions[0], &config).unwrap().unwrap();
        // Records after a lost beginning are kept.
        let end = if matches!(damage, Damage::Beginning { .. }) { 30 } else { end };
        assert_eq!((cut.offset, cut.damage), (end, Some(damage)), "{what}");
        repair.cut(&partitions[0], &config).unwrap();
        assert_eq!(repair.look(&partitions[0], &config).unwrap(), None, "{what}");
        drop(repair);
        let (_, log, recovery) = home.open();
        assert_eq!((recovery.damage, log.log_end_offset()), (None, end), "{what}");
        assert_eq!(append(&log, 1, NOW_MS).first_offset, end);
    }
}

fn on_real_disk(dir: &Path) -> Home {
    Home { disk: Arc::new(RealDisk), dir: dir.to_owned(), ..Home::new(1) }
}

fn repair(dir: &Path) -> Repair {
    Repair::open(dir, Arc::new(ManualClock::new(NOW_MS))).unwrap()
}

#[test]
fn repair_can_keep_the_records_after_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    let home = on_real_disk(dir.path());
    home.filled(true);
    home.remove(&["log", "index", "timeindex", "snapshot"], 1);
    let lost = home.assert_damaged("a middle segment was deleted with all its files");
    assert_eq!(lost, Damage::Gap { offset: 12, last_offset: 23 });
    let repair = repair(&home.dir);
    let cut = repair.look(&home.partition(), &Arc::default()).unwrap().unwrap();
    assert_eq!((cut.offset, cut.gap_end), (12, Some(24)));
    repair.keep(&home.partition(), &Arc::default()).unwrap();
    assert_eq!(repair.look(&home.partition(), &Arc::default()).unwrap(), None);
    drop(repair);
    for open in 0..2 {
        let (directory, log, recovery) = home.open();
        assert_eq!((recovery.damage, log.log_end_offset()), (None, 30 + open));
        assert_eq!(log.read(12, 1, 30, true).unwrap().base_offset, 24);
        append(&log, 1, NOW_MS);
        log.flush().unwrap();
        directory.checkpoint(&[]).unwrap();
        directory.close(true).unwrap();
    }
}

/// The files of a log of five segments after the loss of or damage to any of them.
const HURTS: [(&str, Hurt); 28] = [
    ("nothing", |_| {}),
    ("the first segment", |home| home.remove(&ALL_FILES, 0)),
    ("the .log of the first segment", |home| home.remove(&["log"], 0)),
    ("the content of the first segment", |home| home.rewrite(&home.segments()[0], b"")),
    ("a middle segment", |home| home.remove(&ALL_FILES, 2)),
    ("the .log of a middle segment", |home| home.remove(&["log"], 2)),
    ("two middle segments that adjoin", |home| {
        home.remove(&["log"], 2);
        home.remove(&["log"], 2);
    }),
    ("two middle segments apart", |home| {
        home.remove(&["log"], 3);
        home.remove(&["log"], 1);
    }),
    ("the last batch of a middle segment", |home| home.cut_last_batch(&home.segments()[2])),
    ("all but the first batch of a middle segment", |home| home.keep_bytes(2, |all| all[1])),
    ("the content of a middle segment", |home| home.rewrite(&home.segments()[2], b"")),
    ("half a batch of a middle segment", |home| home.keep_bytes(2, |all| all[2] - 9)),
    ("the end of one middle segment and the .log of the next", |home| {
        home.remove(&["log"], 3);
        home.cut_last_batch(&home.segments()[2]);
    }),
    ("the contents of two middle segments", |home| {
        home.rewrite(&home.segments()[2], b"");
        home.rewrite(&home.segments()[3], b"");
    }),
    ("the last segment", |home| home.remove(&ALL_FILES, 4)),
    ("the .log of the last segment", |home| home.remove(&["log"], 4)),
    ("the last batch of the last segment", |home| home.cut_last_batch(&home.segments()[4])),
    ("half a batch of the last segment", |home| home.keep_bytes(4, |all| all[1] + 9)),
    ("the content of the last segment", |home| home.rewrite(&home.segments()[4], b"")),
    ("every .log", |home| (0..5).for_each(|_| home.remove(&["log"], 0))),
    ("every segment", |home| (0..5).for_each(|_| home.remove(&ALL_FILES, 0))),
    ("a byte of a middle segment", |home| home.flip(2, 70)),
    ("a base offset in a middle segment", |home| home.flip(2, 7)),
    ("a magic byte of a middle segment", |home| home.flip(3, 16)),
    ("a byte of the last segment", |home| home.flip(4, 70)),
    ("all offset indexes", |home| (0..5).for_each(|n| home.remove(&["index"], n))),
    ("the .log of a middle segment, by renaming", |home| {
        let path = &home.segments()[2];
        home.disk.rename(path, &path.with_extension("log.deleted")).unwrap();
    }),
    ("bytes behind the last segment's end", |home| {
        let path = &home.segments()[4];
        let bytes = home.disk.read(path).unwrap();
        home.rewrite(path, &[&bytes[..], &[255; 77]].concat());
    }),
];

const ALL_FILES: [&str; 4] = ["log", "index", "timeindex", "snapshot"];

#[test]
fn repaired_log_is_whole_at_the_next_look_and_accepts_appends() {
    for (what, hurt) in HURTS {
        for (clean, start, keeps) in [(true, 0, true), (false, 13, true), (false, 0, false)] {
            let what = format!("{what}; clean: {clean}, start: {start}, keeps: {keeps}");
            let dir = tempfile::tempdir().unwrap();
            let mut home = on_real_disk(dir.path());
            home.config.flush_messages = i64::MAX;
            home.filled_with(20, start, clean);
            assert_eq!(home.segments().len(), 5);
            hurt(&home);
            home.agree(keeps, &what);
            let end = home.open().1.log_end_offset();
            for open in 0..2 {
                let (directory, log, recovery) = home.open();
                assert_eq!((recovery.damage, log.log_end_offset()), (None, end + open), "{what}");
                assert_eq!(append(&log, 1, NOW_MS).first_offset, end + open, "{what}");
                log.flush().unwrap();
                directory.checkpoint(&[]).unwrap();
                directory.close(clean).unwrap();
            }
        }
    }
}

#[test]
fn repair_keeps_every_record_after_a_gap_whatever_the_evidence_of_lost_ones() {
    let gaps: [(&str, Hurt, i64, i64); 5] = [
        ("no file", |home| home.remove(&ALL_FILES, 2), 24, 36),
        ("indexes without a .log", |home| home.remove(&["log"], 2), 24, 36),
        ("indexes of an empty .log", |home| home.rewrite(&home.segments()[2], b""), 24, 36),
        ("indexes of a shorter .log", |home| home.keep_bytes(2, |all| all[1]), 27, 36),
        ("indexes of an empty first .log", |home| home.rewrite(&home.segments()[0], b""), 0, 12),
    ];
    for (what, hurt, from, to) in gaps {
        for (clean, compact) in [(true, false), (false, false), (true, true), (false, true)] {
            let what = format!("{what}; clean: {clean}, compact: {compact}");
            let dir = tempfile::tempdir().unwrap();
            let mut home = on_real_disk(dir.path());
            home.config.cleanup_policy = CleanupPolicy { delete: !compact, compact };
            home.config.flush_messages = i64::MAX;
            home.filled_with(20, 0, clean);
            hurt(&home);
            home.agree(true, &what);
            let (_, log, recovery) = home.open();
            assert_eq!((recovery.damage, log.log_end_offset()), (None, 60), "{what}");
            let first_at = |offset| log.read(offset, 1, 60, true).unwrap().base_offset;
            let left: Vec<_> = (0..60).step_by(3).map(first_at).collect();
            let wanted =
                (0..60).step_by(3).map(|at| if (from..to).contains(&at) { to } else { at });
            assert_eq!(left, wanted.collect::<Vec<_>>(), "{what}");
        }
    }
}

/// The broker's messages name the partition's directory, so repair must accept it.
#[test]
fn repair_accepts_an_empty_or_missing_partition_by_name() {
    for is_missing in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let home = on_real_disk(dir.path());
        home.filled(true);
        home.disk.create_anew(&home.dir.join("meta.properties")).unwrap();
        home.disk.remove_dir_all(&home.partition()).unwrap();
        if !is_missing {
            home.disk.create_dir_all(&home.partition()).unwrap();
        }
        let repair = repair(&home.partition());
        assert_eq!(repair.partitions().unwrap(), [home.partition()]);
        let cut = repair.look(&home.partition(), &Arc::default()).unwrap().unwrap();
        assert_eq!(cut.damage, Some(Damage::Lost { offset: 0, synced_end: 30 }));
        repair.cut(&home.partition(), &Arc::default()).unwrap();
        assert_eq!(repair.look(&home.partition(), &Arc::default()).unwrap(), None);
        drop(repair);
        let never_made = self::repair(&home.dir.join("other-0"));
        assert_eq!(never_made.partitions().unwrap(), Vec::<PathBuf>::new());
        drop(never_made);
        let (_, log, recovery) = home.open();
        assert_eq!((recovery.damage, append(&log, 1, NOW_MS).first_offset), (None, 0));
    }
}

/// It contains its checkpoints, like a data directory.
#[test]
fn library_log_without_segments_is_not_a_data_directory() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["events-3", "events"] {
        let path = dir.path().join(name);
        let clock = Arc::new(ManualClock::new(NOW_MS));
        let opened = LibraryLog::open(&path, Arc::new(Home::new(1).config), clock);
        let (library, _) = opened.unwrap();
        append(&library.log(), 2, NOW_MS);
        library.close().unwrap();
        std::fs::remove_file(path.join("00000000000000000000.log")).unwrap();
        let repair = repair(&path);
        assert_eq!(repair.partitions().unwrap(), std::slice::from_ref(&path));
        let cut = repair.look(&path, &Arc::default()).unwrap().unwrap();
        assert_eq!(cut.damage, Some(Damage::Lost { offset: 0, synced_end: 2 }));
    }
}

/// The checkpoints contained the deleted topic while its directory waited for removal.
#[test]
fn recreated_topic_is_whole_for_repair_and_readers() {
    let dir = tempfile::tempdir().unwrap();
    let home = on_real_disk(dir.path());
    home.filled(false);
    let (directory, log, _) = home.open();
    directory.delete_log(&log).unwrap();
    let (log, _) = directory.open_log("t", 0, ID, Arc::new(home.config.clone())).unwrap();
    append(&log, 3, NOW_MS);
    log.flush().unwrap();
    drop((directory, log));
    home.disk.create_anew(&home.dir.join("meta.properties")).unwrap();
    let clock = Arc::new(ManualClock::new(NOW_MS));
    let (_, recovery) =
        LibraryLog::open_read_only(&home.partition(), Arc::default(), clock).unwrap();
    assert_eq!(recovery.damage, None);
    let repair = repair(&home.dir);
    assert_eq!(repair.partitions().unwrap(), [home.partition()]);
    assert_eq!(repair.look(&home.partition(), &Arc::default()).unwrap(), None);
}

/// Batches are stored as values, for example by a mirror. A torn one was treated as damage because
/// it contained a valid batch.
#[test]
fn batch_inside_the_value_of_a_torn_record_is_not_damage() {
    let home = Home::new(1);
    home.filled(false);
    let (_, log, _) = home.open();
    let mut inner = batch(2, 10, NOW_MS);
    inner[..8].copy_from_slice(&1000i64.to_be_bytes());
    let mut builder = BatchBuilder::new(BatchOptions::default());
    builder.append(NOW_MS, None, Some(&[&inner[..], &[7; 100]].concat()), &[]).unwrap();
    let mut outer = Vec::new();
    builder.build(&mut outer).unwrap();
    log.append_as_leader(&mut outer, LEADER).unwrap();
    let (base_offset, end) = *log.segments().last().unwrap();
    drop(log);
    let path = home.partition().join(format!("{base_offset:020}.log"));
    let bytes = home.disk.read(&path).unwrap();
    home.rewrite(&path, &bytes[..end as usize - 20]);
    let (_, log, recovery) = home.open();
    assert_eq!(
        (recovery.damage, recovery.truncated_at, log.log_end_offset()),
        (None, Some(30), 30)
    );
}

/// The header was read to rebuild the producer state, and the log could not be opened at all.
#[test]
fn bad_header_in_a_trusted_segment_is_damage_and_not_an_open_error() {
    let home = Home::new(1);
    home.filled(true);
    for entry in home.disk.list(&home.partition()).unwrap() {
        let path = home.partition().join(&entry.name);
        if path.extension().is_some_and(|suffix| suffix == "snapshot") {
            home.disk.remove_file(&path).unwrap();
        }
    }
    let path = home.segments()[0].clone();
    let mut bytes = home.disk.read(&path).unwrap();
    let second = home.boundaries(&path)[1];
    bytes[second + 16] = 9;
    home.rewrite(&path, &bytes);
    assert_eq!(home.assert_damaged("a magic byte was flipped"), Damage::Batch { offset: 3 });
}

#[test]
fn a_wrong_index_entry_hides_no_record() {
    let home = Home::new(1);
    home.filled(true);
    let index = home.segments()[0].with_extension("index");
    let mut entries = home.disk.read(&index).unwrap();
    assert!(entries.len() >= 8);
    // The first entry points to the last batch of the segment.
    let boundaries = home.boundaries(&home.segments()[0]);
    let position = boundaries[boundaries.len() - 2] as u32;
    entries.truncate(8);
    entries[..4].copy_from_slice(&1u32.to_be_bytes());
    entries[4..].copy_from_slice(&position.to_be_bytes());
    let two = [&entries[..], &[0, 0, 0, 11][..], &position.to_be_bytes()[..]].concat();
    for wrong in [entries, two] {
        home.rewrite(&index, &wrong);
        let (_, log, _) = home.open();
        for offset in 0..30 {
            let data = log.read(offset, 1, 30, true).unwrap();
            assert_eq!(data.base_offset, offset / 3 * 3);
        }
    }
}

/// The CRC does not cover base offsets. The reader waited forever at a batch whose offsets seemed
/// to be in the future.
#[test]
fn a_flipped_base_offset_is_an_error_for_readers() {
    for (batch_index, byte) in [(1, 0), (1, 5), (1, 7), (2, 7), (3, 1), (0, 9), (1, 9)] {
        let home = Home::new(1);
        home.filled(true);
        let path = home.segments()[0].clone();
        let mut bytes = home.disk.read(&path).unwrap();
        let (_, log, _) = home.open();
        bytes[home.boundaries(&path)[batch_index] + byte] ^= 64;
        home.rewrite(&path, &bytes);
        let read = log.read(batch_index as i64 * 3, 1 << 20, 30, true);
        assert!(
            matches!(read, Err(ReadError::Storage(StorageError::Malformed { .. }))),
            "{read:?}"
        );
    }
}

/// Its records had the offsets of earlier records, and other offsets were missing.
#[test]
fn a_first_batch_that_begins_below_its_segment_is_an_error_for_readers() {
    let home = Home::new(1);
    home.filled(true);
    let (_, log, _) = home.open();
    let path = home.segments()[1].clone();
    let mut bytes = home.disk.read(&path).unwrap();
    let base = Batch::split(&bytes).unwrap().0.base_offset();
    bytes[..8].copy_from_slice(&(base - 1).to_be_bytes());
    home.rewrite(&path, &bytes);
    for offset in base..base + 3 {
        let read = log.read(offset, 1 << 20, 30, true);
        assert!(
            matches!(read, Err(ReadError::Storage(StorageError::Malformed { .. }))),
            "{read:?}"
        );
    }
    assert_eq!(log.read(0, 1 << 20, 30, true).unwrap().next_offset, base);
}

#[test]
fn a_negative_offset_truncates_nothing() {
    let home = Home::new(1);
    home.filled(false);
    let (directory, log, _) = home.open();
    let refused = |result| matches!(result, Err(StorageError::NegativeOffset { offset: -5 }));
    assert!(refused(log.truncate_to(-5)) && refused(directory.truncate_log(&log, -5)));
    assert!(refused(log.truncate_fully_and_start_at(-5)));
    assert_eq!((log.log_end_offset(), log.recovery_point()), (30, 30));
}

#[test]
fn read_of_any_size_succeeds() {
    let home = Home::new(1);
    home.filled(false);
    let (_, log, _) = home.open();
    assert_eq!(log.read(0, usize::MAX, i64::MAX, true).unwrap().next_offset, 12);
    assert_eq!(log.fetch(0, usize::MAX, i64::MAX, true).unwrap().next_offset, 12);
}

/// Apache Kafka creates empty checkpoints when it starts.
#[test]
fn empty_checkpoints_have_no_entries() {
    let home = Home::new(1);
    home.filled(false);
    home.disk.create_anew(&home.dir.join("meta.properties")).unwrap();
    for name in ["recovery-point", "log-start", "replication"] {
        let path = home.dir.join(format!("{name}-offset-checkpoint"));
        home.disk.create_anew(&path).unwrap();
    }
    let (_, log, recovery) = home.open();
    assert_eq!((recovery.damage, log.log_end_offset()), (None, 30));
}

#[test]
fn a_library_log_opens_again_whatever_its_directory_is_called() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["with a space", " ", "a b-0", "two\nlines", "tab\t 1 2"] {
        let path = dir.path().join(name);
        for open in 0..3 {
            let clock = Arc::new(ManualClock::new(NOW_MS));
            let config = Arc::new(Home::new(1).config);
            let (library, recovery) = LibraryLog::open(&path, config, clock).unwrap();
            assert_eq!((recovery.damage, library.log().log_end_offset()), (None, open * 2));
            append(&library.log(), 2, NOW_MS);
            library.log().delete_before(1).unwrap();
            assert_eq!(library.log().log_start_offset(), 1, "{name:?}");
            library.close().unwrap();
        }
    }
}

/// Repair and the next start must agree about deleted partitions.
#[test]
fn repair_lists_missing_but_not_deleted_partitions() {
    let dir = tempfile::tempdir().unwrap();
    let deleted = "L".repeat(249);
    let rows = format!("0\n2\n{deleted} 0 5\nt 0 5\n");
    std::fs::write(dir.path().join("recovery-point-offset-checkpoint"), rows).unwrap();
    let renamed = format!("{}-0.{:032x}-delete", "L".repeat(213), 7);
    for name in [&*renamed, "t-0.x-0"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    let there = ["t-0", "t-0.x-0"].map(|name| dir.path().join(name));
    assert_eq!(repair(dir.path()).partitions().unwrap(), there);
}

/// Like Kafka, which only loads files.
#[test]
fn directory_named_like_a_segment_file_is_ignored_by_every_open() {
    for name in ["00000000000000009999.log", "00000000000000009999.index"] {
        let dir = tempfile::tempdir().unwrap();
        let home = on_real_disk(dir.path());
        home.filled(false);
        home.disk.create_dir_all(&home.partition().join(name)).unwrap();
        let looked = repair(&home.dir).look(&home.partition(), &Arc::default()).unwrap();
        assert_eq!(looked, None, "{name}");
        let (_, log, recovery) = home.open();
        assert_eq!((recovery.damage, log.log_end_offset()), (None, 30), "{name}");
        assert_eq!(append(&log, 1, NOW_MS).first_offset, 30);
        assert!(home.partition().join(name).is_dir());
    }
}

#[test]
fn an_open_of_a_damaged_log_changes_no_file() {
    let home = Home::new(1);
    home.filled(false);
    // A segment to rebuild, a file of an interrupted run, and a missing synced batch.
    home.remove(&["index"], 0);
    let leftover = home.segments()[1].with_extension("log.deleted");
    home.disk.open(&leftover, OpenMode::Create).unwrap();
    home.cut_last_batch(home.segments().last().unwrap());
    let files = || {
        let entries = home.disk.list(&home.partition()).unwrap().into_iter();
        let paths = entries.map(|entry| home.partition().join(entry.name));
        paths.map(|path| (path.clone(), home.disk.read(&path).unwrap())).collect::<Vec<_>>()
    };
    let before = files();
    let (_, log, recovery) = home.open();
    assert!(recovery.damage.is_some() && recovery.segments_recovered > 0, "{recovery:?}");
    assert_eq!(log.read(0, 1 << 20, 30, true).unwrap().base_offset, 0);
    assert_eq!(files(), before);
}

/// One digit of the checkpoint was changed: an open for writing deleted every segment without a
/// warning.
#[test]
fn log_start_above_the_log_end_is_damage_and_repair_trusts_the_records() {
    for (clean, flush_messages) in [(true, 1), (true, i64::MAX), (false, 1), (false, i64::MAX)] {
        let dir = tempfile::tempdir().unwrap();
        let mut home = on_real_disk(dir.path());
        home.config.flush_messages = flush_messages;
        home.filled_with(10, 10, clean);
        let path = home.dir.join("log-start-offset-checkpoint");
        let row = String::from_utf8(home.disk.read(&path).unwrap()).unwrap();
        home.rewrite(&path, row.replace("t 0 10", "t 0 90").as_bytes());
        let before = home.segments();
        let damage = home.assert_damaged("the checkpointed log start was changed");
        assert_eq!(damage, Damage::LogStart { offset: 30, log_start_offset: 90, synced_end: 0 });
        assert!(!damage.to_string().contains("synced"));
        assert_eq!(home.segments(), before);
        home.agree(false, "the checkpointed log start was changed");
        let (_, log, recovery) = home.open();
        assert_eq!(recovery.damage, None);
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (0, 30));
        assert_eq!(append(&log, 1, NOW_MS).first_offset, 30);
    }
}

#[test]
fn log_put_back_from_a_backup_below_its_log_start_keeps_its_records() {
    let dir = tempfile::tempdir().unwrap();
    let home = on_real_disk(dir.path());
    home.filled(false);
    let backup: Vec<_> = home
        .segments()
        .into_iter()
        .map(|path| (path.clone(), home.disk.read(&path).unwrap()))
        .collect();
    let (directory, log, _) = home.open();
    for n in 0..30 {
        append(&log, 3, NOW_MS + 200 + n);
    }
    directory.delete_before(&log, 60).unwrap();
    directory.checkpoint(&[("t".to_owned(), 0, 120)]).unwrap();
    drop((directory, log));
    home.disk.remove_dir_all(&home.partition()).unwrap();
    home.disk.create_dir_all(&home.partition()).unwrap();
    for (path, bytes) in &backup {
        home.disk.open(path, OpenMode::Create).unwrap();
        home.rewrite(path, bytes);
    }
    let damage = home.assert_damaged("a backup was put back");
    assert_eq!(damage, Damage::LogStart { offset: 30, log_start_offset: 60, synced_end: 120 });
    assert!(damage.to_string().ends_with("offsets below 120 were synced"), "{damage}");
    home.agree(false, "a backup was put back");
    let (_, log, recovery) = home.open();
    assert_eq!((recovery.damage, log.log_start_offset(), log.log_end_offset()), (None, 0, 30));
}

#[test]
fn checkpointed_log_start_is_synced_before_it_is_checkpointed() {
    let home = Home::new(i64::MAX);
    let (directory, log, _) = home.open();
    for n in 0..10 {
        append(&log, 3, NOW_MS + n);
    }
    // As in a follower whose leader deleted records: they are not checkpointed immediately.
    log.delete_before(29).unwrap();
    directory.checkpoint(&[]).unwrap();
    let path = home.dir.join("log-start-offset-checkpoint");
    let told = || pykafka_log::checkpoint::read_offsets(&home.disk.read(&path).unwrap()).unwrap();
    assert!(told()[&("t".to_owned(), 0)] <= log.recovery_point());
    directory.record_log_starts([&*log]).unwrap();
    assert_eq!((told()[&("t".to_owned(), 0)], log.recovery_point()), (29, 30));
}

/// After a crash of the process before any checkpoint, only `flush.messages=1` shows that records
/// were synced.
#[test]
fn gap_before_batches_is_damage_without_a_recovery_point_where_each_append_is_synced() {
    let hurts: [(&str, Hurt); 3] = [
        ("a middle segment was deleted", |home| home.remove(&["log", "index", "timeindex"], 1)),
        ("a middle segment was emptied", |home| home.rewrite(&home.segments()[1], b"")),
        ("a middle segment lost its last batch", |home| home.cut_last_batch(&home.segments()[1])),
    ];
    for (what, hurt) in hurts {
        let home = Home::new(1);
        let (directory, log, _) = home.open();
        for n in 0..10 {
            append(&log, 3, NOW_MS + n * 10);
        }
        log.flush().unwrap();
        drop((directory, log));
        hurt(&home);
        let damage = home.assert_damaged(what);
        assert!(matches!(damage, Damage::Gap { .. }), "{what}: {damage}");
    }
}

/// An open for writing continued at the offset in the file's name, and an open for reading at the
/// log end offset.
#[test]
fn empty_file_named_like_a_later_segment_is_not_part_of_the_log() {
    for base_offset in [100_000, i64::MAX - 1, i64::MAX] {
        for (clean, flush_messages) in [(true, 1), (true, i64::MAX), (false, 1), (false, i64::MAX)]
        {
            let home = Home::new(flush_messages);
            home.filled(clean);
            let path = home.partition().join(format!("{base_offset:020}.log"));
            home.disk.create_anew(&path).unwrap();
            let (directory, log, recovery) = home.open();
            assert_eq!((recovery.damage, log.log_end_offset()), (None, 30), "{base_offset}");
            let is_named = recovery.warnings.iter().any(|text| text.contains("does not adjoin"));
            assert_eq!(is_named, base_offset < i64::MAX, "{:?}", recovery.warnings);
            assert_eq!(append(&log, 1, NOW_MS).first_offset, 30);
            directory.close(true).unwrap();
            let (_, log, recovery) = home.open();
            assert_eq!((recovery.damage, log.log_end_offset()), (None, 31), "{base_offset}");
        }
    }
}

/// Any name that started with the name of a `.log` hid the loss of records before the first
/// segment.
#[test]
fn copy_of_a_segment_hides_no_loss_and_is_not_removed() {
    for suffix in [".bak", ".tmp", ".swp", ".old", ".cleaned", ".deleted"] {
        let home = Home::new(i64::MAX);
        home.filled(true);
        let path = home.segments()[0].clone();
        let copy = PathBuf::from(format!("{}{suffix}", path.display()));
        home.disk.rename(&path, &copy).unwrap();
        let damage = home.assert_damaged(suffix);
        assert_eq!(damage, Damage::Beginning { offset: 0, last_offset: 11 }, "{suffix}");
        assert!(home.disk.exists(&copy), "{suffix}");
    }
    for suffix in ["", ".old", ".deleted"] {
        let home = Home::new(i64::MAX);
        home.filled_with(10, 12, true);
        home.remove(&["log", "index", "timeindex"], 1);
        home.remove(&["log", "index", "timeindex"], 0);
        let older = home.partition().join(format!("{:020}.log{suffix}", 0));
        if !suffix.is_empty() {
            home.disk.create_anew(&older).unwrap();
        }
        let damage = home.assert_damaged(suffix);
        assert_eq!(damage, Damage::Beginning { offset: 12, last_offset: 23 }, "{suffix}");
    }
}

/// The damage that an open for reading, a look before a repair and an open for writing report.
/// Checks that it is the same.
fn agreed_verdict(home: &Home, what: &str) -> Option<Damage> {
    let clock = Arc::new(ManualClock::new(NOW_MS));
    let config = Arc::new(home.config.clone());
    let read_only = LibraryLog::open_read_only(&home.partition(), config.clone(), clock);
    let by_reader = read_only.unwrap().1.damage;
    let looked = repair(&home.dir).look(&home.partition(), &config).unwrap();
    let by_repair = looked.and_then(|cut| cut.damage);
    let (_, log, recovery) = home.open();
    assert_eq!((&by_reader, &by_repair), (&recovery.damage, &recovery.damage), "{what}");
    assert_eq!(log.damage(), recovery.damage, "{what}");
    recovery.damage
}

/// A log on the real disk in a data directory.
fn with_checkpoints(dir: &Path, clean: bool) -> Home {
    let home = on_real_disk(dir);
    home.filled(clean);
    home.disk.create_anew(&home.dir.join("meta.properties")).unwrap();
    home
}

/// After a crash before the first checkpoint, only `flush.messages=1` shows that records were
/// synced.
fn without_checkpoints(dir: &Path) -> Home {
    let home = with_checkpoints(dir, false);
    for name in ["recovery-point", "log-start", "replication"] {
        let path = home.dir.join(format!("{name}-offset-checkpoint"));
        home.disk.remove_file(&path).unwrap();
    }
    home
}

type Filled = fn(&Path) -> Home;

const FILLED: [(&str, Filled); 3] = [
    ("closed", |dir| with_checkpoints(dir, true)),
    ("killed", |dir| with_checkpoints(dir, false)),
    ("killed without checkpoints", without_checkpoints),
];

/// An open for writing reported damage, and `repair` reported none.
#[test]
fn empty_file_inside_the_offsets_of_a_segment_is_not_part_of_the_log() {
    for (how, filled) in FILLED {
        for base_offset in [1, 14, 29] {
            for size in [0, 5000] {
                let what = format!("{how}, {size} zeros at {base_offset}");
                let dir = tempfile::tempdir().unwrap();
                let home = filled(dir.path());
                let name = format!("{base_offset:020}.log");
                std::fs::write(home.partition().join(&name), vec![0; size]).unwrap();
                let clock = Arc::new(ManualClock::new(NOW_MS));
                let opened = LibraryLog::open_read_only(&home.partition(), Arc::default(), clock);
                let (reader, recovery) = opened.unwrap();
                assert_eq!(reader.log().log_end_offset(), 30, "{what}");
                let is_named = |text: &String| text.contains(&name) && text.contains("empty");
                assert!(recovery.warnings.iter().any(is_named), "{what}: {recovery:?}");
                assert_eq!(agreed_verdict(&home, &what), None, "{what}");
                assert!(!home.partition().join(&name).exists(), "{what}");
                let (_, log, recovery) = home.open();
                assert_eq!((recovery.damage, log.log_end_offset()), (None, 30), "{what}");
                let read = |offset| log.read(offset, 1, 30, true).unwrap().base_offset;
                assert!((0..30).all(|offset| read(offset) == offset / 3 * 3), "{what}");
                assert_eq!(append(&log, 1, NOW_MS).first_offset, 30, "{what}");
            }
        }
    }
}

#[test]
fn file_with_batches_inside_the_offsets_of_a_segment_is_damage_for_every_open() {
    for (how, filled) in FILLED {
        for (from, base_offset) in [(0, 5), (1, 5), (1, 17), (0, 26), (2, 3)] {
            let what = format!("{how}, a copy of segment {from} at {base_offset}");
            let dir = tempfile::tempdir().unwrap();
            let home = filled(dir.path());
            let copy = home.partition().join(format!("{base_offset:020}.log"));
            std::fs::copy(&home.segments()[from], &copy).unwrap();
            let damage = agreed_verdict(&home, &what).unwrap_or_else(|| panic!("{what}: whole"));
            let end = base_offset / 3 * 3;
            assert_eq!(damage.offset(), end, "{what}: {damage}");
            assert_eq!(home.assert_damaged(&what), damage, "{what}");
            // Without the file the log is whole: no other file was changed.
            std::fs::remove_file(&copy).unwrap();
            assert_eq!(agreed_verdict(&home, &what), None, "{what}");
            assert_eq!(home.open().1.log_end_offset(), 30, "{what}");
        }
    }
}

fn exchange(home: &Home, one: &Path, other: &Path) {
    let between = home.dir.join("between");
    for (from, to) in [(one, &*between), (other, one), (&*between, other)] {
        home.disk.rename(from, to).unwrap();
    }
}

/// Reads before the damage failed, and all records from the first exchanged segment on were cut as
/// a torn tail.
#[test]
fn exchanged_segments_are_damage_and_records_before_them_can_be_read() {
    for (how, filled) in FILLED {
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            for batches_left in [usize::MAX, 1] {
                let what = format!("{how}, {one} and {other}, batches left: {batches_left}");
                let dir = tempfile::tempdir().unwrap();
                let home = filled(dir.path());
                let segments = home.segments();
                for path in [&segments[one], &segments[other]] {
                    let ends = home.boundaries(path);
                    let bytes = home.disk.read(path).unwrap();
                    home.rewrite(path, &bytes[..ends[batches_left.min(ends.len() - 1)]]);
                }
                exchange(&home, &segments[one], &segments[other]);
                let damage =
                    agreed_verdict(&home, &what).unwrap_or_else(|| panic!("{what}: whole"));
                let end = 12 * one as i64;
                assert_eq!(damage.offset(), end, "{what}: {damage}");
                assert_eq!(home.assert_damaged(&what), damage, "{what}");
                let (_, log, _) = home.open();
                for offset in 0..end {
                    let data = log.read(offset, 1, end, true).unwrap();
                    assert_eq!(data.base_offset, offset / 3 * 3, "{what}");
                }
            }
        }
    }
}

#[test]
fn segment_with_the_content_of_an_earlier_one_is_not_a_torn_tail() {
    for (how, filled) in FILLED {
        for (from, to) in [(0, 2), (1, 2), (0, 1)] {
            let what = format!("{how}, {from} over {to}");
            let dir = tempfile::tempdir().unwrap();
            let home = filled(dir.path());
            let segments = home.segments();
            std::fs::copy(&segments[from], &segments[to]).unwrap();
            let damage = agreed_verdict(&home, &what).unwrap_or_else(|| panic!("{what}: whole"));
            assert_eq!(damage.offset(), 12 * to as i64, "{what}: {damage}");
            assert_eq!(home.assert_damaged(&what), damage, "{what}");
        }
    }
}

/// Wrong contents of a time index, as from a bad disk or another segment.
fn wrong_times(bytes: &[u8], other: &[u8]) -> Vec<(String, Vec<u8>)> {
    let entries = bytes.as_chunks::<12>().0;
    let mut wrong = vec![
        ("of another segment".to_owned(), other.to_vec()),
        ("empty".to_owned(), Vec::new()),
        ("reversed".to_owned(), entries.iter().rev().flatten().copied().collect()),
    ];
    for index in 0..entries.len() {
        let mut change = |what: &str, changed: Vec<u8>| {
            wrong.push((format!("{what} {index} of {}", entries.len()), changed));
        };
        change("cut at", bytes[..index * 12].to_vec());
        for (byte, bit) in [(2, 1), (6, 1), (7, 4), (7, 64), (11, 1), (11, 2), (11, 4), (11, 8)] {
            let mut changed = bytes.to_vec();
            changed[index * 12 + byte] ^= bit;
            change(&format!("bit {bit} of byte {byte} of entry"), changed);
        }
    }
    wrong
}

/// The indexes of another segment, or a changed entry, were trusted: look-ups by time skipped
/// records, and retention used the wrong time.
#[test]
fn wrong_time_index_hides_no_record_from_look_ups_by_time() {
    let mut home = Home::new(1);
    home.config.segment_bytes = 3000;
    home.config.index_interval_bytes = 200;
    home.filled_with(48, 0, true);
    let indexes: Vec<_> =
        home.segments().iter().map(|path| path.with_extension("timeindex")).collect();
    let right: Vec<_> = indexes.iter().map(|path| home.disk.read(path).unwrap()).collect();
    assert!(indexes.len() >= 3 && right.iter().all(|bytes| bytes.len() >= 36));
    for (index, path) in indexes.iter().enumerate() {
        for (what, bytes) in wrong_times(&right[index], &right[(index + 1) % right.len()]) {
            home.rewrite(path, &bytes);
            for open in 0..2 {
                let (directory, log, recovery) = home.open();
                let what = format!("{}: {what}, open {open}", path.display());
                assert_eq!((recovery.damage, log.log_end_offset()), (None, 144), "{what}");
                for batch in 0..48 {
                    let (wanted, offset) = (NOW_MS + batch * 10, batch * 3);
                    for (timestamp, offset) in [(wanted - 7, offset), (wanted + 2, offset + 2)] {
                        let found = log.offset_for_timestamp(timestamp, 144).unwrap();
                        assert_eq!(found.map(|found| found.offset), Some(offset), "{what}");
                    }
                }
                let newest = log.offset_of_max_timestamp().unwrap();
                assert_eq!(newest.map(|found| found.offset), Some(143), "{what}");
                directory.close(true).unwrap();
            }
            home.rewrite(path, &right[index]);
        }
    }
}

/// Changes the bytes of a batch.
type HurtBatch = fn(&mut [u8]);

const BATCH_HURTS: [(&str, HurtBatch); 6] = [
    ("a base offset", |batch| batch[7] ^= 64),
    ("a length", |batch| batch[9] ^= 1),
    ("a magic byte", |batch| batch[16] = 9),
    ("an offset delta", |batch| batch[25] ^= 1),
    ("a record", |batch| batch[70] ^= 1),
    ("all of it", |batch| batch.fill(0)),
];

/// `repair` cut every record, and no open could read one.
#[test]
fn damage_below_the_log_start_takes_no_record_above_it() {
    const START: i64 = 34;
    for (clean, flush_messages) in [(true, i64::MAX), (false, 1)] {
        for hurt_batch in [5, 8, 10] {
            for (hurt, change) in BATCH_HURTS {
                let what =
                    format!("clean: {clean}, {flush_messages}, {hurt} of batch {hurt_batch}");
                let dir = tempfile::tempdir().unwrap();
                let mut home = on_real_disk(dir.path());
                home.config.flush_messages = flush_messages;
                home.filled_with(20, START, clean);
                home.disk.create_anew(&home.dir.join("meta.properties")).unwrap();
                let path = &home.segments()[hurt_batch / 4];
                let ends = home.boundaries(path);
                let mut bytes = home.disk.read(path).unwrap();
                let at = hurt_batch % 4;
                change(&mut bytes[ends[at]..ends[at + 1]]);
                home.rewrite(path, &bytes);
                assert_eq!(agreed_verdict(&home, &what), None, "{what}");
                for open in 0..2 {
                    let (directory, log, recovery) = home.open();
                    let left = (log.log_start_offset(), log.log_end_offset());
                    assert_eq!((recovery.damage, left), (None, (START, 60 + open)), "{what}");
                    for offset in START..60 {
                        let data = log.read(offset, 1, 60, true).unwrap();
                        assert_eq!(data.base_offset, offset / 3 * 3, "{what}");
                    }
                    let found = log.offset_for_timestamp(NOW_MS, 60).unwrap();
                    assert_eq!(found.map(|found| found.offset), Some(START), "{what}");
                    assert_eq!(append(&log, 1, NOW_MS).first_offset, 60 + open, "{what}");
                    log.flush().unwrap();
                    directory.checkpoint(&[]).unwrap();
                    directory.close(clean).unwrap();
                }
            }
        }
    }
}

#[test]
fn unreadable_segment_is_noted_until_its_records_are_deleted() {
    let home = Home::new(1);
    home.filled(true);
    let never = Cancellation::default();
    {
        let (directory, log, _) = home.open();
        let file = log.dir().join(format!("{:020}.log", 0));
        // Overwrites the size of the first batch.
        home.disk.open(&file, OpenMode::Write).unwrap().write_at(&[0x55; 4], 8).unwrap();
        let read = log.read(0, 1 << 20, 30, true).unwrap_err();
        let ReadError::Storage(StorageError::Malformed { path, .. }) = read else {
            panic!("{read}")
        };
        directory.note_unreadable(&log, &path);
        directory.close(true).unwrap();
    }
    let (directory, log, recovery) = home.open();
    assert_eq!((recovery.damage, directory.is_unreadable("t", 0)), (None, true));
    let checked = directory.check_unreadable(&log, &never);
    assert!(matches!(checked, Err(StorageError::Malformed { .. })), "{checked:?}");
    assert!(directory.is_unreadable("t", 0));
    log.delete_before(log.segments()[1].0).unwrap();
    directory.check_unreadable(&log, &never).unwrap();
    assert!(!directory.is_unreadable("t", 0));
    directory.close(true).unwrap();
    drop((directory, log));
    assert!(!home.open().0.is_unreadable("t", 0));
}

#[test]
fn log_with_a_removed_or_renamed_directory_refuses_appends() {
    let remove: fn(&Path) = |dir| fs::remove_dir_all(dir).unwrap();
    let rename: fn(&Path) = |dir| fs::rename(dir, dir.with_extension("away")).unwrap();
    for displace in [remove, rename] {
        let parent = tempfile::tempdir().unwrap();
        let home = on_real_disk(parent.path());
        let (_directory, log, _) = home.open();
        append(&log, 1, NOW_MS);
        assert!(!log.may_be_displaced());
        log.check_place().unwrap();
        displace(log.dir());
        assert!(log.may_be_displaced());
        let checked = log.check_place();
        assert!(matches!(checked, Err(StorageError::Io { .. })), "{checked:?}");
        assert!(log.write_error().is_some());
    }
}
