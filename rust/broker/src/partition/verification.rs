//! Transactions that are verified before they begin in a partition's log (KIP-890).

use pykafka_log::{FirstBatch, VerificationGuard};
use pykafka_record::ProducerId;

use super::Partition;
use crate::kafka_error::KafkaError;

impl Partition {
    /// The guard under which the transaction that `batch` begins has to be verified; `None` if it is open. The log must have
    /// been opened. Never waits for the disk.
    ///
    /// # Errors
    /// The partition is not led here, or its log cannot be opened.
    pub(crate) fn begin_verification(
        &self,
        batch: &FirstBatch,
    ) -> Result<Option<VerificationGuard>, KafkaError> {
        let (turn, log) = self.turn_as_leader(None)?;
        drop(turn);
        Ok(log.begin_verification(batch))
    }

    /// Lets go of a guard of which nothing will come.
    pub(crate) fn abandon_verification(&self, producer_id: ProducerId, guard: VerificationGuard) {
        if let Some(log) = self.opened_log() {
            log.abandon_verification(producer_id, guard);
        }
    }
}
