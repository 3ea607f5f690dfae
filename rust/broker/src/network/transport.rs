//! The byte stream of a connection to one peer; reads and writes never block.
//!
//! The transport is a type parameter of the connection, so calls are not dynamic. [`tcp`] is TCP;
//! tests use [`memory`]. A transport that wraps another one (TLS) would implement this trait: the
//! connection sees plain bytes.

#[cfg(test)]
pub(crate) mod memory;
mod tcp;

use std::future::Future;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

use bytes::BufMut;
use tokio::io::{Interest, Ready};

/// Calls that would block return [`io::ErrorKind::WouldBlock`]. Dropping a transport closes both
/// directions.
pub(crate) trait Transport: Send + Sync + 'static {
    /// Waits until an event of `interest` may have occurred, and returns the events;
    /// [`Ready::is_error`] is true once the peer has reset the stream. Only one task may wait at a
    /// time. Dropping the future loses nothing.
    fn ready(&self, interest: Interest) -> impl Future<Output = io::Result<Ready>> + Send;

    /// Reads the bytes that have arrived and fit into `room`; 0 if the peer has closed its sending
    /// side.
    fn try_read(&self, room: &mut impl BufMut) -> io::Result<usize>;

    /// Writes bytes of `slices`, in order. `more`: another write follows at once.
    fn try_write(&self, slices: &[IoSlice<'_>], more: bool) -> io::Result<usize>;

    /// Sends at most `size` bytes of `file` from `position` on; 0 at its end.
    ///
    /// # Errors
    /// `Unsupported` if this transport or this file does not support it; then the bytes are read
    /// and written.
    fn try_send_file(&self, file: BorrowedFd<'_>, position: u64, size: usize) -> io::Result<usize>;
}
