//! Appends by the leader and who waits for their acknowledgement.

use std::sync::Arc;

use parking_lot::MutexGuard;
use pykafka_log::{AppendError, AppendInfo, AppendOptions, AppendOrigin, Log, Validated};

use super::sync::Begun;
use super::waiters::{Ack, AckWaiter, Promise, Wakeups};
use super::{Inner, LogSlot, Partition};
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
        self: &Arc<Self>,
        batch: &mut [u8],
        origin: AppendOrigin,
        needs_isr: bool,
        leader_epoch: i32,
    ) -> Result<Appended, AppendRefusal> {
        // Checksums and decompression need no lock. Leadership is asked before as well: its errors come first.
        let log = self.lock_for_append(needs_isr, leader_epoch)?.1;
        let validated = log.validate(batch, origin).map_err(AppendRefusal::Log)?;
        let incoming = Incoming { batch, validated, origin, needs_isr, leader_epoch };
        let mut wakeups = Wakeups::default();
        let mut begun = None;
        let result = self.append_locked(incoming, &mut wakeups, &mut begun);
        wakeups.tell();
        self.run_sync(begun);
        result
    }

    fn lock_for_append(
        &self,
        needs_isr: bool,
        leader_epoch: i32,
    ) -> Result<(MutexGuard<'_, Inner>, Arc<Log>), KafkaError> {
        let (inner, log) = self.lock_as_leader(leader_epoch)?;
        let min_isr = inner.config.min_insync_replicas;
        if needs_isr && !inner.replication.has_enough_replicas(min_isr) {
            return Err(KafkaError::NotEnoughReplicas);
        }
        Ok((inner, log))
    }

    fn append_locked(
        self: &Arc<Self>,
        incoming: Incoming<'_>,
        wakeups: &mut Wakeups,
        begun: &mut Option<Begun>,
    ) -> Result<Appended, AppendRefusal> {
        let Incoming { batch, validated, origin, needs_isr, leader_epoch } = incoming;
        let (mut inner, log) = self.lock_for_append(needs_isr, leader_epoch)?;
        let leader_epoch = inner.replication.assignment().leader_epoch;
        let options = AppendOptions { leader_epoch, origin };
        let size = validated.stored_size();
        let uncompressed_size = validated.uncompressed_size;
        let appended = log.append_validated(batch, validated, options);
        let info = match appended {
            Ok(info) => info,
            Err(AppendError::Storage(error)) => {
                let error = self.storage_failed(&mut inner, &error);
                Self::fail_waiters(&mut inner, wakeups);
                return Err(error.into());
            }
            Err(error) => return Err(AppendRefusal::Log(error)),
        };
        self.report_space();
        if !info.duplicate {
            inner.uncredited_bytes += batch.len() as i64;
            if !self.hidden {
                let appended = &self.host.appended;
                appended.batches.add(1);
                appended.records.add(info.records_count as u64);
                appended.bytes.add(size as u64);
                appended.bytes_uncompressed.add(uncompressed_size as u64);
            }
            *begun = self.sync_after_append(&mut inner, &log);
        }
        let ends = self.progress(&mut inner, &log, wakeups);
        Self::fail_waiters(&mut inner, wakeups);
        let end_offset = info.last_offset + 1;
        Ok(Appended {
            leader_epoch,
            durable: ends.promised_end_offset >= end_offset,
            committed: inner.replication.high_watermark() >= end_offset,
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
        let mut inner = self.inner.lock();
        match self.promise_holds(&inner, leader_epoch, end_offset, promise) {
            Ok(false) => {
                let ack = Ack { end_offset, waiter: waiter.clone(), slot };
                inner.waiters.wait_ack(promise, ack);
                None
            }
            Ok(true) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        }
    }

    fn promise_holds(
        &self,
        inner: &Inner,
        leader_epoch: i32,
        end_offset: i64,
        promise: Promise,
    ) -> Result<bool, KafkaError> {
        let log = match &inner.log {
            LogSlot::Open(log) => log,
            LogSlot::Deleted => return Err(KafkaError::UnknownTopicId),
            LogSlot::Failed | LogSlot::Unopened => return Err(KafkaError::KafkaStorageError),
        };
        inner.replication.check_leader(-1)?;
        if inner.replication.assignment().leader_epoch != leader_epoch {
            return Err(KafkaError::NotLeaderOrFollower);
        }
        Ok(match promise {
            Promise::Durable => self.ends(inner, log).promised_end_offset >= end_offset,
            Promise::Committed => inner.replication.high_watermark() >= end_offset,
        })
    }

    /// Takes a waiter out: it timed out, or its connection went away.
    pub fn forget_acks(&self, waiter: &Arc<dyn AckWaiter>) {
        self.inner.lock().waiters.forget_acks(waiter);
    }
}
