//! Inspects random logs with random damage, and opens them in every way: an inspection must change
//! nothing, and all ways must find the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pykafka_record::{BatchBuilder, BatchOptions, LeaderEpoch, ProducerEpoch, ProducerId};

use crate::checkpoint::PartitionIdentity;
use crate::clock::ManualClock;
use crate::config::LogConfig;
use crate::disk::{Disk, MemoryDisk, OpenMode};
use crate::error::OpenError;
use crate::log::Log;
use crate::log::producer_state::{AppendOrigin, ProducerEntry};
use crate::log::recovery::apply::apply;
use crate::log::recovery::input::RecoveryInput;
use crate::log::recovery::recovered::{FoundSegment, Recovered};
use crate::log::types::{AppendOptions, Checkpointed, LogOptions, OnDamage, Recovery};

#[path = "../../../../fuzz/random.rs"]
mod random;
use random::Random;

const SEEDS: u64 = 200;
const NOW_MS: i64 = 1_700_000_000_000;

/// Contents of the files in the log's directory, by name.
type Files = BTreeMap<String, Vec<u8>>;

fn dir() -> PathBuf {
    PathBuf::from("/data/topic-0")
}

fn files_of(disk: &dyn Disk) -> Files {
    let entries = disk.list(&dir()).unwrap_or_default().into_iter();
    let names = entries.map(|entry| entry.name.into_string().unwrap());
    names.map(|name| (name.clone(), disk.read(&dir().join(name)).unwrap())).collect()
}

/// A new disk with the same files.
fn disk_of(files: &Files) -> MemoryDisk {
    let disk = MemoryDisk::default();
    disk.create_dir_all(&dir()).unwrap();
    for (name, bytes) in files {
        write(&disk, &dir().join(name), bytes);
    }
    disk
}

fn write(disk: &MemoryDisk, path: &Path, bytes: &[u8]) {
    let file = disk.open(path, OpenMode::Create).unwrap();
    file.set_len(0).unwrap();
    file.write_at(bytes, 0).unwrap();
}

fn options(disk: &MemoryDisk) -> LogOptions {
    let config =
        LogConfig { segment_bytes: 1200, index_interval_bytes: 200, ..LogConfig::default() };
    LogOptions {
        dir: dir(),
        config: Arc::new(config),
        disk: Arc::new(disk.clone()),
        clock: Arc::new(ManualClock::new(NOW_MS)),
        checkpointed: Checkpointed::default(),
        on_damage: OnDamage::Keep,
        clean: false,
        identity: Some(PartitionIdentity { topic_id: [7; 16], partition: None }),
        producer_id_expiration_ms: 86_400_000,
        read_only: false,
        jitter_seed: 1,
        buffers: Arc::default(),
    }
}

fn batch(random: &mut Random, sequences: &mut [i32; 3]) -> Vec<u8> {
    let count = 1 + random.below(4) as i32;
    let producer = random.below(4) as usize;
    let mut options = BatchOptions::default();
    if let Some(sequence) = sequences.get_mut(producer) {
        options.producer_id = ProducerId::new(producer as i64);
        options.producer_epoch = ProducerEpoch::new(0);
        options.base_sequence = *sequence;
        *sequence += count;
    }
    let mut builder = BatchBuilder::new(options);
    for _ in 0..count {
        let value = vec![7; random.below(120) as usize];
        builder.append(NOW_MS, Some(b"key"), Some(&value), &[]).unwrap();
    }
    let mut bytes = Vec::new();
    builder.build(&mut bytes).unwrap();
    bytes
}

