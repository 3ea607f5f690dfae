//! Recovery: checks records batch by batch that were not synced or whose files are doubtful, and
//! rebuilds the derived files.
//!
//! # Theory of operation
//! Recovery has two steps. [`inspect()`] compares the files with a [`RecoveryInput`] and returns a
//! [`Recovered`]: the whole log as a value, with a verdict and the required changes of the files.
//! It gets a [`DirView`], which cannot change a file. [`apply`] makes those changes; no other step
//! does. A read-only open, `LogDirectory::inspect` and the inspection before a repair use the same
//! value and change nothing. No open changes a damaged log.
//!
//! A segment is *dirty* if it reaches beyond the recovery point of a log that was not closed
//! cleanly, or if its indexes are missing or invalid. Dirty segments are read from the first byte:
//! the CRC, size and offsets of each batch are checked, and indexes, epochs, producer state and
//! aborted transactions are rebuilt. Producer state starts from the newest snapshot at or below the
//! first dirty segment.
//!
//! The log ends before the first invalid batch, or after the last batch. Then it is one of:
//!
//! - *whole*: only zeros follow (space reserved ahead), and all synced records exist.
//! - *torn*: bytes follow that are not a batch. A crash leaves them; they are cut.
//! - *damaged* ([`Damage`]): valid batches follow, or synced records are missing. [`OnDamage`]
//!   decides. A batch of an unknown message format is damage that is never cut.
//!
//! The checkpoints define which records were synced ([`RecoveryInput::synced_end`]). They are
//! compared at each open, also after a clean stop, so that a file that lost its last batches is
//! noticed although the remaining ones are valid. Segments adjoin, unless the log was compacted or
//! the missing records were not synced ([`missing_offsets`]), and the first segment starts at the
//! log start offset or below. Records below the log start offset may be missing
//! ([`below_log_start`]). A segment must not contain offsets of the next one
//! ([`overlapping_segments`]).

pub(super) mod apply;
mod below_log_start;
pub(super) mod dir_view;
pub(super) mod directory_listing;
mod epochs;
pub(crate) mod input;
mod inspection;
mod missing_offsets;
mod overlapping_segments;
pub(super) mod recovered;
pub(super) mod snapshots;
mod stored_indexes;
mod tail_scan;
#[cfg(test)]
mod tests;
mod trusted_segments;

use std::collections::BTreeSet;

use pykafka_record::BatchHeader;

use self::dir_view::DirView;
use self::input::RecoveryInput;
use self::inspection::Inspection;
use self::missing_offsets::Gap;
use self::recovered::{Cut, Recovered};
use self::snapshots::replay;
use self::tail_scan::{last_non_zero, peek_batch};
use super::interrupted_swaps::Leftovers;
use super::producer_state::batches::note_batch;
use crate::disk::ReadFile;
use crate::error::{Damage, OpenError, StorageError};
use crate::file_names::{FileKind, SYNC_FAILED_FILE, file_name};
use crate::log::types::OnDamage;
use crate::segment::indexes::Indexes;
use crate::segment::scan::{BatchScanner, ScanError, is_batch};
use crate::segment::time_index::TimeEntry;
use crate::segment::transaction_index::AbortedTxn;

/// Derived values of a segment, collected while its batches are read.
struct Rebuilding {
    indexes: Indexes,
    max: TimeEntry,
    aborted: Vec<AbortedTxn>,
}

