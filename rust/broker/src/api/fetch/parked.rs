//! A fetch that waits for more bytes (contract/kafka.md#26), without a thread and without polling.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::respond::PendingFetch;
use super::target::Found;
use crate::api::response_size;
use crate::network::memory::budget::Share;
use crate::network::outcome::Outcome;
use crate::network::response_memory::WIDENED_BYTES_MIN;
use crate::partition::Partition;
use crate::partition::purgatory::{Parked, Parking};

/// Approximate memory of a parked partition: its target, its watch and its key.
const TARGET_BYTES: usize = 256;

/// The watches of one fetch. Dropping removes them.
struct Watches {
    parked: Arc<Parked>,
    partitions: Vec<Arc<Partition>>,
    _parking: Parking,
}

impl Drop for Watches {
    fn drop(&mut self) {
        for partition in &self.partitions {
            partition.unwatch(&self.parked);
        }
    }
}

/// Waits until there are enough bytes, the deadline passes, or something else requires a response.
pub(super) fn park(fetch: PendingFetch, found: &Found) -> Outcome {
    let limits = fetch.limits;
    let parked = Parked::new(limits.bytes_min);
    let wait_ns = u64::try_from(limits.wait_ms).unwrap_or(0) * 1_000_000;
    let deadline_ns = fetch.ctx.clock.now_ns().saturating_add(wait_ns);
    let held_bytes = fetch.targets.list.len() * TARGET_BYTES;
    let Some(parking) = fetch.ctx.purgatory.park(&parked, deadline_ns, held_bytes) else {
        return fetch.encode(&found.fetched);
    };
    let mut watches = Watches { parked: parked.clone(), partitions: Vec::new(), _parking: parking };
    for (target, fetched) in fetch.targets.list.iter().zip(&found.fetched) {
        let (Ok(partition), Ok(read)) = (&target.partition, fetched) else { continue };
        if !partition.watch(&parked, limits.isolation, read) {
            // The partition changed after the read, so the first iteration reads again at once.
            parked.wake();
        }
        watches.partitions.push(partition.clone());
    }
    found.credit(&parked);
    let (ctx, is_long) = (fetch.ctx.clone(), fetch.is_long());
    let response_bytes = response_size::of_fetch(fetch.targets.list.len());
    let mut waiting = (fetch, watches);
    Outcome::Pending(Box::pin(async move {
        loop {
            parked.wait().await;
            let mut room = ctx
                .network
                .memory
                .responses
                .room(response_bytes + WIDENED_BYTES_MIN, &*ctx.clock)
                .await;
            let wanted = usize::try_from(limits.bytes_max).unwrap_or(0);
            let memory_max =
                WIDENED_BYTES_MIN + ctx.network.memory.responses.widen(&mut room, wanted);
            // Bytes that are appended from here on are counted as they arrive; bytes that the read
            // below finds are credited after it. So none is missed; some may count twice, which
            // only wakes the request early.
            parked.expect_bytes(limits.bytes_min);
            let guard = move || read_again(waiting, memory_max, room);
            let turned = if is_long {
                ctx.partitions.host().work(move |_| guard()).await
            } else {
                Some(guard())
            };
            waiting = match turned {
                Some(ControlFlow::Continue(waiting)) => waiting,
                Some(ControlFlow::Break(outcome)) => return outcome,
                None => return Outcome::failed(),
            };
        }
    }))
}

/// Returns the response if it is due; otherwise the request continues to wait.
fn read_again(
    (fetch, watches): (PendingFetch, Watches),
    memory_max: usize,
    room: Share,
) -> ControlFlow<Outcome, (PendingFetch, Watches)> {
    let (limits, parked) = (fetch.limits, &watches.parked);
    let found = fetch.read(memory_max);
    if parked.is_expired() || found.is_enough(limits.bytes_min) {
        drop(watches);
        return ControlFlow::Break(fetch.encode(&found.fetched).in_room(room));
    }
    found.credit(parked);
    ControlFlow::Continue((fetch, watches))
}
