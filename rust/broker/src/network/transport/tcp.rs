//! TCP as a transport.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

use bytes::BufMut;
use pykafka_forks::Socket;
use tokio::io::{Interest, Ready};
use tokio::net::TcpStream;

use super::Transport;
use crate::network::platform;

impl Transport for Socket<TcpStream> {
    async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        TcpStream::ready(self, interest).await
    }

    fn try_read(&self, room: &mut impl BufMut) -> io::Result<usize> {
        self.try_read_buf(room)
    }

    fn try_write(&self, slices: &[IoSlice<'_>], more: bool) -> io::Result<usize> {
        if more {
            return platform::try_write_start(self, slices);
        }
        self.try_write_vectored(slices)
    }

    fn try_send_file(&self, file: BorrowedFd<'_>, position: u64, size: usize) -> io::Result<usize> {
        platform::try_send_file(self, file, position, size)
    }
}
