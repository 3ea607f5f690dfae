//! TCP as a transport.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

use bytes::BufMut;
use pykafka_forks::Socket;
use rustix::net::{SendAncillaryBuffer, SendFlags};
use tokio::io::{Interest, Ready};
use tokio::net::TcpStream;

use super::Transport;

impl Transport for Socket<TcpStream> {
    async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        TcpStream::ready(self, interest).await
    }

    fn try_read(&self, room: &mut impl BufMut) -> io::Result<usize> {
        self.try_read_buf(room)
    }

    fn try_write(&self, slices: &[IoSlice<'_>], more: bool) -> io::Result<usize> {
        if !more {
            return self.try_write_vectored(slices);
        }
        // The start of a response is sent together with its first records, not as a separate
        // packet.
        let flags = SendFlags::MORE | SendFlags::NOSIGNAL;
        self.try_io(Interest::WRITABLE, || {
            let mut none = SendAncillaryBuffer::default();
            Ok(rustix::net::sendmsg(&**self, slices, &mut none, flags)?)
        })
    }

    fn try_send_file(&self, file: BorrowedFd<'_>, position: u64, size: usize) -> io::Result<usize> {
        self.try_io(Interest::WRITABLE, || {
            let mut position = position;
            match rustix::fs::sendfile(&**self, file, Some(&mut position), size) {
                Ok(sent) => Ok(sent),
                // The errors of file systems that do not support it.
                Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                    Err(io::ErrorKind::Unsupported.into())
                }
                Err(error) => Err(error.into()),
            }
        })
    }
}
