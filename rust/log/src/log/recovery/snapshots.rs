//! Loads producer state from its newest snapshot and the batches after it.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::dir_view::DirView;
use super::inspection::Inspection;
use super::stored_indexes::position_of;
use crate::error::StorageError;
use crate::file_names::{FileKind, file_name};
use crate::log::producer_state::ProducerStateManager;
use crate::log::producer_state::batches::note_batch;
use crate::segment::scan::{BatchScanner, ScanError};

/// The snapshot from which the producer state was loaded.
#[derive(Default)]
pub(in crate::log) struct Loaded {
    /// Its offset; 0 without a snapshot.
    pub(in crate::log) offset: i64,
    /// Newer snapshots that cannot be used, with the reasons.
    pub(in crate::log) unreadable: Vec<(i64, String)>,
}

/// Loads the newest readable one of `snapshots` within `range`; without one, the producer state is
/// empty at the start of `range`.
pub(in crate::log) fn load_producers(
    dir: &DirView<'_>,
    snapshots: &BTreeSet<i64>,
    range: RangeInclusive<i64>,
    now_ms: i64,
    producers: &mut ProducerStateManager,
) -> Result<Loaded, StorageError> {
    let mut loaded = Loaded::default();
    for offset in snapshots.iter().rev().copied().filter(|offset| range.contains(offset)) {
        let name = file_name(offset, FileKind::Snapshot);
        let Some(bytes) = dir.read_if_there(&name)? else { continue };
        match producers.load_snapshot(&bytes, offset, now_ms) {
            Ok(()) => {
                producers.set_map_end_offset(offset);
                loaded.offset = offset;
                return Ok(loaded);
            }
            Err(error) => loaded.unreadable.push((offset, error.to_string())),
        }
    }
    producers.truncate_fully_and_start_at(*range.start());
    Ok(loaded)
}

/// Updates producers with the batches of a trusted segment, from the end of their state on.
pub(in crate::log) fn replay(
    dir: &DirView<'_>,
    (base_offset, size): (i64, u64),
    producers: &mut ProducerStateManager,
) -> Result<(), StorageError> {
    let map_end_offset = producers.map_end_offset();
    let name = file_name(base_offset, FileKind::Log);
    let file = dir.open(&name)?;
    let position = position_of(dir, base_offset, map_end_offset)?;
    let mut scanner = BatchScanner::new(&*file, position, size);
    loop {
        match scanner.next() {
            Ok(Some(batch)) => {
                if batch.base_offset() >= map_end_offset {
                    note_batch(producers, &batch, batch.whole());
                }
            }
            Ok(None) => return Ok(()),
            Err(ScanError::Io(error)) => return Err(dir.error("read", &name)(error)),
            Err(ScanError::Bad(error)) => {
                let (path, position) = (dir.path(&name), scanner.position());
                return Err(StorageError::Malformed { path, position, reason: error.to_string() });
            }
        }
    }
}

impl Inspection<'_> {
    /// Loads the newest readable snapshot at or below `limit`.
    pub(super) fn load_producers(&mut self, limit: i64) -> Result<(), StorageError> {
        let first = self.found.segments.first().map_or(limit, |segment| segment.base_offset);
        let (range, now_ms) = (first..=limit, self.input.now_ms);
        let producers = &mut self.found.producers;
        let loaded = load_producers(&self.dir, &self.snapshots, range, now_ms, producers)?;
        self.found.snapshot_offset = loaded.offset;
        for (offset, error) in loaded.unreadable {
            let name = file_name(offset, FileKind::Snapshot);
            self.warn(&name, &format!("{error}; producers are rebuilt"));
            self.snapshots.remove(&offset);
        }
        Ok(())
    }

    /// Adds the snapshot that a roll at the log end would have written, if it is missing.
    ///
    /// After a gap, an existing snapshot is replaced: it may contain batches that were lost in a
    /// power cut. The retries of their producer would be treated as duplicates.
    pub(super) fn note_boundary_snapshot(&mut self) {
        let found = &mut self.found;
        let end = found.log_end_offset;
        if found.producers.map_end_offset() < end {
            found.producers.set_map_end_offset(end);
        }
        let is_first = found.segments.first().map(|segment| segment.base_offset) == Some(end);
        if is_first || end <= found.snapshot_offset {
            return;
        }
        found.changes.snapshots.insert(end, found.producers.snapshot_bytes());
        found.snapshot_offset = end;
        self.snapshots.insert(end);
        self.bound_snapshots();
    }

    /// Drops the oldest of the new snapshots when they would take too much memory. A truncation
    /// then uses an older snapshot and replays more batches.
    fn bound_snapshots(&mut self) {
        let made = &mut self.found.changes.snapshots;
        let mut bytes: usize = made.values().map(Vec::len).sum();
        while bytes > self.input.snapshot_bytes_max && made.len() > 1 {
            let Some((offset, oldest)) = made.pop_first() else { return };
            bytes -= oldest.len();
            self.snapshots.remove(&offset);
        }
    }

    /// Drops all snapshots except those at base offsets of segments and the newest one.
    pub(super) fn drop_stray_snapshots(&mut self) {
        let Inspection { snapshots, found, .. } = self;
        let is_of_segment = |offset: i64| {
            found.segments.binary_search_by_key(&offset, |segment| segment.base_offset).is_ok()
        };
        snapshots.retain(|offset| {
            *offset <= found.log_end_offset
                && (*offset == found.snapshot_offset || is_of_segment(*offset))
        });
    }
}
