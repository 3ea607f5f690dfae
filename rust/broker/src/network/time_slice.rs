//! Time slices limit the work of a connection before others run.
//!
//! Reads and writes that succeed at once never return to the scheduler, so a peer that keeps its
//! socket full, or empty, would occupy a network thread. A slice is the work of a connection in one
//! poll of its task: [`in_slices`] starts one with each poll, and nothing else does. After its
//! slice, a connection is scheduled after all that are ready.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::task;

/// Maximum bytes read and written per slice.
pub(crate) const SLICE_BYTES_MAX: usize = 256 << 10;
pub(crate) const SLICE_FRAMES_MAX: usize = 64;
/// Maximum duration of a slice. After eight others, a connection has waited for less than 5 ms,
/// even on one thread.
const SLICE_NS_MAX: u64 = 500_000;

/// The work of a connection since it was last scheduled. Only its own task changes it.
#[derive(Debug, Default)]
pub(crate) struct TimeSlice {
    bytes: AtomicUsize,
    frames: AtomicUsize,
    /// Time of the first frame; 0 without a frame.
    since_ns: AtomicU64,
}

impl TimeSlice {
    /// Counts bytes that were read or written.
    pub(crate) fn moved(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a frame that is handled at `now_ns`.
    pub(crate) fn handled(&self, now_ns: u64) {
        self.frames.fetch_add(1, Ordering::Relaxed);
        if self.since_ns.load(Ordering::Relaxed) == 0 {
            self.since_ns.store(now_ns, Ordering::Relaxed);
        }
    }

    /// Yields to the other connections that are ready.
    pub(crate) async fn give_away(&self) {
        task::yield_now().await;
    }

    /// True if the slice is over at `now_ns`.
    pub(crate) fn is_over(&self, now_ns: u64) -> bool {
        let since_ns = self.since_ns.load(Ordering::Relaxed);
        self.bytes.load(Ordering::Relaxed) >= SLICE_BYTES_MAX
            || self.frames.load(Ordering::Relaxed) >= SLICE_FRAMES_MAX
            || (since_ns > 0 && now_ns.saturating_sub(since_ns) >= SLICE_NS_MAX)
    }

    fn begin(&self) {
        self.bytes.store(0, Ordering::Relaxed);
        self.frames.store(0, Ordering::Relaxed);
        self.since_ns.store(0, Ordering::Relaxed);
    }
}

/// Runs `connection`; each poll starts a slice.
pub(crate) async fn in_slices<T>(slice: &TimeSlice, connection: impl Future<Output = T>) -> T {
    let mut connection = pin!(connection);
    poll_fn(|context| {
        slice.begin();
        connection.as_mut().poll(context)
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Number of polls until `connection` is done.
    fn polls(slice: &TimeSlice, connection: impl Future<Output = ()>) -> usize {
        let mut connection = pin!(in_slices(slice, connection));
        let mut context = Context::from_waker(Waker::noop());
        let mut count = 1;
        while connection.as_mut().poll(&mut context) == Poll::Pending {
            count += 1;
        }
        count
    }

    async fn give_way(slice: &TimeSlice, now_ns: u64) {
        if slice.is_over(now_ns) {
            slice.give_away().await;
        }
    }

    #[test]
    fn a_slice_ends_after_a_number_of_bytes_frames_or_nanoseconds() {
        let slice = &TimeSlice::default();
        let bytes = async || {
            slice.moved(SLICE_BYTES_MAX / 2);
            give_way(slice, 1).await;
        };
        let frame = async |now_ns| {
            slice.handled(now_ns);
            give_way(slice, now_ns).await;
        };
        assert_eq!(
            polls(slice, async {
                for _ in 0..3 {
                    bytes().await;
                }
            }),
            2
        );
        assert_eq!(
            polls(slice, async {
                for _ in 0..SLICE_FRAMES_MAX * 3 {
                    frame(1).await;
                }
            }),
            4
        );
        assert_eq!(
            polls(slice, async {
                for at in 1..=4 {
                    frame(at * SLICE_NS_MAX / 2).await;
                }
            }),
            2
        );
    }

    #[test]
    fn a_slice_starts_when_the_connection_has_waited_by_itself() {
        let slice = &TimeSlice::default();
        let connection = async {
            for _ in 0..10 {
                slice.moved(SLICE_BYTES_MAX - 1);
                give_way(slice, 1).await;
                task::yield_now().await;
            }
        };
        assert_eq!(polls(slice, connection), 11);
    }
}
