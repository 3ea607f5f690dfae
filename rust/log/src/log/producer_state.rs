//! The state that a partition keeps for each producer: sequences for idempotence, open
//! transactions.
//!
//! # Theory of operation
//! The [`ProducerEntry`] of a producer id holds its epoch and its last five batches.
//! [`ProducerStateManager::check`] validates a batch before the append and changes nothing;
//! [`ProducerStateManager::update`] is called after the append. The leader has already checked
//! replicated and recovered batches: for them only `update` is called.
//!
//! A transaction is *ongoing* from its first batch to its marker, and *unreplicated* from its
//! marker until the high watermark has passed the marker. The first offset of the oldest
//! transaction of both kinds bounds the last stable offset.
//!
//! The state is a function of the log: it is rebuilt from a snapshot (the last batch of each
//! producer) and the batches after it.

use std::collections::{BTreeMap, HashMap};

use pykafka_record::{BatchHeader, EndTransactionMarker, NO_SEQUENCE, ProducerEpoch, ProducerId};

pub(super) mod batches;
pub(crate) mod snapshot;
#[cfg(test)]
mod tests;

/// Number of cached batches of a producer: the maximum of a client's requests in flight.
const BATCHES_KEPT: usize = 5;

/// The first transaction version in which each transaction has a separate epoch (KIP-890).
const RAISES_EPOCH_VERSION_MIN: i16 = 2;

/// The source of a batch, which decides about the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendOrigin {
    /// A client: everything is checked.
    Client,
    /// A coordinator of this node: epochs are checked, sequences are not.
    Coordinator,
    /// A leader, which has checked the batch.
    Replication,
}

/// The fields of a data batch that matter for the producer state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSummary {
    /// Id of the idempotent producer, if there is one.
    pub producer_id: ProducerId,
    /// Its epoch in this batch; −1 without a producer id.
    pub producer_epoch: ProducerEpoch,
    /// Sequence of the first record.
    pub base_sequence: i32,
    /// Sequence of the last record.
    pub last_sequence: i32,
    /// Offset of the first record.
    pub first_offset: i64,
    /// Offset of the last record, inclusive.
    pub last_offset: i64,
    /// The header's max timestamp.
    pub max_timestamp: i64,
    /// True if the batch is part of a transaction.
    pub transactional: bool,
}

impl BatchSummary {
    /// The fields of a batch's header.
    pub fn of(batch: &BatchHeader<'_>) -> Self {
        BatchSummary {
            producer_id: batch.producer_id(),
            producer_epoch: batch.producer_epoch(),
            base_sequence: batch.base_sequence(),
            last_sequence: batch.last_sequence(),
            first_offset: batch.base_offset(),
            last_offset: batch.last_offset(),
            max_timestamp: batch.max_timestamp(),
            transactional: batch.is_transactional(),
        }
    }

    /// True if the batch belongs to an idempotent producer.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id.is_some()
    }
}

/// A batch that is cached to detect duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchMetadata {
    /// Sequence of its last record.
    pub last_sequence: i32,
    /// Offset of its last record.
    pub last_offset: i64,
    /// Last offset minus first.
    pub offset_delta: i32,
    /// Its max timestamp.
    pub timestamp: i64,
}

impl BatchMetadata {
    /// Offset of its first record.
    pub fn first_offset(&self) -> i64 {
        self.last_offset - i64::from(self.offset_delta)
    }

    /// Sequence of its first record, with wraparound.
    pub fn first_sequence(&self) -> i32 {
        let first = i64::from(self.last_sequence) - i64::from(self.offset_delta);
        let wrapped = if first < 0 { first + (1 << 31) } else { first };
        i32::try_from(wrapped).unwrap_or(NO_SEQUENCE)
    }
}

/// One producer's state on this partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerEntry {
    /// The producer whose state this is.
    pub producer_id: ProducerId,
    /// Newest epoch.
    pub producer_epoch: ProducerEpoch,
    /// Epoch of the transaction coordinator that wrote the last marker; −1 without a marker.
    pub coordinator_epoch: i32,
    /// Timestamp of the last batch or marker, from which the expiration time counts.
    pub last_timestamp: i64,
    /// First offset of its open transaction.
    pub current_txn_first_offset: Option<i64>,
    /// Cached batches, oldest first, at most five.
    batches: Vec<BatchMetadata>,
}

