//! Classifies the bytes after the last valid batch: zeros, garbage, or batches that may have been
//! acknowledged.

use std::ops::Range;

use pykafka_record::{Batch, BatchHeader, HEADER_SIZE, MessageFormat, PREFIX_SIZE};

use super::inspection::Inspection;
use crate::disk::ReadFile;
use crate::error::StorageError;
use crate::file_names::FileKind;
use crate::segment::offset_index::OffsetEntry;
use crate::segment::scan::{is_batch, is_crc_valid, peek_offsets};

/// The bytes after the end of the valid batches.
pub(super) struct Tail {
    /// Bytes in all segments, without the zeros at their ends.
    pub(super) bytes: u64,
    /// True if there is a valid batch among them.
    pub(super) has_batch: bool,
}

impl Inspection<'_> {
    /// The bytes after a position of a segment, and in all later segments.
    pub(super) fn scan_tail(&self, index: usize, position: u64) -> Result<Tail, StorageError> {
        let mut tail = Tail { bytes: 0, has_batch: false };
        for (number, segment) in self.found.segments[index..].iter().enumerate() {
            let start = if number == 0 { position } else { 0 };
            let name = segment.name(FileKind::Log);
            let file = self.dir.open(&name)?;
            let look = || {
                let last = last_non_zero(&*file, start, segment.size)?;
                let base_offset = self.found.log_end_offset.max(segment.base_offset);
                let torn = if number == 0 { Torn::at(&*file, start, base_offset)? } else { None };
                let has_batch = match last {
                    Some(_) if !tail.has_batch => {
                        // A batch at the start of a segment belonged to this log, or to another
                        // segment.
                        (start == 0 && is_batch(&*file, 0)?)
                            || find_batch(&*file, start..segment.size, base_offset, torn)?.is_some()
                    }
                    _ => false,
                };
                std::io::Result::Ok((last.map_or(0, |last| last + 1 - start), has_batch))
            };
            let (bytes, has_batch) = look().map_err(self.dir.error("read", &name))?;
            tail.bytes += bytes;
            tail.has_batch |= has_batch;
        }
        Ok(tail)
    }
}

/// Bytes that are searched at once.
const LOOK_BYTES: usize = 1 << 20;
/// Size of the smallest batch in any format.
const BATCH_BYTES_MIN: usize = MessageFormat::V0.size_min();
/// Limit of the bytes whose CRCs are computed while searching for batches in garbage.
const LOOK_CRC_BYTES_MAX: usize = 256 << 20;

/// Zeros of a piece that are not read from the file.
const ZEROS_MAX: usize = HEADER_SIZE - 1;

/// Reads the next data in a range of positions, with the zeros around it with which a header may
/// start or end. Holes of the file are skipped. Returns the start of that piece and its length;
/// `None` if only zeros follow.
fn read_piece(
    file: &dyn ReadFile,
    buffer: &mut [u8; 2 * ZEROS_MAX + LOOK_BYTES],
    Range { start, end }: Range<u64>,
) -> std::io::Result<Option<(u64, usize)>> {
    let Some(data) = file.next_data(start)?.filter(|data| data.start < end) else {
        return Ok(None);
    };
    let start = start.max(data.start.saturating_sub(ZEROS_MAX as u64));
    let before = (data.start - start) as usize;
    let wanted = (data.end.min(end) - data.start).min(LOOK_BYTES as u64) as usize;
    buffer[..before].fill(0);
    let read = file.read_at(&mut buffer[before..before + wanted], data.start)?;
    if read == 0 {
        return Ok(None);
    }
    let read_end = data.start + read as u64;
    let after = if read_end == data.end { end.saturating_sub(read_end) } else { 0 };
    let after = after.min(ZEROS_MAX as u64) as usize;
    buffer[before + read..before + read + after].fill(0);
    Ok(Some((start, before + read + after)))
}

fn piece_buffer() -> Box<[u8; 2 * ZEROS_MAX + LOOK_BYTES]> {
    let buffer = vec![0; 2 * ZEROS_MAX + LOOK_BYTES].into_boxed_slice();
    buffer.try_into().expect("it has that length")
}

/// Position of the last byte in `start..end` that is not zero.
pub(super) fn last_non_zero(
    file: &dyn ReadFile,
    start: u64,
    end: u64,
) -> std::io::Result<Option<u64>> {
    let mut buffer = piece_buffer();
    let (mut position, mut last) = (start, None);
    while let Some((start, size)) = read_piece(file, &mut buffer, position..end)? {
        if let Some(at) = buffer[..size].iter().rposition(|byte| *byte != 0) {
            last = Some(start + at as u64);
        }
        position = start + size as u64;
    }
    Ok(last)
}

/// The invalid batch at the end of the log, if its header is plausible.
///
/// Bytes inside of it that look like a batch only count as one if its offset follows; otherwise
/// they are part of a record's value.
#[derive(Clone, Copy)]
pub(super) struct Torn {
    end: u64,
    next_offset: i64,
}

