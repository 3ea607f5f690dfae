//! The promises of each durability mode, with a power cut at every step.
//!
//! A fixed sequence of operations (appends, rolls, syncs, checkpoints, truncation, deletion) runs
//! on the faulty disk, once for each of its disk operations, at which the power fails. Then the
//! disk is rebuilt in several of the possible states, and the log is opened. It must have all
//! promised records and none that was never written.
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pykafka_log::disk::{Fault, FaultyDisk, Operations};
use pykafka_log::{
    AppendError, BufferPool, Checkpointed, Disk, Log, LogConfig, LogDirectory, LogOptions,
    ManualClock, OnDamage, PartitionIdentity, Recovery, StorageError, checkpoint,
};
use pykafka_record::{BatchOptions, ProducerEpoch, ProducerId, batches};

use common::{LEADER, NOW_MS, batch, batch_with};

const DATA: &str = "/data";
const SEEDS: std::ops::Range<u64> = 0..5;

/// When the test syncs the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Before each acknowledgement.
    Fsync,
    /// Sometimes.
    Interval,
    /// Never.
    Os,
}

impl Mode {
    const ALL: [Mode; 3] = [Mode::Fsync, Mode::Interval, Mode::Os];
}

/// A log on a faulty disk, and its expected content.
struct Life {
    disk: FaultyDisk,
    log: Log,
    mode: Mode,
    /// Every batch that was ever written, by base offset.
    written: BTreeMap<i64, Vec<Vec<u8>>>,
    /// The log's content, by base offset.
    content: BTreeMap<i64, Vec<u8>>,
    /// Everything below must survive.
    promised_end: i64,
    /// Lowest and highest possible log start offset.
    start_between: (i64, i64),
}

/// The error of the failed operation.
type Stopped = Box<dyn std::error::Error>;

fn partition_dir() -> PathBuf {
    Path::new(DATA).join("topic-0")
}

fn options(disk: &FaultyDisk, mode: Mode, clean: bool) -> LogOptions {
    let key = ("topic".to_owned(), 0);
    let offset = |name: &str| {
        let bytes = disk.read(&Path::new(DATA).join(name)).ok()?;
        let offsets =
            checkpoint::read_offsets(&bytes).expect("checkpoints are replaced as a whole");
        offsets.get(&key).copied()
    };
    LogOptions {
        dir: partition_dir(),
        config: Arc::new(LogConfig {
            segment_bytes: 4000,
            index_interval_bytes: 300,
            file_delete_delay_ms: 0,
            flush_messages: if mode == Mode::Fsync { 1 } else { i64::MAX },
            ..LogConfig::default()
        }),
        disk: Arc::new(disk.clone()),
        clock: Arc::new(ManualClock::new(NOW_MS)),
        checkpointed: Checkpointed {
            recovery_point: offset(checkpoint::RECOVERY_POINT_FILE).unwrap_or(0),
            log_start_offset: offset(checkpoint::LOG_START_OFFSET_FILE),
            ..Checkpointed::default()
        },
        on_damage: if mode == Mode::Fsync { OnDamage::Keep } else { OnDamage::CutUnsynced },
        clean,
        identity: Some(PartitionIdentity { topic_id: [7; 16], partition: None }),
        producer_id_expiration_ms: i64::MAX,
        read_only: false,
        jitter_seed: 1,
        buffers: Arc::new(BufferPool::default()),
    }
}

/// All bytes from the log start offset to the log end offset.
fn read_all(log: &Log) -> Vec<u8> {
    let (mut next, end) = (log.log_start_offset(), log.log_end_offset());
    let mut bytes = Vec::new();
    while next < end {
        let data = log.read(next, 1 << 20, end, true).unwrap();
        assert!(data.next_offset > next, "nothing to read at {next} of {end}");
        bytes.extend_from_slice(&data.bytes);
        next = data.next_offset;
    }
    bytes
}

fn new_disk() -> FaultyDisk {
    let disk = FaultyDisk::default();
    disk.create_dir_all(Path::new(DATA)).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    disk
}

impl Life {
    fn begin(mode: Mode) -> Life {
        let disk = new_disk();
        let (log, _) = Log::open(options(&disk, mode, true)).unwrap();
        Life {
            disk,
            log,
            mode,
            written: BTreeMap::new(),
            content: BTreeMap::new(),
            promised_end: 0,
            start_between: (0, 0),
        }
    }

