//! Requests, their destinations and their results.

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pykafka_wire::ApiKey;
use tokio::time::Instant;

/// A listener of a node, and a purpose. Requests for different purposes use separate connections.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    /// For example "quorum".
    pub purpose: Arc<str>,
    /// Host name or IP address.
    pub host: Arc<str>,
    /// TCP port of the listener.
    pub port: u16,
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} ({})", self.host, self.port, self.purpose)
    }
}

/// A request and its limits.
#[derive(Debug, Clone)]
pub struct Request {
    /// Numeric key of the API.
    pub api_key: ApiKey,
    /// The version in which the body is encoded.
    pub api_version: i16,
    /// The encoded request without its header.
    pub body: Bytes,
    /// Time until the response, including that for a connection.
    pub timeout: Duration,
    /// Memory for a response up to this size is allocated at once, so that the response is not
    /// copied while it grows; 0 for small responses.
    pub response_bytes_expected: usize,
}

/// The reason why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The peer's host refuses connections to this port. Nothing was sent.
    #[error("refused: {0}")]
    Refused(Arc<str>),
    /// The connection could not be opened, or has ended. The request may have been executed.
    #[error("no connection: {0}")]
    Disconnected(Arc<str>),
    /// The deadline has passed. The request may have been executed, or may still be.
    #[error("no response in time")]
    TimedOut,
    /// The peer does not support this version; nothing was sent.
    #[error("the peer has versions {min} to {max}")]
    UnsupportedVersion {
        /// The lowest supported version.
        min: i16,
        /// The highest supported version; −1 if the peer does not support the API.
        max: i16,
    },
    /// Too many requests are open; nothing was sent.
    #[error("{0} requests are open")]
    Full(usize),
    /// The client or this destination was closed; the request may have been executed.
    #[error("closed")]
    Closed,
}

type Done = Box<dyn FnOnce(Result<Bytes, SendError>) + Send>;

/// A function that is called once with the result of a request. Dropping it calls the function with
/// [`SendError::Closed`].
pub struct Completion(Option<Done>);

impl Completion {
    /// `done` is called on a network thread and must not block.
    pub fn new(done: impl FnOnce(Result<Bytes, SendError>) + Send + 'static) -> Completion {
        Completion(Some(Box::new(done)))
    }

    pub(crate) fn complete(mut self, ended: Result<Bytes, SendError>) {
        if let Some(done) = self.0.take() {
            done(ended);
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if let Some(done) = self.0.take() {
            done(Err(SendError::Closed));
        }
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Completion")
    }
}

/// The event that a caller waits for.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// The response to a request.
    Response { api_key: ApiKey, api_version: i16, body: Bytes, bytes_expected: usize },
    /// The end of the connection.
    End,
}

/// A request that was not sent yet, or a caller that waits for the end of the connection.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) wanted: Wanted,
    pub(crate) deadline: Instant,
    pub(crate) completion: Completion,
}

/// Ends requests whose deadline has passed.
pub(crate) fn expire(waiting: &mut VecDeque<Pending>, now: Instant) {
    let (late, left): (VecDeque<_>, VecDeque<_>) =
        mem::take(waiting).into_iter().partition(|pending| pending.deadline <= now);
    *waiting = left;
    for pending in late {
        pending.fail(SendError::TimedOut);
    }
}

impl Pending {
    pub(crate) fn fail(self, error: SendError) {
        self.completion.complete(Err(error));
    }
}
