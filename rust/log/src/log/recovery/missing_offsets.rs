//! Missing offsets between a segment that was just read and the next one.
//!
//! Compaction leaves such gaps. A power cut leaves them too, because files and names reach the disk
//! in any order: unsynced records may be missing before later ones. Any other gap is a loss. Apache
//! Kafka does not distinguish these cases: it only requires that offsets increase. Here a gap below
//! the synced offsets is damage. If each append is synced, any gap before batches is. A gap is not
//! damage if the log was compacted up to there (`cleaner-offset-checkpoint`), unless an index
//! contains the missing records: the index of a missing `.log`, or one that reaches beyond the end
//! of its `.log`. The end of an accepted gap is stored in that checkpoint.
//!
//! Kafka writes that checkpoint at the end of a compaction. Until then, the names of the files show
//! the compaction ([`is_being_compacted`]). Only an open for reading uses the names, because Kafka
//! may be running.

use std::ops::Range;

use super::dir_view::DirView;
use super::input::RecoveryInput;
use super::inspection::Inspection;
use super::recovered::FoundSegment;
use super::stored_indexes::indexed_end;
use crate::error::{Damage, StorageError};
use crate::file_names::{DELETED_SUFFIX, FileKind, file_name};
use crate::log::interrupted_swaps::next_offset;
use crate::segment::scan::{BatchScanner, ScanError};

/// Kinds of gaps after a segment.
pub(super) enum Gap {
    /// No gap, or the log was compacted there.
    None,
    /// Synced records are missing.
    Lost(Damage),
    /// Batches follow. The missing records may have been lost.
    BeforeBatches(String),
    /// No later segment starts with a batch: after a crash there are names of files without
    /// content, so that the log ends before them.
    BeforeNothing,
}

impl Inspection<'_> {
    /// The gap after the segment at `index`, which was just read.
    pub(super) fn gap_behind(&self, index: usize) -> Result<Gap, StorageError> {
        let Inspection { dir, input, found, .. } = self;
        let end = found.log_end_offset;
        let Some(next) = found.segments.get(index + 1) else { return Ok(Gap::None) };
        if next.base_offset <= end || input.is_deleted(next.base_offset) {
            return Ok(Gap::None);
        }
        let segment = &found.segments[index];
        let damage = lost_in_gap(dir, input, segment, end, next.base_offset)?;
        if let Some(damage) = damage.clone().filter(|_| end < input.synced_end) {
            return Ok(Gap::Lost(damage));
        }
        if damage.is_none() && next.base_offset <= input.cleaner_offset {
            return Ok(Gap::None);
        }
        for (index, segment) in found.segments.iter().enumerate().skip(index + 1) {
            if begins_with_batch(dir, input, segment, end..found.end_max(index))? {
                let warning = || Gap::BeforeBatches(warning(dir, end, next));
                return Ok(damage.map_or_else(warning, Gap::Lost));
            }
        }
        Ok(Gap::BeforeNothing)
    }
}

/// The text of a log line about a gap from `end` to `next`.
pub(super) fn warning(dir: &DirView<'_>, end: i64, next: &FoundSegment) -> String {
    let (path, last) = (dir.path(&next.name(FileKind::Log)), next.base_offset - 1);
    let path = path.display();
    format!("no offsets {end} to {last} before {path}: compacted, or lost")
}

/// The records in the gap from `end`, the end of `segment`, to `next_base` that were synced or, if
/// each append is synced, may have been; `None` if compaction removed them.
pub(super) fn lost_in_gap(
    dir: &DirView<'_>,
    input: &RecoveryInput,
    segment: &FoundSegment,
    end: i64,
    next_base: i64,
) -> Result<Option<Damage>, StorageError> {
    let may_be_lost = end < input.synced_end || input.syncs_every_append || input.is_copy;
    let is_unexplained = next_base > input.cleaner_offset && !input.is_copy;
    let is_lost = may_be_lost
        && ((is_unexplained && !is_being_compacted(dir, input, segment, next_base)?)
            || input.lost_segments.range(end..next_base).next().is_some()
            || indexed_end(dir, segment)? > end);
    Ok(is_lost.then_some(Damage::Gap { offset: end, last_offset: next_base - 1 }))
}

/// True if an unfinished compaction made the gap from `segment` to `next_base`.
///
/// A compaction proceeds from the oldest segment to the newest. The replaced segments have the
/// suffix `.deleted` for a while; the first of them has the base offset of the result.
fn is_being_compacted(
    dir: &DirView<'_>,
    input: &RecoveryInput,
    segment: &FoundSegment,
    next_base: i64,
) -> Result<bool, StorageError> {
    if !input.is_read_only {
        return Ok(false);
    }
    let is_result = segment.swapped.contains(&FileKind::Log);
    if is_result || input.compacting.is_some_and(|base_offset| next_base <= base_offset) {
        return Ok(true);
    }
    if !input.replaced.contains(&segment.base_offset) {
        return Ok(false);
    }
    let replaced = input.replaced.range(..next_base).next_back();
    replaced.map_or(Ok(false), |base_offset| {
        let name = file_name(*base_offset, FileKind::Log) + DELETED_SUFFIX;
        Ok(next_offset(dir, &name)? == next_base)
    })
}

fn begins_with_batch(
    dir: &DirView<'_>,
    input: &RecoveryInput,
    segment: &FoundSegment,
    offsets: Range<i64>,
) -> Result<bool, StorageError> {
    let name = segment.name(FileKind::Log);
    let file = dir.open(&name)?;
    match BatchScanner::new(&*file, 0, segment.size).next() {
        Ok(Some(batch)) => input
            .accepts(&batch, offsets.start, offsets.end, segment.is_compacted(input))
            .map_err(dir.error("read", &name)),
        Ok(None) | Err(ScanError::Bad(_)) => Ok(false),
        Err(ScanError::Io(error)) => Err(dir.error("read", &name)(error)),
    }
}
