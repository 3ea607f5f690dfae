//! Updates producer state and aborted transactions for each batch that enters the log, appended or
//! replayed.

use std::sync::Arc;

use pykafka_record::{Batch, BatchHeader, EndTransactionMarker, Limits};

use super::Shared;
use super::state::{State, Status};
use crate::disk::OpenMode;
use crate::error::StorageError;
use crate::file_names::FileKind;
use crate::log::producer_state::{
    AppendedMarker, BatchSummary, CompletedTxn, ProducerStateManager,
};
use crate::segment::scan::CHUNK_BYTES_MAX;
use crate::segment::transaction_index::{AbortedTxn, ENTRY_SIZE};

/// Upper bound of a marker, which has 78 bytes. Recovery has only this many bytes of a batch in
/// memory, so a larger control batch is not a marker, neither there nor in an append.
const MARKER_BYTES_MAX: usize = CHUNK_BYTES_MAX;
/// Decompression limits of a marker.
const MARKER: Limits = Limits { bytes_max: MARKER_BYTES_MAX, ..Limits::NONE };

impl State {
    /// Updates the producers with a batch of the log; returns the transaction that it aborts.
    pub(crate) fn note_producer(&mut self, batch: &Batch<'_>) -> Option<AbortedTxn> {
        let aborted = note_batch(&mut self.producers, batch, Some(*batch));
        if batch.is_transactional() && batch.has_producer_id() {
            self.transactions.appended(&self.producers, batch);
        }
        aborted
    }

    /// Writes the entry of `bytes`, a batch before its append, to the active segment's transaction
    /// index if it aborts a transaction. If the disk has no space for the entry, the marker is not
    /// appended. Returns the new entries of the index.
    pub(crate) fn reserve_aborted(
        &mut self,
        shared: &Shared,
        bytes: &[u8],
    ) -> Result<Option<Arc<[AbortedTxn]>>, StorageError> {
        let Some(aborted) = self.aborted_by(bytes) else { return Ok(None) };
        let written = self.write_aborted(shared, aborted);
        // A full disk may have written half of it.
        let written = written.inspect_err(|_| self.release_aborted(shared));
        self.fail(written).map(Some)
    }

    fn aborted_by(&self, bytes: &[u8]) -> Option<AbortedTxn> {
        let (batch, _) = Batch::split(bytes).ok()?;
        if !batch.has_producer_id() || !batch.is_control() {
            return None;
        }
        let completed = self.producers.ended_by(&marker_of(&batch)?)?;
        entry_of(&self.producers, &completed)
    }

    /// Adds a transaction that a marker in the log has aborted. `reserved` has the entries that
    /// were written before the append.
    pub(crate) fn append_aborted(
        &mut self,
        shared: &Shared,
        aborted: AbortedTxn,
        reserved: Option<Arc<[AbortedTxn]>>,
    ) -> Result<(), StorageError> {
        let reserved = reserved.filter(|entries| entries.last() == Some(&aborted));
        let result = reserved.map_or_else(|| self.write_aborted(shared, aborted), Ok);
        if let Err(error) = &result
            && error.is_refusal()
        {
            // The marker is in the log already. Without this entry readers would see aborted
            // records.
            self.status = Status::Failed(error.to_string().into());
        }
        let entries = self.fail(result)?;
        let files = &self.segments.last().expect("a batch was appended to it").files;
        files.set_aborted(entries);
        let path = files.path(FileKind::TransactionIndex);
        self.unsynced.add_file(path);
        Ok(())
    }

    /// Writes an entry after those in the active segment's transaction index; returns all of them.
    fn write_aborted(
        &self,
        shared: &Shared,
        aborted: AbortedTxn,
    ) -> Result<Arc<[AbortedTxn]>, StorageError> {
        let files = &self.segments.last().expect("it is made before it is written to").files;
        let known = files.aborted()?;
        let position = (known.len() * ENTRY_SIZE) as u64;
        shared
            .disk
            .open(&files.path(FileKind::TransactionIndex), OpenMode::Create)
            .and_then(|file| file.write_at(&aborted.encode(), position))
            .map_err(files.error("write", FileKind::TransactionIndex))?;
        Ok(known.iter().copied().chain([aborted]).collect())
    }

    /// Removes the reserved entry of a marker that was not appended, if possible.
    pub(crate) fn release_aborted(&self, shared: &Shared) {
        let files = &self.segments.last().expect("it is made before it is written to").files;
        let path = files.path(FileKind::TransactionIndex);
        if let (Ok(known), Ok(file)) = (files.aborted(), shared.disk.open(&path, OpenMode::Write)) {
            // If it cannot be removed, it is not read, and the retry of the marker overwrites it.
            let _ = file.set_len((known.len() * ENTRY_SIZE) as u64);
        }
    }
}

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
    let aborted = entry_of(producers, &completed);
    producers.complete(&completed);
    aborted
}

/// The transaction index entry of an ended transaction; `None` if it was committed.
fn entry_of(producers: &ProducerStateManager, completed: &CompletedTxn) -> Option<AbortedTxn> {
    completed.aborted.then(|| AbortedTxn {
        producer_id: completed.producer_id,
        first_offset: completed.first_offset,
        last_offset: completed.last_offset,
        last_stable_offset: producers.last_stable_offset_with(completed),
    })
}
