//! The registry of open connections: who may be asked to close.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::slots::Slots;

const OPEN: u8 = 0;
const DRAINING: u8 = 1;
const CLOSED: u8 = 2;

/// A connection's ear for requests to end; its task looks at it between frames and while it waits.
pub(crate) struct Closing {
    state: AtomicU8,
    changed: Notify,
    reason: Mutex<String>,
}

impl Closing {
    fn new() -> Closing {
        Closing { state: AtomicU8::new(OPEN), changed: Notify::new(), reason: Mutex::default() }
    }

    /// Finish the request in hand, then close.
    pub(crate) fn drain(&self) {
        self.raise(DRAINING);
    }

    /// Close now.
    pub(crate) fn close(&self, reason: &str) {
        reason.clone_into(&mut self.reason.lock());
        self.raise(CLOSED);
    }

    fn raise(&self, state: u8) {
        self.state.fetch_max(state, Ordering::AcqRel);
        self.changed.notify_one();
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.state.load(Ordering::Acquire) >= DRAINING
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.load(Ordering::Acquire) == CLOSED
    }

    pub(crate) fn reason(&self) -> String {
        self.reason.lock().clone()
    }

    /// Returns at the next change, at once if one came since the last call. One task may wait.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}

pub(crate) struct Connections {
    slots: Slots<Arc<Closing>>,
    /// Told whenever fewer are open than before, or more may be.
    room: Notify,
}

impl Connections {
    pub(crate) fn new() -> Connections {
        Connections { slots: Slots::new(), room: Notify::new() }
    }

    /// Registers a connection; `None` while `count_max` are open.
    pub(crate) fn open(&self, count_max: usize) -> Option<(u64, Arc<Closing>)> {
        let closing = Arc::new(Closing::new());
        Some((self.slots.insert_below(count_max, closing.clone())?, closing))
    }

    pub(crate) fn forget(&self, id: u64) {
        self.slots.remove(id);
        self.room.notify_waiters();
    }

    /// Returns at the next change that may leave room for one more; it counts from this call on, not from the first poll.
    pub(crate) fn room(&self) -> Notified<'_> {
        self.room.notified()
    }

    /// `max.connections` may have been raised.
    pub(crate) fn limit_changed(&self) {
        self.room.notify_waiters();
    }

    pub(crate) fn close(&self, id: u64, reason: &str) {
        if let Some(closing) = self.slots.get(id) {
            closing.close(reason);
        }
    }

    pub(crate) fn drain_all(&self) {
        self.slots.all().iter().for_each(|closing| closing.drain());
    }

    pub(crate) fn close_all(&self, reason: &str) {
        self.slots.all().iter().for_each(|closing| closing.close(reason));
    }

    pub(crate) fn count(&self) -> usize {
        self.slots.count()
    }

    /// Returns when no connection is open.
    pub(crate) async fn wait_none(&self) {
        loop {
            let room = self.room();
            if self.slots.count() == 0 {
                return;
            }
            room.await;
        }
    }
}
