//! Record batches: checksums, compression, murmur2, batch to Arrow columns and back; no I/O.
//!
//! [`Batch`] is a view over borrowed bytes that checks nothing but length and magic; what a batch
//! holds is checked while it is iterated ([`Batch::records`]), never before and never twice. All
//! bytes are taken as hostile: no length is believed before it was compared with what is there.

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
