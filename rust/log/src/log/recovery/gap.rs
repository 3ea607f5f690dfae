//! Offsets that no batch has between a segment, just read, and the next one.
//!
//! Compaction leaves such gaps. A power cut leaves them too, where files and names reach the disk in their own order:
//! records that were never synced are missing before later ones. Any other gap is a loss. Apache Kafka does not tell them
//! apart: it asks that offsets grow. Here a gap below what was synced is damage, unless the log was compacted up to there
//! (`cleaner-offset-checkpoint`); and also then if an index tells of records: one whose `.log` is missing, or that reaches
//! beyond the end of its `.log`. A gap that is taken as it is gets into that checkpoint.

use super::belief::indexed_end;
use super::{Plan, is_valid};
use crate::disk::OpenMode;
use crate::log::state::State;
use crate::log::{Damage, Shared, StorageError};
use crate::segment::scan::{BatchScanner, ScanError};
use crate::segment::{FileKind, Segment};

/// A gap behind a segment.
pub(super) enum Gap {
    /// There is none, or the log was compacted there.
    None,
    /// Synced records are gone.
    Lost(Damage),
    /// Batches follow. What is missing may have been lost.
    BeforeBatches(String),
    /// No segment behind it begins with a batch: a crash kept names of files and nothing in them, so that the log
    /// ends before it.
    BeforeNothing,
}

impl Gap {
    pub(super) fn behind(
        state: &State,
        shared: &Shared,
        plan: &Plan,
        index: usize,
    ) -> Result<Gap, StorageError> {
        let end = state.log_end_offset;
        let Some(next) = state.segments.get(index + 1) else { return Ok(Gap::None) };
        if next.base_offset() <= end {
            return Ok(Gap::None);
        }
        let segment = &state.segments[index];
        if let Some(damage) = lost_in_gap(shared, plan, segment, end, next.base_offset())? {
            return Ok(Gap::Lost(damage));
        }
        if next.base_offset() <= plan.cleaner_offset {
            return Ok(Gap::None);
        }
        for segment in &state.segments[index + 1..] {
            if begins_with_batch(shared, plan, segment, end)? {
                return Ok(Gap::BeforeBatches(warning(end, next)));
            }
        }
        Ok(Gap::BeforeNothing)
    }
}

/// What a log line says of a gap from `end` to `next`.
pub(super) fn warning(end: i64, next: &Segment) -> String {
    let (path, last) = (next.files.path(FileKind::Log), next.base_offset() - 1);
    let path = path.display();
    format!("no offsets {end} to {last} before {path}: compacted, or lost")
}

/// The synced records that were in the gap from `end`, where `segment` ends, to `next_base`, unless compaction took them.
pub(super) fn lost_in_gap(
    shared: &Shared,
    plan: &Plan,
    segment: &Segment,
    end: i64,
    next_base: i64,
) -> Result<Option<Damage>, StorageError> {
    let is_lost = end < plan.synced_end
        && (next_base > plan.cleaner_offset
            || plan.lost_segments.range(end..next_base).next().is_some()
            || indexed_end(&*shared.disk, segment)? > end);
    Ok(is_lost.then_some(Damage::Gap { offset: end, last_offset: next_base - 1 }))
}

fn begins_with_batch(
    shared: &Shared,
    plan: &Plan,
    segment: &Segment,
    log_end_offset: i64,
) -> Result<bool, StorageError> {
    let files = &segment.files;
    let file = shared
        .disk
        .open(&files.path(FileKind::Log), OpenMode::Read)
        .map_err(files.error("open", FileKind::Log))?;
    let found = match BatchScanner::new(&*file, 0, segment.size).next() {
        Ok(Some((_, batch))) => is_valid(&batch, plan, log_end_offset, segment.base_offset()),
        Ok(None) | Err(ScanError::Bad(_)) => false,
        Err(ScanError::Io(error)) => return Err(files.error("read", FileKind::Log)(error)),
    };
    Ok(found)
}