/// Returns the state of a log from its directory. Changes nothing.
pub(super) fn inspect(dir: &DirView<'_>, input: RecoveryInput) -> Result<Recovered, OpenError> {
    let mut found = Recovered::nothing(&input);
    let Some(entries) = dir.list()? else {
        found.check_end(&input);
        return Ok(found);
    };
    found.is_on_disk = true;
    if let Some(damage) = directory_listing::loss_before(dir, &entries, &input)? {
        found.keep_damage(&input, damage);
    }
    let has_failed_sync = entries.iter().any(|entry| entry.name == SYNC_FAILED_FILE);
    let clean = input.clean && !has_failed_sync;
    let input = RecoveryInput {
        clean,
        lost_segments: directory_listing::lost_segments(&entries),
        replaced: directory_listing::replaced(&entries),
        compacting: directory_listing::compacting(&entries),
        ..input
    };
    let leftovers = Leftovers::find(dir, &entries)?;
    let entries = leftovers.tidied(&entries);
    let (dir, snapshots) =
        (dir.with_swapped(leftovers.swapped()), directory_listing::snapshots(&entries));
    let on_disk = snapshots.clone();
    let mut inspection = Inspection { dir, input, snapshots, found };
    inspection.check_identity(&entries)?;
    inspection.found.segments = directory_listing::segments(&entries, &leftovers);
    inspection.leave_overlapped()?;
    let are_epochs_whole = inspection.load_epochs()?;
    inspection.input.lost_aborted = inspection.lost_aborted(&entries)?;
    if !are_epochs_whole {
        inspection.input = inspection.input.checking_all();
    }
    inspection.recover()?;
    inspection.start_at_checkpoint();
    let Inspection { input, snapshots, mut found, .. } = inspection;
    found.changes.has_failed_sync = has_failed_sync;
    if has_failed_sync {
        found.changes.rewritten_from = found.segment_of(input.recovery_point.saturating_sub(1));
    }
    found.changes.leftovers = leftovers;
    found.changes.snapshots.retain(|offset, _| snapshots.contains(offset));
    // Snapshots of removed segments are removed with these.
    let removed: BTreeSet<_> =
        found.changes.removed_segments.iter().map(|s| s.base_offset).collect();
    let strays = on_disk.difference(&snapshots).filter(|offset| !removed.contains(offset));
    let strays = strays.map(|offset| file_name(*offset, FileKind::Snapshot));
    found.changes.removed_files =
        directory_listing::orphans(&entries).into_iter().chain(strays).collect();
    Ok(found.finished())
}

