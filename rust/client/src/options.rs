//! Settings of a client.

use std::sync::Arc;
use std::time::Duration;

/// How a client behaves.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// What peers see of it in their logs and metrics.
    pub client_id: Arc<str>,
    /// For a connection, and again for the peer's versions (`socket.connection.setup.timeout.ms`).
    pub setup_timeout: Duration,
    /// After the first failure (`reconnect.backoff.ms`).
    pub backoff_first: Duration,
    /// After many (`reconnect.backoff.max.ms`).
    pub backoff_max: Duration,
    /// Of a connection without requests (`connections.max.idle.ms`).
    pub idle_max: Duration,
    /// Larger answers end their connection.
    pub answer_bytes_max: usize,
    /// Requests that are open at a time; further ones are refused.
    pub open_max: usize,
    /// Where jitter is drawn from.
    pub seed: u64,
}
