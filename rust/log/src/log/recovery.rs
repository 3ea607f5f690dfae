//! Recovery: what was not synced, or is not believed, is read batch by batch and its derived files made anew.
//!
//! # Theory of operation
//! A segment is *dirty* if it reaches beyond the recovery point of a log that was not closed in good order, or
//! if its indexes are missing or garbage. Dirty segments are read from the first byte: CRC, sizes and offsets
//! of each batch, building indexes, epochs, producer state and aborted transactions. Producer state starts from
//! the newest snapshot at or below the first dirty segment.
//!
//! The first batch that does not hold ends the log. What stands behind it decides what it is:
//! - nothing but zeros (space reserved ahead) or bytes that form no batch: a *torn tail*. It is cut.
//! - a valid batch, or the end lies below the recovery point: *damage*. What follows was once acknowledged, so
//!   nothing is touched; readers get the part before, and `repair` may cut.
//!
//! Offsets have to grow, and no more: gaps are in order ([`gap`]).

mod behind;
mod belief;
mod gap;
pub(super) mod load;
mod snapshots;

use pykafka_record::Batch;

use self::behind::{last_non_zero, look_behind};
use self::belief::{dirty_segments, note_max_timestamp, trust_last};
use self::gap::Gap;
use self::load::Damage;
pub(crate) use self::snapshots::reload_producers;
use self::snapshots::{
    load_producers, remove_snapshot, replay, snapshot_offsets, store_boundary_snapshot,
};
use super::state::{State, Status};
use super::truncate::shorten;
use super::{OpenError, Recovery, Shared, StorageError, producers};
use crate::disk::OpenMode;
use crate::segment::indexes::Indexes;
use crate::segment::scan::{BatchScanner, ScanError};
use crate::segment::time_index::TimeEntry;
use crate::segment::transaction_index::AbortedTxn;
use crate::segment::{FileKind, Segment, SegmentFiles};

/// What to believe, and what to do with damage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) clean: bool,
    pub(crate) recovery_point: i64,
    pub(crate) damage: Damage,
}

/// Sums up the listed segments in `state`, recovering those that are dirty.
pub(crate) fn recover(
    state: &mut State,
    shared: &Shared,
    plan: Plan,
    recovery: &mut Recovery,
) -> Result<(), OpenError> {
    if let Some(first) = state.segments.first() {
        state.log_end_offset = first.base_offset();
    }
    let mut dirty = dirty_segments(state, shared, plan)?;
    if dirty.last() == Some(&false) && !trust_last(state, shared)? {
        *dirty.last_mut().expect("there is a last one") = true;
    }
    let trusted_end = (dirty.last() == Some(&false)).then_some(state.log_end_offset);
    let first_dirty = dirty.iter().position(|is_dirty| *is_dirty);
    let limit = first_dirty.map_or(state.log_end_offset, |i| state.segments[i].base_offset());
    load_producers(state, shared, limit, &mut recovery.warnings)?;
    let mut is_changed = false;
    let from = state.segment_of(state.producers.map_end_offset()).unwrap_or(0);
    for (index, is_dirty) in dirty.iter().enumerate().skip(from) {
        if !is_dirty {
            let segment = state.segments[index].clone();
            replay(state, &segment)?;
            continue;
        }
        is_changed = true;
        recovery.segments_recovered += 1;
        let follows_recovered = index.checked_sub(1).is_some_and(|before| dirty[before]);
        let end_before = if follows_recovered { state.log_end_offset } else { 0 };
        state.log_end_offset = state.segments[index].base_offset().max(end_before);
        store_boundary_snapshot(state, shared)?;
        let position = recover_segment(state, shared, index)?;
        let is_cut_off = position < state.segments[index].size;
        let gap = Gap::behind(state, shared, plan, index)?;
        if matches!(gap, Gap::BeforeNothing)
            || (is_cut_off && !is_untrimmed(state, shared, index, position)?)
        {
            end_log(state, shared, plan, index, position, recovery)?;
            return finish(state, shared, is_changed).map_err(OpenError::from);
        }
        if is_cut_off {
            cut_file(state, shared, index, position, false)?;
        }
        if let Gap::BeforeBatches(warning) = gap {
            recovery.warnings.push(warning);
        }
        store_recovered(state, shared, index)?;
    }
    if let Some(trusted_end) = trusted_end {
        state.log_end_offset = trusted_end;
    }
    finish(state, shared, is_changed)?;
    Ok(())
}

