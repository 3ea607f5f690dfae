//! Sockets that end for their peers when they are dropped.

use std::io;
use std::ops::Deref;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::net::Shutdown;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::descriptors::ForkClosed;

/// A listener or a connection. Dropping it shuts it down, also if another process has a copy: the
/// peer of a connection receives the bytes that were sent and the end, and the port of a listener
/// can be bound again with `SO_REUSEADDR`.
#[derive(Debug)]
pub struct Socket<S: AsFd>(ForkClosed<S>);

impl<S: AsFd> Socket<S> {
    /// Takes over a socket.
    pub fn new(socket: S) -> Socket<S> {
        Socket(ForkClosed::new(socket))
    }

    /// Goes on with `duplicate`, another descriptor of the same socket, and closes this one.
    pub fn move_to(&mut self, duplicate: S) {
        self.0 = ForkClosed::new(duplicate);
    }
}

impl<S: AsFd> Deref for Socket<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S: AsFd> Drop for Socket<S> {
    fn drop(&mut self) {
        if self.0.is_open() {
            // It fails where the peer has ended the connection.
            let _ = rustix::net::shutdown(&*self.0, Shutdown::Both);
        }
    }
}

impl<S: AsFd + AsyncRead + Unpin> AsyncRead for Socket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(cx, buffer)
    }
}

impl<S: AsFd + AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }
}
