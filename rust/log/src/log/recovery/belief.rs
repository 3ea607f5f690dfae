//! Which segments need not be read: those whose indexes are whole and fit.

use pykafka_record::Batch;

use super::Plan;
use super::behind::last_non_zero;
use crate::disk::{Disk, OpenMode};
use crate::log::state::State;
use crate::log::{Shared, StorageError};
use crate::segment::indexes::Indexes;
use crate::segment::offset_index::{self, OffsetEntry};
use crate::segment::scan::{BatchScanner, ScanError};
use crate::segment::time_index::{self, TimeEntry};
use crate::segment::{FileKind, Segment, SegmentFiles};

/// Which segments must be read batch by batch; the others get their largest timestamp from their index.
pub(super) fn dirty_segments(
    state: &mut State,
    shared: &Shared,
    plan: Plan,
) -> Result<Vec<bool>, StorageError> {
    let count = state.segments.len();
    // The segment that ends at the recovery point is dirty too: its last sync was before it was trimmed.
    let first = match state.segment_of(plan.recovery_point.saturating_sub(1)) {
        Some(index) if !plan.clean => index,
        _ => count,
    };
    let mut dirty = vec![true; count];
    for (index, segment) in state.segments.iter_mut().enumerate().take(first) {
        match sealed_max_timestamp(&*shared.disk, segment)? {
            Some(max) => {
                segment.max_timestamp = max;
                dirty[index] = false;
            }
            // The last one is looked at whole in any case.
            None => dirty[index] = index + 1 < count,
        }
    }
    Ok(dirty)
}

/// The largest timestamp of a sealed segment by its time index; `None` if its indexes are not to be believed.
fn sealed_max_timestamp(
    disk: &dyn Disk,
    segment: &Segment,
) -> Result<Option<TimeEntry>, StorageError> {
    let (files, base) = (&segment.files, segment.base_offset());
    let offsets = last_entry::<{ offset_index::ENTRY_SIZE }>(disk, files, FileKind::OffsetIndex)?;
    let times = last_entry::<{ time_index::ENTRY_SIZE }>(disk, files, FileKind::TimeIndex)?;
    let is_good = match offsets {
        LastEntry::NoIndex => return Ok(None),
        LastEntry::NoEntry => true,
        LastEntry::Entry(entry) => {
            let entry = OffsetEntry::decode(entry, base);
            entry.position > 0 && entry.position < segment.size && entry.offset > base
        }
    };
    let max = match times {
        LastEntry::NoEntry => TimeEntry::none(base),
        LastEntry::NoIndex | LastEntry::Entry([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]) => {
            return Ok(None);
        }
        LastEntry::Entry(entry) => TimeEntry::decode(&entry, base),
    };
    Ok(is_good.then_some(max))
}

/// The end of an index file.
enum LastEntry<const SIZE: usize> {
    /// There is no file, or its length is ragged.
    NoIndex,
    /// It is empty.
    NoEntry,
    Entry([u8; SIZE]),
}

fn last_entry<const SIZE: usize>(
    disk: &dyn Disk,
    files: &SegmentFiles,
    kind: FileKind,
) -> Result<LastEntry<SIZE>, StorageError> {
    let read = || {
        let file = disk.open(&files.path(kind), OpenMode::Read)?;
        let size = file.size()?;
        if size % SIZE as u64 != 0 {
            return Ok(LastEntry::NoIndex);
        }
        let mut entry = [0; SIZE];
        match size.checked_sub(SIZE as u64) {
            None => Ok(LastEntry::NoEntry),
            Some(position) => {
                let read = file.read_at(&mut entry, position)?;
                Ok(if read == SIZE { LastEntry::Entry(entry) } else { LastEntry::NoIndex })
            }
        }
    };
    let result: std::io::Result<_> = read();
    match result {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(LastEntry::NoIndex),
        result => result.map_err(files.error("read", kind)),
    }
}

/// Finds the log end of a log closed in good order from the last index entry on; `false` if that fails.
pub(super) fn trust_last(state: &mut State, shared: &Shared) -> Result<bool, StorageError> {
    let segment = state.segments.last_mut().expect("the caller has looked");
    let Some(indexes) = Indexes::load(&*shared.disk, segment)? else { return Ok(false) };
    segment.max_timestamp = indexes.times.last();
    let start = indexes.offsets.last().map_or(0, |entry| entry.position);
    let file = segment.files.log()?;
    let mut scanner = BatchScanner::new(&*file, start, segment.size);
    let mut log_end_offset = segment.base_offset();
    loop {
        match scanner.next() {
            Ok(Some((_, batch))) => {
                log_end_offset = batch.next_offset();
                note_max_timestamp(&mut segment.max_timestamp, &batch);
            }
            Ok(None) => break,
            Err(ScanError::Io(error)) => {
                return Err(segment.files.error("read", FileKind::Log)(error));
            }
            Err(ScanError::Bad(_)) => {
                let position = scanner.position();
                if last_non_zero(&*file, position, segment.size)
                    .map_err(segment.files.error("read", FileKind::Log))?
                    .is_some()
                {
                    return Ok(false);
                }
                segment.size = position;
                break;
            }
        }
    }
    segment.files.release();
    state.log_end_offset = log_end_offset;
    Ok(true)
}

pub(super) fn note_max_timestamp(max: &mut TimeEntry, batch: &Batch<'_>) {
    if batch.max_timestamp() > max.timestamp {
        *max = TimeEntry { timestamp: batch.max_timestamp(), offset: batch.last_offset() };
    }
}
