//! Partitions that are being removed, by name: a new partition of the same name accesses no file
//! before the directory of its predecessors is gone.

pub(super) mod names;

use std::collections::hash_map::Entry;
use std::sync::Arc;

use self::names::{PendingDeletions, Successors};
use super::threads::background::Urgency;
use super::{Host, Partition};

/// Partitions of a topic that are being removed; at least one of them is not removed yet.
pub(super) type Gone = names::Gone<Partition>;

/// The deletions of one step. They become durable together, with the checkpoints that omit them,
/// after the last of them has renamed its directory. Otherwise a topic that is created again could
/// seem to lack records of its predecessor, whichever process removes the renamed directories.
pub(super) struct Deletions(pub(super) Arc<Host>);

impl Drop for Deletions {
    fn drop(&mut self) {
        let host = self.0.clone();
        self.0.background.push(Urgency::Asked, move |_| {
            if let Err(error) = host.directory.checkpoint(&[]) {
                host.report_failed(&error);
            }
        });
    }
}

impl PendingDeletions<Partition> {
    /// Marks the partitions of these topics as being removed, each until [`PendingDeletions::end`].
    /// The cost depends on the number of topics, not of partitions.
    pub(super) fn begin(&self, topics: &[Gone]) {
        let mut names = self.0.lock();
        for gone in topics {
            if let Some(first) = gone.1.iter().next() {
                names.entry(first.topic.clone()).or_default().leaving.push(gone.clone());
            }
        }
    }

    /// Keeps a new partition from working until [`PendingDeletions::end`] returns it, if its name
    /// is still in use.
    pub(super) fn enter(&self, partition: &Arc<Partition>) {
        let mut names = self.0.lock();
        let Some(successors) = names.get_mut(&*partition.topic) else { return };
        let index = partition.index;
        if successors.leaving.iter().any(|(_, partitions)| partitions.get(index).is_some()) {
            partition.lock().queue.hold_back();
            successors.waiting.entry(index).or_default().push_back(partition.clone());
        }
    }

    /// Records that `partition` is removed. Returns the partition that may work now, if any; the
    /// caller must start it.
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

impl Successors<Partition> {
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
