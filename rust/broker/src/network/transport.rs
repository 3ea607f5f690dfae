//! Where answers go.

pub(crate) mod tcp;

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

/// Where answers go. What would wait is [`io::ErrorKind::WouldBlock`].
pub(crate) trait Transport {
    /// Sends bytes of `slices`, in order; `more` follows at once.
    fn write(&mut self, slices: &[IoSlice<'_>], more: bool) -> io::Result<usize>;

    /// Sends bytes of `file` from `position` on, at most `size`; 0 at its end.
    ///
    /// # Errors
    /// `Unsupported` if this transport or this file cannot do so.
    fn send_file(&mut self, file: BorrowedFd<'_>, position: u64, size: usize) -> io::Result<usize>;
}
