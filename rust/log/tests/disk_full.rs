//! A disk that may be full at any time: appends fail completely or succeed, and everything works
//! again when there is space.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{Bench, LEADER, NOW_MS, all, batch_with, end_transaction};
use proptest::prelude::*;
use pykafka_log::disk::{Fault, FaultyDisk, Operations};
use pykafka_log::{
    AbortedTxn, AppendError, AppendInfo, AppendOptions, AppendOrigin, Disk, DiskFile, Log,
    LogConfig, MemoryDisk, OpenError, OpenMode, StorageError,
};
use pykafka_record::{BatchOptions, EndTransactionMarker, LeaderEpoch, ProducerEpoch, ProducerId};

const PAGE: u64 = 4096;
const TRANSACTIONAL: (ProducerId, ProducerEpoch) = (ProducerId::new(2), ProducerEpoch::new(0));

#[derive(Clone, Debug)]
enum Step {
    Append {
        records: usize,
        size: usize,
    },
    /// Starts a transaction, or aborts the open one with a marker.
    Transaction,
    Roll,
    Release,
    DeleteBefore,
    Retention,
    /// Sets the number of free pages.
    Space(u64),
    /// Closes the log, if there is space for it, and opens it again.
    Restart,
    /// Opens the log again without a stop.
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (1..5usize, 10..450usize).prop_map(|(records, size)| Step::Append { records, size }),
        3 => Just(Step::Transaction),
        1 => Just(Step::Roll),
        1 => Just(Step::Release),
        1 => Just(Step::DeleteBefore),
        1 => Just(Step::Retention),
        4 => (0..7u64).prop_map(Step::Space),
        1 => Just(Step::Restart),
        1 => Just(Step::Crash),
    ];
    proptest::collection::vec(step, 1..80)
}

/// A log on a disk whose free space is limited by a second file.
struct Full {
    bench: Bench,
    ballast: Arc<dyn DiskFile>,
    ballast_pages: u64,
    log: Option<Log>,
    /// Base offset and number of records of each appended batch.
    appended: Vec<(i64, usize)>,
    sequence: i32,
    /// First offset and marker of each aborted transaction.
    aborted: Vec<(i64, i64)>,
    /// First offset of the open transaction, and the next sequence of its producer.
    open: Option<i64>,
    transactional_sequence: i32,
}

impl Full {
    fn new() -> Full {
        let disk = MemoryDisk::new(4000 * PAGE);
        disk.create_dir_all(Path::new("/data")).unwrap();
        let ballast = disk.open(Path::new("/data/ballast"), OpenMode::Create).unwrap();
        let bench = Bench { disk: Arc::new(disk), ..Bench::default() };
        let log = Some(bench.open(false).0);
        Full {
            bench,
            ballast,
            ballast_pages: 0,
            log,
            appended: Vec::new(),
            sequence: 0,
            aborted: Vec::new(),
            open: None,
            transactional_sequence: 0,
        }
    }

    fn log(&self) -> &Log {
        self.log.as_ref().unwrap()
    }

    fn leave(&mut self, pages: u64) {
        self.free_all();
        let space = self.bench.disk.available_bytes(Path::new("/data")).unwrap();
        self.ballast_pages = (space.usable / PAGE).saturating_sub(pages);
        for page in 0..self.ballast_pages {
            self.ballast.write_at(&[1; PAGE as usize], page * PAGE).unwrap();
        }
    }

    fn free_all(&mut self) {
        self.ballast.set_len(0).unwrap();
        self.ballast_pages = 0;
    }

