//! Compares compaction with a map of keys: after any operations, the log's last committed values
//! equal the map.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{Bench, LEADER, NOW_MS, all, end_transaction};
use proptest::prelude::*;
use pykafka_log::{CompactionOptions, Log, LogOptions};
use pykafka_record::{
    BatchBuilder, BatchOptions, Compression, EndTransactionMarker, LeaderEpoch, Limits,
    ProducerEpoch, ProducerId,
};

const RETENTION_MS: i64 = 40;
const KEYS: u8 = 6;

/// One operation on a log.
#[derive(Debug, Clone)]
enum Step {
    /// Appends records with these keys, some of them tombstones, from an idempotent producer if one
    /// is given.
    Append {
        keys: Vec<(u8, bool)>,
        codec: usize,
        producer: Option<i64>,
    },
    /// Appends a batch in a producer's transaction.
    Transact {
        producer: i64,
        keys: Vec<(u8, bool)>,
    },
    /// Ends the producer's transaction if it is open.
    End {
        producer: i64,
        commits: bool,
    },
    Roll,
    /// Truncates a part of the log above the high watermark.
    Truncate {
        percent: i64,
    },
    Compact {
        key_bytes_max: usize,
        waits_ms: i64,
    },
    /// Compacts from the beginning, as after the loss of the checkpoint.
    CompactAll,
    Reopen {
        clean: bool,
    },
    /// Opens the files that a kill of the process would leave.
    Kill,
    Release,
}

fn keys() -> impl Strategy<Value = Vec<(u8, bool)>> {
    prop::collection::vec((0..KEYS, prop::bool::weighted(0.2)), 1..5)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (keys(), 0..5usize, prop::option::of(1..3i64))
            .prop_map(|(keys, codec, producer)| Step::Append { keys, codec, producer }),
        4 => (10..13i64, keys()).prop_map(|(producer, keys)| Step::Transact { producer, keys }),
        3 => (10..13i64, any::<bool>())
            .prop_map(|(producer, commits)| Step::End { producer, commits }),
        3 => Just(Step::Roll),
        1 => (0..=100i64).prop_map(|percent| Step::Truncate { percent }),
        4 => (prop_oneof![Just(1usize), Just(400), Just(1 << 20)], 0..60i64)
            .prop_map(|(key_bytes_max, waits_ms)| Step::Compact { key_bytes_max, waits_ms }),
        1 => Just(Step::CompactAll),
        1 => any::<bool>().prop_map(|clean| Step::Reopen { clean }),
        1 => Just(Step::Kill),
        1 => Just(Step::Release),
    ]
}

/// An appended record; `producer` is set in a transaction.
#[derive(Debug, Clone)]
struct Written {
    offset: i64,
    key: u8,
    value: Option<String>,
    producer: Option<i64>,
}

/// Offset of a transaction's marker, and true if it was committed; `None` while it is open.
type Marker = Option<(i64, bool)>;

/// The expected content.
#[derive(Debug, Default, Clone)]
struct Model {
    records: Vec<Written>,
    /// Producer, first offset and marker of each transaction.
    transactions: Vec<(i64, i64, Marker)>,
    sequences: BTreeMap<i64, i32>,
    end: i64,
}

impl Model {
    fn is_committed(&self, record: &Written) -> bool {
        let Some(producer) = record.producer else { return true };
        let of = |(id, first, _): &&(i64, i64, _)| *id == producer && *first <= record.offset;
        let txn = self.transactions.iter().rev().find(of).unwrap();
        matches!(txn.2, Some((_, true)))
    }

    fn has_open(&self, producer: i64) -> bool {
        self.transactions.iter().any(|(id, _, end)| *id == producer && end.is_none())
    }

    fn last_stable_offset(&self) -> i64 {
        let open = self.transactions.iter().filter(|(_, _, end)| end.is_none());
        open.map(|(_, first, _)| *first).min().unwrap_or(self.end)
    }

