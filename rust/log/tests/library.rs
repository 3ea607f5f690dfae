//! Logs that are opened on their own: under any directory name, and for reading during writes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::watched_disk::{Watch, WatchedDisk};
use common::{NOW_MS, append, batch_offsets};
use pykafka_log::checkpoint;
use pykafka_log::disk::{HookedDisk, RealDisk};
use pykafka_log::{
    DirectoryLock, DirectoryOptions, Disk, LibraryLog, Log, LogConfig, LogDirectory, ManualClock,
    OpenError, Recovery, Repair,
};

/// The last segment of 30 records.
const LAST: &str = "00000000000000000024.log";

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

/// Writes and closes a log of 30 records, of which the first `deleted` ones are deleted.
fn filled(path: &Path, deleted: i64) {
    let (library, _) = open(path);
    for n in 0..10 {
        append(&library.log(), 3, NOW_MS + n);
    }
    library.delete_before(deleted).unwrap();
    library.close().unwrap();
}

/// Checks the log start and end offsets that an open for writing, an open for reading and repair
/// find, without damage.
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

/// No other test in this file depends on the working directory.
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

/// Earlier versions left rows with the log's earlier names.
#[test]
fn row_of_the_current_name_counts_or_the_safest_of_several() {
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

/// A partition of 30 synced records, and its writer.
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
        let (directory, log, _) = Writer::open(&disk);
        disk.create_anew(&Path::new(Writer::DIR).join("meta.properties")).unwrap();
        let writer = Writer { disk, directory: Arc::new(directory), log };
        writer.append(10);
        writer
    }

    fn open(disk: &WatchedDisk) -> (LogDirectory, Arc<Log>, Recovery) {
        let options = DirectoryOptions {
            dir: Path::new(Writer::DIR),
            disk: Arc::new(disk.clone()),
            lock: None,
            producer_id_expiration_ms: 86_400_000,
            random_seed: 1,
            buffers: Arc::default(),
        };
        let directory = LogDirectory::open(options, clock()).unwrap();
        let (log, recovery) = directory.open_log("orders", 0, [7; 16], config()).unwrap();
        (directory, log, recovery)
    }

    fn append(&self, batches: i64) {
        for n in 0..batches {
            append(&self.log, 3, NOW_MS + n);
        }
        self.log.flush().unwrap();
        self.directory.checkpoint(&[]).unwrap();
    }

    /// Deletes the records below `offset` and the files of their segments.
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

/// A name, a change by a writer, and the log's start and end offsets after it.
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
fn damage_is_reported_immediately_without_a_writer_and_finally_with_one() {
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

#[test]
fn damage_of_a_log_in_use_is_reported_after_two_equal_looks() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("orders-0");
    filled(&path, 1);
    std::fs::remove_file(path.join("00000000000000000000.log")).unwrap();
    let bytes_read = || {
        let disk = HookedDisk::new(RealDisk, Arc::<Watch>::default());
        let opened =
            LibraryLog::open_read_only_on(Arc::new(disk.clone()), &path, config(), clock());
        assert!(opened.unwrap().1.damage.is_some());
        disk.hook().bytes_read()
    };
    let once = bytes_read();
    let _lock = DirectoryLock::acquire(&path).unwrap();
    assert!((once + 1..=2 * once).contains(&bytes_read()));
}

/// Appends to the last file of the log at each look.
fn keep_appending(disk: &HookedDisk<RealDisk, Watch>, partition: &Path) {
    let (growing, path) = (disk.clone(), partition.to_owned());
    disk.hook().before_open(partition.join("leader-epoch-checkpoint"), move || {
        let mut file = File::options().append(true).open(path.join(LAST)).unwrap();
        file.write_all(&[0; 10]).unwrap();
        keep_appending(&growing, &path);
    });
}

#[test]
fn damage_in_a_sealed_segment_is_reported_during_appends() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("orders-0");
    filled(&path, 1);
    std::fs::remove_file(path.join("00000000000000000000.log")).unwrap();
    let _lock = DirectoryLock::acquire(&path).unwrap();
    let disk = HookedDisk::new(RealDisk, Arc::<Watch>::default());
    keep_appending(&disk, &path);
    let opened = LibraryLog::open_read_only_on(Arc::new(disk), &path, config(), clock());
    assert!(opened.unwrap().1.damage.is_some());
}

/// Adds a name to the log's directory, or removes it, at each look.
fn keep_changing(disk: &WatchedDisk) {
    let changed = disk.clone();
    let moment = Path::new(Writer::PARTITION).join("leader-epoch-checkpoint");
    disk.hook().before_open(moment, move || {
        let path = Path::new(Writer::PARTITION).join("00000000000000000001.log.deleted");
        if changed.remove_file(&path).is_err() {
            changed.create_anew(&path).unwrap();
        }
        keep_changing(&changed);
    });
}