/// A log after random operations, possibly closed, and possible checkpoints of it.
fn lived(random: &mut Random) -> (Files, Checkpointed) {
    let disk = MemoryDisk::default();
    disk.create_dir_all(Path::new("/data")).unwrap();
    let (log, _) = Log::open(options(&disk)).unwrap();
    let (mut sequences, mut epoch) = ([0; 3], 0);
    for _ in 0..random.below(40) {
        match random.below(12) {
            0 => log.roll().unwrap(),
            1 => log.flush().unwrap(),
            2 => epoch += 1,
            3 => log.release_idle_files().unwrap(),
            4 if random.below(3) == 0 => {
                log.delete_before(log.log_start_offset() + 3).unwrap();
                log.enforce_retention(log.log_end_offset()).unwrap();
            }
            5 if random.below(3) == 0 => log.truncate_to(log.log_end_offset() - 2).unwrap_or(()),
            _ => {
                let options =
                    AppendOptions::new(LeaderEpoch::new(epoch), AppendOrigin::Replication);
                log.append_as_leader(&mut batch(random, &mut sequences), options).unwrap();
            }
        }
    }
    let end = log.log_end_offset();
    let checkpointed = Checkpointed {
        recovery_point: if random.below(3) == 0 { end } else { log.recovery_point() },
        high_watermark: end - random.below(3).min(end as u64) as i64,
        log_start_offset: (random.below(3) > 0).then(|| log.log_start_offset()),
        cleaner_offset: if random.below(6) == 0 { end } else { 0 },
        is_copy: false,
    };
    if random.below(2) == 0 {
        log.close().unwrap();
    }
    (files_of(&disk), checkpointed)
}

/// Changes a file like a crash, an interrupted run or a bad disk.
fn hurt(random: &mut Random, files: &mut Files) {
    let names: Vec<String> = files.keys().cloned().collect();
    let Some(name) = random.one_of(&names).cloned() else { return };
    let bytes = files.get_mut(&name).unwrap();
    let at = random.below(bytes.len().max(1) as u64) as usize;
    match random.below(9) {
        0 => drop(files.remove(&name)),
        1 => bytes.clear(),
        2 | 3 => bytes.truncate(at),
        4 => bytes.iter_mut().skip(at).for_each(|byte| *byte = 0),
        5 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
        6 => bytes.extend([0; 100]),
        7 => {
            let suffix = [".deleted", ".cleaned", ".tmp", ".swap"][random.below(4) as usize];
            let bytes = bytes.clone();
            files.insert(name + suffix, bytes);
        }
        _ => drop(files.insert("sync-failed".to_owned(), Vec::new())),
    }
}

/// The files of a log, and the options to open it.
struct Case {
    files: Files,
    options: LogOptions,
    what: String,
}

impl Case {
    fn new(seed: u64) -> Case {
        let mut random = Random::new(seed);
        let (mut files, checkpointed) = lived(&mut random);
        for _ in 0..random.below(4) {
            hurt(&mut random, &mut files);
        }
        let on_damage = [OnDamage::Keep, OnDamage::CutUnsynced, OnDamage::Cut];
        let options = LogOptions {
            checkpointed,
            on_damage: on_damage[random.below(3) as usize],
            clean: random.below(3) == 0,
            ..options(&disk_of(&files))
        };
        let (on_damage, clean) = (options.on_damage, options.clean);
        let what = format!("seed {seed}, {checkpointed:?}, {on_damage:?}, clean: {clean}");
        Case { files, options, what }
    }

    /// Looks at the log, and checks that no file changed.
    fn inspect(&self, input: RecoveryInput) -> Result<Recovered, OpenError> {
        let found = Log::inspect_files(&self.options, input);
        self.check_unchanged("a look");
        found
    }

    fn check_unchanged(&self, by: &str) {
        assert_eq!(files_of(&*self.options.disk), self.files, "{}: changed by {by}", self.what);
    }

    /// Options for another disk with the same files.
    fn elsewhere(&self) -> LogOptions {
        LogOptions { disk: Arc::new(disk_of(&self.files)), ..self.options.clone() }
    }
}

