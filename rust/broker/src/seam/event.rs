//! What Rust tells Python, in a queue whose size is bounded by connections, open tokens and partitions.
//!
//! Facts are levels (docs/SEAM.md S5): a second [`Event::PartitionState`] of a partition replaces the first one where it stands, so
//! traffic never makes the queue grow. Requests are bounded by connections, completions by the tokens that Python opened.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use pykafka_log::Clock;

use crate::seam::image::TopicId;

/// Chosen by Python, completed exactly once.
pub type Token = u64;

/// Names in one `TopicsMissing`; what is beyond is asked for again by the client's next Metadata.
const TOPICS_MISSING_MAX: usize = 1_000;

/// A request that Python answers.
#[derive(Debug, Clone)]
pub struct RequestEvent {
    /// Generation-tagged; what `respond` names.
    pub id: u64,
    /// Generation-tagged.
    pub connection: u64,
    /// Who asks.
    pub principal: Arc<str>,
    /// The peer's address without its port.
    pub client_host: Arc<str>,
    /// Name of the listener that accepted the connection.
    pub listener: Arc<str>,
    /// As the client calls itself; not to be trusted.
    pub client_id: Arc<str>,
    /// Which API.
    pub api_key: i16,
    /// Within the advertised range.
    pub api_version: i16,
    /// Monotonic time at which the frame was complete (docs/SEAM.md S6).
    pub received_ns: u64,
    /// Wall clock of the same moment.
    pub received_ms: i64,
    /// What follows the request header.
    pub body: Bytes,
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
                    if names.len() < TOPICS_MISSING_MAX && !names.contains(&name) {
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

#[derive(Default)]
struct State {
    slots: VecDeque<Slot>,
    levels: HashMap<Level, Event>,
    woken: bool,
    closed: bool,
    waiting: usize,
}

/// The queue between the data plane and Python's control thread.
#[derive(Default)]
pub struct EventQueue {
    state: Mutex<State>,
    changed: Condvar,
}

impl EventQueue {
    /// An empty queue.
    pub fn new() -> EventQueue {
        EventQueue::default()
    }

    /// Queues `event`, or replaces the waiting one of its level. Never blocks for long.
    pub fn push(&self, event: Event) {
        let mut state = self.state.lock();
        match event.level() {
            None => state.slots.push_back(Slot::Once(event)),
            Some(level) => {
                if let Some(waiting) = state.levels.get_mut(&level) {
                    return waiting.merge(event);
                }
                state.levels.insert(level, event);
                state.slots.push_back(Slot::Level(level));
            }
        }
        if state.waiting > 0 {
            self.changed.notify_one();
        }
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

    /// Blocks until there are events, `deadline_ns` of `clock` or [`EventQueue::wake`]; at most `events_max` events.
    pub fn wait(&self, clock: &dyn Clock, deadline_ns: u64, events_max: usize) -> Vec<Event> {
        let mut state = self.state.lock();
        while state.slots.is_empty() && !state.woken && !state.closed {
            let remaining = deadline_ns.saturating_sub(clock.now_ns());
            if remaining == 0 {
                break;
            }
            state.waiting += 1;
            self.changed.wait_for(&mut state, Duration::from_nanos(remaining));
            state.waiting -= 1;
        }
        state.woken = false;
        let count = events_max.min(state.slots.len());
        let taken: Vec<Slot> = state.slots.drain(..count).collect();
        taken
            .into_iter()
            .filter_map(|slot| match slot {
                Slot::Once(event) => Some(event),
                Slot::Level(level) => state.levels.remove(&level),
            })
            .collect()
    }

    /// Events that wait.
    pub fn count(&self) -> usize {
        self.state.lock().slots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pykafka_log::ManualClock;

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

    fn drain(queue: &EventQueue) -> Vec<Event> {
        queue.wait(&ManualClock::new(0), 0, 256)
    }

    #[test]
    fn levels_coalesce_to_the_latest_and_keep_their_place() {
        let queue = EventQueue::new();
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
        let queue = EventQueue::new();
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
        let queue = EventQueue::new();
        queue.wake();
        assert!(queue.wait(&ManualClock::new(0), u64::MAX, 1).is_empty());
    }

    #[test]
    fn a_waiting_thread_is_given_what_is_pushed() {
        let queue = EventQueue::new();
        let events = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| queue.wait(&ManualClock::new(0), u64::MAX, 8));
            queue.push(Event::Appended { token: 3, error_code: 0, offset: 5 });
            waiter.join().expect("the waiter does not panic")
        });
        assert!(matches!(events[..], [Event::Appended { token: 3, error_code: 0, offset: 5 }]));
    }

    #[test]
    fn closed_queue_hands_out_the_rest_and_then_returns_at_once() {
        let queue = EventQueue::new();
        queue.push(Event::Cancelled { id: 1 });
        queue.close();
        assert_eq!(queue.wait(&ManualClock::new(0), u64::MAX, 8).len(), 1);
        assert!(queue.wait(&ManualClock::new(0), u64::MAX, 8).is_empty());
    }
}