impl ProducerEntry {
    fn new(producer_id: ProducerId) -> Self {
        ProducerEntry {
            producer_id,
            producer_epoch: ProducerEpoch::NONE,
            coordinator_epoch: -1,
            last_timestamp: -1,
            current_txn_first_offset: None,
            batches: Vec::new(),
        }
    }

    /// The cached batches, oldest first.
    pub fn batches(&self) -> &[BatchMetadata] {
        &self.batches
    }

    /// Sequence of the last record; −1 if there was only a marker in this epoch.
    pub fn last_sequence(&self) -> i32 {
        self.batches.last().map_or(NO_SEQUENCE, |batch| batch.last_sequence)
    }

    /// Offset of the last data record; −1 if there was only a marker.
    pub fn last_data_offset(&self) -> i64 {
        self.batches.last().map_or(-1, |batch| batch.last_offset)
    }

    /// The cached batch with exactly these sequences and this epoch.
    fn find_duplicate(&self, batch: &BatchSummary) -> Option<BatchMetadata> {
        if batch.producer_epoch != self.producer_epoch {
            return None;
        }
        let same = |known: &&BatchMetadata| {
            known.first_sequence() == batch.base_sequence
                && known.last_sequence == batch.last_sequence
        };
        self.batches.iter().find(same).copied()
    }

    fn set_epoch(&mut self, producer_epoch: ProducerEpoch) {
        if self.producer_epoch != producer_epoch {
            self.producer_epoch = producer_epoch;
            self.batches.clear();
        }
    }

    fn add_batch(&mut self, batch: &BatchSummary) {
        self.set_epoch(batch.producer_epoch);
        if self.batches.len() == BATCHES_KEPT {
            self.batches.remove(0);
        }
        self.batches.push(BatchMetadata {
            last_sequence: batch.last_sequence,
            last_offset: batch.last_offset,
            offset_delta: (batch.last_offset - batch.first_offset) as i32,
            timestamp: batch.max_timestamp,
        });
        self.last_timestamp = batch.max_timestamp;
    }

    fn check_sequence(&self, batch: &BatchSummary) -> Result<(), ProducerError> {
        let expected = if self.producer_epoch == ProducerEpoch::NONE {
            // Without an entry no sequence is out of order.
            return Ok(());
        } else if batch.producer_epoch == self.producer_epoch {
            next_sequence(self.last_sequence())
        } else {
            0
        };
        if batch.base_sequence == expected {
            return Ok(());
        }
        Err(ProducerError::OutOfOrderSequence {
            producer_id: self.producer_id,
            producer_epoch: batch.producer_epoch,
            found: batch.base_sequence,
            expected,
        })
    }

    fn check_epoch(&self, producer_epoch: ProducerEpoch) -> Result<(), ProducerError> {
        if producer_epoch >= self.producer_epoch {
            return Ok(());
        }
        Err(self.stale_epoch(producer_epoch))
    }

    /// From transaction version 2 on the coordinator raises the epoch before it writes a marker. So
    /// a marker with the current epoch is late, or the retry of the marker that ended the
    /// transaction (KAFKA-19999).
    fn check_marker_epoch(
        &self,
        producer_epoch: ProducerEpoch,
        transaction_version: i16,
    ) -> Result<(), ProducerError> {
        let raises_epoch = transaction_version >= RAISES_EPOCH_VERSION_MIN;
        if raises_epoch && producer_epoch == self.producer_epoch && self.is_open() {
            return Err(self.stale_epoch(producer_epoch));
        }
        self.check_epoch(producer_epoch)
    }

    fn stale_epoch(&self, found: ProducerEpoch) -> ProducerError {
        let (producer_id, current) = (self.producer_id, self.producer_epoch);
        ProducerError::InvalidProducerEpoch { producer_id, found, current }
    }

    fn is_open(&self) -> bool {
        self.current_txn_first_offset.is_some()
    }
}

/// Conditions for a client's batch to become part of a transaction. The default has no conditions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// The transaction must be open in the epoch of the batch.
    pub must_be_open: bool,
    /// The lowest known sequence of the transaction: a batch with a higher one must not be first.
    pub sequence_max: Option<i32>,
    /// The first known batch of the producer must have sequence 0.
    pub begins_at_zero: bool,
}

impl Expected {
    fn check_open(
        &self,
        entry: Option<&ProducerEntry>,
        batch: &BatchSummary,
    ) -> Result<(), ProducerError> {
        let is_open = entry
            .is_some_and(|entry| entry.is_open() && entry.producer_epoch == batch.producer_epoch);
        if is_open || !self.must_be_open {
            return Ok(());
        }
        Err(ProducerError::NotInTransaction { producer_id: batch.producer_id })
    }

