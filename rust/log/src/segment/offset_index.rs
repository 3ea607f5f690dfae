//! The offset index: from an offset to a position at or before its batch, with one entry every few
//! KiB.
//!
//! An entry contains the *last* offset of the batch that starts at its position. Entries are 8
//! bytes: offset relative to the segment's base offset, then position, both 32 bits
//! (`docs/FORMAT.md`).

use std::io;

use crate::segment::index_entries::{Entry, IndexEntries};
use crate::segment::index_file::IndexFile;

/// Bytes of an entry.
pub(crate) const ENTRY_SIZE: usize = 8;

/// One entry, with an absolute offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetEntry {
    /// Last offset of the batch that starts at `position`.
    pub offset: i64,
    /// Bytes from the start of the segment.
    pub position: u64,
}

impl OffsetEntry {
    /// Decodes a stored entry.
    pub(crate) fn decode(bytes: [u8; ENTRY_SIZE], base_offset: i64) -> OffsetEntry {
        let (offset, position) = bytes.split_at(4);
        OffsetEntry {
            offset: base_offset + i64::from(be_u32(offset)),
            position: u64::from(be_u32(position)),
        }
    }
}

impl Entry for OffsetEntry {
    const SIZE: usize = ENTRY_SIZE;

    fn encode(self, base_offset: i64, out: &mut Vec<u8>) {
        out.extend_from_slice(&((self.offset - base_offset) as u32).to_be_bytes());
        out.extend_from_slice(&(self.position as u32).to_be_bytes());
    }
}

fn be_u32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(*bytes.first_chunk().expect("an entry's halves are 4 bytes"))
}

/// The position of the last entry of a stored index for which `is_before` holds; 0 without one.
pub(crate) fn last_position(
    index: &IndexFile<ENTRY_SIZE>,
    base_offset: i64,
    is_before: impl Fn(&OffsetEntry) -> bool,
) -> io::Result<u64> {
    let found = index.last_where(|entry| {
        let entry = OffsetEntry::decode(*entry, base_offset);
        entry.position > 0 && is_before(&entry)
    })?;
    Ok(found.map_or(0, |entry| OffsetEntry::decode(entry, base_offset).position))
}

/// The offset index of the active segment.
pub(crate) type OffsetIndex = IndexEntries<OffsetEntry>;

impl OffsetIndex {
    /// Decodes the bytes of an index file. Kafka preallocates with zeros, which mark the end; an
    /// entry for position 0 does not exist, because the first batch of a segment never gets one.
    ///
    /// `None` if the bytes are not an index: the length is not a multiple of an entry's, or entries
    /// do not increase.
    pub(crate) fn decode(bytes: &[u8], base_offset: i64) -> Option<OffsetIndex> {
        let (chunks, ragged) = bytes.as_chunks::<ENTRY_SIZE>();
        let entries: Vec<_> = chunks
            .iter()
            .map(|chunk| OffsetEntry::decode(*chunk, base_offset))
            .take_while(|entry| entry.position != 0)
            .collect();
        let grows = entries
            .windows(2)
            .all(|pair| pair[0].offset < pair[1].offset && pair[0].position < pair[1].position);
        let zeros_follow = chunks[entries.len()..].iter().all(|chunk| chunk == &[0; ENTRY_SIZE]);
        (ragged.is_empty() && grows && zeros_follow)
            .then(|| OffsetIndex::of_file(base_offset, entries))
    }

    pub(crate) fn append(&mut self, offset: i64, position: u64) {
        self.push(OffsetEntry { offset, position });
    }

    /// The position where a read of `offset` starts: that of the last entry at or before it; `None`
    /// if only the file contains it.
    pub(crate) fn position_of(&self, offset: i64) -> Option<u64> {
        self.look_up(|entry| entry.offset <= offset, |entry| entry.position, 0)
    }

    /// The last position at or before `limit` where a batch starts that has offsets below `upto`;
    /// `None` if only the file contains it.
    pub(crate) fn boundary(&self, limit: u64, upto: i64) -> Option<u64> {
        let is_before = |entry: &OffsetEntry| entry.position <= limit && entry.offset < upto;
        self.look_up(is_before, |entry| entry.position, 0)
    }

    pub(crate) fn last(&self) -> Option<OffsetEntry> {
        self.entries().last().copied()
    }

    /// Drops entries of batches at or after `position`, where the segment is cut. The file must be
    /// updated.
    pub(crate) fn truncate_to_position(&mut self, position: u64) {
        self.retain(|entry| entry.position < position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_round_trips_and_ends_at_preallocated_zeros() {
        let mut index = OffsetIndex::new(100);
        index.append(109, 5000);
        index.append(150, 9999);
        let (mut bytes, position) = index.unstored();
        assert_eq!(position, 0);
        bytes.extend([0; 80]);
        let read = OffsetIndex::decode(&bytes, 100).unwrap();
        assert_eq!(read.entries(), index.entries());
        assert_eq!(read.unstored(), (vec![], 16));
    }

    #[test]
    fn garbage_is_not_an_index() {
        assert!(OffsetIndex::decode(&[7; 61], 0).is_none());
        assert!(OffsetIndex::decode(&[7; 64], 0).is_none());
        let mut hole = vec![0; 16];
        hole[15] = 1;
        assert!(OffsetIndex::decode(&hole, 0).is_none());
    }

    #[test]
    fn lookup_starts_at_the_batch_that_may_hold_the_offset() {
        let mut index = OffsetIndex::new(0);
        index.append(9, 600);
        index.append(19, 1200);
        assert_eq!(
            [0, 8, 9, 18, 19, 99].map(|offset| index.position_of(offset).unwrap()),
            [0, 0, 600, 600, 1200, 1200]
        );
        let boundary = |limit, upto| index.boundary(limit, upto).unwrap();
        assert_eq!([599, 600, 1199, 1200].map(|limit| boundary(limit, 99)), [0, 600, 600, 1200]);
        assert_eq!([9, 10, 19, 20].map(|upto| boundary(9999, upto)), [0, 600, 600, 1200]);
    }

    #[test]
    fn stored_entries_are_dropped_and_the_file_continues_at_its_end() {
        let mut index = OffsetIndex::new(0);
        index.append(9, 600);
        index.append(19, 1200);
        index.set_stored();
        index.append(29, 1800);
        index.drop_stored();
        assert_eq!(
            [9, 19, 28, 29].map(|offset| index.position_of(offset)),
            [None, None, None, Some(1800)]
        );
        assert_eq!((index.count(), index.size_bytes(), index.unstored().1), (3, 24, 16));
        index.set_stored();
        index.drop_stored();
        assert_eq!((index.last().unwrap().position, index.unstored()), (1800, (vec![], 24)));
    }
}
