//! Partitions on their way out, by name: one that is made under the same name works on no file before its predecessors'
//! directory is gone.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use super::lane::Urgency;
use super::{Host, LogSlot, Partition};

/// See the module.
#[derive(Default)]
pub(crate) struct Leaving(Mutex<HashMap<(Arc<str>, i32), Line>>);

/// Who leaves, and who comes after.
#[derive(Default)]
struct Line {
    leaving: usize,
    waiting: VecDeque<Arc<Partition>>,
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
    /// These leave from now on, until [`Leaving::end`].
    pub(super) fn begin(&self, partitions: &[Arc<Partition>]) {
        let mut lines = self.0.lock();
        for partition in partitions {
            lines.entry(partition.name()).or_default().leaving += 1;
        }
    }

    /// Lets a new partition work on nothing before [`Leaving::end`] returns it, if its name is still taken.
    pub(super) fn enter(&self, partition: &Arc<Partition>) {
        if let Some(line) = self.0.lock().get_mut(&partition.name()) {
            partition.turn().queue.hold_back();
            line.waiting.push_back(partition.clone());
        }
    }

    /// `partition` has left; returns who need not wait any longer, to be sent to work.
    pub(super) fn end(&self, partition: &Partition) -> Option<Arc<Partition>> {
        let mut lines = self.0.lock();
        let Entry::Occupied(mut line) = lines.entry(partition.name()) else { return None };
        line.get_mut().leaving -= 1;
        let next = line.get_mut().waiting.pop_front();
        if line.get().leaving == 0 && line.get().waiting.is_empty() {
            line.remove();
        }
        next
    }
}
