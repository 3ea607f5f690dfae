//! Descriptions of a log for the control plane: its size and its producers.

use std::sync::Arc;

use pykafka_log::ProducerEntry;

use super::partition_table::command::LogSizes;
use super::threads::lane::Urgency;
use super::{Partition, Survey};
use crate::kafka_error::KafkaError;
use crate::partition::work::queue::Writer;

impl Partition {
    /// Adds the size of the log to `sizes`, if it exists. A closed log stays closed, unless it
    /// needs recovery. Never waits: a thread that may wait for the disk reads unknown sizes.
    pub(super) fn tell_size(&self, sizes: &Arc<LogSizes>) {
        if let Some(log) = self.opened_log() {
            return sizes.add(self, log.size_bytes());
        }
        let survey = self.turn().survey;
        match survey {
            Some(Survey::Nothing) => {}
            Some(Survey::Done(survey, _)) => sizes.add(self, survey.size_bytes),
            Some(Survey::Unknown) | None => {
                let sizes = sizes.clone();
                self.command(Urgency::Asked, move |partition, writer| {
                    if let Some(size) = writer.ok().and_then(|writer| partition.size_bytes(writer))
                    {
                        sizes.add(partition, size);
                    }
                });
            }
        }
    }

    fn size_bytes(&self, writer: &Writer) -> Option<u64> {
        match self.unopened(writer) {
            Some(Survey::Done(survey, _)) => Some(survey.size_bytes),
            Some(Survey::Nothing) => None,
            Some(Survey::Unknown) | None => self.open_log(writer).ok().map(|log| log.size_bytes()),
        }
    }

    /// The log's state of each idempotent producer, on leaders and followers.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC_ID`, `KAFKA_STORAGE_ERROR`.
    pub(super) fn producers(&self, writer: &Writer) -> Result<Vec<ProducerEntry>, KafkaError> {
        Ok(self.open_log(writer)?.active_producers())
    }
}
