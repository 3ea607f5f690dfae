//! Descriptions of a log for the control plane: its size and its producers.

use std::sync::Arc;

use pykafka_forks::Mutex;
use pykafka_log::ProducerEntry;

use crate::control_api::event::queue::EventQueue;
use crate::control_api::event::{Event, Token};
use crate::control_api::image::TopicId;
use crate::kafka_error::KafkaError;
use crate::partition::threads::background::Urgency;
use crate::partition::write_queue::queue::WriterToken;
use crate::partition::{Partition, Survey};

/// Collects sizes, and reports them when the last reference is dropped.
pub(in crate::partition) struct LogSizes {
    pub(in crate::partition) events: Arc<EventQueue>,
    pub(in crate::partition) token: Token,
    pub(in crate::partition) space: (i64, i64),
    pub(in crate::partition) sizes: Mutex<Vec<(TopicId, i32, u64)>>,
}

impl LogSizes {
    fn add(&self, partition: &Partition, size_bytes: u64) {
        self.sizes.lock().push((partition.topic_id, partition.index, size_bytes));
    }
}

impl Drop for LogSizes {
    fn drop(&mut self) {
        let (total_bytes, usable_bytes) = self.space;
        let sizes = std::mem::take(&mut *self.sizes.lock());
        let token = self.token;
        self.events.push(Event::LogDirs { token, sizes, total_bytes, usable_bytes });
    }
}

impl Partition {
    /// Adds the size of the log to `sizes`, if it exists. A closed log stays closed, unless it
    /// needs recovery. Never waits: a thread that may wait for the disk reads unknown sizes.
    pub(in crate::partition) fn tell_size(&self, sizes: &Arc<LogSizes>) {
        if let Some(log) = self.opened_log() {
            return sizes.add(self, log.size_bytes());
        }
        let survey = self.lock().survey;
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

    fn size_bytes(&self, writer: &WriterToken) -> Option<u64> {
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
    pub(in crate::partition) fn producers(
        &self,
        writer: &WriterToken,
    ) -> Result<Vec<ProducerEntry>, KafkaError> {
        Ok(self.open_log(writer)?.active_producers())
    }
}
