//! Binding and accepting.
//!
//! With `max.connections` open a listener accepts one more and lets it wait until another one ends, and so does the
//! system with those behind it: as in Kafka, nobody is turned away and nobody is closed for a newcomer. The same
//! happens when only the last descriptors of the process are left (`descriptors`).

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt::set_tcp_congestion;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use crate::api::context::{ConnectionInfo, Context, ControllerApis};
use crate::network::connection;
use crate::network::connections::{Closing, Refused};
use crate::network::descriptors;
use crate::network::gate::Gated;
use crate::seam::log_ring::Level;

const BACKLOG: i32 = 1_024;
/// Pause after a failed accept, and between two looks at the descriptors: without them it fails again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const TARGET: &str = "broker.listener";
const ANONYMOUS: &str = "User:ANONYMOUS";

/// Binds `HOST:PORT`; an empty host is every address of IPv4.
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
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// What a listener is.
pub(crate) struct Listens {
    /// As Kafka's settings name it.
    pub(crate) name: Arc<str>,
    /// As in [`ConnectionInfo`].
    pub(crate) controller_apis: Option<Arc<ControllerApis>>,
}

/// The congestion control of connections within the machine, which share no link with others. Every Linux has it. BBR, where
/// that is the system's default, paces what is sent by timers (docs/PERFORMANCE.md).
const UNPACED: &str = "reno";

/// Accepts until the task is aborted; each connection is a task of its own.
pub(crate) async fn accept(ctx: Arc<Context>, listens: Listens, listener: TcpListener) {
    let name = &listens.name;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                if descriptors::is_of_reserve(stream.as_raw_fd()) {
                    wait_descriptors(&ctx, name, &stream).await;
                }
                wait_turn(&ctx).await;
                admit(&ctx, &listens, stream, peer).await;
            }
            Err(error) => {
                ctx.log_ring
                    .log(Level::Warning, TARGET, || format!("{name}: accept failed: {error}"));
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Answers wait neither for further ones nor, within the machine, for a timer.
fn send_at_once(stream: &TcpStream, peer: SocketAddr) -> io::Result<()> {
    stream.set_nodelay(true)?;
    if peer.ip().to_canonical().is_loopback() {
        // Where it is not allowed the connection works without.
        let _ = set_tcp_congestion(stream, UNPACED);
    }
    Ok(())
}

async fn admit(ctx: &Arc<Context>, listens: &Listens, stream: TcpStream, peer: SocketAddr) {
    ctx.statistics.connections_accepted.add(1);
    if send_at_once(&stream, peer).is_err() {
        return;
    }
    let Some((id, closing)) = open(ctx, &listens.name, peer).await else { return };
    // A stop that began meanwhile may have passed over it.
    if ctx.is_stopping() {
        closing.drain();
    }
    let info = ConnectionInfo {
        id,
        listener: listens.name.clone(),
        client_host: Arc::from(peer.ip().to_string()),
        principal: Arc::from(ANONYMOUS),
        mute: Arc::default(),
        controller_apis: listens.controller_apis.clone(),
    };
    let transport = Gated::new(stream, ctx.gates.accepted.clone());
    let ctx = ctx.clone();
    tokio::spawn(async move {
        let _registered = Registered { ctx: ctx.clone(), id };
        connection::run(ctx, transport, info, closing).await;
    });
}

/// Returns when there are descriptors beyond the reserve. Others than this broker may give them back, so it looks.
async fn wait_descriptors(ctx: &Context, name: &str, stream: &TcpStream) {
    ctx.statistics.connections_delayed.add(1);
    ctx.log_ring.log(Level::Warning, TARGET, || {
        format!("{name}: connections wait: the process has hardly any descriptor left (ulimit -n)")
    });
    while descriptors::are_scarce(stream) {
        sleep(ACCEPT_PAUSE).await;
    }
}

/// Returns when `max.connection.creation.rate` lets the next one in.
async fn wait_turn(ctx: &Context) {
    let per_second = ctx.image.load().settings.connection_rate_max;
    let wait = ctx.connections.turn(per_second, ctx.clock.now_ns());
    if !wait.is_zero() {
        ctx.statistics.connections_delayed.add(1);
        sleep(wait).await;
    }
}

/// Registers the connection, when `max.connections` allows it; `None` if its address has too many.
async fn open(ctx: &Context, name: &str, peer: SocketAddr) -> Option<(u64, Arc<Closing>)> {
    let mut was_delayed = false;
    loop {
        let room = ctx.connections.room();
        let settings = ctx.image.load().settings.clone();
        match ctx.connections.open(peer.ip(), &settings) {
            Ok(opened) => return Some(opened),
            Err(Refused::OfAddress(count_max)) => {
                ctx.statistics.connections_refused.add(1);
                ctx.log_ring.log(Level::Info, TARGET, || {
                    let address = peer.ip();
                    format!("{name}: {address} already has {count_max} connections, its maximum")
                });
                return None;
            }
            Err(Refused::All) if !was_delayed => {
                was_delayed = true;
                ctx.statistics.connections_delayed.add(1);
                ctx.log_ring.log(Level::Warning, TARGET, || {
                    let connections_max = settings.connections_max;
                    format!("{name}: {} waits for max.connections={connections_max}", peer.ip())
                });
            }
            Err(Refused::All) => {}
        }
        room.await;
    }
}

/// Leaves the registry also if the task panics.
struct Registered {
    ctx: Arc<Context>,
    id: u64,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.ctx.connections.forget(self.id);
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::sockopt::tcp_congestion;

    use super::*;

    /// One that was accepted from `peer`, or says so.
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
    async fn what_is_sent_within_the_machine_is_not_paced() {
        let mapped = "[::ffff:127.0.0.1]:9092".parse().expect("an address");
        for peer in [None, Some(mapped)] {
            let stream = accepted(peer).await;
            assert_eq!(tcp_congestion(&stream).expect("it is TCP"), UNPACED);
            assert!(stream.nodelay().expect("it is TCP"));
        }
    }

    #[tokio::test]
    async fn what_is_sent_to_other_machines_is_paced_as_the_system_has_it() {
        let stream = accepted(Some("192.0.2.1:9092".parse().expect("an address"))).await;
        let untouched = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let default = tcp_congestion(&untouched).expect("it is TCP");
        assert_eq!(tcp_congestion(&stream).expect("it is TCP"), default);
    }
}