    fn check_sequence(
        &self,
        entry: Option<&ProducerEntry>,
        batch: &BatchSummary,
    ) -> Result<(), ProducerError> {
        let is_unknown = entry.is_none_or(|entry| entry.batches.is_empty());
        let sequence_max = match self.sequence_max {
            _ if self.begins_at_zero && is_unknown => 0,
            Some(lowest) => lowest,
            None => return Ok(()),
        };
        if batch.base_sequence <= sequence_max {
            return Ok(());
        }
        Err(ProducerError::OutOfOrderSequence {
            producer_id: batch.producer_id,
            producer_epoch: batch.producer_epoch,
            found: batch.base_sequence,
            expected: sequence_max,
        })
    }
}

/// The next sequence; 0 after 2³¹−1.
fn next_sequence(last: i32) -> i32 {
    last.checked_add(1).unwrap_or(0)
}

/// The reason why a batch or a marker is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProducerError {
    /// The batch is neither the next one nor a cached one.
    #[error(
        "out of order sequence number for producer {producer_id} in epoch {producer_epoch}: \
         {found} instead of {expected}"
    )]
    OutOfOrderSequence {
        /// The producer that sent the batch.
        producer_id: ProducerId,
        /// Epoch of the batch.
        producer_epoch: ProducerEpoch,
        /// First sequence of the batch.
        found: i32,
        /// The expected sequence.
        expected: i32,
    },
    /// A newer instance of the producer has written to the log.
    #[error(
        "epoch {found} of producer {producer_id} is smaller than the last seen epoch {current}"
    )]
    InvalidProducerEpoch {
        /// The producer of the batch or marker.
        producer_id: ProducerId,
        /// Epoch of the batch or marker.
        found: ProducerEpoch,
        /// Newest epoch.
        current: ProducerEpoch,
    },
    /// A write outside of a transaction while one is open.
    #[error("expected transactional write from producer {producer_id}")]
    InvalidTxnState {
        /// The producer that sent the batch.
        producer_id: ProducerId,
    },
    /// A write to a transaction that is not open and was not verified.
    #[error("a record of producer {producer_id} was not part of an ongoing transaction")]
    NotInTransaction {
        /// The producer that sent the batch.
        producer_id: ProducerId,
    },
    /// A newer transaction coordinator has written to the log.
    #[error(
        "coordinator epoch {found} for producer {producer_id} is smaller than the last seen {current}"
    )]
    TransactionCoordinatorFenced {
        /// The producer whose transaction the marker ends.
        producer_id: ProducerId,
        /// Epoch of the marker.
        found: i32,
        /// Newest epoch.
        current: i32,
    },
}

/// The result for an accepted batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// It is the next one and must be appended.
    Accepted,
    /// It was appended before at these offsets. Do not append it again; return these.
    Duplicate(BatchMetadata),
}

/// An end marker in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendedMarker {
    /// The producer whose transaction it ends.
    pub producer_id: ProducerId,
    /// Its epoch when the marker was written.
    pub producer_epoch: ProducerEpoch,
    /// The decision and the coordinator's epoch.
    pub marker: EndTransactionMarker,
    /// Offset of the marker.
    pub offset: i64,
    /// Timestamp of the marker.
    pub timestamp: i64,
}

/// A transaction whose marker was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedTxn {
    /// The producer whose transaction ended.
    pub producer_id: ProducerId,
    /// Offset of its first record.
    pub first_offset: i64,
    /// Offset of its marker.
    pub last_offset: i64,
    /// True if the transaction was aborted.
    pub aborted: bool,
}

/// The producer state of one partition.
#[derive(Debug, PartialEq, Eq)]
pub struct ProducerStateManager {
    expiration_ms: i64,
    producers: HashMap<ProducerId, ProducerEntry>,
    /// Open transactions: first offset → producer id.
    ongoing: BTreeMap<i64, ProducerId>,
    /// Ended transactions whose marker the high watermark has not passed: first offset → offset of
    /// the marker.
    unreplicated: BTreeMap<i64, i64>,
    map_end_offset: i64,
}

impl ProducerStateManager {
    /// Empty state at offset 0. Producers expire `expiration_ms` after their last batch.
    pub fn new(expiration_ms: i64) -> Self {
        ProducerStateManager {
            expiration_ms,
            producers: HashMap::new(),
            ongoing: BTreeMap::new(),
            unreplicated: BTreeMap::new(),
            map_end_offset: 0,
        }
    }

