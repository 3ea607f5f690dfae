//! The permit for large batches, which decompress to more than may be decompressed concurrently
//! with others: the broker decompresses one of them at a time, and no thread waits for it.
//!
//! The [`LargeBatchPermit`] is required to decompress a large batch. If it is taken, an append
//! stays in its partition's queue, which is queued here, and a look-up leaves its thread. Dropping
//! the permit passes it on, and starts a thread for a partition that gets it, so it cannot be
//! leaked. Appends and look-ups have a queue each, and the queues are served alternately: neither
//! kind can starve the other, and a holder that needs the permit again queues after the waiters.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use pykafka_forks::Mutex;
use tokio::sync::oneshot;

/// The state of the permit, and its queues.
#[derive(Default)]
pub(crate) struct LargeBatchPermits(Mutex<State>);

#[derive(Default)]
struct State {
    is_taken: bool,
    appends: VecDeque<Waiting>,
    look_ups: VecDeque<Waiting>,
    /// True if the permit was last passed to an append.
    append_was_last: bool,
}

/// A partition, as the queue of the permit uses it.
pub(in crate::partition) trait LargeAppends: Send + Sync {
    /// Passes the permit to the first append, if it is large; returns false if it is not needed any
    /// more.
    fn give_room(&self, room: &dyn Fn() -> LargeBatchPermit) -> bool;
}

enum Waiting {
    Append(Weak<dyn LargeAppends>),
    LookUp(oneshot::Sender<LargeBatchPermit>),
}

/// The permission to decompress a large batch; one per broker. Must not be dropped within a
/// critical section, because that starts another one.
pub struct LargeBatchPermit(Arc<LargeBatchPermits>);

impl LargeBatchPermits {
    /// Takes the permit if it is free; otherwise queues `partition` for it.
    pub(in crate::partition) fn take_or_wait(
        self: &Arc<Self>,
        partition: Weak<dyn LargeAppends>,
    ) -> Option<LargeBatchPermit> {
        let mut state = self.0.lock();
        if state.is_taken {
            state.appends.push_back(Waiting::Append(partition));
            return None;
        }
        state.is_taken = true;
        Some(LargeBatchPermit(self.clone()))
    }

    /// Waits for the permit for a look-up. Dropping the future leaves the queue.
    pub(crate) async fn wait(self: &Arc<Self>) -> LargeBatchPermit {
        let given = {
            let mut state = self.0.lock();
            if !std::mem::replace(&mut state.is_taken, true) {
                return LargeBatchPermit(self.clone());
            }
            let (sender, given) = oneshot::channel();
            state.look_ups.push_back(Waiting::LookUp(sender));
            given
        };
        given.await.expect("a waiter stays in the queue until it gets memory")
    }

    /// Takes the permit, for tests; `None` if it is taken.
    #[cfg(test)]
    pub(crate) fn take(self: &Arc<Self>) -> Option<LargeBatchPermit> {
        let was_taken = std::mem::replace(&mut self.0.lock().is_taken, true);
        (!was_taken).then(|| LargeBatchPermit(self.clone()))
    }

    /// Number of waiting partitions, and of waiting look-ups.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let state = self.0.lock();
        (state.appends.len(), state.look_ups.len())
    }

    /// Passes the permit to `waiting`; returns false if it is not needed there any more.
    fn give(self: &Arc<Self>, waiting: Waiting) -> bool {
        match waiting {
            Waiting::Append(partition) => partition
                .upgrade()
                .is_some_and(|partition| partition.give_room(&|| LargeBatchPermit(self.clone()))),
            // A look-up that ends now passes the permit on itself.
            Waiting::LookUp(sender) => {
                let is_needed = !sender.is_closed();
                if is_needed {
                    drop(sender.send(LargeBatchPermit(self.clone())));
                }
                is_needed
            }
        }
    }
}

impl State {
    /// The first of the queue whose turn it is, or of the other queue. If both are empty, the
    /// permit is free.
    fn next(&mut self) -> Option<Waiting> {
        let (first, second) = if self.append_was_last {
            (&mut self.look_ups, &mut self.appends)
        } else {
            (&mut self.appends, &mut self.look_ups)
        };
        let next = first.pop_front().or_else(|| second.pop_front());
        self.append_was_last = matches!(next, Some(Waiting::Append(_)));
        self.is_taken = next.is_some();
        next
    }
}

impl Drop for LargeBatchPermit {
    fn drop(&mut self) {
        loop {
            let next = self.0.0.lock().next();
            if next.is_none_or(|next| self.0.give(next)) {
                return;
            }
        }
    }
}
