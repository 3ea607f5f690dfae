//! Appends by the leader and who waits for their acknowledgement.

use std::sync::Arc;

use pykafka_log::{AppendError, AppendInfo, AppendOptions, AppendOrigin, Log, Validated};

use super::turn::Turn;
use super::waiters::{Ack, AckWaiter, Promise};
use super::{LogSlot, Partition};
use crate::kafka_error::KafkaError;

/// An append that happened; its acknowledgement may still be due.
#[derive(Debug, Clone)]
pub struct Appended {
    /// Offsets and times as the log gave them.
    pub info: AppendInfo,
    /// The epoch it was appended in: an acknowledgement holds only in that epoch.
    pub leader_epoch: i32,
    /// What already holds when the append returns.
    pub durable: bool,
    /// Whether the high watermark passed it already.
    pub committed: bool,
}

/// A batch on its way into the log.
struct Incoming<'a> {
    batch: &'a mut [u8],
    validated: Validated,
    origin: AppendOrigin,
    needs_isr: bool,
    leader_epoch: i32,
}

/// Why nothing was appended.
#[derive(Debug)]
pub enum AppendRefusal {
    /// The partition refused.
    Partition(KafkaError),
    /// The log refused the batch.
    Log(AppendError),
}

impl From<KafkaError> for AppendRefusal {
    fn from(error: KafkaError) -> Self {
        AppendRefusal::Partition(error)
    }
}

impl Partition {
    /// Appends one batch, stamped in place with its offsets and leader epoch.
    ///
    /// Leadership, `leader_epoch` (−1 for any) and, for acks=all, the number of in-sync replicas are checked in the
    /// same critical section (SEAM, races). On return the batch is in the page cache; see [`Appended::durable`].
    ///
    /// # Errors
    /// Nothing was appended: `NOT_LEADER_OR_FOLLOWER`, the epoch errors, `NOT_ENOUGH_REPLICAS`, or what the log says.
    pub fn append(
        &self,
        batch: &mut [u8],
        origin: AppendOrigin,
        needs_isr: bool,
        leader_epoch: i32,
    ) -> Result<Appended, AppendRefusal> {
        // Checksums and decompression need no lock. Leadership is asked before as well: its errors come first.
        let log = self.turn_for_append(needs_isr, leader_epoch)?.1;
        let validated = log.validate(batch, origin).map_err(AppendRefusal::Log)?;
        self.append_validated(Incoming { batch, validated, origin, needs_isr, leader_epoch })
    }

    fn turn_for_append(
        &self,
        needs_isr: bool,
        leader_epoch: i32,
    ) -> Result<(Turn<'_>, Arc<Log>), KafkaError> {
        let (turn, log) = self.turn_as_leader(leader_epoch)?;
        let min_isr = turn.config.min_insync_replicas;
        if needs_isr && !turn.replication.has_enough_replicas(min_isr) {
            return Err(KafkaError::NotEnoughReplicas);
        }
        Ok((turn, log))
    }

    fn append_validated(&self, incoming: Incoming<'_>) -> Result<Appended, AppendRefusal> {
        let Incoming { batch, validated, origin, needs_isr, leader_epoch } = incoming;
        let (mut turn, log) = self.turn_for_append(needs_isr, leader_epoch)?;
        let leader_epoch = turn.replication.assignment().leader_epoch;
        let options = AppendOptions { leader_epoch, origin };
        let size = validated.stored_size();
        let uncompressed_size = validated.uncompressed_size;
        let info = match log.append_validated(batch, validated, options) {
            Ok(info) => info,
            Err(AppendError::Storage(error)) => return Err(turn.storage_failed(&error).into()),
            Err(error) => return Err(AppendRefusal::Log(error)),
        };
        turn.report_space();
        if !info.duplicate {
            turn.uncredited_bytes += batch.len() as i64;
            if !self.hidden {
                let appended = &self.host.appended;
                appended.batches.add(1);
                appended.records.add(info.records_count as u64);
                appended.bytes.add(size as u64);
                appended.bytes_uncompressed.add(uncompressed_size as u64);
            }
            turn.sync_after_append(&log);
        }
        let ends = turn.progress(&log);
        let end_offset = info.last_offset + 1;
        Ok(Appended {
            leader_epoch,
            durable: ends.promised_end_offset >= end_offset,
            committed: turn.replication.high_watermark() >= end_offset,
            info,
        })
    }

    /// Lets `waiter` wait until `promise` holds for an append that ended at `end_offset` in `leader_epoch`.
    ///
    /// Returns the answer if it is known at once; otherwise the waiter is told exactly once, unless it is forgotten.
    pub fn wait_ack(
        &self,
        leader_epoch: i32,
        end_offset: i64,
        promise: Promise,
        waiter: &Arc<dyn AckWaiter>,
        slot: usize,
    ) -> Option<Result<(), KafkaError>> {
        let mut turn = self.turn();
        match turn.promise_holds(leader_epoch, end_offset, promise) {
            Ok(false) => {
                let ack = Ack { end_offset, waiter: waiter.clone(), slot };
                turn.waiters.wait_ack(promise, ack);
                None
            }
            Ok(true) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        }
    }

    /// Takes a waiter out: it timed out, or its connection went away.
    pub fn forget_acks(&self, waiter: &Arc<dyn AckWaiter>) {
        self.turn().waiters.forget_acks(waiter);
    }
}

impl Turn<'_> {
    fn promise_holds(
        &self,
        leader_epoch: i32,
        end_offset: i64,
        promise: Promise,
    ) -> Result<bool, KafkaError> {
        let log = match &self.log {
            LogSlot::Open(log) => log,
            LogSlot::Deleted => return Err(KafkaError::UnknownTopicId),
            LogSlot::Failed | LogSlot::Unopened => return Err(KafkaError::KafkaStorageError),
        };
        self.replication.check_leader(-1)?;
        if self.replication.assignment().leader_epoch != leader_epoch {
            return Err(KafkaError::NotLeaderOrFollower);
        }
        Ok(match promise {
            Promise::Durable => self.ends(log).promised_end_offset >= end_offset,
            Promise::Committed => self.replication.high_watermark() >= end_offset,
        })
    }
}
