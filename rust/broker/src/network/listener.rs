//! Binds listeners and accepts connections.
//!
//! If `max.connections` are open, a client listener accepts one more connection and delays it until
//! another one ends. The system delays the connections after it: as in Kafka, none is rejected. The
//! same happens if only the last descriptors of the process are left (`descriptors`), and if
//! `max.connection.creation.rate` is reached.
//!
//! Nodes do not wait. Each connection to a node listener is admitted, and a client is closed for it
//! (`connections`). On a listener for nodes and clients, the same holds for the addresses of known
//! nodes (`known_nodes`). There, clients wait in a queue, and nodes overtake them. A client is
//! closed if the queue is full or no descriptor is left.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener as StdListener, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use pykafka_forks::Socket;
use socket2::{Domain, Protocol, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::control_api::log_ring::Level;
use crate::network::connection;
use crate::network::connections::{ConnectionRefused, Opened, Rank};
use crate::network::descriptors;
use crate::network::fault_injection::Gated;
use crate::network::{Handler, Network, platform};
use crate::request::{ConnectionInfo, ControllerApis};

const BACKLOG: i32 = 1_024;
/// Maximum number of clients in a queue; each occupies a descriptor.
const QUEUED_MAX: usize = 64;
/// Pause after a failed accept and between checks of the descriptors; without it, the next attempt
/// would fail at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Pause between two attempts to get the descriptor of a client that was closed for a node.
const DISPLACED_PAUSE: Duration = Duration::from_millis(2);
/// After this many attempts, another part of the process has the descriptor.
const DISPLACED_LOOKS: u32 = 50;
const TARGET: &str = "broker.listener";
const ANONYMOUS: &str = "User:ANONYMOUS";

/// Binds `HOST:PORT`; an empty host means all IPv4 addresses.
pub(crate) fn bind(address: &str) -> io::Result<StdListener> {
    let mut failed = io::Error::new(io::ErrorKind::InvalidInput, "the address names no host");
    for resolved in resolve(address)? {
        match bind_to(resolved) {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn resolve(address: &str) -> io::Result<Vec<SocketAddr>> {
    let every = address.strip_prefix(':').map(|port| format!("0.0.0.0:{port}"));
    Ok(every.as_deref().unwrap_or(address).to_socket_addrs()?.collect())
}

fn bind_to(address: SocketAddr) -> io::Result<StdListener> {
    let socket =
        socket2::Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// The peers of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Only clients.
    Clients,
    /// Brokers and controllers.
    Nodes,
    /// Brokers and clients.
    Both,
}

impl Audience {
    /// The audience for a name from Python.
    pub fn from_name(name: &str) -> Option<Audience> {
        match name {
            "clients" => Some(Audience::Clients),
            "nodes" => Some(Audience::Nodes),
            "both" => Some(Audience::Both),
            _ => None,
        }
    }
}

/// The properties of a listener.
pub(crate) struct Listens {
    /// Listener name in Kafka's settings.
    pub(crate) name: Arc<str>,
    pub(crate) audience: Audience,
    /// See [`ConnectionInfo::controller_apis`].
    pub(crate) controller_apis: Option<Arc<ControllerApis>>,
}

/// Accepts until the task is aborted; each connection gets a separate task.
pub(crate) async fn accept(
    network: Arc<Network>,
    handler: Arc<dyn Handler>,
    listens: Listens,
    listener: Socket<TcpListener>,
) {
    let (queue, queued) = mpsc::channel(QUEUED_MAX);
    let acceptor = Acceptor { network, handler, listens, queue };
    tokio::join!(acceptor.accept_from(listener), acceptor.admit_all(queued));
}

/// An accepted connection that is not served yet.
struct Arrival {
    stream: Socket<TcpStream>,
    peer: SocketAddr,
    rank: Rank,
}

impl Arrival {
    fn is_of_reserve(&self, rank: Rank) -> bool {
        descriptors::is_of_reserve(self.stream.as_raw_fd(), rank)
    }
}

/// Accepts the connections of one listener.
struct Acceptor {
    network: Arc<Network>,
    handler: Arc<dyn Handler>,
    listens: Listens,
    /// The queue of clients, on a listener for nodes and clients.
    queue: mpsc::Sender<Arrival>,
}

impl Acceptor {
    async fn accept_from(&self, listener: Socket<TcpListener>) {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let (stream, rank) = (Socket::new(stream), self.rank_of(peer.ip()));
                    self.receive(Arrival { stream, peer, rank }).await;
                }
                Err(error) => {
                    let name = &self.listens.name;
                    self.log(Level::Warning, || format!("{name}: accept failed: {error}"));
                    if self.listens.audience == Audience::Nodes {
                        self.displace_one();
                    }
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn rank_of(&self, address: IpAddr) -> Rank {
        match self.listens.audience {
            Audience::Nodes => Rank::Node,
            Audience::Both if self.network.known_nodes.has(address) => Rank::Neighbour,
            Audience::Both | Audience::Clients => Rank::Client,
        }
    }

    /// Admits the connection, or queues it if nodes may overtake it.
    async fn receive(&self, arrival: Arrival) {
        if arrival.rank != Rank::Client || self.listens.audience == Audience::Clients {
            return self.admit(arrival).await;
        }
        let peer = arrival.peer;
        if arrival.is_of_reserve(Rank::Client) || self.queue.try_send(arrival).is_err() {
            self.network.statistics.connections_accepted.add(1);
            self.network.statistics.connections_refused.add(1);
            let name = &self.listens.name;
            self.log(Level::Info, || {
                format!(
                    "{name}: closed the connection from {}: there is no place to wait",
                    peer.ip()
                )
            });
        }
    }

    /// Admits the clients of the queue in their order.
    async fn admit_all(&self, mut queued: mpsc::Receiver<Arrival>) {
        while let Some(arrival) = queued.recv().await {
            self.admit(arrival).await;
        }
    }

    /// Waits until the limits allow the connection, and starts to serve it.
    async fn admit(&self, mut arrival: Arrival) {
        if arrival.is_of_reserve(Rank::Client) {
            self.leave_reserve(&mut arrival).await;
        }
        if arrival.rank == Rank::Client {
            self.wait_turn().await;
        }
        self.network.statistics.connections_accepted.add(1);
        if send_at_once(&arrival.stream, arrival.peer).is_err() {
            return;
        }
        if let Some(opened) = self.open(&arrival).await {
            self.serve(arrival, opened);
        }
    }

    fn serve(&self, arrival: Arrival, opened: Opened) {
        let (network, handler) = (self.network.clone(), self.handler.clone());
        let Opened { id, closing, standing, .. } = opened;
        // A stop that started before the registration did not reach the connection.
        if network.is_stopping() {
            closing.drain();
        }
        let info = ConnectionInfo {
            id,
            listener: self.listens.name.clone(),
            client_host: Arc::from(arrival.peer.ip().to_string()),
            principal: Arc::from(ANONYMOUS),
            mute: Arc::default(),
            standing,
            controller_apis: self.listens.controller_apis.clone(),
        };
        let transport = Gated::new(arrival.stream, network.gates.accepted.clone());
        tokio::spawn(async move {
            let _registered = Registered { network: network.clone(), id };
            connection::run(network, handler, transport, info, closing).await;
        });
    }

    /// Moves the connection out of the reserve. It polls, because other parts of the process may
    /// free descriptors, too. A client is closed for a node; without clients, the node keeps a
    /// descriptor of the nodes' part of the reserve.
    async fn leave_reserve(&self, arrival: &mut Arrival) {
        if arrival.rank != Rank::Client {
            while self.displace_one() {
                for _ in 0..DISPLACED_LOOKS {
                    sleep(DISPLACED_PAUSE).await;
                    if descriptors::move_out(&mut arrival.stream, Rank::Client) {
                        return;
                    }
                }
            }
            if !arrival.is_of_reserve(arrival.rank) {
                return;
            }
        }
        self.network.statistics.connections_delayed.add(1);
        let name = &self.listens.name;
        self.log(Level::Warning, || {
            format!(
                "{name}: connections wait: the process has hardly any descriptor left (ulimit -n)"
            )
        });
        while !descriptors::move_out(&mut arrival.stream, arrival.rank) {
            sleep(ACCEPT_PAUSE).await;
        }
    }

    /// Waits until `max.connection.creation.rate` permits the next connection.
    async fn wait_turn(&self) {
        let per_second = self.network.settings.load().connection_rate_max;
        let wait = self.network.connections.turn(per_second, self.network.clock.now_ns());
        if !wait.is_zero() {
            self.network.statistics.connections_delayed.add(1);
            sleep(wait).await;
        }
    }

    /// Registers the connection as soon as `max.connections` permits it; `None` if its address has
    /// too many connections.
    async fn open(&self, arrival: &Arrival) -> Option<Opened> {
        let Acceptor { network, listens: Listens { name, .. }, .. } = self;
        let address = arrival.peer.ip();
        let mut was_delayed = false;
        loop {
            let room = network.connections.room();
            let settings = network.settings.load_full();
            match network.connections.open(address, arrival.rank, &settings, network.clock.now_ns())
            {
                Ok(opened) => {
                    network.statistics.connections_displaced.add(opened.displaced as u64);
                    return Some(opened);
                }
                Err(ConnectionRefused::OfAddress(count_max)) => {
                    network.statistics.connections_refused.add(1);
                    self.log(Level::Info, || {
                        format!(
                            "{name}: {address} already has {count_max} connections, its maximum"
                        )
                    });
                    return None;
                }
                Err(ConnectionRefused::All) if !was_delayed => {
                    was_delayed = true;
                    network.statistics.connections_delayed.add(1);
                    self.log(Level::Warning, || {
                        let connections_max = settings.connections_max;
                        format!("{name}: {address} waits for max.connections={connections_max}")
                    });
                }
                Err(ConnectionRefused::All) => {}
            }
            room.await;
        }
    }

    /// Closes a client to free a descriptor for a node; returns false if there is no client.
    fn displace_one(&self) -> bool {
        let displaced = self.network.connections.displace_one();
        self.network.statistics.connections_displaced.add(displaced as u64);
        displaced > 0
    }

    fn log(&self, level: Level, text: impl FnOnce() -> String) {
        self.network.log_ring.log(level, TARGET, text);
    }
}

/// Sends responses without delay: without waiting for further data and, within the machine, without
/// timers.
fn send_at_once(stream: &TcpStream, peer: SocketAddr) -> io::Result<()> {
    stream.set_nodelay(true)?;
    if peer.ip().to_canonical().is_loopback() {
        platform::stop_pacing(stream);
    }
    Ok(())
}

/// Removes the connection from the registry, also if its task panics.
struct Registered {
    network: Arc<Network>,
    id: u64,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.network.connections.forget(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection that was accepted from `peer`, or pretends to be.
    async fn accepted(peer: Option<SocketAddr>) -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let connected = TcpStream::connect(listener.local_addr().expect("bound"));
        let (accepted, connected) = tokio::join!(listener.accept(), connected);
        connected.expect("a listener");
        let (stream, from) = accepted.expect("a peer");
        send_at_once(&stream, peer.unwrap_or(from)).expect("it is open");
        stream
    }

    #[tokio::test]
    async fn connections_within_the_machine_are_not_paced() {
        let mapped = "[::ffff:127.0.0.1]:9092".parse().expect("an address");
        for peer in [None, Some(mapped)] {
            let stream = accepted(peer).await;
            assert_eq!(platform::congestion_control(&stream), platform::UNPACED);
            assert!(stream.nodelay().expect("it is TCP"));
        }
    }

    #[tokio::test]
    async fn connections_to_other_machines_use_the_default_pacing_of_the_system() {
        let stream = accepted(Some("192.0.2.1:9092".parse().expect("an address"))).await;
        let untouched = socket2::Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let default = platform::congestion_control(&untouched);
        assert_eq!(platform::congestion_control(&stream), default);
    }
}
