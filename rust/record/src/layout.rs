//! Where the fields of a v2 batch header lie; all are big-endian.
//!
//! The length counts the bytes after itself; the CRC covers all bytes after itself, so base
//! offset and leader epoch may be rewritten without touching it.

/// Size of a batch header in bytes; the records, compressed or not, follow it.
pub const HEADER_SIZE: usize = 61;
/// Bytes that tell a batch's size and magic; what a reader of files must have first.
pub const PREFIX_SIZE: usize = 17;
/// Bytes before the first that the length field counts.
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

/// The only magic served; older batches are gone from Kafka 4 as well.
pub(crate) const MAGIC_V2: i8 = 2;

/// The sequence of records without a producer id, and of control records.
pub const NO_SEQUENCE: i32 = -1;
/// A record or batch without a timestamp.
pub const NO_TIMESTAMP: i64 = -1;
