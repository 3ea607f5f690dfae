//! What the image does to a partition: lead, follow, change its settings, go away; and the ISR's proposals.

use std::sync::Arc;

use pykafka_log::{Log, LogConfig, StorageError};

use super::isr::{BrokerState, IsrOutcome, ProposalId};
use super::replication::{Assignment, Change};
use super::turn::Turn;
use super::{LogSlot, Partition, Writer};
use crate::kafka_error::KafkaError;
use crate::seam::event::PartitionStateKind;

impl Partition {
    /// Takes the committed assignment and settings; idempotent (contract/replication.md#5, #7–#9).
    ///
    /// On return waiters of another leader epoch have been notified, and a log that is open has the new epoch written.
    /// A new leader epoch waits for the append under way, which belongs to the old one.
    pub fn assign(&self, assignment: Assignment, config: &Arc<LogConfig>) -> Change {
        let is_new_epoch = {
            let now = self.turn();
            let now = now.replication.assignment();
            (now.leader, now.leader_epoch) != (assignment.leader, assignment.leader_epoch)
        };
        let writer = is_new_epoch.then(|| self.writer.lock());
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
        drop(turn);
        if let (Change::BecameLeader, Some(writer)) = (change, writer) {
            self.lead(&writer);
        }
        change
    }

    /// An unopened log gets its epoch when it is opened, which is before its first append.
    fn lead(&self, writer: &Writer<'_>) {
        let log = self.opened_log();
        let begun = log.as_ref().map(|log| self.begin_leader_epoch(log, writer));
        let mut turn = self.turn();
        if let (Some(log), Some(Ok(()))) = (&log, begun) {
            turn.progress(log);
        }
        if !matches!(turn.log, LogSlot::Failed) {
            let log_end_offset = log.map_or(0, |log| log.log_end_offset());
            turn.report(PartitionStateKind::Leader, log_end_offset, String::new());
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
        self.turn().replication.propose(leader_epoch, partition_epoch, isr, &eligible)
    }

    /// Takes the controller's answer; `false` if the proposal was replaced.
    pub fn settle_isr(&self, proposal: ProposalId, outcome: IsrOutcome) -> bool {
        let mut turn = self.turn();
        let settled = turn.replication.settle(proposal, outcome);
        if settled {
            turn.isr_changed();
        }
        settled
    }

    /// The topic is gone: everyone who waits gets `UNKNOWN_TOPIC_ID`, the log's directory is renamed, and its files go
    /// later.
    ///
    /// # Errors
    /// The rename failed; the partition is gone from service all the same.
    pub fn delete(&self) -> Result<(), StorageError> {
        let slot = self.turn().retire(LogSlot::Deleted, KafkaError::UnknownTopicId);
        // The append under way, or the opening, ends before its directory goes; nobody sees what it did.
        let _writer = self.writer.lock();
        match slot {
            LogSlot::Open(log) => self.host.directory.delete_log(&log),
            // The log that failed is closed; its directory has to go, or the topic could not be made again.
            LogSlot::Unopened | LogSlot::Failed => {
                self.host.directory.delete_partition(&self.topic, self.index)
            }
            LogSlot::Deleted => Ok(()),
        }
    }

    /// Fails who waits; the partition serves nothing afterwards. Its log is closed with its directory.
    pub fn close(&self) {
        self.turn().retire(LogSlot::Failed, KafkaError::NotLeaderOrFollower);
    }

    /// Moves the log start to `offset` (−1 for the high watermark); returns the new log start (contract/kafka.md#39).
    ///
    /// # Errors
    /// `OFFSET_OUT_OF_RANGE` above the high watermark or below −1; as for any leader.
    pub fn delete_before(&self, offset: i64) -> Result<i64, KafkaError> {
        let log = self.log()?;
        let _writer = self.writer.lock();
        let high_watermark = self.turn_as_leader(-1)?.0.replication.high_watermark();
        let offset = if offset == -1 { high_watermark } else { offset };
        if !(0..=high_watermark).contains(&offset) {
            return Err(KafkaError::OffsetOutOfRange);
        }
        let deleted = log.delete_before(offset);
        let mut turn = self.turn();
        let log_start_offset = turn.stored(deleted)?;
        turn.log_start_advanced(&log);
        Ok(log_start_offset)
    }

    /// Deletes segments past the topic's limits, below the high watermark only (contract/kafka.md#52).
    ///
    /// # Errors
    /// `KAFKA_STORAGE_ERROR`.
    pub fn enforce_retention(&self) -> Result<usize, KafkaError> {
        let log = self.log()?;
        let _writer = self.writer.lock();
        let high_watermark = self.high_watermark();
        log.expire_producers();
        let removed = log.enforce_retention(high_watermark);
        let mut turn = self.turn();
        let count = turn.stored(removed)?;
        if count > 0 {
            turn.log_start_advanced(&log);
        }
        Ok(count)
    }
}

impl Turn<'_> {
    fn configure(&mut self, config: &Arc<LogConfig>) {
        if Arc::ptr_eq(&self.config, config) {
            return;
        }
        self.config = config.clone();
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

    /// Leaves `slot` in place of the log, which is returned, and fails everyone who waits.
    fn retire(&mut self, slot: LogSlot, error: KafkaError) -> LogSlot {
        self.replication.retire();
        self.fail_waiters(error);
        self.version += 1;
        if matches!(slot, LogSlot::Deleted) {
            self.report(PartitionStateKind::Deleted, -1, String::new());
        }
        std::mem::replace(&mut self.log, slot)
    }

    /// Takes note of a log start that moved.
    fn log_start_advanced(&mut self, log: &Log) {
        let ends = self.ends(log);
        self.replication.log_start_advanced(ends);
        self.version += 1;
    }
}
