//! Determines the segments that need not be read, because their indexes are complete and match the
//! batches.

use super::below_log_start::is_readable_from;
use super::inspection::Inspection;
use super::missing_offsets::{lost_in_gap, warning};
use super::stored_indexes::{is_time_of, sealed, stored_indexes};
use super::tail_scan::last_non_zero;
use crate::error::StorageError;
use crate::file_names::FileKind;
use crate::segment::scan::{BatchScanner, ScanError};

impl Inspection<'_> {
    /// Index of the first segment that may not have been synced completely; the number of segments
    /// if all were.
    pub(super) fn first_unsynced(&self) -> usize {
        let Inspection { input, found, .. } = self;
        // The segment that ends at the recovery point is included: its last sync was before its
        // file was trimmed.
        match found.segment_of(input.recovery_point.saturating_sub(1)) {
            Some(index) if !input.clean => index,
            _ => found.segments.len(),
        }
    }

    /// Determines which segments must be read batch by batch; the others get their largest
    /// timestamp from their index.
    ///
    /// Trusted segments are compared with the next segment: gaps are reported, and a segment that
    /// lacks records is read.
    pub(super) fn dirty_segments(&mut self) -> Result<Vec<bool>, StorageError> {
        let first = self.first_unsynced();
        let Inspection { dir, input, found, .. } = self;
        let mut dirty = vec![true; found.segments.len()];
        let mut gaps = Vec::new();
        for (index, is_dirty) in dirty.iter_mut().enumerate().take(first) {
            let segment = &found.segments[index];
            let lacks_aborted = input.lost_aborted.contains(&segment.base_offset);
            let sealed = sealed(dir, segment)?;
            let Some(next) = found.segments.get(index + 1) else {
                // The last segment is checked by `trust_last` in any case.
                *is_dirty = lacks_aborted;
                continue;
            };
            if lacks_aborted {
                continue;
            }
            let Some((max, end)) = sealed.filter(|(_, end)| *end <= next.base_offset) else {
                continue;
            };
            let start = input.log_start_offset.unwrap_or(0);
            let holds_start = (segment.base_offset + 1..next.base_offset).contains(&start);
            if holds_start && !is_readable_from(dir, segment, start)? {
                continue;
            }
            let is_gap = end < next.base_offset && !input.is_deleted(next.base_offset);
            if is_gap && next.size == 0 {
                // There is no evidence that the log continues there.
                continue;
            }
            if is_gap && lost_in_gap(dir, input, segment, end, next.base_offset)?.is_some() {
                continue;
            }
            if is_gap && next.base_offset > input.cleaner_offset {
                found.verdict.gaps_below = Some(next.base_offset);
                gaps.push(warning(dir, end, next));
            }
            *is_dirty = false;
            found.segments[index].max_timestamp = max;
        }
        let more = gaps.len().saturating_sub(1);
        if let Some(gap) = gaps.into_iter().next() {
            let more = if more > 0 { format!(", and {more} more gaps") } else { String::new() };
            found.verdict.warnings.push(gap + &more);
        }
        Ok(dirty)
    }

    /// Finds the log end offset of a cleanly closed log from the last index entry on. Returns
    /// `false` if that fails or synced records are missing there.
    pub(super) fn trust_last(&mut self) -> Result<bool, StorageError> {
        let Inspection { dir, input, found, .. } = self;
        let segment = found.segments.last_mut().expect("the caller has looked");
        let Some(indexes) = stored_indexes(dir, segment)? else { return Ok(false) };
        let max = indexes.times.last();
        if indexes.times.count() > 0 && !is_time_of(dir, segment, max)? {
            return Ok(false);
        }
        let may_have_times = indexes.times.count() > 0 || indexes.offsets.count() == 0;
        segment.max_timestamp = max;
        let log_start = input.log_start_offset.unwrap_or(0);
        if segment.base_offset < log_start && !is_readable_from(dir, segment, log_start)? {
            return Ok(false);
        }
        let start = indexes.offsets.last().map_or(0, |entry| entry.position);
        let name = segment.name(FileKind::Log);
        let file = dir.open(&name)?;
        let mut scanner = BatchScanner::new(&*file, start, segment.size);
        let mut log_end_offset = segment.base_offset;
        loop {
            match scanner.next() {
                Ok(Some(batch)) => {
                    let is_in_place = batch.base_offset() >= log_end_offset;
                    let is_timed = may_have_times || batch.max_timestamp() < 0;
                    if !batch.has_valid_offsets() || !is_in_place || !is_timed {
                        return Ok(false);
                    }
                    log_end_offset = batch.next_offset();
                    segment.max_timestamp.note(&batch);
                }
                Ok(None) => break,
                Err(ScanError::Io(error)) => return Err(dir.error("read", &name)(error)),
                Err(ScanError::Bad(_)) => {
                    let position = scanner.position();
                    let last = last_non_zero(&*file, position, segment.size);
                    if last.map_err(dir.error("read", &name))?.is_some() {
                        return Ok(false);
                    }
                    segment.size = position;
                    break;
                }
            }
        }
        if input.loss(log_end_offset).is_some() || log_end_offset > input.end_max {
            return Ok(false);
        }
        found.log_end_offset = log_end_offset;
        Ok(true)
    }
}
