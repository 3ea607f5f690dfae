//! What Rust tells Python, in a queue whose size is bounded by connections, open tokens and partitions.
//!
//! Facts are levels (docs/SEAM.md S5): a second [`Event::PartitionState`] of a partition replaces the first one where it stands, so
//! traffic never makes the queue grow. Requests are bounded by connections, completions by the tokens that Python opened.
//! A request whose connection goes away before Python took it leaves the queue with its body.
//!
//! Deadlines (docs/SEAM.md S6). The queue knows when the oldest event happened that Python has not taken: [`EventQueue::horizon_ns`].
//! Python's timers compare with it. A request counts from its arrival, while it waits for room too ([`Arrival`]).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use pykafka_log::{Clock, ProducerEntry};

use crate::api::context::{ConnectionInfo, Header};
use crate::seam::image::TopicId;
use crate::seam::requests::Room;

/// Chosen by Python, completed exactly once.
pub type Token = u64;

/// Names in one `TopicsMissing`; what is beyond is asked for again by the client's next Metadata.
const TOPICS_MISSING_MAX: usize = 1_000;

/// A request that Python answers.
#[derive(Debug, Clone)]
pub struct RequestEvent {
    /// Generation-tagged; what `respond` names.
    pub id: u64,
    /// Who asks.
    pub connection: ConnectionInfo,
    /// What is asked, and when it arrived (docs/SEAM.md S6).
    pub header: Header,
    /// What follows the request header.
    pub body: Bytes,
    /// The body's share of the broker's memory: to be kept with it, and with copies of it.
    pub room: Room,
}

/// How a partition stands on this broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionStateKind {
    /// Leads, from `offset` on in this epoch.
    Leader,
    /// Its log failed; nothing is served.
    Offline,
    /// Gone, with its log.
    Deleted,
    /// Damaged: read up to `offset`, never written.
    ReadOnly,
}

impl PartitionStateKind {
    /// As Python names it.
    pub fn name(self) -> &'static str {
        match self {
            PartitionStateKind::Leader => "leader",
            PartitionStateKind::Offline => "offline",
            PartitionStateKind::Deleted => "deleted",
            PartitionStateKind::ReadOnly => "read_only",
        }
    }
}

/// How a follower stands in the eyes of its leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaStateKind {
    /// May join the ISR.
    CaughtUp,
    /// Behind since `since_ns`.
    Lagging,
    /// Fetches with an older broker epoch than the registered one.
    StaleEpoch,
}

impl ReplicaStateKind {
    /// As Python names it.
    pub fn name(self) -> &'static str {
        match self {
            ReplicaStateKind::CaughtUp => "caught_up",
            ReplicaStateKind::Lagging => "lagging",
            ReplicaStateKind::StaleEpoch => "stale_epoch",
        }
    }
}

/// How the data directory stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskStateKind {
    /// Writable.
    Ok,
    /// Appends fail until there is space.
    Full,
    /// A failed sync or a lost device: final.
    Failed,
}

impl DiskStateKind {
    /// As Python names it.
    pub fn name(self) -> &'static str {
        match self {
            DiskStateKind::Ok => "ok",
            DiskStateKind::Full => "full",
            DiskStateKind::Failed => "failed",
        }
    }
}

