//! A clock for tests and golden directories.

use pykafka_log::{Clock, SystemClock};

/// A fixed wall clock; the monotonic clock is the system's, so that deadlines still pass.
#[derive(Debug)]
pub struct FixedClock {
    now_ms: i64,
    machine: SystemClock,
}

impl FixedClock {
    /// A clock whose wall-clock time is always `now_ms`.
    pub fn new(now_ms: i64) -> FixedClock {
        FixedClock { now_ms, machine: SystemClock::new() }
    }
}

impl Clock for FixedClock {
    fn now_ms(&self) -> i64 {
        self.now_ms
    }

    fn now_ns(&self) -> u64 {
        self.machine.now_ns()
    }
}
