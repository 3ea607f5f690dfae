//! Log start offsets that are not in the checkpoint yet.
//!
//! A log start offset moves first and is recorded later, by the background queue, after the
//! commands that wait there. One checkpoint is written at a time, for all log starts that have
//! moved by then: its size, which grows with the number of partitions of the broker, does not
//! multiply by the partitions of a request.

pub(super) mod moved;

use std::mem;
use std::sync::Arc;

use pykafka_log::{Log, StorageError};

use self::moved::Moved;
use super::threads::background::Urgency;
use super::threads::catch_panic::contained;
use super::threads::may_wait::MayWait;
use super::{Host, Partition};

impl Partition {
    /// Calls `then` once the moved start of `log` is durable, or cannot be; at once for logs in
    /// memory.
    pub(super) fn when_log_start_is_durable(
        &self,
        log: &Arc<Log>,
        urgency: Urgency,
        then: impl FnOnce(&Partition, Result<(), StorageError>) + Send + 'static,
    ) {
        if self.host.in_memory {
            return then(self, Ok(()));
        }
        if let Some(partition) = self.me.upgrade() {
            let then = Box::new(move |recorded| then(&partition, recorded));
            let moved = Moved { log: log.clone(), urgency, then };
            self.host.log_starts.0.lock().moved.push(moved);
            self.host.queue_log_starts();
        }
    }
}

impl Host {
    fn queue_log_starts(self: &Arc<Host>) {
        let urgency = self.log_starts.0.lock().begin_queueing();
        if let Some(urgency) = urgency {
            let host = self.clone();
            self.background.push(urgency, move |may_wait| host.record_log_starts(may_wait));
        }
    }

    fn record_log_starts(self: &Arc<Host>, _: &MayWait) {
        let Some((writing, all_moved)) = self.take_log_starts() else { return };
        let recorded = self.directory.record_log_starts(all_moved.iter().map(|moved| &*moved.log));
        drop(writing);
        for Moved { then, .. } in all_moved {
            contained(|| then(recorded.clone()));
        }
    }

    /// Takes the log starts of the next checkpoint; `None` if one is being written, or if there are
    /// none.
    fn take_log_starts(self: &Arc<Host>) -> Option<(Writing, Vec<Moved>)> {
        let mut state = self.log_starts.0.lock();
        if state.is_written || state.moved.is_empty() {
            return None;
        }
        state.is_written = true;
        state.queued = None;
        Some((Writing(self.clone()), mem::take(&mut state.moved)))
    }
}

