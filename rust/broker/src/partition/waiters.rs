//! The waiters of a partition: acknowledgements by offset, fetches of clients by readable bytes,
//! fetches of followers by appended bytes.
//!
//! This module only has lists: the partition's mutex guards them, and waiters that are removed are
//! woken after its release.

use std::collections::VecDeque;
use std::sync::Arc;

use pykafka_log::AppendInfo;

use super::threads::catch_panic::contained;
use crate::kafka_error::KafkaError;
use crate::partition::append::outcome::AppendOutcome;
use crate::partition::purgatory::Parked;

/// The condition for an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// The batch is in the log (acks=0).
    Appended,
    /// The leader's own copy is as durable as promised (acks=1).
    Durable,
    /// In addition, every in-sync replica has it: the high watermark has passed it (acks=all).
    Committed,
}

/// Waits for acknowledgements. It is notified of each at most once, without a partition's lock
/// held.
pub trait AckWaiter: Send + Sync {
    /// Reports the outcome of the append in `slot`.
    fn acknowledged(&self, slot: usize, outcome: AppendOutcome);

    /// Reports that the append in `slot` is in the leader's log, as durable as its topic requires,
    /// and waits for replicas. Not called if it does not have to wait.
    fn stored(&self, _slot: usize) {}

    /// True if the waiter was removed: appends whose write has not started are not written, and a
    /// validation in progress ends.
    fn is_gone(&self) -> bool {
        false
    }
}

/// A waiting append.
#[derive(Clone)]
pub struct Ack {
    /// The result of the append.
    pub info: AppendInfo,
    /// The waiter to notify.
    pub waiter: Arc<dyn AckWaiter>,
    /// Index of the append among those of the waiter.
    pub slot: usize,
}

impl Ack {
    /// Exclusive end of the appended batch.
    fn end_offset(&self) -> i64 {
        self.info.last_offset + 1
    }
}

/// Maximum number of deletions in one partition that wait for replicas.
const DELETIONS_MAX: usize = 1_000;

/// Called with the low watermark, or with an error if it will not be reached.
pub type TellLow = Box<dyn FnOnce(Result<i64, KafkaError>) + Send>;

/// Waiters that are collected under the lock and notified after its release.
#[derive(Default)]
pub struct Wakeups {
    stored: Vec<Ack>,
    acks: Vec<(Ack, Option<KafkaError>)>,
    fetches: Vec<Arc<Parked>>,
    credits: Vec<(Arc<Parked>, i64)>,
    lows: Vec<(TellLow, Result<i64, KafkaError>)>,
}

impl Wakeups {
    /// Notifies all waiters. Must not be called under a partition's lock.
    pub fn tell(self) {
        for ack in self.stored {
            contained(|| ack.waiter.stored(ack.slot));
        }
        for (ack, error) in self.acks {
            let outcome = error.map_or(Ok(ack.info), |error| Err(error.into()));
            contained(|| ack.waiter.acknowledged(ack.slot, outcome));
        }
        for fetch in self.fetches {
            contained(|| fetch.wake());
        }
        for (fetch, bytes) in self.credits {
            contained(|| fetch.credit(bytes));
        }
        for (tell, low) in self.lows {
            contained(|| tell(low));
        }
    }
}

/// The waiting acknowledgements and fetches of one partition; without waiters it allocates nothing.
#[derive(Default)]
pub struct Waiters {
    durable: VecDeque<Ack>,
    /// The entries of `committed` whose waiters are also notified when the leader's own copy is
    /// durable.
    unstored: VecDeque<Ack>,
    committed: VecDeque<Ack>,
    fetches: Vec<Arc<Parked>>,
    /// Fetches of followers, which may read all appended records.
    log_end_fetches: Vec<Arc<Parked>>,
    /// Deletions of records that wait until all replicas have made them.
    deletions: Vec<(i64, TellLow)>,
}

