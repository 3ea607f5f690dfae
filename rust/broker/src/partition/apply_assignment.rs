//! Applies the image to a partition: leadership, following, settings and deletion; and applies ISR
//! proposals. Also moves the log start offset, for `DeleteRecords` and retention.

use std::sync::Arc;

use pykafka_log::{Expired, Log, LogConfig, StorageError};
use pykafka_record::LeaderEpoch;

use super::guard::PartitionGuard;
use super::pending_deletions::Deletions;
use super::replication::isr::{BrokerState, IsrOutcome, ProposalId};
use super::replication::{Assignment, Change};
use super::threads::background::Urgency;
use super::{Partition, Survey};
use crate::control_api::event::faults::{Faults, LogFault};
use crate::kafka_error::KafkaError;
use crate::partition::log::open_log::log_slot::{Departure, LogSlot};
use crate::partition::write_queue::queue::{Left, WriterToken};

impl Partition {
    /// Applies the committed assignment and settings; idempotent (contract/replication.md#5,
    /// #7–#9).
    ///
    /// Waiters from another leader epoch have been notified on return. The new leader epoch is
    /// written to an open log asynchronously: after the append in progress (old epoch), and before
    /// the first append of the new epoch.
    pub fn assign(&self, assignment: Assignment, config: &Arc<LogConfig>) -> Change {
        let mut guard = self.lock();
        guard.configure(config);
        let change = guard.replication.assign(assignment, self.host.clock.now_ns());
        match change {
            Change::Ignored => {}
            Change::Updated => guard.isr_changed(),
            Change::BecameFollower | Change::BecameLeader => {
                guard.fail_waiters(KafkaError::NotLeaderOrFollower);
                guard.version += 1;
            }
        }
        guard.list_as_replicated();
        if guard.is_epoch_due() {
            guard.drain_after();
        }
        change
    }

    /// Writes a new leader epoch to an open log. If that fails, the partition goes offline.
    pub(super) fn begin_due_epoch(&self, log: &Arc<Log>, writer: &WriterToken) {
        if !self.lock().is_epoch_due() || self.begin_leader_epoch(log, writer).is_err() {
            return;
        }
        self.lock().progress(log);
    }

    /// Makes an ISR pending; `None` if it is not possible any more, or if another one is in flight.
    pub fn propose_isr(
        &self,
        leader_epoch: LeaderEpoch,
        partition_epoch: i32,
        isr: Vec<BrokerState>,
    ) -> Option<ProposalId> {
        let eligible = self.host.eligible.load();
        self.lock().replication.propose(leader_epoch, partition_epoch, isr, &eligible)
    }

    /// Applies the controller's response, unless the proposal was replaced. Returns true if the
    /// proposal is still in flight.
    pub fn settle_isr(&self, proposal: ProposalId, outcome: IsrOutcome) -> bool {
        let mut guard = self.lock();
        if guard.replication.settle(proposal, outcome) {
            guard.isr_changed();
        }
        guard.replication.proposal() == Some(proposal)
    }

    /// Fails all waiting requests with the error of the `departure`. The log's directory is renamed
    /// after the last write to it, by a thread that may wait for that, and its files are removed
    /// later. Call [`PendingDeletions::begin`] first.
    ///
    /// [`PendingDeletions::begin`]: super::pending_deletions::names::PendingDeletions::begin
    pub(super) fn delete(&self, departure: Departure, deletions: &Arc<Deletions>) {
        self.lock().delete(departure, deletions);
        self.send_to_work(Urgency::Asked);
    }

    /// Renames the directory of a deleted partition. If that fails, the directory stays as a stray,
    /// which the next start finds.
    pub(super) fn remove_files(&self, log: &LogSlot, _writer: &WriterToken) {
        let directory = &self.host.directory;
        let removed = match log {
            LogSlot::Open(log) => directory.delete_log(log),
            // A failed log is closed; its directory must be removed, or the topic could not be
            // created again.
            LogSlot::Unopened | LogSlot::Failed => {
                directory.delete_partition(&self.topic, self.index)
            }
            LogSlot::Left(_) => Ok(()),
        };
        if let Err(error) = removed {
            self.host.report_failed(&error);
        }
        if let Some(next) = self.host.pending_deletions.end(self) {
            next.begin_drain();
        }
    }

    /// Fails all waiting requests; the partition serves nothing afterwards. The directory closes
    /// the log.
    pub fn close(&self) {
        self.lock().retire(LogSlot::Failed, KafkaError::NotLeaderOrFollower);
    }