    /// The last value of each key below the last stable offset, and where it is.
    fn last_values(&self) -> BTreeMap<u8, (i64, String)> {
        let mut last = BTreeMap::new();
        let stable = self.last_stable_offset();
        for record in self.records.iter().filter(|record| record.offset < stable) {
            if self.is_committed(record) {
                match &record.value {
                    Some(value) => last.insert(record.key, (record.offset, value.clone())),
                    None => last.remove(&record.key),
                };
            }
        }
        last
    }

    fn truncate(&mut self, end: i64) {
        self.records.retain(|record| record.offset < end);
        self.transactions.retain(|(_, first, _)| *first < end);
        for (_, _, marker) in &mut self.transactions {
            *marker = marker.filter(|(offset, _)| *offset < end);
        }
        self.end = end;
    }
}

struct Run {
    bench: Bench,
    log: Log,
    model: Model,
    now_ms: i64,
    clean_offset: i64,
    /// The high watermark of the last compaction: the log is not truncated below it.
    high_watermark: i64,
}

impl Run {
    fn new() -> Run {
        let mut bench = Bench::default();
        bench.config.cleanup_policy.compact = true;
        bench.config.cleanup_policy.delete = false;
        bench.config.delete_retention_ms = RETENTION_MS;
        bench.config.segment_bytes = 700;
        let (log, _) = bench.open(true);
        Run {
            bench,
            log,
            model: Model::default(),
            now_ms: NOW_MS,
            clean_offset: 0,
            high_watermark: 0,
        }
    }

    fn append(&mut self, keys: &[(u8, bool)], options: BatchOptions, transaction: Option<i64>) {
        let mut builder = BatchBuilder::new(options);
        let mut records = Vec::new();
        for (offset, (key, is_deleted)) in (self.model.end..).zip(keys) {
            let value = (!is_deleted).then(|| format!("value of {offset}"));
            let bytes = value.as_ref().map(String::as_bytes);
            builder.append(self.now_ms, Some(&[*key]), bytes, &[]).unwrap();
            records.push(Written { offset, key: *key, value, producer: transaction });
        }
        let mut bytes = Vec::new();
        builder.build(&mut bytes).unwrap();
        let info = self.log.append_as_leader(&mut bytes, LEADER).unwrap();
        assert_eq!(info.first_offset, self.model.end);
        if let Some(id) = transaction.filter(|id| !self.model.has_open(*id)) {
            self.model.transactions.push((id, self.model.end, None));
        }
        self.model.end += keys.len() as i64;
        self.model.records.extend(records);
    }

    fn producer(&mut self, id: i64, count: usize, transactional: bool) -> BatchOptions {
        let sequence = self.model.sequences.entry(id).or_default();
        let base_sequence = *sequence;
        *sequence += count as i32;
        BatchOptions {
            producer_id: ProducerId::new(id),
            producer_epoch: ProducerEpoch::new(0),
            base_sequence,
            transactional,
            ..BatchOptions::default()
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Append { keys, codec, producer } => {
                let options = match producer {
                    Some(id) => self.producer(*id, keys.len(), false),
                    None => BatchOptions::default(),
                };
                let compression = Compression::ALL[*codec];
                self.append(keys, BatchOptions { compression, ..options }, None);
            }
            Step::Transact { producer, keys } => {
                let options = self.producer(*producer, keys.len(), true);
                self.append(keys, options, Some(*producer));
            }
            Step::End { producer, commits } => self.end_transaction(*producer, *commits),
            Step::Roll => self.log.roll().unwrap(),
            Step::Truncate { percent } => self.truncate(*percent),
            Step::Compact { key_bytes_max, waits_ms } => {
                self.now_ms += waits_ms;
                self.compact(self.clean_offset, *key_bytes_max);
            }
            Step::CompactAll => self.compact(0, 1 << 20),
            Step::Reopen { clean } => {
                self.log.close().unwrap();
                self.open(*clean);
            }
            Step::Kill if self.bench.disk.exists(&self.bench.dir) => {
                self.bench.disk = self.bench.copied_disk();
                self.open(false);
            }
            Step::Kill => {}
            Step::Release => self.log.release_idle_files().unwrap(),
        }
    }

