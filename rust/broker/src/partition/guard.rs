//! A critical section of a partition, and the actions that must follow it.
//!
//! A [`PartitionGuard`] holds the partition's mutex, and collects the waiters to notify and the
//! sync to run after its release. Dropping it does all of this in order: if the log has failed, all
//! waiters fail; the mutex is released; the sync that was started is handed over; waiters are
//! notified; the queue is drained. So no path out of a critical section, such as an early return,
//! can forget a waiter.

pub(super) mod guarded;

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pykafka_forks::MutexGuard;
use pykafka_log::{Log, StorageError};
use pykafka_record::{Cancellation, LeaderEpoch};
use tokio::sync::oneshot;

use super::replication::Replication;
use super::replication::follower::Follower;
use super::replication::{LogEnds, Role, View};
use super::threads::background::Urgency;
use super::threads::catch_panic::contained;
use super::waiters::{Ack, Promise, TellLow, Wakeups};
use super::write_queue::queue::Command;
use super::{Inner, Partition, PartitionOffsets, TARGET};
use crate::control_api::event::faults::{Faults, LogFault};
use crate::control_api::event::{DiskStateKind, Event};
use crate::control_api::log_ring::Level;
use crate::kafka_error::KafkaError;
use crate::partition::append::outcome::AppendOutcome;
use crate::partition::append::queued::Append;
use crate::partition::log::open_log::log_slot::LogSlot;
use crate::partition::log::sync::round::Begun;

/// A critical section. The fields are dropped in this order: the mutex is released before waiters
/// are notified.
pub(super) struct PartitionGuard<'a> {
    inner: MutexGuard<'a, Inner>,
    after: After<'a>,
}

/// Actions after the release of the mutex.
struct After<'a> {
    partition: &'a Partition,
    wakeups: Wakeups,
    told: Vec<(Append, AppendOutcome)>,
    begun: Option<Begun>,
    drains: bool,
    refused: Vec<(Command<Partition>, KafkaError)>,
    /// Dropping these notifies the requests that wait for the log to open.
    openers: Vec<oneshot::Sender<()>>,
}

impl Partition {
    /// Starts a critical section.
    pub(super) fn lock(&self) -> PartitionGuard<'_> {
        let after = After {
            partition: self,
            wakeups: Wakeups::default(),
            told: Vec::new(),
            begun: None,
            drains: false,
            refused: Vec::new(),
            openers: Vec::new(),
        };
        PartitionGuard { inner: self.inner.lock(), after }
    }

    /// Returns a guard and the log if this broker is the leader in `current_leader_epoch` (`None`:
    /// in any epoch).
    pub(super) fn lock_as_leader(
        &self,
        current_leader_epoch: Option<LeaderEpoch>,
    ) -> Result<(PartitionGuard<'_>, Arc<Log>), KafkaError> {
        let guard = self.lock();
        guard.check_leader(current_leader_epoch)?;
        guard.with_log()
    }

    /// Checks whether the log still has a batch that cannot be read. Does not need the writer
    /// token: it only reads a segment, and a concurrent read may report a later segment.
    fn check_unreadable(&self) {
        let (Some(log), Some(partition)) = (self.opened_log(), self.me.upgrade()) else { return };
        let is_over = Cancellation::when(move || partition.opened_log().is_none());
        let checked = self.host.directory.check_unreadable(&log, &is_over);
        let mut guard = self.lock();
        let is_unreadable = self.host.directory.is_unreadable(&self.topic, self.index);
        if guard.stored(checked).is_ok() && !is_unreadable {
            guard.change_faults(|faults| faults.end(LogFault::Unreadable));
        }
    }
}

impl Deref for PartitionGuard<'_> {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl DerefMut for PartitionGuard<'_> {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.inner
    }
}

impl Drop for PartitionGuard<'_> {
    fn drop(&mut self) {
        if matches!(self.inner.log, LogSlot::Failed) {
            self.fail_waiters(KafkaError::KafkaStorageError);
        }
    }
}

impl Drop for After<'_> {
    fn drop(&mut self) {
        if let Some(begun) = self.begun.take() {
            self.partition.run_sync(begun);
        }
        std::mem::take(&mut self.wakeups).tell();
        for (append, outcome) in self.told.drain(..) {
            contained(|| append.waiter.acknowledged(append.slot, outcome));
        }
        for (command, error) in self.refused.drain(..) {
            contained(|| command(self.partition, Err(error)));
        }
        if self.drains {
            self.partition.begin_drain();
        }
    }
}

