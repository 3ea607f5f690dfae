//! The engine reads time only through [`Clock`], so that tests and simulations control it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A source of time. Calls must be cheap: the append path makes one for each batch.
pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch, as in record timestamps. May step back.
    fn now_ms(&self) -> i64;

    /// Nanoseconds since an arbitrary start; never steps back. For intervals only.
    fn now_ns(&self) -> u64;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// A clock whose monotonic reading starts near zero.
    #[expect(clippy::disallowed_methods, reason = "the one place where the machine's clock enters")]
    pub fn new() -> Self {
        SystemClock { started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place where the machine's clock enters")]
    fn now_ms(&self) -> i64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// A clock that changes only when a test advances it.
#[derive(Debug)]
pub struct ManualClock {
    now_ns: AtomicU64,
    start_ms: i64,
}

impl ManualClock {
    /// A clock that reads `start_ms` until [`ManualClock::advance_ms`] is called.
    pub fn new(start_ms: i64) -> Self {
        ManualClock { now_ns: AtomicU64::new(0), start_ms }
    }

    /// Moves both readings forward.
    pub fn advance_ms(&self, ms: u64) {
        self.now_ns.fetch_add(ms * 1_000_000, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.start_ms + i64::try_from(self.now_ns() / 1_000_000).unwrap_or(i64::MAX)
    }

    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_clock_moves_both_readings_together() {
        let clock = ManualClock::new(1_700_000_000_000);
        clock.advance_ms(250);
        assert_eq!((clock.now_ms(), clock.now_ns()), (1_700_000_000_250, 250_000_000));
    }

    #[test]
    fn system_clock_is_past_the_year_2023_and_monotonic() {
        let clock = SystemClock::new();
        assert!(clock.now_ms() > 1_672_531_200_000);
        assert!(clock.now_ns() <= clock.now_ns());
    }
}
