//! Transaction state for reading a log from its beginning.

use std::collections::{HashMap, HashSet};

use pykafka_record::{Batch, BatchHeader, EndTransactionMarker, Limits, ProducerId};

use crate::segment::transaction_index::AbortedTxn;

/// Decompression limits of a marker, which has 78 bytes.
const MARKER: Limits = Limits { bytes_max: 64 << 10, ..Limits::NONE };

/// The aborted transactions of a log, found by batch.
#[derive(Debug, Default)]
pub(crate) struct Aborted {
    /// First and last offsets of each producer's transactions, in order: they do not overlap.
    by_producer: HashMap<ProducerId, Vec<(i64, i64)>>,
}

impl Aborted {
    pub(crate) fn of(transactions: &[AbortedTxn]) -> Aborted {
        let mut by_producer: HashMap<_, Vec<_>> = HashMap::new();
        for txn in transactions {
            by_producer
                .entry(txn.producer_id)
                .or_default()
                .push((txn.first_offset, txn.last_offset));
        }
        for ranges in by_producer.values_mut() {
            ranges.sort_unstable();
        }
        Aborted { by_producer }
    }

    /// True if a data batch belongs to an aborted transaction.
    pub(crate) fn has(&self, batch: &BatchHeader<'_>) -> bool {
        if !batch.is_transactional() {
            return false;
        }
        let Some(ranges) = self.by_producer.get(&batch.producer_id()) else { return false };
        let before = ranges.partition_point(|(first, _)| *first <= batch.base_offset());
        before.checked_sub(1).is_some_and(|index| batch.base_offset() <= ranges[index].1)
    }
}

/// Producers whose current transaction has data, when reading from the log's beginning.
#[derive(Debug, Default)]
pub(crate) struct OpenData(HashSet<ProducerId>);

impl OpenData {
    /// Adds a data batch.
    pub(crate) fn pass_data(&mut self, batch: &BatchHeader<'_>) {
        if batch.is_transactional() {
            self.0.insert(batch.producer_id());
        }
    }

    /// Ends a producer's transaction; returns true if it still has data in the log.
    pub(crate) fn pass_marker(&mut self, batch: &BatchHeader<'_>) -> bool {
        self.0.remove(&batch.producer_id())
    }
}

/// Kinds of control batches for a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    /// Ends a transaction.
    Marker,
    /// A batch whose marker was removed before, by Apache Kafka.
    Empty,
    /// Unknown; it is kept.
    Other,
}

impl Control {
    pub(crate) fn of(batch: &Batch<'_>) -> Control {
        if batch.records_count() == 0 {
            return Control::Empty;
        }
        let mut scratch = Vec::new();
        let first = batch.records(&mut scratch, MARKER).ok().and_then(|mut records| records.next());
        let marker = first.and_then(Result::ok).and_then(|record| {
            EndTransactionMarker::from_record(record.key?, record.value.unwrap_or_default())
        });
        if marker.is_some() && batch.has_producer_id() { Control::Marker } else { Control::Other }
    }
}
