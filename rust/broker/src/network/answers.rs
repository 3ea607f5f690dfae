//! Answers that their peers do not take yet, and how much of memory they hold.
//!
//! # Theory of operation
//! A connection makes no further answer before its last ones are sent, so one that is not read holds what it has and
//! waits. [`Held`] counts it, from the first send that leaves a part until all is sent or the connection ends. Bytes that
//! are sent from a file are never in memory and count nothing.
//!
//! Two rules keep the sum at the bound. While it is full no request is handled that may have a large answer: it waits in
//! [`Answers::room`]. And who waits there makes room: the connection whose peer has taken nothing for longest is closed,
//! once that is [`STALLED_NS_MIN`]. So peers that do not read cost those that do a second at most, and what each thread
//! is answering when the bound is reached is all that goes beyond it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use pykafka_log::Clock;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::network::connections::Closing;
use crate::slots::Slots;

/// A peer that reads at all has taken something in this time.
const STALLED_NS_MIN: u64 = 1_000_000_000;
/// Between two looks for peers that have become stalled.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
const REASON: &str = "its peer takes no answers, and others wait for the memory that they hold";

/// See the module.
pub(crate) struct Answers {
    bytes_max: usize,
    bytes: AtomicUsize,
    held: Slots<Arc<Entry>>,
    freed: Notify,
}

struct Entry {
    closing: Arc<Closing>,
    state: Mutex<State>,
}

struct State {
    bytes: usize,
    /// When the peer last took something; `None` once the connection was asked to end for it.
    since_ns: Option<u64>,
}

/// The answers of one connection; dropping it gives their share back.
pub(crate) struct Held<'a> {
    answers: &'a Answers,
    id: u64,
    entry: Arc<Entry>,
}

impl Answers {
    pub(crate) fn new(bytes_max: usize) -> Answers {
        let (bytes, held) = (AtomicUsize::new(0), Slots::new());
        Answers { bytes_max, bytes, held, freed: Notify::new() }
    }

    /// Counts `bytes` that a connection has not sent at `now_ns`.
    pub(crate) fn hold(&self, bytes: usize, closing: &Arc<Closing>, now_ns: u64) -> Held<'_> {
        let state = Mutex::new(State { bytes, since_ns: Some(now_ns) });
        let entry = Arc::new(Entry { closing: closing.clone(), state });
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Held { answers: self, id: self.held.insert(entry.clone()), entry }
    }

    /// Bytes of answers that wait for their peers.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether a request that may have a large answer has to wait.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes() > self.bytes_max
    }

    /// Waits until there is room for another answer.
    pub(crate) async fn room(&self, clock: &dyn Clock) {
        while self.is_full() {
            let freed = self.freed.notified();
            self.close_stalled(clock.now_ns());
            let _ = timeout(LOOK_INTERVAL, freed).await;
        }
    }

    /// Closes the connections that are stalled for longest, as many as make room.
    fn close_stalled(&self, now_ns: u64) {
        let latest_ns = now_ns.saturating_sub(STALLED_NS_MIN);
        let mut surplus = self.bytes().saturating_sub(self.bytes_max);
        let mut stalled: Vec<(u64, Arc<Entry>)> = Vec::new();
        for entry in self.held.all() {
            let (bytes, since_ns) = {
                let state = entry.state.lock();
                (state.bytes, state.since_ns)
            };
            match since_ns {
                Some(since_ns) if since_ns <= latest_ns => stalled.push((since_ns, entry)),
                Some(_) => {}
                // It is about to give back.
                None => surplus = surplus.saturating_sub(bytes),
            }
        }
        stalled.sort_by_key(|(since_ns, _)| *since_ns);
        for (_, entry) in stalled {
            if surplus == 0 {
                return;
            }
            let mut state = entry.state.lock();
            state.since_ns = None;
            surplus = surplus.saturating_sub(state.bytes);
            entry.closing.close(REASON);
        }
    }
}

impl Held<'_> {
    /// The peer took something at `now_ns`. The share stays: an answer's memory is freed as a whole.
    pub(crate) fn taken(&self, now_ns: u64) {
        let mut state = self.entry.state.lock();
        state.since_ns = state.since_ns.map(|_| now_ns);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.answers.held.remove(self.id);
        self.answers.bytes.fetch_sub(self.entry.state.lock().bytes, Ordering::Relaxed);
        self.answers.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::connections::Connections;
    use crate::seam::settings::Settings;
    use std::net::{IpAddr, Ipv4Addr};

    const SECOND_NS: u64 = 1_000_000_000;

    fn closing(connections: &Connections) -> Arc<Closing> {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        connections.open(address, &Settings::default()).expect("no limit is set").1
    }

    #[test]
    fn a_share_goes_with_the_answers() {
        let (answers, connections) = (Answers::new(100), Connections::new());
        let held = answers.hold(150, &closing(&connections), 0);
        held.taken(1);
        assert_eq!((answers.bytes(), answers.is_full()), (150, true));
        drop(held);
        assert_eq!((answers.bytes(), answers.is_full(), answers.held.count()), (0, false, 0));
    }

    #[test]
    fn those_that_take_nothing_for_longest_are_closed_and_no_more_than_make_room() {
        let (answers, connections) = (Answers::new(100), Connections::new());
        let closings: Vec<_> = (0..4).map(|_| closing(&connections)).collect();
        let held: Vec<_> =
            (0..).zip(&closings).map(|(at, closing)| answers.hold(50, closing, at)).collect();
        // The first has taken something since.
        held[0].taken(SECOND_NS);
        let closed = || closings.iter().map(|closing| closing.is_closed()).collect::<Vec<_>>();
        answers.close_stalled(SECOND_NS / 2);
        assert_eq!(closed(), [false; 4], "nobody is stalled yet");
        answers.close_stalled(SECOND_NS + 9);
        assert_eq!(closed(), [false, true, true, false]);
        answers.close_stalled(SECOND_NS + 9);
        assert_eq!(closed(), [false, true, true, false], "they are about to give back");
    }
}