impl Waiters {
    /// Makes `ack` wait. Appends arrive in the order of offsets; only a duplicate batch may belong
    /// further to the front.
    pub fn wait_ack(
        &mut self,
        promise: Promise,
        ack: Ack,
        promised_end: i64,
        wakeups: &mut Wakeups,
    ) {
        if promise != Promise::Committed {
            return insert(&mut self.durable, ack);
        }
        if ack.end_offset() <= promised_end {
            wakeups.stored.push(ack.clone());
        } else {
            insert(&mut self.unstored, ack.clone());
        }
        insert(&mut self.committed, ack);
    }

    /// True without waiters.
    pub fn is_empty(&self) -> bool {
        self.durable.is_empty()
            && self.committed.is_empty()
            && self.fetches.is_empty()
            && self.log_end_fetches.is_empty()
            && self.deletions.is_empty()
    }

    /// Makes `tell` wait until the low watermark is at least `offset`. If [`DELETIONS_MAX`]
    /// requests are waiting, the oldest fails with `REQUEST_TIMED_OUT`, because requests that time
    /// out are not removed from this list.
    pub fn wait_low(&mut self, offset: i64, tell: TellLow, wakeups: &mut Wakeups) {
        if self.deletions.len() == DELETIONS_MAX {
            let (_, oldest) = self.deletions.remove(0);
            wakeups.lows.push((oldest, Err(KafkaError::RequestTimedOut)));
        }
        self.deletions.push((offset, tell));
    }

    /// True if a request waits for the low watermark.
    pub fn await_low(&self) -> bool {
        !self.deletions.is_empty()
    }

    /// Notifies the requests whose offset the low watermark has reached.
    pub fn low(&mut self, low_watermark: i64, wakeups: &mut Wakeups) {
        let reached = self.deletions.extract_if(.., |(offset, _)| *offset <= low_watermark);
        wakeups.lows.extend(reached.map(|(_, tell)| (tell, Ok(low_watermark))));
    }

    /// Acknowledges appends that are as durable as promised now.
    pub fn promised(&mut self, promised_end: i64, wakeups: &mut Wakeups) {
        wakeups.stored.extend(covered(&mut self.unstored, promised_end));
        acknowledge(&mut self.durable, promised_end, None, wakeups);
    }

    /// Acknowledges appends that the high watermark has passed; with `error`, too few in-sync
    /// replicas after the append, they fail.
    pub fn committed(
        &mut self,
        high_watermark: i64,
        error: Option<KafkaError>,
        wakeups: &mut Wakeups,
    ) {
        acknowledge(&mut self.committed, high_watermark, error, wakeups);
    }

    /// Credits the waiting fetches of clients with `bytes` that became readable.
    pub fn readable(&self, bytes: i64, wakeups: &mut Wakeups) {
        wakeups.credits.extend(self.fetches.iter().map(|fetch| (fetch.clone(), bytes)));
    }

    /// Credits the waiting fetches of followers with `bytes` that were appended.
    pub fn appended(&self, bytes: i64, wakeups: &mut Wakeups) {
        let credits = self.log_end_fetches.iter().map(|fetch| (fetch.clone(), bytes));
        wakeups.credits.extend(credits);
    }

    /// Wakes all fetches of clients, because records became stable.
    pub fn stable(&self, wakeups: &mut Wakeups) {
        wakeups.fetches.extend(self.fetches.iter().cloned());
    }

    /// Fails all acknowledgements and wakes all fetches, because the leadership or the partition is
    /// lost.
    pub fn fail(&mut self, error: KafkaError, wakeups: &mut Wakeups) {
        self.unstored.clear();
        acknowledge(&mut self.durable, i64::MAX, Some(error), wakeups);
        acknowledge(&mut self.committed, i64::MAX, Some(error), wakeups);
        wakeups.fetches.extend(self.fetches.iter().chain(&self.log_end_fetches).cloned());
        wakeups.lows.extend(self.deletions.drain(..).map(|(_, tell)| (tell, Err(error))));
    }

    /// Removes the acknowledgements of a waiter, whose request timed out or whose connection
    /// closed.
    pub fn forget_acks(&mut self, waiter: &Arc<dyn AckWaiter>) {
        for queue in [&mut self.durable, &mut self.unstored, &mut self.committed] {
            queue.retain(|ack| !Arc::ptr_eq(&ack.waiter, waiter));
        }
    }

