//! Keeps the order of retries after a batch was rejected with a retriable error, for example
//! because this broker was not the leader yet, too few replicas were in sync, or the disk was full.
//!
//! A producer has several batches in flight. If one of them is rejected and the later ones are
//! checked after the cause is gone, they are out of sequence, or would be appended before it. After
//! an out-of-order error, a client starts a new epoch and resends all unacknowledged batches in it,
//! and duplicates cannot be detected any more. If the later batches fail with the error of the
//! first one instead, the client resends all of them in order.
//!
//! A client resends batches in the order of their sequences, on one connection. So if a batch is
//! resent on the connection on which it was rejected, without earlier batches that were rejected
//! before it, the client has abandoned those, and the batch is checked by its sequence as if none
//! had been rejected. Batches from a connection that has ended may be handled later, mixed with
//! those of the next connection, and do not show which batches were abandoned. A batch that is
//! appended in this way may still be resent on the next connection, and later batches wait for it,
//! once, because the log remembers only the last batches of a producer. A note is valid for
//! [`HOLDS_NS`] after the last rejection.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use pykafka_forks::Mutex;
use pykafka_log::{AppendError, AppendInfo, AppendOrigin, Clock};
use pykafka_record::{Batch, ProducerEpoch, ProducerId};

use crate::kafka_error::KafkaError;
use crate::partition::append::outcome::AppendRefusal;
use crate::partition::append::queued::Append;

/// A client resends the batch within this time: Kafka's default of `request.timeout.ms`, twice to
/// allow for a pause.
const HOLDS_NS: u64 = 60_000_000_000;
/// Maximum batches in a note: somewhat more than a producer may have in flight. A new one replaces
/// the oldest.
const REJECTED_MAX: usize = 16;
/// Maximum producers per partition. Batches of further producers are only checked by their
/// sequences.
const PRODUCERS_MAX: usize = 100;

/// The rejected batches of a partition. The lock is held only briefly, and no other lock is taken
/// under it.
#[derive(Debug, Default)]
pub(in crate::partition) struct RetryOrder {
    notes: Mutex<BTreeMap<ProducerId, Note>>,
    /// Time when the last note expires; 0 without notes, which makes the check cheap.
    until_ns: AtomicU64,
}

/// The batches of a producer that will be resent: rejected ones, and later ones that failed because
/// of them.
#[derive(Debug, Clone)]
struct Note {
    epoch: ProducerEpoch,
    /// In the order of rejection; never empty.
    rejected: Vec<Rejected>,
    /// Error of the last rejection.
    error: KafkaError,
    /// Time of the last rejection.
    at_ns: u64,
}

/// The sequence of a batch in its producer's epoch, and its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Arrival {
    /// Sequence of the first record.
    base_sequence: i32,
    /// Id of the connection.
    connection: u64,
}

/// A batch that was rejected with a retriable error.
#[derive(Debug, Clone, Copy)]
struct Rejected {
    /// Its arrival at the rejection.
    arrival: Arrival,
    /// True if it was appended from another connection since.
    is_appended: bool,
}

/// The batch with the lowest sequence among those that will be resent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::partition) struct FirstRejected {
    /// Sequence of the first record.
    pub(in crate::partition) base_sequence: i32,
    /// Error for later batches of the producer.
    error: KafkaError,
}

/// A batch that a client sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    producer_id: ProducerId,
    epoch: ProducerEpoch,
    arrival: Arrival,
}

impl Sent {
    /// `None` for a batch that is not checked by a sequence, or is malformed.
    fn of(append: &Append) -> Option<Sent> {
        if append.origin != AppendOrigin::Client {
            return None;
        }
        let (batch, _) = Batch::split(&append.batch).ok()?;
        batch.has_producer_id().then(|| Sent {
            producer_id: batch.producer_id(),
            epoch: batch.producer_epoch(),
            arrival: Arrival {
                base_sequence: batch.base_sequence(),
                connection: append.connection,
            },
        })
    }
}

/// True if `sequence` precedes `other`. Sequences wrap around.
fn is_before(sequence: i32, other: i32) -> bool {
    other.wrapping_sub(sequence).wrapping_sub(1) & i32::MAX < i32::MAX / 2
}

impl Rejected {
    fn of(Sent { arrival, .. }: Sent) -> Rejected {
        Rejected { arrival, is_appended: false }
    }

    fn is_same_batch(&self, sent: Sent) -> bool {
        self.arrival.base_sequence == sent.arrival.base_sequence
    }

    fn is_before(&self, sent: Sent) -> bool {
        is_before(self.arrival.base_sequence, sent.arrival.base_sequence)
    }
}

impl Note {
    fn of(sent: Sent, error: KafkaError, now_ns: u64) -> Note {
        Note { epoch: sent.epoch, rejected: vec![Rejected::of(sent)], error, at_ns: now_ns }
    }

