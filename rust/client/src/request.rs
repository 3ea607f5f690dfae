//! What is sent, where, and how it ends.

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pykafka_wire::ApiKey;
use tokio::time::Instant;

/// A listener of a node, and what for: requests for different purposes have connections of their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    /// Such as "quorum".
    pub purpose: Arc<str>,
    /// A name or an address.
    pub host: Arc<str>,
    /// Its port.
    pub port: u16,
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} ({})", self.host, self.port, self.purpose)
    }
}

/// One request.
#[derive(Debug, Clone)]
pub struct Request {
    /// Which API.
    pub api_key: ApiKey,
    /// The version in which the body is encoded.
    pub api_version: i16,
    /// What follows the header.
    pub body: Bytes,
    /// Time until its answer, with that for a connection.
    pub timeout: Duration,
    /// An answer up to this size gets its memory at once, and is not moved while it grows; 0 for answers that are small.
    pub answer_bytes_expected: usize,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Nobody listens there: the peer's host refuses connections to this port. Nothing was sent.
    #[error("refused: {0}")]
    Refused(Arc<str>),
    /// There is no connection, or it ended; the request may have been carried out.
    #[error("no connection: {0}")]
    Disconnected(Arc<str>),
    /// Its time is over; it may have been carried out, or will be.
    #[error("no answer in time")]
    TimedOut,
    /// The peer does not have this version; nothing was sent.
    #[error("the peer has versions {min} to {max}")]
    UnsupportedVersion {
        /// The lowest that it has.
        min: i16,
        /// The highest; -1 if it does not have this API.
        max: i16,
    },
    /// Too many requests are open; nothing was sent.
    #[error("{0} requests are open")]
    Full(usize),
    /// The client was closed, or this destination was; the request may have been carried out.
    #[error("closed")]
    Closed,
}

type Done = Box<dyn FnOnce(Result<Bytes, SendError>) + Send>;

/// What is called with the end of a request, once; dropping it is [`SendError::Closed`].
pub struct Completion(Option<Done>);

impl Completion {
    /// `done` is called on a thread of the network and must not wait.
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

/// What one waits for.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// The answer to a request.
    Answer { api_key: ApiKey, api_version: i16, body: Bytes, bytes_expected: usize },
    /// The end of the connection.
    End,
}

/// What is not under way yet.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) wanted: Wanted,
    pub(crate) deadline: Instant,
    pub(crate) completion: Completion,
}

/// Ends those whose deadline has passed.
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
