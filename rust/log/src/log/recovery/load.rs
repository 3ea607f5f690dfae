//! Opening a log: what is on disk is listed, tidied, checked as far as needed, and summed up in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Plan, check_end, keep_damage, recover};
use crate::directory::checkpoint;
use crate::disk::{DirEntry, Disk};
use crate::log::epoch_cache::EpochCache;
use crate::log::producer_state::ProducerStateManager;
use crate::log::state::{State, Status};
use crate::log::swap::Leftovers;
use crate::log::sync::{RecoveryPoint, Rounds, SYNC_FAILED_FILE, Unsynced};
use crate::log::truncate::shorten;
use crate::log::view::View;
use crate::log::{Damage, Log, LogOptions, OpenError, Recovery, Shared, StorageError};
use crate::segment::time_index::TimeEntry;
use crate::segment::transaction_index;
use crate::segment::{FileKind, Segment, SegmentFiles, file_name, parse_file_name};

pub(crate) fn open(options: LogOptions) -> Result<(Log, Recovery), OpenError> {
    let plan = Plan::of(&options);
    open_by(options, plan)
}

/// As [`open`], and every batch is read, whatever was synced.
pub(crate) fn open_checking_all(options: LogOptions) -> Result<(Log, Recovery), OpenError> {
    let plan = Plan { clean: false, recovery_point: 0, ..Plan::of(&options) };
    open_by(options, plan)
}

fn open_by(options: LogOptions, mut plan: Plan) -> Result<(Log, Recovery), OpenError> {
    let mut recovery = Recovery::default();
    let mut state = empty_state(&options);
    let read_only = options.read_only;
    let shared = Shared {
        dir: options.dir.into(),
        disk: options.disk,
        clock: options.clock,
        buffers: options.buffers,
        topic_id: options.topic_id,
    };
    let mut has_failed_sync = false;
    let found = list(&shared)?;
    if let Some(found) = found {
        plan.lost_segments = lost_segments(&found);
        has_failed_sync = found.iter().any(|entry| entry.name == SYNC_FAILED_FILE);
        plan.clean &= !has_failed_sync;
        let loss = loss_before(&found, &plan);
        let (entries, leftovers) = tidied(&shared, &found, read_only)?;
        state.is_on_disk = true;
        if let Some(damage) = loss {
            keep_damage(&mut state, &plan, damage, &mut recovery);
        }
        check_topic_id(&shared, &mut state, &mut recovery)?;
        let are_epochs_lost = load_epochs(&shared, &mut state, &mut recovery)?;
        state.segments = segments(&shared, &entries, leftovers.as_ref());
        plan.lost_aborted = lost_aborted(&shared, &mut state, &entries, &mut recovery)?;
        let bases: BTreeSet<_> = state.segments.iter().map(Segment::base_offset).collect();
        if are_epochs_lost {
            plan = Plan { clean: false, recovery_point: 0, ..plan };
        }
        recover(&mut state, &shared, &plan, &mut recovery)?;
        start_at(&mut state, &shared, plan.log_start_offset.unwrap_or(0))?;
        // Of a damaged log they tell what is missing.
        if state.check_writable().is_ok() {
            remove_orphans(&shared, &entries, &bases)?;
            if has_failed_sync {
                rewrite_unsynced(&mut state, &shared, plan.recovery_point)?;
            }
        }
    } else {
        check_end(&mut state, &plan, &mut recovery);
    }
    let view = Mutex::new(View::of(&state));
    let (rounds, truncations) = (Rounds::default(), Arc::default());
    let damage = recovery.damage.clone();
    let log = Log { shared, state: Mutex::new(state), view, rounds, damage, truncations };
    if recovery.segments_recovered > 0 && log.write_error().is_none() {
        log.flush()?;
    }
    if has_failed_sync && log.write_error().is_none() {
        let marker = log.shared.dir.join(SYNC_FAILED_FILE);
        let removed = log.shared.disk.remove_file(&marker);
        removed.map_err(|error| StorageError::io("remove", &marker, error))?;
    }
    Ok((log, recovery))
}

/// Writes the segments that were not synced to new files, of which the disk takes every byte.
fn rewrite_unsynced(
    state: &mut State,
    shared: &Shared,
    recovery_point: i64,
) -> Result<(), StorageError> {
    let first = state.segment_of(recovery_point.saturating_sub(1)).unwrap_or(0);
    for segment in state.segments.get(first..).unwrap_or_default() {
        shorten(shared, &segment.files, segment.size, true)?;
    }
    Ok(())
}

