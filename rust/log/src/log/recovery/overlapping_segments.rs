//! Segments that reach beyond the start of the next one. No writer creates such files: they were
//! put there from outside.
//!
//! An empty segment (no bytes, or only zeros) within the offsets of the one before it is not part
//! of the log: it is left out and removed. Any other overlap is damage: the log ends before the
//! batch that reaches too far, because either the file of this batch or the next file may be the
//! wrong one.

use pykafka_record::HEADER_SIZE;

use super::dir_view::DirView;
use super::inspection::Inspection;
use super::recovered::FoundSegment;
use super::stored_indexes::{has_entries, sealed};
use super::tail_scan::last_non_zero;
use crate::error::{Damage, StorageError};
use crate::file_names::FileKind;
use crate::segment::scan::{HeaderScanner, ScanError, is_batch, peek_offsets};

impl Inspection<'_> {
    /// Leaves out empty segments within the offsets of the one before them.
    pub(super) fn leave_overlapped(&mut self) -> Result<(), StorageError> {
        let mut index = 1;
        while let Some(segment) = self.found.segments.get(index) {
            let before = &self.found.segments[index - 1];
            let is_left = seems_empty(&self.dir, segment)?
                && end_of(&self.dir, before)? > segment.base_offset
                && are_zeros(&self.dir, segment, segment.size)?;
            if !is_left {
                index += 1;
                continue;
            }
            let segment = self.found.segments.remove(index);
            let before = self.found.segments[index - 1].name(FileKind::Log);
            self.warn(
                &segment.name(FileKind::Log),
                &format!("empty, and lies inside {before}; no part of the log"),
            );
            self.snapshots.remove(&segment.base_offset);
            self.found.changes.removed_segments.push(segment);
        }
        Ok(())
    }

    /// The whole batch at the position where the log ends because its offsets cannot follow.
    pub(super) fn misplaced_batch(
        &self,
        index: usize,
        position: u64,
    ) -> Result<Option<Damage>, StorageError> {
        let offset = self.found.log_end_offset;
        let next_base = self.found.segments.get(index + 1).map(|next| next.base_offset);
        let name = self.found.segments[index].name(FileKind::Log);
        let file = self.dir.open(&name)?;
        let look = || {
            let mut header = [0; HEADER_SIZE];
            let read = file.read_at(&mut header, position)?;
            let Some((first_offset, last_offset)) = peek_offsets(&header[..read]) else {
                return Ok(None);
            };
            let next_base = next_base.filter(|next| offset <= first_offset && *next <= last_offset);
            let damage = Damage::Misplaced { offset, first_offset, last_offset, next_base };
            Ok(is_batch(&*file, position)?.then_some(damage))
        };
        look().map_err(self.dir.error("read", &name))
    }
}

/// The end (exclusive) of the last batch of a segment, from its indexes, or else from the headers
/// of all its batches.
fn end_of(dir: &DirView<'_>, segment: &FoundSegment) -> Result<i64, StorageError> {
    if let Some((_, end)) = sealed(dir, segment)? {
        return Ok(end);
    }
    let name = segment.name(FileKind::Log);
    let file = dir.open(&name)?;
    let mut headers = HeaderScanner::new(&*file, 0, segment.size);
    let mut end = segment.base_offset;
    loop {
        match headers.next() {
            Ok(Some(header)) if (end..=header.last_offset).contains(&header.base_offset) => {
                end = header.last_offset.saturating_add(1);
            }
            Ok(_) | Err(ScanError::Bad(_)) => return Ok(end),
            Err(ScanError::Io(error)) => return Err(dir.error("read", &name)(error)),
        }
    }
}

/// True if, according to its index and first bytes, a segment was never written to.
fn seems_empty(dir: &DirView<'_>, segment: &FoundSegment) -> Result<bool, StorageError> {
    let is_indexed = segment.size > 0 && has_entries(dir, segment)?;
    Ok(!is_indexed && are_zeros(dir, segment, segment.size.min(HEADER_SIZE as u64))?)
}

/// True if the first `size` bytes of a segment are zeros, as before the first write.
fn are_zeros(dir: &DirView<'_>, segment: &FoundSegment, size: u64) -> Result<bool, StorageError> {
    if size == 0 {
        return Ok(true);
    }
    let name = segment.name(FileKind::Log);
    let last = last_non_zero(&*dir.open(&name)?, 0, size);
    Ok(last.map_err(dir.error("read", &name))?.is_none())
}
