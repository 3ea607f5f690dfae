//! Files of an interrupted compaction: every open shows the same log, and an open for reading
//! changes nothing.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Bench, NOW_MS, append, batch_offsets};
use pykafka_log::{Disk, Log, LogOptions};

const BATCHES: i64 = 9;
const SEGMENT: &str = "00000000000000000000";

/// A log of three batches per segment, and a log of six per segment with the same batches.
fn logs() -> (Bench, Bench) {
    let benches = [3, 6].map(|batches| {
        let bench = Bench::default();
        let (log, _) = bench.open(true);
        for n in 0..BATCHES {
            if n > 0 && n % batches == 0 {
                log.roll().unwrap();
            }
            append(&log, 2, NOW_MS + n);
        }
        log.close().unwrap();
        bench
    });
    let [small, large] = benches;
    (small, large)
}

fn put(bench: &Bench, name: &str, bytes: &[u8]) {
    let disk: &dyn Disk = &*bench.disk;
    let file = disk.create_anew(&bench.dir.join(name)).unwrap();
    file.write_at(bytes, 0).unwrap();
}

/// The log of small segments. A compaction of its first two was interrupted.
fn interrupted(swapped: &[&str]) -> Bench {
    let (bench, compacted) = logs();
    for suffix in swapped {
        let bytes = compacted.file(&format!("{SEGMENT}{suffix}"));
        put(&bench, &format!("{SEGMENT}{suffix}.swap"), &bytes);
    }
    bench
}

fn read_only(bench: &Bench) -> Log {
    let options = LogOptions { read_only: true, ..bench.options(true) };
    Log::open(options).unwrap().0
}

/// Everything that can be read, by batches and by index entries.
fn seen(log: &Log) -> String {
    let segments = log.segments();
    let entries: Vec<_> =
        segments.iter().map(|(base, _)| log.segment_entries(*base).unwrap()).collect();
    let times: Vec<_> =
        (0..BATCHES).map(|n| log.offset_for_timestamp(NOW_MS + n, 100).unwrap()).collect();
    format!("{segments:?} {:?} {entries:?} {times:?}", batch_offsets(log, 0))
}

fn check(bench: &Bench, expected: &[i64]) {
    let before = bench.files();
    let log = read_only(bench);
    let shown = seen(&log);
    log.close().unwrap();
    assert_eq!(bench.files(), before, "an open for reading only changed something");
    let (log, recovery) = bench.open(true);
    assert_eq!((recovery.truncated_bytes, recovery.damage), (0, None));
    assert_eq!(log.segments().iter().map(|(base, _)| *base).collect::<Vec<_>>(), expected);
    assert_eq!(shown, seen(&log));
    assert_eq!(batch_offsets(&log, 0).len() as i64, BATCHES);
    log.close().unwrap();
    let names = bench.file_names();
    assert!(!names.iter().any(|name| name.contains(".swap")), "{names:?}");
}

#[test]
fn a_complete_swap_replaces_the_segments_that_it_covers() {
    check(&interrupted(&[".log", ".index", ".timeindex"]), &[0, 12]);
}

/// The crash came after some files had their plain names, when the replaced files were already
/// removed.
#[test]
fn partly_renamed_swap_is_completed() {
    let bench = interrupted(&[".log", ".index", ".timeindex"]);
    for name in bench.file_names() {
        if name.starts_with("00000000000000000006") && !name.contains(".snapshot") {
            bench.disk.remove_file(&bench.dir.join(name)).unwrap();
        }
    }
    for suffix in [".log", ".index", ".timeindex"] {
        bench.disk.remove_file(&bench.dir.join(format!("{SEGMENT}{suffix}"))).unwrap();
    }
    let log = format!("{SEGMENT}.log");
    let (swap, plain) = (bench.dir.join(format!("{log}.swap")), bench.dir.join(log));
    bench.disk.rename(&swap, &plain).unwrap();
    check(&bench, &[0, 12]);
}

#[test]
fn swap_next_to_an_unfinished_split_is_dropped() {
    let bench = interrupted(&[".log", ".index", ".timeindex"]);
    put(&bench, &format!("{SEGMENT}.log.cleaned"), b"half");
    check(&bench, &[0, 6, 12]);
}

#[test]
fn deleted_files_are_not_shown() {
    let (bench, _) = logs();
    let bytes = bench.file("00000000000000000006.log");
    put(&bench, "00000000000000000003.log.deleted", &bytes);
    put(&bench, "00000000000000000003.log.cleaned", &bytes);
    put(&bench, "00000000000000000012.log.tmp", &bytes);
    put(&bench, "00000000000000000012.log.cleaned", &bytes);
    check(&bench, &[0, 6, 12]);
    assert!(bench.file_names().iter().all(|name| !name.contains(".log.")));
}
