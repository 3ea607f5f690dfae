//! The registry of open connections, and their limits.
//!
//! Clients cannot keep nodes out. As in Kafka, a node's connection is opened even above
//! `max.connections`, and the client connection that has been idle for longest is closed for it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use pykafka_forks::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::control_api::settings::Settings;
use crate::request::Standing;
use crate::slots::Slots;

const OPEN: u8 = 0;
const DRAINING: u8 = 1;
const CLOSED: u8 = 2;
const SECOND_NS: u64 = 1_000_000_000;

/// Signals a connection to end; its task checks this between frames and during waits.
pub(crate) struct Closing {
    state: AtomicU8,
    changed: Notify,
    reason: Mutex<String>,
}

impl Closing {
    pub(crate) fn new() -> Closing {
        Closing { state: AtomicU8::new(OPEN), changed: Notify::new(), reason: Mutex::default() }
    }

    /// Ends the connection after the pending requests.
    pub(crate) fn drain(&self) {
        self.raise(DRAINING);
    }

    /// Ends the connection now.
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

    /// Returns at the next change; at once if there was one since the last call. Only one task may
    /// wait.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// The origin of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rank {
    /// A connection of a client.
    Client,
    /// The address of a node, on a listener for nodes and clients. The connection is opened as a
    /// node's. It may be closed for another one as long as it does not fetch as a replica.
    Neighbour,
    /// A node listener.
    Node,
}

/// The result of opening a connection.
pub(crate) struct Opened {
    pub(crate) id: u64,
    pub(crate) closing: Arc<Closing>,
    pub(crate) standing: Arc<Standing>,
    /// Number of other connections that are closed for this one.
    pub(crate) displaced: usize,
}

#[derive(Clone)]
struct Entry {
    address: IpAddr,
    rank: Rank,
    closing: Arc<Closing>,
    standing: Arc<Standing>,
}

/// A client counts as idle after this time without a request.
const IDLE_NS: u64 = SECOND_NS;

impl Entry {
    fn used_ns(&self) -> u64 {
        self.standing.used_ns()
    }

    fn may_be_displaced(&self) -> bool {
        !self.standing.is_of_node()
    }
}

/// The reason why a connection is not opened now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionRefused {
    /// `max.connections` is reached; the connection waits.
    All,
    /// `max.connections.per.ip`, which is this number, is reached; the connection is closed, as by
    /// Kafka.
    OfAddress(usize),
}

