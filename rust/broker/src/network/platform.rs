//! Calls of sockets that differ between operating systems. Other modules of this crate have no
//! conditions on the operating system.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

use tokio::net::TcpStream;

/// Congestion control of connections within the machine, which share no link with others. Every
/// Linux has it. BBR, the default of some systems, paces what it sends with timers
/// (bench/records/cluster.md).
#[cfg(any(test, target_os = "linux"))]
pub(super) const UNPACED: &str = "reno";

/// Sends without timers on a connection within the machine, if the system permits it.
#[cfg(target_os = "linux")]
pub(super) fn stop_pacing(stream: &TcpStream) {
    let _ = rustix::net::sockopt::set_tcp_congestion(stream, UNPACED);
}

/// macOS does not pace.
#[cfg(target_os = "macos")]
pub(super) fn stop_pacing(_: &TcpStream) {}

/// Writes the start of a response. It is sent together with the write that follows, not as a
/// separate packet.
#[cfg(target_os = "linux")]
pub(super) fn try_write_start(stream: &TcpStream, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    use rustix::net::{SendAncillaryBuffer, SendFlags};

    let flags = SendFlags::MORE | SendFlags::NOSIGNAL;
    stream.try_io(tokio::io::Interest::WRITABLE, || {
        let mut none = SendAncillaryBuffer::default();
        Ok(rustix::net::sendmsg(stream, slices, &mut none, flags)?)
    })
}

/// Writes the start of a response.
#[cfg(target_os = "macos")]
pub(super) fn try_write_start(stream: &TcpStream, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    stream.try_write_vectored(slices)
}

/// Sends a part of a file without reading it. `Unsupported` if the file system does not permit it.
#[cfg(target_os = "linux")]
pub(super) fn try_send_file(
    stream: &TcpStream,
    file: BorrowedFd<'_>,
    mut position: u64,
    size: usize,
) -> io::Result<usize> {
    use rustix::io::Errno;

    stream.try_io(tokio::io::Interest::WRITABLE, || {
        match rustix::fs::sendfile(stream, file, Some(&mut position), size) {
            Ok(sent) => Ok(sent),
            // The errors of file systems that do not support it.
            Err(Errno::INVAL | Errno::NOSYS) => Err(io::ErrorKind::Unsupported.into()),
            Err(error) => Err(error.into()),
        }
    })
}

/// The bytes are read and written instead.
#[cfg(target_os = "macos")]
pub(super) fn try_send_file(
    _: &TcpStream,
    _: BorrowedFd<'_>,
    _: u64,
    _: usize,
) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The congestion control of a connection.
#[cfg(all(test, target_os = "linux"))]
pub(super) fn congestion_control(socket: impl std::os::fd::AsFd) -> String {
    rustix::net::sockopt::tcp_congestion(socket).expect("it is TCP")
}

/// macOS does not show it.
#[cfg(all(test, target_os = "macos"))]
pub(super) fn congestion_control(_: impl std::os::fd::AsFd) -> String {
    UNPACED.to_owned()
}
