//! The queue of events: its size is bounded by connections, open tokens and partitions.
//!
//! Facts are levels (docs/SEAM.md S5): a second [`Event::PartitionState`] of a partition replaces the first one where it stands, so
//! traffic never makes the queue grow. Requests are bounded by connections, completions by the tokens that Python opened.
//! A request whose connection goes away before Python took it leaves the queue with its body.
//!
//! Facts and completions come first, in their order. Requests wait in `lanes`, which take turns.
//!
//! Deadlines (docs/SEAM.md S6). The queue knows when the oldest event happened that Python has not taken: [`EventQueue::horizon_ns`].
//! Python's timers compare with it. A request counts from its arrival, while it waits for room too ([`Arrival`]).

mod lanes;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use pykafka_forks::{Condvar, Mutex};
use pykafka_log::Clock;

use self::lanes::{LaneKey, LaneKeys, Lanes, Place};
use super::{Event, Level, RequestEvent, TOPICS_MISSING_MAX, Token};

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
    /// By the order in which they were queued.
    facts: VecDeque<Queued>,
    requests: Lanes<Queued>,
    levels: HashMap<Level, Event>,
    /// Where that stands in `requests` which may be withdrawn.
    withdrawable: HashMap<Withdrawable, Place>,
    /// When what is unread happened: what is queued, and requests that wait for room.
    unread: Times,
    woken: bool,
    closed: bool,
    waiting: usize,
}

impl State {
    fn count(&self) -> usize {
        self.facts.len() + self.requests.count()
    }

    fn queue_fact(&mut self, happened_ns: u64, slot: Slot) {
        self.unread.add(happened_ns);
        self.facts.push_back(Queued { happened_ns, slot });
    }

    fn queue_request(&mut self, happened_ns: u64, lane: LaneKey, event: Event) {
        self.unread.add(happened_ns);
        let withdrawable = Withdrawable::of(&event);
        let place = self.requests.push(lane, Queued { happened_ns, slot: Slot::Once(event) });
        if let Some(withdrawable) = withdrawable {
            self.withdrawable.insert(withdrawable, place);
        }
    }

    fn take_fact(&mut self) -> Option<Event> {
        let queued = self.facts.pop_front()?;
        self.taken(queued)
    }

    fn take_request(&mut self) -> Option<Event> {
        let queued = self.requests.take()?;
        self.taken(queued)
    }

