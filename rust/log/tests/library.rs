//! Logs opened on their own: under any name of their directory, and for reading beside a writer.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::watched_disk::WatchedDisk;
use common::{NOW_MS, append};
use pykafka_log::{
    DirectoryOptions, Disk, LibraryLog, Log, LogConfig, LogDirectory, ManualClock, OpenError,
    Recovery, Repair,
};

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(NOW_MS))
}

fn config() -> Arc<LogConfig> {
    Arc::new(LogConfig {
        segment_bytes: 1000,
        index_interval_bytes: 300,
        file_delete_delay_ms: 0,
        ..LogConfig::default()
    })
}

fn open(path: &Path) -> (LibraryLog, Recovery) {
    LibraryLog::open(path, config(), clock()).unwrap()
}

/// A closed log of 30 records, of which the first `deleted` were deleted.
fn filled(path: &Path, deleted: i64) {
    let (library, _) = open(path);
    for n in 0..10 {
        append(&library.log(), 3, NOW_MS + n);
    }
    library.delete_before(deleted).unwrap();
    library.close().unwrap();
}

/// Log start and end as an open for writing, one for reading only and repair find them; none finds damage.
fn assert_whole(path: &Path, start: i64, end: i64, what: &str) {
    let (library, recovery) = LibraryLog::open_read_only(path, config(), clock()).unwrap();
    let found = |library: &LibraryLog, recovery: Recovery| {
        let log = library.log();
        (log.log_start_offset(), log.log_end_offset(), recovery.damage)
    };
    assert_eq!(found(&library, recovery), (start, end, None), "{what}: read-only");
    let repair = Repair::open(path, clock()).unwrap();
    let [partition] = &repair.partitions().unwrap()[..] else { panic!("{what}: one log") };
    assert_eq!(repair.look(partition, &config()).unwrap(), None, "{what}: repair");
    drop(repair);
    let (library, recovery) = open(path);
    assert_eq!(found(&library, recovery), (start, end, None), "{what}: writer");
    library.close().unwrap();
}

fn rows(path: &Path, checkpoint: &str) -> Vec<String> {
    let text = std::fs::read_to_string(path.join(checkpoint)).unwrap();
    text.lines().skip(2).map(ToOwned::to_owned).collect()
}

#[test]
fn a_moved_log_keeps_its_log_start_and_its_truncations() {
    let root = tempfile::tempdir().unwrap();
    let (old, new) = (root.path().join("orders-0"), root.path().join("archive"));
    filled(&old, 7);
    std::fs::rename(&old, &new).unwrap();
    assert_whole(&new, 7, 30, "moved");
    let (library, _) = open(&new);
    library.truncate_to(21).unwrap();
    library.close().unwrap();
    assert_eq!(rows(&new, "recovery-point-offset-checkpoint"), ["archive 0 21"]);
    assert_eq!(rows(&new, "log-start-offset-checkpoint"), ["archive 0 7"]);
    std::fs::rename(&new, &old).unwrap();
    assert_whole(&old, 7, 21, "moved back");
}

#[test]
fn a_log_opened_by_a_symbolic_link_is_the_log_itself() {
    let root = tempfile::tempdir().unwrap();
    let (path, link) = (root.path().join("orders-0"), root.path().join("link"));
    filled(&path, 7);
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert_whole(&link, 7, 30, "by the link");
    let (library, _) = open(&link);
    library.delete_before(14).unwrap();
    library.truncate_to(21).unwrap();
    library.close().unwrap();
    assert_whole(&path, 14, 21, "by its name");
}

/// No other test here depends on the working directory.
#[test]
fn a_log_opened_by_a_relative_path_stays_where_it_is() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("orders-0");
    filled(&path, 7);
    std::env::set_current_dir(&path).unwrap();
    assert_whole(Path::new("."), 7, 30, "by a dot");
    let (library, _) = open(Path::new("."));
    std::env::set_current_dir("/").unwrap();
    library.delete_before(14).unwrap();
    library.truncate_to(21).unwrap();
    library.close().unwrap();
    assert_whole(&path, 14, 21, "by its name");
}

#[test]
fn a_partition_opened_by_a_symbolic_link_is_under_the_lock_of_its_data_directory() {
    let root = tempfile::tempdir().unwrap();
    let (partition, link) = (root.path().join("data/orders-0"), root.path().join("link"));
    std::fs::create_dir_all(&partition).unwrap();
    std::fs::write(root.path().join("data/meta.properties"), "").unwrap();
    filled(&partition, 7);
    std::os::unix::fs::symlink(&partition, &link).unwrap();
    let (_held, _) = open(&partition);
    let second = LibraryLog::open(&link, config(), clock());
    assert!(matches!(second, Err(OpenError::Locked { .. })));
    let (library, recovery) = LibraryLog::open_read_only(&link, config(), clock()).unwrap();
    assert_eq!((library.log().log_start_offset(), recovery.damage), (7, None));
}

/// Earlier versions left the rows of earlier names.
#[test]
fn of_several_rows_the_one_of_the_logs_name_counts_or_the_safest() {
    let root = tempfile::tempdir().unwrap();
    for (rows_named, expected) in [("orders", 7), ("other", 9)] {
        let path = root.path().join(format!("orders-{expected}"));
        filled(&path, 7);
        let name = format!("{rows_named} {expected}");
        for (checkpoint, offsets) in [("log-start", [7, 9]), ("recovery-point", [30, 99])] {
            let [own, old] = offsets;
            let text = format!("0\n2\n{name} {own}\nolder 0 {old}\n");
            std::fs::write(path.join(format!("{checkpoint}-offset-checkpoint")), text).unwrap();
        }
        assert_whole(&path, expected, 30, rows_named);
        assert_eq!(rows(&path, "log-start-offset-checkpoint").len(), 1);
        assert_eq!(rows(&path, "recovery-point-offset-checkpoint").len(), 1);
    }
}

