//! Opens connections.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::thread;

use pykafka_forks::Socket;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::request::Destination;

/// Opens connections of one kind.
pub trait Connector: Send + Sync + 'static {
    /// A connection that carries bytes.
    type Stream: AsyncRead + AsyncWrite + Send;

    /// Opens a connection; the caller limits the time.
    fn open(&self, to: &Destination) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// Connects over TCP.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tcp;

impl Connector for Tcp {
    type Stream = Socket<TcpStream>;

    async fn open(&self, to: &Destination) -> io::Result<Socket<TcpStream>> {
        let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in addresses(&to.host, to.port).await? {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    let stream = Socket::new(stream);
                    stream.set_nodelay(true)?;
                    return Ok(stream);
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

/// Resolves a name. Uses a new thread, because a look-up may be slow and the runtime's threads may
/// all be busy.
///
/// # Errors
/// The name cannot be resolved, or no thread can be started.
pub async fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let host = host.to_owned();
    let (told, found) = oneshot::channel();
    thread::Builder::new().name("pykafka-resolve".into()).spawn(move || {
        let _ = told.send((&*host, port).to_socket_addrs().map(Iterator::collect));
    })?;
    found.await.unwrap_or_else(|_| Err(io::Error::other("the look-up of the name has crashed")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_is_resolved_and_an_address_is_not() {
        let found = addresses("127.0.0.1", 9).await.expect("an address");
        assert_eq!(found, ["127.0.0.1:9".parse().expect("an address")]);
        let found = addresses("localhost", 9).await.expect("known everywhere");
        assert!(found.iter().all(|address| address.ip().is_loopback()) && !found.is_empty());
    }
}