    fn append(&mut self, values_bytes: usize) -> Result<(), Stopped> {
        let base_offset = self.log.log_end_offset();
        let count = 1 + base_offset as usize % 3;
        let mut bytes = batch(count, values_bytes, NOW_MS + base_offset);
        let mut expected = bytes.clone();
        expected[..8].copy_from_slice(&base_offset.to_be_bytes());
        expected[12..16].copy_from_slice(&0i32.to_be_bytes());
        self.written.entry(base_offset).or_default().push(expected.clone());
        self.log.append_as_leader(&mut bytes, LEADER)?;
        assert_eq!(bytes, expected);
        self.content.insert(base_offset, expected);
        if self.mode == Mode::Fsync { self.sync() } else { Ok(()) }
    }

    /// Syncs the log. After success everything appended so far must survive.
    fn sync(&mut self) -> Result<(), Stopped> {
        self.log.flush()?;
        self.promised_end = self.log.log_end_offset();
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<(), Stopped> {
        let start = self.log.log_start_offset();
        if self.log.recovery_point() < start {
            self.sync()?;
        }
        self.write_checkpoint(checkpoint::LOG_START_OFFSET_FILE, start)?;
        self.write_checkpoint(checkpoint::RECOVERY_POINT_FILE, self.log.recovery_point())?;
        self.start_between.0 = self.start_between.0.max(start);
        Ok(())
    }

    fn write_checkpoint(&self, name: &str, offset: i64) -> Result<(), Stopped> {
        let offsets = [(("topic".to_owned(), 0), offset)].into();
        let path = Path::new(DATA).join(name);
        Ok(self.disk.write_atomically(&path, &checkpoint::write_offsets(&offsets))?)
    }

    fn truncate(&mut self, offset: i64) -> Result<(), Stopped> {
        // A truncation ends the promise, whether it succeeds or not.
        self.promised_end = self.promised_end.min(offset);
        let recovery_point = self.log.recovery_point().min(offset);
        self.write_checkpoint(checkpoint::RECOVERY_POINT_FILE, recovery_point)?;
        self.log.truncate_to(offset)?;
        self.content.retain(|base_offset, _| *base_offset < offset);
        self.sync_if_promised()
    }

    fn sync_if_promised(&mut self) -> Result<(), Stopped> {
        if self.mode == Mode::Os { Ok(()) } else { self.sync() }
    }

    fn delete_before(&mut self, offset: i64) -> Result<(), Stopped> {
        self.start_between.1 = offset;
        self.log.delete_before(offset)?;
        let expired = self.log.expire_segments(self.log.log_end_offset())?;
        self.checkpoint()?;
        if let Some(expired) = expired {
            self.log.remove_expired(expired)?;
        }
        self.log.delete_expired_files(NOW_MS + 1)?;
        Ok(())
    }

    /// Runs all operations, with more than a hundred disk operations.
    fn live(&mut self) -> Result<(), Stopped> {
        for size in [100, 300, 10, 700] {
            self.append(size)?;
        }
        self.sync_if_promised()?;
        self.checkpoint()?;
        for size in [600, 600, 900, 50] {
            self.append(size)?;
        }
        self.log.roll()?;
        self.append(20)?;
        self.sync_if_promised()?;
        self.append(400)?;
        let cut = *self.content.keys().nth_back(3).expect("ten batches were appended");
        self.truncate(cut)?;
        self.append(333)?;
        self.append(444)?;
        self.log.release_idle_files()?;
        self.append(30)?;
        self.sync_if_promised()?;
        let start = *self.content.keys().nth(5).expect("ten batches are there");
        self.delete_before(start)?;
        self.append(1200)?;
        self.append(70)
    }

    /// Opens the disk after a power cut and checks the promises.
    fn check_after_cut(&self, what: &str) {
        for seed in SEEDS {
            let what = format!("{what}, seed {seed}");
            let disk = self.disk.after_power_cut(seed);
            let opened = Log::open(options(&disk, self.mode, false));
            let (log, recovery) = opened.unwrap_or_else(|error| panic!("{what}: {error}"));
            self.check_content(&log, &recovery, &what);
            // Only bytes that were never synced may be damaged, which needs no repair.
            assert_eq!(recovery.damage, None, "{what}: {recovery:?}");
            let end = log.log_end_offset();
            drop(log);
            self.check_reopened(&disk, end, &what);
        }
    }

    fn check_content(&self, log: &Log, recovery: &Recovery, what: &str) {
        let (start, end) = (log.log_start_offset(), log.log_end_offset());
        assert!(end >= self.promised_end, "{what}: end {end} < {} {recovery:?}", self.promised_end);
        let (at_least, at_most) = self.start_between;
        // Unsynced names may be lost in any order: a later segment may exist without the first one.
        let is_first_lost = self.mode == Mode::Os && start >= self.promised_end;
        let is_expected = (at_least..=at_most).contains(&start) || is_first_lost;
        assert!(is_expected, "{what}: start {start}");
        let found = read_all(log);
        let mut next = None;
        for found in batches(&found) {
            let found = found.unwrap();
            let base_offset = found.base_offset();
            let expected = *next.get_or_insert(base_offset);
            // Only records that were never synced may be missing, before others that reached the
            // disk by chance.
            let may_lack = self.mode != Mode::Fsync && expected >= self.promised_end;
            assert!(base_offset == expected || may_lack, "{what}: a hole at {expected}");
            next = Some(found.next_offset());
            let known = &self.written[&base_offset];
            assert!(known.iter().any(|known| known == found.bytes()), "{what}: at {base_offset}");
            if base_offset < self.promised_end {
                assert_eq!(found.bytes(), self.content[&base_offset], "{what}: at {base_offset}");
            }
        }
        assert!(end == start || next == Some(end), "{what}: {start}..{end} was read to {next:?}");
    }

    /// Checks that the recovered log works: it accepts a batch, and has everything after a clean
    /// stop.
    fn check_reopened(&self, disk: &FaultyDisk, end: i64, what: &str) {
        let (log, recovery) = Log::open(options(disk, self.mode, false)).unwrap();
        assert_eq!((log.log_end_offset(), recovery.damaged_at()), (end, None), "{what}: reopened");
        log.append_as_leader(&mut batch(2, 40, NOW_MS), LEADER).unwrap();
        log.close().unwrap();
        let (log, recovery) = Log::open(options(disk, self.mode, true)).unwrap();
        assert_eq!(log.log_end_offset(), end + 2, "{what}: after a clean stop, {recovery:?}");
    }
}

#[test]
fn promises_hold_after_a_power_cut_at_any_operation() {
    for mode in Mode::ALL {
        for operation in 0.. {
            let mut life = Life::begin(mode);
            life.disk.arm(Fault::PowerCut, Operations::All, operation);
            let ended = life.live();
            life.check_after_cut(&format!("{mode:?}, operation {operation}, {ended:?}"));
            if ended.is_ok() {
                assert!(operation > 25, "the script has {operation} operations only");
                break;
            }
        }
    }
}

#[test]
fn a_deleted_log_is_whole_or_gone_and_stays_gone_once_its_parent_is_synced() {
    let trash = Path::new(DATA).join("topic-0.0123-delete");
    for operation in 0.. {
        let mut life = Life::begin(Mode::Fsync);
        life.live().unwrap();
        life.checkpoint().unwrap();
        life.disk.arm(Fault::PowerCut, Operations::All, operation);
        let renamed = life.log.delete(&trash);
        let synced = renamed.is_ok() && life.disk.sync_dir(Path::new(DATA)).is_ok();
        let removed = synced && life.disk.remove_dir_all(&trash).is_ok();
        for seed in SEEDS {
            let disk = life.disk.after_power_cut(seed);
            if disk.exists(&partition_dir()) {
                assert!(!synced, "operation {operation}, seed {seed}: it came back");
                let (log, recovery) = Log::open(options(&disk, life.mode, false)).unwrap();
                life.check_content(&log, &recovery, &format!("operation {operation}, seed {seed}"));
            }
            if disk.exists(&trash) {
                disk.remove_dir_all(&trash).unwrap();
            }
        }
        if removed {
            break;
        }
    }
}

#[test]
fn no_write_is_acknowledged_after_a_failed_sync() {
    for sync in 0.. {
        let mut life = Life::begin(Mode::Fsync);
        life.disk.arm(Fault::Torn, Operations::Syncs, sync);
        let ended = life.live();
        if life.disk.is_armed() {
            ended.unwrap();
            assert!(sync > 15, "the script has {sync} syncs only");
            break;
        }
        let promised_end = life.promised_end;
        if life.log.write_error().is_some() {
            life.append(100).unwrap_err();
            life.sync().unwrap_err();
            assert!(life.log.flush().is_err() && life.log.roll().is_err());
            assert_eq!(life.promised_end, promised_end);
        } else {
            // It was a sync of a checkpoint file, which does not affect the log.
            life.append(100).unwrap();
        }
        life.check_after_cut(&format!("sync {sync}"));
    }
}

/// The kernel treats pages as clean that a failed sync did not write. They look durable when they
/// are read, and no later sync writes them.
#[test]
fn records_acknowledged_after_a_failed_sync_and_a_reopen_survive_a_power_cut() {
    for sync in 0.. {
        let mut life = Life::begin(Mode::Fsync);
        life.disk.arm(Fault::Torn, Operations::Syncs, sync);
        let ended = life.live();
        if life.disk.is_armed() {
            ended.unwrap();
            break;
        }
        life.log.close().unwrap_or_default();
        let (log, recovery) = Log::open(options(&life.disk, life.mode, false)).unwrap();
        assert_eq!(recovery.damage, None, "sync {sync}");
        let stored = read_all(&log);
        let stored = batches(&stored).map(Result::unwrap);
        life.content = stored.map(|b| (b.base_offset(), b.bytes().to_vec())).collect();
        life.log = log;
        life.append(100).unwrap();
        life.append(100).unwrap();
        life.checkpoint().unwrap();
        life.check_after_cut(&format!("sync {sync}, {ended:?}"));
    }
}

#[test]
fn a_full_disk_refuses_with_a_typed_error_and_service_resumes() {
    let disk = new_disk();
    let (log, _) = Log::open(options(&disk, Mode::Os, true)).unwrap();
    disk.set_space(5000);
    let full = loop {
        match log.append_as_leader(&mut batch(2, 100, NOW_MS), LEADER) {
            Ok(_) => assert!(log.log_end_offset() < 1000, "the disk is never full"),
            Err(error) => break error,
        }
    };
    assert!(matches!(full, AppendError::Storage(StorageError::NoSpace { .. })), "{full:?}");
    let end = log.log_end_offset();
    assert!(end > 4 && log.write_error().is_none());
    disk.set_space(100_000_000);
    for _ in 0..20 {
        log.append_as_leader(&mut batch(2, 100, NOW_MS), LEADER).unwrap();
    }
    assert_eq!(log.log_end_offset(), end + 40);
    log.close().unwrap();
    let (log, recovery) = Log::open(options(&disk, Mode::Os, false)).unwrap();
    assert_eq!((log.log_end_offset(), recovery.truncated_bytes), (end + 40, 0));
}

#[test]
fn one_moment_without_space_at_any_operation_costs_at_most_that_append() {
    for operation in 0.. {
        let disk = new_disk();
        let (log, _) = Log::open(options(&disk, Mode::Os, true)).unwrap();
        disk.arm(Fault::Error(std::io::ErrorKind::StorageFull), Operations::All, operation);
        let mut refused = 0;
        while log.log_end_offset() < 40 {
            match log.append_as_leader(&mut batch(2, 300, NOW_MS), LEADER) {
                Ok(_) => {}
                Err(AppendError::Storage(StorageError::NoSpace { .. })) => refused += 1,
                Err(error) => panic!("operation {operation}: {error}"),
            }
            assert!(refused <= 1, "operation {operation}: space is back, writes are not");
        }
        let hit = !disk.is_armed();
        disk.disarm();
        log.close().unwrap();
        let (log, recovery) = Log::open(options(&disk, Mode::Os, false)).unwrap();
        assert_eq!(log.log_end_offset(), 40, "operation {operation}: {recovery:?}");
        assert_eq!((recovery.truncated_bytes, recovery.damaged_at()), (0, None));
        if !hit {
            assert!(operation > 20);
            break;
        }
    }
}

#[test]
fn producer_state_survives_a_power_cut_like_the_batches() {
    let producer = |sequence: i32| {
        let options = BatchOptions {
            producer_id: ProducerId::new(9),
            producer_epoch: ProducerEpoch::new(0),
            base_sequence: sequence,
            ..BatchOptions::default()
        };
        batch_with(options, 1, 500, NOW_MS)
    };
    for operation in 0.. {
        let disk = new_disk();
        let (log, _) = Log::open(options(&disk, Mode::Fsync, true)).unwrap();
        disk.arm(Fault::PowerCut, Operations::All, operation);
        let mut acknowledged = 0;
        for sequence in 0..12 {
            let appended = log.append_as_leader(&mut producer(sequence), LEADER);
            if appended.is_err() || log.flush().is_err() {
                break;
            }
            acknowledged = sequence + 1;
        }
        for seed in SEEDS {
            let disk = disk.after_power_cut(seed);
            let (log, _) = Log::open(options(&disk, Mode::Fsync, false)).unwrap();
            // The client retries batches without a response, and continues.
            for sequence in (acknowledged - 1).max(0)..12 {
                let info = log.append_as_leader(&mut producer(sequence), LEADER);
                let info =
                    info.unwrap_or_else(|e| panic!("operation {operation}, seed {seed}: {e}"));
                assert_eq!(info.first_offset, i64::from(sequence), "neither lost nor doubled");
            }
        }
        if acknowledged == 12 {
            break;
        }
    }
}

#[test]
fn a_failed_write_never_leaves_half_a_batch_to_readers() {
    for operation in 0.. {
        let mut life = Life::begin(Mode::Interval);
        life.disk.arm(Fault::Torn, Operations::All, operation);
        let ended = life.live();
        let hit = !life.disk.is_armed();
        life.disk.disarm();
        let stored = read_all(&life.log);
        assert!(batches(&stored).all(|batch| batch.unwrap().is_crc_valid()), "{ended:?}");
        if !hit {
            ended.unwrap();
            break;
        }
    }
}

#[test]
fn lost_index_of_a_middle_segment_is_rebuilt_without_losing_records() {
    for clean in [true, false] {
        let mut life = Life::begin(Mode::Fsync);
        life.live().unwrap();
        life.log.roll().unwrap();
        life.append(100).unwrap();
        life.checkpoint().unwrap();
        life.log.close().unwrap();
        let bases: Vec<i64> = life.log.segments().iter().map(|(base, _)| *base).collect();
        assert!(bases.len() > 2);
        let lost = partition_dir().join(format!("{:020}.index", bases[1]));
        life.disk.remove_file(&lost).unwrap();
        let (log, recovery) = Log::open(options(&life.disk, life.mode, clean)).unwrap();
        assert_eq!((recovery.damaged_at(), recovery.truncated_bytes), (None, 0), "clean: {clean}");
        life.check_content(&log, &recovery, "index lost");
        assert!(life.disk.exists(&lost));
    }
}

fn open_directory(disk: &FaultyDisk) -> (LogDirectory, Arc<Log>, Recovery) {
    let config = self::options(disk, Mode::Fsync, false).config;
    common::open_directory(Arc::new(disk.clone()), config)
}

/// Appends, deletes records and removes segments by retention; returns the last acknowledged log
/// start offset.
fn live_and_delete(directory: &LogDirectory, log: &Log) -> (i64, Result<(), Stopped>) {
    let mut acknowledged = 0;
    let mut live = || -> Result<(), Stopped> {
        for round in 1..=2 {
            for _ in 0..6 {
                log.append_as_leader(&mut batch(2, 300, NOW_MS), LEADER)?;
                log.flush()?;
            }
            directory.checkpoint(&[("topic".to_owned(), 0, log.log_end_offset())])?;
            acknowledged = directory.delete_before(log, round * 9)?;
            log.append_as_leader(&mut batch(2, 300, NOW_MS), LEADER)?;
            acknowledged = directory.delete_before(log, round * 9 + 2)?;
            directory.enforce_retention(log, log.log_end_offset())?;
            log.delete_expired_files(NOW_MS + 1)?;
        }
        Ok(())
    };
    let ended = live();
    (acknowledged, ended)
}

#[test]
fn a_deletion_that_was_acknowledged_survives_a_power_cut_and_a_kill() {
    for operation in 0.. {
        let disk = new_disk();
        let (directory, log, _) = open_directory(&disk);
        disk.arm(Fault::PowerCut, Operations::All, operation);
        let (acknowledged, ended) = live_and_delete(&directory, &log);
        disk.disarm();
        let found = SEEDS.map(|seed| disk.after_power_cut(seed));
        // After a kill the disk has everything that the kernel has.
        for disk in found.chain(ended.is_ok().then(|| disk.clone())) {
            let (_, log, recovery) = open_directory(&disk);
            let start = log.log_start_offset();
            assert_eq!(recovery.damage, None, "operation {operation}");
            assert!(start >= acknowledged, "operation {operation}: {start} < {acknowledged}");
        }
        if ended.is_ok() {
            assert_eq!(acknowledged, 20);
            break;
        }
    }
}
