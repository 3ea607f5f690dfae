//! Producers whose batch was refused and comes again: this broker did not lead yet, too few replicas were in sync, the disk was
//! full.
//!
//! A producer has several batches under way. If one of them is refused and those behind it are judged once the reason is gone,
//! they are out of order, or, of a producer that the log does not know yet, would be appended before it. Told that it is out
//! of order, a client gives up its epoch and sends what it has heard nothing of once more, in the next one, where nobody can
//! tell that it was appended before. Told what the first batch was told, it sends all of them again, in order.
//!
//! A client that has given up the refused batch would be told so for ever: a note holds for [`HOLDS_NS`] after the refusal.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use pykafka_log::{AppendError, AppendInfo, AppendOrigin, Clock};
use pykafka_record::{Batch, ProducerEpoch, ProducerId};

use super::append::{Append, AppendRefusal};
use crate::kafka_error::KafkaError;

/// Within this time a client has sent the batch again: Kafka's default of `request.timeout.ms`, and as much for a pause.
const HOLDS_NS: u64 = 60_000_000_000;
/// Batches of more producers are judged by their sequences alone.
const PRODUCERS_MAX: usize = 1_000;

/// See the module. Its lock is held for a moment, and within it no other is taken.
#[derive(Debug, Default)]
pub(super) struct Refused {
    notes: Mutex<BTreeMap<ProducerId, Note>>,
    /// When the last of them ceases to hold; 0 without any, and then nobody looks further.
    until_ns: AtomicU64,
}

/// The first batch of a producer that was refused, and when one was last.
#[derive(Debug, Clone, Copy)]
struct Note {
    epoch: ProducerEpoch,
    first: FirstRefused,
    at_ns: u64,
}

/// What the batches behind it have to know of a batch that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FirstRefused {
    /// Sequence of its first record.
    pub(super) base_sequence: i32,
    /// What its client was told.
    error: KafkaError,
}

/// The batch of a client as it is known here.
struct Sent {
    producer_id: ProducerId,
    epoch: ProducerEpoch,
    base_sequence: i32,
}

impl Sent {
    /// `None` for one that is judged by no sequence, or is malformed.
    fn of(append: &Append) -> Option<Sent> {
        if append.origin != AppendOrigin::Client {
            return None;
        }
        let (batch, _) = Batch::split(&append.batch).ok()?;
        batch.has_producer_id().then(|| Sent {
            producer_id: batch.producer_id(),
            epoch: batch.producer_epoch(),
            base_sequence: batch.base_sequence(),
        })
    }
}

impl Note {
    fn holds(self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.at_ns) < HOLDS_NS
    }

    /// What was refused first, if `sent` is of the same epoch and not in front of it.
    fn first_before(self, sent: &Sent, now_ns: u64) -> Option<FirstRefused> {
        // Sequences wrap.
        let distance = sent.base_sequence.wrapping_sub(self.first.base_sequence) & i32::MAX;
        let is_behind = self.epoch == sent.epoch && distance < i32::MAX / 2;
        (is_behind && self.holds(now_ns)).then_some(self.first)
    }
}

impl Refused {
    /// The first batch of the same producer, in the same epoch, that was refused and comes again.
    pub(super) fn first(&self, append: &Append, clock: &dyn Clock) -> Option<FirstRefused> {
        if self.until_ns.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let sent = Sent::of(append)?;
        let now_ns = clock.now_ns();
        let mut notes = self.notes.lock();
        if now_ns >= self.until_ns.load(Ordering::Relaxed) {
            notes.clear();
            self.until_ns.store(0, Ordering::Relaxed);
        }
        notes.get(&sent.producer_id).and_then(|note| note.first_before(&sent, now_ns))
    }

    /// Takes note of a batch that is refused before its log has seen it.
    pub(super) fn note(&self, append: &Append, error: KafkaError, clock: &dyn Clock) {
        let Some(sent) = Sent::of(append) else { return };
        let now_ns = clock.now_ns();
        let mut notes = self.notes.lock();
        if notes.len() >= PRODUCERS_MAX {
            notes.retain(|_, note| note.holds(now_ns));
        }
        let before = notes.get(&sent.producer_id);
        if before.is_none() && notes.len() >= PRODUCERS_MAX {
            return;
        }
        let first = before
            .and_then(|note| note.first_before(&sent, now_ns))
            .unwrap_or(FirstRefused { base_sequence: sent.base_sequence, error });
        notes.insert(sent.producer_id, Note { epoch: sent.epoch, first, at_ns: now_ns });
        self.until_ns.store(now_ns.saturating_add(HOLDS_NS), Ordering::Relaxed);
    }

