//! The last file descriptors of a process are reserved for files and for the host program;
//! connections do not get them. Nodes may use half of the reserve.
//!
//! The system assigns the lowest free number, so a new number shows that all lower numbers are in
//! use in the process. No count is needed.

use std::os::fd::{AsRawFd, RawFd};

use pykafka_forks::Socket;
use rustix::process::{Resource, getrlimit};
use tokio::net::TcpStream;

use crate::network::connections::Rank;

/// The reserve is an eighth of the process's limit, within these bounds.
const RESERVE_PART: u64 = 8;
const RESERVE_MIN: u64 = 16;
const RESERVE_MAX: u64 = 1_024;
const PART_OF_NODES: u64 = 2;

/// True if a new descriptor is in the reserve that a connection of this rank may not use.
pub(crate) fn is_of_reserve(descriptor: RawFd, rank: Rank) -> bool {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return false };
    let whole = (limit / RESERVE_PART).clamp(RESERVE_MIN, RESERVE_MAX);
    let reserve = if rank == Rank::Client { whole } else { whole / PART_OF_NODES };
    u64::try_from(descriptor).is_ok_and(|number| number >= limit.saturating_sub(reserve))
}

/// Moves a connection to the lowest free descriptor. Returns false if that one is in the reserve
/// for its rank, too.
pub(crate) fn move_out(stream: &mut Socket<TcpStream>, rank: Rank) -> bool {
    let Ok(lower) = rustix::io::fcntl_dupfd_cloexec(&**stream, 0) else { return false };
    if is_of_reserve(lower.as_raw_fd(), rank) {
        return false;
    }
    // The new descriptor refers to the same nonblocking socket.
    let moved = TcpStream::from_std(lower.into());
    moved.map(|moved| stream.move_to(moved)).is_ok()
}
