//! Opening the log: by the first call that needs it, with what recovery found.

use std::sync::Arc;

use pykafka_log::{Dirtiness, Log, LogConfig, OpenError, Recovery};

use super::replication::Role;
use super::threads::pool::MayWait;
use super::work::Writer;
use super::{LogSlot, Partition, Survey};
use crate::kafka_error::KafkaError;
use crate::seam::event::faults::LogFault;

impl Partition {
    /// The log, opened. May wait for the disk.
    ///
    /// # Errors
    /// `KAFKA_STORAGE_ERROR`, or `UNKNOWN_TOPIC_ID` once deleted.
    pub(crate) fn log(&self, may_wait: &MayWait) -> Result<Arc<Log>, KafkaError> {
        match self.opened_log() {
            Some(log) => Ok(log),
            None => self.with_writer(may_wait, Partition::open_log),
        }
    }

    /// Reports what an open would find wrong with a log that is not open, so that no client is the first to meet it.
    /// Nothing is changed. Whoever opens the log meanwhile waits, as for another open.
    pub(crate) fn inspect(&self, may_wait: &MayWait) {
        // A deleted one needs no inspection.
        let _ = self.with_writer(may_wait, |partition, writer| {
            partition.inspect_unopened(writer);
            Ok(())
        });
    }

    fn inspect_unopened(&self, writer: &Writer) {
        let turn = self.turn();
        if !matches!(turn.log, LogSlot::Unopened) {
            return;
        }
        let config = turn.config.clone();
        drop(turn);
        let found = self.host.directory.inspect(&self.topic, self.index, self.topic_id, config);
        let (fault, reason) = match found {
            Ok(Some(damage)) => (LogFault::ReadOnly, damage.to_string()),
            Err(OpenError::Storage(error)) if error.is_refusal() => return,
            Err(error) => (LogFault::Offline, error.to_string()),
            Ok(None) => return self.inspect_unreadable(writer),
        };
        let mut turn = self.turn();
        if matches!(turn.log, LogSlot::Unopened) {
            turn.change_faults(|faults| faults.begin(fault, reason));
        }
    }

    /// Opens a log in which an earlier run met a batch that it could not read.
    fn inspect_unreadable(&self, writer: &Writer) {
        if self.host.directory.is_unreadable(&self.topic, self.index) {
            // An error was reported where it arose.
            let _ = self.open_log(writer);
        }
    }

    /// What is known of a log that is there and not open.
    pub(super) fn unopened(&self, writer: &Writer) -> Option<Survey> {
        let is_unopened = matches!(self.turn().log, LogSlot::Unopened);
        is_unopened.then(|| self.survey(writer))
    }

    /// What an unopened log has on disk, looked up once: nobody changes it while it is unopened.
    fn survey(&self, _writer: &Writer) -> Survey {
        if let Some(survey) = self.turn().survey {
            return survey;
        }
        let directory = &self.host.directory;
        let survey = match directory.survey(&self.topic, self.index) {
            Some((survey, log_start_offset)) => Survey::Done(survey, log_start_offset),
            None if directory.has_partition(&self.topic, self.index) => Survey::Unknown,
            None => Survey::Nothing,
        };
        *self.turn().survey.insert(survey)
    }

    /// How much a compaction might clean of a log that is not open. `None` if it is open, or must be
    /// opened for an answer.
    pub(super) fn dirtiness_on_disk(&self, may_wait: &MayWait) -> Option<Dirtiness> {
        if self.opened_log().is_some() {
            return None;
        }
        let survey =
            |partition: &Partition, writer: &Writer| Ok(partition.survey_dirtiness(writer));
        self.with_writer(may_wait, survey).ok()?
    }

    /// The result is kept until the settings change.
    fn survey_dirtiness(&self, writer: &Writer) -> Option<Dirtiness> {
        match self.unopened(writer)? {
            Survey::Nothing => return Some(Dirtiness::default()),
            Survey::Unknown => return None,
            Survey::Done(..) => {}
        }
        let turn = self.turn();
        if turn.dirtiness_on_disk.is_some() {
            return turn.dirtiness_on_disk;
        }
        let config = turn.config.clone();
        drop(turn);
        let found = self.host.directory.survey_dirtiness(&self.topic, self.index, &config);
        let mut turn = self.turn();
        if Arc::ptr_eq(&turn.config, &config) {
            turn.dirtiness_on_disk = found;
        }
        found
    }

    /// As [`Partition::log`]. Nobody serves from the log before all of this is done.
    pub(super) fn open_log(&self, writer: &Writer) -> Result<Arc<Log>, KafkaError> {
        let config = {
            let turn = self.turn();
            match &turn.log {
                LogSlot::Open(log) => return Ok(log.clone()),
                LogSlot::Failed => return Err(KafkaError::KafkaStorageError),
                LogSlot::Left(departure) => return Err(departure.error()),
                LogSlot::Unopened => turn.config.clone(),
            }
        };
        let opened = self.open_unopened(config, writer);
        // Of a log that failed or was deleted nobody asks.
        self.turn().is_opening_refused = opened.is_err();
        opened
    }

