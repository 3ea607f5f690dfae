//! Arrival times of the bytes of a connection. A request has the arrival time of its last byte,
//! however long it waits for earlier requests.

use std::collections::VecDeque;

/// Maximum number of recorded reads. There are many only if the connection reads ahead of a pending
/// request.
const READS_MAX: usize = 64;

/// Monotonic time in nanoseconds, and wall-clock time in milliseconds.
pub(super) type Moment = (u64, i64);

/// The reads whose bytes were not all taken yet.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    received: u64,
    taken: u64,
    /// Stream position of the end of each read, and its time.
    reads: VecDeque<(u64, Moment)>,
}

impl Arrivals {
    /// Records a read of `size` bytes. Beyond [`READS_MAX`], it extends the read before it.
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

    /// Takes the next `size` bytes and returns the arrival time of the last of them.
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
    fn a_frame_is_timed_from_its_last_byte() {
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
    fn the_number_of_remembered_reads_is_bounded() {
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
