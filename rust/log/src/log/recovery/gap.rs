//! Offsets that no batch has between a segment, just read, and the next one.
//!
//! Compaction leaves such gaps, and Apache Kafka where it truncates inside of a batch. A power cut leaves them too,
//! where files and names reach the disk in their own order: records that were never synced are missing before later
//! ones. Nothing in the files tells these apart, and Apache Kafka does not try: it asks that offsets grow.

use super::{Plan, is_valid};
use crate::disk::OpenMode;
use crate::log::state::State;
use crate::log::{Shared, StorageError};
use crate::segment::scan::{BatchScanner, ScanError};
use crate::segment::{FileKind, Segment};

/// A gap behind a segment.
pub(super) enum Gap {
    /// There is none, or it is in order: the topic is compacted, or both sides were synced.
    None,
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
        plan: Plan,
        index: usize,
    ) -> Result<Gap, StorageError> {
        let end = state.log_end_offset;
        let Some(next) = state.segments.get(index + 1) else { return Ok(Gap::None) };
        let is_missing = next.base_offset() > end && next.base_offset() > plan.recovery_point;
        if !is_missing || state.config.cleanup_policy.compact {
            return Ok(Gap::None);
        }
        for segment in &state.segments[index + 1..] {
            if begins_with_batch(shared, segment, end)? {
                let (path, last) = (next.files.path(FileKind::Log), next.base_offset() - 1);
                let path = path.display();
                return Ok(Gap::BeforeBatches(format!(
                    "no offsets {end} to {last} before {path}: compacted, or lost before they were synced"
                )));
            }
        }
        Ok(Gap::BeforeNothing)
    }
}

fn begins_with_batch(
    shared: &Shared,
    segment: &Segment,
    log_end_offset: i64,
) -> Result<bool, StorageError> {
    let files = &segment.files;
    let file = shared
        .disk
        .open(&files.path(FileKind::Log), OpenMode::Read)
        .map_err(files.error("open", FileKind::Log))?;
    let found = match BatchScanner::new(&*file, 0, segment.size).next() {
        Ok(Some((_, batch))) => is_valid(&batch, log_end_offset, segment.base_offset()),
        Ok(None) | Err(ScanError::Bad(_)) => false,
        Err(ScanError::Io(error)) => return Err(files.error("read", FileKind::Log)(error)),
    };
    Ok(found)
}
