//! Connections that carry no data for a while, for failover tests: they simulate a node that is
//! unreachable, or stopped as by SIGSTOP, in a process that continues to run.
//!
//! # Theory of operation
//! Each connection has a [`Valve`]: all accepted connections of this broker share one, and so do
//! all connections to the same peer. While a valve is shut, its connections are neither read nor
//! written. Arriving data waits in the sockets, as on a network that drops packets: no connection
//! ends, and the data is processed when the valve opens. An open valve costs one atomic load per
//! read and write.

use std::collections::{HashMap, HashSet};
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::mem;
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};

use bytes::BufMut;
use pykafka_client::{Connector, Destination, Tcp};
use pykafka_forks::Mutex;
use pykafka_forks::Socket;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};
use tokio::net::TcpStream;

use super::transport::Transport;

/// Controls whether its connections carry data.
#[derive(Debug, Default)]
pub(crate) struct Valve {
    is_shut: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
}

impl Valve {
    fn is_shut(&self) -> bool {
        self.is_shut.load(Ordering::Acquire)
    }

    fn set(&self, is_shut: bool) {
        let mut waiting = self.waiting.lock();
        self.is_shut.store(is_shut, Ordering::Release);
        let woken = if is_shut { Vec::new() } else { mem::take(&mut *waiting) };
        drop(waiting);
        woken.into_iter().for_each(Waker::wake);
    }

    fn poll_open(&self, cx: &Context<'_>) -> Poll<()> {
        if !self.is_shut() {
            return Poll::Ready(());
        }
        let mut waiting = self.waiting.lock();
        // It may have opened before the lock was taken; then this task would never be woken.
        if !self.is_shut() {
            return Poll::Ready(());
        }
        if !waiting.iter().any(|known| known.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    fn opened(&self) -> impl Future<Output = ()> + Send + '_ {
        poll_fn(|cx| self.poll_open(cx))
    }
}

/// Host and port of a [`Destination`].
pub type PeerAddress = (Arc<str>, u16);

/// The unreachable peers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreachable {
    /// All peers.
    All,
    /// Only these addresses; may be empty.
    Only(HashSet<PeerAddress>),
}

impl Unreachable {
    fn holds(&self, peer: &PeerAddress) -> bool {
        match self {
            Unreachable::All => true,
            Unreachable::Only(peers) => peers.contains(peer),
        }
    }
}

/// The valves of one broker, initially open.
pub(crate) struct Gates {
    pub(crate) accepted: Arc<Valve>,
    peers: Mutex<(Unreachable, HashMap<PeerAddress, Arc<Valve>>)>,
}

impl Gates {
    pub(crate) fn new() -> Gates {
        let unreachable = Unreachable::Only(HashSet::new());
        Gates { accepted: Arc::default(), peers: Mutex::new((unreachable, HashMap::new())) }
    }

    /// Shuts the given valves and opens all others.
    pub(crate) fn set(&self, accepted: bool, unreachable: Unreachable) {
        self.accepted.set(accepted);
        let mut peers = self.peers.lock();
        for (peer, valve) in &peers.1 {
            valve.set(unreachable.holds(peer));
        }
        peers.0 = unreachable;
    }

    fn of_peer(&self, to: &Destination) -> Arc<Valve> {
        let peer = (to.host.clone(), to.port);
        let mut peers = self.peers.lock();
        let (unreachable, valves) = &mut *peers;
        let made = || {
            let valve = Valve::default();
            valve.set(unreachable.holds(&peer));
            Arc::new(valve)
        };
        valves.entry(peer.clone()).or_insert_with(made).clone()
    }
}

/// A connection with its valve.
#[derive(Debug)]
pub(crate) struct Gated<S> {
    stream: S,
    valve: Arc<Valve>,
}

impl<S> Gated<S> {
    pub(crate) fn new(stream: S, valve: Arc<Valve>) -> Gated<S> {
        Gated { stream, valve }
    }

    fn check_open(&self) -> io::Result<()> {
        if self.valve.is_shut() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
    }
}

