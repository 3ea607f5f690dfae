//! The list of a log's segments, as readers see it.

use std::sync::Arc;

use crate::segment::{Segment, segment_of};

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