    fn taken(&mut self, queued: Queued) -> Option<Event> {
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

/// An event that means nothing any more once its connection has gone away.
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

/// A request that has arrived and is not queued yet: until it is dropped, the horizon stays behind it.
pub struct Arrival {
    queue: Arc<EventQueue>,
    received_ns: u64,
}

impl Drop for Arrival {
    fn drop(&mut self) {
        self.queue.state.lock().unread.remove(self.received_ns);
    }
}

/// The queue between the data plane and Python's control thread.
pub struct EventQueue {
    clock: Arc<dyn Clock>,
    lane_keys: LaneKeys,
    state: Mutex<State>,
    changed: Condvar,
}

impl EventQueue {
    /// An empty queue; `clock` says when an event without a time of its own happened.
    pub fn new(clock: Arc<dyn Clock>) -> EventQueue {
        let (lane_keys, state) = (LaneKeys::default(), Mutex::default());
        EventQueue { clock, lane_keys, state, changed: Condvar::new() }
    }

    /// Queues `event`, or replaces the waiting one of its level. Never blocks for long.
    pub fn push(&self, mut event: Event) {
        if let Event::TopicsMissing { names, .. } = &mut event {
            names.truncate(TOPICS_MISSING_MAX);
        }
        let happened_ns = match &event {
            Event::Request(request) => request.header.received_ns,
            Event::VerifyTransaction(question) => question.received_ns,
            _ => self.clock.now_ns(),
        };
        let lane = self.lane_of(&event);
        let mut state = self.state.lock();
        match (lane, event.level()) {
            (Some(lane), _) => state.queue_request(happened_ns, lane, event),
            (None, None) => state.queue_fact(happened_ns, Slot::Once(event)),
            (None, Some(level)) => {
                if let Some(waiting) = state.levels.get_mut(&level) {
                    return waiting.merge(event);
                }
                state.levels.insert(level, event);
                state.queue_fact(happened_ns, Slot::Level(level));
            }
        }
        if state.waiting > 0 {
            self.changed.notify_one();
        }
    }

    /// Facts are in no lane.
    fn lane_of(&self, event: &Event) -> Option<LaneKey> {
        match event {
            Event::Request(request) => {
                let RequestEvent { connection, header, body, .. } = &**request;
                Some(match lanes::group_id(header.api_key, header.api_version, body) {
                    Some(group_id) => self.lane_keys.of_group(group_id),
                    None => {
                        self.lane_keys.of_address(&connection.listener, &connection.client_host)
                    }
                })
            }
            Event::VerifyTransaction(_) => Some(self.lane_keys.of_verifications()),
            _ => None,
        }
    }

    /// Notes that a request arrived, before there is room to queue it.
    pub fn arrive(self: &Arc<Self>, received_ns: u64) -> Arrival {
        self.state.lock().unread.add(received_ns);
        Arrival { queue: self.clone(), received_ns }
    }

    /// The connection of request `id` went away: its event leaves the queue, or Python is notified that it took it.
    pub fn cancel(&self, id: u64) {
        if !self.withdraw(Withdrawable::Request(id)) {
            self.push(Event::Cancelled { id });
        }
    }

    /// Nobody waits for the answer to question `token` any more: its event leaves the queue, if Python has not taken it.
    pub(crate) fn cancel_verification(&self, token: Token) {
        self.withdraw(Withdrawable::Verification(token));
    }

    fn withdraw(&self, withdrawable: Withdrawable) -> bool {
        let mut state = self.state.lock();
        let Some(place) = state.withdrawable.remove(&withdrawable) else { return false };
        let queued = state.requests.withdraw(place);
        if let Some(queued) = &queued {
            state.unread.remove(queued.happened_ns);
        }
        drop(state); // the body is freed outside of the lock
        true
    }

    /// The time up to which Python has taken everything: when the oldest unread event happened, or now.
    pub fn horizon_ns(&self) -> u64 {
        let now_ns = self.clock.now_ns();
        self.state.lock().unread.first().map_or(now_ns, |oldest_ns| oldest_ns.min(now_ns))
    }

    /// Makes `wait` return, now or at its next call.
    pub fn wake(&self) {
        self.state.lock().woken = true;
        self.changed.notify_all();
    }

    /// After this, `wait` hands out what is queued and then returns at once.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }

    /// Blocks until there are events, `deadline_ns` of the clock or [`EventQueue::wake`]; at most `events_max`
    /// events, of which `requests_max` are requests or questions about transactions.
    pub fn wait(&self, deadline_ns: u64, events_max: usize, requests_max: usize) -> Vec<Event> {
        let mut state = self.state.lock();
        while state.count() == 0 && !state.woken && !state.closed {
            let remaining = deadline_ns.saturating_sub(self.clock.now_ns());
            if remaining == 0 {
                break;
            }
            state.waiting += 1;
            state = self.changed.wait_for(state, Duration::from_nanos(remaining));
            state.waiting -= 1;
        }
        state.woken = false;
        let mut events: Vec<Event> = (0..events_max).map_while(|_| state.take_fact()).collect();
        let requests_max = requests_max.min(events_max - events.len());
        events.extend((0..requests_max).map_while(|_| state.take_request()));
        events
    }

    /// Events that wait.
    pub fn count(&self) -> usize {
        self.state.lock().count()
    }
}

#[cfg(test)]
mod tests;
