//! Record batches: checksums, compression, murmur2, batch to Arrow columns and back; no I/O.
//!
//! [`Batch`] is a view of borrowed bytes that checks only length and magic. Records are checked
//! while they are iterated ([`Batch::records`]), exactly once. All bytes are untrusted: every
//! length is compared with the available bytes before it is used.

mod batch;
mod batch_mut;
mod builder;
mod cancellation;
pub mod columns;
mod compression;
mod control;
mod crc;
pub mod fuzz;
pub mod kernels;
mod layout;
mod leader_epoch;
mod partitioner;
mod producer;
mod record;
mod retain;
mod varint;

pub use batch::{Batch, BatchError, BatchHeader, Batches, TimestampType, batches};
pub use batch_mut::BatchMut;
pub use builder::{BatchBuilder, BatchOptions, BuildError};
pub use cancellation::{Cancellation, Cancelled};
pub use compression::{
    Compression, CompressionError, Limits, UnknownCompression, compress, decompress,
};
pub use control::{ControlType, EndTransactionMarker};
pub use crc::{Checksum, crc32, crc32c};
pub use layout::{HEADER_SIZE, MessageFormat, NO_SEQUENCE, NO_TIMESTAMP, PREFIX_SIZE};
pub use leader_epoch::LeaderEpoch;
pub use partitioner::{fnv1a, murmur2, murmur3_128, partition_for_key};
pub use producer::{ProducerEpoch, ProducerId};
pub use record::{
    Header, Headers, Record, RecordError, RecordHead, RecordIter, RecordReader, Window,
};
pub use retain::{BatchRewriter, Retention, UpgradeError, upgrade, write_empty};