impl Torn {
    pub(super) fn at(
        file: &dyn ReadFile,
        position: u64,
        offset_min: i64,
    ) -> std::io::Result<Option<Torn>> {
        if is_batch(file, position)? {
            // The batch is whole, but in the wrong place.
            return Ok(None);
        }
        let mut header = [0; HEADER_SIZE];
        let read = file.read_at(&mut header, position)?;
        let size = Batch::size_in(&header[..read]).ok();
        let offsets = peek_offsets(&header[..read])
            .filter(|(base, last)| *base >= offset_min && last >= base && *last < i64::MAX);
        Ok(size.zip(offsets).map(|(size, (_, last_offset))| Torn {
            end: position + size as u64,
            next_offset: last_offset + 1,
        }))
    }
}

/// The first batch with offset `offset_min` or above that starts in a range of positions: its base
/// offset and position.
pub(super) fn find_batch(
    file: &dyn ReadFile,
    Range { start, end }: Range<u64>,
    offset_min: i64,
    torn: Option<Torn>,
) -> std::io::Result<Option<OffsetEntry>> {
    let mut buffer = piece_buffer();
    let mut crc_bytes_left = LOOK_CRC_BYTES_MAX;
    let mut next = start;
    while let Some((position, read)) = read_piece(file, &mut buffer, next..end)? {
        if read < BATCH_BYTES_MIN {
            break;
        }
        for at in 0..=read - BATCH_BYTES_MIN {
            let left = end - position - at as u64;
            let Some(size) = plausible_size(&buffer[at..read], left, offset_min) else { continue };
            let begins_with = |offset| {
                let header = BatchHeader::read(&buffer[at..read]);
                header.is_ok_and(|header| header.first_offset_min(offset) == offset)
            };
            let is_inside = |torn: &Torn| position + (at as u64) < torn.end;
            if torn.is_some_and(|torn| is_inside(&torn) && !begins_with(torn.next_offset)) {
                continue;
            }
            if size > crc_bytes_left {
                return Ok(None);
            }
            crc_bytes_left -= size;
            let position = position + at as u64;
            if is_batch(file, position)? {
                let offsets = peek_offsets(&buffer[at..read]);
                return Ok(offsets.map(|(offset, _)| OffsetEntry { offset, position }));
            }
        }
        if read < HEADER_SIZE {
            break;
        }
        next = position + (read - HEADER_SIZE + 1) as u64;
    }
    Ok(None)
}

/// The size of the batch whose header seems to be at the start of `bytes`.
fn plausible_size(bytes: &[u8], left: u64, offset_min: i64) -> Option<usize> {
    let header = BatchHeader::read(bytes).ok()?;
    let (size, base_offset, last_offset) =
        (header.size(), header.base_offset(), header.last_offset());
    let is_plausible = size as u64 <= left
        && base_offset >= offset_min
        && last_offset >= base_offset
        && last_offset - offset_min <= i64::from(i32::MAX)
        && (!header.is_legacy() || is_plausible_message(bytes, &header));
    is_plausible.then_some(size)
}

/// True if the attributes and the length of the key may belong to a message of format 0 or 1. Zeros
/// are frequent in garbage, and 0 is the number of a format.
fn is_plausible_message(bytes: &[u8], header: &BatchHeader<'_>) -> bool {
    let length =
        bytes[header.bytes().len()..].first_chunk().map(|length| i32::from_be_bytes(*length));
    let size_max = (header.size() - header.bytes().len()) as i64;
    header.attributes() <= 0x0f
        && length.is_none_or(|length| (-1..size_max).contains(&length.into()))
}

/// Position of the magic byte in a batch.
const MAGIC: usize = PREFIX_SIZE - 1;

/// The magic of the batch at the start of a range, or of the first one after damaged batches, if it
/// seems to have an unknown format: its offset and length fit. A batch of a known format with a
/// damaged magic does not count; its CRC is valid with another magic.
pub(super) fn unknown_format(
    file: &dyn ReadFile,
    Range { start, end }: Range<u64>,
    offset_min: i64,
) -> std::io::Result<Option<i8>> {
    let (mut position, mut offset_min) = (start, offset_min);
    let mut prefix = [0; PREFIX_SIZE];
    while position < end {
        let read = file.read_at(&mut prefix, position)?;
        let magic = prefix[MAGIC] as i8;
        if read == PREFIX_SIZE && MessageFormat::from_magic(magic).is_none() {
            let size = size_of_entry(&prefix, offset_min);
            let fits = size.is_some_and(|size| position + size <= end);
            let is_unknown = fits && !is_batch_with_another_magic(file, position)?;
            return Ok(is_unknown.then_some(magic));
        }
        let Some(torn) = Torn::at(file, position, offset_min)? else { break };
        (position, offset_min) = (torn.end, torn.next_offset);
    }
    Ok(None)
}

