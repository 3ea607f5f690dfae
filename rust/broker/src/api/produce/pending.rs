//! The appends of one produce request, and the response after the last of them is settled.

use std::sync::Arc;

use bytes::BytesMut;
use pykafka_forks::Mutex;
use pykafka_log::{AppendOrigin, TransactionRule};

use super::acks::Acks;
use super::respond::ProduceResults;
use crate::context::Context;
use crate::kafka_error::KafkaError;
use crate::network::outcome::Outcome;
use crate::partition::Partition;
use crate::partition::append::INFLATED_AT_ONCE_BYTES_MAX;
use crate::partition::append::outcome::AppendOutcome;
use crate::partition::append::queued::Append;
use crate::partition::purgatory::Parked;
use crate::partition::waiters::AckWaiter;
use crate::request::ConnectionInfo;

/// Collects outcomes. Wakes the request when every append is stored by the leader, and at each
/// outcome after that.
struct Outcomes {
    parked: Arc<Parked>,
    due: Mutex<Due>,
}

#[derive(Default)]
struct Due {
    slots: Vec<Slot>,
    /// Slots without an outcome.
    remaining: usize,
    /// Slots whose batch the leader has not stored yet, with the durability that `acks` promises.
    unstored: usize,
    /// True if the request no longer waits for the outcomes.
    is_gone: bool,
}

enum Slot {
    Queued,
    Stored,
    Done(AppendOutcome),
}

impl Due {
    fn queue(&mut self) {
        self.slots.push(Slot::Queued);
        self.remaining += 1;
        self.unstored += 1;
    }

    /// Advances a slot and ignores steps backwards: `stored` may be called after `acknowledged`.
    fn advance(&mut self, slot: usize, to: Slot) {
        // The request has taken its outcomes already.
        let Some(slot) = self.slots.get_mut(slot) else { return };
        match (&slot, &to) {
            (Slot::Done(_), _) | (Slot::Stored, Slot::Queued | Slot::Stored) => return,
            (Slot::Queued, _) => self.unstored -= 1,
            (Slot::Stored, Slot::Done(_)) => {}
        }
        self.remaining -= usize::from(matches!(to, Slot::Done(_)));
        *slot = to;
    }

    fn take(&mut self) -> Vec<Slot> {
        std::mem::take(&mut self.slots)
    }
}

impl Outcomes {
    fn advance(&self, slot: usize, to: Slot) {
        let mut due = self.due.lock();
        due.advance(slot, to);
        if due.unstored == 0 {
            self.parked.wake();
        }
    }
}

impl AckWaiter for Outcomes {
    fn acknowledged(&self, slot: usize, outcome: AppendOutcome) {
        self.advance(slot, Slot::Done(outcome));
    }

    fn stored(&self, slot: usize) {
        self.advance(slot, Slot::Stored);
    }

    fn is_gone(&self) -> bool {
        self.due.lock().is_gone
    }
}

/// A batch to append.
pub(super) struct Pending {
    /// Indexes of the topic and the partition in the response.
    pub(super) at: (usize, usize),
    pub(super) partition: Arc<Partition>,
    pub(super) batch: BytesMut,
}

/// The position of an outcome in the response.
struct ResponsePosition {
    at: (usize, usize),
    appended_to: Arc<Partition>,
}

/// The appends of one request. Dropping it withdraws waiting appends from their partitions.
pub(super) struct Appends {
    acks: Acks,
    connection: u64,
    outcomes: Arc<Outcomes>,
    waiter: Arc<dyn AckWaiter>,
    places: Vec<ResponsePosition>,
    /// Bytes that may still be decompressed on the current thread.
    inflatable: usize,
}

impl Appends {
    pub(super) fn new(acks: Acks, conn: &ConnectionInfo) -> Appends {
        let outcomes = Arc::new(Outcomes { parked: Parked::new(0), due: Mutex::default() });
        let (waiter, places) = (outcomes.clone(), Vec::new());
        let inflatable = INFLATED_AT_ONCE_BYTES_MAX;
        Appends { acks, connection: conn.id, outcomes, waiter, places, inflatable }
    }

    pub(super) fn append(&mut self, pending: Pending, transaction: TransactionRule) {
        let Pending { at, partition: appended_to, batch } = pending;
        let slot = self.places.len();
        self.outcomes.due.lock().queue();
        let append = Append {
            batch,
            origin: AppendOrigin::Client,
            connection: self.connection,
            transaction,
            needs_isr: self.acks == Acks::All,
            leader_epoch: None,
            promise: self.acks.promise(),
            waiter: self.waiter.clone(),
            slot,
        };
        let outcome = appended_to.append_within(append, &mut self.inflatable);
        if let Some(outcome) = outcome {
            self.outcomes.acknowledged(slot, outcome);
        }
        self.places.push(ResponsePosition { at, appended_to });
    }

    /// Responds now or after the last outcome. Replicas have `timeout_ms` from the moment when the
    /// leader has written and synced all batches: Kafka's `appendRecords` does both before its wait
    /// starts.
    pub(super) fn respond(
        self,
        ctx: &Arc<Context>,
        conn: &ConnectionInfo,
        timeout_ms: i32,
        response: ProduceResults,
    ) -> Outcome {
        if self.are_settled() {
            return self.settle(ctx, &conn.listener, response);
        }
        let timeout_ns = u64::try_from(timeout_ms).unwrap_or(0) * 1_000_000;
        let (ctx, listener) = (ctx.clone(), conn.listener.clone());
        Outcome::Pending(Box::pin(async move {
            let parked = self.outcomes.parked.clone();
            while !self.are_stored() {
                parked.wait().await;
            }
            let deadline_ns = ctx.clock.now_ns().saturating_add(timeout_ns);
            let _parking = ctx.purgatory.park(&parked, deadline_ns, 0);
            while !(self.are_settled() || parked.is_expired()) {
                parked.wait().await;
            }
            self.settle(&ctx, &listener, response)
        }))
    }

    fn are_settled(&self) -> bool {
        self.outcomes.due.lock().remaining == 0
    }

    fn are_stored(&self) -> bool {
        self.outcomes.due.lock().unstored == 0
    }

    /// Copies the outcomes into the response; appends without an outcome fail with
    /// `REQUEST_TIMED_OUT`.
    fn settle(
        self,
        ctx: &Arc<Context>,
        listener: &Arc<str>,
        mut response: ProduceResults,
    ) -> Outcome {
        let slots = self.outcomes.due.lock().take();
        for (place, slot) in self.places.iter().zip(slots) {
            let outcome = match slot {
                Slot::Done(outcome) => outcome,
                Slot::Queued | Slot::Stored => Err(KafkaError::RequestTimedOut.into()),
            };
            response.settle(place.at, outcome, &place.appended_to);
        }
        match self.acks {
            Acks::None => response.nothing(),
            _ => response.once_there_is_room(ctx, listener),
        }
    }
}

impl Drop for Appends {
    fn drop(&mut self) {
        if self.are_settled() {
            return;
        }
        self.outcomes.due.lock().is_gone = true;
        for place in &self.places {
            place.appended_to.forget_acks(&self.waiter);
        }
    }
}

/// A request whose appends have started.
pub(super) struct Produced {
    pub(super) appends: Appends,
    pub(super) response: ProduceResults,
    pub(super) timeout_ms: i32,
}

impl Produced {
    pub(super) fn respond(self, ctx: &Arc<Context>, conn: &ConnectionInfo) -> Outcome {
        self.appends.respond(ctx, conn, self.timeout_ms, self.response)
    }
}
