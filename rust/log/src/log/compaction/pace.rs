//! Limits the speed of a compaction and checks whether it was cancelled.

use std::cell::Cell;
use std::thread;
use std::time::Duration;

use pykafka_record::{Cancellation, Cancelled};

use crate::clock::Clock;

/// Upper bound of the delay of a cancellation.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// Limits the bytes per second since its creation, on average.
pub(crate) struct Pace<'a> {
    bytes_per_second_max: f64,
    cancellation: &'a Cancellation,
    clock: &'a dyn Clock,
    begun_ns: u64,
    spent: Cell<u64>,
}

impl<'a> Pace<'a> {
    pub(crate) fn new(
        bytes_per_second_max: f64,
        cancellation: &'a Cancellation,
        clock: &'a dyn Clock,
    ) -> Pace<'a> {
        let begun_ns = clock.now_ns();
        Pace { bytes_per_second_max, cancellation, clock, begun_ns, spent: Cell::new(0) }
    }

    /// Counts bytes that were read or will be written.
    pub(crate) fn spend(&self, bytes: usize) {
        self.spent.set(self.spent.get() + bytes as u64);
    }

    /// Waits until the counted bytes are within the limit.
    pub(crate) fn keep(&self) -> Result<(), Cancelled> {
        loop {
            self.cancellation.check()?;
            let wait = self.ahead();
            if wait.is_zero() {
                return Ok(());
            }
            thread::sleep(wait.min(WAIT_MAX));
        }
    }

    /// The time until the counted bytes are within the limit.
    fn ahead(&self) -> Duration {
        if self.spent.get() == 0 {
            return Duration::ZERO;
        }
        let due = self.spent.get() as f64 / self.bytes_per_second_max;
        let due = Duration::try_from_secs_f64(due).unwrap_or(Duration::MAX);
        due.saturating_sub(Duration::from_nanos(self.clock.now_ns() - self.begun_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    const SECOND: Duration = Duration::from_secs(1);

    fn ahead(bytes_per_second_max: f64, bytes: usize, elapsed_ms: u64) -> Duration {
        let (cancellation, clock) = (Cancellation::default(), ManualClock::new(0));
        let pace = Pace::new(bytes_per_second_max, &cancellation, &clock);
        pace.spend(bytes);
        clock.advance_ms(elapsed_ms);
        pace.ahead()
    }

    #[test]
    fn spent_bytes_take_their_time() {
        assert_eq!(ahead(100.0, 300, 1000), 2 * SECOND);
        assert_eq!(ahead(100.0, 300, 4000), Duration::ZERO);
        assert_eq!(ahead(f64::MAX, usize::MAX, 0), Duration::ZERO);
        assert_eq!(ahead(f64::INFINITY, usize::MAX, 0), Duration::ZERO);
    }

    #[test]
    fn only_a_cancellation_ends_a_wait_at_pace_zero() {
        for pace in [0.0, -1.0, f64::MIN_POSITIVE] {
            assert!(ahead(pace, 1, 1000) > 1_000_000 * SECOND, "{pace}");
        }
        assert_eq!(ahead(0.0, 0, 1000), Duration::ZERO);
        let (clock, cancellation) = (ManualClock::new(0), Cancellation::when(|| true));
        let pace = Pace::new(0.0, &cancellation, &clock);
        pace.spend(1);
        assert_eq!(pace.keep(), Err(Cancelled));
    }
}
