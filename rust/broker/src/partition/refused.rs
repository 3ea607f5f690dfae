//! Producers whose batch was refused and comes again: this broker did not lead yet, too few replicas were in sync, the disk was
//! full.
//!
//! A producer has several batches under way. If one of them is refused and those behind it are judged once the reason is gone,
//! they are out of order, or, of a producer that the log does not know yet, would be appended before it. Told that it is out
//! of order, a client gives up its epoch and sends what it has heard nothing of once more, in the next one, where nobody can
//! tell that it was appended before. Told what the first batch was told, it sends all of them again, in order.
//!
//! A client that has given up the refused batch sends one of those behind it once more without it: that one is judged by its
//! sequence, as if nothing had been refused. A note holds for [`HOLDS_NS`] after the refusal at most.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use pykafka_log::{AppendError, AppendInfo, AppendOrigin, Clock};
use pykafka_record::{Batch, ProducerEpoch, ProducerId, sequence_after};

use super::append::{Append, AppendRefusal};
use crate::kafka_error::KafkaError;

/// Within this time a client has sent the batch again: Kafka's default of `request.timeout.ms`, and as much for a pause.
const HOLDS_NS: u64 = 60_000_000_000;
/// As many batches of a producer as may be under way, and some more.
const TOLD_MAX: usize = 8;
/// Of one partition. Batches of more producers are judged by their sequences alone.
const PRODUCERS_MAX: usize = 100;

/// See the module. Its lock is held for a moment, and within it no other is taken.
#[derive(Debug, Default)]
pub(super) struct Refused {
    notes: Mutex<BTreeMap<ProducerId, Note>>,
    /// When the last of them ceases to hold; 0 without any, and then nobody looks further.
    until_ns: AtomicU64,
}

/// The batches of a producer that come again: they were refused, or told to wait for one that was.
#[derive(Debug, Clone)]
struct Note {
    epoch: ProducerEpoch,
    first: FirstRefused,
    /// Sequence of the last of them.
    last_sequence: i32,
    /// Of those that were told to wait, since one was last refused or appended.
    told: Vec<i32>,
    /// When one was last refused.
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
#[derive(Debug, Clone, Copy)]
struct Sent {
    producer_id: ProducerId,
    epoch: ProducerEpoch,
    base_sequence: i32,
    next_sequence: i32,
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
            next_sequence: sequence_after(batch.last_sequence(), 1),
        })
    }
}

/// Whether a sequence is `than` or comes after it. They wrap.
fn is_not_before(sequence: i32, than: i32) -> bool {
    sequence.wrapping_sub(than) & i32::MAX < i32::MAX / 2
}

impl Note {
    fn of(sent: Sent, error: KafkaError, now_ns: u64) -> Note {
        Note {
            epoch: sent.epoch,
            first: FirstRefused { base_sequence: sent.base_sequence, error },
            last_sequence: sent.base_sequence,
            told: Vec::new(),
            at_ns: now_ns,
        }
    }

