//! The time index: from a timestamp to an offset below which no record has this timestamp or a
//! larger one.
//!
//! An entry (t, o) means that t is the largest timestamp so far, and that the batch with last
//! offset o has it. Timestamps strictly increase. Entries are 12 bytes: timestamp, then offset
//! relative to the segment's base offset (`docs/FORMAT.md`).

use pykafka_record::{BatchHeader, NO_TIMESTAMP};

use crate::segment::index_entries::{Entry, IndexEntries};

/// Bytes of an entry.
pub(crate) const ENTRY_SIZE: usize = 12;

/// One entry, with an absolute offset; also the largest timestamp of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeEntry {
    /// Milliseconds since the Unix epoch; −1 if no record has a timestamp.
    pub timestamp: i64,
    /// Last offset of the batch with this timestamp.
    pub offset: i64,
}

impl TimeEntry {
    /// The value for a segment without timestamps.
    pub(crate) fn none(base_offset: i64) -> TimeEntry {
        TimeEntry { timestamp: NO_TIMESTAMP, offset: base_offset }
    }

    /// Becomes the entry of `batch`, if that has a later timestamp.
    pub(crate) fn note(&mut self, batch: &BatchHeader<'_>) {
        if batch.max_timestamp() > self.timestamp {
            *self = TimeEntry { timestamp: batch.max_timestamp(), offset: batch.last_offset() };
        }
    }

    /// Decodes a stored entry.
    pub(crate) fn decode(bytes: &[u8; ENTRY_SIZE], base_offset: i64) -> TimeEntry {
        let (timestamp, offset) = bytes.split_at(8);
        let timestamp = timestamp.first_chunk().expect("an entry has 12 bytes");
        let relative = offset.first_chunk().expect("an entry has 12 bytes");
        TimeEntry {
            timestamp: i64::from_be_bytes(*timestamp),
            offset: base_offset + i64::from(u32::from_be_bytes(*relative)),
        }
    }
}

impl Entry for TimeEntry {
    const SIZE: usize = ENTRY_SIZE;

    fn encode(self, base_offset: i64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(&((self.offset - base_offset) as u32).to_be_bytes());
    }
}

/// The time index of the active segment.
pub(crate) type TimeIndex = IndexEntries<TimeEntry>;

impl TimeIndex {
    /// Decodes the bytes of an index file. Kafka preallocates with zeros, which mark the end.
    ///
    /// `None` if the bytes are not an index: the length is not a multiple of an entry's, or entries
    /// do not increase.
    pub(crate) fn decode(bytes: &[u8], base_offset: i64) -> Option<TimeIndex> {
        let (chunks, ragged) = bytes.as_chunks::<ENTRY_SIZE>();
        let used = chunks.iter().rposition(|chunk| chunk != &[0; ENTRY_SIZE]).map_or(0, |i| i + 1);
        // A single entry of zeros is valid: timestamp 0 in the batch at the base offset.
        let used = if chunks.len() == 1 { 1 } else { used };
        let entries: Vec<_> =
            chunks[..used].iter().map(|chunk| TimeEntry::decode(chunk, base_offset)).collect();
        let grows = entries
            .windows(2)
            .all(|pair| pair[0].timestamp < pair[1].timestamp && pair[0].offset <= pair[1].offset);
        (ragged.is_empty() && grows).then(|| TimeIndex::of_file(base_offset, entries))
    }

    /// Appends the largest timestamp so far, unless the last entry has it.
    pub(crate) fn append(&mut self, max: TimeEntry) {
        if max.timestamp > self.last().timestamp {
            self.push(max);
        }
    }

    /// The last entry, or [`TimeEntry::none`] for an empty index.
    pub(crate) fn last(&self) -> TimeEntry {
        self.entries().last().copied().unwrap_or(TimeEntry::none(self.base_offset))
    }

    /// The entry at whose offset a search for `timestamp` starts: no batch that ends before it has
    /// this timestamp or a larger one. [`TimeEntry::none`] without such an entry; `None` if only
    /// the file contains it.
    pub(crate) fn entry_of(&self, timestamp: i64) -> Option<TimeEntry> {
        let is_before = |entry: &TimeEntry| entry.timestamp <= timestamp;
        self.look_up(is_before, |entry| *entry, TimeEntry::none(self.base_offset))
    }

    /// Drops entries of batches that end at or after `offset`, where the log is cut. The file must
    /// be updated.
    pub(crate) fn truncate_to(&mut self, offset: i64) {
        self.retain(|entry| entry.offset < offset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(timestamp: i64, offset: i64) -> TimeEntry {
        TimeEntry { timestamp, offset }
    }

    #[test]
    fn entries_strictly_increase_and_round_trip() {
        let mut index = TimeIndex::new(100);
        for (timestamp, offset) in [(50, 104), (50, 109), (40, 109), (60, 119)] {
            index.append(entry(timestamp, offset));
        }
        assert_eq!(index.entries(), [entry(50, 104), entry(60, 119)]);
        let mut bytes = index.unstored().0;
        bytes.extend([0; 24]);
        assert_eq!(TimeIndex::decode(&bytes, 100).unwrap().entries(), index.entries());
    }

    #[test]
    fn garbage_is_not_an_index() {
        assert!(TimeIndex::decode(&[7; 61], 0).is_none());
        assert!(TimeIndex::decode(&[7; 24], 0).is_none());
    }

    #[test]
    fn search_starts_at_the_last_entry_that_is_not_later() {
        let mut index = TimeIndex::new(0);
        index.append(entry(50, 9));
        index.append(entry(60, 19));
        assert_eq!(
            [49, 50, 59, 60, 99].map(|time| index.entry_of(time).unwrap().offset),
            [0, 9, 9, 19, 19]
        );
    }
}
