//! Opens the log when it is first needed, and processes the result of recovery.

pub(in crate::partition) mod log_slot;

use std::sync::Arc;

use pykafka_log::{Dirtiness, Log, LogConfig, OpenError, Recovery};

use crate::control_api::event::faults::LogFault;
use crate::kafka_error::KafkaError;
use crate::partition::log::open_log::log_slot::LogSlot;
use crate::partition::replication::Role;
use crate::partition::threads::may_wait::MayWait;
use crate::partition::write_queue::queue::WriterToken;
use crate::partition::{Partition, Survey};

impl Partition {
    /// Returns the log, and opens it if necessary. May wait for the disk.
    ///
    /// # Errors
    /// `KAFKA_STORAGE_ERROR`, or `UNKNOWN_TOPIC_ID` once deleted.
    pub(crate) fn log(&self, may_wait: &MayWait) -> Result<Arc<Log>, KafkaError> {
        match self.opened_log() {
            Some(log) => Ok(log),
            None => self.with_writer(may_wait, Partition::open_log),
        }
    }

    /// Reports the faults that an open of an unopened log would find, so that they are known before
    /// a client needs it. Changes nothing. Another open of the log waits for it.
    pub(crate) fn inspect(&self, may_wait: &MayWait) {
        // A deleted log needs no inspection.
        let _ = self.with_writer(may_wait, |partition, writer| {
            partition.inspect_unopened(writer);
            Ok(())
        });
    }

    fn inspect_unopened(&self, writer: &WriterToken) {
        let guard = self.lock();
        if !matches!(guard.log, LogSlot::Unopened) {
            return;
        }
        let config = guard.config.clone();
        drop(guard);
        let found = self.host.directory.inspect(&self.topic, self.index, self.topic_id, config);
        let (fault, reason) = match found {
            Ok(Some(damage)) => (LogFault::ReadOnly, damage.to_string()),
            Err(OpenError::Storage(error)) if error.is_refusal() => return,
            Err(error) => (LogFault::Offline, error.to_string()),
            Ok(None) => return self.inspect_unreadable(writer),
        };
        let mut guard = self.lock();
        if matches!(guard.log, LogSlot::Unopened) {
            guard.change_faults(|faults| faults.begin(fault, reason));
        }
    }

    /// Opens a log that had an unreadable batch in an earlier run.
    fn inspect_unreadable(&self, writer: &WriterToken) {
        if self.host.directory.is_unreadable(&self.topic, self.index) {
            // The error was reported where it occurred.
            let _ = self.open_log(writer);
        }
    }

    /// Returns the survey of a log that is not open.
    pub(in crate::partition) fn unopened(&self, writer: &WriterToken) -> Option<Survey> {
        let is_unopened = matches!(self.lock().log, LogSlot::Unopened);
        is_unopened.then(|| self.survey(writer))
    }

    /// Surveys an unopened log on disk, only once, because it does not change while it is unopened.
    fn survey(&self, _writer: &WriterToken) -> Survey {
        if let Some(survey) = self.lock().survey {
            return survey;
        }
        let directory = &self.host.directory;
        let survey = match directory.survey(&self.topic, self.index) {
            Some((survey, log_start_offset)) => Survey::Done(survey, log_start_offset),
            None if directory.has_partition(&self.topic, self.index) => Survey::Unknown,
            None => Survey::Nothing,
        };
        *self.lock().survey.insert(survey)
    }

    /// Estimates the bytes that a compaction could clean in a log that is not open. `None` if it is
    /// open, or must be opened for the estimate.
    pub(in crate::partition) fn dirtiness_on_disk(&self, may_wait: &MayWait) -> Option<Dirtiness> {
        if self.opened_log().is_some() {
            return None;
        }
        let survey =
            |partition: &Partition, writer: &WriterToken| Ok(partition.survey_dirtiness(writer));
        self.with_writer(may_wait, survey).ok()?
    }

    /// The result is kept until the settings change.
    fn survey_dirtiness(&self, writer: &WriterToken) -> Option<Dirtiness> {
        match self.unopened(writer)? {
            Survey::Nothing => return Some(Dirtiness::default()),
            Survey::Unknown => return None,
            Survey::Done(..) => {}
        }
        let guard = self.lock();
        if guard.dirtiness_on_disk.is_some() {
            return guard.dirtiness_on_disk;
        }
        let config = guard.config.clone();
        drop(guard);
        let found = self.host.directory.survey_dirtiness(&self.topic, self.index, &config);
        let mut guard = self.lock();
        if Arc::ptr_eq(&guard.config, &config) {
            guard.dirtiness_on_disk = found;
        }
        found
    }

    /// See [`Partition::log`]. The log is not served before all of this is done.
    pub(in crate::partition) fn open_log(
        &self,
        writer: &WriterToken,
    ) -> Result<Arc<Log>, KafkaError> {
        let config = {
            let guard = self.lock();
            match &guard.log {
                LogSlot::Open(log) => return Ok(log.clone()),
                LogSlot::Failed => return Err(KafkaError::KafkaStorageError),
                LogSlot::Left(departure) => return Err(departure.error()),
                LogSlot::Unopened => guard.config.clone(),
            }
        };
        let opened = self.open_unopened(config, writer);
        // Requests to a failed or deleted log do not read this flag.
        self.lock().is_opening_refused = opened.is_err();
        opened
    }