    /// Moves the log start offset to `offset` (−1 for the high watermark). Returns the log and its
    /// new start, which is not durable yet (contract/kafka.md#39).
    ///
    /// # Errors
    /// `OFFSET_OUT_OF_RANGE` above the high watermark or below −1; the errors of a leader.
    pub(super) fn delete_before(
        &self,
        offset: i64,
        writer: &WriterToken,
    ) -> Result<(Arc<Log>, i64), KafkaError> {
        let log = self.open_log(writer)?;
        let high_watermark = self.lock_as_leader(None)?.0.replication.high_watermark();
        let offset = if offset == -1 { high_watermark } else { offset };
        if !(0..=high_watermark).contains(&offset) {
            return Err(KafkaError::OffsetOutOfRange);
        }
        let log_start_offset = self.move_log_start(&log, || log.delete_before(offset))?;
        Ok((log, log_start_offset))
    }

    /// Deletes segments beyond the topic's limits, only below the high watermark
    /// (contract/kafka.md#52). A closed log stays closed if none of its segments must be deleted.
    /// On return the log start offset has moved; the segments are removed once that is durable.
    ///
    /// # Errors
    /// `KAFKA_STORAGE_ERROR`.
    pub(super) fn enforce_retention(&self, writer: &WriterToken) -> Result<(), KafkaError> {
        if !self.may_expire(writer) {
            return Ok(());
        }
        let log = self.open_log(writer)?;
        let high_watermark = self.high_watermark();
        log.expire_producers(self.host.directory.producer_id_expiration_ms());
        if let Some(expired) = self.move_log_start(&log, || log.expire_segments(high_watermark))? {
            let urgency = Urgency::Background;
            self.when_log_start_is_durable(
                &log,
                urgency,
                move |partition, recorded| match recorded {
                    Err(error) if !error.is_refusal() => partition.note_storage_error(&error),
                    // On a full disk the segments are removed anyway, because that frees space.
                    _ => partition.command(urgency, move |partition, writer| {
                        // The segments of a deleted topic are removed with its directory.
                        let Ok(_writer) = writer else { return };
                        partition.remove_expired(expired);
                    }),
                },
            );
        }
        Ok(())
    }

    fn remove_expired(&self, expired: Expired) {
        let Some(log) = self.opened_log() else { return };
        let removed = log.remove_expired(expired);
        let mut guard = self.lock();
        // The batches that could not be compacted may have been deleted.
        if guard.stored(removed).is_ok() {
            guard.change_faults(|faults| faults.end(LogFault::Uncleanable));
        }
    }

    /// Runs `work`, which may move the log start offset. Readers see the new start before it is
    /// durable.
    pub(super) fn move_log_start<T>(
        &self,
        log: &Log,
        work: impl FnOnce() -> Result<T, StorageError>,
    ) -> Result<T, KafkaError> {
        let before = log.log_start_offset();
        let done = work();
        let mut guard = self.lock();
        if log.log_start_offset() > before {
            guard.log_start_advanced(log);
        }
        guard.stored(done)
    }

    /// True if retention might have to delete something; only then the log must be opened for it.
    fn may_expire(&self, writer: &WriterToken) -> bool {
        match self.unopened(writer) {
            None | Some(Survey::Unknown) => true,
            Some(Survey::Nothing) => false,
            Some(Survey::Done(survey, start)) => {
                survey.may_expire(&self.lock().config, start, self.host.clock.now_ms())
            }
        }
    }
}

impl PartitionGuard<'_> {
    fn configure(&mut self, config: &Arc<LogConfig>) {
        if Arc::ptr_eq(&self.config, config) {
            return;
        }
        self.config = config.clone();
        self.dirtiness_on_disk = None;
        if let LogSlot::Open(log) = &self.log {
            log.update_config(config.clone());
        }
    }

    /// Recomputes the high watermark after a change of the ISR. If too few members are left,
    /// waiting appends fail at once with an ambiguous error (contract/kafka.md#13,
    /// contract/replication.md#6).
    fn isr_changed(&mut self) {
        if let Some(log) = self.opened() {
            self.progress(&log);
        }
        if !self.replication.has_enough_replicas(self.config.min_insync_replicas) {
            self.fail_uncommitted(KafkaError::NotEnoughReplicasAfterAppend);
        }
    }

    fn delete(&mut self, departure: Departure, deletions: &Arc<Deletions>) {
        let log = self.retire(LogSlot::Left(departure), departure.error());
        self.refuse_work(departure.error());
        self.queue.leave(Left { log, _deletions: deletions.clone() });
    }

    /// Replaces the log by `slot`, returns it, and fails all waiting requests.
    fn retire(&mut self, slot: LogSlot, error: KafkaError) -> LogSlot {
        self.replication.retire();
        self.fail_waiters(error);
        self.version += 1;
        if matches!(slot, LogSlot::Left(_)) {
            self.change_faults(|faults| *faults = Faults::default());
        }
        std::mem::replace(&mut self.log, slot)
    }

    /// Updates the state after the log start offset has moved.
    fn log_start_advanced(&mut self, log: &Log) {
        let ends = self.ends(log);
        self.replication.log_start_advanced(ends);
        self.version += 1;
        self.check_unreadable();
    }
}
