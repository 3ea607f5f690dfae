//! The queue of events: its size is bounded by connections, open tokens and partitions.
//!
//! Facts are levels (docs/PLANES.md S5): a second [`Event::PartitionState`] of a partition replaces
//! the first one at its position, so traffic never makes the queue grow. Requests are bounded by
//! connections, completions by the tokens that Python opened. A request whose connection is closed
//! before Python takes it is removed from the queue with its body.
//!
//! Deadlines (docs/PLANES.md S6). The queue tracks the time of the oldest event that Python has not
//! taken: [`EventQueue::horizon_ns`]. Python's timers compare with it. Nothing that waits for
//! memory or for a thread counts, because it would stop all timers of the node.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use pykafka_forks::{Condvar, Mutex};
use pykafka_log::Clock;

use super::{Event, Level, TOPICS_MISSING_MAX, Token};

enum Slot {
    Once(Event),
    Level(Level),
}

struct Queued {
    happened_ns: u64,
    slot: Slot,
}

#[derive(Default)]
struct State {
    last: u64,
    /// By a number that grows with each event.
    queued: BTreeMap<u64, Queued>,
    levels: HashMap<Level, Event>,
    /// Positions in `queued` of events that may be withdrawn.
    withdrawable: HashMap<Withdrawable, u64>,
    /// Times of unread events.
    unread: Times,
    woken: bool,
    closed: bool,
    waiting: usize,
}

impl State {
    fn queue(&mut self, happened_ns: u64, slot: Slot) {
        self.last += 1;
        if let Slot::Once(event) = &slot
            && let Some(withdrawable) = Withdrawable::of(event)
        {
            self.withdrawable.insert(withdrawable, self.last);
        }
        self.unread.add(happened_ns);
        self.queued.insert(self.last, Queued { happened_ns, slot });
    }

    fn take_first(&mut self) -> Option<Event> {
        let (_, queued) = self.queued.pop_first()?;
        self.unread.remove(queued.happened_ns);
        match queued.slot {
            Slot::Level(level) => self.levels.remove(&level),
            Slot::Once(event) => {
                if let Some(withdrawable) = Withdrawable::of(&event) {
                    self.withdrawable.remove(&withdrawable);
                }
                Some(event)
            }
        }
    }
}

/// An event that is obsolete once its connection is closed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Withdrawable {
    /// By its id.
    Request(u64),
    /// By its token.
    Verification(Token),
}

impl Withdrawable {
    fn of(event: &Event) -> Option<Withdrawable> {
        match event {
            Event::Request(request) => Some(Withdrawable::Request(request.id)),
            Event::VerifyTransaction(question) => Some(Withdrawable::Verification(question.token)),
            _ => None,
        }
    }
}

/// A multiset of times.
#[derive(Default)]
struct Times(BTreeMap<u64, usize>);

impl Times {
    fn add(&mut self, time_ns: u64) {
        *self.0.entry(time_ns).or_default() += 1;
    }

    fn remove(&mut self, time_ns: u64) {
        if let Some(count) = self.0.get_mut(&time_ns) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&time_ns);
            }
        }
    }

    fn first(&self) -> Option<u64> {
        self.0.first_key_value().map(|(&time_ns, _)| time_ns)
    }
}

/// The queue between the data plane and Python's control thread.
pub struct EventQueue {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    changed: Condvar,
}

impl EventQueue {
    /// An empty queue; `clock` provides the time of events without their own.
    pub fn new(clock: Arc<dyn Clock>) -> EventQueue {
        EventQueue { clock, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Queues `event`, or merges it into the queued event of its level. Never blocks for long.
    pub fn push(&self, mut event: Event) {
        if let Event::TopicsMissing { names, .. } = &mut event {
            names.truncate(TOPICS_MISSING_MAX);
        }
        let happened_ns = match &event {
            Event::Request(request) => request.header.received_ns,
            Event::VerifyTransaction(question) => question.received_ns,
            _ => self.clock.now_ns(),
        };
        let mut state = self.state.lock();
        match event.level() {
            None => state.queue(happened_ns, Slot::Once(event)),
            Some(level) => {
                if let Some(waiting) = state.levels.get_mut(&level) {
                    return waiting.merge(event);
                }
                state.levels.insert(level, event);
                state.queue(happened_ns, Slot::Level(level));
            }
        }
        if state.waiting > 0 {
            self.changed.notify_one();
        }
    }

    /// Cancels request `id`, whose connection was closed: removes its event, or notifies Python if
    /// Python has taken it.
    pub fn cancel(&self, id: u64) {
        if !self.withdraw(Withdrawable::Request(id)) {
            self.push(Event::Cancelled { id });
        }
    }

    /// Removes the event of query `token`, which is obsolete, if Python has not taken it.
    pub(crate) fn cancel_verification(&self, token: Token) {
        self.withdraw(Withdrawable::Verification(token));
    }

    fn withdraw(&self, withdrawable: Withdrawable) -> bool {
        let mut state = self.state.lock();
        let Some(at) = state.withdrawable.remove(&withdrawable) else { return false };
        let queued = state.queued.remove(&at);
        if let Some(queued) = &queued {
            state.unread.remove(queued.happened_ns);
        }
        drop(state); // the body is freed outside of the lock
        true
    }

    /// The time up to which Python has taken everything: that of the oldest unread event, or now.
    pub fn horizon_ns(&self) -> u64 {
        let now_ns = self.clock.now_ns();
        self.state.lock().unread.first().map_or(now_ns, |oldest_ns| oldest_ns.min(now_ns))
    }

    /// Makes `wait` return, immediately or at its next call.
    pub fn wake(&self) {
        self.state.lock().woken = true;
        self.changed.notify_all();
    }

    /// After this, `wait` returns the queued events and never blocks.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }

    /// Blocks until there are events, `deadline_ns` of the clock or [`EventQueue::wake`]; returns
    /// at most `events_max` events.
    pub fn wait(&self, deadline_ns: u64, events_max: usize) -> Vec<Event> {
        let mut state = self.state.lock();
        while state.queued.is_empty() && !state.woken && !state.closed {
            let remaining = deadline_ns.saturating_sub(self.clock.now_ns());
            if remaining == 0 {
                break;
            }
            state.waiting += 1;
            state = self.changed.wait_for(state, Duration::from_nanos(remaining));
            state.waiting -= 1;
        }
        state.woken = false;
        (0..events_max).map_while(|_| state.take_first()).collect()
    }

    /// Number of queued events.
    pub fn count(&self) -> usize {
        self.state.lock().queued.len()
    }
}

#[cfg(test)]
mod tests;
