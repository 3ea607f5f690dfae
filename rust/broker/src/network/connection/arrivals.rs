//! When the bytes of a connection arrived: a request counts from its last one, however long it waits for those before it.

use std::collections::VecDeque;

/// Reads that are remembered one by one. Only what is read ahead of a request that is not answered makes them many.
const READS_MAX: usize = 64;

/// The monotonic clock in nanoseconds, and the wall clock in milliseconds.
pub(super) type Moment = (u64, i64);

/// The reads whose bytes were not all taken.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    received: u64,
    taken: u64,
    /// Where in the stream a read ended, and when it was.
    reads: VecDeque<(u64, Moment)>,
}

impl Arrivals {
    /// Notes a read of `size` bytes. Beyond [`READS_MAX`] it counts as a part of the one before.
    pub(super) fn received(&mut self, size: usize, now: Moment) {
        self.received += size as u64;
        if self.reads.len() == READS_MAX
            && let Some((end, _)) = self.reads.back_mut()
        {
            *end = self.received;
        } else {
            self.reads.push_back((self.received, now));
        }
    }

    /// Takes the next `size` bytes: when the last of them arrived.
    pub(super) fn take(&mut self, size: usize) -> Moment {
        self.taken += size as u64;
        while let Some(&(end, at)) = self.reads.front() {
            if end > self.taken {
                return at;
            }
            self.reads.pop_front();
            if end == self.taken {
                return at;
            }
        }
        unreachable!("bytes are received before they are taken")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Moment {
        (ms as u64 * 1_000_000, ms)
    }

    #[test]
    fn a_frame_counts_from_its_last_byte() {
        let mut arrivals = Arrivals::default();
        arrivals.received(10, at(1));
        arrivals.received(10, at(2));
        arrivals.received(30, at(3));
        assert_eq!(arrivals.take(10), at(1));
        assert_eq!(arrivals.take(9), at(2));
        assert_eq!(arrivals.take(11), at(3), "it began in the second read");
        assert_eq!(arrivals.take(20), at(3));
        assert!(arrivals.reads.is_empty());
    }

    #[test]
    fn the_reads_that_are_remembered_are_bounded() {
        let mut arrivals = Arrivals::default();
        for ms in 0..1_000 {
            arrivals.received(1, at(ms));
        }
        assert_eq!(arrivals.reads.len(), READS_MAX);
        assert_eq!(arrivals.take(1), at(0));
        assert_eq!(arrivals.take(999), at(READS_MAX as i64 - 1));
        assert!(arrivals.reads.is_empty());
    }
}
