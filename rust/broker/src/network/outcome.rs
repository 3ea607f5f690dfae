//! The result of a request.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use crate::control_api::requests::Room;
use crate::network::memory::budget::Share;
use crate::network::reply::Reply;

/// A response that is not decided yet. Dropping it cancels the request, because its connection
/// closed.
pub type PendingOutcome = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// The result of a request.
pub enum Outcome {
    /// Send this response.
    Reply(Reply),
    /// Send nothing: produce with `acks=0`.
    NoReply,
    /// Close the connection without a response; the reason is logged.
    Close(String),
    /// Decided later. The connection's task polls it after all earlier responses are decided; later
    /// responses wait for it. Until then, the connection starts only produce requests, and only if
    /// this is one too: so a produce handler must have queued its appends when it returns, or they
    /// would not be in the order of the requests.
    Pending(PendingOutcome),
    /// Like `Pending`, for a request that Python handles; it holds its frame's share of the input
    /// memory until Python releases it.
    Parked(PendingOutcome, Room),
    /// Like `Pending`, for a produce request that has not queued its appends: no later request
    /// starts until this becomes another outcome.
    Held(PendingOutcome),
}

impl Outcome {
    /// Attaches `room` to the response, now or when it is decided.
    pub(crate) fn in_room(self, room: Share) -> Outcome {
        match self {
            Outcome::Reply(reply) => Outcome::Reply(reply.in_room(room)),
            Outcome::Pending(pending) => {
                Outcome::Pending(Box::pin(async move { pending.await.in_room(room) }))
            }
            Outcome::Held(held) => Outcome::Held(Box::pin(async move { held.await.in_room(room) })),
            outcome @ (Outcome::NoReply | Outcome::Close(_) | Outcome::Parked(..)) => outcome,
        }
    }

    /// The outcome if the thread that ran the request panicked.
    pub(crate) fn failed() -> Outcome {
        Outcome::Close("the request failed on another thread".into())
    }

    /// A request that cannot be parsed closes its connection, as in Kafka.
    pub fn malformed(error: impl fmt::Display) -> Outcome {
        Outcome::Close(format!("malformed request: {error}"))
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Reply(reply) => formatter.debug_tuple("Reply").field(reply).finish(),
            Outcome::NoReply => formatter.write_str("NoReply"),
            Outcome::Close(reason) => formatter.debug_tuple("Close").field(reason).finish(),
            Outcome::Pending(_) => formatter.write_str("Pending"),
            Outcome::Parked(..) => formatter.write_str("Parked"),
            Outcome::Held(_) => formatter.write_str("Held"),
        }
    }
}
