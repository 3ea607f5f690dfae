//! Transactions start only with a guard that no marker has removed (KIP-890).
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod common;

use std::collections::HashMap;

use proptest::prelude::*;
use pykafka_log::{
    AppendError, AppendInfo, AppendOptions, AppendOrigin, FirstBatch, Log, ProducerError,
    TransactionRule, VerificationGuard,
};
use pykafka_record::{
    BatchBuilder, BatchOptions, EndTransactionMarker, LeaderEpoch, ProducerEpoch, ProducerId,
};

use common::{Bench, NOW_MS, append_marker};

const NINE: ProducerId = ProducerId::new(9);
const DAY_MS: i64 = 86_400_000;

fn log() -> Log {
    Bench::default().open(false).0
}

fn first(producer_id: ProducerId, epoch: i16, base_sequence: i32) -> FirstBatch {
    FirstBatch {
        producer_id,
        producer_epoch: ProducerEpoch::new(epoch),
        base_sequence,
        supports_epoch_bump: false,
    }
}

fn begin(log: &Log, epoch: i16, base_sequence: i32) -> Option<VerificationGuard> {
    log.begin_verification(&first(NINE, epoch, base_sequence))
}

fn built(options: BatchOptions, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(options);
    builder.append(NOW_MS, Some(key), Some(value), &[]).unwrap();
    let mut bytes = Vec::new();
    builder.build(&mut bytes).unwrap();
    bytes
}

fn options(producer_id: ProducerId, epoch: i16, base_sequence: i32) -> BatchOptions {
    let producer_epoch = ProducerEpoch::new(epoch);
    BatchOptions {
        producer_id,
        producer_epoch,
        base_sequence,
        transactional: true,
        ..BatchOptions::default()
    }
}

fn append(log: &Log, batch: &FirstBatch, rule: TransactionRule) -> Result<AppendInfo, AppendError> {
    let options = options(batch.producer_id, batch.producer_epoch.get(), batch.base_sequence);
    let transaction = AppendOptions {
        transaction: rule,
        ..AppendOptions::new(LeaderEpoch::ZERO, AppendOrigin::Client)
    };
    log.append_as_leader(&mut built(options, b"k", b"v"), transaction)
}

fn append_nine(
    log: &Log,
    epoch: i16,
    base_sequence: i32,
    guard: Option<VerificationGuard>,
) -> Result<AppendInfo, AppendError> {
    append(log, &first(NINE, epoch, base_sequence), TransactionRule::Verified(guard))
}

fn mark(
    log: &Log,
    producer_id: ProducerId,
    epoch: i16,
    coordinator_epoch: i32,
    version: i16,
) -> Result<AppendInfo, AppendError> {
    let marker = EndTransactionMarker { committed: false, coordinator_epoch };
    let options = AppendOptions {
        transaction: TransactionRule::Marker(version),
        ..AppendOptions::new(LeaderEpoch::ZERO, AppendOrigin::Coordinator)
    };
    append_marker(log, producer_id, ProducerEpoch::new(epoch), marker, options)
}

fn is_outside(result: &Result<AppendInfo, AppendError>) -> bool {
    matches!(result, Err(AppendError::Producer(ProducerError::NotInTransaction { .. })))
}

fn is_stale(result: &Result<AppendInfo, AppendError>) -> bool {
    matches!(result, Err(AppendError::Producer(ProducerError::InvalidProducerEpoch { .. })))
}

fn is_out_of_order(result: &Result<AppendInfo, AppendError>) -> bool {
    matches!(result, Err(AppendError::Producer(ProducerError::OutOfOrderSequence { .. })))
}

#[test]
fn transaction_starts_only_with_its_guard() {
    let log = log();
    assert!(is_outside(&append_nine(&log, 0, 0, None)));
    let guard = begin(&log, 0, 0);
    assert!(guard.is_some());
    assert!(is_outside(&append_nine(&log, 0, 0, None)));
    append_nine(&log, 0, 0, guard).unwrap();
    assert_eq!(begin(&log, 0, 1), None, "it is open");
    append_nine(&log, 0, 1, None).unwrap();
}