/// One thing that Python must know.
#[derive(Debug, Clone)]
pub enum Event {
    /// A request to answer.
    Request(Box<RequestEvent>),
    /// The connection of request `id` went away.
    Cancelled {
        /// Of the request.
        id: u64,
    },
    /// Completes `append`.
    Appended {
        /// As given.
        token: Token,
        /// Kafka's code, 0 for success.
        error_code: i16,
        /// Base offset of the batch, -1 on error.
        offset: i64,
    },
    /// Completes a maintenance command.
    Maintained {
        /// As given.
        token: Token,
        /// Kafka's code, 0 for success.
        error_code: i16,
        /// What the command says it is, -1 on error.
        offset: i64,
    },
    /// Completes `describe_log_dirs`.
    LogDirs {
        /// As given.
        token: Token,
        /// Of each log that exists, its size in bytes.
        sizes: Vec<(TopicId, i32, u64)>,
        /// Of the file system; −1 in memory.
        total_bytes: i64,
        /// What is left of it.
        usable_bytes: i64,
    },
    /// Completes `describe_producers`.
    Producers {
        /// As given.
        token: Token,
        /// Kafka's code, 0 for success.
        error_code: i16,
        /// Those that the log remembers.
        producers: Vec<ProducerEntry>,
    },
    /// Metadata requests that allow auto-creation named these topics.
    TopicsMissing {
        /// Without duplicates.
        names: Vec<Arc<str>>,
        /// Who asked first.
        principal: Arc<str>,
    },
    /// Level.
    PartitionState {
        /// Of the partition.
        topic_id: TopicId,
        /// Index.
        partition: i32,
        /// The latest.
        state: PartitionStateKind,
        /// In which it was reached.
        leader_epoch: i32,
        /// Log end, or where the damage begins.
        offset: i64,
        /// Empty unless something is wrong.
        reason: String,
    },
    /// Level.
    Replica {
        /// Of the partition.
        topic_id: TopicId,
        /// Index.
        partition: i32,
        /// Of the leader that saw it.
        leader_epoch: i32,
        /// Node id.
        follower: i32,
        /// The latest.
        state: ReplicaStateKind,
        /// Monotonic; 0 unless lagging.
        since_ns: u64,
    },
    /// Level.
    DiskState {
        /// The latest.
        state: DiskStateKind,
        /// Empty if well.
        reason: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Level {
    TopicsMissing,
    Partition(TopicId, i32),
    Replica(TopicId, i32, i32),
    Disk,
}

impl Event {
    fn level(&self) -> Option<Level> {
        match *self {
            Event::TopicsMissing { .. } => Some(Level::TopicsMissing),
            Event::PartitionState { topic_id, partition, .. } => {
                Some(Level::Partition(topic_id, partition))
            }
            Event::Replica { topic_id, partition, follower, .. } => {
                Some(Level::Replica(topic_id, partition, follower))
            }
            Event::DiskState { .. } => Some(Level::Disk),
            _ => None,
        }
    }

    /// Takes over what `newer` says of the same level.
    fn merge(&mut self, newer: Event) {
        match (self, newer) {
            (Event::TopicsMissing { names, .. }, Event::TopicsMissing { names: more, .. }) => {
                for name in more {
                    if names.len() == TOPICS_MISSING_MAX {
                        break;
                    }
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
            }
            (older, newer) => *older = newer,
        }
    }
}

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
    /// By the order in which they were queued.
    queued: BTreeMap<u64, Queued>,
    levels: HashMap<Level, Event>,
    /// Where requests stand in `queued`, by their ids.
    requests: HashMap<u64, u64>,
    /// When what is unread happened: what is queued, and requests that wait for room.
    unread: Times,
    woken: bool,
    closed: bool,
    waiting: usize,
}

impl State {
    fn queue(&mut self, happened_ns: u64, slot: Slot) {
        self.last += 1;
        if let Slot::Once(Event::Request(request)) = &slot {
            self.requests.insert(request.id, self.last);
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
                if let Event::Request(request) = &event {
                    self.requests.remove(&request.id);
                }
                Some(event)
            }
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
    state: Mutex<State>,
    changed: Condvar,
}

impl EventQueue {
    /// An empty queue; `clock` says when an event without a time of its own happened.
    pub fn new(clock: Arc<dyn Clock>) -> EventQueue {
        EventQueue { clock, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Queues `event`, or replaces the waiting one of its level. Never blocks for long.
    pub fn push(&self, mut event: Event) {
        if let Event::TopicsMissing { names, .. } = &mut event {
            names.truncate(TOPICS_MISSING_MAX);
        }
        let happened_ns = match &event {
            Event::Request(request) => request.header.received_ns,
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

    /// Notes that a request arrived, before there is room to queue it.
    pub fn arrive(self: &Arc<Self>, received_ns: u64) -> Arrival {
        self.state.lock().unread.add(received_ns);
        Arrival { queue: self.clone(), received_ns }
    }

    /// The connection of request `id` went away: its event leaves the queue, or Python is notified that it took it.
    pub fn cancel(&self, id: u64) {
        let mut state = self.state.lock();
        let Some(at) = state.requests.remove(&id) else {
            drop(state);
            return self.push(Event::Cancelled { id });
        };
        let queued = state.queued.remove(&at);
        if let Some(queued) = &queued {
            state.unread.remove(queued.happened_ns);
        }
        drop(state); // the body is freed outside of the lock
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

    /// Blocks until there are events, `deadline_ns` of the clock or [`EventQueue::wake`]; at most `events_max` events.
    pub fn wait(&self, deadline_ns: u64, events_max: usize) -> Vec<Event> {
        let mut state = self.state.lock();
        while state.queued.is_empty() && !state.woken && !state.closed {
            let remaining = deadline_ns.saturating_sub(self.clock.now_ns());
            if remaining == 0 {
                break;
            }
            state.waiting += 1;
            self.changed.wait_for(&mut state, Duration::from_nanos(remaining));
            state.waiting -= 1;
        }
        state.woken = false;
        (0..events_max).map_while(|_| state.take_first()).collect()
    }

    /// Events that wait.
    pub fn count(&self) -> usize {
        self.state.lock().queued.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pykafka_log::ManualClock;
    use pykafka_wire::ApiKey;

    fn leader(partition: i32, leader_epoch: i32) -> Event {
        Event::PartitionState {
            topic_id: [1; 16],
            partition,
            state: PartitionStateKind::Leader,
            leader_epoch,
            offset: 0,
            reason: String::new(),
        }
    }

    fn new_queue() -> (Arc<ManualClock>, Arc<EventQueue>) {
        let clock = Arc::new(ManualClock::new(0));
        (clock.clone(), Arc::new(EventQueue::new(clock)))
    }

    fn drain(queue: &EventQueue) -> Vec<Event> {
        queue.wait(0, 256)
    }

    fn request(id: u64, received_ns: u64) -> Event {
        let text: Arc<str> = Arc::from("");
        let connection = ConnectionInfo {
            id,
            listener: text.clone(),
            client_host: text.clone(),
            principal: text.clone(),
        };
        let header = Header {
            api_key: ApiKey(60),
            api_version: 0,
            correlation_id: 0,
            client_id: text,
            received_ns,
            received_ms: 0,
        };
        let (body, room) = (Bytes::new(), Room::default());
        Event::Request(Box::new(RequestEvent { id, connection, header, body, room }))
    }

    #[test]
    fn the_horizon_is_the_oldest_unread_event_or_now() {
        let (clock, queue) = new_queue();
        clock.advance_ms(10);
        let now_ns = queue.horizon_ns();
        queue.push(Event::Appended { token: 1, error_code: 0, offset: 0 });
        clock.advance_ms(10);
        assert_eq!(queue.horizon_ns(), now_ns);
        let arrival = queue.arrive(3);
        assert_eq!(queue.horizon_ns(), 3);
        queue.push(request(7, 3));
        drop(arrival);
        assert_eq!(queue.horizon_ns(), 3);
        assert_eq!(queue.wait(0, 1).len(), 1);
        assert_eq!(queue.horizon_ns(), 3);
        assert_eq!(queue.wait(0, 1).len(), 1);
        assert_eq!(queue.horizon_ns(), clock.now_ns());
    }

    #[test]
    fn a_cancelled_request_leaves_the_queue_and_one_that_was_taken_is_reported() {
        let (clock, queue) = new_queue();
        (1..=3).for_each(|id| queue.push(request(id, id)));
        queue.cancel(2);
        queue.cancel(1);
        assert_eq!((queue.count(), queue.horizon_ns()), (1, 0));
        clock.advance_ms(1);
        assert_eq!(queue.horizon_ns(), 3);
        assert!(matches!(&drain(&queue)[..], [Event::Request(request)] if request.id == 3));
        queue.cancel(3);
        assert!(matches!(drain(&queue)[..], [Event::Cancelled { id: 3 }]));
    }

    #[test]
    fn levels_coalesce_to_the_latest_and_keep_their_place() {
        let (_, queue) = new_queue();
        queue.push(leader(0, 1));
        queue.push(Event::Cancelled { id: 7 });
        queue.push(leader(0, 2));
        queue.push(leader(1, 1));
        let events = drain(&queue);
        assert_eq!(events.len(), 3);
        assert!(matches!(events[0], Event::PartitionState { partition: 0, leader_epoch: 2, .. }));
        assert!(matches!(events[1], Event::Cancelled { id: 7 }));
        assert!(drain(&queue).is_empty());
    }

    #[test]
    fn missing_topics_are_gathered_once_each_and_bounded() {
        let (_, queue) = new_queue();
        for index in 0..TOPICS_MISSING_MAX * 2 {
            for _ in 0..2 {
                let names = vec![Arc::from(format!("t{index}"))];
                queue.push(Event::TopicsMissing { names, principal: Arc::from("User:ANONYMOUS") });
            }
        }
        let events = drain(&queue);
        let [Event::TopicsMissing { names, .. }] = &events[..] else { panic!("{events:?}") };
        assert_eq!(names.len(), TOPICS_MISSING_MAX);
    }

    #[test]
    fn wake_before_wait_is_not_lost() {
        let (_, queue) = new_queue();
        queue.wake();
        assert!(queue.wait(u64::MAX, 1).is_empty());
    }

    #[test]
    fn a_waiting_thread_is_given_what_is_pushed() {
        let (_, queue) = new_queue();
        let events = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| queue.wait(u64::MAX, 8));
            queue.push(Event::Appended { token: 3, error_code: 0, offset: 5 });
            waiter.join().expect("the waiter does not panic")
        });
        assert!(matches!(events[..], [Event::Appended { token: 3, error_code: 0, offset: 5 }]));
    }

    #[test]
    fn closed_queue_hands_out_the_rest_and_then_returns_at_once() {
        let (_, queue) = new_queue();
        queue.push(Event::Cancelled { id: 1 });
        queue.close();
        assert_eq!(queue.wait(u64::MAX, 8).len(), 1);
        assert!(queue.wait(u64::MAX, 8).is_empty());
    }
}
