//! Requests that Python handles, from the event to the response.
//!
//! A request reserves memory for its decoded form in Python before it is queued. Without free
//! memory its connection waits and reads nothing more: that is the limit of the requests parked for
//! Python (docs/SEAM.md S7), shared fairly in the order of arrival. The reservation moves with the
//! request, through the queue into Python's request, and is released when that is dropped.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::network::memory::budget::{Budget, Lane, Share};
use crate::slots::Slots;

pub(crate) struct ParkedRequests {
    slots: Slots<oneshot::Sender<Bytes>>,
    budget: Arc<Budget>,
}

/// The memory reserved for one request, until the last clone is dropped. The default reserves
/// nothing: for a request that no client sent.
#[derive(Debug, Clone, Default)]
pub struct Room {
    _share: Option<Arc<Share>>,
}

impl ParkedRequests {
    pub(crate) fn new(budget: Arc<Budget>) -> ParkedRequests {
        ParkedRequests { slots: Slots::new(), budget }
    }

    /// Waits for memory for a request that needs `bytes`.
    pub(crate) async fn admit(&self, bytes: usize) -> Room {
        let (lane, mut share) = (Lane::of(bytes), self.budget.share());
        if !share.try_grow(lane, bytes) {
            share.grow(lane, bytes).await;
        }
        Room { _share: Some(Arc::new(share)) }
    }

    /// The id for Python's response, and the receiver of the response.
    pub(crate) fn park(&self) -> (u64, oneshot::Receiver<Bytes>) {
        let (sender, receiver) = oneshot::channel();
        (self.slots.insert(sender), receiver)
    }

    /// Unknown ids are ignored: their connection was closed.
    pub(crate) fn respond(&self, id: u64, body: Bytes) {
        if let Some(sender) = self.slots.remove(id) {
            let _ = sender.send(body);
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

    #[test]
    fn a_reply_reaches_its_request_once_and_unknown_ids_are_dropped() {
        let parked = ParkedRequests::new(Arc::new(Budget::new(100)));
        let (id, mut answer) = parked.park();
        parked.respond(id + 1, Bytes::from_static(b"other"));
        parked.respond(id, Bytes::from_static(b"mine"));
        parked.respond(id, Bytes::from_static(b"again"));
        assert_eq!(answer.try_recv().as_deref(), Ok(&b"mine"[..]));
        assert!(!parked.cancel(id));
    }
}
