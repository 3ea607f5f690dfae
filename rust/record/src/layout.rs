//! Positions of the fields of a batch header; all are big-endian.
//!
//! Constants outside of modules are for format 2. There the length is the number of bytes after
//! itself; the CRC covers all bytes after itself, so base offset and leader epoch may be changed
//! without updating it.

/// Size in bytes of a header of format 2, the largest of all formats.
pub const HEADER_SIZE: usize = 61;
/// Bytes that contain a batch's size and magic, which a reader of files needs first.
pub const PREFIX_SIZE: usize = 17;
/// Bytes up to and including the length field, which the length does not count.
pub(crate) const LOG_OVERHEAD: usize = 12;

pub(crate) const BASE_OFFSET: usize = 0;
pub(crate) const LENGTH: usize = 8;
pub(crate) const PARTITION_LEADER_EPOCH: usize = 12;
pub(crate) const MAGIC: usize = 16;
pub(crate) const CRC: usize = 17;
pub(crate) const ATTRIBUTES: usize = 21;
pub(crate) const LAST_OFFSET_DELTA: usize = 23;
pub(crate) const BASE_TIMESTAMP: usize = 27;
pub(crate) const MAX_TIMESTAMP: usize = 35;
pub(crate) const PRODUCER_ID: usize = 43;
pub(crate) const PRODUCER_EPOCH: usize = 51;
pub(crate) const BASE_SEQUENCE: usize = 53;
pub(crate) const RECORDS_COUNT: usize = 57;

pub(crate) const COMPRESSION_MASK: i16 = 0x07;
pub(crate) const LOG_APPEND_TIME: i16 = 0x08;
pub(crate) const TRANSACTIONAL: i16 = 0x10;
pub(crate) const CONTROL: i16 = 0x20;
pub(crate) const DELETE_HORIZON: i16 = 0x40;

/// Format of a batch (`message.format.version` of Kafka before 3.0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageFormat {
    /// Before Kafka 0.10: messages without timestamps.
    V0,
    /// Kafka 0.10: messages with timestamps.
    V1,
    /// From Kafka 0.11 on: record batches.
    V2,
}

impl MessageFormat {
    /// All formats, by number.
    pub const ALL: [Self; 3] = [Self::V0, Self::V1, Self::V2];

    /// The format with that number; `None` if it is unknown.
    pub fn from_magic(magic: i8) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.magic() == magic)
    }

    /// Its number, which is at the same position in all formats.
    pub fn magic(self) -> i8 {
        match self {
            Self::V0 => 0,
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }

    /// Size of the header; the records, compressed or not, follow it.
    pub const fn header_size(self) -> usize {
        match self {
            Self::V0 => legacy::TIMESTAMP,
            Self::V1 => legacy::TIMESTAMP + 8,
            Self::V2 => HEADER_SIZE,
        }
    }

    /// Size of the smallest batch. A message contains the lengths of its key and value.
    pub const fn size_min(self) -> usize {
        match self {
            Self::V0 | Self::V1 => self.header_size() + 8,
            Self::V2 => HEADER_SIZE,
        }
    }
}

/// Formats 0 and 1: offset, length, CRC-32 of all following bytes, magic, attributes, in format 1
/// the timestamp, then key and value with their lengths.
pub(crate) mod legacy {
    pub(crate) const CRC: usize = 12;
    pub(crate) const ATTRIBUTES: usize = 17;
    /// In format 0, the key is here.
    pub(crate) const TIMESTAMP: usize = 18;
}

/// The sequence of batches without a producer id, and of control batches.
pub const NO_SEQUENCE: i32 = -1;
/// The timestamp of a record or batch without one.
pub const NO_TIMESTAMP: i64 = -1;