impl<'a> PartitionGuard<'a> {
    /// The locked partition.
    pub(super) fn partition(&self) -> &'a Partition {
        self.after.partition
    }

    /// Runs the sync after the release.
    pub(super) fn sync_after(&mut self, begun: Begun) {
        debug_assert!(self.after.begun.is_none(), "one round at a time");
        self.after.begun = Some(begun);
    }

    /// Removes the sync that was started, so that the caller runs it.
    pub(super) fn take_begun(&mut self) -> Option<Begun> {
        self.after.begun.take()
    }

    /// Drains the queue after the release.
    pub(super) fn begin_drain(&mut self) {
        self.after.drains = true;
    }

    /// Makes `ack` wait for its promise.
    pub(super) fn wait_ack(&mut self, log: &Log, promise: Promise, ack: Ack) {
        let promised_end = self.ends(log).promised_end_offset;
        self.inner.waiters.wait_ack(promise, ack, promised_end, &mut self.after.wakeups);
    }

    /// Reports the outcome of an append after the release.
    pub(super) fn tell_after(&mut self, append: Append, outcome: AppendOutcome) {
        self.after.told.push((append, outcome));
    }

    /// Fails all queued appends and all acknowledgements, and wakes all fetches.
    pub(super) fn fail_waiters(&mut self, error: KafkaError) {
        for append in self.inner.queue.refuse_appends() {
            self.after.partition.note_refused(&append, error);
            self.after.told.push((append, Err(error.into())));
        }
        self.inner.waiters.fail(error, &mut self.after.wakeups);
    }

    /// Fails all work that waits for the writer token.
    pub(super) fn refuse_work(&mut self, error: KafkaError) {
        let commands = self.inner.queue.take_commands();
        self.after.refused.extend(commands.into_iter().map(|command| (command, error)));
        self.after.openers = self.inner.queue.take_openers();
    }

    /// Fails the acknowledgements that wait for the high watermark.
    pub(super) fn fail_uncommitted(&mut self, error: KafkaError) {
        self.inner.waiters.committed(i64::MAX, Some(error), &mut self.after.wakeups);
    }

    /// True if an acknowledgement requires a finished sync.
    pub(super) fn syncs_every_append(&self) -> bool {
        let partition = self.partition();
        let asks = partition.hidden || self.inner.config.syncs_every_append();
        !partition.host.in_memory && asks
    }

    pub(super) fn ends(&self, log: &Log) -> LogEnds {
        let offsets = log.offsets();
        let promised_end_offset = if self.syncs_every_append() && !log.is_read_only() {
            offsets.recovery_point
        } else {
            offsets.log_end_offset
        };
        LogEnds {
            log_start_offset: offsets.log_start_offset,
            log_end_offset: offsets.log_end_offset,
            promised_end_offset,
        }
    }

    /// The offsets that clients see.
    pub(super) fn offsets(&self, log: &Log) -> PartitionOffsets {
        let high_watermark = self.inner.replication.high_watermark();
        let offsets = log.offsets();
        PartitionOffsets {
            log_start_offset: offsets.log_start_offset,
            high_watermark,
            last_stable_offset: (offsets.first_unstable_offset)
                .map_or(high_watermark, |unstable| unstable.min(high_watermark)),
            log_end_offset: offsets.log_end_offset,
            leader_epoch: self.inner.replication.assignment().leader_epoch,
        }
    }

    /// Recomputes the state that depends on the log ends of leader and followers, and collects the
    /// waiters to wake.
    pub(super) fn progress(&mut self, log: &Log) -> LogEnds {
        let ends = self.ends(log);
        let moved = self.advance_high_watermark(ends);
        self.settle_ends(log, ends, moved);
        self.note_low_watermark(ends.log_start_offset);
        ends
    }

    /// Calls `tell` when the log start offset of every live replica is at least `offset`, or when
    /// this broker loses leadership.
    pub(super) fn when_low(&mut self, log: &Log, offset: i64, tell: TellLow) {
        self.inner.waiters.wait_low(offset, tell, &mut self.after.wakeups);
        if let Err(error) = self.check_leader(None) {
            self.fail_waiters(error);
        }
        self.note_low_watermark(log.offsets().log_start_offset);
    }

    fn note_low_watermark(&mut self, log_start_offset: i64) {
        if self.inner.waiters.await_low() {
            let live = self.partition().host.eligible.load();
            let low = self.inner.replication.low_watermark(log_start_offset, &live);
            self.inner.waiters.low(low, &mut self.after.wakeups);
        }
    }

    /// Sets the high watermark to a value from elsewhere, and collects the waiters to wake.
    pub(super) fn follow_high_watermark(&mut self, log: &Log, high_watermark: i64) {
        let ends = self.ends(log);
        let moved = self.inner.replication.follow_high_watermark(high_watermark, ends);
        self.settle_ends(log, ends, moved);
    }

    /// Counts appended bytes: followers may read them now, clients once they are committed.
    pub(super) fn credit_appended(&mut self, bytes: i64) {
        self.inner.uncredited_bytes += bytes;
        self.inner.waiters.appended(bytes, &mut self.after.wakeups);
    }

    fn settle_ends(&mut self, log: &Log, ends: LogEnds, moved: bool) {
        if moved {
            log.on_high_watermark_updated(self.inner.replication.high_watermark());
        }
        self.note_last_stable_offset(log);
        let (inner, wakeups) = (&mut *self.inner, &mut self.after.wakeups);
        inner.waiters.promised(ends.promised_end_offset, wakeups);
        if moved {
            let high_watermark = inner.replication.high_watermark();
            inner.waiters.committed(high_watermark, None, wakeups);
            // Records from other leaders are not counted in bytes; they have at least one byte.
            inner.waiters.readable(inner.uncredited_bytes.max(1), wakeups);
            if high_watermark == ends.log_end_offset {
                inner.uncredited_bytes = 0;
            }
            inner.version += 1;
        }
    }

    /// Wakes the fetches if a transaction has ended: its records were not counted as readable bytes
    /// when they were appended.
    pub(super) fn note_last_stable_offset(&mut self, log: &Log) {
        let offsets = self.offsets(log);
        let was_held_back = std::mem::replace(
            &mut self.inner.unstable_from,
            (offsets.last_stable_offset < offsets.high_watermark)
                .then_some(offsets.last_stable_offset),
        );
        if was_held_back.is_some_and(|held_back| held_back < offsets.last_stable_offset) {
            let (inner, wakeups) = (&mut *self.inner, &mut self.after.wakeups);
            inner.waiters.stable(wakeups);
            inner.version += 1;
        }
    }

    fn advance_high_watermark(&mut self, ends: LogEnds) -> bool {
        let host = &self.partition().host;
        let view = View {
            log_end_offset: ends.log_end_offset,
            now_ns: host.clock.now_ns(),
            lag_ns_max: host.replica_lag_ns_max.load(Ordering::Relaxed),
            eligible: &host.eligible.load(),
        };
        let catching_up = |follower: &Follower| view.is_joining(follower);
        let min_isr = self.inner.config.min_insync_replicas;
        self.inner.replication.advance_high_watermark(ends, min_isr, &catching_up)
    }

    /// Checks that this broker is the leader in `leader_epoch` (`None`: in any epoch) and serves
    /// the partition.
    pub(super) fn check_leader(&self, leader_epoch: Option<LeaderEpoch>) -> Result<(), KafkaError> {
        self.check_served(|replication| replication.check_leader(leader_epoch))
    }

    /// Checks that this broker is the leader or a follower in `leader_epoch`, and serves the
    /// partition.
    pub(super) fn check_replica(
        &self,
        leader_epoch: Option<LeaderEpoch>,
    ) -> Result<(), KafkaError> {
        self.check_served(|replication| replication.check_replica(leader_epoch))
    }

    fn check_served(
        &self,
        check: impl FnOnce(&Replication) -> Result<(), KafkaError>,
    ) -> Result<(), KafkaError> {
        if let LogSlot::Left(departure) = self.inner.log {
            return Err(departure.error());
        }
        check(&self.inner.replication)?;
        match self.inner.log {
            LogSlot::Failed => Err(KafkaError::KafkaStorageError),
            _ => Ok(()),
        }
    }

    /// Returns the guard and the log, and records the use of the log.
    pub(super) fn with_log(mut self) -> Result<(Self, Arc<Log>), KafkaError> {
        let Some(log) = self.opened() else { return Err(self.unopened()) };
        self.touch();
        Ok((self, log))
    }

    /// The log if it is open.
    pub(super) fn opened(&self) -> Option<Arc<Log>> {
        match &self.inner.log {
            LogSlot::Open(log) => Some(log.clone()),
            LogSlot::Unopened | LogSlot::Failed | LogSlot::Left(_) => None,
        }
    }

    /// The error of requests that need a log that is not open. They have waited for the open, so it
    /// failed, or the partition was created in the meantime under the name of a deleted one.
    pub(super) fn unopened(&self) -> KafkaError {
        if self.inner.is_opening_refused {
            KafkaError::KafkaStorageError
        } else {
            KafkaError::NotLeaderOrFollower
        }
    }

    /// Converts a storage error; an I/O error takes the partition offline.
    pub(super) fn stored<T>(&mut self, result: Result<T, StorageError>) -> Result<T, KafkaError> {
        result.map_err(|error| self.storage_failed(&error))
    }

    /// The error for clients after an error of the log; an I/O error takes the partition offline.
    /// An error of a partition that was deleted or moved says nothing about the disk, because its
    /// log is closed and its files are being removed.
    pub(super) fn storage_failed(&mut self, error: &StorageError) -> KafkaError {
        if let LogSlot::Left(departure) = self.inner.log {
            return departure.error();
        }
        match error {
            StorageError::NoSpace { .. } => {
                // Reported once, not for each refused append.
                if !self.partition().host.is_disk_full.swap(true, Ordering::Relaxed) {
                    self.report_disk(DiskStateKind::Full, error.to_string());
                }
                KafkaError::KafkaStorageError
            }
            // After `Exhausted` the file is intact, and the client retries.
            StorageError::Exhausted { .. } | StorageError::Malformed { .. } => {
                let Partition { topic, index, .. } = self.partition();
                let text = || format!("{topic}-{index}: {error}");
                self.partition().host.log_ring.log(Level::Warning, TARGET, text);
                if let StorageError::Malformed { path, .. } = error {
                    self.found_unreadable(path, error.to_string());
                }
                KafkaError::KafkaStorageError
            }
            StorageError::RecordTooLarge { .. } => KafkaError::InvalidRecord,
            StorageError::Damaged { .. }
            | StorageError::NegativeOffset { .. }
            | StorageError::OffsetOutOfRange { .. }
            | StorageError::ReadOnly
            | StorageError::Closed => KafkaError::KafkaStorageError,
            StorageError::Io { .. } | StorageError::Failed { .. } => self.fail(&error.to_string()),
        }
    }

    /// Reports the unreadable batch in `file`, and requests a check of the whole log before this
    /// replica follows.
    fn found_unreadable(&mut self, file: &Path, reason: String) {
        if let Some(log) = self.opened() {
            self.partition().host.directory.note_unreadable(&log, file);
        }
        self.change_faults(|faults| faults.begin(LogFault::Unreadable, reason));
        self.inner.suspect_in = Some(self.inner.replication.assignment().leader_epoch);
        if self.inner.replication.role() == Role::Follower {
            self.partition().host.doubts.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Schedules a check of a batch that could not be read: it may have been deleted or truncated.
    pub(super) fn check_unreadable(&self) {
        let Partition { me, topic, index, host, .. } = self.partition();
        if host.directory.is_unreadable(topic, *index)
            && let Some(partition) = me.upgrade()
        {
            host.background.push(Urgency::Background, move |_| partition.check_unreadable());
        }
    }

    /// Takes the partition offline permanently, unless it was deleted or moved; the end of the
    /// critical section fails all waiting requests.
    pub(super) fn fail(&mut self, reason: &str) -> KafkaError {
        if let LogSlot::Left(departure) = self.inner.log {
            return departure.error();
        }
        if !matches!(self.inner.log, LogSlot::Failed) {
            self.inner.log = LogSlot::Failed;
            self.inner.version += 1;
            self.change_faults(|faults| faults.begin(LogFault::Offline, reason.to_owned()));
            self.report_disk(DiskStateKind::Failed, reason.to_owned());
        }
        KafkaError::KafkaStorageError
    }

    /// Reports the faults of the log if `change` changes them. A deleted or moved log has none.
    pub(super) fn change_faults(&mut self, change: impl FnOnce(&mut Faults)) {
        let mut faults = self.inner.faults.clone();
        if !matches!(self.inner.log, LogSlot::Left(_)) {
            change(&mut faults);
        }
        if faults == self.inner.faults {
            return;
        }
        self.inner.faults.clone_from(&faults);
        let Partition { topic_id, index, host, .. } = self.partition();
        host.events.push(Event::PartitionState { topic_id: *topic_id, partition: *index, faults });
    }

    fn report_disk(&self, state: DiskStateKind, reason: String) {
        self.partition().host.events.push(Event::DiskState { state, reason });
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use pykafka_log::{Durability, OpenMode};

    use crate::control_api::event::faults::LogFault;
    use crate::control_api::image::delta::ImageDelta;
    use crate::kafka_error::KafkaError;
    use crate::network::outcome::Outcome;
    use crate::partition::Partition;
    use crate::partition::log::lookup::{LookUp, OffsetQuery};
    use crate::partition::log::read::{Isolation, ReadRequest};
    use crate::testing::gate_disk::Op;
    use crate::testing::{Broker, TOPIC, batch, led_here, pending, poll, replied, topic};

    /// A produce request waits for a replica while `look` reads from a disk that fails.
    fn waiting_produce_fails_with(look: impl FnOnce(&Partition) -> KafkaError) {
        let mut broker = Broker::on_disk(Durability::Os).with_topic(1, &[]);
        assert_eq!(broker.append(&batch(&["a"])), 0);
        let mut replicated = topic("t", TOPIC, 1, &[]);
        replicated.partitions[0] = led_here(0, 0, 1);
        replicated.partitions[0].replicas = vec![1, 2];
        replicated.partitions[0].isr = vec![1, 2];
        broker.apply(ImageDelta { topics: vec![replicated], ..ImageDelta::default() });
        let mut waiting = pending(broker.produce(9, -1, &batch(&["b"])));
        assert!(poll(&mut waiting).is_none());
        broker.gate.fail_at(Op::Read, "/data/t-0");
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        assert_eq!(look(&partition), KafkaError::KafkaStorageError);
        let response = replied(Outcome::Pending(waiting));
        let response = pykafka_wire::produce::Response::decode(9, &response).unwrap();
        let told = response.responses[0].partitions[0].error_code;
        assert_eq!(told, KafkaError::KafkaStorageError.code());
    }

    fn read_from(fetch_offset: i64) -> ReadRequest<'static> {
        ReadRequest {
            fetch_offset,
            bytes_max: 1 << 20,
            at_least_one: true,
            current_leader_epoch: None,
            last_fetched_epoch: None,
            isolation: Isolation::ReadUncommitted,
            any_replica: false,
            nearby: &[],
        }
    }

    /// Kafka responds to such reads with an error, but none of its metrics changes.
    #[test]
    fn a_read_that_finds_no_batch_reports_the_partition() {
        let broker = Broker::on_disk(Durability::Os).with_topic(1, &[]);
        assert_eq!(broker.append(&batch(&["a"])), 0);
        broker.events();
        damage_first_batch(&broker, 0);
        assert_unreadable(&broker, 0);
        assert_eq!(broker.faults(), [vec![LogFault::Unreadable]]);
    }

    #[test]
    fn a_check_of_one_segment_does_not_end_the_fault_of_a_later_one() {
        let broker = Broker::on_disk(Durability::Os);
        // With an index entry for each batch, the check starts after the first one.
        let broker = broker.with_topic(1, &[("index.interval.bytes", "0")]);
        broker.append(&batch(&["a"]));
        broker.append(&batch(&["b"]));
        broker.ctx.partitions.get(&TOPIC, 0).unwrap().opened_log().unwrap().roll().unwrap();
        assert_eq!(broker.append(&batch(&["c"])), 2);
        let first_segment = damage_first_batch(&broker, 0);
        damage_first_batch(&broker, 2);
        broker.events();
        assert_unreadable(&broker, 0);
        broker.gate.hold_at(Op::Read, first_segment);
        broker.ctx.partitions.delete_before(0, &(TOPIC, 0), 1);
        broker.gate.until_waiting(1);
        assert_unreadable(&broker, 2);
        broker.gate.open();
        broker.wait_idle();
        assert_eq!(broker.faults(), [vec![LogFault::Unreadable]]);
    }

    /// Overwrites the size of the first batch of a segment of `t`-0; returns the segment's file.
    fn damage_first_batch(broker: &Broker, base_offset: i64) -> PathBuf {
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        let path = partition.opened_log().unwrap().dir().join(format!("{base_offset:020}.log"));
        let disk = broker.ctx.partitions.host().directory.disk().clone();
        disk.open(&path, OpenMode::Write).unwrap().write_at(&[0x55; 4], 8).unwrap();
        path
    }

    fn assert_unreadable(broker: &Broker, offset: i64) {
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        assert_eq!(partition.read(&read_from(offset)).unwrap_err(), KafkaError::KafkaStorageError);
    }

    #[test]
    fn a_read_that_fails_the_partition_fails_its_waiting_produces() {
        waiting_produce_fails_with(|partition| partition.read(&read_from(0)).unwrap_err());
    }

    #[test]
    fn a_lookup_by_time_that_fails_the_partition_fails_its_waiting_produces() {
        waiting_produce_fails_with(|partition| {
            let query = OffsetQuery::Timestamp(0);
            let isolation = Isolation::ReadUncommitted;
            partition.find_offset(query, LookUp::Small, isolation, None).unwrap_err()
        });
    }
}
