//! Which producers have a transaction open here, and which are about to begin one (KIP-890).
//!
//! # Theory of operation
//! A client's batch may begin a transaction in this log only if the transaction's coordinator knows of it: the coordinator
//! writes a marker to each partition that it knows of, and a transaction without a marker would hold back readers for ever.
//! So the partition's leader asks the coordinator before the first batch is appended, and the log holds a *guard* meanwhile.
//! The append presents that guard. A marker, or another batch of the transaction, takes the guard away, so that an answer
//! which a marker has overtaken appends nothing: `InvalidTxnState`. Guards are unique, so that the answer for one
//! transaction is never taken for the next one. Where each transaction raises the epoch, a marker has the epoch of the
//! transaction that follows: the guard of that one stays, however late the marker is.
//!
//! The guard's entry also keeps the lowest sequence that was seen: while the first batch is retried, none behind it is
//! appended in its place.
//!
//! What is open is a copy of what the producer state says, for threads that must not wait for the log's state, which is
//! locked while the disk works. The append judges by the state itself; a copy that is too old costs a question to the
//! coordinator, or a refusal that the client retries.
//!
//! This is Apache Kafka's `VerificationStateEntry`. Nothing of it is stored: after a restart the coordinator is asked again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use pykafka_forks::Mutex;
use pykafka_record::{Batch, ProducerEpoch, ProducerId};

use super::producer_state::{BatchSummary, Expected, ProducerStateManager};

/// Stands for one question to the coordinator; no two of a process are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerificationGuard(u64);

impl VerificationGuard {
    fn unique() -> VerificationGuard {
        // Of all logs of the process: a log may be opened again while a guard of its predecessor is on its way.
        static LAST: AtomicU64 = AtomicU64::new(0);
        VerificationGuard(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

/// By which rule an append is judged as part of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransactionRule {
    /// Whoever appends vouches that the transaction is open.
    #[default]
    Vouched,
    /// A transactional batch is refused unless its transaction is open here, or this is the guard of its producer.
    Verified(Option<VerificationGuard>),
    /// It is a marker, written under this transaction version of Kafka's feature.
    Marker(i16),
}

/// The first batch of a transaction, as a client sends it.
#[derive(Clone, Copy, Debug)]
pub struct FirstBatch {
    /// Whose it is.
    pub producer_id: ProducerId,
    /// In this epoch.
    pub producer_epoch: ProducerEpoch,
    /// Sequence of its first record.
    pub base_sequence: i32,
    /// Whether the producer's epoch is raised with each transaction (transaction version 2), so that each begins with
    /// sequence 0.
    pub supports_epoch_bump: bool,
}

/// A producer that is about to begin a transaction.
#[derive(Debug)]
struct Entry {
    guard: VerificationGuard,
    begun_ms: i64,
    lowest_sequence: i32,
    producer_epoch: ProducerEpoch,
    supports_epoch_bump: bool,
}

impl Entry {
    fn of(batch: &FirstBatch, now_ms: i64) -> Entry {
        Entry {
            guard: VerificationGuard::unique(),
            begun_ms: now_ms,
            lowest_sequence: batch.base_sequence,
            producer_epoch: batch.producer_epoch,
            supports_epoch_bump: batch.supports_epoch_bump,
        }
    }

    /// Whether `batch` is the marker of the transaction before.
    fn is_of_next(&self, batch: &Batch<'_>) -> bool {
        self.supports_epoch_bump
            && batch.is_control()
            && batch.producer_epoch() == self.producer_epoch
    }

    fn see(&mut self, batch: &FirstBatch) {
        if batch.producer_epoch > self.producer_epoch {
            self.producer_epoch = batch.producer_epoch;
            self.lowest_sequence = batch.base_sequence;
        } else if batch.producer_epoch == self.producer_epoch {
            self.lowest_sequence = self.lowest_sequence.min(batch.base_sequence);
        }
    }
}

#[derive(Debug, Default)]
struct Known {
    /// Open transactions, with the epochs of their producers.
    open: HashMap<ProducerId, ProducerEpoch>,
    entries: HashMap<ProducerId, Entry>,
}

/// See the module. Never locked while the disk works.
#[derive(Debug, Default)]
pub(crate) struct Transactions(Mutex<Known>);

impl Transactions {
    /// Those of a log that was opened.
    pub(crate) fn of(producers: &ProducerStateManager) -> Transactions {
        let transactions = Transactions::default();
        transactions.reload(producers);
        transactions
    }

    /// The guard to ask the coordinator under; `None` if the transaction is open.
    pub(crate) fn begin(&self, batch: &FirstBatch, now_ms: i64) -> Option<VerificationGuard> {
        let mut known = self.0.lock();
        if known.open.get(&batch.producer_id) == Some(&batch.producer_epoch) {
            return None;
        }
        let entry = known.entries.entry(batch.producer_id);
        let entry = entry.or_insert_with(|| Entry::of(batch, now_ms));
        entry.see(batch);
        Some(entry.guard)
    }

    /// Lets go of a guard whose producer the coordinator does not know; a later one of the same producer stays.
    pub(crate) fn abandon(&self, producer_id: ProducerId, guard: VerificationGuard) {
        let mut known = self.0.lock();
        if known.entries.get(&producer_id).is_some_and(|entry| entry.guard == guard) {
            known.entries.remove(&producer_id);
        }
    }

    /// What must hold for `batch` to be appended.
    pub(crate) fn expected(&self, batch: &BatchSummary, rule: TransactionRule) -> Expected {
        let TransactionRule::Verified(guard) = rule else { return Expected::default() };
        if !batch.transactional {
            return Expected::default();
        }
        let known = self.0.lock();
        match known.entries.get(&batch.producer_id) {
            None => Expected { must_be_open: true, ..Expected::default() },
            Some(entry) => Expected {
                must_be_open: guard != Some(entry.guard),
                sequence_max: Some(entry.lowest_sequence),
                begins_at_zero: entry.supports_epoch_bump,
            },
        }
    }

    /// A batch or a marker of a transaction was appended, by whomever.
    pub(crate) fn appended(&self, producers: &ProducerStateManager, batch: &Batch<'_>) {
        let producer_id = batch.producer_id();
        let mut known = self.0.lock();
        if known.entries.get(&producer_id).is_some_and(|entry| !entry.is_of_next(batch)) {
            known.entries.remove(&producer_id);
        }
        match producers.open_epoch(producer_id) {
            Some(producer_epoch) => known.open.insert(producer_id, producer_epoch),
            None => known.open.remove(&producer_id),
        };
    }

    /// The producer state was read again. Guards are of what the log was before.
    pub(crate) fn reload(&self, producers: &ProducerStateManager) {
        let mut known = self.0.lock();
        known.entries.clear();
        known.open = producers.open_transactions().collect();
    }

    /// Forgets guards that nobody came back for.
    pub(crate) fn expire(&self, now_ms: i64, expiration_ms: i64) {
        let is_kept = |entry: &Entry| now_ms.saturating_sub(entry.begun_ms) < expiration_ms;
        self.0.lock().entries.retain(|_, entry| is_kept(entry));
    }
}