#[test]
fn open_of_a_directory_that_always_changes_is_an_error_and_not_damage() {
    let writer = Writer::new();
    keep_changing(&writer.disk);
    let error = writer.read().unwrap_err();
    assert!(matches!(error, OpenError::Changing { .. }), "{error}");
}

#[test]
fn segments_that_a_writer_adds_do_not_stop_an_open() {
    let writer = Arc::new(Writer::new());
    let (disk, adding) = (writer.disk.clone(), writer.clone());
    let moment = Path::new(Writer::PARTITION).join("leader-epoch-checkpoint");
    disk.hook().before_open(moment, move || adding.append(10));
    let (library, recovery) = writer.read().unwrap();
    assert!((30..60).contains(&library.log().log_end_offset()));
    assert_eq!(recovery.damage, None);
    assert!(library.refresh().unwrap());
    assert_eq!(library.log().log_end_offset(), 60);
}

/// A change of a name, in the order in which Apache Kafka's compaction makes them.
enum Step {
    Create(String, Vec<u8>),
    Rename(String, String),
    Remove(String),
}

impl Step {
    fn take(&self, disk: &WatchedDisk) {
        let path = |name: &String| Path::new(Writer::PARTITION).join(name);
        match self {
            Step::Create(name, bytes) => {
                let file = disk.create_anew(&path(name)).unwrap();
                file.write_at(bytes, 0).unwrap();
            }
            Step::Rename(from, to) => disk.rename(&path(from), &path(to)).unwrap(),
            Step::Remove(name) => disk.remove_file(&path(name)).unwrap(),
        }
    }
}

const KINDS: [&str; 3] = ["log", "index", "timeindex"];

/// Replaces segments by one with the base offset of the first and the content `kept`, as
/// `LocalLog.replaceSegments` does.
fn replacement(bases: &[i64], kept: &[u8]) -> Vec<Step> {
    let name = |base: i64, kind: &str, suffix: &str| format!("{base:020}.{kind}{suffix}");
    let made = bases[0];
    let rename = |base, from, to| {
        let names = move |kind| (name(base, kind, from), name(base, kind, to));
        KINDS.into_iter().map(names).map(|(from, to)| Step::Rename(from, to))
    };
    let bytes = |kind| if kind == "log" { kept.to_vec() } else { Vec::new() };
    let creates = KINDS.map(|kind| Step::Create(name(made, kind, ".cleaned"), bytes(kind)));
    (creates.into_iter())
        .chain(rename(made, ".cleaned", ".swap"))
        .chain(bases.iter().flat_map(|base| rename(*base, "", ".deleted")))
        .chain(rename(made, ".swap", ""))
        .collect()
}

/// Removes the renamed files of a segment.
fn removal(base: i64) -> impl Iterator<Item = Step> {
    KINDS.into_iter().map(move |kind| Step::Remove(format!("{base:020}.{kind}.deleted")))
}

/// The stored batch that contains an offset.
fn batch_at(writer: &Writer, offset: i64) -> Vec<u8> {
    writer.log.read(offset, 1, i64::MAX, true).unwrap().bytes.to_vec()
}

/// A compaction of segments 0 to 48 that keeps two batches.
fn compaction(writer: &Writer) -> Vec<Step> {
    let bases: Vec<i64> = writer.log.segments().iter().map(|segment| segment.0).collect();
    assert_eq!(bases[..5], [0, 12, 24, 36, 48]);
    let mut steps = replacement(&[0], &[]);
    steps.extend(replacement(&[12], &batch_at(writer, 15)));
    steps.extend(replacement(&[24, 36], &batch_at(writer, 45)));
    steps
}

/// All steps of the compaction except the last one. The files of its first segments are removed
/// before the last segment is created.
fn long_compaction(writer: &Writer) -> Vec<Step> {
    let mut steps = compaction(writer);
    let last = format!("{:020}.log.cleaned", 24);
    let is_last = |step: &Step| matches!(step, Step::Create(name, _) if *name == last);
    let made = steps.iter().position(is_last).unwrap() + 1;
    steps.splice(made..made, [0, 12].into_iter().flat_map(removal));
    steps.pop();
    steps
}

/// Opens the log for reading and checks that it has all records that compaction kept.
fn assert_compacted_whole(writer: &Writer, what: &str) {
    let (library, recovery) = writer.read().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(recovery.damage, None, "{what}");
    let log = library.log();
    assert_eq!(log.log_end_offset(), 60, "{what}");
    let offsets = batch_offsets(&log, 0);
    for kept in [15, 45, 48, 57] {
        assert!(offsets.iter().any(|(base, _)| *base == kept), "{what}: {kept} of {offsets:?}");
    }
}

