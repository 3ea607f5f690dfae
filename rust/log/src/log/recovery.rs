//! Recovery: what was not synced, or is not believed, is read batch by batch and its derived files made anew.
//!
//! # Theory of operation
//! A segment is *dirty* if it reaches beyond the recovery point of a log that was not closed in good order, or
//! if its indexes are missing or garbage. Dirty segments are read from the first byte: CRC, sizes and offsets
//! of each batch, building indexes, epochs, producer state and aborted transactions. Producer state starts from
//! the newest snapshot at or below the first dirty segment.
//!
//! The log ends before the first batch that is not valid, or where there are no more batches. Then it is one of:
//! - *whole*: nothing follows but zeros (space reserved ahead), and everything that was synced is there.
//! - *torn*: bytes follow that form no batch. A crash leaves that; they are cut.
//! - *damaged* ([`Damage`]): valid batches follow, or what was synced is missing. [`OnDamage`] decides.
//!
//! What was synced is what the checkpoints tell ([`Plan::synced_end`]). It is compared at each open, also after a clean
//! stop, so that a file that lost its last batches is noticed although what is left of it is valid. Segments
//! adjoin, except where the log was compacted or nothing was synced ([`gap`]), and the first one begins where the log does.

mod behind;
mod belief;
mod gap;
pub(super) mod load;
mod snapshots;

use std::collections::BTreeSet;

use pykafka_record::Batch;

use self::behind::{last_non_zero, look_behind};
pub(super) use self::belief::note_max_timestamp;
use self::belief::{dirty_segments, trust_last};
use self::gap::Gap;
pub(crate) use self::snapshots::reload_producers;
use self::snapshots::{
    load_producers, remove_snapshot, replay, snapshot_offsets, store_boundary_snapshot,
};
use super::state::{State, Status};
use super::sync::RecoveryPoint;
use super::truncate::shorten;
use super::{
    Checkpointed, Damage, LogOptions, OnDamage, OpenError, Recovery, Shared, StorageError,
    producers,
};
use crate::disk::OpenMode;
use crate::segment::indexes::Indexes;
use crate::segment::scan::{BatchScanner, ScanError};
use crate::segment::time_index::TimeEntry;
use crate::segment::transaction_index::AbortedTxn;
use crate::segment::{FileKind, Segment, SegmentFiles};

/// What to believe, and what to do about damage.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Whether segments are believed without reading them, beyond the recovery point too.
    clean: bool,
    /// Segments that end below it are believed.
    recovery_point: i64,
    /// A log that ends below it lacks records that were synced.
    synced_end: i64,
    /// Where the log ended when it was closed cleanly. One that ends behind it is read: no CRC covers base offsets.
    end_max: i64,
    /// Offsets below it may be missing: they were compacted away.
    cleaner_offset: i64,
    /// Where the log begins, as far as that was checkpointed.
    log_start_offset: Option<i64>,
    /// The high watermark that was checkpointed.
    high_watermark: i64,
    /// Segments of which only indexes are left.
    lost_segments: BTreeSet<i64>,
    /// Segments whose transaction index is not whole: their batches tell what it held.
    lost_aborted: BTreeSet<i64>,
    on_damage: OnDamage,
}

impl Plan {
    pub(crate) fn of(options: &LogOptions) -> Plan {
        let Checkpointed { recovery_point, high_watermark, log_start_offset, cleaner_offset } =
            options.checkpointed;
        let clean = options.clean;
        // A clean stop syncs everything.
        let synced_end = recovery_point.max(if clean { high_watermark } else { 0 });
        // Nobody misses what was deleted.
        let is_deleted = synced_end <= log_start_offset.unwrap_or(0);
        let synced_end = if is_deleted { 0 } else { synced_end };
        let is_end_known = clean && recovery_point > 0;
        Plan {
            clean,
            recovery_point,
            synced_end,
            cleaner_offset: if options.config.cleanup_policy.compact {
                i64::MAX
            } else {
                cleaner_offset
            },
            log_start_offset,
            end_max: if is_end_known { recovery_point } else { i64::MAX },
            high_watermark,
            lost_segments: BTreeSet::new(),
            lost_aborted: BTreeSet::new(),
            on_damage: options.on_damage,
        }
    }

