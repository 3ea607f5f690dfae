//! The transaction index: the aborted transactions whose end marker is in a segment.
//!
//! The file exists only if there are any. Entries are 34 bytes, in the order of their markers, so
//! their last stable offsets never decrease.

use pykafka_record::ProducerId;

/// Bytes of an entry.
pub(crate) const ENTRY_SIZE: usize = 34;
const VERSION: i16 = 0;

/// An aborted transaction. All offsets are those of records in this log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTxn {
    /// The producer whose transaction it was.
    pub producer_id: ProducerId,
    /// Offset of its first record.
    pub first_offset: i64,
    /// Offset of its abort marker.
    pub last_offset: i64,
    /// The last stable offset after the marker; all transactions below it have ended.
    pub last_stable_offset: i64,
}

impl AbortedTxn {
    /// Encodes the entry.
    pub(crate) fn encode(self) -> [u8; ENTRY_SIZE] {
        let mut bytes = [0; ENTRY_SIZE];
        bytes[..2].copy_from_slice(&VERSION.to_be_bytes());
        let fields =
            [self.producer_id.get(), self.first_offset, self.last_offset, self.last_stable_offset];
        for (chunk, field) in bytes[2..].as_chunks_mut::<8>().0.iter_mut().zip(fields) {
            *chunk = field.to_be_bytes();
        }
        bytes
    }

    /// Decodes an entry; `None` for another version.
    fn decode(bytes: &[u8; ENTRY_SIZE]) -> Option<AbortedTxn> {
        let fields = bytes[2..].as_chunks::<8>().0;
        (bytes[..2] == VERSION.to_be_bytes()).then(|| AbortedTxn {
            producer_id: ProducerId::new(i64::from_be_bytes(fields[0])),
            first_offset: i64::from_be_bytes(fields[1]),
            last_offset: i64::from_be_bytes(fields[2]),
            last_stable_offset: i64::from_be_bytes(fields[3]),
        })
    }

    /// Decodes the bytes of an index file; `None` if they are not a transaction index.
    pub(crate) fn decode_all(bytes: &[u8]) -> Option<Vec<AbortedTxn>> {
        let (chunks, ragged) = bytes.as_chunks::<ENTRY_SIZE>();
        if !ragged.is_empty() {
            return None;
        }
        chunks.iter().map(AbortedTxn::decode).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_round_trip_and_other_versions_are_rejected() {
        let entry = AbortedTxn {
            producer_id: ProducerId::new(2002),
            first_offset: 3,
            last_offset: 15,
            last_stable_offset: 7,
        };
        let mut bytes = [entry.encode(), entry.encode()].concat();
        assert_eq!(AbortedTxn::decode_all(&bytes), Some(vec![entry, entry]));
        assert_eq!(AbortedTxn::decode_all(&bytes[..67]), None);
        bytes[1] = 1;
        assert_eq!(AbortedTxn::decode_all(&bytes), None);
    }
}
