//! Appends that inflate to more than may do so beside others: one of the broker is validated at a time, and no thread waits
//! for it.
//!
//! Whoever validates one holds the [`LargeRoom`]. An append that finds it taken stays in its partition's queue, which is
//! listed here; dropping the room hands it to the partition that was listed first, and sends a thread there. So nobody can
//! forget to pass it on, and a partition that has just had it comes after those that wait.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::Partition;

/// Who has the room, and who waits for it.
#[derive(Default)]
pub(crate) struct LargeRooms(Mutex<State>);

#[derive(Default)]
struct State {
    is_taken: bool,
    waiting: VecDeque<Weak<Partition>>,
}

/// The right to validate a large append. There is one of a broker. Never dropped within a turn: that begins another.
pub(crate) struct LargeRoom(Arc<LargeRooms>);

impl LargeRooms {
    /// The room, if it is free; else `partition` is given it when it is first in the list.
    pub(super) fn take_or_wait(self: &Arc<Self>, partition: &Partition) -> Option<LargeRoom> {
        let mut state = self.0.lock();
        if state.is_taken {
            state.waiting.push_back(partition.me.clone());
            return None;
        }
        state.is_taken = true;
        Some(LargeRoom(self.clone()))
    }

    /// Takes the room, for tests; `None` if it is taken.
    #[cfg(test)]
    pub(crate) fn take(self: &Arc<Self>) -> Option<LargeRoom> {
        let was_taken = std::mem::replace(&mut self.0.lock().is_taken, true);
        (!was_taken).then(|| LargeRoom(self.clone()))
    }

    /// Partitions that are listed.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.0.lock().waiting.len()
    }

    /// The first that waits; without one the room is free.
    fn next(&self) -> Option<Weak<Partition>> {
        let mut state = self.0.lock();
        let next = state.waiting.pop_front();
        state.is_taken = next.is_some();
        next
    }
}

impl Drop for LargeRoom {
    fn drop(&mut self) {
        while let Some(next) = self.0.next() {
            let is_given = |partition: Arc<Partition>| {
                partition.turn().give_room(|| LargeRoom(self.0.clone()))
            };
            if next.upgrade().is_some_and(is_given) {
                return;
            }
        }
    }
}
