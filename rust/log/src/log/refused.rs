//! Producers whose last batch was refused and may come again: the disk was full, or descriptors were short.
//!
//! A producer has several batches under way. If one of them is refused for want of space, those behind it are out of order,
//! or, of a producer that the log does not know yet, would be appended before it. Told that it is out of order, a client gives
//! up its epoch and sends what it has heard nothing of once more, in the next one, where nobody can tell that it was appended
//! before. Told what the first batch was told, it sends all of them again, in order.
//!
//! A client that has given up the refused batch would be told so for ever: a note holds for [`HOLDS_MS`] after the refusal.

use std::collections::BTreeMap;

use pykafka_record::{ProducerEpoch, ProducerId};

use super::StorageError;
use crate::log::producer_state::{BatchSummary, Check, ProducerError};

/// Within this time a client has sent the batch again: Kafka's default of `request.timeout.ms`, and as much for a pause.
const HOLDS_MS: i64 = 60_000;
/// Batches of more producers are judged by their sequences alone.
const PRODUCERS_MAX: usize = 1_000;

/// See the module. Empty on a log that has never lacked space.
#[derive(Debug, Default)]
pub(crate) struct Refused(BTreeMap<ProducerId, Note>);

/// The first batch that was refused, and when one was last.
#[derive(Debug, Clone, Copy)]
struct Note {
    epoch: ProducerEpoch,
    base_sequence: i32,
    at_ms: i64,
}

impl Note {
    /// By a wall clock, which may have been set: one that went back holds no longer than one that went on.
    fn holds(self, now_ms: i64) -> bool {
        now_ms.saturating_sub(self.at_ms).saturating_abs() < HOLDS_MS
    }
}

impl Refused {
    /// Whether nothing has to be asked.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes note of what became of a producer's batch.
    pub(crate) fn note<T>(
        &mut self,
        batch: &BatchSummary,
        written: &Result<T, StorageError>,
        now_ms: i64,
    ) {
        if !written.as_ref().is_err_and(StorageError::is_refusal) {
            self.0.remove(&batch.producer_id);
            return;
        }
        if self.0.len() >= PRODUCERS_MAX {
            self.0.retain(|_, note| note.holds(now_ms));
        }
        let first =
            self.0.get(&batch.producer_id).filter(|note| note.epoch == batch.producer_epoch);
        if first.is_none() && self.0.len() >= PRODUCERS_MAX {
            return;
        }
        let base_sequence =
            first.map_or(batch.base_sequence, |note| note.base_sequence.min(batch.base_sequence));
        let note = Note { epoch: batch.producer_epoch, base_sequence, at_ms: now_ms };
        self.0.insert(batch.producer_id, note);
    }

    /// Whether a batch comes behind one that was refused, by the verdict on its sequence; `is_known` if the log has batches of
    /// its producer.
    pub(crate) fn precedes(
        &self,
        batch: &BatchSummary,
        verdict: &Result<Check, ProducerError>,
        is_known: bool,
        now_ms: i64,
    ) -> bool {
        let Some(note) = self.0.get(&batch.producer_id) else { return false };
        let is_behind = match verdict {
            Err(ProducerError::OutOfOrderSequence { .. }) => true,
            Ok(Check::Accepted) => !is_known && batch.base_sequence > note.base_sequence,
            Ok(Check::Duplicate(_)) | Err(_) => false,
        };
        is_behind && note.epoch == batch.producer_epoch && note.holds(now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_holds_for_its_time_whether_the_clock_went_on_or_was_set_back() {
        let note = Note { epoch: ProducerEpoch::new(0), base_sequence: 0, at_ms: 1_000_000_000 };
        let holds = |after_ms: i64| note.holds(note.at_ms + after_ms);
        assert!([0, -1, HOLDS_MS - 1, 1 - HOLDS_MS].map(holds).iter().all(|holds| *holds));
        assert!([HOLDS_MS, -HOLDS_MS, -3_600_000].map(holds).iter().all(|holds| !*holds));
        assert!(!note.holds(i64::MIN) && !note.holds(i64::MAX));
    }
}
