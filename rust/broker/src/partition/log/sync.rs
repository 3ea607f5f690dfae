//! Syncs of a partition's log. A rolled segment is synced in the background, as in Kafka, so that a
//! stop, and recovery after a crash, only have to process the active segment.
//!
//! A log has one sync in flight, for all requests ([`Log::flush`]); at most one thread syncs a
//! partition: one of the sync threads, or the thread of the write pool that appended. Appends that
//! arrive in the meantime are all covered by the next round. A failed sync is final: the log
//! refuses everything from then on, and all waiters are notified. Rounds are started under the
//! partition's mutex and handed over after its release.
//!
//! Producers that were just acknowledged send their next batches at once, and a round that starts
//! with the first of these would leave the others to the next round. So if a sync takes long and
//! the last one was shared, a round pauses for an eighth of a sync before it starts. The batches of
//! a single producer never wait for this.

pub(in crate::partition) mod round;

use std::mem;
use std::sync::Arc;
use std::thread;

use pykafka_log::Log;

use self::round::Begun;
use crate::partition::Partition;
use crate::partition::guard::PartitionGuard;
use crate::partition::threads::may_wait::MayWait;

impl PartitionGuard<'_> {
    /// Starts or schedules the sync that the topic's `flush.messages` and `flush.ms` require after
    /// an append.
    pub(in crate::partition) fn sync_after_append(&mut self, log: &Arc<Log>) {
        if self.partition().host.in_memory {
            return;
        }
        self.sync.appends += 1;
        self.sync_if_asked(log);
    }

    fn sync_if_asked(&mut self, log: &Arc<Log>) {
        let flush_messages = self.config.flush_messages;
        if self.syncs_every_append()
            || (flush_messages != i64::MAX && unsynced_count(log) >= flush_messages)
            || log.has_unsynced_sealed_segment()
        {
            return self.begin_sync(log);
        }
        if self.config.flush_ms != i64::MAX {
            self.list_as_dirty();
        }
    }

    fn list_as_dirty(&mut self) {
        let partition = self.partition();
        if !std::mem::replace(&mut self.sync.listed_as_dirty, true) {
            partition.host.dirty.lock().extend(partition.me.upgrade());
            partition.host.upkeep_changed.notify_one();
        }
    }

    fn begin_sync(&mut self, log: &Arc<Log>) {
        if self.sync.since_ns.is_none() {
            self.sync.since_ns = Some(self.partition().host.clock.now_ns());
            self.sync_after(Begun(log.clone()));
        }
    }
}

impl Partition {
    /// Starts a sync if `flush.ms` has passed since the oldest unsynced append; returns false once
    /// everything is synced.
    pub fn sync_if_due(&self, now_ms: i64) -> bool {
        let mut guard = self.lock();
        let Some(log) = guard.opened() else {
            guard.sync.listed_as_dirty = false;
            return false;
        };
        if log.sync_due(now_ms) {
            guard.begin_sync(&log);
        }
        let is_dirty = log.unsynced_end().is_some() && guard.opened().is_some();
        guard.sync.listed_as_dirty = is_dirty;
        is_dirty
    }

    /// Longest current wait of a client for the disk.
    pub(crate) fn stalled_ns(&self) -> u64 {
        let guard = self.lock();
        let synced = guard.sync.since_ns.filter(|_| guard.syncs_every_append());
        let since_ns = guard.queue.waits_since_ns().into_iter().chain(synced).min();
        since_ns.map_or(0, |since_ns| self.host.clock.now_ns().saturating_sub(since_ns))
    }

    /// Passes a round to the threads that wait for disks.
    pub(in crate::partition) fn run_sync(&self, begun: Begun) {
        if let Some(partition) = self.me.upgrade() {
            self.host.syncer.submit(move |may_wait| partition.sync(may_wait, &begun));
        }
    }

    /// Runs a round, on a thread that may wait for the disk.
    pub(in crate::partition) fn sync(&self, _: &MayWait, Begun(log): &Begun) {
        let clock = &self.host.clock;
        let pause = self.lock().sync.pause_at(clock.now_ns());
        if !pause.is_zero() {
            thread::sleep(pause);
        }
        let appends = mem::take(&mut self.lock().sync.appends);
        let begun_ns = clock.now_ns();
        let synced = log.flush();
        let mut guard = self.lock();
        guard.sync.ended(appends, begun_ns, clock.now_ns());
        // The log was closed or deleted during the sync; there is nothing to do.
        if guard.opened().is_none() {
            return;
        }
        if let Err(error) = synced {
            guard.storage_failed(&error);
            if error.is_refusal() {
                // Waiters are notified after a later, successful round.
                guard.list_as_dirty();
            }
            return;
        }
        if log.unsynced_end().is_some() {
            guard.sync_if_asked(log);
        }
        guard.progress(log);
    }
}

fn unsynced_count(log: &Log) -> i64 {
    let offsets = log.offsets();
    offsets.log_end_offset - offsets.recovery_point
}

#[cfg(test)]
mod tests {
    use pykafka_log::Durability;

    use crate::testing::{Broker, TOPIC, batch};

    #[test]
    fn a_rolled_segment_is_synced_without_a_request() {
        let broker = Broker::on_disk(Durability::Os);
        let broker = broker.with_topic(1, &[("internal.segment.bytes", "100")]);
        broker.gate.hold();
        assert_eq!(broker.append(&batch(&["a"])), 0);
        let partitions = &broker.ctx.partitions;
        let log = partitions.get(&TOPIC, 0).and_then(|partition| partition.opened_log()).unwrap();
        assert!(!log.has_unsynced_sealed_segment());
        assert_eq!(broker.append(&batch(&["b"])), 1);
        broker.gate.until_waiting(1);
        assert_eq!(log.recovery_point(), 0);
        broker.gate.open();
        broker.wait_idle();
        assert_eq!(log.recovery_point(), 2);
        assert_eq!(broker.append(&batch(&["c"])), 2);
        assert!(!log.has_unsynced_sealed_segment(), "all of it was synced while it was active");
        assert_eq!(broker.append(&batch(&["d"])), 3);
        broker.wait_idle();
        assert_eq!(log.recovery_point(), 4);
    }
}