#[test]
fn a_segment_that_was_replaced_under_the_same_name_is_not_read_as_the_old_one() {
    let writer = Writer::new();
    writer.append(10);
    let (library, _) = writer.read().unwrap();
    let kept = batch_at(&writer, 9);
    for step in replacement(&[0], &kept).into_iter().chain(removal(0)) {
        step.take(&writer.disk);
    }
    let error = library.log().read(0, 1, i64::MAX, true).unwrap_err();
    assert!(error.to_string().contains("another process has replaced the file"), "{error}");
    assert!(library.refresh().unwrap());
    assert_eq!(*library.log().read(0, 1, i64::MAX, true).unwrap().bytes, kept);
    assert!(!library.refresh().unwrap());
}

/// Each read at the end opened the log again.
#[test]
fn a_torn_tail_is_not_taken_for_an_append() {
    let writer = Writer::new();
    let torn = &batch_at(&writer, 29)[..70];
    let base = writer.log.segments().last().unwrap().0;
    let path = Path::new(Writer::PARTITION).join(format!("{base:020}.log"));
    let bytes = [&writer.disk.read(&path).unwrap()[..], torn].concat();
    writer.disk.remove_file(&path).unwrap();
    writer.disk.create_anew(&path).unwrap().write_at(&bytes, 0).unwrap();
    let (library, _) = writer.read().unwrap();
    assert_eq!(library.log().log_end_offset(), 30);
    assert!(!library.refresh().unwrap());
}

#[test]
fn a_directory_that_left_is_an_error_and_not_an_empty_log() {
    let writer = Writer::new();
    let (library, _) = writer.read().unwrap();
    let (there, gone) = (Path::new(Writer::PARTITION), Path::new("/data/orders-0.1-delete"));
    writer.disk.rename(there, gone).unwrap();
    assert!(matches!(library.refresh(), Err(OpenError::Gone { .. })));
    assert!(matches!(writer.read(), Err(OpenError::Gone { .. })));
    writer.disk.rename(gone, there).unwrap();
    assert_eq!(library.log().log_end_offset(), 30);
    let other = checkpoint::PartitionIdentity { topic_id: [8; 16], partition: None };
    let metadata = there.join(checkpoint::PARTITION_METADATA_FILE);
    writer.disk.write_atomically(&metadata, &checkpoint::write_partition_metadata(other)).unwrap();
    assert!(matches!(library.refresh(), Err(OpenError::Recreated { .. })));
}

/// Writes the partition into a directory as a broker does.
fn name_partition(path: &Path, partition: i32) {
    let identity = checkpoint::PartitionIdentity { topic_id: [8; 16], partition: Some(partition) };
    let bytes = checkpoint::write_partition_metadata(identity);
    std::fs::write(path.join(checkpoint::PARTITION_METADATA_FILE), bytes).unwrap();
}

/// A reader continued from the records of one partition to those of another.
#[test]
fn directory_of_another_partition_is_another_log_for_a_reader() {
    let root = tempfile::tempdir().unwrap();
    let path = |name| root.path().join(name);
    for partition in [0, 1] {
        let path = path(["t-0", "t-1"][partition as usize]);
        filled(&path, 0);
        name_partition(&path, partition);
    }
    let (library, recovery) = LibraryLog::open_read_only(&path("t-0"), config(), clock()).unwrap();
    assert_eq!(recovery.warnings, Vec::<String>::new());
    std::fs::rename(path("t-0"), path("old")).unwrap();
    std::fs::rename(path("t-1"), path("t-0")).unwrap();
    assert!(matches!(library.refresh(), Err(OpenError::Recreated { .. })));
}

#[test]
fn directory_of_another_partition_is_refused_in_a_data_directory_and_reported_elsewhere() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("t-0");
    filled(&path, 0);
    name_partition(&path, 1);
    for (_, recovery) in
        [LibraryLog::open_read_only(&path, config(), clock()).unwrap(), open(&path)]
    {
        let [warning] = &recovery.warnings[..] else { panic!("{:?}", recovery.warnings) };
        assert!(warning.contains("files of partition 1"), "{warning}");
    }
    std::fs::write(root.path().join("meta.properties"), "").unwrap();
    for opened in [
        LibraryLog::open_read_only(&path, config(), clock()),
        LibraryLog::open(&path, config(), clock()),
    ] {
        assert!(matches!(opened, Err(OpenError::OtherPartition { found: 1, .. })), "{opened:?}");
    }
}

/// Kafka checkpoints the compaction when all of it is done, so no checkpoint has these gaps.
#[test]
fn each_state_of_a_compaction_by_kafka_opens_without_damage() {
    for (what, steps) in [("short", compaction as fn(&_) -> _), ("long", long_compaction)] {
        let writer = Writer::new();
        writer.append(10);
        for (number, step) in steps(&writer).iter().enumerate() {
            step.take(&writer.disk);
            assert_compacted_whole(&writer, &format!("{what}, after step {number}"));
        }
    }
}

