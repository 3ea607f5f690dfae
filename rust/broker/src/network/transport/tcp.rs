//! A TCP socket as answers see it.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

use rustix::net::{SendAncillaryBuffer, SendFlags};
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::Transport;

/// Sends without waiting.
pub(crate) struct Socket<'a>(pub(crate) &'a TcpStream);

impl Transport for Socket<'_> {
    fn write(&mut self, slices: &[IoSlice<'_>], more: bool) -> io::Result<usize> {
        if !more {
            return self.0.try_write_vectored(slices);
        }
        // The head of an answer goes out with the first of its records, not as a packet of its own.
        let flags = SendFlags::MORE | SendFlags::NOSIGNAL;
        self.0.try_io(Interest::WRITABLE, || {
            let mut none = SendAncillaryBuffer::default();
            Ok(rustix::net::sendmsg(self.0, slices, &mut none, flags)?)
        })
    }

    fn send_file(&mut self, file: BorrowedFd<'_>, position: u64, size: usize) -> io::Result<usize> {
        self.0.try_io(Interest::WRITABLE, || {
            let mut position = position;
            match rustix::fs::sendfile(self.0, file, Some(&mut position), size) {
                Ok(sent) => Ok(sent),
                // How a file system says that it cannot.
                Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                    Err(io::ErrorKind::Unsupported.into())
                }
                Err(error) => Err(error.into()),
            }
        })
    }
}
