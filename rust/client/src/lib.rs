//! Requests to other nodes.
//!
//! # Theory of operation
//! [`Client::send`] names a [`Destination`], which is a listener of a node and a purpose. Each destination has a task
//! (`link`) with at most one connection, opened when there is something to send. What two purposes send to a node does not
//! wait for each other: a Fetch that waits for records holds up no heartbeat.
//!
//! A new connection first asks for the peer's versions (`exchange`); a request in a version that the peer does not have is
//! not sent. Requests leave in the order of `send`, several of them before the first answer, and answers come in that order.
//!
//! A request ends once, with the body of its answer or a [`SendError`]: [`Completion`] sees to that. Nothing is sent
//! again here, as only the caller knows whether a request may be repeated. A request that was under way when its
//! connection ended may have been carried out.
//!
//! - Each request has a deadline. One that passes while the request is under way ends the connection, as the answers
//!   behind it would be late, too.
//! - After a connection that could not be opened there is none for a while, which doubles each time (`backoff`): requests
//!   end at once. The caller's own pauses need not be exact.
//! - A connection without anything to do for long is closed, and its task ends.
//! - The number of open requests is bounded; so is the size of an answer, which takes memory as it arrives.

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
