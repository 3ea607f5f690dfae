//! Determines the segments that need not be read, because their indexes are complete and match the
//! batches.

use pykafka_record::NO_TIMESTAMP;

use super::Look;
use super::behind::last_non_zero;
use super::deleted::is_readable_from;
use super::dir_view::DirView;
use super::gap::{lost_in_gap, warning};
use super::recovered::FoundSegment;
use super::snapshots::position_of;
use crate::error::StorageError;
use crate::file_names::FileKind;
use crate::segment::indexes::Indexes;
use crate::segment::offset_index::{self, OffsetEntry};
use crate::segment::scan::{BatchScanner, HeaderScanner, ScanError, names_a_batch};
use crate::segment::time_index::{self, TimeEntry};

impl Look<'_> {
    /// Index of the first segment that may not have been synced completely; the number of segments
    /// if all were.
    pub(super) fn first_unsynced(&self) -> usize {
        let Look { plan, found, .. } = self;
        // The segment that ends at the recovery point is included: its last sync was before its
        // file was trimmed.
        match found.segment_of(plan.recovery_point.saturating_sub(1)) {
            Some(index) if !plan.clean => index,
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
        let Look { dir, plan, found, .. } = self;
        let mut dirty = vec![true; found.segments.len()];
        let mut gaps = Vec::new();
        for (index, is_dirty) in dirty.iter_mut().enumerate().take(first) {
            let segment = &found.segments[index];
            let lacks_aborted = plan.lost_aborted.contains(&segment.base_offset);
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
            let start = plan.log_start_offset.unwrap_or(0);
            let holds_start = (segment.base_offset + 1..next.base_offset).contains(&start);
            if holds_start && !is_readable_from(dir, segment, start)? {
                continue;
            }
            let is_gap = end < next.base_offset && !plan.is_deleted(next.base_offset);
            if is_gap && next.size == 0 {
                // There is no evidence that the log continues there.
                continue;
            }
            if is_gap && lost_in_gap(dir, plan, segment, end, next.base_offset)?.is_some() {
                continue;
            }
            if is_gap && next.base_offset > plan.cleaner_offset {
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
        let Look { dir, plan, found, .. } = self;
        let segment = found.segments.last_mut().expect("the caller has looked");
        let Some(indexes) = stored_indexes(dir, segment)? else { return Ok(false) };
        let max = indexes.times.last();
        if indexes.times.count() > 0 && !is_time_of(dir, segment, max)? {
            return Ok(false);
        }
        let may_have_times = indexes.times.count() > 0 || indexes.offsets.count() == 0;
        segment.max_timestamp = max;
        let log_start = plan.log_start_offset.unwrap_or(0);
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
        if plan.loss(log_end_offset).is_some() || log_end_offset > plan.end_max {
            return Ok(false);
        }
        found.log_end_offset = log_end_offset;
        Ok(true)
    }
}

/// The stored indexes of a segment; `None` if they are missing or invalid.
fn stored_indexes(
    dir: &DirView<'_>,
    segment: &FoundSegment,
) -> Result<Option<Indexes>, StorageError> {
    let (offsets, times) = (FileKind::OffsetIndex, FileKind::TimeIndex);
    let Some(offsets) = dir.read_if_there(&segment.name(offsets))? else { return Ok(None) };
    let Some(times) = dir.read_if_there(&segment.name(times))? else { return Ok(None) };
    Ok(Indexes::decode(&offsets, &times, segment.base_offset, segment.size))
}

/// Largest timestamp and end (exclusive) of a sealed segment, from its indexes and the last of its
/// batches; `None` if its indexes cannot be trusted.
pub(super) fn sealed(
    dir: &DirView<'_>,
    segment: &FoundSegment,
) -> Result<Option<(TimeEntry, i64)>, StorageError> {
    let base = segment.base_offset;
    let offsets = last_entry::<{ offset_index::ENTRY_SIZE }>(dir, segment, FileKind::OffsetIndex)?;
    let times = last_entry::<{ time_index::ENTRY_SIZE }>(dir, segment, FileKind::TimeIndex)?;
    let last = match offsets {
        LastEntry::NoIndex | LastEntry::Preallocated => return Ok(None),
        LastEntry::NoEntry => None,
        LastEntry::Entry(entry) => {
            let entry = OffsetEntry::decode(entry, base);
            if entry.position == 0 || entry.position >= segment.size || entry.offset <= base {
                return Ok(None);
            }
            Some(entry)
        }
    };
    let max = match times {
        LastEntry::NoEntry => TimeEntry::none(base),
        LastEntry::NoIndex | LastEntry::Preallocated => return Ok(None),
        LastEntry::Entry(entry) => TimeEntry::decode(&entry, base),
    };
    let Some((end, last_timestamp)) = end_from(dir, segment, last)? else { return Ok(None) };
    // The last time entry of a sealed segment has its largest timestamp.
    let is_newest = last_timestamp <= max.timestamp;
    let is_true = is_newest && (max.timestamp < 0 || is_time_of(dir, segment, max)?);
    Ok(is_true.then_some((max, end)))
}

/// True if a time entry matches a batch of the segment.
fn is_time_of(
    dir: &DirView<'_>,
    segment: &FoundSegment,
    entry: TimeEntry,
) -> Result<bool, StorageError> {
    let position = position_of(dir, segment.base_offset, entry.offset)?;
    let name = segment.name(FileKind::Log);
    let file = dir.open(&name)?;
    let mut headers = HeaderScanner::new(&*file, position, segment.size);
    names_a_batch(&mut headers, entry).map_err(dir.error("read", &name))
}

/// The end (exclusive) of the last batch of a segment and the largest timestamp, from the headers
/// after an index entry; `None` if the entry or a header is wrong. Older versions of Kafka make one
/// entry for all batches of an append: with the last offset of the last batch and the position of
/// the first one.
fn end_from(
    dir: &DirView<'_>,
    segment: &FoundSegment,
    entry: Option<OffsetEntry>,
) -> Result<Option<(i64, i64)>, StorageError> {
    let name = segment.name(FileKind::Log);
    let file = dir.open(&name)?;
    let position = entry.map_or(0, |entry| entry.position);
    let mut headers = HeaderScanner::new(&*file, position, segment.size);
    let (mut end, mut wanted) = (segment.base_offset, entry.map(|entry| entry.offset));
    let mut max_timestamp = NO_TIMESTAMP;
    loop {
        match headers.next() {
            Ok(Some(header)) => {
                let is_behind = wanted.is_some_and(|offset| offset < header.last_offset);
                if is_behind || header.base_offset < end || header.last_offset < header.base_offset
                {
                    return Ok(None);
                }
                wanted = wanted.filter(|offset| *offset != header.last_offset);
                end = header.last_offset.saturating_add(1);
                max_timestamp = max_timestamp.max(header.max_timestamp);
            }
            Ok(None) => return Ok(wanted.is_none().then_some((end, max_timestamp))),
            Err(ScanError::Bad(_)) => return Ok(None),
            Err(ScanError::Io(error)) => return Err(dir.error("read", &name)(error)),
        }
    }
}

/// The end (exclusive) according to a segment's stored indexes; its base offset without an entry.
pub(super) fn indexed_end(dir: &DirView<'_>, segment: &FoundSegment) -> Result<i64, StorageError> {
    let base = segment.base_offset;
    let offsets = last_entry::<{ offset_index::ENTRY_SIZE }>(dir, segment, FileKind::OffsetIndex)?;
    let times = last_entry::<{ time_index::ENTRY_SIZE }>(dir, segment, FileKind::TimeIndex)?;
    let by_offset = match offsets {
        LastEntry::Entry(entry) => Some(OffsetEntry::decode(entry, base).offset.saturating_add(1)),
        _ => None,
    };
    let by_time = match times {
        LastEntry::Entry(entry) => Some(TimeEntry::decode(&entry, base).offset.saturating_add(1)),
        _ => None,
    };
    // Preallocated zeros look like an entry of one offset.
    Ok(by_offset.max(by_time).filter(|end| *end > base.saturating_add(1)).unwrap_or(base))
}

/// True if the offset index of a segment ends with an entry.
pub(super) fn has_entries(dir: &DirView<'_>, segment: &FoundSegment) -> Result<bool, StorageError> {
    let last = last_entry::<{ offset_index::ENTRY_SIZE }>(dir, segment, FileKind::OffsetIndex)?;
    Ok(matches!(last, LastEntry::Entry(_)))
}

/// The end of an index file.
enum LastEntry<const SIZE: usize> {
    /// The file is missing, or its size is not a multiple of an entry's.
    NoIndex,
    /// The file is empty.
    NoEntry,
    /// The file ends with preallocated zeros.
    Preallocated,
    Entry([u8; SIZE]),
}

fn last_entry<const SIZE: usize>(
    dir: &DirView<'_>,
    segment: &FoundSegment,
    kind: FileKind,
) -> Result<LastEntry<SIZE>, StorageError> {
    let name = segment.name(kind);
    let Some(file) = dir.open_if_there(&name)? else { return Ok(LastEntry::NoIndex) };
    let read = || {
        let size = file.size()?;
        if size % SIZE as u64 != 0 {
            return Ok(LastEntry::NoIndex);
        }
        let mut entry = [0; SIZE];
        match size.checked_sub(SIZE as u64) {
            None => Ok(LastEntry::NoEntry),
            Some(position) => {
                if file.read_at(&mut entry, position)? != SIZE {
                    return Ok(LastEntry::NoIndex);
                }
                // The first entry may be zeros: timestamp 0 in the batch at the base offset.
                let is_zeros = position > 0 && entry == [0; SIZE];
                Ok(if is_zeros { LastEntry::Preallocated } else { LastEntry::Entry(entry) })
            }
        }
    };
    read().map_err(dir.error("read", &name))
}
