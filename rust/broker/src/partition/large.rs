//! The room for batches that inflate to more than may do so beside others: one of the broker is inflated at a time, and no
//! thread waits for it.
//!
//! Whoever inflates one holds the [`LargeRoom`]. An append that finds it taken stays in its partition's queue, which is
//! listed here, and a look-up leaves its thread; dropping the room hands it on, and sends a thread to a partition that gets
//! it. So nobody can forget to pass it on. Appends and look-ups have a line each, which are served in turn: neither kind can
//! keep the other waiting, and who has just had the room comes after those that wait.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use pykafka_forks::Mutex;
use tokio::sync::oneshot;

use super::Partition;

/// Who has the room, and who waits for it.
#[derive(Default)]
pub(crate) struct LargeRooms(Mutex<State>);

#[derive(Default)]
struct State {
    is_taken: bool,
    appends: VecDeque<Waiting>,
    look_ups: VecDeque<Waiting>,
    /// Whether the last of those who waited was an append.
    append_was_last: bool,
}

enum Waiting {
    Append(Weak<Partition>),
    LookUp(oneshot::Sender<LargeRoom>),
}

/// The right to inflate a large batch. There is one of a broker. Never dropped within a turn: that begins another.
pub struct LargeRoom(Arc<LargeRooms>);

impl LargeRooms {
    /// The room, if it is free; else `partition` is given it when it is first in its line.
    pub(super) fn take_or_wait(self: &Arc<Self>, partition: &Partition) -> Option<LargeRoom> {
        let mut state = self.0.lock();
        if state.is_taken {
            state.appends.push_back(Waiting::Append(partition.me.clone()));
            return None;
        }
        state.is_taken = true;
        Some(LargeRoom(self.clone()))
    }

    /// The room for a look-up, as soon as it is first in its line. Dropping the future leaves the line.
    pub(crate) async fn wait(self: &Arc<Self>) -> LargeRoom {
        let given = {
            let mut state = self.0.lock();
            if !std::mem::replace(&mut state.is_taken, true) {
                return LargeRoom(self.clone());
            }
            let (sender, given) = oneshot::channel();
            state.look_ups.push_back(Waiting::LookUp(sender));
            given
        };
        given.await.expect("who waits is in the line until it is given the room")
    }

    /// Takes the room, for tests; `None` if it is taken.
    #[cfg(test)]
    pub(crate) fn take(self: &Arc<Self>) -> Option<LargeRoom> {
        let was_taken = std::mem::replace(&mut self.0.lock().is_taken, true);
        (!was_taken).then(|| LargeRoom(self.clone()))
    }

    /// How many wait: partitions, and look-ups.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let state = self.0.lock();
        (state.appends.len(), state.look_ups.len())
    }

    /// Gives the room to `waiting`; `false` if it does not need it any more.
    fn give(self: &Arc<Self>, waiting: Waiting) -> bool {
        match waiting {
            Waiting::Append(partition) => partition
                .upgrade()
                .is_some_and(|partition| partition.turn().give_room(|| LargeRoom(self.clone()))),
            // One that leaves now passes the room on itself.
            Waiting::LookUp(sender) => {
                let is_needed = !sender.is_closed();
                if is_needed {
                    drop(sender.send(LargeRoom(self.clone())));
                }
                is_needed
            }
        }
    }
}

impl State {
    /// The first of the line whose turn it is, or of the other one; without one the room is free.
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

impl Drop for LargeRoom {
    fn drop(&mut self) {
        loop {
            let next = self.0.0.lock().next();
            if next.is_none_or(|next| self.0.give(next)) {
                return;
            }
        }
    }
}