/// The first batch that is kept is above all records that a checkpoint lists as synced.
#[test]
fn compaction_of_all_checkpointed_records_opens_without_damage() {
    let writer = Writer::new();
    for n in 0..10 {
        append(&writer.log, 3, NOW_MS + n);
    }
    writer.log.flush().unwrap();
    let mut steps = replacement(&[0, 12, 24, 36], &batch_at(&writer, 45));
    // The last steps are between the last name and the checkpoint.
    steps.extend([12, 24, 36].into_iter().flat_map(removal));
    for (number, step) in steps.iter().enumerate() {
        step.take(&writer.disk);
        let (library, recovery) = writer.read().unwrap();
        assert_eq!(recovery.damage, None, "after step {number}");
        let offsets = batch_offsets(&library.log(), 0);
        assert!([45, 48, 57].iter().all(|kept| offsets.iter().any(|(base, _)| base == kept)));
    }
    let (_, _, recovery) = Writer::open(&writer.disk);
    assert_eq!(recovery.damage.map(|damage| damage.offset()), Some(0), "for writing");
    removal(0).for_each(|step| step.take(&writer.disk));
    let (_, recovery) = writer.read().unwrap();
    assert_eq!(recovery.damage.map(|damage| damage.offset()), Some(0), "without a name");
}

#[test]
fn compaction_by_kafka_between_the_list_and_the_reads_leaves_no_damage() {
    let moments = ["00.log", "00.index", "12.log", "24.log", "24.index", "36.log", "48.log"];
    let mut acted = 0;
    for moment in moments {
        for steps_count in 1.. {
            let writer = Writer::new();
            writer.append(10);
            let mut steps = compaction(&writer);
            if steps_count > steps.len() {
                break;
            }
            steps.truncate(steps_count);
            let disk = writer.disk.clone();
            let path = Path::new(Writer::PARTITION).join(format!("{}{moment}", "0".repeat(18)));
            let stepped = disk.clone();
            disk.hook()
                .before_open(path, move || steps.iter().for_each(|step| step.take(&stepped)));
            assert_compacted_whole(&writer, &format!("{steps_count} steps at {moment}"));
            acted += usize::from(disk.hook().has_acted());
        }
    }
    assert!(acted > 100, "{acted}");
}

#[test]
fn gap_above_a_running_compaction_is_damage() {
    let writer = Writer::new();
    writer.append(10);
    let kept = batch_at(&writer, 15);
    for step in replacement(&[0], &[]).iter().chain(&replacement(&[12], &kept)) {
        step.take(&writer.disk);
    }
    for kind in KINDS {
        Step::Remove(format!("{:020}.{kind}", 24)).take(&writer.disk);
    }
    let (_, recovery) = writer.read().unwrap();
    assert_eq!(recovery.damage.map(|damage| damage.offset()), Some(18));
}

/// A broker opens a compacted topic with that setting. Any other open for writing needs a
/// checkpoint.
#[test]
fn names_of_a_compaction_hide_no_gap_from_an_open_for_writing() {
    let writer = Writer::new();
    writer.append(10);
    let mut steps = compaction(&writer);
    steps.truncate(steps.len() - 1);
    for step in &steps {
        step.take(&writer.disk);
    }
    let disk = writer.disk.clone();
    drop(writer);
    for open in 0..2 {
        let (directory, _, recovery) = Writer::open(&disk);
        assert_eq!(recovery.damage.map(|damage| damage.offset()), Some(0), "{open}");
        directory.checkpoint(&[]).unwrap();
    }
}

/// Earlier versions gave the copy the name of a compaction's result.
#[test]
fn copy_of_an_interrupted_truncation_hides_no_lost_segment() {
    for suffix in [".tmp", ".cleaned"] {
        let writer = Writer::new();
        for kind in KINDS {
            Step::Remove(format!("{:020}.{kind}", 12)).take(&writer.disk);
        }
        Step::Create(format!("{LAST}{suffix}"), batch_at(&writer, 24)).take(&writer.disk);
        let (_, recovery) = writer.read().unwrap();
        assert_eq!(recovery.damage.map(|damage| damage.offset()), Some(12), "{suffix}");
    }
}

#[test]
fn truncation_names_its_copy_as_a_temporary_file() {
    let writer = Writer::new();
    let copy = Path::new(Writer::PARTITION).join(format!("{:020}.log.tmp", 12));
    writer.disk.hook().before_open(copy.clone(), || ());
    writer.directory.truncate_log(&writer.log, 15).unwrap();
    assert!(writer.disk.hook().has_acted());
    assert!(!writer.disk.exists(&copy));
}
