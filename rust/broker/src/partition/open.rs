//! Opening the log: by the first call that needs it, with what recovery found.

use std::sync::Arc;

use pykafka_log::{Log, OpenError};

use super::replication::Role;
use super::turn::Turn;
use super::{LogSlot, Survey};
use crate::kafka_error::KafkaError;
use crate::seam::event::PartitionStateKind;

impl Turn<'_> {
    /// What an unopened log has on disk, looked up once: nobody changes it while it is unopened.
    pub(super) fn survey(&mut self) -> Survey {
        if let Some(survey) = self.survey {
            return survey;
        }
        let partition = self.partition();
        let directory = &partition.host.directory;
        let survey = match directory.survey(&partition.topic, partition.index) {
            Some((survey, log_start_offset)) => Survey::Done(survey, log_start_offset),
            None if directory.has_partition(&partition.topic, partition.index) => Survey::Unknown,
            None => Survey::Nothing,
        };
        *self.survey.insert(survey)
    }

    pub(super) fn open_log(&mut self) -> Result<Arc<Log>, KafkaError> {
        match &self.log {
            LogSlot::Open(log) => Ok(log.clone()),
            LogSlot::Failed => Err(KafkaError::KafkaStorageError),
            LogSlot::Deleted => Err(KafkaError::UnknownTopicId),
            LogSlot::Unopened => self.open_log_now(),
        }
    }

    fn open_log_now(&mut self) -> Result<Arc<Log>, KafkaError> {
        let partition = self.partition();
        let (directory, topic, index) =
            (&partition.host.directory, &partition.topic, partition.index);
        let opened = directory.open_log(topic, index, partition.topic_id, self.config.clone());
        let (log, recovery) = match opened {
            Ok(opened) => opened,
            // Without space for what recovery rebuilds or without a descriptor, the log stays unopened; the next use
            // tries again.
            Err(OpenError::Storage(error)) if error.is_refusal() => {
                return Err(self.storage_failed(&error));
            }
            Err(error) => return Err(self.fail(&error.to_string())),
        };
        partition.report_recovery(&recovery);
        if let Some(damage) = &recovery.damage {
            self.report(PartitionStateKind::ReadOnly, damage.offset(), damage.to_string());
        }
        // What recovery found was written before; it is synced once, here, so that reading it breaks no promise.
        if recovery.damage.is_none() && self.syncs_every_append() {
            let flushed = log.flush();
            self.stored(flushed)?;
        }
        self.log = LogSlot::Open(log.clone());
        let ends = self.ends(&log);
        match directory.high_watermark(topic, index) {
            Some(checkpoint) => self.replication.restore_high_watermark(checkpoint, ends),
            None => self.replication.log_start_advanced(ends),
        }
        if self.replication.role() == Role::Leader {
            self.begin_leader_epoch(&log)?;
        }
        self.progress(&log);
        log.on_high_watermark_updated(self.replication.high_watermark());
        debug_assert!(self.waiters.is_empty(), "nobody waits on a log that was never opened");
        Ok(log)
    }

    /// Writes the leader epoch at the log end before any append of it (contract/replication.md#8).
    pub(super) fn begin_leader_epoch(&mut self, log: &Log) -> Result<(), KafkaError> {
        let epoch = self.replication.assignment().leader_epoch;
        let log_end_offset = log.log_end_offset();
        if !log.is_read_only() {
            match log.assign_epoch(epoch, log_end_offset) {
                // It is stored before the first append, which needs space too; until then there is reading to serve.
                Err(error) if error.is_refusal() => {
                    self.storage_failed(&error);
                }
                assigned => self.stored(assigned)?,
            }
        }
        self.replication.begin_leader_epoch(log_end_offset);
        Ok(())
    }
}
