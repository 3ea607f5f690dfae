//! A request's header, and the facts about its connection.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use pykafka_wire::ApiKey;

/// Facts that stay the same for the lifetime of a connection (until there is authentication).
#[derive(Debug, Clone)]
pub struct ConnectionInfo {
    /// Generation-tagged, so it is never reused for another connection.
    pub id: u64,
    /// Name of the accepting listener; Metadata responses have the endpoints of that listener.
    pub listener: Arc<str>,
    /// The peer's address without its port.
    pub client_host: Arc<str>,
    /// `User:ANONYMOUS` until there is authentication.
    pub principal: Arc<str>,
    /// Set when the client exceeds its quota.
    pub mute: Arc<Mute>,
    /// Determines whether the connection may be closed to accept another.
    pub standing: Arc<Standing>,
    /// On a controller listener: the APIs that are served there, all by Python, and their versions.
    pub controller_apis: Option<Arc<ControllerApis>>,
}

/// Versions by API key.
pub type ControllerApis = BTreeMap<i16, (i16, i16)>;

/// A request's header. It is owned, so that the handler can own the frame.
#[derive(Debug, Clone)]
pub struct Header {
    /// Key that identifies the API.
    pub api_key: ApiKey,
    /// A version within the supported range.
    pub api_version: i16,
    /// Copied into the response.
    pub correlation_id: i32,
    /// `""` for null, as in Kafka (contract/kafka.md#2).
    pub client_id: Arc<str>,
    /// Size of the request without its size field.
    pub bytes: usize,
    /// Monotonic time when the frame was complete.
    pub received_ns: u64,
    /// Wall-clock time of the same moment.
    pub received_ms: i64,
}

/// The time until which nothing is read from a connection.
#[derive(Debug, Default)]
pub struct Mute {
    until_ns: AtomicU64,
}

impl Mute {
    /// Mutes the connection until this time, unless it is muted for longer.
    pub(crate) fn extend(&self, until_ns: u64) {
        self.until_ns.fetch_max(until_ns, Ordering::Relaxed);
    }

    /// The remaining time. Reads the clock only if the connection was muted before.
    pub(crate) fn remaining(&self, now_ns: impl FnOnce() -> u64) -> Option<Duration> {
        let until_ns = self.until_ns.load(Ordering::Relaxed);
        if until_ns == 0 {
            return None;
        }
        let remaining_ns = until_ns.saturating_sub(now_ns());
        (remaining_ns > 0).then(|| Duration::from_nanos(remaining_ns))
    }
}

/// The time of the last use of a connection, and whether it belongs to a node.
#[derive(Debug, Default)]
pub struct Standing {
    used_ns: AtomicU64,
    is_of_node: AtomicBool,
}

impl Standing {
    /// Records that something was received or sent.
    pub(crate) fn used(&self, now_ns: u64) {
        self.used_ns.store(now_ns, Ordering::Relaxed);
    }

    /// Monotonic time of the last use.
    pub(crate) fn used_ns(&self) -> u64 {
        self.used_ns.load(Ordering::Relaxed)
    }

    /// Whether the connection is a node's.
    pub(crate) fn is_of_node(&self) -> bool {
        self.is_of_node.load(Ordering::Relaxed)
    }

    /// Marks the connection as a node's: it is not closed for another one any more.
    pub(crate) fn set_node(&self) {
        self.is_of_node.store(true, Ordering::Relaxed);
    }
}