    /// Whether damage where the log ends at `end` is left as it is.
    fn keeps_damage(&self, end: i64) -> bool {
        match self.on_damage {
            OnDamage::Keep => true,
            OnDamage::CutUnsynced => end < self.synced_end,
            OnDamage::Cut => false,
        }
    }

    /// Whether a batch at `base_offset` behind `end` leaves out all that was synced from there on. Only compaction does.
    fn skips_synced(&self, end: i64, base_offset: i64) -> bool {
        end < self.synced_end && base_offset >= self.synced_end.max(self.cleaner_offset)
    }

    /// Records that were synced and are missing before the first segment.
    fn loss_before(&self, first_base: i64) -> Option<Damage> {
        let start = self.log_start_offset?;
        let is_lost = start < first_base.min(self.synced_end) && self.on_damage != OnDamage::Cut;
        is_lost.then_some(Damage::Beginning { offset: start, last_offset: first_base - 1 })
    }

    /// Records that were synced and are missing, where the log ends at `end`.
    fn loss(&self, end: i64) -> Option<Damage> {
        let synced_end = self.synced_end;
        (end < synced_end).then_some(Damage::Lost { offset: end, synced_end })
    }
}

/// Sums up the listed segments in `state`, recovering those that are dirty.
pub(crate) fn recover(
    state: &mut State,
    shared: &Shared,
    plan: &Plan,
    recovery: &mut Recovery,
) -> Result<(), OpenError> {
    if let Some(first) = state.segments.first() {
        state.log_end_offset = first.base_offset();
    }
    let mut dirty = dirty_segments(state, shared, plan, recovery)?;
    if dirty.last() == Some(&false) && !trust_last(state, plan)? {
        *dirty.last_mut().expect("there is a last one") = true;
    }
    let trusted_end = (dirty.last() == Some(&false)).then_some(state.log_end_offset);
    let first_dirty = dirty.iter().position(|is_dirty| *is_dirty);
    let limit = first_dirty.map_or(state.log_end_offset, |i| state.segments[i].base_offset());
    load_producers(state, shared, limit, &mut recovery.warnings)?;
    let mut is_changed = false;
    let from = state.segment_of(state.producers.map_end_offset()).unwrap_or(0);
    for index in from..dirty.len() {
        if !dirty[index] {
            let segment = state.segments[index].clone();
            match replay(state, &segment) {
                // It was believed and is not what its indexes tell: every batch is checked.
                Err(StorageError::Malformed { .. }) => dirty[index] = true,
                replayed => {
                    replayed?;
                    continue;
                }
            }
        }
        is_changed = true;
        recovery.segments_recovered += 1;
        let follows_recovered = index.checked_sub(1).is_some_and(|before| dirty[before]);
        let end_before = if follows_recovered { state.log_end_offset } else { 0 };
        state.log_end_offset = state.segments[index].base_offset().max(end_before);
        store_boundary_snapshot(state, shared)?;
        let position = recover_segment(state, shared, plan, index)?;
        let is_cut_off = position < state.segments[index].size;
        let gap = Gap::behind(state, shared, plan, index)?;
        let is_torn = is_cut_off && !is_untrimmed(state, shared, index, position)?;
        if is_torn || matches!(gap, Gap::BeforeNothing | Gap::Lost(_)) {
            let gap =
                if let (false, Gap::Lost(damage)) = (is_torn, gap) { Some(damage) } else { None };
            end_log(state, shared, plan, (index, position), gap, recovery)?;
            return finish(state, shared, recovery, is_changed).map_err(OpenError::from);
        }
        if is_cut_off {
            cut_file(state, shared, index, position, false)?;
        }
        if let Gap::BeforeBatches(warning) = gap {
            recovery.warnings.push(warning);
            recovery.gaps_below = state.segments.get(index + 1).map(Segment::base_offset);
        }
        store_recovered(state, shared, index)?;
    }
    if let (Some(trusted_end), Some(false)) = (trusted_end, dirty.last()) {
        state.log_end_offset = trusted_end;
    }
    check_end(state, plan, recovery);
    finish(state, shared, recovery, is_changed)?;
    Ok(())
}

