//! The appends of one produce request, and the answer once the last of them is settled.

use std::sync::Arc;

use bytes::BytesMut;
use parking_lot::Mutex;
use pykafka_log::AppendOrigin;

use super::Acks;
use super::respond::Answer;
use crate::api::context::{ConnectionInfo, Context, Outcome};
use crate::kafka_error::KafkaError;
use crate::partition::purgatory::Parked;
use crate::partition::waiters::AckWaiter;
use crate::partition::{Append, AppendOutcome, AppendRefusal, Partition};

/// Gathers outcomes; wakes the request with the last one.
struct Outcomes {
    parked: Arc<Parked>,
    due: Mutex<Due>,
}

#[derive(Default)]
struct Due {
    outcomes: Vec<Option<AppendOutcome>>,
    remaining: usize,
}

impl AckWaiter for Outcomes {
    fn acknowledged(&self, slot: usize, outcome: AppendOutcome) {
        let mut due = self.due.lock();
        if due.outcomes[slot].replace(outcome).is_none() {
            due.remaining -= 1;
        }
        if due.remaining == 0 {
            self.parked.wake();
        }
    }
}

/// Where in the answer an outcome belongs.
struct Place {
    at: (usize, usize),
    appended_to: Arc<Partition>,
}

/// See the module. Dropping it takes what still waits out of the partitions.
pub(super) struct Appends {
    acks: Acks,
    outcomes: Arc<Outcomes>,
    waiter: Arc<dyn AckWaiter>,
    places: Vec<Place>,
}

impl Appends {
    /// None yet.
    pub(super) fn new(acks: Acks) -> Appends {
        let outcomes = Arc::new(Outcomes { parked: Parked::new(0), due: Mutex::default() });
        Appends { acks, waiter: outcomes.clone(), outcomes, places: Vec::new() }
    }

    /// Appends `batch`; its outcome goes to that topic and partition of the answer.
    pub(super) fn append(
        &mut self,
        at: (usize, usize),
        appended_to: Arc<Partition>,
        batch: BytesMut,
    ) {
        let slot = self.places.len();
        {
            let mut due = self.outcomes.due.lock();
            due.outcomes.push(None);
            due.remaining += 1;
        }
        let outcome = appended_to.append(Append {
            batch,
            origin: AppendOrigin::Client,
            needs_isr: self.acks == Acks::All,
            leader_epoch: -1,
            promise: self.acks.promise(),
            waiter: self.waiter.clone(),
            slot,
        });
        if let Some(outcome) = outcome {
            self.outcomes.acknowledged(slot, outcome);
        }
        self.places.push(Place { at, appended_to });
    }

    /// Answers, now or when the last outcome is known, at the latest after `timeout_ms`.
    pub(super) fn answer(
        self,
        ctx: &Arc<Context>,
        conn: &ConnectionInfo,
        timeout_ms: i32,
        answer: Answer,
    ) -> Outcome {
        if self.are_settled() {
            return self.settle(ctx, &conn.listener, answer);
        }
        let timeout_ns = match self.acks {
            // Nobody waits for an answer, and the next request only for this one to be written.
            Acks::None => u64::MAX,
            _ => u64::try_from(timeout_ms).unwrap_or(0) * 1_000_000,
        };
        let deadline_ns = ctx.clock.now_ns().saturating_add(timeout_ns);
        let parking = ctx.purgatory.park(&self.outcomes.parked, deadline_ns, 0);
        let (ctx, listener) = (ctx.clone(), conn.listener.clone());
        Outcome::Pending(Box::pin(async move {
            let _parking = parking;
            let parked = self.outcomes.parked.clone();
            while !self.are_settled() && !parked.is_expired() {
                parked.wait().await;
            }
            self.settle(&ctx, &listener, answer)
        }))
    }

    fn are_settled(&self) -> bool {
        self.outcomes.due.lock().remaining == 0
    }

    /// Puts the outcomes, and the lack of those that never came, into the answer.
    fn settle(self, ctx: &Context, listener: &Arc<str>, mut answer: Answer) -> Outcome {
        let outcomes: Vec<_> =
            self.outcomes.due.lock().outcomes.iter_mut().map(Option::take).collect();
        for (place, outcome) in self.places.iter().zip(outcomes) {
            let outcome =
                outcome.unwrap_or(Err(AppendRefusal::Partition(KafkaError::RequestTimedOut)));
            answer.settle(place.at, outcome, &place.appended_to);
        }
        match self.acks {
            Acks::None => answer.nothing(),
            _ => answer.encode(&ctx.image.load(), listener),
        }
    }
}

impl Drop for Appends {
    fn drop(&mut self) {
        if self.are_settled() {
            return;
        }
        for place in &self.places {
            place.appended_to.forget_acks(&self.waiter);
        }
    }
}
