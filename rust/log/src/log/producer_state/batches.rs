//! The effect of a batch of the log on the state of producers.

use pykafka_record::{Batch, BatchHeader, EndTransactionMarker, Limits};

use super::{AppendedMarker, BatchSummary, CompletedTxn, ProducerStateManager};
use crate::segment::scan::CHUNK_BYTES_MAX;
use crate::segment::transaction_index::AbortedTxn;

/// Upper bound of a marker, which has 78 bytes. Recovery has only this many bytes of a batch in
/// memory, so a larger control batch is not a marker, neither there nor in an append.
const MARKER_BYTES_MAX: usize = CHUNK_BYTES_MAX;
/// Decompression limits of a marker.
const MARKER: Limits = Limits { bytes_max: MARKER_BYTES_MAX, ..Limits::NONE };

/// Updates `producers` with a batch of the log; returns the transaction that it aborts. `whole` is
/// the same batch if its records are in memory, as those of a marker always are.
///
/// A marker that the state does not allow is ignored, because it is in the log already.
pub(crate) fn note_batch(
    producers: &mut ProducerStateManager,
    batch: &BatchHeader<'_>,
    whole: Option<Batch<'_>>,
) -> Option<AbortedTxn> {
    let aborted = match (batch.has_producer_id(), batch.is_control()) {
        (true, false) => {
            producers.update(&BatchSummary::of(batch));
            None
        }
        (true, true) => whole.and_then(|batch| end_transaction(producers, &batch)),
        _ => None,
    };
    producers.set_map_end_offset(batch.next_offset());
    aborted
}

/// The epoch of the coordinator that wrote a marker; `None` if `batch` is not a marker.
pub(in crate::log) fn coordinator_epoch(batch: &Batch<'_>) -> Option<i32> {
    marker_of(batch).map(|appended| appended.marker.coordinator_epoch)
}

pub(in crate::log) fn marker_of(batch: &Batch<'_>) -> Option<AppendedMarker> {
    if batch.size() > MARKER_BYTES_MAX {
        return None;
    }
    let mut scratch = Vec::new();
    let mut records = batch.records(&mut scratch, MARKER).ok()?;
    let record = records.next()?.ok()?;
    Some(AppendedMarker {
        producer_id: batch.producer_id(),
        producer_epoch: batch.producer_epoch(),
        marker: EndTransactionMarker::from_record(record.key?, record.value?)?,
        offset: record.offset,
        timestamp: record.timestamp,
    })
}

fn end_transaction(producers: &mut ProducerStateManager, batch: &Batch<'_>) -> Option<AbortedTxn> {
    let completed = producers.update_marker(&marker_of(batch)?)?;
    let aborted = entry_of(producers, &completed);
    producers.complete(&completed);
    aborted
}

/// The transaction index entry of an ended transaction; `None` if it was committed.
pub(in crate::log) fn entry_of(
    producers: &ProducerStateManager,
    completed: &CompletedTxn,
) -> Option<AbortedTxn> {
    completed.aborted.then(|| AbortedTxn {
        producer_id: completed.producer_id,
        first_offset: completed.first_offset,
        last_offset: completed.last_offset,
        last_stable_offset: producers.last_stable_offset_with(completed),
    })
}