/// Reads a segment whole, building what is derived from it; returns where the valid batches end.
fn recover_segment(state: &mut State, shared: &Shared, index: usize) -> Result<u64, StorageError> {
    let interval = state.config.index_interval_bytes as u64;
    let (files, size) = (state.segments[index].files.clone(), state.segments[index].size);
    let base_offset = files.base_offset();
    let mut indexes = Indexes::new(base_offset);
    let mut max = TimeEntry::none(base_offset);
    let mut aborted = Vec::new();
    let file = shared
        .disk
        .open(&files.path(FileKind::Log), OpenMode::Read)
        .map_err(files.error("open", FileKind::Log))?;
    let mut scanner = BatchScanner::new(&*file, 0, size);
    let end = loop {
        let valid_end = scanner.position();
        match scanner.next() {
            Ok(Some((position, batch))) => {
                if !is_valid(&batch, state.log_end_offset, base_offset) {
                    break valid_end;
                }
                note_max_timestamp(&mut max, &batch);
                indexes.note(&batch, position, max, interval);
                let epoch = batch.partition_leader_epoch();
                if epoch >= 0 && state.epochs.latest_epoch().is_none_or(|latest| epoch > latest) {
                    state.epochs.assign(epoch, batch.base_offset());
                }
                if batch.base_offset() >= state.producers.map_end_offset() {
                    aborted.extend(producers::note_batch(&mut state.producers, &batch));
                }
                state.log_end_offset = batch.next_offset();
            }
            Ok(None) | Err(ScanError::Bad(_)) => break valid_end,
            Err(ScanError::Io(error)) => return Err(files.error("read", FileKind::Log)(error)),
        }
    };
    indexes.times.append(max);
    state.segments[index].max_timestamp = max;
    files.set_rebuilt(indexes, aborted.into());
    Ok(end)
}

/// Whether a batch may follow what was read, whole and undamaged.
fn is_valid(batch: &Batch<'_>, log_end_offset: i64, base_offset: i64) -> bool {
    batch.has_valid_offsets()
        && batch.base_offset() >= log_end_offset
        && batch.last_offset() - base_offset <= i64::from(i32::MAX)
        && batch.is_crc_valid()
}

/// The log ends at `position` of segment `index`, before the end of its file.
fn end_log(
    state: &mut State,
    shared: &Shared,
    plan: Plan,
    index: usize,
    position: u64,
    recovery: &mut Recovery,
) -> Result<(), StorageError> {
    let tail = look_behind(state, shared, index, position)?;
    let is_lost = tail.bytes > 0 && state.log_end_offset < plan.recovery_point;
    state.segments[index].size = position;
    if (tail.has_batch || is_lost) && plan.damage == Damage::Keep {
        recovery.damaged_at = Some(state.log_end_offset);
        if state.check_writable().is_ok() {
            state.status = Status::Damaged(state.log_end_offset);
        }
        state.segments.truncate(index + 1);
        return Ok(());
    }
    if tail.bytes > 0 {
        recovery.truncated_bytes = tail.bytes;
        recovery.truncated_at = Some(state.log_end_offset);
    }
    if state.check_writable().is_err() {
        state.segments.truncate(index + 1);
        return Ok(());
    }
    let count = state.segments.len();
    state.remove_segments(shared, index + 1..count)?;
    cut_file(state, shared, index, position, index + 1 < count)?;
    store_recovered(state, shared, index)
}

