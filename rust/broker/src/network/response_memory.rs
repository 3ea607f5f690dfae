//! The memory of responses, from before they are built until their peers have received them.
//!
//! # Theory of operation
//! Memory for a response is reserved before the response is built: [`ResponseMemory::room`] waits
//! for its upper bound, and the reservation is lowered once the size is known. The [`Share`] moves
//! with the bytes, through the reply into the output of the connection, and is freed when
//! everything is sent or the connection ends. So responses take at most the bound, plus one
//! response (two if one of them is large). Bytes that are sent from a file are never in memory and
//! do not count.
//!
//! Responses below [`SMALL_BYTES_MAX`] are built without a reservation, and count only if a peer
//! does not receive them at once: they are part of the fixed cost of a connection.
//!
//! Waiting requests free memory: they close the connection whose peer has not received anything for
//! the longest time, if that is at least [`STALLED_NS_MIN`]. So peers that do not read delay the
//! others by at most a second. A connection sends its responses before it builds another one, and
//! never waits for memory while it holds some.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use pykafka_forks::Mutex;
use pykafka_log::Clock;
use tokio::time::timeout;

use crate::network::connections::Closing;
use crate::network::memory::budget::{Budget, BudgetClass, Share};
use crate::slots::Slots;

/// Smaller responses are built without a reservation.
pub(crate) const SMALL_BYTES_MAX: usize = 16 << 10;
/// The sizes that are tried for the records of one response when other responses hold much memory,
/// and when they hold nearly all of it.
const WIDENED_BYTES: usize = 1 << 20;
pub(crate) const WIDENED_BYTES_MIN: usize = 64 << 10;
/// A peer without progress for this time is stalled.
const STALLED_NS_MIN: u64 = 1_000_000_000;
/// Pause between two searches for stalled peers.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
const REASON: &str = "its peer takes no responses, and others wait for the memory that they hold";

/// The responses in memory.
pub(crate) struct ResponseMemory {
    budget: Arc<Budget>,
    /// Maximum bytes of records in memory for one response.
    records_bytes_max: usize,
    unsent: Slots<Arc<Entry>>,
}

struct Entry {
    closing: Arc<Closing>,
    state: Mutex<State>,
}

struct State {
    bytes: usize,
    /// Time when the peer last received something; `None` once the connection was closed for it.
    since_ns: Option<u64>,
}

/// A connection whose peer has not received all responses. Dropping it ends the observation.
pub(crate) struct Unsent<'a> {
    responses: &'a ResponseMemory,
    id: u64,
    entry: Arc<Entry>,
}

impl ResponseMemory {
    pub(crate) fn new(bytes_max: usize) -> ResponseMemory {
        let budget = Arc::new(Budget::new(bytes_max));
        ResponseMemory { budget, records_bytes_max: bytes_max / 4, unsent: Slots::new() }
    }

    /// Bytes of responses that are built, or that wait for their peers.
    pub(crate) fn bytes(&self) -> usize {
        self.budget.held()
    }

    /// Maximum bytes of records in memory for one response.
    pub(crate) fn records_bytes_max(&self) -> usize {
        self.records_bytes_max
    }

    /// True if a response waits for memory.
    pub(crate) fn are_scarce(&self) -> bool {
        self.budget.waiting() > 0
    }

    /// Returns an empty share.
    pub(crate) fn share(&self) -> Share {
        self.budget.share()
    }

    /// Reserves memory for a response of at most `bytes`, if that is possible without waiting.
    pub(crate) fn try_room(&self, bytes: usize) -> Option<Share> {
        let mut room = self.budget.share();
        let is_there = bytes < SMALL_BYTES_MAX || room.try_grow(BudgetClass::of(bytes), bytes);
        is_there.then_some(room)
    }

    /// Waits until memory for a response of at most `bytes` is reserved.
    pub(crate) async fn room(&self, bytes: usize, clock: &dyn Clock) -> Share {
        if let Some(room) = self.try_room(bytes) {
            return room;
        }
        let mut room = self.budget.share();
        {
            let mut grown = pin!(room.grow(BudgetClass::of(bytes), bytes));
            while timeout(LOOK_INTERVAL, grown.as_mut()).await.is_err() {
                self.close_stalled(clock.now_ns());
            }
        }
        room
    }

    /// Waits for `bytes` more than `room` has. Frees `room` first, because a holder of memory must
    /// not wait for more.
    pub(crate) async fn wider(&self, room: Share, bytes: usize, clock: &dyn Clock) -> Share {
        let bytes = room.bytes() + bytes;
        drop(room);
        self.room(bytes, clock).await
    }

    /// Adds to `room` the available memory for records, at most `bytes`. Returns 0 if there is next
    /// to nothing.
    pub(crate) fn widen(&self, room: &mut Share, bytes: usize) -> usize {
        let most = bytes.min(self.records_bytes_max);
        let steps = [most, most.min(WIDENED_BYTES), most.min(WIDENED_BYTES_MIN)];
        steps.into_iter().find(|bytes| room.try_within(*bytes)).unwrap_or(0)
    }

