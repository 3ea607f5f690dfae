//! Producer state and aborted transactions as batches enter the log, live or replayed.

use pykafka_record::{Batch, BatchHeader, EndTransactionMarker, Limits};

use super::state::{State, Status};
use super::{Shared, StorageError};
use crate::disk::OpenMode;
use crate::log::producer_state::{AppendedMarker, BatchSummary, ProducerStateManager};
use crate::segment::FileKind;
use crate::segment::scan::CHUNK_BYTES_MAX;
use crate::segment::transaction_index::AbortedTxn;

/// A marker has 78 bytes. A control batch larger than what recovery has at hand of a batch is none, when it is appended
/// neither.
const MARKER_BYTES_MAX: usize = CHUNK_BYTES_MAX;
/// What a marker may inflate to.
const MARKER: Limits = Limits { bytes_max: MARKER_BYTES_MAX, ratio_max: usize::MAX };

impl State {
    /// Updates the producers with a batch of the log; returns the transaction it aborts, if it does.
    pub(crate) fn note_producer(&mut self, batch: &Batch<'_>) -> Option<AbortedTxn> {
        let aborted = note_batch(&mut self.producers, batch, Some(*batch));
        if batch.is_transactional() && batch.has_producer_id() {
            self.transactions.appended(&self.producers, batch);
        }
        aborted
    }

    /// Appends to the active segment's transaction index.
    pub(crate) fn append_aborted(
        &mut self,
        shared: &Shared,
        aborted: AbortedTxn,
    ) -> Result<(), StorageError> {
        let files = self.segments.last().expect("a batch was appended to it").files.clone();
        let result = files.aborted().and_then(|known| {
            let path = files.path(FileKind::TransactionIndex);
            let position = (known.len() * crate::segment::transaction_index::ENTRY_SIZE) as u64;
            shared
                .disk
                .open(&path, OpenMode::Create)
                .and_then(|file| file.write_at(&aborted.encode(), position))
                .map_err(files.error("write", FileKind::TransactionIndex))?;
            files.set_aborted(known.iter().copied().chain([aborted]).collect());
            Ok(path)
        });
        if let Err(error) = &result
            && error.is_refusal()
        {
            // The marker stands in the log already. Going on without this entry would show aborted records.
            self.status = Status::Failed(error.to_string().into());
        }
        let path = self.fail(result)?;
        self.unsynced.add_file(path);
        Ok(())
    }
}

/// Updates `producers` with a batch of the log; returns the transaction it aborts, if it does. `whole` is the same batch, if
/// its records are at hand: those of a marker are.
///
/// A marker that the state does not allow is skipped: the log already holds it, so it is history.
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

/// The epoch of the coordinator that wrote a marker; `None` if `batch` is none.
pub(super) fn coordinator_epoch(batch: &Batch<'_>) -> Option<i32> {
    marker_of(batch).map(|appended| appended.marker.coordinator_epoch)
}

fn marker_of(batch: &Batch<'_>) -> Option<AppendedMarker> {
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
    let last_stable_offset = producers.last_stable_offset_with(&completed);
    producers.complete(&completed);
    completed.aborted.then_some(AbortedTxn {
        producer_id: completed.producer_id,
        first_offset: completed.first_offset,
        last_offset: completed.last_offset,
        last_stable_offset,
    })
}
