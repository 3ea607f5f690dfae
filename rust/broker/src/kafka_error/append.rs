//! Kafka's codes for the errors of an append.

use pykafka_log::{AppendError, ProducerError, ValidateError};

use super::KafkaError;

impl From<&AppendError> for KafkaError {
    /// See contract/kafka.md#6–#10, #15–#17, #57, #58.
    fn from(error: &AppendError) -> KafkaError {
        match error {
            AppendError::Invalid(invalid) => of_invalid(invalid),
            AppendError::Producer(ProducerError::OutOfOrderSequence { .. }) => {
                KafkaError::OutOfOrderSequenceNumber
            }
            AppendError::Producer(ProducerError::InvalidProducerEpoch { .. }) => {
                KafkaError::InvalidProducerEpoch
            }
            AppendError::Producer(
                ProducerError::InvalidTxnState { .. } | ProducerError::NotInTransaction { .. },
            ) => KafkaError::InvalidTxnState,
            AppendError::Producer(ProducerError::TransactionCoordinatorFenced { .. }) => {
                KafkaError::TransactionCoordinatorFenced
            }
            AppendError::LargerThanSegment { .. } => KafkaError::RecordListTooLarge,
            AppendError::StaleLeaderEpoch { .. } => KafkaError::NotLeaderOrFollower,
            AppendError::Corrupt { .. } => KafkaError::CorruptMessage,
            AppendError::PartlyDuplicate { .. } | AppendError::UnexpectedOffset { .. } => {
                KafkaError::UnknownServerError
            }
            AppendError::Storage(_) | AppendError::BehindRefused => KafkaError::KafkaStorageError,
        }
    }
}

fn of_invalid(error: &ValidateError) -> KafkaError {
    match error {
        ValidateError::Malformed(_) | ValidateError::Crc { .. } => KafkaError::CorruptMessage,
        ValidateError::TooLarge { .. } | ValidateError::DecompressedTooLarge(_) => {
            KafkaError::MessageTooLarge
        }
        ValidateError::Rejected(_) if error.is_invalid_timestamp() => KafkaError::InvalidTimestamp,
        ValidateError::Undecodable(_)
        | ValidateError::Rebuild
        | ValidateError::Rewrite(_)
        | ValidateError::Cancelled(_) => KafkaError::UnknownServerError,
        ValidateError::BaseOffset(_)
        | ValidateError::OffsetRange(_)
        | ValidateError::Count(_)
        | ValidateError::CountMismatch { .. }
        | ValidateError::Control
        | ValidateError::Sequence { .. }
        | ValidateError::Rejected(_)
        | ValidateError::Records(_) => KafkaError::InvalidRecord,
    }
}