/// The state of a log with nothing on disk.
fn empty_state(options: &LogOptions) -> State {
    let start = options.checkpointed.log_start_offset.unwrap_or(0);
    let mut producers = ProducerStateManager::new(options.producer_id_expiration_ms);
    producers.truncate_fully_and_start_at(start);
    State {
        status: if options.read_only { Status::ReadOnly } else { Status::Open },
        config: options.config.clone(),
        is_on_disk: false,
        segments: Vec::new(),
        appender: None,
        indexes: None,
        log_start_offset: start,
        log_end_offset: start,
        recovery_point: RecoveryPoint::found(start),
        epochs: EpochCache::default(),
        are_epochs_unstored: false,
        aborted_counts: BTreeMap::new(),
        producers,
        high_watermark: 0,
        snapshot_offset: 0,
        unsynced: Unsynced::default(),
        unsynced_records: 0,
        unsynced_since_ms: None,
        deleted: Vec::new(),
        jitter: options.jitter_seed,
    }
}

/// The directory's files as they are; `None` if there is no directory.
fn list(shared: &Shared) -> Result<Option<Vec<DirEntry>>, StorageError> {
    match files(&*shared.disk, &shared.dir) {
        Ok(entries) => Ok(Some(entries)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StorageError::io("list", &shared.dir, error)),
    }
}

/// What is in a log's directory; a directory is not of the log, whatever its name.
fn files(disk: &dyn Disk, dir: &Path) -> io::Result<Vec<DirEntry>> {
    let entries = disk.list(dir)?.into_iter();
    Ok(entries.filter(|entry| !entry.is_dir).collect())
}

/// The directory's files once leftovers of an interrupted run are gone; with those leftovers if they have to stay.
fn tidied(
    shared: &Shared,
    found: &[DirEntry],
    read_only: bool,
) -> Result<(Vec<DirEntry>, Option<Leftovers>), StorageError> {
    let (disk, dir) = (&*shared.disk, &*shared.dir);
    let tidy = || {
        let leftovers = Leftovers::find(disk, dir, found)?;
        if read_only {
            return Ok((leftovers.tidied(found), Some(leftovers)));
        }
        leftovers.tidy(disk, dir)?;
        Ok((files(disk, dir)?, None))
    };
    tidy().map_err(|error| StorageError::io("tidy", dir, error))
}

/// Base offsets of segments of which indexes are left and nothing tells that their `.log` was to go.
fn lost_segments(entries: &[DirEntry]) -> BTreeSet<i64> {
    let names = || entries.iter().filter_map(|entry| entry.name.to_str());
    let is_index = |kind| !matches!(kind, FileKind::Log | FileKind::Snapshot);
    let indexes = names().filter_map(parse_file_name).filter(|(_, kind)| is_index(*kind));
    let mut lost: BTreeSet<i64> = indexes.map(|(base_offset, _)| base_offset).collect();
    for base_offset in names().filter_map(log_named_by) {
        lost.remove(&base_offset);
    }
    lost
}

/// The records that are missing before the first segment. One that was renamed for deletion is not missed: on a full disk
/// retention goes on without a checkpoint.
fn loss_before(entries: &[DirEntry], plan: &Plan) -> Option<Damage> {
    let names = || entries.iter().filter_map(|entry| entry.name.to_str());
    let logs = names().filter_map(parse_file_name).filter(|(_, kind)| *kind == FileKind::Log);
    let first_base = logs.map(|(base_offset, _)| base_offset).min()?;
    let is_told = names().filter_map(log_named_by).any(|base_offset| base_offset < first_base);
    plan.loss_before(first_base).filter(|_| !is_told)
}

/// The base offset of the `.log` that has this name, or had it before `.deleted`, `.swap` or `.cleaned` was appended.
fn log_named_by(name: &str) -> Option<i64> {
    let (base_offset, kind) = parse_file_name(name.get(..file_name(0, FileKind::Log).len())?)?;
    (kind == FileKind::Log).then_some(base_offset)
}

/// Compares `partition.metadata` with the id wanted; writes it where it is missing or unreadable.
fn check_topic_id(
    shared: &Shared,
    state: &mut State,
    recovery: &mut Recovery,
) -> Result<(), OpenError> {
    let Some(topic_id) = shared.topic_id else { return Ok(()) };
    let path = shared.dir.join(checkpoint::PARTITION_METADATA_FILE);
    if let Some(bytes) = read_if_there(&*shared.disk, &path)? {
        match checkpoint::read_partition_metadata(&bytes) {
            Ok(found) if found == topic_id => return Ok(()),
            Ok(_) => return Err(OpenError::TopicIdMismatch { path: shared.dir.to_path_buf() }),
            Err(error) => recovery.warnings.push(format!("{}: {error}", path.display())),
        }
    }
    if state.check_writable().is_ok() {
        state.replace_file(shared, path, &checkpoint::write_partition_metadata(topic_id))?;
    }
    Ok(())
}

/// Reads `leader-epoch-checkpoint`; `true` if it cannot be believed, so that all batches must be read.
fn load_epochs(
    shared: &Shared,
    state: &mut State,
    recovery: &mut Recovery,
) -> Result<bool, OpenError> {
    let path = shared.dir.join(checkpoint::LEADER_EPOCH_FILE);
    let Some(bytes) = read_if_there(&*shared.disk, &path)? else { return Ok(true) };
    match checkpoint::read_epochs(&bytes) {
        Ok(entries) => {
            state.epochs = EpochCache::from_entries(entries);
            Ok(false)
        }
        Err(error) => {
            recovery.warnings.push(format!("{}: {error}; rebuilt", path.display()));
            Ok(true)
        }
    }
}

