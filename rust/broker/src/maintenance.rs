//! Periodic work: `flush.ms`, checkpoints, compactions, scans for lagging followers, and removal of
//! expired files. One task per broker.
//!
//! A partition enters the dirty list with its first unsynced append and leaves it when everything
//! is synced, so idle partitions cost nothing, and the task sleeps while nothing is written.

mod compaction;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use crate::context::Context;
use crate::partition::{Host, Partition};

/// Maximum delay of a `flush.ms`.
const DIRTY_TICK: Duration = Duration::from_millis(20);
/// Interval of the checkpoints of recovery points and high watermarks; it bounds the bytes that
/// recovery must read.
const CHECKPOINT_TICK: Duration = Duration::from_secs(5);

/// Runs the periodic work until the future is dropped.
pub async fn run(ctx: Arc<Context>) {
    let mut since_checkpoint = Duration::ZERO;
    // A second reference is a checkpoint in progress, which syncs do not wait for.
    let checkpoints = Arc::new(());
    let mut since_compaction = Duration::ZERO;
    let compactions = Arc::new(());
    let mut since_scan = Duration::ZERO;
    loop {
        let backoff = Duration::from_millis(ctx.image.load().settings.cleaner_backoff_ms);
        let waited = wait(ctx.partitions.host(), backoff).await;
        ctx.partitions.sync_due();
        since_scan += waited;
        if since_scan >= scan_interval(ctx.partitions.host()) {
            since_scan = Duration::ZERO;
            ctx.partitions.scan_followers();
        }
        since_checkpoint += waited;
        if since_checkpoint >= CHECKPOINT_TICK && Arc::strong_count(&checkpoints) == 1 {
            since_checkpoint = Duration::ZERO;
            tokio::spawn(checkpoint(ctx.clone(), checkpoints.clone()));
        }
        since_compaction += waited;
        if since_compaction >= backoff && Arc::strong_count(&compactions) == 1 {
            since_compaction = Duration::ZERO;
            compaction::begin(&ctx, compactions.clone());
        }
    }
}

/// Waits until there may be work; returns the duration.
async fn wait(host: &Host, backoff: Duration) -> Duration {
    let begun = Instant::now();
    if host.dirty.lock().is_empty() {
        let has_followers = !host.replicated.lock().is_empty();
        let scan_interval = if has_followers { scan_interval(host) } else { Duration::MAX };
        let tick = backoff.min(scan_interval).clamp(DIRTY_TICK, CHECKPOINT_TICK);
        let _ = tokio::time::timeout(tick, host.upkeep_changed.notified()).await;
    } else {
        tokio::time::sleep(DIRTY_TICK).await;
    }
    begun.elapsed()
}

/// Interval of the scans of followers: half of the maximum lag, so a lagging follower is detected
/// at most that much too late.
fn scan_interval(host: &Host) -> Duration {
    Duration::from_nanos(host.replica_lag_ns_max.load(Ordering::Relaxed) / 2).max(DIRTY_TICK)
}

/// Checkpoints all partitions, on a thread that is not used for clients' requests.
async fn checkpoint(ctx: Arc<Context>, _under_way: Arc<()>) {
    let host = ctx.partitions.host().clone();
    // A panic ends this checkpoint, not the broker.
    let _ = host.checkpointers.run(move |may_wait| ctx.partitions.checkpoint(may_wait)).await;
}

/// Runs once the broker serves. Writes the first checkpoints, so that the loss of files from before
/// the start is detected, and looks for damage in logs that are not open yet.
pub async fn begin(ctx: Arc<Context>) {
    let host = ctx.partitions.host().clone();
    if host.in_memory || ctx.network.serving.subscribe().wait_for(|serving| *serving).await.is_err()
    {
        return;
    }
    let begun = host.checkpointers.run(move |may_wait| {
        ctx.partitions.checkpoint(may_wait);
        let partitions = ctx.partitions.all();
        let is_wanted = |_: &&Arc<Partition>| !ctx.is_stopping();
        (partitions.iter().take_while(is_wanted)).for_each(|partition| partition.inspect(may_wait));
    });
    let _ = begun.await;
}

#[cfg(test)]
mod tests {
    use pykafka_forks::Mutex;
    use pykafka_log::Durability;

    use super::*;
    use crate::control_api::event::Event;
    use crate::control_api::image::delta::ImageDelta;
    use crate::testing::gate_disk::Op;
    use crate::testing::{Broker, TOPIC, batch, replicated};

    #[test]
    fn syncs_wait_for_neither_requests_nor_checkpoints() {
        let broker = Broker::on_disk(Durability::Interval).with_topic(1, &[]);
        broker.append(&batch(&["opens the log"]));
        let host = broker.ctx.partitions.host();
        let requests = Arc::new(Mutex::new(()));
        let under_way = requests.lock();
        for _ in 0..64 {
            let requests = requests.clone();
            host.workers.submit(move |_| drop(requests.lock()));
        }
        broker.gate.hold_at(Op::Write, "/data/recovery-point-offset-checkpoint.tmp");
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.unwrap();
        let upkeep = runtime.spawn(run(broker.ctx.clone()));
        let pass = |time| runtime.block_on(async move { tokio::time::sleep(time).await });
        pass(2 * CHECKPOINT_TICK);
        broker.gate.until_waiting(1); // a checkpoint
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        let log = partition.opened_log().unwrap();
        broker.append(&batch(&["a"]));
        broker.clock.advance_ms(100);
        while log.recovery_point() < 2 {
            pass(DIRTY_TICK);
            std::thread::yield_now();
        }
        upkeep.abort();
        broker.gate.open();
        drop(under_way);
    }

    #[test]
    fn followers_are_checked_at_half_the_lag_time() {
        let mut broker = Broker::in_memory().in_cluster();
        let settings = [("replica.lag.time.max.ms".to_owned(), "400".to_owned())];
        let broker_settings = Some(settings.into());
        broker.apply(ImageDelta { broker_settings, ..ImageDelta::default() });
        broker.replicate(replicated(0, &[1, 2], &[1, 2]), &[]);
        broker.clock.advance_ms(401);
        let is_told = |broker: &Broker| {
            broker.wait_idle();
            broker.events().iter().any(|event| matches!(event, Event::Replica { .. }))
        };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.unwrap();
        let upkeep = runtime.spawn(run(broker.ctx.clone()));
        let pass = |ms| {
            runtime.block_on(async move { tokio::time::sleep(Duration::from_millis(ms)).await });
        };
        pass(190);
        assert!(!is_told(&broker));
        pass(30);
        assert!(is_told(&broker));
        pass(170);
        assert!(!is_told(&broker));
        pass(30);
        assert!(is_told(&broker), "again, as it lags still");
        upkeep.abort();
    }
}
