//! Group commit: the sync in flight defines the next one. A segment that was rolled is synced without being asked for, as
//! Kafka does, so that a stop, and recovery after a crash, have no more to do than the active one.
//!
//! Appends that arrive while a sync runs are covered by the one after it, however many they are; there is no timer.
//! A failed sync is final: the log refuses everything from then on, and everyone who waits is told. Rounds are begun
//! under the partition's mutex and run on the broker's [`pykafka_log::Syncer`], handed over after its release.

use std::sync::Arc;

use pykafka_log::{Log, SyncJob};

use super::waiters::Wakeups;
use super::{Inner, LogSlot, Partition};

/// Whether a sync runs, and whether another must follow it.
#[derive(Debug, Default)]
pub(super) struct SyncRound {
    in_flight: bool,
    again: bool,
    listed_as_dirty: bool,
}

/// A round that was begun; it must be handed to [`Partition::run_sync`].
#[must_use]
pub(super) struct Begun {
    log: Arc<Log>,
    job: SyncJob,
}

impl Partition {
    /// Begins, or lists for later, what the topic's `flush.messages` and `flush.ms` ask for after an append.
    pub(super) fn sync_after_append(
        self: &Arc<Self>,
        inner: &mut Inner,
        log: &Arc<Log>,
    ) -> Option<Begun> {
        if self.host.in_memory {
            return None;
        }
        let flush_messages = inner.config.flush_messages;
        if self.syncs_every_append(inner)
            || (flush_messages != i64::MAX && unsynced_count(log) >= flush_messages)
            || log.has_unsynced_sealed_segment()
        {
            return self.begin_sync(inner, log);
        }
        if inner.config.flush_ms != i64::MAX && !inner.sync.listed_as_dirty {
            inner.sync.listed_as_dirty = true;
            self.host.dirty.lock().push(self.clone());
            self.host.dirty_added.notify_one();
        }
        None
    }

    /// Syncs if `flush.ms` has passed since the oldest unsynced append; `false` once nothing is left to sync.
    pub fn sync_if_due(self: &Arc<Self>, now_ms: i64) -> bool {
        let mut wakeups = Wakeups::default();
        let mut inner = self.inner.lock();
        let LogSlot::Open(log) = &inner.log else {
            inner.sync.listed_as_dirty = false;
            return false;
        };
        let log = log.clone();
        let begun = if log.sync_due(now_ms) { self.begin_sync(&mut inner, &log) } else { None };
        let is_dirty = log.unsynced_end().is_some() && matches!(inner.log, LogSlot::Open(_));
        inner.sync.listed_as_dirty = is_dirty;
        Self::fail_waiters(&mut inner, &mut wakeups);
        drop(inner);
        wakeups.tell();
        self.run_sync(begun);
        is_dirty
    }

    fn begin_sync(&self, inner: &mut Inner, log: &Arc<Log>) -> Option<Begun> {
        if inner.sync.in_flight {
            inner.sync.again = true;
            return None;
        }
        match log.prepare_sync() {
            Ok(job) => {
                let begun = job.map(|job| Begun { log: log.clone(), job });
                inner.sync.in_flight = begun.is_some();
                begun
            }
            Err(error) => {
                self.storage_failed(inner, &error);
                None
            }
        }
    }

    /// Hands a round to the threads that wait for disks. Not under the partition's mutex.
    pub(super) fn run_sync(self: &Arc<Self>, begun: Option<Begun>) {
        let Some(Begun { log, job }) = begun else { return };
        let partition = self.clone();
        self.host.syncer.submit(move || {
            let result = job.run(&**partition.host.directory.disk());
            partition.sync_done(&log, &job, result);
        });
    }

    fn sync_done(self: &Arc<Self>, log: &Arc<Log>, job: &SyncJob, result: std::io::Result<()>) {
        let mut wakeups = Wakeups::default();
        let mut begun = None;
        let mut inner = self.inner.lock();
        inner.sync.in_flight = false;
        let completed = log.complete_sync(job, result);
        // A log that was closed or deleted meanwhile is nobody's any more.
        if matches!(inner.log, LogSlot::Open(_)) {
            if let Err(error) = completed {
                self.fail(&mut inner, &error.to_string());
            } else {
                if std::mem::take(&mut inner.sync.again) {
                    begun = self.begin_sync(&mut inner, log);
                }
                self.progress(&mut inner, log, &mut wakeups);
            }
        }
        Self::fail_waiters(&mut inner, &mut wakeups);
        drop(inner);
        wakeups.tell();
        self.run_sync(begun);
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
    fn a_rolled_segment_is_synced_although_nobody_asks_and_nobody_waits() {
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
        partitions.host().syncer.wait_idle();
        assert_eq!(log.recovery_point(), 2);
        assert_eq!(broker.append(&batch(&["c"])), 2);
        assert!(!log.has_unsynced_sealed_segment(), "all of it was synced while it was active");
        assert_eq!(broker.append(&batch(&["d"])), 3);
        partitions.host().syncer.wait_idle();
        assert_eq!(log.recovery_point(), 4);
    }
}
