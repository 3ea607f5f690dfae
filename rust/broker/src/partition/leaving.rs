//! Partitions on their way out, by name: one that is made under the same name works on no file before its predecessors'
//! directory is gone.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use pykafka_forks::Mutex;

use super::threads::lane::Urgency;
use super::{Host, LogSlot, Partition};
use crate::kafka_error::KafkaError;
use crate::seam::image::TopicId;
use crate::seam::shared::Pages;

/// See the module.
#[derive(Default)]
pub(crate) struct Leaving(Mutex<HashMap<Arc<str>, Successors>>);

/// Partitions of a topic that leave; some of them have not left.
pub(super) type Gone = (TopicId, Pages<Arc<Partition>>);

/// Why this broker does not hold a partition any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Departure {
    /// The topic is deleted.
    Deleted,
    /// Only other brokers are its replicas now.
    Moved,
}

impl Departure {
    /// The error of requests to the partition, as in `ReplicaManager.getPartitionOrError` of Kafka.
    pub(super) fn error(self) -> KafkaError {
        match self {
            Departure::Deleted => KafkaError::UnknownTopicId,
            Departure::Moved => KafkaError::NotLeaderOrFollower,
        }
    }
}

/// Topics of one name.
#[derive(Default)]
struct Successors {
    /// Who has not left yet, by topic.
    leaving: Vec<Gone>,
    /// Who comes after, by index.
    waiting: HashMap<i32, VecDeque<Arc<Partition>>>,
}

/// What a deleted partition leaves behind.
pub(super) struct Left {
    pub(super) log: LogSlot,
    /// Given back once the files are gone.
    pub(super) _deletions: Arc<Deletions>,
}

/// The deletions of one step. They are made durable together, by the checkpoints that forget them, once the last of them
/// has renamed its directory: a topic that is created again must not be missed records of its predecessor, whoever removes
/// the renamed directories.
pub(super) struct Deletions(pub(super) Arc<Host>);

impl Drop for Deletions {
    fn drop(&mut self) {
        let host = self.0.clone();
        self.0.lane.push(Urgency::Asked, move |_| {
            if let Err(error) = host.directory.checkpoint(&[]) {
                host.report_failed(&error);
            }
        });
    }
}

impl Leaving {
    /// The partitions of these topics leave from now on, each until [`Leaving::end`]. Costs what the topics are, not what
    /// partitions they have.
    pub(super) fn begin(&self, topics: &[Gone]) {
        let mut names = self.0.lock();
        for gone in topics {
            if let Some(first) = gone.1.iter().next() {
                names.entry(first.topic.clone()).or_default().leaving.push(gone.clone());
            }
        }
    }

    /// Lets a new partition work on nothing before [`Leaving::end`] returns it, if its name is still taken.
    pub(super) fn enter(&self, partition: &Arc<Partition>) {
        let mut names = self.0.lock();
        let Some(successors) = names.get_mut(&*partition.topic) else { return };
        let index = partition.index;
        if successors.leaving.iter().any(|(_, partitions)| partitions.get(index).is_some()) {
            partition.turn().queue.hold_back();
            successors.waiting.entry(index).or_default().push_back(partition.clone());
        }
    }

    /// `partition` has left; returns who need not wait any longer, to be sent to work.
    pub(super) fn end(&self, partition: &Partition) -> Option<Arc<Partition>> {
        let mut names = self.0.lock();
        let Entry::Occupied(mut entry) = names.entry(partition.topic.clone()) else { return None };
        let next = entry.get_mut().end(partition);
        if entry.get().leaving.is_empty() && entry.get().waiting.is_empty() {
            entry.remove();
        }
        next
    }
}

impl Successors {
    fn end(&mut self, partition: &Partition) -> Option<Arc<Partition>> {
        let index = partition.index;
        let place = self.leaving.iter().position(|(id, partitions)| {
            *id == partition.topic_id && partitions.get(index).is_some()
        })?;
        let (_, partitions) = self.leaving.get_mut(place)?;
        partitions.remove(index);
        if partitions.is_empty() {
            self.leaving.remove(place);
        }
        let Entry::Occupied(mut waiting) = self.waiting.entry(index) else { return None };
        let next = waiting.get_mut().pop_front();
        if waiting.get().is_empty() {
            waiting.remove();
        }
        next
    }
}