pub(crate) struct Connections {
    slots: Slots<Entry>,
    /// Number of connections per address; node listeners are not counted.
    of_addresses: Mutex<HashMap<IpAddr, usize>>,
    /// Earliest time of the next connection by `max.connection.creation.rate`.
    next_ns: Mutex<u64>,
    /// Notified when a connection ends, or when a limit may have risen.
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
        rank: Rank,
        settings: &Settings,
        now_ns: u64,
    ) -> Result<Opened, ConnectionRefused> {
        let entry =
            Entry { address, rank, closing: Arc::new(Closing::new()), standing: Arc::default() };
        entry.standing.used(now_ns);
        if rank == Rank::Node {
            entry.standing.set_node();
        }
        let mut of_addresses = self.of_addresses.lock();
        let mut displaced = self.make_room_of_address(&entry, &of_addresses, settings)?;
        if rank != Rank::Client {
            displaced += self.make_room(rank, settings.connections_max, now_ns);
        }
        let count_max = if rank == Rank::Client { settings.connections_max } else { usize::MAX };
        let id = self.slots.insert_below(count_max, entry.clone()).ok_or(ConnectionRefused::All)?;
        if rank != Rank::Node {
            *of_addresses.entry(address).or_default() += 1;
        }
        Ok(Opened { id, closing: entry.closing, standing: entry.standing, displaced })
    }

    /// Keeps `max.connections.per.ip` when `comer` is opened. Returns the number of connections
    /// that are closed for it.
    fn make_room_of_address(
        &self,
        comer: &Entry,
        of_addresses: &HashMap<IpAddr, usize>,
        settings: &Settings,
    ) -> Result<usize, ConnectionRefused> {
        let count_max = settings.connections_of(comer.address);
        let count = of_addresses.get(&comer.address).copied().unwrap_or(0);
        if comer.rank == Rank::Node || count < count_max {
            return Ok(0);
        }
        let is_of_address = |entry: &Entry| entry.address == comer.address;
        let displaced = match comer.rank {
            Rank::Neighbour => self.displace(1, is_of_address, "max.connections.per.ip"),
            Rank::Client | Rank::Node => 0,
        };
        if displaced == 0 { Err(ConnectionRefused::OfAddress(count_max)) } else { Ok(displaced) }
    }

    /// Keeps `max.connections` when another connection is opened, as far as there are clients to
    /// close. Returns the number of closed connections.
    ///
    /// A neighbour may be a client. It replaces an idle client, and a busy one only above twice
    /// `max.connections`.
    fn make_room(&self, rank: Rank, connections_max: usize, now_ns: u64) -> usize {
        if self.slots.count() < connections_max {
            return 0;
        }
        let staying = self.slots.all().iter().filter(|entry| !entry.closing.is_draining()).count();
        let spares_busy = rank == Rank::Neighbour && staying < connections_max.saturating_mul(2);
        let is_idle = |entry: &Entry| now_ns.saturating_sub(entry.used_ns()) >= IDLE_NS;
        self.displace(
            (staying + 1).saturating_sub(connections_max),
            |entry| !spares_busy || is_idle(entry),
            "max.connections",
        )
    }

    /// Closes the client that has been idle for longest, to free a descriptor. Returns the number
    /// of closed connections.
    pub(crate) fn displace_one(&self) -> usize {
        self.displace(1, |_| true, "the process has hardly any descriptor left (ulimit -n)")
    }

    /// Closes the connections that have been idle for longest, at most `count` of those that match
    /// `among`. Returns the number of closed connections.
    fn displace(&self, count: usize, among: impl Fn(&Entry) -> bool, limit: &str) -> usize {
        let mut idle = self.slots.all();
        idle.retain(|entry| {
            entry.may_be_displaced() && !entry.closing.is_draining() && among(entry)
        });
        idle.sort_unstable_by_key(Entry::used_ns);
        idle.truncate(count);
        let reason = format!("a node came and none was idle longer: {limit}");
        for entry in &idle {
            entry.closing.close(&reason);
        }
        idle.len()
    }

    pub(crate) fn forget(&self, id: u64) {
        let mut of_addresses = self.of_addresses.lock();
        if let Some(entry) = self.slots.remove(id)
            && entry.rank != Rank::Node
            && let Some(count) = of_addresses.get_mut(&entry.address)
        {
            *count -= 1;
            if *count == 0 {
                of_addresses.remove(&entry.address);
            }
        }
        drop(of_addresses);
        self.room.notify_waiters();
    }

    /// Reserves the next turn at `per_second`, and returns the time to wait for it. Turns that were
    /// not used in the last second may be used at once.
    pub(crate) fn turn(&self, per_second: u32, now_ns: u64) -> Duration {
        let mut next_ns = self.next_ns.lock();
        let earliest_ns = now_ns.saturating_sub(SECOND_NS);
        *next_ns = (*next_ns).max(earliest_ns) + SECOND_NS / u64::from(per_second.max(1));
        Duration::from_nanos(next_ns.saturating_sub(now_ns))
    }

    /// Returns at the next change that may permit another connection. Changes count from this call
    /// on, not from the first poll.
    pub(crate) fn room(&self) -> Notified<'_> {
        self.room.notified()
    }

    /// Called when `max.connections` may have risen.
    pub(crate) fn limit_changed(&self) {
        self.room.notify_waiters();
    }

    pub(crate) fn close(&self, id: u64, reason: &str) {
        if let Some(entry) = self.slots.get(id) {
            entry.closing.close(reason);
        }
    }

    pub(crate) fn drain_all(&self) {
        self.slots.all().iter().for_each(|entry| entry.closing.drain());
    }

    pub(crate) fn close_all(&self, reason: &str) {
        self.slots.all().iter().for_each(|entry| entry.closing.close(reason));
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

    fn limited<const N: usize>(values: [(&str, &str); N]) -> Settings {
        Settings::resolve(values).0
    }

    /// Opens a connection that is used once, at `now_ns`.
    fn opened(connections: &Connections, rank: Rank, limits: &Settings, now_ns: u64) -> Opened {
        connections.open(LOOPBACK, rank, limits, now_ns).expect("it may come")
    }

    fn are_closed<const N: usize>(opened: [&Opened; N]) -> [bool; N] {
        opened.map(|one| one.closing.is_closed())
    }

    #[test]
    fn connections_of_an_address_are_limited_and_others_are_not_counted() {
        let limits = limited([
            ("max.connections.per.ip", "1"),
            ("max.connections.per.ip.overrides", "127.0.0.1:2"),
        ]);
        let connections = Connections::new();
        let open = |address| connections.open(address, Rank::Client, &limits, 0);
        let refused = |address| open(address).err();
        let first = open(LOOPBACK).expect("below its limit").id;
        assert_eq!(refused(LOOPBACK), None);
        assert_eq!(refused(LOOPBACK), Some(ConnectionRefused::OfAddress(2)));
        assert_eq!((refused(OTHER), refused(OTHER)), (None, Some(ConnectionRefused::OfAddress(1))));
        connections.forget(first);
        connections.forget(first);
        assert_eq!(refused(LOOPBACK), None);
        assert_eq!(refused(LOOPBACK), Some(ConnectionRefused::OfAddress(2)));
    }

    #[test]
    fn the_client_that_is_idle_longest_is_closed_for_a_node() {
        let (connections, limits) = (Connections::new(), limited([("max.connections", "3")]));
        let node = opened(&connections, Rank::Node, &limits, 0);
        let first = opened(&connections, Rank::Client, &limits, 1);
        let second = opened(&connections, Rank::Client, &limits, 2);
        first.standing.used(3);
        let refused = connections.open(LOOPBACK, Rank::Client, &limits, 4).err();
        assert_eq!(refused, Some(ConnectionRefused::All));
        assert_eq!(opened(&connections, Rank::Node, &limits, 5).displaced, 1);
        assert_eq!(are_closed([&node, &first, &second]), [false, false, true]);
        // A connection that is being closed does not count.
        assert_eq!(opened(&connections, Rank::Node, &limits, 6).displaced, 1);
        assert_eq!(are_closed([&node, &first]), [false, true]);
        // Nodes are admitted even so.
        assert_eq!(opened(&connections, Rank::Node, &limits, 7).displaced, 0);
        assert!(!node.closing.is_closed());
    }

    #[test]
    fn busy_clients_stay_open_up_to_twice_the_limit() {
        let (connections, limits) = (Connections::new(), limited([("max.connections", "2")]));
        let busy = [1, 2, 3, 4].map(|now| opened(&connections, Rank::Neighbour, &limits, now));
        assert!(busy.iter().all(|one| one.displaced == 0));
        assert_eq!(opened(&connections, Rank::Neighbour, &limits, 5).displaced, 3);
        assert!(busy[0].closing.is_closed());
    }

    #[test]
    fn a_neighbour_that_is_not_a_known_node_is_closed_for_another() {
        for name in ["max.connections", "max.connections.per.ip"] {
            let (connections, limits) = (Connections::new(), limited([(name, "2")]));
            let replica = opened(&connections, Rank::Neighbour, &limits, 1);
            replica.standing.set_node();
            let client = opened(&connections, Rank::Neighbour, &limits, 2);
            let next = opened(&connections, Rank::Neighbour, &limits, 3 + IDLE_NS);
            assert_eq!(are_closed([&replica, &client, &next]), [false, true, false]);
        }
    }

    #[test]
    fn nodes_do_not_count_among_the_connections_of_an_address() {
        let (connections, limits) =
            (Connections::new(), limited([("max.connections.per.ip", "1")]));
        let nodes = [0, 1].map(|now_ns| opened(&connections, Rank::Node, &limits, now_ns));
        opened(&connections, Rank::Client, &limits, 2);
        for node in &nodes {
            connections.forget(node.id);
        }
        let refused = connections.open(LOOPBACK, Rank::Client, &limits, 3).err();
        assert_eq!(refused, Some(ConnectionRefused::OfAddress(1)));
    }

    #[test]
    fn turns_follow_the_rate_after_a_burst_of_one_second() {
        let (connections, now_ns) = (Connections::new(), 10 * SECOND_NS);
        let waits: Vec<u128> = (0..6).map(|_| connections.turn(4, now_ns).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 0, 250, 500]);
        assert_eq!(connections.turn(4, now_ns + 9 * SECOND_NS).as_millis(), 0);
    }
}