    fn end_transaction(&mut self, producer: i64, committed: bool) {
        if !self.model.has_open(producer) {
            return;
        }
        let marker = EndTransactionMarker { committed, coordinator_epoch: 0 };
        let (id, epoch) = (ProducerId::new(producer), ProducerEpoch::new(0));
        let info = end_transaction(&self.log, id, epoch, marker, LeaderEpoch::ZERO).unwrap();
        let open = self.model.transactions.iter_mut();
        let mut open = open.filter(|(id, _, end)| *id == producer && end.is_none());
        open.next().unwrap().2 = Some((info.first_offset, committed));
        self.model.end += 1;
    }

    fn truncate(&mut self, percent: i64) {
        let from = self.high_watermark;
        let offset = from + (self.model.end - from) * percent / 100;
        self.log.truncate_to(offset).unwrap();
        self.model.truncate(self.log.log_end_offset());
        // The last batches of its producers may be truncated.
        let known = self.log.active_producers();
        let next = known.iter().map(|entry| (entry.producer_id.get(), entry.last_sequence() + 1));
        self.model.sequences = next.collect();
    }

    fn open(&mut self, clean: bool) {
        let mut options: LogOptions = self.bench.options(clean);
        options.checkpointed.cleaner_offset = self.clean_offset;
        options.checkpointed.recovery_point = self.log.recovery_point();
        let (log, recovery) = Log::open(options).unwrap();
        assert_eq!((recovery.damage, recovery.truncated_bytes), (None, 0));
        assert_eq!(recovery.warnings, Vec::<String>::new());
        self.log = log;
    }

    fn compact(&mut self, clean_offset: i64, key_bytes_max: usize) {
        let options = CompactionOptions {
            clean_offset,
            key_bytes_max,
            high_watermark: self.log.log_end_offset(),
            ..CompactionOptions::default()
        };
        self.high_watermark = options.high_watermark;
        let stable = self.model.last_stable_offset();
        let active = self.log.active_base_offset().unwrap_or(0);
        let before = contents(&self.log);
        let report = self.log.compact(&options, self.now_ms).unwrap();
        assert!(report.is_complete);
        assert!(report.clean_offset <= stable.min(active).max(clean_offset));
        self.clean_offset = report.clean_offset;
        let after = contents(&self.log);
        let untouched = |records: &[Found]| {
            let above = records.iter().filter(|record| record.offset >= report.clean_offset);
            above.cloned().collect::<Vec<_>>()
        };
        assert_eq!(untouched(&after), untouched(&before), "above {}", report.clean_offset);
        self.check_idempotent(report.clean_offset, &after);
    }

    /// Checks that a second compaction removes nothing, unless a horizon has passed.
    fn check_idempotent(&self, clean_offset: i64, after: &[Found]) {
        let options = CompactionOptions {
            clean_offset,
            high_watermark: clean_offset,
            ..CompactionOptions::default()
        };
        self.log.compact(&options, self.now_ms).unwrap();
        assert_eq!(contents(&self.log), after);
    }

    /// Checks that the log has the last values, at the offsets and in the order in which they were
    /// written.
    fn check(&self) {
        let found = contents(&self.log);
        assert!(found.windows(2).all(|pair| pair[0].offset < pair[1].offset));
        let written: BTreeMap<_, _> =
            self.model.records.iter().map(|record| (record.offset, record)).collect();
        for record in &found {
            let known = written[&record.offset];
            assert_eq!((record.key, &record.value), (known.key, &known.value));
        }
        assert_eq!(self.log.log_end_offset(), self.model.end);
        assert_eq!(self.readable(), self.model.last_values());
        let stable = self.log.last_stable_offset(self.log.log_end_offset());
        assert_eq!(stable, self.model.last_stable_offset());
        for entry in self.log.active_producers() {
            if let Some(next) = self.model.sequences.get(&entry.producer_id.get()) {
                assert_eq!(entry.last_sequence() + 1, *next, "{entry:?}");
            }
        }
        let known: BTreeSet<_> =
            self.log.active_producers().iter().map(|entry| entry.producer_id.get()).collect();
        assert!(self.model.sequences.keys().all(|id| known.contains(id)));
    }

