//! Segments that leave a log; see `log::snapshot`.

use std::sync::Arc;

use crate::segment::{Segment, SegmentFiles};

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
    pub(crate) fn of(segments: Vec<Segment>) -> Taken {
        Taken { segments, replaced: None }
    }

    pub(crate) fn and_replaced(self, files: Arc<SegmentFiles>) -> Taken {
        Taken { replaced: Some(files), ..self }
    }

    /// Withdraws the segments of a log that has no readers yet.
    pub(crate) fn before_readers(self) -> Withdrawn {
        let files = self.segments.iter().map(|segment| &segment.files);
        files.chain(&self.replaced).for_each(|files| files.withdraw());
        Withdrawn(self.segments)
    }

    /// Withdraws segments without a batch, in which readers find nothing, whatever the names of
    /// their files.
    pub(crate) fn while_empty(self) -> Withdrawn {
        debug_assert!(self.segments.iter().all(|segment| segment.size == 0));
        Withdrawn(self.segments)
    }
}

impl Withdrawn {
    pub(crate) fn segments(&self) -> &[Segment] {
        &self.0
    }
}