    fn open_unopened(
        &self,
        config: Arc<LogConfig>,
        writer: &WriterToken,
    ) -> Result<Arc<Log>, KafkaError> {
        let directory = &self.host.directory;
        let (log, recovery) = match self.open_files(config) {
            Ok(opened) => opened,
            // If there is no space for the files that recovery rebuilds, or no file descriptor, the
            // log stays unopened, and its next use retries.
            Err(OpenError::Storage(error)) if error.is_refusal() => {
                return Err(self.lock().storage_failed(&error));
            }
            Err(error) => return Err(self.lock().fail(&error.to_string())),
        };
        self.report_recovery(&recovery);
        let damage = recovery.damage.as_ref().map(ToString::to_string);
        self.lock().change_faults(|faults| faults.opened(damage));
        // Recovered records were written in an earlier run. They are synced once, here, before they
        // can be read.
        if recovery.damage.is_none() && self.lock().syncs_every_append() {
            let flushed = log.flush();
            self.lock().stored(flushed)?;
        }
        let high_watermark = directory.high_watermark(&self.topic, self.index);
        self.begin_leader_epoch(&log, writer)?;
        self.publish(&log, high_watermark)?;
        Ok(log)
    }

    /// Opens the log. If the directory belongs to another topic, it is renamed to a stray first. A
    /// deleted topic of that name, whose directory a power failure may have restored, leaves an
    /// empty log; records of this topic that should be there are reported as lost.
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

    /// Serves the log from now on.
    fn publish(&self, log: &Arc<Log>, high_watermark: Option<i64>) -> Result<(), KafkaError> {
        let mut guard = self.lock();
        match guard.log {
            LogSlot::Unopened => guard.log = LogSlot::Open(log.clone()),
            LogSlot::Left(departure) => {
                log.discard();
                return Err(departure.error());
            }
            // The directory will close it.
            LogSlot::Open(_) | LogSlot::Failed => return Err(KafkaError::KafkaStorageError),
        }
        log.update_config(guard.config.clone());
        let ends = guard.ends(log);
        match high_watermark {
            Some(checkpoint) => guard.replication.restore_high_watermark(checkpoint, ends),
            None => guard.replication.log_start_advanced(ends),
        }
        guard.progress(log);
        log.on_high_watermark_updated(guard.replication.high_watermark());
        guard.touch();
        guard.check_unreadable();
        Ok(())
    }

    /// Writes the leader epoch at the log end offset, before any append in this epoch
    /// (contract/replication.md#8).
    pub(in crate::partition) fn begin_leader_epoch(
        &self,
        log: &Log,
        _writer: &WriterToken,
    ) -> Result<(), KafkaError> {
        let (epoch, log_end_offset, is_newest) = {
            let mut guard = self.lock();
            if guard.replication.role() != Role::Leader {
                return Ok(());
            }
            let log_end_offset = log.log_end_offset();
            guard.replication.begin_leader_epoch(log_end_offset);
            let epoch = guard.replication.assignment().leader_epoch;
            (epoch, log_end_offset, guard.replication.is_newest_epoch(log.latest_epoch()))
        };
        if log.is_read_only() || !is_newest {
            return Ok(());
        }
        match log.assign_epoch(epoch, log_end_offset) {
            // The epoch is stored before the first append, which needs space too; until then, the
            // log can be read.
            Err(error) if error.is_refusal() => {
                self.lock().storage_failed(&error);
                Ok(())
            }
            assigned => self.lock().stored(assigned),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pykafka_log::Durability;

    use crate::control_api::event::faults::LogFault;
    use crate::partition::threads::may_wait::MayWait;
    use crate::testing::gate_disk::Op;
    use crate::testing::{Broker, TOPIC, batch};

    #[test]
    fn a_log_that_opens_after_a_failed_inspection_has_no_fault() {
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

    /// The leader had an empty log, and its followers truncated theirs to 0.
    #[test]
    fn a_leader_with_the_directory_of_another_topic_is_read_only() {
        let broker = Broker::on_disk(Durability::Fsync).with_topic(1, &[]);
        broker.append_waiting(&batch(&["a"]));
        broker.ctx.partitions.close(&MayWait::as_documented());
        let disk = broker.ctx.partitions.host().directory.disk().clone();
        let path = Path::new("/data/t-0/partition.metadata");
        let other = b"version: 0\ntopic_id: CAgICAgICAgICAgICAgICA";
        disk.write_atomically(path, other).unwrap();
        let broker = broker.killed_and_restarted(Durability::Fsync).with_topic(1, &[]);
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        let may_wait = MayWait::as_documented();
        partition.inspect(&may_wait);
        assert_eq!(broker.faults(), [vec![LogFault::ReadOnly]]);
        let log = partition.log(&may_wait).unwrap();
        assert_eq!((log.log_end_offset(), log.is_read_only()), (0, true));
        assert!(broker.faults().is_empty(), "the fault of the inspection remains");
        assert!(!disk.exists(path), "it is a stray");
    }
}
