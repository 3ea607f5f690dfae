//! Producers whose last batch was refused and may come again: the disk was full, or descriptors were short.
//!
//! A producer has several batches under way. If the first of them is refused for want of space, those behind it are out of
//! order; told so, a client gives up its epoch and sends what it has heard nothing of once more, in the next one, where
//! nobody can tell that it was appended before. Told what the first one was told, it sends all of them again, in order.

use std::collections::BTreeMap;

use pykafka_record::ProducerId;

use super::StorageError;
use super::error::AppendError;
use crate::log::producer_state::ProducerError;

/// More are told that they are out of order.
const PRODUCERS_MAX: usize = 1_000;

/// See the module. Empty on a log that has space.
#[derive(Debug, Default)]
pub(crate) struct Refused(BTreeMap<ProducerId, StorageError>);

impl Refused {
    /// Takes note of what became of a batch.
    pub(crate) fn note<T>(&mut self, producer_id: ProducerId, written: &Result<T, StorageError>) {
        match written {
            Err(error) if error.is_refusal() && self.0.len() < PRODUCERS_MAX => {
                self.0.insert(producer_id, error.clone());
            }
            _ if self.0.is_empty() => {}
            _ => {
                self.0.remove(&producer_id);
            }
        }
    }

    /// What a batch is told that does not fit the state of its producer.
    pub(crate) fn told(&self, producer_id: ProducerId, error: ProducerError) -> AppendError {
        match (self.0.get(&producer_id), &error) {
            (Some(refusal), ProducerError::OutOfOrderSequence { .. }) => refusal.clone().into(),
            _ => error.into(),
        }
    }
}
