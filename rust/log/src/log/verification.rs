//! Producers with an open transaction in this log, and producers that are about to start one
//! (KIP-890).
//!
//! # Theory of operation
//! A client's batch may start a transaction in this log only if the transaction's coordinator has
//! added the partition to it. The coordinator writes a marker to each such partition, and a
//! transaction without a marker would block readers forever. So the partition's leader sends a
//! verification request to the coordinator before it appends the first batch. During the request
//! the log holds a *guard*, which the append must present. A marker, or another batch of the
//! transaction, removes the guard, so that a response which arrives after the marker appends
//! nothing: `InvalidTxnState`. Guards are unique, so that the response for one transaction is never
//! used for the next one. If each transaction raises the epoch, a marker has the epoch of the
//! following transaction, whose guard is kept however late the marker is.
//!
//! The entry of a guard also keeps the lowest sequence of the transaction: while the first batch is
//! retried, no later batch is appended in its place.
//!
//! The open transactions are a copy of the producer state, for threads that must not wait for the
//! log's state, which is locked while the disk works. The append checks the state itself. An
//! outdated copy costs a request to the coordinator, or an error that the client retries.
//!
//! This corresponds to Apache Kafka's `VerificationStateEntry`. It is not stored: after a restart
//! the coordinator is asked again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use pykafka_forks::Mutex;
use pykafka_record::{Batch, ProducerEpoch, ProducerId};

use super::producer_state::{BatchSummary, Expected, ProducerStateManager};

/// Identifies one verification request; unique in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerificationGuard(u64);

impl VerificationGuard {
    fn unique() -> VerificationGuard {
        // Shared by all logs of the process: a log may be opened again while a guard of its
        // predecessor is in use.
        static LAST: AtomicU64 = AtomicU64::new(0);
        VerificationGuard(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

/// The rule for an append to a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransactionRule {
    /// The caller guarantees that the transaction is open.
    #[default]
    Vouched,
    /// A transactional batch is rejected unless its transaction is open in this log, or this is the
    /// guard of its producer.
    Verified(Option<VerificationGuard>),
    /// The batch is a marker, written under this transaction version of Kafka's feature.
    Marker(i16),
}

/// The first batch of a transaction from a client.
#[derive(Clone, Copy, Debug)]
pub struct FirstBatch {
    /// The producer that starts the transaction.
    pub producer_id: ProducerId,
    /// Its epoch in that transaction.
    pub producer_epoch: ProducerEpoch,
    /// Sequence of its first record.
    pub base_sequence: i32,
    /// True if the producer's epoch is raised with each transaction (transaction version 2), so
    /// that each starts with sequence 0.
    pub supports_epoch_bump: bool,
}

/// A producer that is about to start a transaction.
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

    /// True if `batch` is the marker of the previous transaction.
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

/// Transactions of one log; see the module documentation. Never locked while the disk works.
#[derive(Debug, Default)]
pub(crate) struct Transactions(Mutex<Known>);

impl Transactions {
    /// The transactions of a log that is being opened.
    pub(crate) fn of(producers: &ProducerStateManager) -> Transactions {
        let transactions = Transactions::default();
        transactions.reload(producers);
        transactions
    }

    /// The guard for a verification request; `None` if the transaction is open.
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

    /// Removes a guard whose producer the coordinator does not have. A later guard of the same
    /// producer is kept.
    pub(crate) fn abandon(&self, producer_id: ProducerId, guard: VerificationGuard) {
        let mut known = self.0.lock();
        if known.entries.get(&producer_id).is_some_and(|entry| entry.guard == guard) {
            known.entries.remove(&producer_id);
        }
    }

    /// The conditions for an append of `batch`.
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

    /// Updates the transactions after any append of a transactional batch or a marker.
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

    /// Replaces the open transactions after the producer state was read again. The guards are
    /// outdated.
    pub(crate) fn reload(&self, producers: &ProducerStateManager) {
        let mut known = self.0.lock();
        known.entries.clear();
        known.open = producers.open_transactions().collect();
    }

    /// Removes guards that were not used in time.
    pub(crate) fn expire(&self, now_ms: i64, expiration_ms: i64) {
        let is_kept = |entry: &Entry| now_ms.saturating_sub(entry.begun_ms) < expiration_ms;
        self.0.lock().entries.retain(|_, entry| is_kept(entry));
    }
}
