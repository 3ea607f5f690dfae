//! The queue of work that needs the writer token. `P` is the partition.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::kafka_error::KafkaError;
use crate::partition::append::large_batches::LargeBatchPermit;
use crate::partition::append::queued::{Append, Queued};
use crate::partition::log::open_log::log_slot::LogSlot;
use crate::partition::waiters::AckWaiter;

/// Maximum bytes that are appended between two critical sections.
const ROUND_BYTES_MAX: usize = 4 << 20;

/// The permission to change the log's files: the writer token.
pub(crate) struct WriterToken(pub(super) ());

/// Work that needs the writer token; it gets an error if it cannot run.
pub(in crate::partition) type Command<P> =
    Box<dyn FnOnce(&P, Result<&WriterToken, KafkaError>) + Send>;

/// The work that waits for the writer token.
pub(in crate::partition) struct WorkQueue<P> {
    /// Queued appends. The first large one waits for `room`, and the appends after it wait too
    /// ([`crate::partition::append::large_batches`]).
    appends: VecDeque<Queued>,
    pub(super) room: Option<LargeBatchPermit>,
    at_work: Option<AtWork>,
    /// True if this partition waits for the permit.
    pub(super) is_listed: bool,
    /// Requests that wait for the log to open.
    pub(super) openers: Vec<oneshot::Sender<()>>,
    pub(super) commands: Vec<Command<P>>,
    /// The log of a deleted partition, whose files must be removed.
    pub(super) leaving: Option<Left>,
    /// True if retention must be enforced.
    pub(super) expires: bool,
    /// True if a thread has the writer token, or is about to get it.
    pub(super) is_taken: bool,
}

impl<P> Default for WorkQueue<P> {
    fn default() -> Self {
        WorkQueue {
            appends: VecDeque::new(),
            room: None,
            at_work: None,
            is_listed: false,
            openers: Vec::new(),
            commands: Vec::new(),
            leaving: None,
            expires: false,
            is_taken: false,
        }
    }
}

/// The appends that are being written.
enum AtWork {
    /// Arrival time of the first of them.
    Since(u64),
    /// A large append, which needs CPU time as well.
    Large,
}

/// The remains of a deleted partition.
pub(in crate::partition) struct Left {
    pub(in crate::partition) log: LogSlot,
    /// Dropped once the files are gone.
    pub(in crate::partition) _deletions: Arc<dyn Send + Sync>,
}

impl<P> WorkQueue<P> {
    /// Keeps a new partition from working until `Partition::begin_drain` is called for it.
    pub(in crate::partition) fn hold_back(&mut self) {
        self.is_taken = true;
    }

    /// True if an append does not have to wait for queued work.
    pub(in crate::partition) fn is_idle(&self) -> bool {
        self.appends.is_empty() && !self.is_taken
    }

    /// True if only the disk can make the queued appends slow.
    pub(super) fn is_quick(&self) -> bool {
        self.appends.iter().all(Queued::is_quick)
    }

    pub(in crate::partition) fn push(&mut self, append: Queued) {
        self.appends.push_back(append);
    }

    /// Puts appends back, in front of later ones.
    pub(in crate::partition) fn put_back(&mut self, appends: Vec<Queued>) {
        for append in appends.into_iter().rev() {
            self.appends.push_front(append);
        }
    }

    /// True if the first append is a large one.
    pub(super) fn is_large(&self) -> bool {
        self.appends.front().is_some_and(Queued::is_large)
    }

    /// True if an append can be written now.
    pub(super) fn has_appends(&self) -> bool {
        !self.appends.is_empty() && (self.room.is_some() || !self.is_large())
    }

    /// Takes the appends of a round; at least one, if any can be written. A large one is taken
    /// alone, so that those after it can still be removed.
    pub(super) fn take_appends(&mut self) -> Vec<Queued> {
        if self.is_large() {
            let count = usize::from(self.room.is_some());
            self.at_work = self.room.is_some().then_some(AtWork::Large);
            return self.appends.drain(..count).collect();
        }
        self.at_work = self.appends.front().map(|first| AtWork::Since(first.since_ns));
        let mut bytes = 0;
        let within = self.appends.iter().take_while(|queued| {
            let is_within = bytes < ROUND_BYTES_MAX && !queued.is_large();
            bytes += queued.append().batch.len();
            is_within
        });
        let count = within.count();
        self.appends.drain(..count).collect()
    }

    /// Records that the connection's thread starts to write an append.
    pub(in crate::partition) fn begin_work(&mut self, now_ns: u64) {
        self.at_work = Some(AtWork::Since(now_ns));
    }

    /// Records that the appends that were taken are written.
    pub(in crate::partition) fn end_work(&mut self) {
        self.at_work = None;
    }

    /// Arrival time of the append that has waited longest for the disk alone.
    pub(in crate::partition) fn waits_since_ns(&self) -> Option<u64> {
        match &self.at_work {
            Some(AtWork::Since(since_ns)) => Some(*since_ns),
            Some(AtWork::Large) => None,
            None => {
                let first = self.appends.front().filter(|first| !first.is_large());
                first.map(|first| first.since_ns)
            }
        }
    }

    /// Removes all appends; the caller reports that they are refused.
    pub(in crate::partition) fn refuse_appends(&mut self) -> impl Iterator<Item = Append> {
        mem::take(&mut self.appends).into_iter().map(Queued::into_append)
    }

    pub(in crate::partition) fn take_openers(&mut self) -> Vec<oneshot::Sender<()>> {
        mem::take(&mut self.openers)
    }

    pub(in crate::partition) fn take_commands(&mut self) -> Vec<Command<P>> {
        mem::take(&mut self.commands)
    }

    /// Schedules the removal of a deleted partition's files.
    pub(in crate::partition) fn leave(&mut self, left: Left) {
        self.leaving = Some(left);
    }

    /// Removes the appends of `waiter` and passes them to `note`.
    pub(in crate::partition) fn forget(
        &mut self,
        waiter: &Arc<dyn AckWaiter>,
        note: impl Fn(&Append),
    ) {
        self.appends.retain(|queued| {
            let is_forgotten = queued.is_of(waiter);
            if is_forgotten {
                note(queued.append());
            }
            !is_forgotten
        });
    }
}
