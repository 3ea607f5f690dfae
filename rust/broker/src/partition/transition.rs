//! What the image does to a partition: lead, follow, change its settings, go away; and the ISR's proposals.

use std::sync::Arc;

use parking_lot::MutexGuard;
use pykafka_log::{Log, LogConfig, StorageError};

use super::isr::{BrokerState, IsrOutcome, ProposalId};
use super::replication::{Assignment, Change};
use super::waiters::Wakeups;
use super::{Inner, LogSlot, Partition};
use crate::kafka_error::KafkaError;
use crate::seam::event::PartitionStateKind;

impl Partition {
    /// Takes the committed assignment and settings; idempotent (contract/replication.md#5, #7–#9).
    ///
    /// On return who waited under another leader epoch is told, and a log that is open has the new epoch written.
    pub fn assign(&self, assignment: Assignment, config: &Arc<LogConfig>) -> Change {
        let mut wakeups = Wakeups::default();
        let mut inner = self.inner.lock();
        Self::configure(&mut inner, config);
        let change = inner.replication.assign(assignment, self.host.clock.now_ns());
        match change {
            Change::Ignored => {}
            Change::Updated => self.isr_changed(&mut inner, &mut wakeups),
            Change::BecameFollower => {
                inner.waiters.fail(KafkaError::NotLeaderOrFollower, &mut wakeups);
                inner.version += 1;
            }
            Change::BecameLeader => {
                inner.waiters.fail(KafkaError::NotLeaderOrFollower, &mut wakeups);
                inner.version += 1;
                self.lead(&mut inner, &mut wakeups);
            }
        }
        Self::fail_waiters(&mut inner, &mut wakeups);
        drop(inner);
        wakeups.tell();
        change
    }

    /// An unopened log gets its epoch when it is opened, which is before its first append.
    fn lead(&self, inner: &mut Inner, wakeups: &mut Wakeups) {
        let mut log_end_offset = 0;
        if let LogSlot::Open(log) = &inner.log {
            let log = log.clone();
            log_end_offset = log.log_end_offset();
            if self.begin_leader_epoch(inner, &log).is_ok() {
                self.progress(inner, &log, wakeups);
            }
        }
        if !matches!(inner.log, LogSlot::Failed) {
            self.report(inner, PartitionStateKind::Leader, log_end_offset, String::new());
        }
    }

    fn configure(inner: &mut Inner, config: &Arc<LogConfig>) {
        if Arc::ptr_eq(&inner.config, config) {
            return;
        }
        inner.config = config.clone();
        if let LogSlot::Open(log) = &inner.log {
            log.update_config(config.clone());
        }
    }

    /// Recomputes after any change of the ISR; with too few members left, appends that wait are told at once that they
    /// are ambiguous (contract/kafka.md#13, contract/replication.md#6).
    fn isr_changed(&self, inner: &mut Inner, wakeups: &mut Wakeups) {
        if let LogSlot::Open(log) = &inner.log {
            let log = log.clone();
            self.progress(inner, &log, wakeups);
        }
        if !inner.replication.has_enough_replicas(inner.config.min_insync_replicas) {
            let error = KafkaError::NotEnoughReplicasAfterAppend;
            inner.waiters.committed(i64::MAX, Err(error), wakeups);
        }
    }

    /// Makes an ISR pending; `None` if it is no longer possible or one is in flight.
    pub fn propose_isr(
        &self,
        leader_epoch: i32,
        partition_epoch: i32,
        isr: Vec<BrokerState>,
    ) -> Option<ProposalId> {
        let eligible = self.host.eligible.load();
        let mut inner = self.inner.lock();
        inner.replication.propose(leader_epoch, partition_epoch, isr, &eligible)
    }

    /// Takes the controller's answer; `false` if the proposal was replaced.
    pub fn settle_isr(&self, proposal: ProposalId, outcome: IsrOutcome) -> bool {
        let mut wakeups = Wakeups::default();
        let mut inner = self.inner.lock();
        let settled = inner.replication.settle(proposal, outcome);
        if settled {
            self.isr_changed(&mut inner, &mut wakeups);
        }
        drop(inner);
        wakeups.tell();
        settled
    }

    /// The topic is gone: everyone who waits gets `UNKNOWN_TOPIC_ID`, the log's directory is renamed, and its files go
    /// later.
    ///
    /// # Errors
    /// The rename failed; the partition is gone from service all the same.
    pub fn delete(&self) -> Result<(), StorageError> {
        let mut wakeups = Wakeups::default();
        let mut inner = self.inner.lock();
        let slot = std::mem::replace(&mut inner.log, LogSlot::Deleted);
        inner.replication.retire();
        inner.waiters.fail(KafkaError::UnknownTopicId, &mut wakeups);
        inner.version += 1;
        self.report(&inner, PartitionStateKind::Deleted, -1, String::new());
        drop(inner);
        wakeups.tell();
        match slot {
            LogSlot::Open(log) => self.host.directory.delete_log(&log),
            LogSlot::Unopened => self.delete_unopened(),
            LogSlot::Failed | LogSlot::Deleted => Ok(()),
        }
    }

    fn delete_unopened(&self) -> Result<(), StorageError> {
        self.host.directory.delete_partition(&self.topic, self.index)
    }

    /// Fails who waits; the partition serves nothing afterwards. Its log is closed with its directory.
    pub fn close(&self) {
        let mut wakeups = Wakeups::default();
        let mut inner = self.inner.lock();
        inner.log = LogSlot::Failed;
        inner.replication.retire();
        inner.waiters.fail(KafkaError::NotLeaderOrFollower, &mut wakeups);
        inner.version += 1;
        drop(inner);
        wakeups.tell();
    }

    /// Moves the log start to `offset` (−1 for the high watermark); returns the new log start (contract/kafka.md#39).
    ///
    /// # Errors
    /// `OFFSET_OUT_OF_RANGE` above the high watermark or below −1; as for any leader.
    pub fn delete_before(&self, offset: i64) -> Result<i64, KafkaError> {
        let (mut inner, log) = self.lock_as_leader(-1)?;
        let high_watermark = inner.replication.high_watermark();
        let offset = if offset == -1 { high_watermark } else { offset };
        if !(0..=high_watermark).contains(&offset) {
            return Err(KafkaError::OffsetOutOfRange);
        }
        let deleted = self.stored(&mut inner, log.delete_before(offset));
        self.tell_of_deletion(inner, &log, deleted.is_ok());
        deleted
    }

    /// Deletes segments past the topic's limits, below the high watermark only (contract/kafka.md#52).
    ///
    /// # Errors
    /// `KAFKA_STORAGE_ERROR`.
    pub fn enforce_retention(&self) -> Result<usize, KafkaError> {
        let log = self.log()?;
        let mut inner = self.inner.lock();
        let high_watermark = inner.replication.high_watermark();
        log.expire_producers();
        let deleted = self.stored(&mut inner, log.enforce_retention(high_watermark));
        self.tell_of_deletion(inner, &log, matches!(deleted, Ok(1..)));
        deleted
    }

    /// Takes note of a log start that moved, and fails who waits on a log that failed.
    fn tell_of_deletion(&self, mut inner: MutexGuard<'_, Inner>, log: &Log, has_moved: bool) {
        if has_moved {
            let ends = self.ends(&inner, log);
            inner.replication.log_start_advanced(ends);
            inner.version += 1;
        }
        let mut wakeups = Wakeups::default();
        Self::fail_waiters(&mut inner, &mut wakeups);
        drop(inner);
        wakeups.tell();
    }
}