    fn open_unopened(
        &self,
        config: Arc<LogConfig>,
        writer: &Writer,
    ) -> Result<Arc<Log>, KafkaError> {
        let directory = &self.host.directory;
        let (log, recovery) = match self.open_files(config) {
            Ok(opened) => opened,
            // Without space for what recovery rebuilds or without a descriptor, the log stays unopened; the next use
            // tries again.
            Err(OpenError::Storage(error)) if error.is_refusal() => {
                return Err(self.turn().storage_failed(&error));
            }
            Err(error) => return Err(self.turn().fail(&error.to_string())),
        };
        self.report_recovery(&recovery);
        let damage = recovery.damage.as_ref().map(ToString::to_string);
        self.turn().change_faults(|faults| faults.opened(damage));
        // What recovery found was written before; it is synced once, here, so that reading it breaks no promise.
        if recovery.damage.is_none() && self.turn().syncs_every_append() {
            let flushed = log.flush();
            self.turn().stored(flushed)?;
        }
        let high_watermark = directory.high_watermark(&self.topic, self.index);
        self.begin_leader_epoch(&log, writer)?;
        self.publish(&log, high_watermark)?;
        Ok(log)
    }

    /// Opens the log. The directory of another topic of that name, which a power cut may have brought back, makes way.
    fn open_files(&self, config: Arc<LogConfig>) -> Result<(Arc<Log>, Recovery), OpenError> {
        let (directory, topic, index) = (&self.host.directory, &*self.topic, self.index);
        let opened = directory.open_log(topic, index, self.topic_id, config.clone());
        if !matches!(opened, Err(OpenError::TopicIdMismatch { .. })) {
            return opened;
        }
        directory.mark_stray(topic, index)?;
        self.host.report_stray(topic, index);
        directory.open_log(topic, index, self.topic_id, config)
    }

    /// Serves from `log` from now on.
    fn publish(&self, log: &Arc<Log>, high_watermark: Option<i64>) -> Result<(), KafkaError> {
        let mut turn = self.turn();
        match turn.log {
            LogSlot::Unopened => turn.log = LogSlot::Open(log.clone()),
            LogSlot::Left(departure) => {
                log.discard();
                return Err(departure.error());
            }
            // Its directory closes it.
            LogSlot::Open(_) | LogSlot::Failed => return Err(KafkaError::KafkaStorageError),
        }
        log.update_config(turn.config.clone());
        let ends = turn.ends(log);
        match high_watermark {
            Some(checkpoint) => turn.replication.restore_high_watermark(checkpoint, ends),
            None => turn.replication.log_start_advanced(ends),
        }
        turn.progress(log);
        log.on_high_watermark_updated(turn.replication.high_watermark());
        turn.touch();
        turn.check_unreadable();
        Ok(())
    }

    /// Writes the leader epoch at the log end before any append of it (contract/replication.md#8).
    pub(super) fn begin_leader_epoch(&self, log: &Log, _writer: &Writer) -> Result<(), KafkaError> {
        let (epoch, log_end_offset, is_newest) = {
            let mut turn = self.turn();
            if turn.replication.role() != Role::Leader {
                return Ok(());
            }
            let log_end_offset = log.log_end_offset();
            turn.replication.begin_leader_epoch(log_end_offset);
            let epoch = turn.replication.assignment().leader_epoch;
            (epoch, log_end_offset, turn.replication.is_newest_epoch(log.latest_epoch()))
        };
        if log.is_read_only() || !is_newest {
            return Ok(());
        }
        match log.assign_epoch(epoch, log_end_offset) {
            // It is stored before the first append, which needs space too; until then there is reading to serve.
            Err(error) if error.is_refusal() => {
                self.turn().storage_failed(&error);
                Ok(())
            }
            assigned => self.turn().stored(assigned),
        }
    }
}

#[cfg(test)]
mod tests {
    use pykafka_log::Durability;

    use crate::partition::threads::pool::MayWait;
    use crate::seam::event::faults::LogFault;
    use crate::testing::gate_disk::Op;
    use crate::testing::{Broker, TOPIC, batch};

    #[test]
    fn a_log_that_opens_after_its_inspection_failed_has_no_fault() {
        let broker = Broker::on_disk(Durability::Fsync).with_topic(1, &[]);
        broker.append_waiting(&batch(&["a"]));
        let broker = broker.stopped_and_restarted(Durability::Fsync).with_topic(1, &[]);
        let (may_wait, directory) = (MayWait::as_documented(), "/data/t-0");
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        broker.gate.fail_at(Op::Read, directory);
        partition.inspect(&may_wait);
        assert_eq!(broker.faults(), [vec![LogFault::Offline]]);
        broker.gate.heal();
        partition.log(&may_wait).unwrap();
        assert_eq!(broker.faults(), [vec![]]);
    }
}