fn is_batch_with_another_magic(file: &dyn ReadFile, position: u64) -> std::io::Result<bool> {
    let mut bytes = [0; HEADER_SIZE];
    let read = file.read_at(&mut bytes, position)?;
    for format in MessageFormat::ALL {
        bytes[MAGIC] = format.magic().to_be_bytes()[0];
        if let Ok(header) = BatchHeader::read(&bytes[..read])
            && is_crc_valid(file, position, &header)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Size in bytes of an entry of any format, from its first bytes; `None` if its offset is below
/// `offset_min` or far above it.
fn size_of_entry(bytes: &[u8; PREFIX_SIZE], offset_min: i64) -> Option<u64> {
    let offset = i64::from_be_bytes(*bytes.first_chunk()?);
    let length = i32::from_be_bytes(*bytes.get(8..)?.first_chunk()?);
    let may_follow = offset >= offset_min && offset - offset_min <= i64::from(i32::MAX);
    let size = u64::try_from(length).ok()? + 12;
    (may_follow && size >= PREFIX_SIZE as u64).then_some(size)
}

/// Base offset of the likely batch with offset `offset_min` or above at the start of a range.
pub(super) fn peek_batch(
    file: &dyn ReadFile,
    Range { start, end }: Range<u64>,
    offset_min: i64,
) -> std::io::Result<Option<i64>> {
    let mut header = [0; HEADER_SIZE];
    let read = file.read_at(&mut header, start)?;
    let size = plausible_size(&header[..read], end.saturating_sub(start), offset_min);
    Ok(peek_offsets(&header[..read]).filter(|_| size.is_some()).map(|(base_offset, _)| base_offset))
}

#[cfg(test)]
mod tests {
    use pykafka_record::{BatchBuilder, BatchOptions};

    use super::*;

    /// A file of which only `data` may be read; the rest is holes.
    #[derive(Debug)]
    struct Sparse {
        bytes: Vec<u8>,
        data: Range<u64>,
    }

    impl ReadFile for Sparse {
        fn read_at(&self, bytes: &mut [u8], position: u64) -> std::io::Result<usize> {
            let rest = self.bytes.get(position as usize..).unwrap_or_default();
            let read = rest.len().min(bytes.len());
            // The header and the CRC of a likely batch are read at any position.
            let is_batch = position + 20 > self.data.start;
            let is_in_data = self.data.start <= position && position + read as u64 <= self.data.end;
            assert!(is_batch || is_in_data, "{read} bytes of a hole are read at {position}");
            bytes[..read].copy_from_slice(&rest[..read]);
            Ok(read)
        }

        fn size(&self) -> std::io::Result<u64> {
            Ok(self.bytes.len() as u64)
        }

        fn next_data(&self, position: u64) -> std::io::Result<Option<Range<u64>>> {
            let left = position.max(self.data.start)..self.data.end;
            Ok(Some(left).filter(|left| !left.is_empty()))
        }
    }

    #[test]
    fn reserved_space_is_not_read_and_hides_no_batch() {
        let mut builder = BatchBuilder::new(BatchOptions::default());
        builder.append(0, None, Some(&[0; 100]), &[]).unwrap();
        let start = 5 << 20;
        let mut batch = vec![0; start];
        let size = builder.build(&mut batch).unwrap();
        let last = batch.iter().rposition(|byte| *byte != 0).unwrap() as u64;
        // The batch starts with the zeros of its base offset and of its length, and ends with those
        // of its value.
        for (missing, missing_at_end) in [(0, 0), (7, 0), (11, 0), (11, 80), (0, 100)] {
            for behind in [0, 5 << 20] {
                let mut bytes = batch.clone();
                let data = (start + missing) as u64..(start + size - missing_at_end) as u64;
                bytes.resize(bytes.len() + behind, 0);
                let end = bytes.len() as u64;
                let file = Sparse { bytes, data };
                for from in [0, start as u64 - 100, start as u64 - 3, start as u64] {
                    let found = find_batch(&file, from..end, 0, None).unwrap();
                    assert_eq!(found, Some(OffsetEntry { offset: 0, position: start as u64 }));
                    assert_eq!(last_non_zero(&file, from, end).unwrap(), Some(last));
                }
                assert_eq!(find_batch(&file, start as u64 + 1..end, 0, None).unwrap(), None);
                assert_eq!(last_non_zero(&file, 0, start as u64).unwrap(), None);
                assert_eq!(last_non_zero(&file, last + 1, end).unwrap(), None);
            }
        }
    }

    #[test]
    fn a_batch_across_two_pieces_is_found() {
        for start in LOOK_BYTES - HEADER_SIZE - 1..LOOK_BYTES + 2 {
            let mut bytes = vec![9; start];
            let mut builder = BatchBuilder::new(BatchOptions::default());
            builder.append(0, None, Some(b"value"), &[]).unwrap();
            builder.build(&mut bytes).unwrap();
            let end = bytes.len() as u64;
            let file = Sparse { data: 0..end, bytes };
            let found = find_batch(&file, 0..end, 0, None).unwrap();
            assert_eq!(found, Some(OffsetEntry { offset: 0, position: start as u64 }), "{start}");
        }
    }
}