/// Whether a segment is sealed and whole, and only lost its trimming to the crash: all that stands behind its
/// last batch is zeros, and that batch ends where the next segment begins.
fn is_untrimmed(
    state: &State,
    shared: &Shared,
    index: usize,
    position: u64,
) -> Result<bool, StorageError> {
    let segment = &state.segments[index];
    let next = state.segments.get(index + 1).map(Segment::base_offset);
    if next != Some(state.log_end_offset) {
        return Ok(false);
    }
    let last = shared
        .disk
        .open(&segment.files.path(FileKind::Log), OpenMode::Read)
        .and_then(|file| last_non_zero(&*file, position, segment.size));
    Ok(last.map_err(segment.files.error("read", FileKind::Log))?.is_none())
}

/// Ends a segment at `position`, in its file too if anything may be written; `into_sealed` if that was sealed, and
/// loses batches.
fn cut_file(
    state: &mut State,
    shared: &Shared,
    index: usize,
    position: u64,
    into_sealed: bool,
) -> Result<(), StorageError> {
    state.segments[index].size = position;
    if state.check_writable().is_err() {
        return Ok(());
    }
    let files = state.segments[index].files.clone();
    let cut = shorten(shared, &files, position, into_sealed);
    state.fail(cut)?;
    state.unsynced.add_file(files.path(FileKind::Log));
    Ok(())
}

/// Stores what was rebuilt of a segment, if anything may be written; else readers use it from memory.
fn store_recovered(state: &mut State, shared: &Shared, index: usize) -> Result<(), StorageError> {
    if state.check_writable().is_err() {
        return Ok(());
    }
    let files = state.segments[index].files.clone();
    let Some((mut indexes, aborted)) = files.take_rebuilt() else { return Ok(()) };
    let result =
        indexes.store(&*shared.disk, &files).and_then(|()| store_aborted(shared, &files, &aborted));
    state.fail(result)
}

/// Writes a segment's transaction index; without aborted transactions there is none.
pub(crate) fn store_aborted(
    shared: &Shared,
    files: &SegmentFiles,
    aborted: &[AbortedTxn],
) -> Result<(), StorageError> {
    let path = files.path(FileKind::TransactionIndex);
    let store = || {
        if aborted.is_empty() {
            return match shared.disk.remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let bytes: Vec<u8> = aborted.iter().flat_map(|txn| txn.encode()).collect();
        let file = shared.disk.open(&path, OpenMode::Create)?;
        file.write_at(&bytes, 0)?;
        file.set_len(bytes.len() as u64)
    };
    store().map_err(files.error("write", FileKind::TransactionIndex))?;
    files.set_aborted(aborted.into());
    Ok(())
}

/// What follows once the log end is known.
fn finish(state: &mut State, shared: &Shared, is_changed: bool) -> Result<(), StorageError> {
    state.recovery_point = state.log_end_offset;
    state.producers.expire(shared.clock.now_ms());
    if state.segments.is_empty() {
        return Ok(());
    }
    // An epoch may have begun at the log end, without a batch yet.
    let is_cut = state.epochs.truncate_from_end(state.log_end_offset.saturating_add(1));
    if state.check_writable().is_err() {
        return Ok(());
    }
    if is_changed || is_cut {
        state.store_epochs(shared)?;
    }
    if is_changed {
        // What was recovered was not synced before the crash.
        let first = state.segments.first().map_or(0, Segment::base_offset);
        state.recovery_point = first.min(state.log_end_offset);
    }
    let bases: Vec<_> = state.segments.iter().map(Segment::base_offset).collect();
    let newest = state.snapshot_offset;
    for offset in snapshot_offsets(shared)? {
        let is_stray = offset != newest && !bases.contains(&offset);
        if is_stray || offset > state.log_end_offset {
            remove_snapshot(state, shared, offset)?;
        }
    }
    Ok(())
}
