//! Requests that wait without a thread: their deadlines, their wake-ups and a bound on their
//! memory.
//!
//! A parked request is a future in the task of its connection. It waits on its [`Parked`], which is
//! woken by a partition that it watches (enough bytes became readable, or an acknowledgement
//! arrived), by its deadline, or by the stop of the broker. The waking thread does no work for it:
//! the task itself reads again, so a producer does not pay for the fetches that it wakes. Dropping
//! the future (its connection closed) removes it from all lists.
//!
//! Deadlines are in one ordered map; one task ([`run`]) sleeps until the first of them. Only the
//! given clock is read, so tests move time and call [`Purgatory::expire`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use pykafka_forks::Mutex;
use pykafka_log::Clock;
use tokio::sync::Notify;

use crate::network::memory::budget::{Budget, Share};

/// A waiting request, shared by its future, the partitions that it watches, and the deadlines.
#[derive(Debug)]
pub struct Parked {
    notify: Notify,
    expired: AtomicBool,
    missing_bytes: AtomicI64,
}

impl Parked {
    /// Creates a request that is woken once `missing_bytes` more are readable; 0 if it waits for
    /// something else.
    pub fn new(missing_bytes: i64) -> Arc<Parked> {
        Arc::new(Parked {
            notify: Notify::new(),
            expired: AtomicBool::new(false),
            missing_bytes: AtomicI64::new(missing_bytes),
        })
    }

    /// Wakes the request, which checks for changes itself.
    pub fn wake(&self) {
        self.notify.notify_one();
    }

    /// Counts bytes that became readable in a watched partition, and wakes the request when there
    /// are enough. The count may be too high: the request reads again and may continue to wait.
    pub fn credit(&self, bytes: i64) {
        if self.missing_bytes.fetch_sub(bytes, Ordering::AcqRel) <= bytes {
            self.wake();
        }
    }

    /// Sets the number of missing bytes, before another wait.
    pub fn expect_bytes(&self, missing_bytes: i64) {
        self.missing_bytes.store(missing_bytes, Ordering::Release);
    }

    /// True if the deadline has passed.
    pub fn is_expired(&self) -> bool {
        self.expired.load(Ordering::Acquire)
    }

    /// Waits for the next wake-up; returns at once if there was one before.
    pub async fn wait(&self) {
        self.notify.notified().await;
    }

    fn expire(&self) {
        self.expired.store(true, Ordering::Release);
        self.wake();
    }
}

/// The parked requests of a broker. Cloning it is cheap.
#[derive(Clone)]
pub struct Purgatory {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    deadlines: Mutex<Deadlines>,
    earlier: Notify,
    budget: Arc<Budget>,
}

#[derive(Default)]
struct Deadlines {
    by_time: BTreeMap<(u64, u64), Arc<Parked>>,
    next_id: u64,
}

/// Keeps a request parked. Dropping it removes the deadline and frees the bytes.
pub struct Parking {
    shared: Arc<Shared>,
    key: (u64, u64),
    _share: Share,
}

impl Purgatory {
    /// Creates an empty purgatory on `clock`. `budget` bounds the memory of parked requests (frames
    /// and decoded requests); beyond it, a fetch is answered at once with the available data, so
    /// that slow readers cannot fill the memory (contract/replication.md#attack-17).
    pub(crate) fn new(clock: Arc<dyn Clock>, budget: Arc<Budget>) -> Purgatory {
        let shared = Shared { clock, deadlines: Mutex::default(), earlier: Notify::new(), budget };
        Purgatory { shared: Arc::new(shared) }
    }

    /// Parks a request until `deadline_ns` (monotonic); `None` if all parked requests would then
    /// exceed the bound.
    pub fn park(&self, parked: &Arc<Parked>, deadline_ns: u64, bytes: usize) -> Option<Parking> {
        let mut share = self.shared.budget.share();
        if bytes > 0 && !share.try_within(bytes) {
            return None;
        }
        let mut deadlines = self.shared.deadlines.lock();
        let key = (deadline_ns, deadlines.next_id);
        deadlines.next_id += 1;
        deadlines.by_time.insert(key, parked.clone());
        if deadlines.by_time.first_key_value().is_some_and(|(first, _)| *first == key) {
            self.shared.earlier.notify_one();
        }
        Some(Parking { shared: self.shared.clone(), key, _share: share })
    }

    /// Wakes all requests with a deadline at or before `now_ns`; returns the next deadline.
    pub fn expire(&self, now_ns: u64) -> Option<u64> {
        let mut deadlines = self.shared.deadlines.lock();
        let later = deadlines.by_time.split_off(&(now_ns.saturating_add(1), 0));
        let due = std::mem::replace(&mut deadlines.by_time, later);
        let next = deadlines.by_time.first_key_value().map(|((at_ns, _), _)| *at_ns);
        drop(deadlines);
        for parked in due.values() {
            parked.expire();
        }
        next
    }

    /// Number of parked requests.
    pub fn parked_count(&self) -> usize {
        self.shared.deadlines.lock().by_time.len()
    }

    /// Wakes all requests, whatever their deadlines: the broker stops, and each responds with the
    /// available data.
    pub fn expire_all(&self) {
        self.expire(u64::MAX - 1);
    }
}

impl Drop for Parking {
    fn drop(&mut self) {
        self.shared.deadlines.lock().by_time.remove(&self.key);
    }
}

/// Wakes requests at their deadlines until the future is dropped. One task per broker.
pub async fn run(purgatory: Purgatory) {
    loop {
        let now_ns = purgatory.shared.clock.now_ns();
        match purgatory.expire(now_ns) {
            None => purgatory.shared.earlier.notified().await,
            Some(next_ns) => {
                let sleep = tokio::time::sleep(Duration::from_nanos(next_ns - now_ns));
                tokio::select! {
                    () = sleep => {}
                    () = purgatory.shared.earlier.notified() => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pykafka_log::ManualClock;

    use super::*;

    fn purgatory(bytes_max: usize) -> Purgatory {
        Purgatory::new(Arc::new(ManualClock::new(0)), Arc::new(Budget::new(bytes_max)))
    }

    #[test]
    fn deadlines_expire_in_order_and_only_when_due() {
        let purgatory = purgatory(100);
        let (early, late) = (Parked::new(1), Parked::new(1));
        let _late = purgatory.park(&late, 20, 1);
        let _early = purgatory.park(&early, 10, 1);
        assert_eq!(purgatory.expire(9), Some(10));
        assert!(!early.is_expired());
        assert_eq!(purgatory.expire(10), Some(20));
        assert!(early.is_expired() && !late.is_expired());
        assert_eq!(purgatory.expire(u64::MAX), None);
    }

    #[test]
    fn dropping_removes_the_deadline_and_releases_bytes() {
        let purgatory = purgatory(100);
        let parked = Parked::new(1);
        let parking = purgatory.park(&parked, 10, 80);
        assert!(parking.is_some());
        assert!(purgatory.park(&parked, 10, 30).is_none());
        drop(parking);
        assert_eq!(purgatory.parked_count(), 0);
        assert!(purgatory.park(&parked, 10, 30).is_some());
    }

    #[tokio::test]
    async fn credit_wakes_once_enough_bytes_are_readable() {
        let parked = Parked::new(10);
        parked.credit(4);
        let early = tokio::time::timeout(Duration::ZERO, parked.wait()).await;
        assert!(early.is_err());
        parked.credit(6);
        parked.wait().await;
    }
}