    /// Adds a fetch of a client, until [`Waiters::unwatch`].
    pub fn watch(&mut self, fetch: &Arc<Parked>) {
        self.fetches.push(fetch.clone());
    }

    /// Adds a fetch of a follower, until [`Waiters::unwatch`].
    pub fn watch_log_end(&mut self, fetch: &Arc<Parked>) {
        self.log_end_fetches.push(fetch.clone());
    }

    /// Removes a fetch.
    pub fn unwatch(&mut self, fetch: &Arc<Parked>) {
        for watching in [&mut self.fetches, &mut self.log_end_fetches] {
            if let Some(at) = watching.iter().position(|other| Arc::ptr_eq(other, fetch)) {
                watching.swap_remove(at);
            }
        }
    }
}

fn acknowledge(
    queue: &mut VecDeque<Ack>,
    end_offset: i64,
    error: Option<KafkaError>,
    wakeups: &mut Wakeups,
) {
    wakeups.acks.extend(covered(queue, end_offset).map(|ack| (ack, error)));
}

fn covered(queue: &mut VecDeque<Ack>, end_offset: i64) -> impl Iterator<Item = Ack> {
    let count = queue.partition_point(|ack| ack.end_offset() <= end_offset);
    queue.drain(..count)
}

fn insert(queue: &mut VecDeque<Ack>, ack: Ack) {
    let at = queue.partition_point(|waiting| waiting.end_offset() <= ack.end_offset());
    queue.insert(at, ack);
}

#[cfg(test)]
mod tests {
    use pykafka_forks::Mutex;

    use super::*;
    use crate::partition::append::outcome::AppendRefusal;

    #[derive(Default)]
    struct Told(Mutex<Vec<(usize, Option<KafkaError>)>>);

    impl AckWaiter for Told {
        fn acknowledged(&self, slot: usize, outcome: AppendOutcome) {
            let error = match outcome {
                Err(AppendRefusal::Partition(error)) => Some(error),
                _ => None,
            };
            self.0.lock().push((slot, error));
        }
    }

    fn ending_at(end_offset: i64) -> AppendInfo {
        AppendInfo {
            first_offset: end_offset - 1,
            last_offset: end_offset - 1,
            max_timestamp: -1,
            log_append_time_ms: -1,
            log_start_offset: 0,
            log_end_offset: end_offset,
            records_count: 1,
            duplicate: false,
        }
    }

    fn told(waiters: &mut Waiters, act: impl FnOnce(&mut Waiters, &mut Wakeups)) {
        let mut wakeups = Wakeups::default();
        act(waiters, &mut wakeups);
        wakeups.tell();
    }

    #[test]
    fn acknowledgements_come_in_offset_order_and_once() {
        let told_to = Arc::new(Told::default());
        let mut waiters = Waiters::default();
        for (slot, end_offset) in [(0, 3), (1, 7), (2, 5)] {
            let ack = Ack { info: ending_at(end_offset), waiter: told_to.clone(), slot };
            waiters.wait_ack(Promise::Committed, ack, 0, &mut Wakeups::default());
        }
        told(&mut waiters, |waiters, wakeups| waiters.committed(5, None, wakeups));
        assert_eq!(*told_to.0.lock(), [(0, None), (2, None)]);
        told(&mut waiters, |w, wakeups| w.fail(KafkaError::NotLeaderOrFollower, wakeups));
        assert_eq!(told_to.0.lock()[2], (1, Some(KafkaError::NotLeaderOrFollower)));
        assert!(waiters.is_empty());
    }

    #[test]
    fn forgotten_waiter_is_not_called() {
        let told_to = Arc::new(Told::default());
        let waiter: Arc<dyn AckWaiter> = told_to.clone();
        let mut waiters = Waiters::default();
        let ack = Ack { info: ending_at(1), waiter: waiter.clone(), slot: 0 };
        waiters.wait_ack(Promise::Durable, ack, 0, &mut Wakeups::default());
        waiters.forget_acks(&waiter);
        told(&mut waiters, |waiters, wakeups| waiters.promised(9, wakeups));
        assert!(told_to.0.lock().is_empty());
    }
}