/// Compares transaction indexes with `transaction-index-checkpoint`; base offsets of segments that had more entries.
fn lost_aborted(
    shared: &Shared,
    state: &mut State,
    entries: &[DirEntry],
    recovery: &mut Recovery,
) -> Result<BTreeSet<i64>, OpenError> {
    let path = shared.dir.join(checkpoint::TRANSACTION_INDEX_FILE);
    let bytes = read_if_there(&*shared.disk, &path)?;
    match bytes.map(|bytes| checkpoint::read_transaction_indexes(&bytes)).transpose() {
        Ok(counts) => state.aborted_counts = counts.unwrap_or_default(),
        Err(error) => recovery.warnings.push(format!("{}: {error}", path.display())),
    }
    let sizes = entries.iter().filter_map(|entry| {
        let (base_offset, kind) = parse_file_name(entry.name.to_str()?)?;
        (kind == FileKind::TransactionIndex).then_some((base_offset, entry.size))
    });
    let sizes: BTreeMap<_, _> = sizes.collect();
    let mut lost = BTreeSet::new();
    for segment in &state.segments {
        let (files, base_offset) = (&segment.files, segment.base_offset());
        let size = sizes.get(&base_offset).copied().unwrap_or(0);
        let count = size as usize / transaction_index::ENTRY_SIZE;
        let told = state.aborted_counts.get(&base_offset).copied().unwrap_or(0);
        files.expect_aborted(count);
        if count < told || size % transaction_index::ENTRY_SIZE as u64 != 0 {
            let path = files.path(FileKind::TransactionIndex);
            let path = path.display();
            recovery.warnings.push(format!("{path}: {count} of {told} entries; rebuilt"));
            lost.insert(base_offset);
        }
    }
    Ok(lost)
}

/// A small file's bytes; `None` if it is not there.
pub(crate) fn read_if_there(disk: &dyn Disk, path: &Path) -> Result<Option<Vec<u8>>, StorageError> {
    match disk.read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StorageError::io("read", path, error)),
    }
}

/// A segment for each `.log`, by base offset.
fn segments(shared: &Shared, entries: &[DirEntry], leftovers: Option<&Leftovers>) -> Vec<Segment> {
    let swapped = |base_offset| {
        let is_swapped = |kind: &FileKind| {
            leftovers.is_some_and(|leftovers| leftovers.is_swapped(&file_name(base_offset, *kind)))
        };
        FileKind::SEGMENT.into_iter().filter(is_swapped).collect()
    };
    let created_ms = shared.clock.now_ms();
    let logs = entries.iter().filter_map(|entry| match parse_file_name(entry.name.to_str()?)? {
        (base_offset, FileKind::Log) => Some((base_offset, entry.size)),
        _ => None,
    });
    let mut segments: Vec<_> = logs
        .map(|(base_offset, size)| {
            let (dir, disk) = (shared.dir.clone(), shared.disk.clone());
            let files = SegmentFiles::new_swapped(dir, base_offset, disk, swapped(base_offset));
            let max_timestamp = TimeEntry::none(base_offset);
            Segment { size, max_timestamp, first_timestamp: None, created_ms, files }
        })
        .collect();
    segments.sort_by_key(Segment::base_offset);
    segments
}

/// Removes index files without their segment.
fn remove_orphans(
    shared: &Shared,
    entries: &[DirEntry],
    bases: &BTreeSet<i64>,
) -> Result<(), StorageError> {
    for name in entries.iter().filter_map(|entry| entry.name.to_str()) {
        let Some((offset, kind)) = parse_file_name(name) else { continue };
        if kind != FileKind::Snapshot && !bases.contains(&offset) {
            let path = shared.dir.join(name);
            let removed = shared.disk.remove_file(&path);
            removed.map_err(|error| StorageError::io("remove", &path, error))?;
        }
    }
    Ok(())
}

/// Applies the checkpointed log start offset to what was found.
fn start_at(state: &mut State, shared: &Shared, log_start_offset: i64) -> Result<(), StorageError> {
    let first = state.segments.first().map_or(0, Segment::base_offset);
    let start = log_start_offset.max(first);
    if start > state.log_end_offset && state.check_writable().is_ok() {
        // Deleted up to there before the crash that lost the records: none of them may come back.
        let withdrawn = state.begin_at(start).before_readers();
        return state.store_emptied(shared, &withdrawn);
    }
    state.log_start_offset = start.min(state.log_end_offset);
    state.producers.on_log_start_offset_updated(state.log_start_offset);
    if state.epochs.truncate_from_start(state.log_start_offset) && state.check_writable().is_ok() {
        state.store_epochs(shared)?;
    }
    Ok(())
}
