//! The data of a look-up: the segments of a log at one moment, and their files.
//!
//! # Theory of operation
//! The list of segments is never changed in place. A roll, a retention pass and a truncation
//! publish a new list. A look-up keeps the list with which it started, and with it the handles of
//! its files. Two rules keep that list usable while segments are removed from the log:
//!
//! - Segments are *withdrawn* first: a list without them is published before any of their files is
//!   renamed, cut or replaced ([`super::writing::Writing::withdraw`]). A look-up that starts later
//!   does not see them.
//! - Withdrawn [`crate::segment::SegmentFiles`] no longer open files by name, since another file
//!   may have that name by then. The rest of a cut segment gets new ones.
//!
//! So a look-up that meets a withdrawn segment either uses an open handle, or fails and is repeated
//! on the current list ([`Log::undisturbed`]). It never blocks, and never reports this as an error
//! of the disk.

use std::sync::atomic::Ordering;

use super::Log;
use crate::error::StorageError;
use crate::segment::Segment;
use crate::segment::indexes::ActiveIndexes;
use crate::segment::list::Segments;

/// The state of a log at one moment, for look-ups.
pub(crate) struct Snapshot {
    pub(super) segments: Segments,
    /// Indexes of the last segment, while they are in memory.
    pub(super) indexes: Option<ActiveIndexes>,
    pub(super) log_start_offset: i64,
    pub(super) log_end_offset: i64,
    pub(super) truncations: u64,
}

impl Snapshot {
    /// The end of the segment at `index` (exclusive): the next base offset, or the log end offset.
    pub(super) fn end_of(&self, index: usize) -> i64 {
        self.segments.get(index + 1).map_or(self.log_end_offset, Segment::base_offset)
    }

    /// The indexes in memory of the segment at `index`.
    pub(super) fn indexes_of(&self, index: usize) -> Option<&ActiveIndexes> {
        self.indexes.as_ref().filter(|_| index + 1 == self.segments.len())
    }

    /// Segments from the one that contains `offset` on.
    pub(super) fn segments_from(&self, offset: i64) -> impl Iterator<Item = &Segment> {
        let first = self.segments.index_of(offset).unwrap_or(0);
        self.segments.iter().skip(first)
    }

    fn has_withdrawn(&self) -> bool {
        self.segments.iter().any(|segment| segment.files.is_withdrawn())
    }
}

impl Log {
    /// Returns the result of `look` for the log's segments. Every look-up uses this.
    ///
    /// Repeats `look` on a new snapshot after a truncation, which may have replaced the batches
    /// that it read, and after an error while segments were withdrawn. Never waits for a writer's
    /// disk access.
    pub(super) fn undisturbed<T, E>(&self, look: impl Fn(&Snapshot) -> Result<T, E>) -> Result<T, E>
    where
        E: From<StorageError>,
    {
        loop {
            let snapshot = self.snapshot()?;
            let result = look(&snapshot);
            let is_cut = snapshot.truncations != self.truncations.load(Ordering::SeqCst);
            if !is_cut && (result.is_ok() || !snapshot.has_withdrawn()) {
                return result;
            }
        }
    }

    /// The log's current state.
    pub(super) fn snapshot(&self) -> Result<Snapshot, StorageError> {
        let view = self.view.lock();
        view.check_readable()?;
        Ok(Snapshot {
            segments: view.segments.clone(),
            indexes: view.indexes.clone(),
            log_start_offset: view.log_start_offset,
            log_end_offset: view.log_end_offset,
            truncations: self.truncations.load(Ordering::SeqCst),
        })
    }
}
