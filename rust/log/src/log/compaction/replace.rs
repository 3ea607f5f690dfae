//! Replaces segments by the segment that was made from them.
//!
//! # Order
//! 1. The cleaned files are durable under their `.cleaned` names. Up to here a crash leaves the log
//!    unchanged.
//! 2. They are renamed to `.swap`, and the directory is synced. From here on recovery completes the
//!    replacement.
//! 3. The list with the new segment is published: new look-ups open the `.swap` files, or the plain
//!    ones once they exist. The old segments are withdrawn, and their files renamed to `.deleted`.
//! 4. The directory is synced, so that no old file reappears next to the new segment. The `.swap`
//!    files get their plain names.
//!
//! Apache Kafka also renames to `.swap` in any order: if a `.cleaned` file is left next to a
//! `.swap` file, both are removed (KAFKA-6264).

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::output;
use crate::error::StorageError;
use crate::file_names::{FileKind, SwapStage, file_name};
use crate::log::Log;
use crate::log::state::{State, Status};
use crate::log::types::Shared;
use crate::log::writing::Writing;
use crate::segment::withdrawn::Taken;
use crate::segment::{Segment, SegmentFiles};

impl Log {
    /// Replaces `sources`, which adjoin, by `cleaned`. Returns `false` without a change if the log
    /// has changed in between.
    ///
    /// Removes producer snapshots up to the last removed marker: they may contain an open
    /// transaction that this marker ended.
    pub(super) fn replace(
        &self,
        sources: &[Segment],
        cleaned: Segment,
        truncations: u64,
        last_marker_gone: Option<i64>,
    ) -> Result<bool, StorageError> {
        let mut state = self.write();
        state.check_writable()?;
        let first = match state.index_of_all(sources) {
            // A truncation may have removed the later records in favour of which records were
            // removed.
            Some(first) if self.truncations.load(Ordering::SeqCst) == truncations => first,
            _ => {
                output::remove(&self.shared, &cleaned.files)?;
                return Ok(false);
            }
        };
        if let Err(error) = state.prepare_swap(&self.shared, &cleaned, sources, last_marker_gone) {
            // Files that remain are removed by the next compaction.
            let _ = output::remove(&self.shared, &cleaned.files);
            return state.fail(Err(error));
        }
        let replaced = state.swap_in(&self.shared, first, sources.len(), cleaned);
        if let Err(error) = &replaced {
            // The state in memory and the files may differ. Recovery completes or undoes the
            // replacement.
            state.status = Status::Failed(error.to_string().into());
        }
        replaced.map(|()| true)
    }
}

impl Writing<'_> {
    fn swap_in(
        &mut self,
        shared: &Shared,
        first: usize,
        count: usize,
        cleaned: Segment,
    ) -> Result<(), StorageError> {
        let files = cleaned.files.clone();
        rename_all(shared, &files, SwapStage::Cleaned, SwapStage::Swapped)?;
        files.set_place(SwapStage::Swapped);
        sync_dir(shared)?;
        let taken: Vec<_> = self.segments.splice(first..first + count, [cleaned]).collect();
        let bases: Vec<_> = taken.iter().skip(1).map(Segment::base_offset).collect();
        let withdrawn = self.withdraw_replaced(Taken::of(taken));
        self.mark_segments_deleted(shared, &withdrawn)?;
        for base_offset in bases {
            self.mark_snapshot_deleted(shared, base_offset)?;
        }
        sync_dir(shared)?;
        rename_all(shared, &files, SwapStage::Swapped, SwapStage::Plain)?;
        files.set_place(SwapStage::Plain);
        sync_dir(shared)?;
        self.store_aborted_counts(shared)
    }
}

impl State {
    /// The index of `sources` in the log; `None` unless all of them are in it.
    fn index_of_all(&self, sources: &[Segment]) -> Option<usize> {
        let is_same = |one: &Segment, other: &Segment| Arc::ptr_eq(&one.files, &other.files);
        let wanted = sources.first()?;
        let first = self.segments.iter().position(|segment| is_same(segment, wanted))?;
        let found = self.segments.get(first..first + sources.len())?;
        found.iter().zip(sources).all(|(one, other)| is_same(one, other)).then_some(first)
    }

    /// Prepares the files that must be durable before the cleaned segment becomes part of the log.
    fn prepare_swap(
        &mut self,
        shared: &Shared,
        cleaned: &Segment,
        sources: &[Segment],
        last_marker_gone: Option<i64>,
    ) -> Result<(), StorageError> {
        let (base_offset, count) = (cleaned.base_offset(), cleaned.files.aborted_count());
        let is_source = |base| sources.iter().any(|source| source.base_offset() == base);
        self.lower_aborted_counts(shared, |base| match base {
            _ if base == base_offset => count,
            _ if is_source(base) => 0,
            _ => usize::MAX,
        })?;
        last_marker_gone.map_or(Ok(()), |offset| self.remove_snapshots_upto(shared, offset))
    }

    fn remove_snapshots_upto(&mut self, shared: &Shared, upto: i64) -> Result<(), StorageError> {
        let bases = self.segments.iter().map(Segment::base_offset);
        for offset in bases.take_while(|offset| *offset <= upto).collect::<Vec<_>>() {
            let path = shared.dir.join(file_name(offset, FileKind::Snapshot));
            match shared.disk.remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StorageError::io("remove", &path, error));
                }
                _ => self.forget_snapshot(offset),
            }
        }
        Ok(())
    }
}

/// Renames the existing files of a segment, the `.log` last.
fn rename_all(
    shared: &Shared,
    files: &SegmentFiles,
    from: SwapStage,
    to: SwapStage,
) -> Result<(), StorageError> {
    FileKind::SEGMENT.into_iter().try_for_each(|kind| {
        let (from, to) = (files.path_at(kind, from), files.path_at(kind, to));
        match shared.disk.rename(&from, &to) {
            // Most segments have no transaction index.
            Err(error) if error.kind() == io::ErrorKind::NotFound && kind != FileKind::Log => {
                Ok(())
            }
            renamed => renamed.map_err(|error| StorageError::io("rename", &from, error)),
        }
    })
}

fn sync_dir(shared: &Shared) -> Result<(), StorageError> {
    let synced = shared.disk.sync_dir(&shared.dir);
    synced.map_err(|error| StorageError::io("sync", &shared.dir, error))
}
