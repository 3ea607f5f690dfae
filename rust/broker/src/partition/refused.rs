//! Producers whose batch was refused and comes again: this broker did not lead yet, too few replicas were in sync, the disk was
//! full.
//!
//! A producer has several batches under way. If one of them is refused and those behind it are judged once the reason is gone,
//! they are out of order, or would be appended before it. Told that it is out of order, a client gives up its epoch and sends
//! what it has heard nothing of once more, in the next one, where nobody can tell that it was appended before. Told what the
//! first batch was told, it sends all of them again, in order.
//!
//! A client sends them again in the order of their sequences, on one connection. So if one comes again on the connection on
//! which it was told so, without those before it that were refused earlier, these are given up, and it is judged by its
//! sequence, as if nothing had been refused. What a client has sent on a connection that has ended may be handled later, among
//! what it sends on the next one, and says nothing of what it gives up. One that is appended that way may still come again on
//! the next one, and those behind it wait for it, once: of a producer only its last batches are known. A note holds for
//! [`HOLDS_NS`] after the last refusal.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use pykafka_forks::Mutex;
use pykafka_log::{AppendError, AppendInfo, AppendOrigin, Clock};
use pykafka_record::{Batch, ProducerEpoch, ProducerId};

use super::append::{Append, AppendRefusal};
use crate::kafka_error::KafkaError;

/// Within this time a client has sent the batch again: Kafka's default of `request.timeout.ms`, and as much for a pause.
const HOLDS_NS: u64 = 60_000_000_000;
/// As many batches of a producer as may be under way, and some more. The oldest gives way to what is told now.
const TOLD_MAX: usize = 16;
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
    /// In the order in which their clients were told so. Never empty.
    told: Vec<Told>,
    /// Why the last of them was refused.
    error: KafkaError,
    /// When.
    at_ns: u64,
}

/// A batch among those of its producer's epoch, and how it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Arrival {
    /// Sequence of its first record.
    base_sequence: i32,
    /// The id of its connection.
    connection: u64,
}

/// A batch of which a client was told that it comes again.
#[derive(Debug, Clone, Copy)]
struct Told {
    /// How it came then.
    arrival: Arrival,
    /// It was appended on another connection since.
    is_appended: bool,
}

/// The first batch, by its sequence, of those that come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FirstRefused {
    /// Sequence of its first record.
    pub(super) base_sequence: i32,
    /// What clients of those behind it are told.
    error: KafkaError,
}

/// The batch of a client as it is known here.
#[derive(Debug, Clone, Copy)]
struct Sent {
    producer_id: ProducerId,
    epoch: ProducerEpoch,
    arrival: Arrival,
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
            arrival: Arrival {
                base_sequence: batch.base_sequence(),
                connection: append.connection,
            },
        })
    }
}

/// Whether a sequence comes before `other`. They wrap.
fn is_before(sequence: i32, other: i32) -> bool {
    other.wrapping_sub(sequence).wrapping_sub(1) & i32::MAX < i32::MAX / 2
}

impl Told {
    fn of(Sent { arrival, .. }: Sent) -> Told {
        Told { arrival, is_appended: false }
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
        Note { epoch: sent.epoch, told: vec![Told::of(sent)], error, at_ns: now_ns }
    }

    fn holds(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.at_ns) < HOLDS_NS
    }

    fn first(&self) -> FirstRefused {
        let earlier = |one, other| if is_before(other, one) { other } else { one };
        let first = self.told.iter().map(|told| told.arrival.base_sequence).reduce(earlier);
        FirstRefused { base_sequence: first.expect("it is never empty"), error: self.error }
    }

    /// Takes note that `sent` has come: those before it that were told earlier are given up.
    fn came(&mut self, sent: Sent) {
        let Some(place) = self.told.iter().position(|told| told.is_same_batch(sent)) else {
            return;
        };
        let comes_again = self.told[place].arrival == sent.arrival;
        let later = self.told.split_off(place);
        self.told.retain(|told| !(told.is_before(sent) && (comes_again || told.is_appended)));
        self.told.extend(later);
    }

    /// Takes note that `sent` was told to come again.
    fn comes_again(&mut self, sent: Sent) -> bool {
        self.told.retain(|told| !told.is_same_batch(sent));
        if self.told.len() == TOLD_MAX {
            self.told.remove(0);
        }
        self.told.push(Told::of(sent));
        true
    }

    /// Takes note that `sent` was appended; `false` if no other one comes again.
    fn is_through(&mut self, sent: Sent) -> bool {
        self.told.retain(|told| told.arrival != sent.arrival);
        for told in self.told.iter_mut().filter(|told| told.is_same_batch(sent)) {
            told.is_appended = true;
        }
        !self.told.is_empty()
    }

    /// Takes note that `sent` is out of order; `false` if its client hears so, and begins another epoch.
    fn is_out_of_order(&mut self, sent: Sent) -> bool {
        self.told.iter().all(|told| told.arrival != sent.arrival)
    }

    /// Takes note of a further refusal; `false` if it has nothing to do with this one.
    fn refused_again(&mut self, sent: Sent, error: KafkaError, now_ns: u64) -> bool {
        let concerns = self.epoch == sent.epoch && self.holds(now_ns);
        if concerns {
            self.came(sent);
            self.comes_again(sent);
            (self.error, self.at_ns) = (error, now_ns);
        }
        concerns
    }
}

impl Refused {
    /// The first batch of the same producer, in the same epoch, that comes again; `append` is that one, or behind it.
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
        let note = notes.get_mut(&sent.producer_id)?;
        if note.epoch != sent.epoch || !note.holds(now_ns) {
            return None;
        }
        note.came(sent);
        let first = note.first();
        (!is_before(sent.arrival.base_sequence, first.base_sequence)).then_some(first)
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
            if !is_older && !note.refused_again(sent, error, now_ns) {
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
                self.change(append, Note::comes_again);
                return Err(first.error.into());
            }
            (Err(AppendError::Storage(error)), _) if error.is_refusal() => {
                self.note(append, KafkaError::KafkaStorageError, clock);
            }
            (Err(AppendError::StaleLeaderEpoch { .. }), _) => {
                self.note(append, KafkaError::NotLeaderOrFollower, clock);
            }
            (Ok(_), Some(_)) => self.change(append, Note::is_through),
            (Err(AppendError::Producer(_)), Some(_)) => self.change(append, Note::is_out_of_order),
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
mod tests;
