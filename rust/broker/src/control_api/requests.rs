//! Requests that Python handles, from the event to the response.
//!
//! A request holds memory in three states (docs/PLANES.md S7). While it waits for its turn, it
//! holds its frame's share of the input memory. While it runs, it also holds the memory of its
//! decoded form, which Python reserves with [`Room::try_decode`] without waiting. Once it has run
//! and waits for others (a rebalance, a disk, another node), it holds nothing. So waiting requests
//! never keep others from running. The exception is a response whose memory is reserved before its
//! data is read: Python bounds the time that such a request waits for a shard.
//!
//! A response that may be large reserves its memory before Python builds it, with
//! [`ParkedRequests::reserve`]. The task of the connection waits for the memory, so it leaves the
//! queue when the connection closes.

use std::sync::Arc;

use bytes::Bytes;
use pykafka_forks::Mutex;
use tokio::sync::oneshot;

use crate::network::memory::budget::{Budget, BudgetClass, Share};
use crate::slots::Slots;

#[derive(Default)]
pub(crate) struct ParkedRequests {
    slots: Slots<oneshot::Sender<NextStep>>,
}

/// The next step of a request in Python.
#[derive(Debug)]
pub(crate) enum NextStep {
    /// It responds.
    Response(Bytes),
    /// It builds a response of at most `bytes` once their memory is reserved, which completes
    /// `token`; `next` receives the next step.
    Reserve { token: u64, bytes: usize, next: oneshot::Receiver<NextStep> },
}

/// The memory of one request. The default holds nothing: for a request that no client sent.
#[derive(Debug, Clone, Default)]
pub struct Room {
    held: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    frame: Option<Share>,
    response: Option<Share>,
    /// `None` for a small request, and at the end.
    decoded: Option<Decoded>,
}

#[derive(Debug)]
struct Decoded {
    share: Share,
    bytes: usize,
}

impl Room {
    /// A request whose response may take the memory of `response`.
    pub(crate) fn new(response: Share) -> Room {
        let room = Room::default();
        room.held.lock().response = Some(response);
        room
    }

    /// Adds the frame's share of the input memory.
    pub(crate) fn lend(&self, frame: Share) {
        self.held.lock().frame = Some(frame);
    }

    /// Sets the size of the decoded request, which counts towards `budget` from
    /// [`Room::try_decode`] on.
    pub(crate) fn measured(&self, bytes: usize, budget: &Arc<Budget>) {
        self.held.lock().decoded = Some(Decoded { share: budget.share(), bytes });
    }

    /// Reserves memory for the decoded request, once; false if others must release memory first.
    /// A request that was not measured always has memory.
    pub fn try_decode(&self) -> bool {
        match &mut self.held.lock().decoded {
            Some(Decoded { share, bytes }) if share.bytes() == 0 => {
                share.try_grow(BudgetClass::of(*bytes), *bytes)
            }
            _ => true,
        }
    }

    /// Releases the memory for the response and for the decoded request, which may be reserved
    /// again.
    pub fn unreserve(&self) {
        let mut held = self.held.lock();
        held.response = None;
        if let Some(Decoded { share, .. }) = &mut held.decoded {
            *share = share.budget().share();
        }
    }

    /// Releases the memory of the request, but not that of its response.
    pub fn release(&self) {
        let mut held = self.held.lock();
        (held.frame, held.decoded) = (None, None);
    }

    /// Sets the reservation for the response.
    pub(crate) fn reserve_response(&self, share: Share) {
        self.held.lock().response = Some(share);
    }

    /// Bytes that are reserved for the response.
    pub fn reserved(&self) -> usize {
        self.held.lock().response.as_ref().map_or(0, Share::bytes)
    }

    /// Removes the remaining reservation for the response.
    pub(crate) fn take_response(&self) -> Option<Share> {
        self.held.lock().response.take()
    }
}

impl ParkedRequests {
    /// The id for Python's response, and the receiver of the response.
    pub(crate) fn park(&self) -> (u64, oneshot::Receiver<NextStep>) {
        let (sender, receiver) = oneshot::channel();
        (self.slots.insert(sender), receiver)
    }

    /// Unknown ids are ignored: their connection was closed.
    pub(crate) fn respond(&self, id: u64, body: Bytes) {
        if let Some(sender) = self.slots.remove(id) {
            let _ = sender.send(NextStep::Response(body));
        }
    }

    /// Requests memory for a response; the connection waits for it. Unknown ids are ignored, like
    /// those of `respond`.
    pub(crate) fn reserve(&self, id: u64, token: u64, bytes: usize) {
        let (sender, next) = oneshot::channel();
        if let Some(replaced) = self.slots.replace(id, sender) {
            let _ = replaced.send(NextStep::Reserve { token, bytes, next });
        }
    }

    /// Removes the request; returns whether it was still open.
    pub(crate) fn cancel(&self, id: u64) -> bool {
        self.slots.remove(id).is_some()
    }

    pub(crate) fn count(&self) -> usize {
        self.slots.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = 16 << 10;

    fn room(bytes: usize, budget: &Arc<Budget>) -> Room {
        let room = Room::default();
        room.measured(bytes, budget);
        room
    }

    #[test]
    fn a_reply_reaches_its_request_once_and_unknown_ids_are_dropped() {
        let parked = ParkedRequests::default();
        let (id, mut response) = parked.park();
        parked.respond(id + 1, Bytes::from_static(b"other"));
        parked.respond(id, Bytes::from_static(b"mine"));
        parked.respond(id, Bytes::from_static(b"again"));
        assert!(matches!(response.try_recv(), Ok(NextStep::Response(body)) if *body == *b"mine"));
        assert!(!parked.cancel(id));
    }

    #[test]
    fn only_running_requests_hold_memory_and_small_ones_always_run() {
        let budget = Arc::new(Budget::new(2 * LARGE));
        let rooms: Vec<Room> = (0..4).map(|_| room(LARGE, &budget)).collect();
        assert_eq!(budget.held(), 0, "all wait for their turn");
        // One request may exceed the bound.
        assert_eq!(
            rooms.iter().map(Room::try_decode).collect::<Vec<_>>(),
            [true, true, true, false]
        );
        assert!(rooms[0].try_decode(), "it has its memory already");
        assert_eq!(budget.held(), 3 * LARGE);
        assert!(Room::default().try_decode());
        rooms[..3].iter().for_each(Room::release);
        assert_eq!(budget.held(), 0);
        assert!(rooms[3].try_decode());
        rooms[3].unreserve();
        assert_eq!(budget.held(), 0);
        assert!(rooms[3].try_decode());
        assert_eq!(budget.held(), LARGE);
    }

    #[test]
    fn a_request_that_waits_for_others_holds_nothing() {
        let (input, responses) = (Arc::new(Budget::new(100)), Arc::new(Budget::new(100)));
        let covering = |budget: &Arc<Budget>, bytes| {
            let mut share = budget.share();
            share.cover(bytes);
            share
        };
        let room = Room::new(covering(&responses, 20));
        room.lend(covering(&input, 10));
        assert_eq!((input.held(), responses.held()), (10, 20));
        room.unreserve();
        assert_eq!((input.held(), responses.held()), (10, 0));
        room.release();
        assert_eq!((input.held(), room.take_response().is_some()), (0, false));
    }
}
