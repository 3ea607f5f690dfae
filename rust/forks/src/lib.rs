//! Descriptors, values and locks for processes that fork.
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
//! - Each fork begins a new [`Generation`] in the child. Values of the parent are leaked there
//!   ([`OfProcess`]): their descriptors have been closed, and their threads do not run.
//! - The child can make its own broker. For that the state of the whole process is made again in
//!   each ([`PerProcess`]), and all locks are those of the standard library ([`Mutex`]). Another
//!   thread of the parent may have held any lock, which stays locked in the child.
//! - A static value that never changes is made without a lock, by `once_cell::race`. With
//!   `LazyLock` or `OnceLock` a child would wait for a thread that was making the value.

mod descriptors;
mod generation;
mod locks;
mod numbers;
mod process;
mod socket;

pub use descriptors::ForkClosed;
pub use generation::Generation;
pub use locks::{Condvar, Mutex, RwLock};
pub use process::{OfProcess, PerProcess};
pub use socket::Socket;
pub use std::sync::MutexGuard;