    /// Observes a connection that has `bytes` of unsent responses at `now_ns`.
    pub(crate) fn watch(&self, bytes: usize, closing: &Arc<Closing>, now_ns: u64) -> Unsent<'_> {
        let state = Mutex::new(State { bytes, since_ns: Some(now_ns) });
        let entry = Arc::new(Entry { closing: closing.clone(), state });
        Unsent { responses: self, id: self.unsent.insert(entry.clone()), entry }
    }

    /// Closes the connections that are stalled for longest, as many as needed to serve the waiting
    /// requests.
    fn close_stalled(&self, now_ns: u64) {
        self.close_stalled_for(self.budget.missing(), now_ns);
    }

    fn close_stalled_for(&self, mut missing: usize, now_ns: u64) {
        let latest_ns = now_ns.saturating_sub(STALLED_NS_MIN);
        let mut stalled: Vec<(u64, Arc<Entry>)> = Vec::new();
        for entry in self.unsent.all() {
            let (bytes, since_ns) = {
                let state = entry.state.lock();
                (state.bytes, state.since_ns)
            };
            match since_ns {
                Some(since_ns) if since_ns <= latest_ns => stalled.push((since_ns, entry)),
                Some(_) => {}
                // Its memory will be freed soon.
                None => missing = missing.saturating_sub(bytes),
            }
        }
        stalled.sort_by_key(|(since_ns, _)| *since_ns);
        for (_, entry) in stalled {
            if missing == 0 {
                return;
            }
            let mut state = entry.state.lock();
            state.since_ns = None;
            missing = missing.saturating_sub(state.bytes);
            entry.closing.close(REASON);
        }
    }
}

impl Unsent<'_> {
    /// Records that the peer received something at `now_ns`. The size stays: the memory of a
    /// response is freed as a whole.
    pub(crate) fn taken(&self, now_ns: u64) {
        let mut state = self.entry.state.lock();
        state.since_ns = state.since_ns.map(|_| now_ns);
    }
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        self.responses.unsent.remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_api::settings::Settings;
    use crate::network::connections::{Connections, Rank};
    use pykafka_log::ManualClock;
    use std::net::{IpAddr, Ipv4Addr};

    const SECOND_NS: u64 = 1_000_000_000;

    fn closing(connections: &Connections) -> Arc<Closing> {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let opened = connections.open(address, Rank::Client, &Settings::default(), 0);
        opened.expect("no limit is set").closing
    }

    #[tokio::test]
    async fn replies_that_grow_do_not_deadlock_on_memory() {
        let (responses, clock) = (&ResponseMemory::new(100 << 10), &ManualClock::new(0));
        let all = responses.room(100 << 10, clock).await;
        let beyond = responses.room(40 << 10, clock).await;
        let in_line = async {
            tokio::join!(responses.room(40 << 10, clock), responses.room(40 << 10, clock))
        };
        let ((second, third), ()) = tokio::join!(in_line, async { drop(all) });
        let widened = async |room| drop(responses.wider(room, WIDENED_BYTES_MIN, clock).await);
        let widened = async { tokio::join!(widened(beyond), widened(second), widened(third)) };
        timeout(Duration::from_secs(60), widened).await.expect("all have had their room");
        assert_eq!(responses.bytes(), 0);
    }

    #[test]
    fn memory_is_reserved_before_encoding_and_corrected_after() {
        let responses = ResponseMemory::new(1 << 20);
        let mut room = responses.try_room(700 << 10).expect("nobody holds any");
        let beyond = responses.try_room(700 << 10).expect("one goes beyond the bound");
        assert!(responses.try_room(700 << 10).is_none());
        assert!(responses.try_room(SMALL_BYTES_MAX - 1).is_some(), "small ones always pass");
        room.shrink_to(100);
        drop(beyond);
        assert_eq!(responses.bytes(), 100);
        assert!(responses.try_room(700 << 10).is_some());
    }

    #[test]
    fn connections_stalled_longest_are_closed_until_enough_memory_is_freed() {
        let (responses, connections) = (ResponseMemory::new(100), Connections::new());
        let closings: Vec<_> = (0..4).map(|_| closing(&connections)).collect();
        let unsent: Vec<_> =
            (0..).zip(&closings).map(|(at, closing)| responses.watch(50, closing, at)).collect();
        // The peer of the first connection has received something since.
        unsent[0].taken(SECOND_NS);
        let closed = || closings.iter().map(|closing| closing.is_closed()).collect::<Vec<_>>();
        let close_stalled = |now_ns| responses.close_stalled_for(100, now_ns);
        close_stalled(SECOND_NS / 2);
        assert_eq!(closed(), [false; 4], "nobody is stalled yet");
        close_stalled(SECOND_NS + 9);
        assert_eq!(closed(), [false, true, true, false]);
        close_stalled(SECOND_NS + 9);
        assert_eq!(closed(), [false, true, true, false], "they are about to give back");
    }
}
