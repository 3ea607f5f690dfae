//! Descriptors of one process, which its forked children do not keep.
//!
//! # Theory of operation
//! A forked child has its parent's memory and descriptors, but none of its threads. A socket ends
//! for its peer when the last descriptor of it is closed. So a child that keeps copies keeps
//! ports bound and connections open.
//!
//! - A [`ForkClosed`] descriptor is closed in the child by a handler of `pthread_atfork`, before
//!   `fork` returns there. In the parent nothing changes. The handler reads a bitmap (`numbers`):
//!   it takes no lock and allocates nothing, because another thread may have held any lock when
//!   the process was forked.
//! - A [`Socket`] also shuts its connection down before it closes: the peer sees the end even if
//!   another process has a copy. A fork in the moment between the open of a socket and its entry
//!   in the bitmap makes such a copy.
//! - Each fork begins a new [`Generation`] in the child. Values from another generation are not
//!   dropped: their descriptors have been closed, so the numbers may be of other files now.

mod descriptors;
mod generation;
mod numbers;
mod socket;

pub use descriptors::ForkClosed;
pub use generation::Generation;
pub use socket::Socket;