    /// Validates a data batch before it is appended; changes nothing. The batch's offsets do not
    /// matter.
    pub fn check(
        &self,
        batch: &BatchSummary,
        origin: AppendOrigin,
    ) -> Result<Check, ProducerError> {
        self.check_expected(batch, origin, &Expected::default())
    }

    /// Validates like [`ProducerStateManager::check`], and also checks that `batch` may be part of
    /// its transaction.
    pub fn check_expected(
        &self,
        batch: &BatchSummary,
        origin: AppendOrigin,
        expected: &Expected,
    ) -> Result<Check, ProducerError> {
        if !batch.has_producer_id() || origin == AppendOrigin::Replication {
            return Ok(Check::Accepted);
        }
        let entry = self.producers.get(&batch.producer_id);
        if origin == AppendOrigin::Client
            && let Some(known) = entry.and_then(|entry| entry.find_duplicate(batch))
        {
            return Ok(Check::Duplicate(known));
        }
        if let Some(entry) = entry {
            entry.check_epoch(batch.producer_epoch)?;
        }
        expected.check_open(entry, batch)?;
        if origin == AppendOrigin::Client {
            expected.check_sequence(entry, batch)?;
        }
        let Some(entry) = entry else { return Ok(Check::Accepted) };
        if origin == AppendOrigin::Client {
            entry.check_sequence(batch)?;
        }
        if entry.is_open() && !batch.transactional {
            return Err(ProducerError::InvalidTxnState { producer_id: batch.producer_id });
        }
        Ok(Check::Accepted)
    }

    /// A copy of the state of some producers, to validate batches before the previous ones are
    /// appended.
    #[must_use]
    pub fn excerpt(&self, producer_ids: impl Iterator<Item = ProducerId>) -> ProducerStateManager {
        let mut excerpt = ProducerStateManager::new(self.expiration_ms);
        for producer_id in producer_ids {
            if let Some(entry) = self.producers.get(&producer_id) {
                excerpt.producers.entry(producer_id).or_insert_with(|| entry.clone());
            }
        }
        excerpt
    }

    /// Validates a marker before it is appended; changes nothing.
    pub fn check_marker(
        &self,
        producer_id: ProducerId,
        producer_epoch: ProducerEpoch,
        coordinator_epoch: i32,
        transaction_version: i16,
    ) -> Result<(), ProducerError> {
        let Some(entry) = self.producers.get(&producer_id) else {
            return Ok(());
        };
        entry.check_marker_epoch(producer_epoch, transaction_version)?;
        if coordinator_epoch < entry.coordinator_epoch {
            return Err(ProducerError::TransactionCoordinatorFenced {
                producer_id,
                found: coordinator_epoch,
                current: entry.coordinator_epoch,
            });
        }
        Ok(())
    }

    /// Updates the state with an appended data batch.
    pub fn update(&mut self, batch: &BatchSummary) {
        self.map_end_offset = self.map_end_offset.max(batch.last_offset.saturating_add(1));
        if !batch.has_producer_id() {
            return;
        }
        let entry = self.entry(batch.producer_id);
        entry.add_batch(batch);
        if batch.transactional && entry.current_txn_first_offset.is_none() {
            entry.current_txn_first_offset = Some(batch.first_offset);
            self.ongoing.insert(batch.first_offset, batch.producer_id);
        }
    }

    /// Updates the state with an appended end marker.
    ///
    /// Returns the transaction that it ends; `None` if the producer had no open transaction. The
    /// transaction stays ongoing until [`ProducerStateManager::complete`], which is called after
    /// its entry in the transaction index.
    pub fn update_marker(&mut self, appended: &AppendedMarker) -> Option<CompletedTxn> {
        let AppendedMarker { producer_id, producer_epoch, marker, offset, timestamp } = *appended;
        let completed = self.ended_by(appended);
        self.map_end_offset = self.map_end_offset.max(offset.saturating_add(1));
        let entry = self.entry(producer_id);
        entry.current_txn_first_offset = None;
        entry.set_epoch(producer_epoch);
        entry.coordinator_epoch = marker.coordinator_epoch;
        entry.last_timestamp = timestamp;
        completed
    }

    /// The transaction that a marker would end, if its producer has an open one.
    pub fn ended_by(&self, appended: &AppendedMarker) -> Option<CompletedTxn> {
        let entry = self.producers.get(&appended.producer_id)?;
        Some(CompletedTxn {
            producer_id: appended.producer_id,
            first_offset: entry.current_txn_first_offset?,
            last_offset: appended.offset,
            aborted: !appended.marker.committed,
        })
    }