#[test]
fn transactions_of_two_epochs_are_different() {
    let log = log();
    append_nine(&log, 0, 0, begin(&log, 0, 0)).unwrap();
    assert!(is_outside(&append_nine(&log, 1, 0, None)));
    assert!(begin(&log, 1, 0).is_some());
}

#[test]
fn a_batch_of_an_older_epoch_is_stale_before_it_is_unverified() {
    let log = log();
    append_nine(&log, 3, 0, begin(&log, 3, 0)).unwrap();
    assert!(is_stale(&append_nine(&log, 2, 0, None)));
}

#[test]
fn requests_for_the_same_transaction_share_a_guard() {
    let log = log();
    let guard = begin(&log, 0, 0);
    assert_eq!(begin(&log, 0, 1), guard);
}

#[test]
fn marker_removes_the_guard_even_without_an_open_transaction() {
    let log = log();
    let guard = begin(&log, 0, 0);
    mark(&log, NINE, 0, 0, 1).unwrap();
    assert!(is_outside(&append_nine(&log, 0, 0, guard)));
    let next = begin(&log, 0, 0);
    assert_ne!(next, guard);
    assert!(is_outside(&append_nine(&log, 0, 0, guard)));
    append_nine(&log, 0, 0, next).unwrap();
}

#[test]
fn marker_keeps_the_guard_of_the_next_transaction() {
    let log = log();
    let next = FirstBatch { supports_epoch_bump: true, ..first(NINE, 1, 0) };
    let guard = log.begin_verification(&next);
    mark(&log, NINE, 1, 0, 2).unwrap();
    append(&log, &next, TransactionRule::Verified(guard)).unwrap();
    // The transaction has started: its own marker has the next epoch.
    mark(&log, NINE, 2, 0, 2).unwrap();
    assert!(is_stale(&append(&log, &next, TransactionRule::Verified(guard))));
}

#[test]
fn marker_of_a_later_epoch_removes_the_guard() {
    let log = log();
    let batch = FirstBatch { supports_epoch_bump: true, ..first(NINE, 1, 0) };
    let guard = log.begin_verification(&batch);
    // The coordinator ended the transaction because of its timeout.
    mark(&log, NINE, 2, 0, 2).unwrap();
    assert_ne!(log.begin_verification(&batch), guard);
}

#[test]
fn guards_of_two_logs_differ() {
    assert_ne!(begin(&log(), 0, 0), begin(&log(), 0, 0));
}

#[test]
fn lowest_sequence_must_be_first_and_a_new_epoch_resets_it() {
    let log = log();
    let guard = begin(&log, 0, 5);
    begin(&log, 0, 3);
    assert!(is_out_of_order(&append_nine(&log, 0, 5, guard)));
    begin(&log, 1, 9);
    assert!(is_out_of_order(&append_nine(&log, 1, 10, guard)));
    append_nine(&log, 1, 9, guard).unwrap();
}

#[test]
fn a_producer_whose_epoch_is_raised_begins_at_sequence_0() {
    let log = log();
    let batch = FirstBatch { supports_epoch_bump: true, ..first(NINE, 0, 4) };
    let guard = log.begin_verification(&batch);
    assert!(is_out_of_order(&append(&log, &batch, TransactionRule::Verified(guard))));
    append_nine(&log, 0, 0, guard).unwrap();
}

#[test]
fn retry_of_an_appended_batch_needs_no_transaction() {
    let log = log();
    append_nine(&log, 0, 0, begin(&log, 0, 0)).unwrap();
    mark(&log, NINE, 0, 0, 1).unwrap();
    assert!(append_nine(&log, 0, 0, None).unwrap().duplicate);
}