impl Inspection<'_> {
    /// Determines the end of the log; reads dirty segments batch by batch.
    fn recover(&mut self) -> Result<(), OpenError> {
        if let Some(first) = self.found.segments.first() {
            self.found.log_end_offset = first.base_offset;
        }
        let mut dirty = self.dirty_segments()?;
        if dirty.last() == Some(&false) && !self.trust_last()? {
            *dirty.last_mut().expect("there is a last one") = true;
        }
        let trusted_end = (dirty.last() == Some(&false)).then_some(self.found.log_end_offset);
        let first_dirty = dirty.iter().position(|is_dirty| *is_dirty);
        let limit = first_dirty
            .map_or(self.found.log_end_offset, |index| self.found.segments[index].base_offset);
        self.load_producers(limit)?;
        let from = self.found.segment_of(self.found.producers.map_end_offset()).unwrap_or(0);
        for (index, is_dirty) in dirty.iter_mut().enumerate().skip(from) {
            let segment = &self.found.segments[index];
            if !*is_dirty {
                let segment = (segment.base_offset, segment.size);
                match replay(&self.dir, segment, &mut self.found.producers) {
                    // Its indexes seemed valid but do not match the batches, so every batch is
                    // checked.
                    Err(StorageError::Malformed { .. }) => *is_dirty = true,
                    replayed => {
                        replayed?;
                        continue;
                    }
                }
            }
            self.found.log_end_offset = segment.base_offset;
            if !self.recover_segment(index)? {
                self.finish();
                return Ok(());
            }
        }
        if let (Some(trusted_end), Some(false)) = (trusted_end, dirty.last()) {
            self.found.log_end_offset = trusted_end;
        }
        self.found.check_end(&self.input);
        self.finish();
        Ok(())
    }

    /// Rebuilds the derived values of a segment from its batches. Returns `false` if the log ends
    /// in this segment, whatever follows.
    fn recover_segment(&mut self, index: usize) -> Result<bool, StorageError> {
        self.found.verdict.segments_recovered += 1;
        self.note_boundary_snapshot();
        let position = self.rebuild_segment(index)?;
        let is_cut_off = position < self.found.segments[index].size;
        let gap = self.gap_behind(index)?;
        let is_torn =
            is_cut_off && !self.is_deleted(index) && !self.is_untrimmed(index, position)?;
        if let Gap::BeforeNothing = gap {
            let next = self.found.segments[index + 1].name(FileKind::Log);
            let end = self.found.log_end_offset;
            self.warn(
                &next,
                &format!("does not adjoin the log end {end} and begins with no batch"),
            );
        }
        if is_torn || matches!(gap, Gap::BeforeNothing | Gap::Lost(_)) {
            let gap =
                if let (false, Gap::Lost(damage)) = (is_torn, gap) { Some(damage) } else { None };
            self.end_log((index, position), gap)?;
            return Ok(false);
        }
        if is_cut_off {
            self.found.segments[index].end_at(position, Cut::InPlace);
        }
        if let Gap::BeforeBatches(warning) = gap {
            self.found.verdict.warnings.push(warning);
            let next = self.found.segments.get(index + 1);
            self.found.verdict.gaps_below = next.map(|next| next.base_offset);
        }
        Ok(true)
    }

    /// Reads a whole segment and builds its derived values; returns where the valid batches end.
    fn rebuild_segment(&mut self, index: usize) -> Result<u64, StorageError> {
        let base_offset = self.found.segments[index].base_offset;
        let mut rebuilt = Rebuilding {
            indexes: Indexes::new(base_offset),
            max: TimeEntry::none(base_offset),
            aborted: self.aborted_before(index)?,
        };
        let mut end = self.walk_batches(index, 0, &mut rebuilt)?;
        while let Some(batch) = self.batch_behind_deleted(index, end)? {
            let name = self.found.segments[index].name(FileKind::Log);
            let to = batch.position;
            self.warn(&name, &format!("damaged from position {end} to {to}, below the log start"));
            rebuilt.indexes.begin_at(batch);
            self.found.log_end_offset = batch.offset;
            end = self.walk_batches(index, to, &mut rebuilt)?;
        }
        let Rebuilding { mut indexes, max, aborted } = rebuilt;
        indexes.times.append(max);
        indexes.shrink();
        let segment = &mut self.found.segments[index];
        segment.max_timestamp = max;
        segment.aborted_count = aborted.len();
        segment.rebuilt = Some((indexes, aborted.into()));
        self.bound_rebuilt();
        Ok(end)
    }

    /// Processes the valid batches of a segment from `position` on; returns where they end.
    fn walk_batches(
        &mut self,
        index: usize,
        position: u64,
        rebuilt: &mut Rebuilding,
    ) -> Result<u64, StorageError> {
        let Inspection { dir, input, found, .. } = self;
        let interval = input.index_interval_bytes;
        let next_base = found.segments.get(index + 1).map(|next| next.base_offset);
        let end_max = found.end_max(index);
        let segment = &found.segments[index];
        let is_compacted = segment.is_compacted(input);
        let Rebuilding { indexes, max, aborted } = rebuilt;
        let name = segment.name(FileKind::Log);
        let file = dir.open(&name)?;
        let mut scanner = BatchScanner::new(&*file, position, segment.size);
        loop {
            let valid_end = scanner.position();
            match scanner.next() {
                Ok(Some(batch)) => {
                    let (position, log_end_offset) = (batch.position(), found.log_end_offset);
                    if !input
                        .accepts(&batch, log_end_offset, end_max, is_compacted)
                        .map_err(dir.error("read", &name))?
                    {
                        return Ok(valid_end);
                    }
                    let behind = (position + batch.size() as u64, segment.size, next_base);
                    if contradicts(&*file, &batch, log_end_offset, behind)
                        .map_err(dir.error("read", &name))?
                    {
                        return Ok(valid_end);
                    }
                    max.note(&batch);
                    indexes.note(&batch, position, *max, interval);
                    if let Some(epoch) = batch.partition_leader_epoch()
                        && found.epochs.latest_epoch().is_none_or(|latest| epoch > latest)
                    {
                        found.epochs.assign(epoch, batch.base_offset());
                    }
                    if batch.base_offset() >= found.producers.map_end_offset() {
                        let producers = &mut found.producers;
                        aborted.extend(note_batch(producers, &batch, batch.whole()));
                    }
                    found.log_end_offset = batch.next_offset();
                }
                Ok(None) | Err(ScanError::Bad(_)) => return Ok(valid_end),
                Err(ScanError::Io(error)) => return Err(dir.error("read", &name)(error)),
            }
        }
    }

    /// The stored aborted transactions of a segment that ended below the offset up to which
    /// producer state is known.
    fn aborted_before(&self, index: usize) -> Result<Vec<AbortedTxn>, StorageError> {
        let segment = &self.found.segments[index];
        let upto = self.found.producers.map_end_offset();
        if upto <= segment.base_offset {
            return Ok(Vec::new());
        }
        let stored = self.dir.read_if_there(&segment.name(FileKind::TransactionIndex))?;
        let mut aborted = AbortedTxn::decode_all(&stored.unwrap_or_default()).unwrap_or_default();
        aborted.retain(|txn| txn.last_offset < upto);
        Ok(aborted)
    }

    /// Makes all rebuilt indexes sparser, also those of later segments, when they would take too
    /// much memory.
    fn bound_rebuilt(&mut self) {
        let Inspection { input, found, .. } = self;
        let rebuilt = || found.segments.iter().filter_map(|segment| segment.rebuilt.as_ref());
        if rebuilt().map(|(indexes, _)| indexes.count()).sum::<usize>() <= input.rebuilt_entries_max
        {
            return;
        }
        input.index_interval_bytes = input.index_interval_bytes.max(1).saturating_mul(2);
        for segment in &mut found.segments {
            if let Some((indexes, _)) = &mut segment.rebuilt {
                indexes.thin();
            }
        }
    }

    /// Ends the log at a position of a segment although more bytes or segments follow; `gap` is set
    /// if only a gap follows.
    fn end_log(
        &mut self,
        (index, position): (usize, u64),
        gap: Option<Damage>,
    ) -> Result<(), StorageError> {
        let tail = self.scan_tail(index, position)?;
        let misplaced = self.misplaced_batch(index, position)?;
        let unknown = self.unknown_format(index, position)?;
        let Inspection { input, snapshots, found, .. } = self;
        let end = found.log_end_offset;
        let behind = found.segments.split_off(index + 1);
        let cut = if behind.is_empty() { Cut::InPlace } else { Cut::ByCopy };
        found.segments[index].end_at(position, cut);
        for segment in &behind {
            snapshots.remove(&segment.base_offset);
        }
        found.changes.removed_segments.extend(behind);
        let batch = tail.has_batch.then_some(Damage::Batch { offset: end });
        let damage = unknown.or(gap).or(misplaced).or(batch).or(input.loss(end));
        let is_kept = |damage: &Damage| input.keeps_damage(end) || !damage.may_be_cut();
        if let Some(damage) = damage.clone().filter(is_kept) {
            found.keep_damage(input, damage);
            found.verdict.damaged_bytes = tail.bytes;
            return Ok(());
        }
        if tail.bytes > 0 || damage.is_some() {
            found.verdict.truncated_bytes = tail.bytes;
            found.verdict.truncated_at = Some(end);
        }
        if end < input.high_watermark {
            found.check_end(input);
        }
        Ok(())
    }

    /// The damage of a batch with an unknown format, at a position of a segment or at the start of
    /// a later segment.
    fn unknown_format(&self, index: usize, position: u64) -> Result<Option<Damage>, StorageError> {
        let offset = self.found.log_end_offset;
        for (number, segment) in self.found.segments[index..].iter().enumerate() {
            let start = if number == 0 { position } else { 0 };
            let name = segment.name(FileKind::Log);
            let file = self.dir.open(&name)?;
            let offset_min = offset.max(segment.base_offset);
            let magic = tail_scan::unknown_format(&*file, start..segment.size, offset_min);
            if let Some(magic) = magic.map_err(self.dir.error("read", &name))? {
                return Ok(Some(Damage::UnknownFormat { offset, magic }));
            }
        }
        Ok(None)
    }

    /// True if a segment is below the log start offset.
    fn is_deleted(&self, index: usize) -> bool {
        let next = self.found.segments.get(index + 1);
        next.is_some_and(|next| self.input.is_deleted(next.base_offset))
    }

    /// True if a segment is sealed and whole, and the crash only prevented its trimming: only zeros
    /// follow its last batch, which ends where the next segment starts.
    fn is_untrimmed(&self, index: usize, position: u64) -> Result<bool, StorageError> {
        let segment = &self.found.segments[index];
        let next = self.found.segments.get(index + 1).map(|next| next.base_offset);
        if next != Some(self.found.log_end_offset) {
            return Ok(false);
        }
        let name = segment.name(FileKind::Log);
        let last = last_non_zero(&*self.dir.open(&name)?, position, segment.size);
        Ok(last.map_err(self.dir.error("read", &name))?.is_none())
    }

    /// Completes the findings once the log end offset is known.
    fn finish(&mut self) {
        let found = &mut self.found;
        let is_changed = found.verdict.segments_recovered > 0;
        if found.verdict.damage.is_none() {
            found.recovery_point = found.log_end_offset;
        }
        found.producers.expire(self.input.now_ms);
        // An epoch may start at the log end offset, without a batch so far.
        let is_cut = found.epochs.truncate_from_end(found.log_end_offset.saturating_add(1));
        found.changes.has_new_epochs |= is_changed || is_cut;
        let Some(first) = found.segments.first() else { return };
        if found.verdict.damage.is_none() && is_changed {
            // The recovered records were not synced before the crash.
            found.recovery_point = first.base_offset.min(found.log_end_offset);
        }
        self.drop_stray_snapshots();
    }

    /// Sets the log start offset from the checkpoint.
    fn start_at_checkpoint(&mut self) {
        let Inspection { input, snapshots, found, .. } = self;
        let first = found.segments.first().map_or(0, |segment| segment.base_offset);
        let end = found.log_end_offset;
        let start = input.log_start_offset.unwrap_or(0).max(first);
        let is_end_only = matches!(found.verdict.damage, None | Some(Damage::Lost { .. }));
        if start > end && is_end_only {
            let has_batches = found.segments.iter().any(|segment| segment.size > 0);
            if has_batches && input.on_damage != OnDamage::Cut {
                found.verdict.damage = None;
                let synced_end = input.synced_end;
                found.keep_damage(
                    input,
                    Damage::LogStart { offset: end, log_start_offset: start, synced_end },
                );
            } else if found.verdict.damage.is_none() {
                // No records at or above it are left, and deleted records must not reappear.
                found.begin_empty(start);
                snapshots.clear();
                return;
            }
        }
        found.log_start_offset = start.min(found.log_end_offset);
        found.producers.on_log_start_offset_updated(found.log_start_offset);
        found.changes.has_new_epochs |= found.epochs.truncate_from_start(found.log_start_offset);
    }
}

