//! Counters for metrics: one flat snapshot, never a call per partition.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::hot_apis::HOT_APIS;

/// A counter that only grows; relaxed, because no decision depends on it.
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
    /// Accepted connections since the start.
    pub connections_accepted: Counter,
    /// Accepted connections that were delayed by `max.connections`, `max.connection.creation.rate`,
    /// or a lack of descriptors.
    pub connections_delayed: Counter,
    /// Accepted connections that were closed immediately, because of `max.connections.per.ip`, or
    /// because the queue of a listener that nodes share was full.
    pub connections_refused: Counter,
    /// The longest idle connections, closed at a limit in favor of a node's connection.
    pub connections_displaced: Counter,
    /// Connections closed because of the peer: malformed, too large or too slow requests.
    pub connections_killed: Counter,
    /// Bytes read from sockets.
    pub bytes_received: Counter,
    /// Bytes written to sockets.
    pub bytes_sent: Counter,
    /// Requests passed to Python.
    pub control_requests: Counter,
    /// Requests whose client was throttled by a quota.
    pub clients_throttled: Counter,
    /// Requests handled by the data plane, in the order of [`HOT_APIS`].
    pub hot_requests: [Counter; HOT_APIS.len()],
}

/// Appends of clients, without duplicate batches. Logs that only the broker writes do not count.
#[derive(Debug, Default)]
pub struct AppendStatistics {
    /// Appended batches.
    pub batches: Counter,
    /// The records in them.
    pub records: Counter,
    /// Their size as stored, which is their size on disk.
    pub bytes: Counter,
    /// Their size without compression.
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
