//! Client quotas (KIP-219): a client that exceeds its rate gets its response at once, with a
//! throttle time, and its connection is muted for that time.
//!
//! The limits are in the image (`control_api/image/client_quotas.rs`). The rates are here, one for
//! each client with a limit. Rates are measured as in Kafka, over eleven windows of a second
//! (`rate`), so a client may send the bytes of ten seconds at once. A rate without events is zero
//! after these windows and is deleted. If more than [`rates::RATES_MAX`] clients are active, new
//! clients share one rate.
//!
//! A produce request counts with its size when it starts. A fetch counts with the size of its
//! records; if they exceed the limit, the response has no records and does not count
//! (contract/kafka.md#33).

pub(crate) mod rate;
pub(crate) mod rates;

use std::sync::Arc;

use self::rates::{Meter, RateKey, windows};
use crate::context::Context;
use crate::control_api::image::client_quotas::{Limit, Metered};
use crate::request::{ConnectionInfo, Header};

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
        let meter = Meter::new(ctx.clock.now_ns(), &image.settings);
        let key = self.key(ctx, Metered::Produced, &limit);
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
        let meter = Meter::new(ctx.clock.now_ns(), &image.settings);
        let key = self.key(ctx, Metered::Fetched, &limit);
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

    fn key(&self, ctx: &Context, metered: Metered, limit: &Limit) -> RateKey {
        let user = limit.by_user.then(|| self.user());
        let client_id = limit.by_client_id.then_some(&*self.id);
        ctx.rates.key(metered, user, client_id)
    }

    /// The principal's name without its type.
    fn user(&self) -> &str {
        let principal = &*self.conn.principal;
        principal.split_once(':').map_or(principal, |(_, name)| name)
    }

    fn mute(&self, ctx: &Context, throttle_ms: u64) -> i32 {
        if throttle_ms > 0 {
            ctx.network.statistics.clients_throttled.add(1);
            let mute_ns = throttle_ms.saturating_mul(1_000_000);
            self.conn.mute.extend(ctx.clock.now_ns().saturating_add(mute_ns));
        }
        i32::try_from(throttle_ms).unwrap_or(i32::MAX)
    }
}

#[cfg(test)]
mod tests;
