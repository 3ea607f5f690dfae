//! Errors of appends.

use pykafka_record::LeaderEpoch;
use thiserror::Error;

use super::validate::ValidateError;
use crate::error::StorageError;
use crate::log::producer_state::ProducerError;

/// The reason why nothing was appended.
#[derive(Debug, Error)]
pub enum AppendError {
    /// The batch itself is invalid.
    #[error(transparent)]
    Invalid(#[from] ValidateError),
    /// The batch does not fit the state of its producer.
    #[error(transparent)]
    Producer(#[from] ProducerError),
    /// The batch, as it would be stored, does not fit into a segment.
    #[error("batch of {size} bytes is larger than a segment of {segment_bytes}")]
    LargerThanSegment {
        /// Size of the batch in bytes.
        size: usize,
        /// `segment.bytes`.
        segment_bytes: i32,
    },
    /// A follower's batch fails its CRC.
    #[error("batch at offset {offset} fails its checksum")]
    Corrupt {
        /// Its base offset.
        offset: i64,
    },
    /// A follower's batch does not start at the log end offset.
    #[error("batch begins at offset {found}, not at the log end {expected}")]
    UnexpectedOffset {
        /// The log end offset.
        expected: i64,
        /// The batch's base offset.
        found: i64,
    },
    /// Some of the batches were appended before, and others were not.
    #[error("{duplicates} of {count} batches were appended before: leave those out")]
    PartlyDuplicate {
        /// Number of batches that were.
        duplicates: usize,
        /// Number of all batches.
        count: usize,
    },
    /// The batch has an older leader epoch than the log.
    #[error("leader epoch {given} is older than the log's {current}")]
    StaleLeaderEpoch {
        /// The log's latest epoch.
        current: LeaderEpoch,
        /// The epoch of the batch.
        given: LeaderEpoch,
    },
    /// An earlier batch of the same producer was rejected and will be retried: this batch must
    /// follow it.
    #[error("an earlier batch of this producer was refused: send both again")]
    BehindRefused,
    /// The log cannot be written.
    #[error(transparent)]
    Storage(#[from] StorageError),
}
