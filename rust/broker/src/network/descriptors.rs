//! The last descriptors of a process: they are for files, and for what the host program opens, not
//! for connections. Nodes may have half of them.
//!
//! The system gives the lowest number that is free. So a number that was just given tells that all below it are in use,
//! whoever uses them: no count is kept.

use std::os::fd::{AsRawFd, RawFd};

use pykafka_forks::Socket;
use rustix::process::{Resource, getrlimit};
use tokio::net::TcpStream;

use crate::network::connections::Rank;

/// An eighth of what a process may open, between these.
const RESERVE_PART: u64 = 8;
const RESERVE_MIN: u64 = 16;
const RESERVE_MAX: u64 = 1_024;
const PART_OF_NODES: u64 = 2;

/// Whether a descriptor that was just given is one of the last, which a connection from there may
/// not have.
pub(crate) fn is_of_reserve(descriptor: RawFd, rank: Rank) -> bool {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return false };
    let whole = (limit / RESERVE_PART).clamp(RESERVE_MIN, RESERVE_MAX);
    let reserve = if rank == Rank::Client { whole } else { whole / PART_OF_NODES };
    u64::try_from(descriptor).is_ok_and(|number| number >= limit.saturating_sub(reserve))
}

/// Gives a connection the lowest number that is free, unless that is of the reserve of a connection
/// from there, too.
pub(crate) fn move_out(stream: &mut Socket<TcpStream>, rank: Rank) -> bool {
    let Ok(lower) = rustix::io::fcntl_dupfd_cloexec(&**stream, 0) else { return false };
    if is_of_reserve(lower.as_raw_fd(), rank) {
        return false;
    }
    // It is the same socket, whose calls do not wait.
    let moved = TcpStream::from_std(lower.into());
    moved.map(|moved| stream.move_to(moved)).is_ok()
}