    fn holds(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.at_ns) < HOLDS_NS
    }

    fn first(&self) -> FirstRejected {
        let earlier = |one, other| if is_before(other, one) { other } else { one };
        let first = self.rejected.iter().map(|one| one.arrival.base_sequence).reduce(earlier);
        FirstRejected { base_sequence: first.expect("it is never empty"), error: self.error }
    }

    /// Records the arrival of `sent`. Removes earlier batches that were rejected before it, if the
    /// client has abandoned them or if they are appended.
    fn note_arrival(&mut self, sent: Sent) {
        let Some(place) = self.rejected.iter().position(|one| one.is_same_batch(sent)) else {
            return;
        };
        let is_resent = self.rejected[place].arrival == sent.arrival;
        let later = self.rejected.split_off(place);
        self.rejected.retain(|one| !(one.is_before(sent) && (is_resent || one.is_appended)));
        self.rejected.extend(later);
    }

    /// Records that `sent` was rejected with a retriable error.
    fn note_rejection(&mut self, sent: Sent) -> bool {
        self.rejected.retain(|one| !one.is_same_batch(sent));
        if self.rejected.len() == REJECTED_MAX {
            self.rejected.remove(0);
        }
        self.rejected.push(Rejected::of(sent));
        true
    }

    /// Records that `sent` was appended; returns false if no other batch will be resent.
    fn note_append(&mut self, sent: Sent) -> bool {
        self.rejected.retain(|one| one.arrival != sent.arrival);
        for one in self.rejected.iter_mut().filter(|one| one.is_same_batch(sent)) {
            one.is_appended = true;
        }
        !self.rejected.is_empty()
    }

    /// Handles an out-of-order error for `sent`; returns false if its client gets the error, and so
    /// starts another epoch.
    fn note_out_of_order(&mut self, sent: Sent) -> bool {
        self.rejected.iter().all(|one| one.arrival != sent.arrival)
    }

    /// Records another rejection; returns false if it is unrelated to this note.
    fn add_rejection(&mut self, sent: Sent, error: KafkaError, now_ns: u64) -> bool {
        let concerns = self.epoch == sent.epoch && self.holds(now_ns);
        if concerns {
            self.note_arrival(sent);
            self.note_rejection(sent);
            (self.error, self.at_ns) = (error, now_ns);
        }
        concerns
    }
}

impl RetryOrder {
    /// Returns the first batch of the same producer and epoch that will be resent, if `append` is
    /// that batch or a later one.
    pub(in crate::partition) fn first(
        &self,
        append: &Append,
        clock: &dyn Clock,
    ) -> Option<FirstRejected> {
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
        let note = notes.get_mut(&sent.producer_id)?;
        if note.epoch != sent.epoch || !note.holds(now_ns) {
            return None;
        }
        note.note_arrival(sent);
        let first = note.first();
        (!is_before(sent.arrival.base_sequence, first.base_sequence)).then_some(first)
    }

    /// Records a batch that is rejected before it reaches the log.
    pub(in crate::partition) fn note(&self, append: &Append, error: KafkaError, clock: &dyn Clock) {
        let Some(sent) = Sent::of(append) else { return };
        let now_ns = clock.now_ns();
        let mut notes = self.notes.lock();
        if notes.len() >= PRODUCERS_MAX {
            notes.retain(|_, note| note.holds(now_ns));
        }
        if let Some(note) = notes.get_mut(&sent.producer_id) {
            let is_older = note.epoch > sent.epoch && note.holds(now_ns);
            if !is_older && !note.add_rejection(sent, error, now_ns) {
                *note = Note::of(sent, error, now_ns);
            }
        } else if notes.len() < PRODUCERS_MAX {
            notes.insert(sent.producer_id, Note::of(sent, error, now_ns));
        }
        self.until_ns.store(now_ns.saturating_add(HOLDS_NS), Ordering::Relaxed);
    }

    /// Records the log's result for a batch that was appended with `first`; returns the result for
    /// the client.
    pub(in crate::partition) fn judged(
        &self,
        append: &Append,
        first: Option<FirstRejected>,
        appended: Result<AppendInfo, AppendError>,
        clock: &dyn Clock,
    ) -> Result<AppendInfo, AppendRefusal> {
        match (&appended, first) {
            (Err(AppendError::BehindRefused), Some(first)) => {
                self.change(append, Note::note_rejection);
                return Err(first.error.into());
            }
            (Err(AppendError::Storage(error)), _) if error.is_refusal() => {
                self.note(append, KafkaError::KafkaStorageError, clock);
            }
            (Err(AppendError::StaleLeaderEpoch { .. }), _) => {
                self.note(append, KafkaError::NotLeaderOrFollower, clock);
            }
            (Ok(_), Some(_)) => self.change(append, Note::note_append),
            (Err(AppendError::Producer(_)), Some(_)) => {
                self.change(append, Note::note_out_of_order);
            }
            _ => {}
        }
        appended.map_err(AppendRefusal::Log)
    }

    /// Changes the note of a batch's producer and epoch; removes it if `change` returns false.
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
mod tests;
