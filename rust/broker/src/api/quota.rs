//! Client quotas (KIP-219): a client that exceeds its rate gets its response at once, with a
//! throttle time, and its connection is muted for that time.
//!
//! The limits are in the image (`seam/image/client_quotas.rs`). The rates are here, one for each
//! client with a limit. Rates are measured as in Kafka, over eleven windows of a second (`rate`),
//! so a client may send the bytes of ten seconds at once. A rate without events is zero after these
//! windows and is deleted. If more than [`RATES_MAX`] clients are active, new clients share one
//! rate.
//!
//! A produce request counts with its size when it starts. A fetch counts with the size of its
//! records; if they exceed the limit, the response has no records and does not count
//! (contract/kafka.md#33).

pub(crate) mod rate;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pykafka_forks::Mutex;

use self::rate::{Rate, Windows};
use crate::api::context::{ConnectionInfo, Context, Header};
use crate::seam::image::client_quotas::{Limit, Metered};
use crate::seam::settings::Settings;

/// Maximum number of rates in memory: about 5 MB.
const RATES_MAX: usize = 16_384;
/// Minimum time between two deletions of idle rates, because each scans all rates.
const FORGET_INTERVAL_MS: u64 = 1_000;

/// The time until which nothing is read from a connection.
#[derive(Debug, Default)]
pub struct Mute {
    until_ns: AtomicU64,
}

impl Mute {
    fn extend(&self, until_ns: u64) {
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

/// The client whose rate is measured.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) conn: ConnectionInfo,
    id: Arc<str>,
}

impl Client {
    pub(crate) fn new(conn: &ConnectionInfo, header: &Header) -> Client {
        Client { conn: conn.clone(), id: header.client_id.clone() }
    }

    /// Counts a produce request. Returns for how many milliseconds the client is muted, 0 for not
    /// at all.
    pub(crate) fn produced(&self, ctx: &Context, bytes: usize) -> i32 {
        let image = ctx.image.load();
        let Some(limit) = image.client_quotas.limit(Metered::Produced, self.user(), &self.id)
        else {
            return 0;
        };
        let meter = Meter::new(ctx, &image.settings);
        let key = ctx.rates.key(Metered::Produced, &limit, self);
        let throttle_ms = ctx.rates.with(key, meter, |rate| {
            rate.record(bytes as i64, meter.now_ms, meter.windows);
            rate.throttle_ms(limit.bytes_per_second, meter.now_ms, meter.windows)
        });
        self.mute(ctx, throttle_ms)
    }

    /// Counts the records of a fetch, unless they exceed the limit: then the client gets no
    /// records. Returns for how many milliseconds it is muted, 0 for not at all.
    pub(crate) fn fetched(&self, ctx: &Context, bytes: usize) -> i32 {
        let image = ctx.image.load();
        let Some(limit) = image.client_quotas.limit(Metered::Fetched, self.user(), &self.id) else {
            return 0;
        };
        let meter = Meter::new(ctx, &image.settings);
        let key = ctx.rates.key(Metered::Fetched, &limit, self);
        let throttle_ms = ctx.rates.with(key, meter, |rate| {
            rate.record(bytes as i64, meter.now_ms, meter.windows);
            let ms = rate.throttle_ms(limit.bytes_per_second, meter.now_ms, meter.windows);
            if ms > 0 {
                rate.record(-(bytes as i64), meter.now_ms, meter.windows);
            }
            ms
        });
        self.mute(ctx, throttle_ms)
    }

    /// Maximum bytes of one fetch: the bytes that the limit allows in all windows but one. A larger
    /// fetch would never be permitted.
    pub(crate) fn fetch_bytes_max(&self, ctx: &Context) -> i32 {
        let image = ctx.image.load();
        let limit = image.client_quotas.limit(Metered::Fetched, self.user(), &self.id);
        limit.map_or(i32::MAX, |limit| {
            let windows = windows(&image.settings);
            let seconds = (windows.total_ms() - windows.ms) as f64 / 1_000.0;
            (limit.bytes_per_second * seconds) as i32
        })
    }

    /// The principal's name without its type.
    fn user(&self) -> &str {
        let principal = &*self.conn.principal;
        principal.split_once(':').map_or(principal, |(_, name)| name)
    }

    fn mute(&self, ctx: &Context, throttle_ms: u64) -> i32 {
        if throttle_ms > 0 {
            ctx.statistics.clients_throttled.add(1);
            let mute_ns = throttle_ms.saturating_mul(1_000_000);
            self.conn.mute.extend(ctx.clock.now_ns().saturating_add(mute_ns));
        }
        i32::try_from(throttle_ms).unwrap_or(i32::MAX)
    }
}

/// The time and the windows of a measurement.
#[derive(Debug, Clone, Copy)]
struct Meter {
    now_ms: u64,
    windows: Windows,
}

impl Meter {
    fn new(ctx: &Context, settings: &Settings) -> Meter {
        Meter { now_ms: ctx.clock.now_ns() / 1_000_000, windows: windows(settings) }
    }
}

fn windows(settings: &Settings) -> Windows {
    Windows { count: settings.quota_windows, ms: settings.quota_window_ms }
}

/// Identifies a rate: a keyed hash, because clients may choose long names.
type RateKey = u64;
/// The rate of new clients when there are too many rates.
const KEY_SHARED: RateKey = 0;

/// The rates of all clients with a limit.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    hasher: RandomState,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    rates: HashMap<RateKey, Rate>,
    forgotten_ms: u64,
}

impl Rates {
    fn key(&self, metered: Metered, limit: &Limit, client: &Client) -> RateKey {
        let user = limit.by_user.then(|| client.user());
        let client_id = limit.by_client_id.then_some(&*client.id);
        self.hasher.hash_one((metered, user, client_id))
    }

    fn with<R>(&self, key: RateKey, meter: Meter, change: impl FnOnce(&mut Rate) -> R) -> R {
        let mut table = self.table.lock();
        let key = if table.has_room_for(key, meter) { key } else { KEY_SHARED };
        change(table.rates.entry(key).or_default())
    }
}

impl Table {
    fn has_room_for(&mut self, key: RateKey, meter: Meter) -> bool {
        if self.rates.len() < RATES_MAX || self.rates.contains_key(&key) {
            return true;
        }
        if meter.now_ms.saturating_sub(self.forgotten_ms) >= FORGET_INTERVAL_MS {
            self.forgotten_ms = meter.now_ms;
            self.rates.retain(|_, rate| !rate.is_over(meter.now_ms, meter.windows));
        }
        self.rates.len() < RATES_MAX
    }
}

#[cfg(test)]
mod tests;
