//! The requests of one connection that have begun and are not answered: answers leave in the order of the requests.
//!
//! Apache Kafka has one request of a connection in hand (contract/kafka.md#4). So has this broker, but for Produce: while
//! acknowledgements are due the next produce request is begun, so that one sync, or one round to the followers, covers them all.
//! A produce request takes its place in every log before the next one begins, which is all the order that producers rely on.
//! One whose transaction must be verified first is held, and with it all behind it.
//! Whatever else comes waits until everything before it is answered: it sees what was acknowledged before it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll};

use pykafka_wire::ApiKey;

use crate::api::context::{Header, Outcome};
use crate::network::memory::budget::Share;

/// Produce requests of one connection that wait for acknowledgements: above them the connection is muted.
pub(super) const PRODUCES_MAX: usize = 64;
/// And the size of their frames together; the last one may go beyond.
const PRODUCE_BYTES_MAX: usize = 8 << 20;

/// One that has begun.
struct Begun {
    header: Header,
    outcome: Outcome,
    bytes: usize,
    /// The memory for input that its frame takes.
    _share: Option<Share>,
}

/// See the module.
#[derive(Default)]
pub(super) struct Pipeline {
    requests: VecDeque<Begun>,
    bytes: usize,
}

impl Pipeline {
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Whether a request of `api_key` may begin now.
    pub(super) fn accepts(&self, api_key: ApiKey) -> bool {
        self.is_empty()
            || (api_key == ApiKey::PRODUCE
                && self.has_produce()
                && !self.is_held()
                && self.requests.len() < PRODUCES_MAX
                && self.bytes < PRODUCE_BYTES_MAX)
    }

    /// Whether the last request has not queued its appends.
    fn is_held(&self) -> bool {
        self.requests.back().is_some_and(|begun| matches!(begun.outcome, Outcome::Held(_)))
    }

    /// Whether acknowledgements are due. If so nothing but produce requests is in it.
    pub(super) fn has_produce(&self) -> bool {
        self.requests.front().is_some_and(|begun| begun.header.api_key == ApiKey::PRODUCE)
    }

    /// The size of the frames in it together.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a request whose frame had `bytes`, behind all others; `share` covers it until it is answered.
    pub(super) fn push(
        &mut self,
        header: Header,
        outcome: Outcome,
        bytes: usize,
        share: Option<Share>,
    ) {
        self.bytes += bytes;
        self.requests.push_back(Begun { header, outcome, bytes, _share: share });
    }

    /// Returns when the first request is decided, or is held no more; never while there is none. Dropping the future loses
    /// nothing.
    pub(super) async fn decided(&mut self) {
        let was_held = self.is_held();
        poll_fn(|context| match self.poll_first(context) {
            Poll::Pending if was_held && !self.is_held() => Poll::Ready(()),
            polled => polled,
        })
        .await;
    }

    /// Takes the first request if it is decided: its outcome is not pending.
    pub(super) async fn take_decided(&mut self) -> Option<(Header, Outcome)> {
        let is_decided = poll_fn(|context| Poll::Ready(self.poll_first(context).is_ready())).await;
        let first = if is_decided { self.requests.pop_front() } else { None }?;
        self.bytes -= first.bytes;
        Some((first.header, first.outcome))
    }

    fn poll_first(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(first) = self.requests.front_mut() else { return Poll::Pending };
        while let Outcome::Pending(pending) | Outcome::Held(pending) = &mut first.outcome {
            match pending.as_mut().poll(context) {
                Poll::Ready(outcome) => first.outcome = outcome,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }

    /// Cancels all of them.
    pub(super) fn clear(&mut self) {
        *self = Pipeline::default();
    }
}

impl Drop for Pipeline {
    /// Cancels the last first: none is appended behind one that is cancelled. A log takes whatever sequence number comes first of
    /// a producer that is new to it, so the retry of one that is missing before it would be refused for good.
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

    /// Tells when it is dropped.
    struct Request(usize, Arc<Mutex<Vec<usize>>>);

    impl Drop for Request {
        fn drop(&mut self) {
            self.1.lock().push(self.0);
        }
    }

    #[tokio::test]
    async fn nothing_begins_behind_a_request_that_is_held() {
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