    /// The final values of a consumer with `read_committed`.
    fn readable(&self) -> BTreeMap<u8, (i64, String)> {
        let stable = self.log.last_stable_offset(self.log.log_end_offset());
        let (mut next, mut last) = (0, BTreeMap::new());
        while next < stable {
            let (fetched, aborted) = self.log.fetch_committed(next, 1 << 16, stable, true).unwrap();
            let pykafka_log::FetchedRecords::Read(bytes) = &fetched.records else {
                panic!("a small read")
            };
            for record in found_in(bytes) {
                let is_aborted = aborted.iter().any(|txn| {
                    record.producer == Some(txn.producer_id.get())
                        && (txn.first_offset..=txn.last_offset).contains(&record.offset)
                });
                if !is_aborted {
                    match record.value {
                        Some(value) => last.insert(record.key, (record.offset, value)),
                        None => last.remove(&record.key),
                    };
                }
            }
            assert!(fetched.next_offset > next);
            next = fetched.next_offset;
        }
        last
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Found {
    offset: i64,
    key: u8,
    value: Option<String>,
    /// Set for a transactional record.
    producer: Option<i64>,
}

fn found_in(bytes: &[u8]) -> Vec<Found> {
    let mut found = Vec::new();
    for batch in all(bytes).iter().filter(|batch| !batch.is_control()) {
        assert!(batch.is_crc_valid());
        let producer = batch.is_transactional().then(|| batch.producer_id().get());
        let mut scratch = Vec::new();
        for record in batch.records(&mut scratch, Limits::default()).unwrap() {
            let record = record.unwrap();
            let value = record.value.map(|value| String::from_utf8(value.to_vec()).unwrap());
            found.push(Found {
                offset: record.offset,
                key: record.key.unwrap()[0],
                value,
                producer,
            });
        }
    }
    found
}

fn contents(log: &Log) -> Vec<Found> {
    let (mut next, end) = (log.log_start_offset(), log.log_end_offset());
    let mut found = Vec::new();
    while next < end {
        let data = log.read(next, 1 << 16, end, true).unwrap();
        assert!(data.next_offset > next, "nothing to read at {next} of {end}");
        found.extend(found_in(&data.bytes));
        next = data.next_offset;
    }
    found
}

fn check(steps: &[Step]) {
    let mut run = Run::new();
    for step in steps {
        run.step(step);
        run.check();
    }
    run.log.roll().unwrap();
    for round in 0..3 {
        run.now_ms += round * RETENTION_MS;
        run.compact(run.clean_offset, 1 << 20);
        run.check();
    }
}

/// Recovery rebuilds the index of the marker's segment without the transaction, because its records
/// were removed.
#[test]
fn kills_after_compaction_of_an_aborted_transaction_cause_no_warning() {
    let append = |key| Step::Append { keys: vec![(key, false)], codec: 0, producer: None };
    let transact = |key| Step::Transact { producer: 10, keys: vec![(key, false)] };
    check(&[
        transact(0),
        append(1),
        Step::Roll,
        Step::Reopen { clean: true },
        Step::End { producer: 10, commits: false },
        transact(2),
        Step::Compact { key_bytes_max: 1 << 20, waits_ms: 0 },
        Step::Kill,
        Step::Kill,
    ]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_last_values_are_those_of_a_map(steps in prop::collection::vec(step(), 1..60)) {
        check(&steps);
    }
}
