//! Outcomes of appends.

use pykafka_log::{AppendError, AppendInfo};

use crate::kafka_error::KafkaError;

/// The outcome of an append: acknowledged as promised, or an error, after which the batch may still
/// be in the log.
pub type AppendOutcome = Result<AppendInfo, AppendRefusal>;

/// The reason why an append is not acknowledged.
#[derive(Debug)]
pub enum AppendRefusal {
    /// The partition refused it.
    Partition(KafkaError),
    /// The log refused the batch.
    Log(AppendError),
}

impl From<KafkaError> for AppendRefusal {
    fn from(error: KafkaError) -> Self {
        AppendRefusal::Partition(error)
    }
}