    /// The last stable offset after `completed`, for its entry in the transaction index: the first
    /// offset of the oldest open transaction of another producer, otherwise the end of this one.
    pub fn last_stable_offset_with(&self, completed: &CompletedTxn) -> i64 {
        let others = self.ongoing.iter().find(|(_, producer)| **producer != completed.producer_id);
        others.map_or(completed.last_offset.saturating_add(1), |(first_offset, _)| *first_offset)
    }

    /// Marks a transaction as ended. From now on it waits for the high watermark.
    pub fn complete(&mut self, completed: &CompletedTxn) {
        self.ongoing.remove(&completed.first_offset);
        self.unreplicated.insert(completed.first_offset, completed.last_offset);
    }

    /// First offset of the oldest transaction that is open, or whose marker the high watermark has
    /// not passed.
    pub fn first_unstable_offset(&self) -> Option<i64> {
        let ongoing = self.ongoing.first_key_value().map(|(offset, _)| *offset);
        let unreplicated = self.unreplicated.first_key_value().map(|(offset, _)| *offset);
        ongoing.into_iter().chain(unreplicated).min()
    }

    /// Removes ended transactions whose marker is below `high_watermark` (exclusive).
    pub fn on_high_watermark_updated(&mut self, high_watermark: i64) {
        self.unreplicated.retain(|_, marker| *marker >= high_watermark);
    }

    /// Follows a higher log start offset. Entries are kept: a producer may still retry deleted
    /// batches.
    pub fn on_log_start_offset_updated(&mut self, log_start_offset: i64) {
        self.on_high_watermark_updated(log_start_offset);
        self.map_end_offset = self.map_end_offset.max(log_start_offset);
    }

    /// Resets the state to that of an empty log that starts at `offset`.
    pub fn truncate_fully_and_start_at(&mut self, offset: i64) {
        self.producers.clear();
        self.ongoing.clear();
        self.unreplicated.clear();
        self.map_end_offset = offset;
    }

    /// Sets `producer.id.expiration.ms`.
    pub fn set_expiration_ms(&mut self, expiration_ms: i64) {
        self.expiration_ms = expiration_ms;
    }

    /// Removes producers without a batch for the expiration time and without an open transaction.
    pub fn expire(&mut self, now_ms: i64) {
        let expiration_ms = self.expiration_ms;
        self.producers.retain(|_, entry| !is_expired(entry, now_ms, expiration_ms));
    }

    /// Offset (exclusive) up to which the state contains the log.
    pub fn map_end_offset(&self) -> i64 {
        self.map_end_offset
    }

    /// Sets the offset (exclusive) up to which the log was read, after batches without effect on
    /// the state.
    pub fn set_map_end_offset(&mut self, offset: i64) {
        self.map_end_offset = offset;
    }

    /// The entry of one producer.
    pub fn get(&self, producer_id: ProducerId) -> Option<&ProducerEntry> {
        self.producers.get(&producer_id)
    }

    /// The epoch of a producer's open transaction.
    pub(crate) fn open_epoch(&self, producer_id: ProducerId) -> Option<ProducerEpoch> {
        let entry = self.producers.get(&producer_id).filter(|entry| entry.is_open())?;
        Some(entry.producer_epoch)
    }

    /// The producers with open transactions, and the epochs of these.
    pub(crate) fn open_transactions(
        &self,
    ) -> impl Iterator<Item = (ProducerId, ProducerEpoch)> + '_ {
        let open = self.producers.values().filter(|entry| entry.is_open());
        open.map(|entry| (entry.producer_id, entry.producer_epoch))
    }

    /// The entries of all producers, by id.
    pub fn active_producers(&self) -> Vec<ProducerEntry> {
        let mut entries: Vec<ProducerEntry> = self.producers.values().cloned().collect();
        entries.sort_by_key(|entry| entry.producer_id);
        entries
    }

    /// True without any producer.
    pub fn is_empty(&self) -> bool {
        self.producers.is_empty()
    }

    fn entry(&mut self, producer_id: ProducerId) -> &mut ProducerEntry {
        self.producers.entry(producer_id).or_insert_with(|| ProducerEntry::new(producer_id))
    }
}

fn is_expired(entry: &ProducerEntry, now_ms: i64, expiration_ms: i64) -> bool {
    entry.current_txn_first_offset.is_none()
        && now_ms.saturating_sub(entry.last_timestamp) >= expiration_ms
}
