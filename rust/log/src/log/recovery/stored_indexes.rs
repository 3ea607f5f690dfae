//! The stored indexes of a segment, and whether they are reliable.

use pykafka_record::NO_TIMESTAMP;

use super::dir_view::DirView;
use super::recovered::FoundSegment;
use crate::error::StorageError;
use crate::file_names::{FileKind, file_name};
use crate::segment::index_file::IndexFile;
use crate::segment::indexes::Indexes;
use crate::segment::offset_index::{self, OffsetEntry};
use crate::segment::scan::{HeaderScanner, ScanError, names_a_batch};
use crate::segment::time_index::{self, TimeEntry};

/// The stored indexes of a segment; `None` if they are missing or invalid.
pub(super) fn stored_indexes(
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
pub(super) fn is_time_of(
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

/// The position for `offset` in a stored offset index; 0 without an index.
pub(super) fn position_of(
    dir: &DirView<'_>,
    base_offset: i64,
    offset: i64,
) -> Result<u64, StorageError> {
    let name = file_name(base_offset, FileKind::OffsetIndex);
    let Some(file) = dir.open_if_there(&name)? else { return Ok(0) };
    IndexFile::new(file)
        .and_then(|index| {
            offset_index::last_position(&index, base_offset, |entry| entry.offset <= offset)
        })
        .map_err(dir.error("read", &name))
}
