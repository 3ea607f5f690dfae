//! The last descriptors of a process: they are for files, and for what the host program opens, not for connections.
//!
//! The system gives the lowest number that is free. So a number that was just given tells that all below it are in use,
//! whoever uses them: no count is kept.

use std::os::fd::{AsFd, AsRawFd, RawFd};

use rustix::process::{Resource, getrlimit};

/// An eighth of what a process may open, between these.
const RESERVE_PART: u64 = 8;
const RESERVE_MIN: u64 = 16;
const RESERVE_MAX: u64 = 1_024;

/// Whether a descriptor that was just given is one of the last.
pub(crate) fn is_of_reserve(descriptor: RawFd) -> bool {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return false };
    let reserve = (limit / RESERVE_PART).clamp(RESERVE_MIN, RESERVE_MAX);
    u64::try_from(descriptor).is_ok_and(|number| number >= limit.saturating_sub(reserve))
}

/// Whether the next descriptor will be one of the last.
pub(crate) fn are_scarce(any: impl AsFd) -> bool {
    rustix::io::fcntl_dupfd_cloexec(any, 0).map_or(true, |next| is_of_reserve(next.as_raw_fd()))
}
