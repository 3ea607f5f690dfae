//! Requests to other nodes.
//!
//! # Theory of operation
//! [`Client::send`] gets a [`Destination`], which is a listener of a node and a purpose. Each
//! destination has a task (`link`) with at most one connection, which is opened when there is
//! something to send. Requests for two purposes do not wait for each other: a Fetch that waits for
//! records does not delay a heartbeat.
//!
//! A new connection first requests the peer's versions (`exchange`); a request in a version that
//! the peer does not support is not sent. Requests are sent in the order of `send`, several of them
//! before the first response, and responses arrive in the same order.
//!
//! A request ends exactly once, with the body of its response or a [`SendError`], as [`Completion`]
//! guarantees. Requests are never retried here, because only the caller can decide whether a
//! request may be repeated. A request that was sent before its connection ended may have been
//! executed.
//!
//! - Each request has a deadline. If it passes after the request was sent, the connection ends,
//!   because the later responses would be late too.
//! - After a failed connection attempt, no connection is opened during a pause, which doubles with
//!   each failure (`backoff`). Requests fail immediately during the pause, so the pauses of callers
//!   need not be exact.
//! - A connection without requests for a long time is closed, and its task ends.
//! - The number of open requests is limited, and so is the size of a response, which uses memory as
//!   it arrives.

mod backoff;
mod client;
mod connector;
mod exchange;
mod link;
mod options;
mod request;
mod table;

pub use client::Client;
pub use connector::{Connector, Tcp, addresses};
pub use options::ClientOptions;
pub use request::{Completion, Destination, Request, SendError};