/// Compares an open log with the findings of an inspection.
fn check_log(log: &Log, found: &Recovered, what: &str) {
    let offsets = (log.log_start_offset(), log.log_end_offset());
    assert_eq!(offsets, (found.log_start_offset, found.log_end_offset), "{what}");
    let segments: Vec<_> = found.segments.iter().map(|s| (s.base_offset, s.size)).collect();
    assert_eq!(log.segments(), segments, "{what}");
    assert_eq!(log.epoch_entries(), found.epochs.entries(), "{what}");
    let producers = found.producers.active_producers();
    assert_eq!(last_batches(&log.active_producers()), last_batches(&producers), "{what}");
}

/// The last batch of each producer, which is all that a snapshot contains.
fn last_batches(producers: &[ProducerEntry]) -> Vec<(ProducerId, ProducerEpoch, i32, i64)> {
    let last = |entry: &ProducerEntry| {
        let ProducerEntry { producer_id, producer_epoch, .. } = *entry;
        (producer_id, producer_epoch, entry.last_sequence(), entry.last_data_offset())
    };
    producers.iter().map(last).collect()
}

fn check_case(case: &Case) -> Option<Recovery> {
    let (what, input) = (&case.what, RecoveryInput::of(&case.options));
    let Ok(found) = case.inspect(input.clone()) else {
        // Another topic id: an open fails and changes nothing.
        Log::open(case.options.clone()).unwrap_err();
        case.check_unchanged("a refused open");
        return None;
    };
    assert_eq!(
        case.inspect(input.clone()).unwrap(),
        found,
        "{what}: the second inspection differs"
    );

    let read_only = LogOptions { read_only: true, ..case.options.clone() };
    let (log, verdict) = Log::open(read_only).unwrap();
    assert_eq!(verdict, found.verdict, "{what}: read-only");
    check_log(&log, &found, what);
    drop(log);
    case.check_unchanged("an open for reading only");

    let repair = LogOptions { on_damage: OnDamage::Cut, ..case.elsewhere() };
    let shown = Log::inspect_files(&repair, RecoveryInput::of(&repair).checking_all()).unwrap();
    assert_eq!(Log::repair(repair).unwrap(), shown.verdict, "{what}: repair");
    let whole = case.inspect(input.checking_all()).unwrap();
    assert!(
        found.log_end_offset >= whole.log_end_offset || whole.verdict.damage.is_none(),
        "{what}"
    );

    let is_damaged = found.verdict.damage.is_some();
    let (log, verdict) = Log::open(case.options.clone()).unwrap();
    assert_eq!(verdict, found.verdict, "{what}: open");
    check_log(&log, &found, what);
    assert_eq!(log.is_read_only(), is_damaged, "{what}");
    if is_damaged {
        case.check_unchanged("an open of a damaged log");
    } else {
        check_settled(case, &log, &found);
    }
    Some(verdict)
}

/// Checks that nothing is left to change after an open for writing: the next open finds the same.
fn check_settled(case: &Case, log: &Log, found: &Recovered) {
    let checkpointed = Checkpointed {
        recovery_point: log.recovery_point(),
        high_watermark: log.log_end_offset(),
        // The first checkpoint of a log start offset adds missing epochs.
        log_start_offset: (case.options.checkpointed.log_start_offset)
            .map(|_| log.log_start_offset()),
        cleaner_offset: found
            .verdict
            .gaps_below
            .unwrap_or(0)
            .max(case.options.checkpointed.cleaner_offset),
        is_copy: false,
    };
    let options = LogOptions { checkpointed, ..case.options.clone() };
    let next = Log::inspect_files(&options, RecoveryInput::of(&options)).unwrap();
    assert_eq!(next.verdict.damage, None, "{}: the second open", case.what);
    assert_eq!(next.verdict.truncated_at, None, "{}: the second open", case.what);
    check_log(log, &next, &case.what);
}

#[test]
fn a_look_changes_nothing_and_every_way_to_open_a_log_agrees_with_it() {
    let mut verdicts = [0, 0, 0, 0];
    for seed in 0..SEEDS {
        let kind = match check_case(&Case::new(seed)) {
            None => 0,
            Some(verdict) if verdict.damage.is_some() => 1,
            Some(verdict) if verdict.truncated_at.is_some() => 2,
            Some(_) => 3,
        };
        verdicts[kind] += 1;
    }
    assert!(verdicts.iter().all(|count| *count > 0), "refused, damaged, cut, whole: {verdicts:?}");
}

