//! Writers: appends after old formats, followers, truncation, compaction.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use pykafka_log::{CompactionOptions, RealDisk};
use pykafka_record::{Compression, LeaderEpoch};

use crate::common::{Bench, NOW_MS, append};
use crate::message_sets::{Row, Style};
use crate::{Layout, bench_with, layouts, log_bytes, put_segment, read_rows, rows_of, written};

/// The end offset of each batch: a plain message, a message set, or a batch of format 2.
fn ends_of_batches(layout: &Layout) -> Vec<i64> {
    let batches = |bytes: &[u8]| {
        pykafka_record::batches(bytes).map(|batch| batch.unwrap().next_offset()).collect::<Vec<_>>()
    };
    layout.iter().flatten().flat_map(|written| batches(&written.bytes)).collect()
}

/// Files of format 0, each written a second before the next one, and the last one at `NOW_MS`. Each
/// has two records with the same key.
fn aged_segments(dir: &Path) -> Bench {
    let bench = Bench { disk: Arc::new(RealDisk), dir: dir.join("topic-0"), ..Bench::default() };
    bench.disk.create_dir_all(&bench.dir).unwrap();
    let style = Style { magic: 0, codec: Compression::None, log_append_time: None };
    for (base_offset, age_ms) in [(0, 2000), (2, 1000), (4, 0)] {
        let row = |offset| Row::new(offset, -1, Some(b"key"), Some(b"value"));
        let rows = [row(base_offset), row(base_offset + 1)];
        put_segment(&bench, base_offset, &written(style, &rows).bytes);
        let path = bench.dir.join(format!("{base_offset:020}.log"));
        bench.disk.set_modified_ms(&path, NOW_MS - age_ms).unwrap();
    }
    bench
}

#[test]
fn retention_of_records_without_timestamps_uses_the_last_write_of_the_file() {
    let parent = tempfile::tempdir().unwrap();
    let mut bench = aged_segments(parent.path());
    bench.config.retention_ms = 1500;
    let (log, _) = bench.open(false);
    assert_eq!(log.enforce_retention(6).unwrap(), 1);
    log.close().unwrap();
    let (log, _) = bench.open(true);
    bench.clock.advance_ms(1000);
    assert_eq!(log.enforce_retention(6).unwrap(), 1);
}

#[test]
fn a_compaction_keeps_the_last_write_of_the_files_that_it_replaces() {
    let parent = tempfile::tempdir().unwrap();
    let mut bench = aged_segments(parent.path());
    bench.config.cleanup_policy.compact = true;
    let (log, _) = bench.open(false);
    let options = CompactionOptions { high_watermark: 6, ..CompactionOptions::default() };
    let report = log.compact(&options, NOW_MS).unwrap();
    assert_eq!((report.segments_before, report.segments_after), (2, 1));
    let entries = bench.disk.list(&bench.dir).unwrap();
    let cleaned = entries.iter().find(|entry| entry.name == "00000000000000000000.log").unwrap();
    assert_eq!(cleaned.modified_ms, Some(NOW_MS - 1000));
}

proptest! {
    #[test]
    fn appends_follow_old_formats(layout in layouts()) {
        let rows = rows_of(&layout);
        let bench = bench_with(&layout);
        let (log, _) = bench.open(false);
        let appended = append(&log, 3, 5);
        prop_assert_eq!(appended.first_offset, rows.len() as i64);
        log.close().unwrap();
        let (log, recovery) = bench.open(false);
        prop_assert_eq!(recovery.damage, None);
        let found = read_rows(&log, 0, i64::MAX, 1000);
        prop_assert_eq!(&found[..rows.len()], &rows[..]);
        prop_assert_eq!(found.len(), rows.len() + 3);
    }

    #[test]
    fn a_follower_copies_every_byte(layout in layouts(), bytes_max in 1_usize..1500) {
        let leader = bench_with(&layout);
        let (from, _) = leader.open(false);
        let follower = Bench { config: leader.config.clone(), ..Bench::default() };
        let (to, _) = follower.open(true);
        while to.log_end_offset() < from.log_end_offset() {
            let data = from.read(to.log_end_offset(), bytes_max, i64::MAX, true).unwrap();
            to.append_as_follower(&data.bytes, LeaderEpoch::ZERO).unwrap();
        }
        to.close().unwrap();
        prop_assert_eq!(log_bytes(&follower), log_bytes(&leader));
        for clean in [true, false] {
            let (to, recovery) = follower.open(clean);
            prop_assert_eq!(recovery.damage, None);
            prop_assert_eq!(read_rows(&to, 0, i64::MAX, 1000), rows_of(&layout));
            to.close().unwrap();
        }
    }

    #[test]
    fn a_truncation_takes_whole_batches(layout in layouts(), at in any::<prop::sample::Index>()) {
        let rows = rows_of(&layout);
        let offset = at.index(rows.len() + 1) as i64;
        let ends = ends_of_batches(&layout);
        let kept = ends.into_iter().filter(|end| *end <= offset).max().unwrap_or(0);
        let bench = bench_with(&layout);
        let (log, _) = bench.open(false);
        log.truncate_to(offset).unwrap();
        prop_assert_eq!(log.log_end_offset(), kept);
        prop_assert_eq!(read_rows(&log, 0, i64::MAX, 1000), &rows[..kept as usize]);
        log.close().unwrap();
        for clean in [true, false] {
            let (log, recovery) = bench.open(clean);
            prop_assert_eq!(recovery.damage, None);
            prop_assert_eq!(read_rows(&log, 0, i64::MAX, 1000), &rows[..kept as usize]);
            log.close().unwrap();
        }
    }

    #[test]
    fn a_compaction_keeps_the_last_record_of_each_key(
        layout in layouts(), key_bytes_max in prop::sample::select(vec![1, 200, 1 << 20]),
    ) {
        let mut bench = bench_with(&layout);
        bench.config.cleanup_policy.compact = true;
        bench.config.cleanup_policy.delete = false;
        let (log, _) = bench.open(false);
        log.roll().unwrap();
        let options = |clean_offset| CompactionOptions {
            clean_offset, key_bytes_max, ..CompactionOptions::default()
        };
        let mut clean_offset = 0;
        while clean_offset < log.log_end_offset() {
            let report = log.compact(&options(clean_offset), crate::common::NOW_MS).unwrap();
            prop_assert!(report.is_complete && report.clean_offset > clean_offset);
            clean_offset = report.clean_offset;
        }
        let rows = rows_of(&layout);
        let last: HashMap<_, _> = rows.iter().map(|row| (row.key.clone(), row.offset)).collect();
        let is_last = |row: &&Row| row.key.is_some() && last[&row.key] == row.offset;
        let expected: Vec<_> = rows.iter().filter(is_last).cloned().collect();
        prop_assert_eq!(read_rows(&log, 0, i64::MAX, 1000), expected.clone());
        log.close().unwrap();
        let (log, recovery) = bench.open(false);
        prop_assert_eq!(recovery.damage, None);
        prop_assert_eq!(read_rows(&log, 0, i64::MAX, 1000), expected);
    }
}
