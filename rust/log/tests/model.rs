//! Compares a log with a plain list: after any operations, both have the same records.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Bench, LEADER, NOW_MS, all, batch};
use proptest::prelude::*;

/// One operation on a log.
#[derive(Debug, Clone)]
enum Step {
    Append { count: usize, size: usize, timestamp: i64 },
    Roll,
    Truncate { percent: i64 },
    DeleteBefore { percent: i64 },
    Retain,
    Release,
    Sync,
    Reopen { clean: bool },
    Read { percent: i64, bytes_max: usize },
    Lookup { timestamp: i64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1..6usize, 0..300usize, 0..500i64).prop_map(|(count, size, timestamp)| {
            Step::Append { count, size, timestamp: NOW_MS + timestamp }
        }),
        1 => Just(Step::Roll),
        1 => (0..=110i64).prop_map(|percent| Step::Truncate { percent }),
        1 => (0..=60i64).prop_map(|percent| Step::DeleteBefore { percent }),
        1 => Just(Step::Retain),
        1 => Just(Step::Release),
        1 => Just(Step::Sync),
        2 => any::<bool>().prop_map(|clean| Step::Reopen { clean }),
        4 => (0..=100i64, 0..3000usize).prop_map(|(percent, bytes_max)| {
            Step::Read { percent, bytes_max }
        }),
        2 => (-10..520i64).prop_map(|offset| Step::Lookup { timestamp: NOW_MS + offset }),
    ]
}

/// The list: base offset, count and first timestamp of each batch, whose records are 1 ms apart.
#[derive(Debug, Default)]
struct Model {
    batches: Vec<(i64, i64, i64)>,
    start: i64,
    end: i64,
}

impl Model {
    fn offset_at(&self, percent: i64) -> i64 {
        self.start + (self.end - self.start) * percent / 100
    }

    fn truncate(&mut self, offset: i64) {
        if offset < self.end {
            self.batches.retain(|(base, count, _)| base + count <= offset);
            let last = self.batches.last().map_or(0, |(base, count, _)| base + count);
            self.end = last.max(self.start);
        }
    }

    /// Batches from the one that contains `offset` on.
    fn from(&self, offset: i64) -> Vec<(i64, i64)> {
        let found = self.batches.iter().filter(|(base, count, _)| base + count > offset);
        found.map(|(base, count, _)| (*base, base + count - 1)).collect()
    }

    fn first_not_older(&self, timestamp: i64) -> Option<i64> {
        let records = self.batches.iter().flat_map(|(base, count, first)| {
            (0..*count).map(move |index| (base + index, first + index))
        });
        let mut found =
            records.filter(|(offset, time)| *offset >= self.start && *time >= timestamp);
        found.next().map(|(offset, _)| offset)
    }
}

fn check(steps: &[Step]) {
    let mut bench = Bench::default();
    bench.config.retention_ms = -1;
    let (mut log, _) = bench.open(true);
    let mut model = Model::default();
    for step in steps {
        match step {
            Step::Append { count, size, timestamp } => {
                let info =
                    log.append_as_leader(&mut batch(*count, *size, *timestamp), LEADER).unwrap();
                assert_eq!(info.first_offset, model.end);
                model.batches.push((model.end, *count as i64, *timestamp));
                model.end += *count as i64;
            }
            Step::Roll => log.roll().unwrap(),
            Step::Truncate { percent } => {
                let offset = model.offset_at(*percent);
                log.truncate_to(offset).unwrap();
                model.truncate(offset);
            }
            Step::DeleteBefore { percent } => {
                model.start = model.offset_at(*percent);
                assert_eq!(log.delete_before(model.start).unwrap(), model.start);
            }
            Step::Retain => {
                log.enforce_retention(model.end).unwrap();
            }
            Step::Release => log.release_idle_files().unwrap(),
            Step::Sync => log.flush().unwrap(),
            Step::Reopen { clean } => {
                log.close().unwrap();
                let options = bench.options(*clean);
                let mut options = options;
                options.checkpointed.log_start_offset = Some(model.start);
                let (opened, recovery) = pykafka_log::Log::open(options).unwrap();
                assert_eq!((recovery.truncated_bytes, recovery.damaged_at()), (0, None));
                log = opened;
            }
            Step::Read { percent, bytes_max } => {
                let offset = model.offset_at(*percent);
                let data = log.read(offset, *bytes_max, model.end, true).unwrap();
                let found: Vec<_> =
                    all(&data.bytes).iter().map(|b| (b.base_offset(), b.last_offset())).collect();
                let expected = model.from(offset);
                assert_eq!(found, expected[..found.len()]);
                assert!(found.len() <= 1 || data.bytes.len() <= *bytes_max);
                assert_eq!(found.is_empty(), expected.is_empty());
            }
            Step::Lookup { timestamp } => {
                let found = log.offset_for_timestamp(*timestamp, model.end).unwrap();
                let found = found.map(|found| found.offset);
                assert_eq!(found, model.first_not_older(*timestamp));
            }
        }
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (model.start, model.end));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn log_reads_as_a_plain_list_does(steps in prop::collection::vec(step(), 1..60)) {
        check(&steps);
    }
}