#[test]
fn rebuilt_indexes_get_sparser_above_the_memory_limit() {
    const ENTRIES_MAX: usize = 64;
    let (disk, random) = (MemoryDisk::default(), &mut Random::new(1));
    disk.create_dir_all(Path::new("/data")).unwrap();
    let (log, _) = Log::open(options(&disk)).unwrap();
    let leader = AppendOptions::new(LeaderEpoch::ZERO, AppendOrigin::Replication);
    for _ in 0..500 {
        log.append_as_leader(&mut batch(random, &mut [0; 3]), leader).unwrap();
    }
    let end = log.log_end_offset();
    drop(log);

    let options = options(&disk);
    let whole = Log::inspect_files(&options, RecoveryInput::of(&options)).unwrap();
    let bounded = RecoveryInput { rebuilt_entries_max: ENTRIES_MAX, ..RecoveryInput::of(&options) };
    let found = Log::inspect_files(&options, bounded).unwrap();
    let entries = |found: &Recovered| -> usize {
        let rebuilt = found.segments.iter().filter_map(|segment| segment.rebuilt.as_ref());
        rebuilt.map(|(indexes, _)| indexes.count()).sum()
    };
    assert!(entries(&whole) > 4 * ENTRIES_MAX);
    // The last entry of each index is always kept.
    assert!(entries(&found) <= ENTRIES_MAX.max(2 * found.segments.len()), "{}", entries(&found));
    for (whole, found) in whole.segments.iter().zip(&found.segments) {
        let last = |segment: &FoundSegment| {
            let (indexes, _) = segment.rebuilt.as_ref().unwrap();
            indexes.times.last()
        };
        assert_eq!(last(whole), last(found), "a sealed segment is judged by it");
    }
    let (log, _) = apply(found, options).unwrap();
    for offset in 0..end {
        let data = log.read(offset, 1, end, true).unwrap();
        assert!((data.base_offset..data.next_offset).contains(&offset));
    }
}

#[test]
fn only_the_newest_producer_snapshots_are_made_above_the_memory_limit() {
    const BYTES_MAX: usize = 500;
    let (disk, random) = (MemoryDisk::default(), &mut Random::new(1));
    disk.create_dir_all(Path::new("/data")).unwrap();
    let (log, _) = Log::open(options(&disk)).unwrap();
    let leader = AppendOptions::new(LeaderEpoch::ZERO, AppendOrigin::Replication);
    let sequences = &mut [0; 3];
    for _ in 0..200 {
        log.append_as_leader(&mut batch(random, sequences), leader).unwrap();
    }
    drop(log);
    let mut files = files_of(&disk);
    files.retain(|name, _| !name.ends_with(".snapshot"));
    let disk = disk_of(&files);

    let options = options(&disk);
    let whole = Log::inspect_files(&options, RecoveryInput::of(&options)).unwrap();
    let bounded = RecoveryInput { snapshot_bytes_max: BYTES_MAX, ..RecoveryInput::of(&options) };
    let mut found = Log::inspect_files(&options, bounded).unwrap();
    let made = |found: &Recovered| found.changes.snapshots.values().map(Vec::len).sum::<usize>();
    assert!(made(&whole) > 4 * BYTES_MAX && made(&found) <= BYTES_MAX);
    let (mut newest, kept) = (whole.changes.snapshots.clone(), found.changes.snapshots.clone());
    newest.retain(|offset, _| kept.contains_key(offset));
    assert_eq!(newest, kept);
    assert_eq!(kept.last_key_value(), whole.changes.snapshots.last_key_value());
    found.changes.snapshots.clone_from(&whole.changes.snapshots);
    assert!(found == whole, "nothing else differs");
}
