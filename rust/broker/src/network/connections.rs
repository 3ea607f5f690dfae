//! The registry of open connections: who may be asked to close, and who may come.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::seam::settings::Settings;
use crate::slots::Slots;

const OPEN: u8 = 0;
const DRAINING: u8 = 1;
const CLOSED: u8 = 2;
const SECOND_NS: u64 = 1_000_000_000;

/// A connection's ear for requests to end; its task looks at it between frames and while it waits.
pub(crate) struct Closing {
    state: AtomicU8,
    changed: Notify,
    reason: Mutex<String>,
}

impl Closing {
    pub(crate) fn new() -> Closing {
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

/// Why a connection is not opened now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// `max.connections`: it waits.
    All,
    /// `max.connections.per.ip`, which is this: it is closed, as by Kafka.
    OfAddress(usize),
}

pub(crate) struct Connections {
    slots: Slots<(IpAddr, Arc<Closing>)>,
    of_addresses: Mutex<HashMap<IpAddr, usize>>,
    /// When the next may come by `max.connection.creation.rate`.
    next_ns: Mutex<u64>,
    /// Told whenever fewer are open than before, or more may be.
    room: Notify,
}

impl Connections {
    pub(crate) fn new() -> Connections {
        Connections {
            slots: Slots::new(),
            of_addresses: Mutex::default(),
            next_ns: Mutex::default(),
            room: Notify::new(),
        }
    }

    /// Registers a connection from `address`.
    pub(crate) fn open(
        &self,
        address: IpAddr,
        settings: &Settings,
    ) -> Result<(u64, Arc<Closing>), Refused> {
        let mut of_addresses = self.of_addresses.lock();
        let known = of_addresses.get(&address).copied().unwrap_or(0);
        let count_max = settings.connections_of(address);
        if known >= count_max {
            return Err(Refused::OfAddress(count_max));
        }
        let closing = Arc::new(Closing::new());
        let id = self
            .slots
            .insert_below(settings.connections_max, (address, closing.clone()))
            .ok_or(Refused::All)?;
        of_addresses.insert(address, known + 1);
        Ok((id, closing))
    }

    pub(crate) fn forget(&self, id: u64) {
        let mut of_addresses = self.of_addresses.lock();
        if let Some((address, _)) = self.slots.remove(id)
            && let Some(count) = of_addresses.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                of_addresses.remove(&address);
            }
        }
        drop(of_addresses);
        self.room.notify_waiters();
    }

    /// Takes the next turn of `per_second`, and returns how long it is to be waited for. What was not taken in the last
    /// second may be taken at once.
    pub(crate) fn turn(&self, per_second: u32, now_ns: u64) -> Duration {
        let mut next_ns = self.next_ns.lock();
        let earliest_ns = now_ns.saturating_sub(SECOND_NS);
        *next_ns = (*next_ns).max(earliest_ns) + SECOND_NS / u64::from(per_second.max(1));
        Duration::from_nanos(next_ns.saturating_sub(now_ns))
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
        if let Some((_, closing)) = self.slots.get(id) {
            closing.close(reason);
        }
    }

    pub(crate) fn drain_all(&self) {
        self.slots.all().iter().for_each(|(_, closing)| closing.drain());
    }

    pub(crate) fn close_all(&self, reason: &str) {
        self.slots.all().iter().for_each(|(_, closing)| closing.close(reason));
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

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const OTHER: IpAddr = IpAddr::V6(std::net::Ipv6Addr::LOCALHOST);

    #[test]
    fn an_address_has_as_many_connections_as_its_limit_and_others_are_not_counted() {
        let values =
            [("max.connections.per.ip", "1"), ("max.connections.per.ip.overrides", "127.0.0.1:2")];
        let (settings, _) = Settings::resolve(values);
        let connections = Connections::new();
        let (first, _) = connections.open(LOOPBACK, &settings).expect("below its limit");
        connections.open(LOOPBACK, &settings).expect("below its limit");
        let refused = connections.open(LOOPBACK, &settings).err();
        assert_eq!(refused, Some(Refused::OfAddress(2)));
        connections.open(OTHER, &settings).expect("below its limit");
        assert_eq!(connections.open(OTHER, &settings).err(), Some(Refused::OfAddress(1)));
        connections.forget(first);
        connections.forget(first);
        connections.open(LOOPBACK, &settings).expect("one has ended");
        assert_eq!(connections.open(LOOPBACK, &settings).err(), Some(Refused::OfAddress(2)));
    }

    #[test]
    fn turns_come_at_the_rate_after_a_second_of_them_at_once() {
        let (connections, now_ns) = (Connections::new(), 10 * SECOND_NS);
        let waits: Vec<u128> = (0..6).map(|_| connections.turn(4, now_ns).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 0, 250, 500]);
        assert_eq!(connections.turn(4, now_ns + 9 * SECOND_NS).as_millis(), 0);
    }
}