    /// Appends a batch; returns false if there was no space.
    fn append(&mut self, records: usize, size: usize) -> bool {
        let options = BatchOptions {
            producer_id: ProducerId::new(1),
            producer_epoch: ProducerEpoch::new(0),
            base_sequence: self.sequence,
            ..BatchOptions::default()
        };
        let end = self.log().log_end_offset();
        let mut batch = batch_with(options, records, size, NOW_MS + end);
        match self.log().append_as_leader(&mut batch, LEADER) {
            Ok(info) => {
                assert_eq!((info.first_offset, info.duplicate), (end, false));
                self.appended.push((end, records));
                self.sequence += records as i32;
                true
            }
            Err(AppendError::Storage(StorageError::NoSpace { .. })) => {
                assert_eq!(self.log().log_end_offset(), end, "nothing was appended");
                false
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Starts or aborts a transaction; returns false if there was no space.
    fn transact(&mut self) -> bool {
        let end = self.log().log_end_offset();
        let result = if self.open.is_some() {
            let marker = EndTransactionMarker { committed: false, coordinator_epoch: 0 };
            let (id, epoch) = TRANSACTIONAL;
            end_transaction(self.log(), id, epoch, marker, LEADER.leader_epoch)
        } else {
            self.log().append_as_leader(&mut self.transactional_batch(), LEADER)
        };
        match result {
            Ok(info) => {
                assert_eq!((info.first_offset, info.last_offset), (end, end));
                if let Some(first) = self.open.take() {
                    self.aborted.push((first, end));
                } else {
                    self.open = Some(end);
                    self.transactional_sequence += 1;
                }
                true
            }
            Err(AppendError::Storage(StorageError::NoSpace { .. })) => {
                assert_eq!(self.log().log_end_offset(), end, "nothing was appended");
                false
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn transactional_batch(&self) -> Vec<u8> {
        let (producer_id, producer_epoch) = TRANSACTIONAL;
        let options = BatchOptions {
            producer_id,
            producer_epoch,
            base_sequence: self.transactional_sequence,
            transactional: true,
            ..BatchOptions::default()
        };
        batch_with(options, 1, 100, NOW_MS)
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Transaction => {
                self.transact();
            }
            Step::Append { records, size } => {
                self.append(*records, *size);
            }
            Step::Roll => only_for_space(self.log().roll()),
            Step::Release => only_for_space(self.log().release_idle_files()),
            Step::DeleteBefore => {
                let middle = i64::midpoint(self.log().log_start_offset(), self.end());
                only_for_space(self.log().delete_before(middle));
            }
            Step::Retention => {
                let end = self.end();
                only_for_space(self.log().enforce_retention(end));
                only_for_space(self.log().delete_expired_files(i64::MAX));
            }
            Step::Space(pages) => self.leave(*pages),
            Step::Restart => {
                let start = self.log().log_start_offset();
                let clean = self.log.take().unwrap().close().is_ok();
                self.open(clean, start);
            }
            Step::Crash => {
                let start = self.log().log_start_offset();
                self.log = None;
                self.open(false, start);
            }
        }
    }

    /// Opens the log, and frees space for it if needed.
    fn open(&mut self, clean: bool, log_start_offset: i64) {
        let mut options = self.bench.options(clean);
        options.checkpointed.log_start_offset = Some(log_start_offset);
        let opened = match Log::open(options) {
            Err(OpenError::Storage(StorageError::NoSpace { .. })) => {
                self.free_all();
                let mut options = self.bench.options(false);
                options.checkpointed.log_start_offset = Some(log_start_offset);
                Log::open(options)
            }
            opened => opened,
        };
        self.log = Some(opened.unwrap().0);
    }

    fn end(&self) -> i64 {
        let plain = self.appended.last().map_or(0, |(base, records)| base + *records as i64);
        let markers = self.aborted.iter().map(|(_, marker)| *marker).chain(self.open);
        markers.map(|offset| offset + 1).fold(plain, i64::max)
    }

    /// Checks that each batch from the log start offset on is found by each of its offsets and by
    /// its timestamp.
    fn check(&self) {
        let log = self.log();
        assert_eq!(log.log_end_offset(), self.end());
        let start = log.log_start_offset();
        for (base, records) in &self.appended {
            let end = base + *records as i64;
            for offset in (*base..end).filter(|offset| *offset >= start) {
                let data = log.read(offset, 1, self.end(), true).unwrap();
                assert_eq!((data.base_offset, data.next_offset), (*base, end), "{offset}");
            }
            if *base >= start {
                let found = log.offset_for_timestamp(NOW_MS + base, self.end()).unwrap().unwrap();
                assert!(found.offset <= *base && found.offset >= start, "{found:?} for {base}");
            }
        }
        for (first, marker) in self.aborted.iter().filter(|(first, _)| *first >= start) {
            let (_, aborted) = log.fetch_committed(*first, 1, self.end(), true).unwrap();
            let same = |txn: &&AbortedTxn| (txn.first_offset, txn.last_offset) == (*first, *marker);
            assert_eq!(aborted.iter().filter(same).count(), 1, "{first} of {aborted:?}");
        }
    }
}

fn only_for_space<T>(result: Result<T, StorageError>) {
    if let Err(error) = result {
        assert!(matches!(error, StorageError::NoSpace { .. }), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn full_disk_refuses_appends_whole_and_resumes_with_space(steps in steps()) {
        let mut full = Full::new();
        for step in &steps {
            full.take(step);
            full.check();
        }
        full.free_all();
        prop_assert!(full.transact() && full.transact(), "space has returned");
        prop_assert!(full.append(1, 100), "space has returned");
        let last = *full.appended.last().unwrap();
        full.take(&Step::Restart);
        full.check();
        // The producer state was kept too: a retry is recognized as a duplicate.
        full.sequence -= 1;
        let options = BatchOptions {
            producer_id: ProducerId::new(1),
            producer_epoch: ProducerEpoch::new(0),
            base_sequence: full.sequence,
            ..BatchOptions::default()
        };
        let mut again = batch_with(options, 1, 100, NOW_MS);
        let info = full.log().append_as_leader(&mut again, LEADER).unwrap();
        prop_assert!(info.duplicate);
        prop_assert_eq!(info.first_offset, last.0);
    }
}

#[test]
fn directory_without_space_for_its_metadata_gets_it_later() {
    let mut full = Full::new();
    full.log().assign_epoch(LeaderEpoch::new(3), 0).unwrap();
    for pages in 0..4 {
        full.leave(pages);
        let mut batch = common::batch(1, 100, NOW_MS);
        let options = pykafka_log::AppendOptions { leader_epoch: LeaderEpoch::new(3), ..LEADER };
        if full.log().append_as_leader(&mut batch, options).is_ok() {
            break;
        }
    }
    let names = full.bench.file_names();
    for name in ["partition.metadata", "leader-epoch-checkpoint", "00000000000000000000.log"] {
        assert!(names.iter().any(|found| found == name), "{name} of {names:?}");
    }
    assert_eq!(full.bench.file("leader-epoch-checkpoint"), b"0\n1\n3 0\n");
}

/// An entry that crosses a page of the index is cut off where the space ends. The part is not an
/// entry.
#[test]
fn half_an_entry_of_the_transaction_index_is_ignored() {
    let mut full = Full::new();
    full.bench.config = LogConfig { segment_bytes: 1 << 20, ..LogConfig::default() };
    full.take(&Step::Restart);
    let fit = PAGE as usize / 34;
    while full.aborted.len() < fit || full.open.is_none() {
        assert!(full.transact());
    }
    full.leave(0);
    assert!(!full.transact(), "the marker's entry needs another page");
    assert_eq!(full.bench.file("00000000000000000000.txnindex").len(), fit * 34);
    only_for_space(full.log().release_idle_files());
    full.check();
    full.free_all();
    assert!(full.transact(), "space has returned");
    full.check();
    full.take(&Step::Restart);
    full.check();
}

/// The batch of one append.
#[derive(Clone, Copy, Debug)]
enum Given {
    Plain(usize),
    Begin,
    Abort,
    /// A plain batch in the next leader epoch.
    Led,
}

const GIVEN: [Given; 14] = [
    Given::Plain(300),
    Given::Begin,
    Given::Abort,
    Given::Plain(1200),
    // Starts a segment, as each larger one below does.
    Given::Plain(900),
    Given::Begin,
    Given::Led,
    Given::Plain(800),
    Given::Abort,
    Given::Begin,
    Given::Plain(1600),
    Given::Led,
    Given::Abort,
    Given::Plain(1500),
];

#[derive(Clone, Copy, Debug)]
enum Role {
    Leader,
    Follower,
}

/// Appends `GIVEN[index]` in the form for `role`; `leader` has all of them as stored in a leader's
/// log.
fn give(log: &Log, role: Role, index: usize, leader: &[u8]) -> Result<AppendInfo, AppendError> {
    let upto = |kinds: fn(&Given) -> bool| GIVEN[..=index].iter().filter(|g| kinds(g)).count();
    let epoch = LeaderEpoch::new(upto(|given| matches!(given, Given::Led)) as i32);
    if let Role::Follower = role {
        return log.append_as_follower(all(leader)[index].bytes(), epoch);
    }
    let (producer_id, producer_epoch) = TRANSACTIONAL;
    let plain = BatchOptions::default();
    let begin = BatchOptions {
        producer_id,
        producer_epoch,
        base_sequence: upto(|given| matches!(given, Given::Begin)) as i32 - 1,
        transactional: true,
        ..plain
    };
    let (options, size) = match GIVEN[index] {
        Given::Plain(size) => (plain, size),
        Given::Led => (plain, 100),
        Given::Begin => (begin, 100),
        Given::Abort => {
            let marker = EndTransactionMarker { committed: false, coordinator_epoch: 0 };
            return end_transaction(log, producer_id, producer_epoch, marker, epoch);
        }
    };
    let mut batch = batch_with(options, 1, size, NOW_MS);
    log.append_as_leader(&mut batch, AppendOptions::new(epoch, AppendOrigin::Client))
}

/// Everything that a reader finds in a log: its batches, and the aborted transactions by their
/// first offsets.
fn read(log: &Log) -> (Vec<u8>, Vec<AbortedTxn>) {
    let (mut bytes, mut found, mut offset) = (Vec::new(), Vec::new(), log.log_start_offset());
    while offset < log.log_end_offset() {
        let end = log.log_end_offset();
        let data = log.read(offset, 1, end, true).unwrap();
        let (_, aborted) = log.fetch_committed(offset, 1, end, true).unwrap();
        bytes.extend_from_slice(&data.bytes);
        found.extend(aborted.into_iter().filter(|txn| !found.contains(txn)).collect::<Vec<_>>());
        offset = data.next_offset;
    }
    (bytes, found)
}

/// Appends everything to `log`. During append `full_at.0`, the disk is full at the operation after
/// `full_at.1` others. Returns false if that append has fewer operations.
fn give_all(
    disk: &FaultyDisk,
    log: &Log,
    role: Role,
    leader: &[u8],
    full_at: (usize, u64),
) -> bool {
    let mut was_full = false;
    for (index, given) in GIVEN.iter().enumerate() {
        let before = read(log);
        if full_at.0 == index {
            let full = Fault::Error(std::io::ErrorKind::StorageFull);
            disk.arm(full, Operations::All, full_at.1);
        }
        match give(log, role, index, leader) {
            Ok(_) => {}
            Err(AppendError::Storage(StorageError::NoSpace { .. })) if full_at.0 == index => {
                assert!(read(log) == before, "{role:?} {full_at:?} {given:?}");
                give(log, role, index, leader).unwrap();
            }
            Err(error) => panic!("{role:?} {full_at:?} {given:?}: {error}"),
        }
        if full_at.0 == index {
            was_full = !disk.is_armed();
            disk.disarm();
        }
    }
    was_full
}

fn log_on(disk: &FaultyDisk) -> Bench {
    Bench { disk: Arc::new(disk.clone()), ..Bench::default() }
}

/// Whichever operation of an append first finds no space, the append is rejected completely, and
/// the next attempt succeeds.
#[test]
fn an_append_is_refused_whole_at_each_of_its_writes() {
    let never = (usize::MAX, 0);
    let disk = FaultyDisk::default();
    let log = log_on(&disk).open(false).0;
    give_all(&disk, &log, Role::Leader, &[], never);
    let whole = read(&log);
    assert_eq!(whole.1.len(), 3);
    let mut refused = 0;
    for role in [Role::Leader, Role::Follower] {
        for index in 0..GIVEN.len() {
            for skipped in 0.. {
                let disk = FaultyDisk::default();
                let bench = log_on(&disk);
                let log = bench.open(false).0;
                let was_full = give_all(&disk, &log, role, &whole.0, (index, skipped));
                assert!(read(&log) == whole, "{role:?} {index} {skipped}");
                drop(log);
                let (log, recovery) = bench.open(false);
                assert!(read(&log) == whole, "{role:?} {index} {skipped}, opened again");
                assert_eq!((recovery.damage, recovery.warnings), (None, Vec::new()));
                if !was_full {
                    break;
                }
                refused += 1;
            }
        }
    }
    assert!(refused > 2 * GIVEN.len(), "{refused}");
}
