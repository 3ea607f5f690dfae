//! The sync rounds of a partition.

use std::sync::Arc;
use std::time::Duration;

use pykafka_log::Log;

/// A shorter sync ends before others could have joined it.
const LONG_SYNC_NS_MIN: u64 = 1_000_000;
const PAUSE_NS_MAX: u64 = 1_000_000;

/// The syncs of a partition.
#[derive(Debug, Default)]
pub(in crate::partition) struct SyncRound {
    /// Start time of the round in flight.
    pub(super) since_ns: Option<u64>,
    pub(super) listed_as_dirty: bool,
    /// Critical sections that appended since the start of the last round.
    pub(super) appends: usize,
    /// Pause before the next round, if it is requested before `pauses_until_ns`.
    pause: Duration,
    pauses_until_ns: u64,
}

impl SyncRound {
    /// Records the end of a round that covered `appends` and ran from `begun_ns` to `now_ns`.
    pub(super) fn ended(&mut self, appends: usize, begun_ns: u64, now_ns: u64) {
        let sync_ns = now_ns.saturating_sub(begun_ns);
        let is_shared = appends > 1 || self.appends > 0;
        let pause_ns = if is_shared && sync_ns >= LONG_SYNC_NS_MIN { sync_ns / 8 } else { 0 };
        self.since_ns = None;
        self.pause = Duration::from_nanos(pause_ns.min(PAUSE_NS_MAX));
        self.pauses_until_ns = now_ns + sync_ns;
    }

    /// Pause before a round that is requested at `now_ns`.
    pub(super) fn pause_at(&self, now_ns: u64) -> Duration {
        if now_ns < self.pauses_until_ns { self.pause } else { Duration::ZERO }
    }
}

/// A round that was started. It runs after the release of the partition's mutex, or on the thread
/// that takes it from the guard.
pub(in crate::partition) struct Begun(pub(super) Arc<Log>);

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// The pause before a round that is requested `later_ns` after the end of one that covered
    /// `appends` and took `sync_ns`.
    fn pause(appends: usize, appended_meanwhile: usize, sync_ns: u64, later_ns: u64) -> Duration {
        let mut round = SyncRound { appends: appended_meanwhile, ..SyncRound::default() };
        round.ended(appends, 7 * MS, 7 * MS + sync_ns);
        round.pause_at(7 * MS + sync_ns + later_ns)
    }

    #[test]
    fn a_round_waits_an_eighth_of_a_long_sync_that_was_shared() {
        assert_eq!(pause(5, 0, 4 * MS, 0), Duration::from_micros(500));
        assert_eq!(pause(1, 4, 4 * MS, 4 * MS - 1), Duration::from_micros(500));
        assert_eq!(pause(5, 0, 800 * MS, 0), Duration::from_millis(1));
    }

    #[test]
    fn a_round_of_a_single_producer_or_a_fast_disk_or_after_a_pause_starts_at_once() {
        assert_eq!(pause(1, 0, 4 * MS, 0), Duration::ZERO);
        assert_eq!(pause(5, 4, LONG_SYNC_NS_MIN - 1, 0), Duration::ZERO);
        assert_eq!(pause(5, 4, 4 * MS, 4 * MS), Duration::ZERO);
    }
}
