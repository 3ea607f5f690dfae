//! Changes of a log that other nodes decide: batches of another node, truncation, and the high
//! watermark.

use std::sync::Arc;

use bytes::BytesMut;
use pykafka_log::{AppendOrigin, TransactionRule};
use pykafka_record::LeaderEpoch;

use crate::kafka_error::KafkaError;
use crate::partition::Partition;
use crate::partition::append::outcome::AppendRefusal;
use crate::partition::append::queued::{Append, Queued};
use crate::partition::guard::PartitionGuard;
use crate::partition::waiters::{AckWaiter, Promise};
use crate::partition::write_queue::queue::WriterToken;

/// Batches of a leader, and the waiter for their durability.
pub(in crate::partition) struct Fetched {
    /// Whole batches; the log appends those of epochs up to `leader_epoch`.
    pub batches: BytesMut,
    /// The epoch in which they were fetched.
    pub leader_epoch: LeaderEpoch,
    /// Notified exactly once.
    pub waiter: Arc<dyn AckWaiter>,
}

impl Partition {
    /// Appends a leader's batches unchanged, at or after the log end offset
    /// (contract/replication.md#18, #19).
    pub(in crate::partition) fn append_fetched(&self, fetched: Fetched, writer: &WriterToken) {
        let Fetched { batches, leader_epoch, waiter } = fetched;
        let append = Append {
            batch: batches,
            origin: AppendOrigin::Replication,
            connection: 0,
            transaction: TransactionRule::Vouched,
            needs_isr: false,
            leader_epoch: None,
            promise: Promise::Durable,
            waiter,
            slot: 0,
        };
        let log = match self.open_log(writer) {
            Ok(log) => log,
            Err(error) => return append.waiter.acknowledged(0, Err(error.into())),
        };
        let appended = log.append_as_follower(&append.batch, leader_epoch);
        let appended = appended.map_err(AppendRefusal::Log);
        let mut guard = self.lock();
        for (append, outcome) in guard.appended(&log, vec![(Queued::followed(append), appended)]) {
            guard.tell_after(append, outcome);
        }
    }

    /// Truncates the log to `offset`, and returns the new log end offset. Nothing may wait for the
    /// removed records.
    ///
    /// # Errors
    /// `KAFKA_STORAGE_ERROR`, `UNKNOWN_TOPIC_ID` once deleted.
    pub(in crate::partition) fn truncate(
        &self,
        offset: i64,
        writer: &WriterToken,
    ) -> Result<i64, KafkaError> {
        let log = self.open_log(writer)?;
        let truncated = self.host.directory.truncate_log(&log, offset);
        let mut guard = self.lock();
        guard.stored(truncated)?;
        let ends = guard.ends(&log);
        guard.replication.truncated(ends);
        guard.version += 1;
        Ok(ends.log_end_offset)
    }

    /// Removes all records: the log is empty and starts at `offset`, where the snapshot that
    /// replaces it ends. Durable on return. Nothing may wait for the removed records
    /// (contract/replication.md#K6).
    ///
    /// # Errors
    /// See [`Partition::truncate`].
    pub(in crate::partition) fn restart_log(
        &self,
        offset: i64,
        writer: &WriterToken,
    ) -> Result<i64, KafkaError> {
        let log = self.open_log(writer)?;
        let restarted = self.host.directory.restart_log(&log, offset);
        let mut guard = self.lock();
        guard.stored(restarted)?;
        let ends = guard.ends(&log);
        guard.replication.truncated(ends);
        guard.version += 1;
        Ok(ends.log_start_offset)
    }

    /// Applies a high watermark that another node decided, at most up to the log end offset; an
    /// older one changes nothing.
    pub(in crate::partition) fn follow_high_watermark(&self, high_watermark: i64) {
        let mut guard = self.lock();
        if let Some(log) = guard.opened() {
            guard.follow_high_watermark(&log, high_watermark);
        }
    }
}

