//! The rates of all clients with a limit.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use pykafka_forks::Mutex;

use super::rate::{Rate, Windows};
use crate::control_api::image::client_quotas::Metered;
use crate::control_api::settings::Settings;

/// Maximum number of rates in memory: about 5 MB.
pub(super) const RATES_MAX: usize = 16_384;
/// Minimum time between two deletions of idle rates, because each scans all rates.
const FORGET_INTERVAL_MS: u64 = 1_000;

/// The time and the windows of a measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meter {
    pub(super) now_ms: u64,
    pub(super) windows: Windows,
}

impl Meter {
    pub(super) fn new(now_ns: u64, settings: &Settings) -> Meter {
        Meter { now_ms: now_ns / 1_000_000, windows: windows(settings) }
    }
}

pub(super) fn windows(settings: &Settings) -> Windows {
    Windows { count: settings.quota_windows, ms: settings.quota_window_ms }
}

/// Identifies a rate: a keyed hash, because clients may choose long names.
pub(super) type RateKey = u64;
/// The rate of new clients when there are too many rates.
const KEY_SHARED: RateKey = 0;

/// The rates of all clients with a limit.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    hasher: RandomState,
    pub(super) table: Mutex<Table>,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) rates: HashMap<RateKey, Rate>,
    forgotten_ms: u64,
}

impl Rates {
    /// The key of a client, by those of its names that the limit is for.
    pub(super) fn key(
        &self,
        metered: Metered,
        user: Option<&str>,
        client_id: Option<&str>,
    ) -> RateKey {
        self.hasher.hash_one((metered, user, client_id))
    }

    pub(super) fn with<R>(
        &self,
        key: RateKey,
        meter: Meter,
        change: impl FnOnce(&mut Rate) -> R,
    ) -> R {
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
