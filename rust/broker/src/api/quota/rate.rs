//! A rate over the last seconds, measured as in Kafka's `Rate` (a `SampledStat`).

use std::collections::VecDeque;

/// The windows of a rate: `quota.window.num` samples of `quota.window.size.seconds` each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Windows {
    pub(crate) count: usize,
    pub(crate) ms: u64,
}

impl Windows {
    /// Time after which a rate without events is zero.
    pub(crate) fn total_ms(self) -> u64 {
        (self.count as u64).saturating_mul(self.ms)
    }
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    start_ms: u64,
    last_event_ms: u64,
    bytes: i64,
}

/// The bytes of the last windows.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    samples: VecDeque<Sample>,
}

impl Rate {
    /// Adds `bytes`; a negative number takes back an earlier call.
    pub(crate) fn record(&mut self, bytes: i64, now_ms: u64, windows: Windows) {
        match self.samples.back_mut() {
            Some(last) if now_ms.saturating_sub(last.start_ms) < windows.ms => {
                last.bytes += bytes;
                last.last_event_ms = now_ms;
            }
            _ => {
                // One sample more than there are windows, because the oldest overlaps the measured
                // time.
                while self.samples.len() > windows.count {
                    self.samples.pop_front();
                }
                self.samples.push_back(Sample { start_ms: now_ms, last_event_ms: now_ms, bytes });
            }
        }
    }

    /// Milliseconds that the client must pause to bring its rate down to `bytes_per_second`; 0 if
    /// it is not higher.
    pub(crate) fn throttle_ms(
        &mut self,
        bytes_per_second: f64,
        now_ms: u64,
        windows: Windows,
    ) -> u64 {
        let bytes = self.bytes(now_ms, windows);
        let elapsed_ms = self.elapsed_ms(now_ms, windows) as f64;
        let excess_ms = bytes as f64 * 1_000.0 / bytes_per_second - elapsed_ms;
        // The cast maps negative values to 0 and large values to `u64::MAX`.
        excess_ms.round() as u64
    }

    /// Milliseconds without events until the rate falls to `bytes_per_second`; 0 if it is not
    /// higher, `u64::MAX` if only the end of the windows lowers it that far. The measured time is
    /// at least one window, as in Kafka's `SimpleRate`.
    pub(crate) fn excess_ms(
        &mut self,
        bytes_per_second: f64,
        now_ms: u64,
        windows: Windows,
    ) -> u64 {
        let bytes = self.bytes(now_ms, windows);
        let Some(oldest) = self.samples.front().filter(|_| bytes > 0) else { return 0 };
        let elapsed_ms = now_ms.saturating_sub(oldest.start_ms).max(windows.ms);
        let excess_ms = bytes as f64 * 1_000.0 / bytes_per_second - elapsed_ms as f64;
        // The cast maps negative values to 0 and large values to `u64::MAX`.
        excess_ms.ceil() as u64
    }

    /// Bytes in the windows.
    fn bytes(&mut self, now_ms: u64, windows: Windows) -> i64 {
        self.forget(now_ms, windows);
        self.samples.iter().map(|sample| sample.bytes).sum()
    }

    /// True if all samples have expired.
    pub(crate) fn is_over(&mut self, now_ms: u64, windows: Windows) -> bool {
        self.forget(now_ms, windows);
        self.samples.is_empty()
    }

    fn forget(&mut self, now_ms: u64, windows: Windows) {
        let age_ms = |sample: &Sample| now_ms.saturating_sub(sample.last_event_ms);
        while self.samples.front().is_some_and(|oldest| age_ms(oldest) >= windows.total_ms()) {
            self.samples.pop_front();
        }
    }

    /// The measured time: the age of the oldest sample, but at least all windows but one.
    fn elapsed_ms(&self, now_ms: u64, windows: Windows) -> u64 {
        let oldest_ms = self.samples.front().map_or(now_ms, |oldest| oldest.start_ms);
        let elapsed_ms = now_ms.saturating_sub(oldest_ms);
        let missing =
            (windows.count as u64).saturating_sub(1).saturating_sub(elapsed_ms / windows.ms);
        elapsed_ms.saturating_add(missing.saturating_mul(windows.ms)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WINDOWS: Windows = Windows { count: 11, ms: 1_000 };

    #[test]
    fn a_burst_of_ten_seconds_is_allowed() {
        let mut rate = Rate::default();
        rate.record(10_000, 5_000, WINDOWS);
        assert_eq!(rate.throttle_ms(1_000.0, 5_000, WINDOWS), 0);
        rate.record(1, 5_000, WINDOWS);
        assert_eq!(rate.throttle_ms(1_000.0, 5_000, WINDOWS), 1);
        rate.record(4_999, 5_000, WINDOWS);
        assert_eq!(rate.throttle_ms(1_000.0, 5_000, WINDOWS), 5_000);
        // Half a second later, the measured time is half a second longer.
        assert_eq!(rate.throttle_ms(1_000.0, 5_500, WINDOWS), 4_500);
    }

    #[test]
    fn bytes_older_than_the_windows_do_not_count() {
        let mut rate = Rate::default();
        rate.record(1_000_000, 0, WINDOWS);
        assert!(rate.throttle_ms(1_000.0, 10_999, WINDOWS) > 0);
        assert_eq!(rate.throttle_ms(1_000.0, 11_000, WINDOWS), 0);
        assert!(rate.is_over(11_000, WINDOWS));
    }

    #[test]
    fn returned_bytes_do_not_count() {
        let mut rate = Rate::default();
        rate.record(20_000, 0, WINDOWS);
        rate.record(-20_000, 0, WINDOWS);
        assert_eq!(rate.throttle_ms(1.0, 0, WINDOWS), 0);
    }

    proptest! {
        /// A client that pauses as required keeps its limit in the long run, whatever it sends and
        /// when.
        #[test]
        fn a_client_that_obeys_its_throttle_keeps_to_its_limit(
            requests in prop::collection::vec((0_i64..50_000, 0_u64..3_000), 100..300),
            windows in (1_usize..12, 1_u64..3).prop_map(|(count, s)| Windows { count, ms: s * 1_000 }),
        ) {
            let limit = 10_000.0;
            let (mut rate, mut now_ms, mut sent) = (Rate::default(), 0, 0);
            for (bytes, pause_ms) in requests {
                now_ms += pause_ms;
                rate.record(bytes, now_ms, windows);
                sent += bytes;
                now_ms += rate.throttle_ms(limit, now_ms, windows).min(windows.total_ms());
                prop_assert!(rate.samples.len() <= windows.count + 1);
            }
            // The bound includes the burst of the first windows, and bytes that leave the windows
            // while the client pauses.
            let allowed = limit * (now_ms + windows.total_ms()) as f64 / 1_000.0;
            prop_assert!(sent as f64 <= allowed * 2.0 + 100_000.0, "{sent} of {allowed}");
        }
    }
}
