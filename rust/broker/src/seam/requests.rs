//! Requests that Python answers, from the event to the reply.
//!
//! A request takes room for its body's size before it is queued. Without room its connection waits and reads nothing
//! more: that is the cap on bytes parked for Python (docs/SEAM.md S7), shared fairly by the order of arrival. The room
//! goes where the body goes: through the queue, into Python's request, and is given back when that is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::slots::Slots;

pub(crate) struct ParkedRequests {
    slots: Slots<oneshot::Sender<Bytes>>,
    permits: Arc<Semaphore>,
    bytes_max: AtomicUsize,
    bytes: Arc<AtomicUsize>,
}

/// Room for one body, until the last clone is dropped. The default is no room: that of a request which no client sent.
#[derive(Debug, Clone, Default)]
pub struct Room {
    _taken: Option<Arc<Taken>>,
}

#[derive(Debug)]
struct Taken {
    _permit: OwnedSemaphorePermit,
    bytes: Arc<AtomicUsize>,
    size: usize,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.bytes.fetch_sub(self.size, Ordering::Relaxed);
    }
}

impl ParkedRequests {
    pub(crate) fn new(bytes_max: usize) -> ParkedRequests {
        let bytes_max = bytes_max.min(u32::MAX as usize);
        ParkedRequests {
            slots: Slots::new(),
            permits: Arc::new(Semaphore::new(bytes_max)),
            bytes_max: AtomicUsize::new(bytes_max),
            bytes: Arc::default(),
        }
    }

    /// Changes the cap.
    pub(crate) fn set_bytes_max(&self, bytes_max: usize) {
        let bytes_max = bytes_max.min(u32::MAX as usize);
        let before = self.bytes_max.swap(bytes_max, Ordering::AcqRel);
        if bytes_max >= before {
            self.permits.add_permits(bytes_max - before);
        } else {
            let surplus = before - bytes_max;
            let forgotten = self.permits.forget_permits(surplus);
            // Permits in use cannot be taken back: the cap stays larger by them until it is set again.
            self.bytes_max.fetch_add(surplus - forgotten, Ordering::AcqRel);
        }
    }

    /// Waits for room; a body larger than the cap gets all of it.
    pub(crate) async fn admit(&self, size: usize) -> Option<Room> {
        let permits = size.min(self.bytes_max.load(Ordering::Acquire)) as u32;
        let permit = self.permits.clone().acquire_many_owned(permits).await.ok()?;
        let bytes = self.bytes.clone();
        bytes.fetch_add(size, Ordering::Relaxed);
        Some(Room { _taken: Some(Arc::new(Taken { _permit: permit, bytes, size })) })
    }

    /// The id that Python answers to, and where the answer arrives.
    pub(crate) fn park(&self) -> (u64, oneshot::Receiver<Bytes>) {
        let (sender, receiver) = oneshot::channel();
        (self.slots.insert(sender), receiver)
    }

    /// Unknown ids are dropped: their connection went away.
    pub(crate) fn respond(&self, id: u64, body: Bytes) {
        if let Some(sender) = self.slots.remove(id) {
            let _ = sender.send(body);
        }
    }

    /// Whether the request was still open.
    pub(crate) fn cancel(&self, id: u64) -> bool {
        self.slots.remove(id).is_some()
    }

    pub(crate) fn count(&self) -> usize {
        self.slots.count()
    }

    /// Bytes of the bodies that have room.
    pub(crate) fn parked_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_reaches_its_request_once_and_strangers_are_dropped() {
        let parked = ParkedRequests::new(100);
        let (id, mut answer) = parked.park();
        parked.respond(id + 1, Bytes::from_static(b"other"));
        parked.respond(id, Bytes::from_static(b"mine"));
        parked.respond(id, Bytes::from_static(b"again"));
        assert_eq!(answer.try_recv().as_deref(), Ok(&b"mine"[..]));
        assert!(!parked.cancel(id));
    }

    #[test]
    fn a_body_larger_than_the_cap_gets_all_of_it_and_gives_it_back() {
        let parked = ParkedRequests::new(100);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let room = runtime.block_on(parked.admit(1_000)).expect("open");
        assert_eq!((parked.parked_bytes(), parked.permits.available_permits()), (1_000, 0));
        parked.set_bytes_max(300);
        assert_eq!(parked.permits.available_permits(), 200);
        drop(room);
        assert_eq!((parked.parked_bytes(), parked.permits.available_permits()), (0, 300));
        parked.set_bytes_max(50);
        assert_eq!(parked.permits.available_permits(), 50);
    }
}
