//! Requests that take long.

use crate::network::outcome::Outcome;
use crate::partition::Host;

/// Handles a request on another thread than the network threads.
pub(super) fn on_worker(host: &Host, handle: impl FnOnce() -> Outcome + Send + 'static) -> Outcome {
    let handled = host.work(|_| handle());
    Outcome::Pending(Box::pin(async move { handled.await.unwrap_or_else(Outcome::failed) }))
}
