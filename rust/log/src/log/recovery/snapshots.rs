//! Producer state from its snapshots, and the batches behind the newest of them.

use crate::log::recovery::load::read_if_there;
use crate::log::state::State;
use crate::log::{Shared, StorageError, producers};
use crate::segment::scan::{BatchScanner, ScanError};
use crate::segment::{FileKind, Segment, parse_file_name};

/// Loads the newest readable snapshot at or below `limit`; without one, producers begin with the first segment.
pub(super) fn load_producers(
    state: &mut State,
    shared: &Shared,
    limit: i64,
    warnings: &mut Vec<String>,
) -> Result<(), StorageError> {
    let first = state.segments.first().map_or(limit, Segment::base_offset);
    let now_ms = shared.clock.now_ms();
    let mut offsets = snapshot_offsets(shared)?;
    while let Some(offset) = offsets.pop() {
        if offset > limit || offset < first {
            continue;
        }
        let path = State::snapshot_path(shared, offset);
        let Some(bytes) = read_if_there(&*shared.disk, &path)? else { continue };
        match state.producers.load_snapshot(&bytes, offset, now_ms) {
            Ok(()) => {
                state.producers.set_map_end_offset(offset);
                state.snapshot_offset = offset;
                return Ok(());
            }
            Err(error) => {
                warnings.push(format!("{}: {error}; producers are rebuilt", path.display()));
                remove_snapshot(state, shared, offset)?;
            }
        }
    }
    state.producers.truncate_fully_and_start_at(first);
    state.snapshot_offset = 0;
    Ok(())
}

/// Producer state at the log end, after a truncation.
pub(crate) fn reload_producers(state: &mut State, shared: &Shared) -> Result<(), StorageError> {
    load_producers(state, shared, state.log_end_offset, &mut Vec::new())?;
    let from = state.segment_of(state.producers.map_end_offset()).unwrap_or(0);
    for segment in state.segments.get(from..).unwrap_or_default().to_vec() {
        replay(state, &segment)?;
    }
    Ok(())
}

/// Offsets of the snapshots on disk, growing.
pub(super) fn snapshot_offsets(shared: &Shared) -> Result<Vec<i64>, StorageError> {
    let entries = shared.disk.list(&shared.dir);
    let entries = entries.map_err(|error| StorageError::io("list", &shared.dir, error))?;
    let mut offsets: Vec<_> = entries
        .iter()
        .filter_map(|entry| parse_file_name(entry.name.to_str()?))
        .filter_map(|(offset, kind)| (kind == FileKind::Snapshot).then_some(offset))
        .collect();
    offsets.sort_unstable();
    Ok(offsets)
}

/// Updates the producers with a segment that is believed, from where their state ends.
pub(super) fn replay(state: &mut State, segment: &Segment) -> Result<(), StorageError> {
    let map_end_offset = state.producers.map_end_offset();
    let files = &segment.files;
    let file = files.log()?;
    let mut scanner = BatchScanner::new(&*file, files.position_of(map_end_offset)?, segment.size);
    loop {
        match scanner.next() {
            Ok(Some((_, batch))) => {
                if batch.base_offset() >= map_end_offset {
                    producers::note_batch(&mut state.producers, &batch);
                }
            }
            Ok(None) => return Ok(()),
            Err(ScanError::Io(error)) => return Err(files.error("read", FileKind::Log)(error)),
            Err(ScanError::Bad(error)) => {
                let (path, position) = (files.path(FileKind::Log), scanner.position());
                return Err(StorageError::Malformed { path, position, reason: error.to_string() });
            }
        }
    }
}

/// Writes the snapshot that a roll at the log end would have written, if it is lost.
///
/// Behind a gap one that is there is replaced: it may tell of batches that a power cut took, and their producer,
/// sending them again, would be told that they are in the log.
pub(super) fn store_boundary_snapshot(
    state: &mut State,
    shared: &Shared,
) -> Result<(), StorageError> {
    if state.producers.map_end_offset() < state.log_end_offset {
        state.producers.set_map_end_offset(state.log_end_offset);
    }
    if state.check_writable().is_err() {
        return Ok(());
    }
    let is_first = state.segments.first().map(Segment::base_offset) == Some(state.log_end_offset);
    if is_first { Ok(()) } else { state.store_snapshot(shared) }
}

pub(super) fn remove_snapshot(
    state: &mut State,
    shared: &Shared,
    offset: i64,
) -> Result<(), StorageError> {
    if state.check_writable().is_err() {
        return Ok(());
    }
    let path = State::snapshot_path(shared, offset);
    shared.disk.remove_file(&path).map_err(|error| StorageError::io("remove", &path, error))
}

impl State {
    /// Removes snapshots behind `offset`.
    pub(crate) fn remove_snapshots(
        &mut self,
        shared: &Shared,
        offset: i64,
    ) -> Result<(), StorageError> {
        for found in snapshot_offsets(shared)? {
            if found > offset {
                remove_snapshot(self, shared, found)?;
            }
        }
        Ok(())
    }
}