#[test]
fn abandoned_guard_is_removed_and_a_later_one_is_kept() {
    let log = log();
    let guard = begin(&log, 0, 0).unwrap();
    log.abandon_verification(NINE, guard);
    assert!(is_outside(&append_nine(&log, 0, 0, Some(guard))));
    let next = begin(&log, 0, 0);
    log.abandon_verification(NINE, guard);
    append_nine(&log, 0, 0, next).unwrap();
}

#[test]
fn guards_expire_as_idle_producers_do() {
    let bench = Bench::default();
    let log = bench.open(false).0;
    let guard = begin(&log, 0, 0);
    bench.clock.advance_ms(DAY_MS as u64 - 1);
    log.expire_producers(DAY_MS);
    assert_eq!(begin(&log, 0, 0), guard);
    bench.clock.advance_ms(1);
    log.expire_producers(DAY_MS);
    assert_ne!(begin(&log, 0, 0), guard);
}

#[test]
fn open_transaction_survives_a_restart_and_a_guard_does_not() {
    let bench = Bench::default();
    let log = bench.open(false).0;
    append_nine(&log, 0, 0, begin(&log, 0, 0)).unwrap();
    let guard = log.begin_verification(&first(ProducerId::new(8), 0, 0));
    log.close().unwrap();
    let log = bench.open(true).0;
    assert_eq!(begin(&log, 0, 1), None);
    append_nine(&log, 0, 1, None).unwrap();
    assert!(is_outside(&append(
        &log,
        &first(ProducerId::new(8), 0, 0),
        TransactionRule::Verified(guard)
    )));
}

#[test]
fn truncation_of_a_marker_reopens_its_transaction_and_removes_the_guards() {
    let log = log();
    append_nine(&log, 0, 0, begin(&log, 0, 0)).unwrap();
    mark(&log, NINE, 0, 0, 1).unwrap();
    let guard = begin(&log, 0, 1);
    assert!(guard.is_some());
    log.truncate_to(1).unwrap();
    assert_eq!(begin(&log, 0, 1), None);
    log.truncate_to(0).unwrap();
    assert_ne!(begin(&log, 0, 1), guard);
}

#[test]
fn a_marker_of_transaction_version_2_brings_a_new_epoch_or_is_a_retry() {
    let log = log();
    append_nine(&log, 0, 0, begin(&log, 0, 0)).unwrap();
    assert!(is_stale(&mark(&log, NINE, 0, 0, 2)));
    mark(&log, NINE, 1, 0, 2).unwrap();
    mark(&log, NINE, 1, 0, 2).unwrap();
    assert!(is_stale(&mark(&log, NINE, 0, 0, 2)));
    append_nine(&log, 1, 0, begin(&log, 1, 0)).unwrap();
    assert!(is_stale(&mark(&log, NINE, 1, 0, 2)));
    mark(&log, NINE, 1, 0, 1).unwrap();
}

#[test]
fn a_marker_of_an_older_coordinator_is_fenced() {
    let log = log();
    mark(&log, NINE, 0, 5, 1).unwrap();
    assert!(matches!(
        mark(&log, NINE, 0, 4, 1),
        Err(AppendError::Producer(ProducerError::TransactionCoordinatorFenced { .. }))
    ));
    mark(&log, NINE, 0, 5, 1).unwrap();
}

/// An event in a sequence of transactions, caused by a client, its coordinator or the network.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A produce request arrives that starts the transaction of this producer.
    Ask(usize),
    /// The coordinator accepts the oldest request if its transaction is open there.
    Verify,
    /// The oldest accepted batch is appended.
    Append,
    /// The transaction ends, and its marker is sent.
    End,
    /// The oldest marker is written, or twice for a retry.
    Mark(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..2_usize).prop_map(Step::Ask),
        3 => Just(Step::Verify),
        3 => Just(Step::Append),
        2 => Just(Step::End),
        2 => any::<bool>().prop_map(Step::Mark),
    ];
    proptest::collection::vec(step, 1..60)
}

