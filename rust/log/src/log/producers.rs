//! Updates producer state and aborted transactions for each batch that enters the log, appended or
//! replayed.

use std::sync::Arc;

use pykafka_record::Batch;

use super::state::{State, Status};
use crate::disk::OpenMode;
use crate::error::StorageError;
use crate::file_names::{FileKind, file_name};
use crate::log::producer_state::batches::{entry_of, marker_of, note_batch};
use crate::log::recovery::dir_view::DirView;
use crate::log::recovery::directory_listing;
use crate::log::recovery::snapshots::{load_producers, replay};
use crate::log::types::Shared;
use crate::segment::Segment;
use crate::segment::transaction_index::{AbortedTxn, ENTRY_SIZE};

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

/// Reloads the producer state at the log end, after a truncation.
pub(crate) fn reload_producers(state: &mut State, shared: &Shared) -> Result<(), StorageError> {
    let dir = DirView::new(&*shared.disk, &shared.dir);
    let limit = state.log_end_offset;
    let first = state.segments.first().map_or(limit, Segment::base_offset);
    let snapshots = directory_listing::snapshots(&dir.list()?.unwrap_or_default());
    let (range, now_ms) = (first..=limit, shared.clock.now_ms());
    let loaded = load_producers(&dir, &snapshots, range, now_ms, &mut state.producers)?;
    state.snapshot_offset = loaded.offset;
    for (offset, _) in loaded.unreadable {
        remove_snapshot(shared, offset)?;
    }
    let from = state.segment_of(state.producers.map_end_offset()).unwrap_or(0);
    for segment in state.segments.get(from..).unwrap_or_default() {
        replay(&dir, (segment.base_offset(), segment.size), &mut state.producers)?;
    }
    // Transactions that ended below the high watermark are stable, as before.
    state.producers.on_high_watermark_updated(state.high_watermark);
    state.transactions.reload(&state.producers);
    Ok(())
}

/// Removes snapshots after `offset`.
pub(crate) fn remove_snapshots_behind(shared: &Shared, offset: i64) -> Result<(), StorageError> {
    let dir = DirView::new(&*shared.disk, &shared.dir);
    let snapshots = directory_listing::snapshots(&dir.list()?.unwrap_or_default());
    let behind = snapshots.into_iter().filter(|found| *found > offset);
    behind.into_iter().try_for_each(|found| remove_snapshot(shared, found))
}

fn remove_snapshot(shared: &Shared, offset: i64) -> Result<(), StorageError> {
    let path = shared.dir.join(file_name(offset, FileKind::Snapshot));
    shared.disk.remove_file(&path).map_err(|error| StorageError::io("remove", &path, error))
}