#[test]
fn repair_of_a_moved_log_leaves_one_row_of_it() {
    let root = tempfile::tempdir().unwrap();
    let (old, new) = (root.path().join("orders-0"), root.path().join("archive"));
    filled(&old, 7);
    std::fs::rename(&old, &new).unwrap();
    let mut logs: Vec<PathBuf> = (std::fs::read_dir(&new).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "log"))
        .collect();
    logs.sort();
    std::fs::remove_file(logs.last().unwrap()).unwrap();
    let repair = Repair::open(&new, clock()).unwrap();
    let cut = repair.look(&new, &config()).unwrap().unwrap();
    repair.cut(&new, &config()).unwrap();
    drop(repair);
    assert_eq!(
        rows(&new, "recovery-point-offset-checkpoint"),
        [format!("archive 0 {}", cut.offset)]
    );
    assert_whole(&new, 7, cut.offset, "repaired");
}

/// A partition of 30 records, all synced, that somebody writes to.
struct Writer {
    disk: WatchedDisk,
    directory: Arc<LogDirectory>,
    log: Arc<Log>,
}

impl Writer {
    const DIR: &str = "/data";
    const PARTITION: &str = "/data/orders-0";

    fn new() -> Writer {
        let disk = WatchedDisk::default();
        let options = DirectoryOptions {
            dir: Path::new(Writer::DIR),
            disk: Arc::new(disk.clone()),
            lock: None,
            producer_id_expiration_ms: 86_400_000,
            random_seed: 1,
            buffers: Arc::default(),
        };
        let directory = LogDirectory::open(options, clock()).unwrap();
        disk.create_anew(&Path::new(Writer::DIR).join("meta.properties")).unwrap();
        let (log, _) = directory.open_log("orders", 0, [7; 16], config()).unwrap();
        let writer = Writer { disk, directory: Arc::new(directory), log };
        writer.append(10);
        writer
    }

    fn append(&self, batches: i64) {
        for n in 0..batches {
            append(&self.log, 3, NOW_MS + n);
        }
        self.log.flush().unwrap();
        self.directory.checkpoint(&[]).unwrap();
    }

    /// Deletes the records below `offset` with their segments' files.
    fn delete_before(&self, offset: i64) {
        self.directory.delete_before(&self.log, offset).unwrap();
        self.directory.enforce_retention(&self.log, i64::MAX).unwrap();
        self.log.delete_expired_files(i64::MAX).unwrap();
        assert!(self.log.segments()[0].0 > 0);
    }

    fn read(&self) -> Result<(LibraryLog, Recovery), OpenError> {
        let disk = Arc::new(self.disk.clone());
        LibraryLog::open_read_only_on(disk, Path::new(Writer::PARTITION), config(), clock())
    }
}

/// What a writer does, and where the log begins and ends then.
type Change = (&'static str, fn(&Writer), (i64, i64));

#[test]
fn a_writer_that_changes_the_log_during_a_read_only_open_leaves_no_damage() {
    let changes: [Change; 3] = [
        ("deletes", |writer| writer.delete_before(20), (20, 30)),
        ("truncates", |writer| writer.directory.truncate_log(&writer.log, 12).unwrap(), (0, 12)),
        (
            "appends and deletes",
            |writer| {
                writer.append(10);
                writer.delete_before(45);
            },
            (45, 60),
        ),
    ];
    let moments = [
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "replication-offset-checkpoint",
        "cleaner-offset-checkpoint",
        "orders-0/leader-epoch-checkpoint",
        "orders-0/00000000000000000000.log",
        "orders-0/00000000000000000000.index",
        "orders-0/00000000000000000012.log",
        "orders-0/00000000000000000024.log",
    ];
    let mut acted = 0;
    for (what, change, expected) in changes {
        for moment in moments {
            let writer = Arc::new(Writer::new());
            let (disk, changed) = (writer.disk.clone(), writer.clone());
            let path = Path::new(Writer::DIR).join(moment);
            disk.hook().before_open(path, move || change(&changed));
            let (library, recovery) =
                writer.read().unwrap_or_else(|error| panic!("{what} at {moment}: {error}"));
            let log = library.log();
            assert_eq!(recovery.damage, None, "{what} at {moment}");
            if disk.hook().has_acted() {
                acted += 1;
                let found = (log.log_start_offset(), log.log_end_offset());
                assert!([expected, (0, 30)].contains(&found), "{what} at {moment}: {found:?}");
            }
        }
    }
    assert!(acted >= 3 * 4, "{acted}");
}

#[test]
fn damage_is_told_at_once_without_a_writer_and_in_the_end_beside_one() {
    let writer = Writer::new();
    let first = Path::new(Writer::PARTITION).join("00000000000000000000.log");
    writer.disk.remove_file(&first).unwrap();
    let (_, recovery) = writer.read().unwrap();
    assert!(recovery.damage.is_some());

    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("orders-0");
    filled(&path, 1);
    std::fs::remove_file(path.join("00000000000000000000.log")).unwrap();
    let (_writer, _) = open(&path);
    let (_, recovery) = LibraryLog::open_read_only(&path, config(), clock()).unwrap();
    assert!(recovery.damage.is_some());
}
