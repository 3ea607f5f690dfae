//! Readers get every record once, from every offset, by time, and after each way to open the log.

use proptest::prelude::*;
use pykafka_log::{Log, LogOptions, OnDamage};

use crate::message_sets::Row;
use crate::{Layout, bench_with, layouts, log_bytes, read_rows, rows_of};

/// Opens the log without checkpoints, with each policy, after an unclean and a clean stop.
fn check_each_open(layout: &Layout, mut check: impl FnMut(&Log)) {
    let bench = bench_with(layout);
    let bytes = log_bytes(&bench);
    let cut = |options: LogOptions| LogOptions { on_damage: OnDamage::Cut, ..options };
    for options in [bench.options(false), cut(bench.options(false)), cut(bench.options(true))] {
        let (log, recovery) = Log::open(options).unwrap();
        assert_eq!((recovery.damage, recovery.truncated_bytes), (None, 0));
        assert_eq!(log_bytes(&bench), bytes);
        check(&log);
        log.close().unwrap();
    }
}

fn first_at_least(rows: &[Row], timestamp: i64) -> Option<(i64, i64)> {
    let found = rows.iter().find(|row| row.timestamp >= timestamp)?;
    Some((found.offset, found.timestamp))
}

proptest! {
    #[test]
    fn every_record_is_read_once_and_no_byte_changes(
        layout in layouts(), bytes_max in 1_usize..1500,
    ) {
        let rows = rows_of(&layout);
        check_each_open(&layout, |log| {
            assert_eq!((log.log_start_offset(), log.log_end_offset()), (0, rows.len() as i64));
            assert_eq!(read_rows(log, 0, i64::MAX, bytes_max), rows);
        });
    }

    #[test]
    fn a_reader_may_begin_and_end_inside_of_a_message_set(
        layout in layouts(), bytes_max in 1_usize..1500,
        start in any::<prop::sample::Index>(), end in any::<prop::sample::Index>(),
    ) {
        let rows = rows_of(&layout);
        let (start, end) = (start.index(rows.len()), end.index(rows.len() + 1));
        let wanted = rows.get(start..end).unwrap_or_default();
        check_each_open(&layout, |log| {
            assert_eq!(read_rows(log, start as i64, end as i64, bytes_max), wanted);
        });
    }

    #[test]
    fn records_are_found_by_time(layout in layouts(), timestamp in 0_i64..110_000) {
        let rows = rows_of(&layout);
        let max = rows.iter().map(|row| row.timestamp).max().unwrap();
        check_each_open(&layout, |log| {
            for wanted in [timestamp, max, max + 1, 0] {
                let found = log.offset_for_timestamp(wanted, i64::MAX).unwrap();
                let found = found.map(|found| (found.offset, found.timestamp));
                assert_eq!(found, first_at_least(&rows, wanted));
            }
            let newest = log.offset_of_max_timestamp().unwrap();
            let newest = newest.map(|found| (found.offset, found.timestamp));
            assert_eq!(newest, first_at_least(&rows, max).filter(|_| max >= 0));
        });
    }
}