/// The permission to write the checkpoint. Dropping it queues the log starts that moved in the
/// meantime.
struct Writing(Arc<Host>);

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.log_starts.0.lock().is_written = false;
        self.0.queue_log_starts();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::thread;
    use std::time::Duration;

    use pykafka_log::Durability;

    use crate::kafka_error::KafkaError;
    use crate::partition::threads::background::Urgency;
    use crate::testing::gate_disk::Op;
    use crate::testing::{Broker, TOPIC, batch, replied, request_of};

    /// Long enough for a busy machine.
    const PATIENCE: Duration = Duration::from_secs(60);
    const PARTITIONS: i32 = 40;
    const CHECKPOINT: &str = "/data/log-start-offset-checkpoint.tmp";

    fn broker(overrides: &[(&str, &str)]) -> Broker {
        let broker = Broker::on_disk(Durability::Os).with_topic(PARTITIONS, overrides);
        for partition in 0..PARTITIONS {
            replied(
                broker.produce_request(9, &request_of(-1, &[(partition, Some(&batch(&["a"])))])),
            );
        }
        broker
    }

    fn delete_before(broker: &Broker, partition: i32, offset: i64) {
        broker.ctx.partitions.delete_before(partition as u64, &(TOPIC, partition), offset);
    }

    fn until_all_have_moved(broker: &Broker) {
        let start = |index| {
            let partition = broker.ctx.partitions.get(&TOPIC, index).unwrap();
            partition.opened_log().map(|log| log.log_start_offset())
        };
        let waits = PATIENCE.as_millis();
        let have_moved = (0..waits).any(|_| {
            thread::sleep(Duration::from_millis(1));
            (0..PARTITIONS).all(|partition| start(partition) == Some(1))
        });
        assert!(have_moved, "log starts wait for a checkpoint");
    }

    fn writes(broker: &Broker) -> usize {
        broker.gate.count(Op::Write, Path::new(CHECKPOINT))
    }

    fn succeeded() -> Vec<(u64, i16, i64)> {
        (0..PARTITIONS as u64).map(|token| (token, 0, 1)).collect()
    }

    fn maintained(broker: &Broker) -> Vec<(u64, i16, i64)> {
        let mut maintained = broker.maintained();
        maintained.sort_unstable();
        maintained
    }

    #[test]
    fn deletions_during_a_checkpoint_share_the_next_one() {
        let broker = broker(&[]);
        broker.gate.hold_at(Op::Write, CHECKPOINT);
        delete_before(&broker, 0, 1);
        broker.gate.until_waiting(1);
        (1..PARTITIONS).for_each(|partition| delete_before(&broker, partition, -1));
        until_all_have_moved(&broker);
        broker.gate.open();
        assert_eq!(maintained(&broker), succeeded());
        assert_eq!(writes(&broker), 2);
    }

    #[test]
    fn unchanged_log_starts_are_not_written() {
        let broker = broker(&[]);
        (0..PARTITIONS).for_each(|partition| delete_before(&broker, partition, 0));
        assert_eq!(broker.maintained().len(), PARTITIONS as usize);
        assert_eq!(writes(&broker), 0);
        (0..PARTITIONS).for_each(|partition| delete_before(&broker, partition, 1));
        assert_eq!(maintained(&broker), succeeded());
        let written = writes(&broker);
        (0..PARTITIONS).for_each(|partition| delete_before(&broker, partition, 1));
        assert_eq!(maintained(&broker), succeeded());
        assert_eq!(writes(&broker), written);
    }

    #[test]
    fn retention_of_many_logs_shares_checkpoints() {
        let broker = broker(&[("retention.bytes", "0")]);
        broker.gate.hold_at(Op::Write, CHECKPOINT);
        delete_before(&broker, 0, 1);
        broker.gate.until_waiting(1);
        broker.ctx.partitions.enforce_retention(1);
        until_all_have_moved(&broker);
        broker.gate.open();
        assert_eq!(maintained(&broker), [(0, 0, 1), (1, 0, -1)]);
        assert_eq!(writes(&broker), 2);
        for partition in broker.ctx.partitions.all() {
            assert_eq!(partition.opened_log().unwrap().segments_count(), 1);
        }
    }

    #[test]
    fn a_callback_that_panics_does_not_affect_the_others() {
        let broker = broker(&[]);
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        let log = partition.opened_log().unwrap();
        broker.gate.hold_at(Op::Write, CHECKPOINT);
        delete_before(&broker, 0, 1);
        broker.gate.until_waiting(1);
        partition.when_log_start_is_durable(&log, Urgency::Asked, |_, _| panic!("of a test"));
        (1..PARTITIONS).for_each(|partition| delete_before(&broker, partition, -1));
        until_all_have_moved(&broker);
        broker.gate.open();
        assert_eq!(maintained(&broker), succeeded());
    }

    #[test]
    fn a_command_that_panics_releases_the_write_permission() {
        let broker = broker(&[]);
        let partition = broker.ctx.partitions.get(&TOPIC, 0).unwrap();
        partition.command(Urgency::Asked, |_, _| panic!("of a test"));
        (0..PARTITIONS).for_each(|partition| delete_before(&broker, partition, -1));
        assert_eq!(maintained(&broker), succeeded());
    }

    #[test]
    fn a_failed_checkpoint_fails_its_deletions() {
        let broker = broker(&[]);
        broker.gate.fail_at(Op::Write, CHECKPOINT);
        (0..PARTITIONS).for_each(|partition| delete_before(&broker, partition, -1));
        let failed = KafkaError::KafkaStorageError.code();
        let told: Vec<_> = (0..PARTITIONS as u64).map(|token| (token, failed, -1)).collect();
        assert_eq!(maintained(&broker), told);
    }
}
