//! What a connection speaks to: a stream of bytes to one peer, whose reads and writes never wait.
//!
//! A connection has its transport by type, so that nothing of this costs a call through a table. TCP is [`tcp`]; the tests
//! use [`memory`]. A transport that wraps another (TLS) does so here: the connection sees plain bytes.

#[cfg(test)]
pub(crate) mod memory;
mod tcp;

use std::future::Future;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

use bytes::BufMut;
use tokio::io::{Interest, Ready};

/// What would wait is [`io::ErrorKind::WouldBlock`]. Dropping a transport closes it in both directions.
pub(crate) trait Transport: Send + Sync + 'static {
    /// Waits until something of `interest` may be there, and says what; [`Ready::is_error`] once the peer has reset the stream.
    /// One task waits at a time. Dropping the future loses nothing.
    fn ready(&self, interest: Interest) -> impl Future<Output = io::Result<Ready>> + Send;

    /// Reads what has arrived and `room` takes; 0 if the peer has ended its side.
    fn try_read(&self, room: &mut impl BufMut) -> io::Result<usize>;

    /// Writes bytes of `slices`, in order; `more` follows at once.
    fn try_write(&self, slices: &[IoSlice<'_>], more: bool) -> io::Result<usize>;

    /// Sends bytes of `file` from `position` on, at most `size`; 0 at its end.
    ///
    /// # Errors
    /// `Unsupported` if this transport or this file cannot do so: the bytes are then read and written.
    fn try_send_file(&self, file: BorrowedFd<'_>, position: u64, size: usize) -> io::Result<usize>;
}