/// A batch that is in transit, and its guard.
#[derive(Debug, Clone, Copy)]
struct Late {
    batch: FirstBatch,
    guard: Option<VerificationGuard>,
}

/// A coordinator with the correct state, clients whose requests arrive late, and a log.
struct World {
    log: Log,
    version: i16,
    epochs: [i16; 2],
    sequences: HashMap<(usize, i16), i32>,
    /// True if the coordinator has added this partition to the producer's transaction.
    has_partition: [bool; 2],
    /// True if the marker of the last transaction has not arrived yet.
    ending: [bool; 2],
    asked: Vec<(usize, Late)>,
    allowed: Vec<(usize, Late)>,
    markers: Vec<(usize, i16)>,
}

impl World {
    fn new(version: i16) -> World {
        World {
            log: log(),
            version,
            epochs: [0; 2],
            sequences: HashMap::new(),
            has_partition: [false; 2],
            ending: [false; 2],
            asked: Vec::new(),
            allowed: Vec::new(),
            markers: Vec::new(),
        }
    }

    fn producer(number: usize) -> ProducerId {
        ProducerId::new(number as i64)
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Ask(number) => self.ask(number),
            Step::Verify if !self.asked.is_empty() => {
                let (number, late) = self.asked.remove(0);
                // A request with an older epoch is fenced.
                let is_current = late.batch.producer_epoch.get() == self.epochs[number];
                if is_current && !self.ending[number] {
                    self.has_partition[number] = true;
                    self.allowed.push((number, late));
                }
            }
            Step::Append if !self.allowed.is_empty() => {
                let (_, late) = self.allowed.remove(0);
                // The append may fail; the log must be correct in any case.
                let _ = append(&self.log, &late.batch, TransactionRule::Verified(late.guard));
            }
            Step::End => (0..2).for_each(|number| self.end(number)),
            Step::Mark(again) if !self.markers.is_empty() => {
                let (number, epoch) = self.markers.remove(0);
                for _ in 0..=usize::from(again) {
                    mark(&self.log, Self::producer(number), epoch, 0, self.version).unwrap();
                }
                self.ending[number] = false;
            }
            _ => {}
        }
    }

    fn ask(&mut self, number: usize) {
        let epoch = self.epochs[number];
        let sequence = self.sequences.entry((number, epoch)).or_default();
        let batch = FirstBatch {
            supports_epoch_bump: self.version == 2,
            ..first(Self::producer(number), epoch, *sequence)
        };
        *sequence += 1;
        let guard = self.log.begin_verification(&batch);
        let late = Late { batch, guard };
        if guard.is_some() { &mut self.asked } else { &mut self.allowed }.push((number, late));
    }

    fn end(&mut self, number: usize) {
        if !std::mem::take(&mut self.has_partition[number]) {
            return;
        }
        self.ending[number] = true;
        self.epochs[number] += i16::from(self.version == 2);
        self.markers.push((number, self.epochs[number]));
    }

    /// Checks that every open transaction in the log will get a marker.
    fn check(&self) {
        for entry in self.log.active_producers() {
            let number = entry.producer_id.get() as usize;
            let ends = self.has_partition[number] || self.ending[number];
            assert!(
                entry.current_txn_first_offset.is_none() || ends,
                "the transaction of producer {number} never ends"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// contract/replication.md#T6.
    #[test]
    fn no_batch_that_is_late_opens_a_transaction_which_no_marker_ends(
        steps in steps(),
        version in 1..=2_i16,
    ) {
        let mut world = World::new(version);
        for step in steps {
            world.step(step);
            world.check();
        }
        world.step(Step::End);
        while !world.markers.is_empty() {
            world.step(Step::Mark(false));
        }
        while !world.allowed.is_empty() {
            world.step(Step::Append);
        }
        world.check();
        let is_open = |entry: &pykafka_log::ProducerEntry| entry.current_txn_first_offset.is_some();
        prop_assert!(!world.log.active_producers().iter().any(is_open));
    }
}