impl PartitionGuard<'_> {
    /// Starts an epoch of the quorum, if `leader_epoch` is newer than the current one.
    pub(in crate::partition) fn raise_leader_epoch(&mut self, leader_epoch: Option<LeaderEpoch>) {
        let Some(leader_epoch) = leader_epoch else { return };
        self.replication.raise_leader_epoch(leader_epoch);
        if self.is_epoch_due() {
            self.drain_after();
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use pykafka_log::Durability;
    use pykafka_record::{BatchBuilder, BatchMut, BatchOptions, LeaderEpoch, batches};

    use crate::control_api::event::Event;
    use crate::control_api::image::delta::ImageDelta;
    use crate::control_api::image::{PartitionId, TopicId};
    use crate::partition::partition_table::command::BatchKind;
    use crate::partition::threads::may_wait::MayWait;
    use crate::testing::{Broker, led_here, topic};

    const LOG: PartitionId = ([9; 16], 0);

    fn with_log(mut broker: Broker) -> Broker {
        let (topic_id, index): (TopicId, i32) = LOG;
        let mut hidden = topic("__cluster_metadata", topic_id, 1, &[]);
        hidden.partitions[0] = led_here(index, 0, 0);
        hidden.hidden = true;
        broker.apply(ImageDelta { topics: vec![hidden], ..ImageDelta::default() });
        broker.events();
        broker
    }

    fn fetched(base_offset: i64, leader_epoch: i32) -> BytesMut {
        let (mut builder, mut batch) = (BatchBuilder::new(BatchOptions::default()), Vec::new());
        builder.append(1, None, Some(b"a"), &[]).unwrap();
        builder.build(&mut batch).unwrap();
        let mut stamped = BatchMut::new(&mut batch).unwrap();
        stamped.set_base_offset(base_offset);
        stamped.set_partition_leader_epoch(LeaderEpoch::new(leader_epoch));
        BytesMut::from(&batch[..])
    }

    fn follow(broker: &Broker, base_offset: i64, leader_epoch: i32) {
        let batch = fetched(base_offset, leader_epoch);
        broker.ctx.partitions.append_fetched(1, &LOG, LeaderEpoch::new(leader_epoch), batch);
    }

    fn lead(broker: &Broker, leader_epoch: i32) {
        let records = [(None, Some("b".into()))];
        let leader_epoch = LeaderEpoch::from_wire(leader_epoch);
        broker.ctx.partitions.append(2, &LOG, leader_epoch, &records, BatchKind::Data);
    }

    /// Token, error code and offset of each completed command.
    fn completed(broker: &Broker) -> Vec<(u64, i16, i64)> {
        broker.wait_idle();
        let completion = |event| match event {
            Event::Appended { token, error_code, offset }
            | Event::Maintained { token, error_code, offset } => Some((token, error_code, offset)),
            _ => None,
        };
        broker.events().into_iter().filter_map(completion).collect()
    }

    fn epochs(broker: &Broker) -> Vec<i32> {
        epochs_from(broker, 0)
    }

    fn epochs_from(broker: &Broker, offset: i64) -> Vec<i32> {
        let may_wait = MayWait::as_documented();
        let read = broker.ctx.partitions.read(&may_wait, &LOG, offset, 1 << 20, true);
        let epoch = |batch: pykafka_record::Batch<'_>| {
            batch.partition_leader_epoch().map_or(-1, LeaderEpoch::get)
        };
        batches(&read.unwrap()).flatten().map(epoch).collect()
    }

    #[test]
    fn fetched_batches_are_reported_after_their_sync() {
        let broker = with_log(Broker::on_disk(Durability::Os));
        follow(&broker, 0, 2);
        assert_eq!(completed(&broker), [(1, 0, 0)]);
        broker.gate.hold();
        follow(&broker, 1, 2);
        broker.gate.until_waiting(1);
        assert!(broker.events().is_empty());
        broker.gate.open();
        assert_eq!(completed(&broker), [(1, 0, 1)]);
    }

    #[test]
    fn a_node_can_lead_and_follow_alternately() {
        let broker = with_log(Broker::on_disk(Durability::Os));
        lead(&broker, 1);
        assert_eq!(completed(&broker), [(2, 0, 0)]);
        follow(&broker, 1, 4);
        assert_eq!(completed(&broker), [(1, 0, 1)]);
        lead(&broker, 5);
        assert_eq!(completed(&broker), [(2, 0, 2)]);
        assert_eq!(epochs(&broker), [1, 4, 5]);
    }

    #[test]
    fn truncated_records_are_replaced_and_survive_a_restart() {
        let broker = with_log(Broker::on_disk(Durability::Os));
        for (offset, epoch) in [(0, 1), (1, 2), (2, 3)] {
            follow(&broker, offset, epoch);
            completed(&broker);
        }
        broker.ctx.partitions.commit(&LOG, 1);
        broker.ctx.partitions.truncate(3, &LOG, 1);
        assert_eq!(completed(&broker), [(3, 0, 1)]);
        follow(&broker, 1, 4);
        assert_eq!(completed(&broker), [(1, 0, 1)]);
        assert_eq!(epochs(&broker), [1, 4]);
        let broker = with_log(broker.killed_and_restarted(Durability::Os));
        assert_eq!(epochs(&broker), [1, 4]);
    }

    #[test]
    fn a_restart_keeps_the_epochs_of_the_log() {
        let broker = with_log(Broker::on_disk(Durability::Os));
        for (offset, epoch) in [(0, 1), (1, 2)] {
            follow(&broker, offset, epoch);
            completed(&broker);
        }
        let broker = with_log(broker.stopped_and_restarted(Durability::Os));
        follow(&broker, 2, 3);
        completed(&broker);
        let log = broker.ctx.partitions.get(&LOG.0, LOG.1).unwrap().lock().opened().unwrap();
        let entries = log.epoch_entries().into_iter();
        let entries = entries.map(|entry| (entry.epoch.get(), entry.start_offset));
        assert_eq!(entries.collect::<Vec<_>>(), [(1, 0), (2, 1), (3, 2)]);
    }

    /// contract/replication.md#K6.
    #[test]
    fn a_log_replaced_by_a_snapshot_starts_at_its_end_even_after_a_kill() {
        let broker = with_log(Broker::on_disk(Durability::Os));
        for (offset, epoch) in [(0, 1), (1, 2), (2, 3)] {
            follow(&broker, offset, epoch);
            completed(&broker);
        }
        broker.ctx.partitions.commit(&LOG, 2);
        broker.ctx.partitions.restart_log(3, &LOG, 20);
        assert_eq!(completed(&broker), [(3, 0, 20)]);
        follow(&broker, 3, 4);
        assert!(completed(&broker)[0].1 != 0);
        follow(&broker, 20, 2);
        assert_eq!(completed(&broker), [(1, 0, 20)]);
        assert_eq!(epochs_from(&broker, 20), [2]);
        let broker = with_log(broker.killed_and_restarted(Durability::Os));
        assert_eq!(epochs_from(&broker, 20), [2]);
        let offsets = broker.ctx.partitions.offsets(&MayWait::as_documented(), &LOG).unwrap();
        assert_eq!((offsets.log_start_offset, offsets.log_end_offset), (20, 21));
    }

    #[test]
    fn a_batch_that_does_not_follow_the_log_is_rejected_and_changes_nothing() {
        let broker = with_log(Broker::on_disk(Durability::Os));
        lead(&broker, 1);
        lead(&broker, 1);
        completed(&broker);
        follow(&broker, 0, 2);
        let refused = completed(&broker);
        assert!(refused[0].1 != 0 && refused[0].2 == -1, "{refused:?}");
        assert_eq!(epochs(&broker), [1, 1]);
    }
}
