//! What stands behind the last valid batch: zeros, garbage, or batches that somebody was promised.

use std::ops::Range;

use pykafka_record::{Batch, BatchHeader, HEADER_SIZE};

use super::Look;
use crate::disk::ReadFile;
use crate::log::StorageError;
use crate::segment::FileKind;
use crate::segment::offset_index::OffsetEntry;
use crate::segment::scan::{is_crc_valid, peek_offsets};

/// What stands behind the end of the valid batches.
pub(super) struct Tail {
    /// Bytes up to the last that is not zero, in all segments.
    pub(super) bytes: u64,
    /// Whether a valid batch is among them.
    pub(super) has_batch: bool,
}

impl Look<'_> {
    /// What stands behind a position in a segment, and in all segments that follow.
    pub(super) fn look_behind(&self, index: usize, position: u64) -> Result<Tail, StorageError> {
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
                        // What a segment begins with was a batch of it, or is one of another segment.
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

/// Bytes looked at in one piece.
const LOOK_BYTES: usize = 1 << 20;
/// CRCs are calculated over no more than this while looking for batches in garbage.
const LOOK_CRC_BYTES_MAX: usize = 256 << 20;

/// Position of the last byte in `start..end` that is not zero.
pub(super) fn last_non_zero(
    file: &dyn ReadFile,
    start: u64,
    end: u64,
) -> std::io::Result<Option<u64>> {
    let mut buffer = vec![0; LOOK_BYTES.min(end.saturating_sub(start) as usize)];
    let (mut position, mut last) = (start, None);
    while let Some(data) = file.data_from(position)?.filter(|data| *data < end) {
        position = data;
        let wanted = buffer.len().min((end - position) as usize);
        let read = file.read_at(&mut buffer[..wanted], position)?;
        if read == 0 {
            break;
        }
        if let Some(at) = buffer[..read].iter().rposition(|byte| *byte != 0) {
            last = Some(position + at as u64);
        }
        position += read as u64;
    }
    Ok(last)
}

/// The batch that is not valid, as far as its header is plausible.
///
/// What looks like a batch inside of it is one only if its offset follows: else it is part of a record's value.
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
            // It is whole, and in the wrong place.
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

/// The first batch of offset `offset_min` or later that begins anywhere in a range of positions: its base offset, and where.
pub(super) fn find_batch(
    file: &dyn ReadFile,
    Range { start, end }: Range<u64>,
    offset_min: i64,
    torn: Option<Torn>,
) -> std::io::Result<Option<OffsetEntry>> {
    let mut buffer = vec![0; LOOK_BYTES.min(end.saturating_sub(start) as usize)];
    let mut crc_bytes_left = LOOK_CRC_BYTES_MAX;
    let mut position = start;
    while let Some(data) = file.data_from(position)? {
        // A header may begin with zeros that were never written.
        position = position.max(data.saturating_sub(HEADER_SIZE as u64));
        if position + HEADER_SIZE as u64 > end {
            break;
        }
        let wanted = buffer.len().min((end - position) as usize);
        let read = file.read_at(&mut buffer[..wanted], position)?;
        if read < HEADER_SIZE {
            break;
        }
        for at in 0..=read - HEADER_SIZE {
            let left = end - position - at as u64;
            let Some(size) = plausible_size(&buffer[at..read], left, offset_min) else { continue };
            let begins_with =
                |offset| peek_offsets(&buffer[at..read]).is_some_and(|o| o.0 == offset);
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
        position += (read - HEADER_SIZE + 1) as u64;
    }
    Ok(None)
}

/// The size of a batch whose header `bytes` seem to begin with.
fn plausible_size(bytes: &[u8], left: u64, offset_min: i64) -> Option<usize> {
    let size = Batch::size_in(bytes).ok()?;
    let (base_offset, last_offset) = peek_offsets(bytes)?;
    let is_plausible = size as u64 <= left
        && base_offset >= offset_min
        && last_offset >= base_offset
        && last_offset - offset_min <= i64::from(i32::MAX);
    is_plausible.then_some(size)
}

/// Base offset of what seems to be a batch of offset `offset_min` or later where a range of positions begins.
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

/// Whether a batch begins at `position`: its CRC says so.
pub(super) fn is_batch(file: &dyn ReadFile, position: u64) -> std::io::Result<bool> {
    let mut header = [0; HEADER_SIZE];
    let read = file.read_at(&mut header, position)?;
    match BatchHeader::read(&header[..read]) {
        Ok(header) => is_crc_valid(file, position, &header),
        Err(_) => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use pykafka_record::{BatchBuilder, BatchOptions};

    use super::*;

    /// A file of which only the end is data; nothing before it may be read but a header's length.
    #[derive(Debug)]
    struct Sparse {
        bytes: Vec<u8>,
        data: u64,
    }

    impl ReadFile for Sparse {
        fn read_at(&self, bytes: &mut [u8], position: u64) -> std::io::Result<usize> {
            assert!(position + HEADER_SIZE as u64 >= self.data, "a hole is read at {position}");
            let rest = &self.bytes[position as usize..];
            let read = rest.len().min(bytes.len());
            bytes[..read].copy_from_slice(&rest[..read]);
            Ok(read)
        }

        fn size(&self) -> std::io::Result<u64> {
            Ok(self.bytes.len() as u64)
        }

        fn data_from(&self, position: u64) -> std::io::Result<Option<u64>> {
            Ok((position < self.size()?).then_some(position.max(self.data)))
        }
    }

    #[test]
    fn space_that_was_only_reserved_is_not_read_and_hides_no_batch() {
        let mut builder = BatchBuilder::new(BatchOptions::default());
        builder.append(0, None, Some(b"value"), &[]).unwrap();
        let start = 5 << 20;
        let mut bytes = vec![0; start];
        builder.build(&mut bytes).unwrap();
        // The first bytes of its base offset are zeros, and may not be on the disk.
        for missing in [0, 7] {
            let (end, data) = (bytes.len() as u64, (start + missing) as u64);
            let file = Sparse { bytes: bytes.clone(), data };
            let found = find_batch(&file, 0..end, 0, None).unwrap();
            assert_eq!(found, Some(OffsetEntry { offset: 0, position: start as u64 }));
            let last = bytes.iter().rposition(|byte| *byte != 0).map(|last| last as u64);
            assert_eq!(last_non_zero(&file, 0, end).unwrap(), last);
            assert_eq!(last_non_zero(&file, 0, start as u64).unwrap(), None);
        }
    }
}
