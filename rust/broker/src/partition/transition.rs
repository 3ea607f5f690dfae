//! What the image does to a partition: lead, follow, change its settings, go away; and the ISR's proposals.

use std::sync::Arc;

use pykafka_log::{Expired, Log, LogConfig, StorageError};
use pykafka_record::LeaderEpoch;

use super::leaving::{Deletions, Departure, Left};
use super::replication::isr::{BrokerState, IsrOutcome, ProposalId};
use super::replication::{Assignment, Change};
use super::threads::lane::Urgency;
use super::turn::Turn;
use super::work::Writer;
use super::{LogSlot, Partition, Survey};
use crate::kafka_error::KafkaError;
use crate::seam::event::faults::{Faults, LogFault};

impl Partition {
    /// Takes the committed assignment and settings; idempotent (contract/replication.md#5, #7–#9).
    ///
    /// On return waiters of another leader epoch have been notified. A new leader epoch of an open log is noted there
    /// behind the append under way, which belongs to the old one, and before any of its own; nobody waits for that here.
    pub fn assign(&self, assignment: Assignment, config: &Arc<LogConfig>) -> Change {
        let mut turn = self.turn();
        turn.configure(config);
        let change = turn.replication.assign(assignment, self.host.clock.now_ns());
        match change {
            Change::Ignored => {}
            Change::Updated => turn.isr_changed(),
            Change::BecameFollower | Change::BecameLeader => {
                turn.fail_waiters(KafkaError::NotLeaderOrFollower);
                turn.version += 1;
            }
        }
        turn.list_as_replicated();
        if turn.is_epoch_due() {
            turn.drain_after();
        }
        change
    }

    /// Notes a new leader epoch in an open log. Should that fail, the partition is offline.
    pub(super) fn begin_due_epoch(&self, log: &Arc<Log>, writer: &Writer) {
        if !self.turn().is_epoch_due() || self.begin_leader_epoch(log, writer).is_err() {
            return;
        }
        self.turn().progress(log);
    }

    /// Makes an ISR pending; `None` if it is no longer possible or one is in flight.
    pub fn propose_isr(
        &self,
        leader_epoch: LeaderEpoch,
        partition_epoch: i32,
        isr: Vec<BrokerState>,
    ) -> Option<ProposalId> {
        let eligible = self.host.eligible.load();
        self.turn().replication.propose(leader_epoch, partition_epoch, isr, &eligible)
    }

    /// Takes the controller's answer, unless the proposal was replaced. Returns whether the proposal is in flight still.
    pub fn settle_isr(&self, proposal: ProposalId, outcome: IsrOutcome) -> bool {
        let mut turn = self.turn();
        if turn.replication.settle(proposal, outcome) {
            turn.isr_changed();
        }
        turn.replication.proposal() == Some(proposal)
    }

    /// Every request that waits fails with the error of the `departure`. The log's directory is
    /// renamed when the last write to it has ended, by a thread that may wait for that, and its
    /// files go later. Call [`Leaving::begin`] before.
    ///
    /// [`Leaving::begin`]: super::leaving::Leaving::begin
    pub(super) fn delete(&self, departure: Departure, deletions: &Arc<Deletions>) {
        self.turn().delete(departure, deletions);
        self.send_to_work(Urgency::Asked);
    }

    /// Renames the directory of a deleted partition. One that cannot be renamed stays behind as a stray; the next start
    /// finds it.
    pub(super) fn remove_files(&self, log: &LogSlot, _writer: &Writer) {
        let directory = &self.host.directory;
        let removed = match log {
            LogSlot::Open(log) => directory.delete_log(log),
            // The log that failed is closed; its directory has to go, or the topic could not be made again.
            LogSlot::Unopened | LogSlot::Failed => {
                directory.delete_partition(&self.topic, self.index)
            }
            LogSlot::Left(_) => Ok(()),
        };
        if let Err(error) = removed {
            self.host.report_failed(&error);
        }
        if let Some(next) = self.host.leaving.end(self) {
            next.begin_drain();
        }
    }

    /// Fails who waits; the partition serves nothing afterwards. Its log is closed with its directory.
    pub fn close(&self) {
        self.turn().retire(LogSlot::Failed, KafkaError::NotLeaderOrFollower);
    }

    /// Moves the log start to `offset` (−1 for the high watermark); returns the log and its new start, which is not durable
    /// yet (contract/kafka.md#39).
    ///
    /// # Errors
    /// `OFFSET_OUT_OF_RANGE` above the high watermark or below −1; as for any leader.
    pub(super) fn delete_before(
        &self,
        offset: i64,
        writer: &Writer,
    ) -> Result<(Arc<Log>, i64), KafkaError> {
        let log = self.open_log(writer)?;
        let high_watermark = self.turn_as_leader(None)?.0.replication.high_watermark();
        let offset = if offset == -1 { high_watermark } else { offset };
        if !(0..=high_watermark).contains(&offset) {
            return Err(KafkaError::OffsetOutOfRange);
        }
        let log_start_offset = self.move_log_start(&log, || log.delete_before(offset))?;
        Ok((log, log_start_offset))
    }

    /// Deletes segments past the topic's limits, below the high watermark only (contract/kafka.md#52). A log that is not
    /// open stays so if nothing of it has to go. On return the log start has moved; the segments go once that is durable.
    ///
    /// # Errors
    /// `KAFKA_STORAGE_ERROR`.
    pub(super) fn enforce_retention(&self, writer: &Writer) -> Result<(), KafkaError> {
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
                    // On a full disk the segments go all the same: that is what frees space.
                    _ => partition.command(urgency, move |partition, writer| {
                        // Those of a deleted topic go with its directory.
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
        let mut turn = self.turn();
        // The batches that could not be compacted may have gone.
        if turn.stored(removed).is_ok() {
            turn.change_faults(|faults| faults.end(LogFault::Uncleanable));
        }
    }

    /// Does what may move the log start. Readers see the new start before it is durable.
    pub(super) fn move_log_start<T>(
        &self,
        log: &Log,
        work: impl FnOnce() -> Result<T, StorageError>,
    ) -> Result<T, KafkaError> {
        let before = log.log_start_offset();
        let done = work();
        let mut turn = self.turn();
        if log.log_start_offset() > before {
            turn.log_start_advanced(log);
        }
        turn.stored(done)
    }

    /// Whether retention might have something to do; only then need the log be opened for it.
    fn may_expire(&self, writer: &Writer) -> bool {
        match self.unopened(writer) {
            None | Some(Survey::Unknown) => true,
            Some(Survey::Nothing) => false,
            Some(Survey::Done(survey, start)) => {
                survey.may_expire(&self.turn().config, start, self.host.clock.now_ms())
            }
        }
    }
}

impl Turn<'_> {
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

    /// Recomputes after any change of the ISR; with too few members left, appends that wait are told at once that they
    /// are ambiguous (contract/kafka.md#13, contract/replication.md#6).
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

    /// Leaves `slot` in place of the log, which is returned, and fails everyone who waits.
    fn retire(&mut self, slot: LogSlot, error: KafkaError) -> LogSlot {
        self.replication.retire();
        self.fail_waiters(error);
        self.version += 1;
        if matches!(slot, LogSlot::Left(_)) {
            self.change_faults(|faults| *faults = Faults::default());
        }
        std::mem::replace(&mut self.log, slot)
    }

    /// Takes note of a log start that moved.
    fn log_start_advanced(&mut self, log: &Log) {
        let ends = self.ends(log);
        self.replication.log_start_advanced(ends);
        self.version += 1;
        self.check_unreadable();
    }
}
