//! What happens by the clock: `flush.ms`, checkpoints, and files whose time has come. One task per broker.
//!
//! A partition enters the dirty list with its first unsynced append and leaves it when all is synced, so the task has
//! nothing to do for idle partitions and sleeps while nobody writes.

use std::sync::Arc;
use std::time::Duration;

use crate::api::context::Context;
use crate::partition::Partition;

/// How late a `flush.ms` may be noticed.
const DIRTY_TICK: Duration = Duration::from_millis(20);
/// Recovery points and high watermarks are checkpointed this often, which bounds recovery to as much writing.
const CHECKPOINT_TICK: Duration = Duration::from_secs(5);

/// The task; it ends when it is dropped.
pub async fn run(ctx: Arc<Context>) {
    let mut since_checkpoint = Duration::ZERO;
    loop {
        let host = ctx.partitions.host().clone();
        let tick = if host.dirty.lock().is_empty() {
            tokio::select! {
                () = tokio::time::sleep(CHECKPOINT_TICK) => CHECKPOINT_TICK,
                () = host.dirty_added.notified() => Duration::ZERO,
            }
        } else {
            tokio::time::sleep(DIRTY_TICK).await;
            DIRTY_TICK
        };
        ctx.partitions.sync_due();
        since_checkpoint += tick;
        if since_checkpoint >= CHECKPOINT_TICK {
            since_checkpoint = Duration::ZERO;
            let ctx = ctx.clone();
            // A panic in it ends that round, not the broker.
            let _ = host.workers.run(move |may_wait| ctx.partitions.checkpoint(may_wait)).await;
        }
    }
}

/// Once the broker serves: writes the first checkpoints, so that records of the start are missed when their files are
/// gone, and looks for damage in logs that nobody has opened yet.
pub async fn begin(ctx: Arc<Context>) {
    let host = ctx.partitions.host().clone();
    if host.in_memory || ctx.serving.subscribe().wait_for(|serving| *serving).await.is_err() {
        return;
    }
    let begun = host.workers.run(move |may_wait| {
        ctx.partitions.checkpoint(may_wait);
        let partitions = ctx.partitions.all();
        let is_wanted = |_: &&Arc<Partition>| !ctx.is_stopping();
        (partitions.iter().take_while(is_wanted)).for_each(|partition| partition.inspect(may_wait));
    });
    let _ = begun.await;
}
