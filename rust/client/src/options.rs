//! Settings of a client.

use std::sync::Arc;
use std::time::Duration;

/// Settings of a [`crate::Client`]; in parentheses, Kafka's name.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Sent in each request header (`client.id`).
    pub client_id: Arc<str>,
    /// Limit for opening a connection, and again for the peer's versions
    /// (`socket.connection.setup.timeout.ms`).
    pub setup_timeout: Duration,
    /// Pause after the first failure (`reconnect.backoff.ms`).
    pub backoff_first: Duration,
    /// Pause after many failures (`reconnect.backoff.max.ms`).
    pub backoff_max: Duration,
    /// Limit of a connection without requests (`connections.max.idle.ms`).
    pub idle_max: Duration,
    /// Maximum size of a response; a larger one ends its connection.
    pub response_bytes_max: usize,
    /// Maximum number of open requests; further ones fail with [`crate::SendError::Full`].
    pub open_max: usize,
    /// Seed of the jitter of pauses.
    pub seed: u64,
}