/// Compares the end of a log without anything behind it with what the checkpoints tell.
pub(crate) fn check_end(state: &mut State, plan: &Plan, recovery: &mut Recovery) {
    let end = state.log_end_offset;
    match plan.loss(end) {
        Some(damage) if plan.keeps_damage(end) => keep_damage(state, plan, damage, recovery),
        Some(_) => recovery.truncated_at = Some(end),
        None if end < plan.high_watermark => {
            let last = plan.high_watermark - 1;
            let lost =
                format!("offsets {end} to {last} acknowledged, and lost before they were synced");
            recovery.warnings.push(lost);
        }
        None => {}
    }
}

/// Leaves a damaged log as it is, with the recovery point it was opened with: the next open finds the damage too.
fn keep_damage(state: &mut State, plan: &Plan, damage: Damage, recovery: &mut Recovery) {
    state.recovery_point = RecoveryPoint::found(plan.synced_end);
    recovery.damage.get_or_insert_with(|| damage.clone());
    if state.check_writable().is_ok() {
        state.status = Status::Damaged(damage);
    }
}

/// Reads a segment whole, building what is derived from it; returns where the valid batches end.
fn recover_segment(
    state: &mut State,
    shared: &Shared,
    plan: &Plan,
    index: usize,
) -> Result<u64, StorageError> {
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
                if !is_valid(&batch, plan, state.log_end_offset, base_offset) {
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
fn is_valid(batch: &Batch<'_>, plan: &Plan, log_end_offset: i64, base_offset: i64) -> bool {
    batch.has_valid_offsets()
        && !plan.skips_synced(log_end_offset, batch.base_offset())
        && batch.base_offset() >= log_end_offset
        && batch.last_offset() - base_offset <= i64::from(i32::MAX)
        && batch.is_crc_valid()
}

/// The log ends at a segment and a position in it, though something stands behind; `gap` if that is no more than a gap.
fn end_log(
    state: &mut State,
    shared: &Shared,
    plan: &Plan,
    (index, position): (usize, u64),
    gap: Option<Damage>,
    recovery: &mut Recovery,
) -> Result<(), StorageError> {
    let tail = look_behind(state, shared, index, position)?;
    let end = state.log_end_offset;
    state.segments[index].size = position;
    let batch = tail.has_batch.then_some(Damage::Batch { offset: end });
    let damage = gap.or(batch).or(plan.loss(end));
    if let Some(damage) = damage.clone().filter(|_| plan.keeps_damage(end)) {
        keep_damage(state, plan, damage, recovery);
        recovery.damaged_bytes = tail.bytes;
        state.segments.truncate(index + 1);
        return Ok(());
    }
    if tail.bytes > 0 || damage.is_some() {
        recovery.truncated_bytes = tail.bytes;
        recovery.truncated_at = Some(end);
    }
    if end < plan.high_watermark {
        check_end(state, plan, recovery);
    }
    if state.check_writable().is_err() {
        state.segments.truncate(index + 1);
        return Ok(());
    }
    let count = state.segments.len();
    let withdrawn = state.take_segments(index + 1..count).before_readers();
    state.mark_deleted(shared, &withdrawn)?;
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
    state.fail(result)?;
    // Once the recovery point is behind them, sealed indexes are believed.
    state.unsynced.add_file(files.path(FileKind::OffsetIndex));
    state.unsynced.add_file(files.path(FileKind::TimeIndex));
    Ok(())
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
fn finish(
    state: &mut State,
    shared: &Shared,
    recovery: &Recovery,
    is_changed: bool,
) -> Result<(), StorageError> {
    if recovery.damage.is_none() {
        state.recovery_point = RecoveryPoint::found(state.log_end_offset);
    }
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
        state.recovery_point = RecoveryPoint::found(first.min(state.log_end_offset));
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
