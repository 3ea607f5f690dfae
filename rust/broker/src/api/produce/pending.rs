//! A produce request whose acknowledgements are still due.

use std::sync::Arc;

use parking_lot::Mutex;

use super::respond::Answer;
use crate::api::context::{ConnectionInfo, Context, Outcome};
use crate::kafka_error::KafkaError;
use crate::partition::purgatory::Parked;
use crate::partition::waiters::{AckWaiter, Promise};
use crate::partition::{Appended, Partition};

/// An append that waits: place in the answer (topic, partition), and where it was appended.
pub(super) type Waiting = (usize, usize, Arc<Partition>, Appended);

/// Gathers acknowledgements; wakes the request with the last one.
struct Acknowledgements {
    parked: Arc<Parked>,
    due: Mutex<Due>,
}

struct Due {
    results: Vec<Option<Result<(), KafkaError>>>,
    remaining: usize,
}

impl AckWaiter for Acknowledgements {
    fn acknowledged(&self, slot: usize, result: Result<(), KafkaError>) {
        let mut due = self.due.lock();
        if due.results[slot].replace(result).is_none() {
            due.remaining -= 1;
        }
        if due.remaining == 0 {
            self.parked.wake();
        }
    }
}

/// Takes the acknowledgements out of the partitions when the request ends, however it ends.
struct Registered {
    waiter: Arc<dyn AckWaiter>,
    partitions: Vec<Arc<Partition>>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        for partition in &self.partitions {
            partition.forget_acks(&self.waiter);
        }
    }
}

/// See the module.
pub(super) struct PendingProduce;

impl PendingProduce {
    /// Registers with every partition; answers at once if nothing is left to wait for.
    pub(super) fn begin(
        ctx: &Arc<Context>,
        conn: &ConnectionInfo,
        promise: Promise,
        timeout_ms: i32,
        mut answer: Answer,
        waiting: Vec<Waiting>,
    ) -> Outcome {
        let count = waiting.len();
        let due = Due { results: vec![None; count], remaining: count };
        let acknowledgements =
            Arc::new(Acknowledgements { parked: Parked::new(0), due: Mutex::new(due) });
        let waiter: Arc<dyn AckWaiter> = acknowledgements.clone();
        let mut registered = Registered { waiter: waiter.clone(), partitions: Vec::new() };
        let mut places = Vec::with_capacity(count);
        for (slot, (topic, place, partition, appended)) in waiting.into_iter().enumerate() {
            let end_offset = appended.info.last_offset + 1;
            match partition.wait_ack(appended.leader_epoch, end_offset, promise, &waiter, slot) {
                Some(result) => waiter.acknowledged(slot, result),
                None => registered.partitions.push(partition),
            }
            places.push((topic, place));
        }
        if acknowledgements.due.lock().remaining == 0 {
            settle(&acknowledgements, &places, &mut answer);
            return answer.encode(&ctx.image.load(), &conn.listener);
        }
        let timeout_ns = u64::try_from(timeout_ms).unwrap_or(0) * 1_000_000;
        let deadline_ns = ctx.clock.now_ns().saturating_add(timeout_ns);
        let parking = ctx.purgatory.park(&acknowledgements.parked, deadline_ns, 0);
        let (ctx, listener) = (ctx.clone(), conn.listener.clone());
        Outcome::Pending(Box::pin(async move {
            let _parking = parking;
            let parked = &acknowledgements.parked;
            while acknowledgements.due.lock().remaining > 0 && !parked.is_expired() {
                parked.wait().await;
            }
            drop(registered);
            settle(&acknowledgements, &places, &mut answer);
            answer.encode(&ctx.image.load(), &listener)
        }))
    }
}

/// Puts the errors of acknowledgements, and of those that never came, into the answer.
fn settle(acknowledgements: &Acknowledgements, places: &[(usize, usize)], answer: &mut Answer) {
    let due = acknowledgements.due.lock();
    for ((topic, partition), result) in places.iter().zip(&due.results) {
        match result {
            Some(Ok(())) => {}
            Some(Err(error)) => answer.fail(*topic, *partition, *error),
            None => answer.fail(*topic, *partition, KafkaError::RequestTimedOut),
        }
    }
}
