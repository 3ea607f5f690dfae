//! Counters for metrics: one flat snapshot, never a call per partition.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::hot_apis::HOT_APIS;

/// A counter that only grows; relaxed, because no decision hangs on it.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `count`.
    #[inline]
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// The sum so far.
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters of the network and the requests.
#[derive(Debug, Default)]
pub struct Statistics {
    /// Connections accepted.
    pub connections_accepted: Counter,
    /// Of these, made to wait: for `max.connections`, `max.connection.creation.rate`, or a descriptor.
    pub connections_delayed: Counter,
    /// Of these, closed at once: because of `max.connections.per.ip`, or without a place in the queue
    /// of a listener that nodes share.
    pub connections_refused: Counter,
    /// Connections closed for a node because of a limit, as the ones that were idle longest.
    pub connections_displaced: Counter,
    /// Connections closed for what the peer did: malformed, too large, too slow.
    pub connections_killed: Counter,
    /// From sockets.
    pub bytes_received: Counter,
    /// To sockets.
    pub bytes_sent: Counter,
    /// Requests handed to Python.
    pub control_requests: Counter,
    /// Requests whose client was told to keep silent, by a quota.
    pub clients_throttled: Counter,
    /// Requests answered here, in the order of [`HOT_APIS`].
    pub hot_requests: [Counter; HOT_APIS.len()],
}

/// What clients appended, in batches that were not there before. The logs that only the broker writes do not count.
#[derive(Debug, Default)]
pub struct AppendStatistics {
    /// Batches.
    pub batches: Counter,
    /// The records in them.
    pub records: Counter,
    /// Their bytes as stored, which is what they take on disk.
    pub bytes: Counter,
    /// What these bytes would be without compression.
    pub bytes_uncompressed: Counter,
}

impl AppendStatistics {
    /// Lines `name value`, in UTF-8.
    pub(crate) fn write(&self, out: &mut String) {
        let counters = [
            ("batches_appended", &self.batches),
            ("records_appended", &self.records),
            ("bytes_appended", &self.bytes),
            ("bytes_appended_uncompressed", &self.bytes_uncompressed),
        ];
        put_all(out, &counters);
    }
}

impl Statistics {
    /// Lines `name value`, in UTF-8.
    pub(crate) fn write(&self, out: &mut String) {
        let counters = [
            ("connections_accepted", &self.connections_accepted),
            ("connections_delayed", &self.connections_delayed),
            ("connections_refused", &self.connections_refused),
            ("connections_displaced", &self.connections_displaced),
            ("connections_killed", &self.connections_killed),
            ("bytes_received", &self.bytes_received),
            ("bytes_sent", &self.bytes_sent),
            ("control_requests", &self.control_requests),
            ("clients_throttled", &self.clients_throttled),
        ];
        put_all(out, &counters);
        for (api, counter) in HOT_APIS.iter().zip(&self.hot_requests) {
            let name = format!("requests_{}", api.name);
            put(out, &name, counter.value());
        }
    }
}

fn put_all(out: &mut String, counters: &[(&str, &Counter)]) {
    for (name, counter) in counters {
        put(out, name, counter.value());
    }
}

/// One line of the snapshot.
pub(crate) fn put(out: &mut String, name: &str, value: u64) {
    writeln!(out, "{name} {value}").expect("a string takes everything");
}