    fn holds(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.at_ns) < HOLDS_NS
    }

    /// Whether `sent` is the first batch that was refused, or behind it.
    fn concerns(&self, sent: Sent, now_ns: u64) -> bool {
        self.epoch == sent.epoch
            && is_not_before(sent.base_sequence, self.first.base_sequence)
            && self.holds(now_ns)
    }

    /// Whether `sent` was told to wait for the first, and comes again without it.
    fn is_given_up_by(&self, sent: Sent) -> bool {
        sent.base_sequence != self.first.base_sequence && self.told.contains(&sent.base_sequence)
    }

    /// Takes note of a further refusal; `false` if it has nothing to do with this one.
    fn refused_again(&mut self, sent: Sent, now_ns: u64) -> bool {
        let concerns = self.concerns(sent, now_ns);
        if concerns {
            self.at_ns = now_ns;
            self.told.clear();
            self.reach(sent);
        }
        concerns
    }

    /// Takes note that `sent` was told to wait for the first.
    fn told(&mut self, sent: Sent) -> bool {
        if self.told.len() < TOLD_MAX {
            self.told.push(sent.base_sequence);
        }
        self.reach(sent);
        true
    }

    fn reach(&mut self, sent: Sent) {
        if is_not_before(sent.base_sequence, self.last_sequence) {
            self.last_sequence = sent.base_sequence;
        }
    }

    /// Takes note that `sent` is in the log; `false` if it was the last that comes again.
    fn came(&mut self, sent: Sent) -> bool {
        self.first.base_sequence = sent.next_sequence;
        self.told.clear();
        is_not_before(self.last_sequence, sent.next_sequence)
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
        let note = notes.get(&sent.producer_id).filter(|note| note.concerns(sent, now_ns))?;
        if note.is_given_up_by(sent) {
            notes.remove(&sent.producer_id);
            return None;
        }
        Some(note.first)
    }

    /// Takes note of a batch that is refused before its log has seen it.
    pub(super) fn note(&self, append: &Append, error: KafkaError, clock: &dyn Clock) {
        let Some(sent) = Sent::of(append) else { return };
        let now_ns = clock.now_ns();
        let mut notes = self.notes.lock();
        if notes.len() >= PRODUCERS_MAX {
            notes.retain(|_, note| note.holds(now_ns));
        }
        if let Some(note) = notes.get_mut(&sent.producer_id) {
            let is_older = note.epoch > sent.epoch && note.holds(now_ns);
            if !is_older && !note.refused_again(sent, now_ns) {
                *note = Note::of(sent, error, now_ns);
            }
        } else if notes.len() < PRODUCERS_MAX {
            notes.insert(sent.producer_id, Note::of(sent, error, now_ns));
        }
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
            (Err(AppendError::BehindRefused), Some(first)) => {
                self.change(append, Note::told);
                return Err(first.error.into());
            }
            (Err(AppendError::Storage(error)), _) if error.is_refusal() => {
                self.note(append, KafkaError::KafkaStorageError, clock);
            }
            (Err(AppendError::StaleLeaderEpoch { .. }), _) => {
                self.note(append, KafkaError::NotLeaderOrFollower, clock);
            }
            (Ok(_), Some(_)) => self.change(append, Note::came),
            _ => {}
        }
        appended.map_err(AppendRefusal::Log)
    }

    /// Changes the note of a batch's producer and epoch, which goes if `change` says `false`.
    fn change(&self, append: &Append, change: impl FnOnce(&mut Note, Sent) -> bool) {
        let Some(sent) = Sent::of(append) else { return };
        let mut notes = self.notes.lock();
        if let Some(note) = notes.get_mut(&sent.producer_id)
            && note.epoch == sent.epoch
            && !change(note, sent)
        {
            notes.remove(&sent.producer_id);
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
    const TOO_FEW: [KafkaError; 2] = [KafkaError::NotEnoughReplicas; 2];

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

    /// These are in sync, where two are asked for.
    fn in_sync(broker: &mut Broker, partition_epoch: i32, isr: &[i32]) {
        let entry = replicated(partition_epoch, &BOTH, isr);
        broker.replicate(entry, &[("min.insync.replicas", "2")]);
    }

    fn with_too_few() -> Broker {
        let mut broker = Broker::in_memory().in_cluster();
        in_sync(&mut broker, 1, &[NODE]);
        broker
    }

    /// The batch with sequence 0 is appended, and the one with 1 finds too few replicas, which are back now.
    fn with_too_few_for_a_moment() -> Broker {
        let mut broker = with_too_few();
        assert_eq!(sent(&broker, 0), None);
        assert_eq!(refused(&broker, 1), KafkaError::NotEnoughReplicas);
        in_sync(&mut broker, 2, &BOTH);
        broker
    }

    #[test]
    fn batches_behind_one_that_found_too_few_replicas_are_told_the_same() {
        let broker = with_too_few_for_a_moment();
        assert_eq!([2, 3].map(|sequence| refused(&broker, sequence)), TOO_FEW);
        assert_eq!([1, 2, 3].map(|sequence| sent(&broker, sequence)), [None; 3]);
        assert_eq!(sent(&broker, 9), Some(KafkaError::OutOfOrderSequenceNumber));
    }

    #[test]
    fn a_client_that_gives_up_a_refused_batch_is_out_of_order_after_a_while() {
        let broker = with_too_few_for_a_moment();
        broker.clock.advance_ms(HOLDS_MS - 1);
        assert_eq!(sent(&broker, 2), Some(KafkaError::NotEnoughReplicas));
        broker.clock.advance_ms(1);
        assert_eq!(sent(&broker, 3), Some(KafkaError::OutOfOrderSequenceNumber));
    }

    /// Which sends the one behind it once more.
    #[test]
    fn a_client_that_has_given_up_a_refused_batch_is_told_so_no_more_than_once() {
        let broker = with_too_few_for_a_moment();
        assert_eq!([2, 3].map(|sequence| refused(&broker, sequence)), TOO_FEW);
        assert_eq!(sent(&broker, 2), Some(KafkaError::OutOfOrderSequenceNumber));
        assert_eq!(sent(&broker, 4), Some(KafkaError::OutOfOrderSequenceNumber));
        assert_eq!(sent(&broker, 1), None);
    }

    /// In Apache Kafka, too, the first batch of a producer that is not known may have any sequence.
    #[test]
    fn a_producer_that_has_given_up_its_first_batch_begins_with_the_next_one() {
        let mut broker = with_too_few();
        assert_eq!(refused(&broker, 0), KafkaError::NotEnoughReplicas);
        in_sync(&mut broker, 2, &BOTH);
        assert_eq!(sent(&broker, 1), Some(KafkaError::NotEnoughReplicas));
        assert_eq!([1, 2].map(|sequence| sent(&broker, sequence)), [None; 2]);
    }

    #[test]
    fn the_second_batch_that_was_refused_is_waited_for_when_the_first_has_come() {
        let mut broker = with_too_few();
        assert_eq!(sent(&broker, 0), None);
        assert_eq!([1, 2].map(|sequence| refused(&broker, sequence)), TOO_FEW);
        in_sync(&mut broker, 2, &BOTH);
        assert_eq!(sent(&broker, 1), None);
        assert_eq!(sent(&broker, 3), Some(KafkaError::NotEnoughReplicas));
        assert_eq!([2, 3].map(|sequence| sent(&broker, sequence)), [None; 2]);
        assert_eq!(sent(&broker, 9), Some(KafkaError::OutOfOrderSequenceNumber));
    }

    /// The first comes while those behind it are told.
    #[test]
    fn a_batch_that_was_told_to_wait_is_waited_for_like_one_that_was_refused() {
        let broker = with_too_few_for_a_moment();
        assert_eq!(refused(&broker, 2), KafkaError::NotEnoughReplicas);
        assert_eq!(sent(&broker, 1), None);
        assert_eq!(refused(&broker, 3), KafkaError::NotEnoughReplicas);
        assert_eq!([2, 3].map(|sequence| sent(&broker, sequence)), [None; 2]);
    }

    #[test]
    fn a_batch_that_was_never_told_to_wait_does_not_say_that_the_first_is_given_up() {
        let mut broker = with_too_few();
        assert_eq!([0, 1].map(|sequence| refused(&broker, sequence)), TOO_FEW);
        assert_eq!(refused(&broker, 0), KafkaError::NotEnoughReplicas);
        in_sync(&mut broker, 2, &BOTH);
        assert_eq!([2, 1].map(|sequence| refused(&broker, sequence)), TOO_FEW);
        assert_eq!([0, 1, 2].map(|sequence| sent(&broker, sequence)), [None; 3]);
    }

    #[test]
    fn a_further_refusal_begins_a_new_round_of_batches_that_come_again() {
        let mut broker = with_too_few_for_a_moment();
        assert_eq!(refused(&broker, 3), KafkaError::NotEnoughReplicas);
        in_sync(&mut broker, 3, &[NODE]);
        assert_eq!(refused(&broker, 2), KafkaError::NotEnoughReplicas);
        in_sync(&mut broker, 4, &BOTH);
        assert_eq!(refused(&broker, 3), KafkaError::NotEnoughReplicas);
        assert_eq!([1, 2, 3].map(|sequence| sent(&broker, sequence)), [None; 3]);
    }

    #[test]
    fn a_refused_batch_of_an_older_epoch_does_not_take_the_place_of_a_newer_one() {
        let mut broker = with_too_few();
        let told_of = |broker: &Broker, epoch, sequence| {
            told(broker.produce(9, -1, &in_epoch(epoch, sequence)))
        };
        let too_few = Some(KafkaError::NotEnoughReplicas);
        assert_eq!([1, 0].map(|epoch| told_of(&broker, epoch, 0)), [too_few; 2]);
        in_sync(&mut broker, 2, &BOTH);
        assert_eq!(told(broker.produce(9, 1, &in_epoch(1, 1))), too_few);
        assert_eq!(told(broker.produce(9, 1, &in_epoch(1, 0))), None);
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
        assert!(is_not_before(3, i32::MAX) && is_not_before(3, 3));
        assert!(!is_not_before(i32::MAX, 3) && !is_not_before(2, 3));
    }
}
