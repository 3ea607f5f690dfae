//! Who waits on a partition: acknowledgements by offset, clients' fetches by readable bytes, followers' by appended ones.
//!
//! Lists only: the partition's mutex guards them, and everything taken out of them is woken after it is released.

use std::collections::VecDeque;
use std::sync::Arc;

use pykafka_log::AppendInfo;

use super::append::AppendOutcome;
use super::threads::contained::contained;
use crate::kafka_error::KafkaError;
use crate::partition::purgatory::Parked;

/// What an acknowledgement waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// It is in the log (acks=0).
    Appended,
    /// The leader's own copy is as durable as promised (acks=1).
    Durable,
    /// Also every in-sync replica has it: the high watermark passed it (acks=all).
    Committed,
}

/// Something that waits for acknowledgements; told of each at most once, outside of any partition's lock.
pub trait AckWaiter: Send + Sync {
    /// What became of the append in `slot`.
    fn acknowledged(&self, slot: usize, outcome: AppendOutcome);

    /// The append in `slot` is in the leader's log, as durably as its topic asks, and waits for replicas. Not called if it
    /// need not wait.
    fn stored(&self, _slot: usize) {}

    /// Whether it is forgotten: what is not being written yet is not appended for it, and a validation under way ends.
    fn is_gone(&self) -> bool {
        false
    }
}

/// One append that waits.
#[derive(Clone)]
pub struct Ack {
    /// What was appended.
    pub info: AppendInfo,
    /// Who is told.
    pub waiter: Arc<dyn AckWaiter>,
    /// Passed back to it.
    pub slot: usize,
}

impl Ack {
    /// Exclusive end of the appended batch.
    fn end_offset(&self) -> i64 {
        self.info.last_offset + 1
    }
}

/// Deletions that wait for replicas, of one partition.
const DELETIONS_MAX: usize = 1_000;

/// Told the low watermark, or why there will be none.
pub type TellLow = Box<dyn FnOnce(Result<i64, KafkaError>) + Send>;

/// Collected under the lock, told after it.
#[derive(Default)]
pub struct Wakeups {
    stored: Vec<Ack>,
    acks: Vec<(Ack, Option<KafkaError>)>,
    fetches: Vec<Arc<Parked>>,
    credits: Vec<(Arc<Parked>, i64)>,
    lows: Vec<(TellLow, Result<i64, KafkaError>)>,
}

impl Wakeups {
    /// Tells everyone. Never under a partition's lock.
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

/// Waiting acknowledgements and fetches of one partition; idle it allocates nothing.
#[derive(Default)]
pub struct Waiters {
    durable: VecDeque<Ack>,
    /// Those of `committed` whose waiters are also told when the leader's own copy is durable.
    unstored: VecDeque<Ack>,
    committed: VecDeque<Ack>,
    fetches: Vec<Arc<Parked>>,
    /// Fetches of followers, which see all that is appended.
    log_end_fetches: Vec<Arc<Parked>>,
    /// Deletions of records, which all replicas are to have made.
    deletions: Vec<(i64, TellLow)>,
}

impl Waiters {
    /// Lets `ack` wait. Appends come in the order of offsets; only a repeated (duplicate) batch may lie further front.
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

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.durable.is_empty()
            && self.committed.is_empty()
            && self.fetches.is_empty()
            && self.log_end_fetches.is_empty()
            && self.deletions.is_empty()
    }

    /// Lets `tell` wait until the low watermark is at `offset`. With
    /// [`DELETIONS_MAX`] waiting, the oldest is given up: a request whose time is over does not say so here.
    pub fn wait_low(&mut self, offset: i64, tell: TellLow, wakeups: &mut Wakeups) {
        if self.deletions.len() == DELETIONS_MAX {
            let (_, oldest) = self.deletions.remove(0);
            wakeups.lows.push((oldest, Err(KafkaError::RequestTimedOut)));
        }
        self.deletions.push((offset, tell));
    }

    /// Whether anybody waits for the low watermark.
    pub fn await_low(&self) -> bool {
        !self.deletions.is_empty()
    }

    /// Tells the low watermark to those whose offset it has reached.
    pub fn low(&mut self, low_watermark: i64, wakeups: &mut Wakeups) {
        let reached = self.deletions.extract_if(.., |(offset, _)| *offset <= low_watermark);
        wakeups.lows.extend(reached.map(|(_, tell)| (tell, Ok(low_watermark))));
    }

    /// Acknowledges what the promised end now covers.
    pub fn promised(&mut self, promised_end: i64, wakeups: &mut Wakeups) {
        wakeups.stored.extend(covered(&mut self.unstored, promised_end));
        acknowledge(&mut self.durable, promised_end, None, wakeups);
    }

    /// Acknowledges what the high watermark passed; `error` tells too few in-sync replicas after the append apart.
    pub fn committed(
        &mut self,
        high_watermark: i64,
        error: Option<KafkaError>,
        wakeups: &mut Wakeups,
    ) {
        acknowledge(&mut self.committed, high_watermark, error, wakeups);
    }

    /// Credits watching fetches with `bytes` that became readable.
    pub fn readable(&self, bytes: i64, wakeups: &mut Wakeups) {
        wakeups.credits.extend(self.fetches.iter().map(|fetch| (fetch.clone(), bytes)));
    }

    /// Credits watching followers with `bytes` that were appended.
    pub fn appended(&self, bytes: i64, wakeups: &mut Wakeups) {
        let credits = self.log_end_fetches.iter().map(|fetch| (fetch.clone(), bytes));
        wakeups.credits.extend(credits);
    }

    /// Wakes every client's fetch: records that were not stable are.
    pub fn stable(&self, wakeups: &mut Wakeups) {
        wakeups.fetches.extend(self.fetches.iter().cloned());
    }

    /// Fails every acknowledgement and wakes every fetch: leadership, or the partition, is gone.
    pub fn fail(&mut self, error: KafkaError, wakeups: &mut Wakeups) {
        self.unstored.clear();
        acknowledge(&mut self.durable, i64::MAX, Some(error), wakeups);
        acknowledge(&mut self.committed, i64::MAX, Some(error), wakeups);
        wakeups.fetches.extend(self.fetches.iter().chain(&self.log_end_fetches).cloned());
        wakeups.lows.extend(self.deletions.drain(..).map(|(_, tell)| (tell, Err(error))));
    }

    /// Takes one waiter's acknowledgements out: its request timed out or its connection went away.
    pub fn forget_acks(&mut self, waiter: &Arc<dyn AckWaiter>) {
        for queue in [&mut self.durable, &mut self.unstored, &mut self.committed] {
            queue.retain(|ack| !Arc::ptr_eq(&ack.waiter, waiter));
        }
    }

    /// A fetch watches until [`Waiters::unwatch`].
    pub fn watch(&mut self, fetch: &Arc<Parked>) {
        self.fetches.push(fetch.clone());
    }

    /// A follower's fetch watches until [`Waiters::unwatch`].
    pub fn watch_log_end(&mut self, fetch: &Arc<Parked>) {
        self.log_end_fetches.push(fetch.clone());
    }

    /// Ends a watch.
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
    use crate::partition::AppendRefusal;

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
    fn forgotten_waiter_is_not_told() {
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
