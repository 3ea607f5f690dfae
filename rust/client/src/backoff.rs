//! The pause before the next connection attempt to a node that could not be reached.

use std::time::Duration;

use tokio::time::Instant;

/// Random deviation, in percent of the pause, so that nodes that lost the same peer do not
/// reconnect at the same time.
const JITTER_PERCENT: u64 = 20;

/// A pause that doubles with each failure.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    max: Duration,
    failures: u32,
    until: Option<Instant>,
    seed: u64,
}

impl Backoff {
    pub(crate) fn new(first: Duration, max: Duration, seed: u64) -> Backoff {
        Backoff { first, max, failures: 0, until: None, seed }
    }

    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
        self.until = None;
    }

    pub(crate) fn failed(&mut self, now: Instant) {
        let pause = self.first.saturating_mul(1 << self.failures.min(16)).min(self.max);
        self.failures += 1;
        self.until = Some(now + self.jittered(pause));
    }

    /// Remaining time of the pause; `None` without one.
    pub(crate) fn remaining(&self, now: Instant) -> Option<Duration> {
        let left = self.until?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    /// Makes the pause up to 20 % shorter or longer.
    fn jittered(&mut self, pause: Duration) -> Duration {
        // SplitMix64 (Steele, Lea, Flood 2014).
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut drawn = self.seed;
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let percent = 100 - JITTER_PERCENT + (drawn ^ (drawn >> 31)) % (2 * JITTER_PERCENT + 1);
        pause * u32::try_from(percent).expect("at most 120") / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_its_maximum_and_resets_on_success() {
        let ms = Duration::from_millis;
        let (mut backoff, now) = (Backoff::new(ms(50), ms(1_000), 7), Instant::now());
        assert_eq!(backoff.remaining(now), None);
        for expected in [50, 100, 200, 400, 800, 1_000, 1_000] {
            backoff.failed(now);
            let left = backoff.remaining(now).expect("a pause").as_millis();
            assert!((expected * 4 / 5..=expected * 6 / 5).contains(&left), "{left} for {expected}");
        }
        assert_eq!(backoff.remaining(now + ms(1_200)), None);
        backoff.succeeded();
        backoff.failed(now);
        assert!(backoff.remaining(now).expect("a pause") <= ms(60));
    }
}