    /// Takes note of what the log said of a batch that it was given with `first`; returns what the client is told.
    pub(super) fn judged(
        &self,
        append: &Append,
        first: Option<FirstRefused>,
        appended: Result<AppendInfo, AppendError>,
        clock: &dyn Clock,
    ) -> Result<AppendInfo, AppendRefusal> {
        match (&appended, first) {
            (Err(AppendError::BehindRefused), Some(first)) => return Err(first.error.into()),
            (Err(AppendError::Storage(error)), _) if error.is_refusal() => {
                self.note(append, KafkaError::KafkaStorageError, clock);
            }
            (Err(AppendError::StaleLeaderEpoch { .. }), _) => {
                self.note(append, KafkaError::NotLeaderOrFollower, clock);
            }
            (Ok(info), Some(_)) if !info.duplicate => self.forget(append),
            _ => {}
        }
        appended.map_err(AppendRefusal::Log)
    }

    fn forget(&self, append: &Append) {
        if let Some(sent) = Sent::of(append) {
            self.notes.lock().remove(&sent.producer_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use pykafka_log::Durability;
    use pykafka_record::{BatchOptions, LeaderEpoch};
    use pykafka_wire::produce::Response;

    use super::*;
    use crate::api::context::Outcome;
    use crate::seam::image::PartitionEntry;
    use crate::testing::gate_disk::Op;
    use crate::testing::{Broker, NODE, batch_with, pending, poll, replicated, replied};

    const FOLLOWER: i32 = 2;
    const HOLDS_MS: u64 = HOLDS_NS / 1_000_000;
    const BOTH: [i32; 2] = [NODE, FOLLOWER];

    /// A batch of one record of the same producer.
    fn in_epoch(epoch: i16, base_sequence: i32) -> Vec<u8> {
        let options = BatchOptions {
            producer_id: ProducerId::new(1),
            producer_epoch: ProducerEpoch::new(epoch),
            base_sequence,
            ..BatchOptions::default()
        };
        batch_with(options, &["a"])
    }

    fn told(outcome: Outcome) -> Option<KafkaError> {
        let answer = replied(outcome);
        let answer = Response::decode(9, &answer).unwrap();
        let error = KafkaError::from_code(answer.responses[0].partitions[0].error_code);
        error.filter(|error| *error != KafkaError::None)
    }

    /// Of the batch with this sequence; `None` if it was appended. Replicas are not waited for.
    fn sent(broker: &Broker, base_sequence: i32) -> Option<KafkaError> {
        told(broker.produce(9, 1, &in_epoch(0, base_sequence)))
    }

    /// The same with acks=all, where it is refused.
    fn refused(broker: &Broker, base_sequence: i32) -> KafkaError {
        told(broker.produce(9, -1, &in_epoch(0, base_sequence))).unwrap()
    }

    /// The batch with sequence 0 is appended, and the one with 1 finds one replica where two are asked for, which are back now.
    fn with_too_few_for_a_moment() -> Broker {
        let mut broker = Broker::in_memory().in_cluster();
        let two = [("min.insync.replicas", "2")];
        broker.replicate(replicated(1, &BOTH, &[NODE]), &two);
        assert_eq!(sent(&broker, 0), None);
        assert_eq!(refused(&broker, 1), KafkaError::NotEnoughReplicas);
        broker.replicate(replicated(2, &BOTH, &BOTH), &two);
        broker
    }

    #[test]
    fn batches_behind_one_that_found_too_few_replicas_are_told_the_same() {
        let broker = with_too_few_for_a_moment();
        assert_eq!(
            [2, 3].map(|sequence| refused(&broker, sequence)),
            [KafkaError::NotEnoughReplicas; 2]
        );
        assert_eq!([1, 2, 3].map(|sequence| sent(&broker, sequence)), [None; 3]);
        assert_eq!(sent(&broker, 9), Some(KafkaError::OutOfOrderSequenceNumber));
    }

    #[test]
    fn a_client_that_gives_up_a_refused_batch_is_out_of_order_after_a_while() {
        let broker = with_too_few_for_a_moment();
        broker.clock.advance_ms(HOLDS_MS - 1);
        assert_eq!(sent(&broker, 2), Some(KafkaError::NotEnoughReplicas));
        broker.clock.advance_ms(1);
        assert_eq!(sent(&broker, 2), Some(KafkaError::OutOfOrderSequenceNumber));
    }

    #[test]
    fn the_next_epoch_of_a_producer_has_nothing_to_wait_for() {
        let broker = with_too_few_for_a_moment();
        assert_eq!(told(broker.produce(9, 1, &in_epoch(1, 0))), None);
        assert_eq!(told(broker.produce(9, 1, &in_epoch(1, 1))), None);
        let gap = told(broker.produce(9, 1, &in_epoch(1, 5)));
        assert_eq!(gap, Some(KafkaError::OutOfOrderSequenceNumber));
    }

    /// Nothing tells a log that does not know a producer yet that it was to get an earlier batch first.
    #[test]
    fn the_first_batches_of_a_producer_stay_in_order_where_a_leader_begins_to_lead() {
        let mut broker = Broker::in_memory().in_cluster();
        let led_elsewhere = replicated(1, &BOTH, &BOTH);
        broker.replicate(PartitionEntry { leader: FOLLOWER, ..led_elsewhere }, &[]);
        assert_eq!(sent(&broker, 0), Some(KafkaError::NotLeaderOrFollower));
        let leader_epoch = LeaderEpoch::new(1);
        broker.replicate(PartitionEntry { leader_epoch, ..replicated(2, &BOTH, &BOTH) }, &[]);
        assert_eq!(sent(&broker, 1), Some(KafkaError::NotLeaderOrFollower));
        assert_eq!([0, 1].map(|sequence| sent(&broker, sequence)), [None; 2]);
    }

    #[test]
    fn batches_behind_one_that_the_disk_refused_are_told_the_same() {
        let broker = Broker::on_disk(Durability::Os).with_topic(1, &[]);
        broker.gate.refuse_at(Op::Write, "/data/t-0");
        assert_eq!(sent(&broker, 0), Some(KafkaError::KafkaStorageError));
        broker.gate.heal();
        assert_eq!(sent(&broker, 1), Some(KafkaError::KafkaStorageError));
        assert_eq!([0, 1, 2].map(|sequence| sent(&broker, sequence)), [None; 3]);
    }

    #[test]
    fn a_batch_behind_one_that_timed_out_in_the_queue_comes_too_early() {
        let broker = Broker::on_disk(Durability::Os).with_topic(1, &[]);
        assert_eq!(sent(&broker, 0), None);
        broker.gate.hold_at(Op::Write, "/data/t-0");
        let written = pending(broker.produce(9, 1, &in_epoch(0, 1)));
        broker.gate.until_waiting(1);
        let mut forgotten = pending(broker.produce(9, 1, &in_epoch(0, 2)));
        let behind = pending(broker.produce(9, 1, &in_epoch(0, 3)));
        assert!(poll(&mut forgotten).is_none());
        drop(forgotten);
        broker.gate.open();
        assert_eq!(told(Outcome::Pending(written)), None);
        assert_eq!(told(Outcome::Pending(behind)), Some(KafkaError::NotEnoughReplicas));
        assert_eq!([2, 3].map(|sequence| sent(&broker, sequence)), [None; 2]);
    }

    #[test]
    fn sequences_wrap() {
        let sent = |base_sequence| Sent {
            producer_id: ProducerId::new(1),
            epoch: ProducerEpoch::new(0),
            base_sequence,
        };
        let first = FirstRefused { base_sequence: i32::MAX, error: KafkaError::NotEnoughReplicas };
        let note = Note { epoch: ProducerEpoch::new(0), first, at_ns: 0 };
        assert_eq!(note.first_before(&sent(3), 0), Some(first));
        assert_eq!(note.first_before(&sent(i32::MAX - 1), 0), None);
    }
}