impl<T: Transport> Transport for Gated<T> {
    async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        loop {
            self.valve.opened().await;
            let ready = self.stream.ready(interest).await?;
            if !self.valve.is_shut() {
                return Ok(ready);
            }
        }
    }

    fn try_read(&self, room: &mut impl BufMut) -> io::Result<usize> {
        self.check_open()?;
        self.stream.try_read(room)
    }

    fn try_write(&self, slices: &[IoSlice<'_>], more: bool) -> io::Result<usize> {
        self.check_open()?;
        self.stream.try_write(slices, more)
    }

    fn try_send_file(&self, file: BorrowedFd<'_>, position: u64, size: usize) -> io::Result<usize> {
        self.check_open()?;
        self.stream.try_send_file(file, position, size)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gated<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.valve.poll_open(cx));
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gated<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.valve.poll_open(cx));
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Connects to peers over TCP.
pub(crate) struct GatedTcp(pub(crate) Arc<Gates>);

impl Connector for GatedTcp {
    type Stream = Gated<Socket<TcpStream>>;

    async fn open(&self, to: &Destination) -> io::Result<Self::Stream> {
        let valve = self.0.of_peer(to);
        valve.opened().await;
        let stream = Tcp.open(to).await?;
        Ok(Gated::new(stream, valve))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;

    const A_MOMENT: Duration = Duration::from_millis(50);

    fn of(port: u16) -> Destination {
        Destination { purpose: "test".into(), host: "127.0.0.1".into(), port }
    }

    fn only(port: u16) -> Unreachable {
        Unreachable::Only(HashSet::from([(Arc::from("127.0.0.1"), port)]))
    }

    #[tokio::test]
    async fn data_that_arrives_while_a_peer_is_cut_off_is_read_afterwards() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let gates = Arc::new(Gates::new());
        let mut asking = GatedTcp(gates.clone()).open(&of(port)).await.unwrap();
        let (mut peer, _) = listener.accept().await.unwrap();
        gates.set(false, only(port));
        peer.write_all(b"late").await.unwrap();
        let mut read = [0; 4];
        assert!(timeout(A_MOMENT, asking.read_exact(&mut read)).await.is_err());
        assert!(timeout(A_MOMENT, asking.write_all(b"never")).await.is_err());
        assert!(timeout(A_MOMENT, GatedTcp(gates.clone()).open(&of(port))).await.is_err());
        let reading = tokio::spawn(async move { asking.read_exact(&mut read).await.map(|_| read) });
        gates.set(false, Unreachable::Only(HashSet::new()));
        assert_eq!(reading.await.unwrap().unwrap(), *b"late");
    }

    #[tokio::test]
    async fn peers_that_are_not_cut_off_are_reachable_until_all_are() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let gates = Arc::new(Gates::new());
        gates.set(false, only(port.wrapping_add(1)));
        let mut asking = GatedTcp(gates.clone()).open(&of(port)).await.unwrap();
        asking.write_all(b"heard").await.unwrap();
        gates.set(false, Unreachable::All);
        assert!(timeout(A_MOMENT, asking.write_all(b"lost")).await.is_err());
    }

    #[tokio::test]
    async fn an_accepted_connection_is_neither_read_nor_written_while_it_is_shut() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let gates = Gates::new();
        let served = Gated::new(Socket::new(stream), gates.accepted.clone());
        gates.set(true, Unreachable::All);
        peer.write_all(b"asked").await.unwrap();
        assert!(timeout(A_MOMENT, served.ready(Interest::READABLE)).await.is_err());
        let shut = served.try_write(&[IoSlice::new(b"answer")], false).unwrap_err();
        assert_eq!(shut.kind(), io::ErrorKind::WouldBlock);
        gates.set(false, Unreachable::Only(HashSet::new()));
        served.ready(Interest::READABLE).await.unwrap();
        let mut room = Vec::new();
        assert_eq!(served.try_read(&mut room).unwrap(), 5);
        assert_eq!(room, b"asked");
    }
}
