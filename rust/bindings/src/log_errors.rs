//! Converts errors of the log to exceptions of `pykafka_core.errors`.

use pykafka_log::{AppendError, OpenError, ProducerError, ReadError, StorageError, ValidateError};
use pyo3::prelude::*;

/// An error of `pykafka_core.errors`, or the exception raised while it was created.
pub(crate) fn error(py: Python<'_>, class: &str, text: &str) -> PyErr {
    let made = py
        .import("pykafka_core.errors")
        .and_then(|errors| errors.getattr(class))
        .and_then(|class| class.call1((text,)));
    made.map_or_else(|error| error, PyErr::from_value)
}

pub(crate) fn storage_error(py: Python<'_>, cause: &StorageError) -> PyErr {
    let class = match cause {
        StorageError::Closed => "ClosedError",
        StorageError::NegativeOffset { .. } | StorageError::OffsetOutOfRange { .. } => {
            "OffsetOutOfRangeError"
        }
        _ => "StorageError",
    };
    error(py, class, &cause.to_string())
}

pub(crate) fn open_error(py: Python<'_>, cause: &OpenError) -> PyErr {
    let class = match cause {
        OpenError::Locked { .. } => "StorageLockedError",
        _ => "StorageError",
    };
    error(py, class, &cause.to_string())
}

pub(crate) fn read_error(py: Python<'_>, cause: &ReadError) -> PyErr {
    match cause {
        ReadError::OffsetOutOfRange { .. } => {
            error(py, "OffsetOutOfRangeError", &cause.to_string())
        }
        ReadError::Storage(cause) => storage_error(py, cause),
    }
}

pub(crate) fn append_error(py: Python<'_>, cause: &AppendError) -> PyErr {
    let class = match cause {
        AppendError::Storage(cause) => return storage_error(py, cause),
        AppendError::Invalid(
            ValidateError::TooLarge { .. } | ValidateError::DecompressedTooLarge(_),
        ) => "MessageTooLargeError",
        AppendError::Invalid(ValidateError::Malformed(_) | ValidateError::Crc { .. })
        | AppendError::Corrupt { .. } => "CorruptMessageError",
        AppendError::Invalid(cause) if cause.is_invalid_timestamp() => "InvalidTimestampError",
        AppendError::LargerThanSegment { .. } => "RecordListTooLargeError",
        AppendError::Producer(cause) => match cause {
            ProducerError::OutOfOrderSequence { .. } => "OutOfOrderSequenceNumberError",
            ProducerError::InvalidProducerEpoch { .. } => "InvalidProducerEpochError",
            ProducerError::InvalidTxnState { .. } | ProducerError::NotInTransaction { .. } => {
                "InvalidTxnStateError"
            }
            ProducerError::TransactionCoordinatorFenced { .. } => {
                "TransactionCoordinatorFencedError"
            }
        },
        AppendError::BehindRefused => "StorageError",
        AppendError::StaleLeaderEpoch { .. } => "FencedLeaderEpochError",
        AppendError::PartlyDuplicate { .. } => "DuplicateSequenceNumberError",
        AppendError::Invalid(_) | AppendError::UnexpectedOffset { .. } => "InvalidRecordError",
    };
    error(py, class, &cause.to_string())
}
