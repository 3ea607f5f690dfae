//! Verification of transactions before they start in a partition's log (KIP-890).

use pykafka_log::{FirstBatch, VerificationGuard};
use pykafka_record::ProducerId;

use crate::kafka_error::KafkaError;
use crate::partition::Partition;

impl Partition {
    /// Returns a guard if the transaction of `batch` must be verified; `None` if it is open. The
    /// log must have been opened. Never waits for the disk.
    ///
    /// # Errors
    /// This broker is not the leader, or the log cannot be opened.
    pub(crate) fn begin_verification(
        &self,
        batch: &FirstBatch,
    ) -> Result<Option<VerificationGuard>, KafkaError> {
        let (guard, log) = self.lock_as_leader(None)?;
        drop(guard);
        Ok(log.begin_verification(batch))
    }

    /// Removes a guard that will not be used.
    pub(crate) fn abandon_verification(&self, producer_id: ProducerId, guard: VerificationGuard) {
        if let Some(log) = self.opened_log() {
            log.abandon_verification(producer_id, guard);
        }
    }
}