impl Recovered {
    /// Compares the end of a log, after which nothing follows, with the checkpoints.
    fn check_end(&mut self, input: &RecoveryInput) {
        let end = self.log_end_offset;
        match input.loss(end) {
            Some(damage) if input.keeps_damage(end) => self.keep_damage(input, damage),
            Some(_) => self.verdict.truncated_at = Some(end),
            None if end < input.high_watermark => {
                let last = input.high_watermark - 1;
                self.verdict.warnings.push(format!(
                    "offsets {end} to {last} acknowledged, and lost before they were synced"
                ));
            }
            None => {}
        }
    }
}

/// True if the base offset of a batch must be wrong: it leaves a gap, the next batch or segment
/// starts below its end, and without the gap it would end at or before that start. No CRC covers
/// base offsets.
///
/// `behind` has the end of the batch, the end of its segment, and the base offset of the next
/// segment.
fn contradicts(
    file: &dyn ReadFile,
    batch: &BatchHeader<'_>,
    log_end_offset: i64,
    (position, end, next_base): (u64, u64, Option<i64>),
) -> std::io::Result<bool> {
    if batch.first_offset_min(log_end_offset) == log_end_offset {
        return Ok(false);
    }
    let end_without_gap = log_end_offset + (batch.next_offset() - batch.base_offset());
    let contradicting = end_without_gap..batch.next_offset();
    match peek_batch(file, position..end, log_end_offset)? {
        Some(next) => Ok(contradicting.contains(&next) && is_batch(file, position)?),
        None => Ok(next_base.is_some_and(|next| contradicting.contains(&next))),
    }
}
