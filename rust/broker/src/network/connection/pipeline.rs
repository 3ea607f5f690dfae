//! The requests of one connection that have started and have no response yet. Responses are sent in
//! the order of the requests.
//!
//! Apache Kafka handles one request of a connection at a time (contract/kafka.md#4). So does this
//! broker, except for Produce: while produce requests wait for acknowledgements, the next one
//! starts, so that one sync, or one round of fetches by the followers, covers all of them. A
//! produce request queues its appends in every log before the next one starts; producers rely on no
//! other order. A request whose transaction must be verified first is held, with all later
//! requests. Requests of other APIs wait until all requests before them have responses, so they see
//! everything that was acknowledged before.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll};

use pykafka_wire::ApiKey;

use crate::network::outcome::Outcome;

use crate::network::memory::budget::Share;
use crate::request::Header;

/// Maximum number of produce requests of one connection that wait for acknowledgements; the
/// connection is muted while there are as many.
pub(super) const PRODUCES_MAX: usize = 64;
/// Maximum size of their frames together; the last frame may exceed it.
const PRODUCE_BYTES_MAX: usize = 8 << 20;

/// A request that has started.
struct Begun {
    header: Header,
    outcome: Outcome,
    bytes: usize,
    /// Its frame's share of the input memory, unless Python has it.
    share: Option<Share>,
}

/// The started requests, in order.
#[derive(Default)]
pub(super) struct Pipeline {
    requests: VecDeque<Begun>,
    bytes: usize,
}

impl Pipeline {
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// True if a request of `api_key` may start now.
    pub(super) fn accepts(&self, api_key: ApiKey) -> bool {
        self.is_empty()
            || (api_key == ApiKey::PRODUCE
                && self.has_produce()
                && !self.is_held()
                && self.requests.len() < PRODUCES_MAX
                && self.bytes < PRODUCE_BYTES_MAX)
    }

    /// True if the last request has not queued its appends.
    fn is_held(&self) -> bool {
        self.requests.back().is_some_and(|begun| matches!(begun.outcome, Outcome::Held(_)))
    }

    /// True while acknowledgements are pending; then all requests are produce requests.
    pub(super) fn has_produce(&self) -> bool {
        self.requests.front().is_some_and(|begun| begun.header.api_key == ApiKey::PRODUCE)
    }

    /// Size of all frames.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends a request whose frame had `bytes`; `share` covers the frame until the response, or
    /// until Python releases it.
    pub(super) fn push(
        &mut self,
        header: Header,
        outcome: Outcome,
        bytes: usize,
        share: Option<Share>,
    ) {
        self.bytes += bytes;
        self.requests.push_back(Begun { header, outcome, bytes, share });
    }

    /// Returns when the first request is decided or is not held any more; never for an empty
    /// pipeline. Dropping the future has no effect.
    pub(super) async fn decided(&mut self) {
        let was_held = self.is_held();
        poll_fn(|context| match self.poll_first(context) {
            Poll::Pending if was_held && !self.is_held() => Poll::Ready(()),
            polled => polled,
        })
        .await;
    }

    /// Removes and returns the first request if it is decided, that is, neither pending nor held.
    pub(super) async fn take_decided(&mut self) -> Option<(Header, Outcome)> {
        let is_decided = poll_fn(|context| Poll::Ready(self.poll_first(context).is_ready())).await;
        let first = if is_decided { self.requests.pop_front() } else { None }?;
        self.bytes -= first.bytes;
        Some((first.header, first.outcome))
    }

    fn poll_first(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(first) = self.requests.front_mut() else { return Poll::Pending };
        loop {
            let pending = match &mut first.outcome {
                Outcome::Parked(pending, room) => {
                    if let Some(share) = first.share.take() {
                        room.lend(share);
                    }
                    pending
                }
                Outcome::Pending(pending) | Outcome::Held(pending) => pending,
                Outcome::Reply(_) | Outcome::NoReply | Outcome::Close(_) => {
                    return Poll::Ready(());
                }
            };
            match pending.as_mut().poll(context) {
                Poll::Ready(outcome) => first.outcome = outcome,
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Cancels all requests.
    pub(super) fn clear(&mut self) {
        *self = Pipeline::default();
    }
}

impl Drop for Pipeline {
    /// Cancels the last request first, so that no batch is appended after an earlier one was
    /// cancelled. A log accepts any first sequence of a producer that it does not know, so the
    /// retry of the earlier batch would be rejected permanently.
    fn drop(&mut self) {
        while self.requests.pop_back().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pykafka_forks::Mutex;

    use super::*;
    use crate::testing::header;

    /// Records its number when it is dropped.
    struct Request(usize, Arc<Mutex<Vec<usize>>>);

    impl Drop for Request {
        fn drop(&mut self) {
            self.1.lock().push(self.0);
        }
    }

    #[tokio::test]
    async fn no_request_starts_after_a_held_one() {
        let (allow, allowed) = tokio::sync::oneshot::channel::<()>();
        let held = Outcome::Held(Box::pin(async move {
            let _ = allowed.await;
            Outcome::Pending(Box::pin(std::future::pending()))
        }));
        let mut pipeline = Pipeline::default();
        pipeline.push(header(ApiKey::PRODUCE, 12), Outcome::NoReply, 1, None);
        pipeline.push(header(ApiKey::PRODUCE, 12), held, 1, None);
        assert!(!pipeline.accepts(ApiKey::PRODUCE));
        assert!(pipeline.take_decided().await.is_some());
        assert!(pipeline.take_decided().await.is_none());
        assert!(!pipeline.accepts(ApiKey::PRODUCE));
        allow.send(()).unwrap();
        pipeline.decided().await;
        assert!(pipeline.accepts(ApiKey::PRODUCE));
        assert!(pipeline.take_decided().await.is_none());
    }

    #[test]
    fn the_last_request_is_cancelled_first() {
        let cancelled = Arc::default();
        let mut pipeline = Pipeline::default();
        for number in 0..3 {
            let request = Request(number, Arc::clone(&cancelled));
            let outcome = Outcome::Pending(Box::pin(async move {
                let _request = request;
                std::future::pending().await
            }));
            pipeline.push(header(ApiKey::PRODUCE, 9), outcome, 1, None);
        }
        pipeline.clear();
        assert_eq!(*cancelled.lock(), [2, 1, 0]);
    }
}
