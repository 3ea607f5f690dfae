//! The data of a look-up: the segments of a log at one moment, and their files.
//!
//! # Theory of operation
//! The list of segments is never changed in place. A roll, a retention pass and a truncation
//! publish a new list. A look-up keeps the list with which it started, and with it the handles of
//! its files. Two rules keep that list usable while segments are removed from the log:
//!
//! - Segments are *withdrawn* first: a list without them is published before any of their files is
//!   renamed, cut or replaced ([`Writing::withdraw`]). A look-up that starts later does not see
//!   them.
//! - Withdrawn [`SegmentFiles`] no longer open files by name, since another file may have that name
//!   by then. The rest of a cut segment gets new ones.
//!
//! So a look-up that meets a withdrawn segment either uses an open handle, or fails and is repeated
//! on the current list ([`Log::undisturbed`]). It never blocks, and never reports this as an error
//! of the disk.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Log;
use super::view::{Writing, segment_of};
use crate::error::StorageError;
use crate::segment::indexes::ActiveIndexes;
use crate::segment::{Segment, SegmentFiles};

/// The segments of a log, oldest first. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Segments {
    /// Replaced when segments are added or removed.
    list: Arc<[Segment]>,
    /// The current last segment; it grows while the list stays the same.
    last: Option<Segment>,
}

impl Segments {
    pub(crate) fn of(segments: &[Segment]) -> Segments {
        Segments { list: segments.into(), last: segments.last().cloned() }
    }

    /// Updates this to `segments`, if segments were only added at the end or removed at either end,
    /// and only the last one changed. A replacement in the middle needs a new list
    /// ([`Segments::of`]).
    pub(crate) fn follow(&mut self, segments: &[Segment]) {
        let is_same = |one: Option<&Segment>, other: Option<&Segment>| match (one, other) {
            (Some(one), Some(other)) => Arc::ptr_eq(&one.files, &other.files),
            (one, other) => one.is_none() && other.is_none(),
        };
        let are_same = self.list.len() == segments.len()
            && is_same(self.list.first(), segments.first())
            && is_same(self.list.last(), segments.last());
        if are_same {
            self.last = segments.last().cloned();
        } else {
            *self = Segments::of(segments);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Segment> {
        if index + 1 == self.list.len() { self.last.as_ref() } else { self.list.get(index) }
    }

    pub(crate) fn last(&self) -> Option<&Segment> {
        self.last.as_ref()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Segment> {
        let sealed = self.list.len().saturating_sub(1);
        self.list[..sealed].iter().chain(&self.last)
    }

    /// Index of the segment that contains `offset`, or of the first one.
    pub(crate) fn index_of(&self, offset: i64) -> Option<usize> {
        segment_of(&self.list, offset)
    }
}

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

/// Segments that were removed from the state. Readers can see them until they are withdrawn.
#[must_use]
pub(crate) struct Taken {
    segments: Vec<Segment>,
    /// Files of a segment that stays, and whose files will be cut.
    replaced: Option<Arc<SegmentFiles>>,
}

/// Segments that no new look-up can see. Only their files may be renamed, cut or replaced.
#[must_use]
pub(crate) struct Withdrawn(Vec<Segment>);

impl Taken {
    pub(super) fn of(segments: Vec<Segment>) -> Taken {
        Taken { segments, replaced: None }
    }

    pub(super) fn and_replaced(self, files: Arc<SegmentFiles>) -> Taken {
        Taken { replaced: Some(files), ..self }
    }

    /// Withdraws the segments of a log that has no readers yet.
    pub(super) fn before_readers(self) -> Withdrawn {
        let files = self.segments.iter().map(|segment| &segment.files);
        files.chain(&self.replaced).for_each(|files| files.withdraw());
        Withdrawn(self.segments)
    }

    /// Withdraws segments without a batch, in which readers find nothing, whatever the names of
    /// their files.
    pub(super) fn while_empty(self) -> Withdrawn {
        debug_assert!(self.segments.iter().all(|segment| segment.size == 0));
        Withdrawn(self.segments)
    }
}

impl Withdrawn {
    pub(super) fn segments(&self) -> &[Segment] {
        &self.0
    }
}

impl Writing<'_> {
    /// Publishes the state without the segments that were removed from it.
    pub(super) fn withdraw(&mut self, taken: Taken) -> Withdrawn {
        self.publish();
        taken.before_readers()
    }

    /// Withdraws segments after another segment replaced them in the middle of the list.
    pub(super) fn withdraw_replaced(&mut self, taken: Taken) -> Withdrawn {
        self.publish_replaced();
        taken.before_readers()
    }

    /// Withdraws segments and repeats running look-ups, because other batches may replace those
    /// that they read.
    pub(super) fn withdraw_truncated(&mut self, taken: Taken) -> Withdrawn {
        self.publish_truncated();
        taken.before_readers()
    }
}
