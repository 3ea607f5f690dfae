//! Errors of reading records.

use crate::compression::{CompressionError, UnknownCompression};

/// Why the records of a batch cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The attributes contain an unknown codec.
    #[error(transparent)]
    UnknownCompression(#[from] UnknownCompression),
    /// The payload cannot be decompressed within the limits.
    #[error(transparent)]
    Compression(#[from] CompressionError),
    /// The number of records in the header is negative.
    #[error("negative records count {0}")]
    NegativeCount(i32),
    /// The payload ends before the last record.
    #[error("batch ends after {found} of {expected} records")]
    TooFew {
        /// Number of records in the header.
        expected: i32,
        /// Number of records in the payload.
        found: i32,
    },
    /// Bytes remain after the last record.
    #[error("{0} bytes are left behind the last record")]
    LeftOver(usize),
    /// A variable-length integer is truncated or too long.
    #[error("malformed varint in record {0}")]
    Varint(i32),
    /// A record is larger than [`crate::Limits::record_bytes_max`].
    #[error("record {index} has {size} bytes, which is more than the maximum of {bytes_max}")]
    TooLarge {
        /// Its index in the batch, from 0.
        index: i32,
        /// Its size in bytes, without the varint of the size.
        size: usize,
        /// The bound.
        bytes_max: usize,
    },
    /// A record's size is negative, exceeds the payload, or differs from that of its fields.
    #[error("record {0} has a size that does not fit")]
    Size(i32),
    /// The length of a key, a value, a header's key or value is below −1 or exceeds the record.
    #[error("record {0} has a field whose length does not fit")]
    FieldLength(i32),
    /// A header count is negative or exceeds the remaining bytes.
    #[error("record {0} has a header count that does not fit")]
    HeaderCount(i32),
    /// An offset delta is negative or exceeds the batch's last offset.
    #[error("record {0} has an offset outside of its batch")]
    OffsetDelta(i32),
    /// Base timestamp and delta overflow 64 bits.
    #[error("record {0} has a timestamp that overflows")]
    Timestamp(i32),
    /// A message of format 0 or 1 is malformed.
    #[error("malformed message set: {0}")]
    MessageSet(&'static str),
}

impl RecordError {
    /// Whether the read would succeed with a larger window ([`crate::Batch::read`]).
    pub fn needs_larger_window(&self) -> bool {
        matches!(self, Self::Compression(CompressionError::Window { .. }))
    }
}
