//! The readers' view of a log: a copy of the facts, made when a change ends.
//!
//! A change locks [`State`] while the disk works. Readers never wait for that: they use the
//! [`View`], whose lock is held only while facts are copied. [`super::writing::Writing`] is the
//! only way to change a state, and publishes it at its end.
//!
//! Two facts come from outside the log: its settings and the high watermark. Their callers must not
//! wait for the disk either, so they set them in the view, and the next change copies them from
//! there.

use std::sync::Arc;

use super::state::{State, Status};
use crate::config::LogConfig;
use crate::epoch_cache::EpochCache;
use crate::error::StorageError;
use crate::segment::indexes::ActiveIndexes;
use crate::segment::list::Segments;

/// A copy of the facts; see the module documentation.
pub(crate) struct View {
    status: Status,
    /// The settings for the next change.
    pub(crate) config: Arc<LogConfig>,
    pub(crate) log_start_offset: i64,
    pub(crate) log_end_offset: i64,
    pub(crate) first_unstable_offset: Option<i64>,
    pub(crate) recovery_point: i64,
    pub(crate) segments: Segments,
    /// Indexes of the last segment, while they are in memory.
    pub(crate) indexes: Option<ActiveIndexes>,
    pub(crate) epochs: EpochCache,
    pub(crate) unsynced_records: i64,
    pub(crate) unsynced_since_ms: Option<i64>,
    /// The latest high watermark; the state has the previous one until a change copies this.
    pub(super) high_watermark: i64,
}

impl View {
    pub(crate) fn of(state: &State) -> View {
        View {
            status: state.status.clone(),
            config: state.config.clone(),
            log_start_offset: state.log_start_offset,
            log_end_offset: state.log_end_offset,
            first_unstable_offset: state.first_unstable_offset(),
            recovery_point: state.recovery_point.offset(),
            segments: Segments::of(&state.segments),
            indexes: state.indexes.clone(),
            epochs: state.epochs.clone(),
            unsynced_records: state.unsynced_records,
            unsynced_since_ms: state.unsynced_since_ms,
            high_watermark: state.high_watermark,
        }
    }

    pub(super) fn publish(&mut self, state: &State) {
        self.status.clone_from(&state.status);
        self.log_start_offset = state.log_start_offset;
        self.log_end_offset = state.log_end_offset;
        self.first_unstable_offset = state.first_unstable_offset();
        self.recovery_point = state.recovery_point.offset();
        self.segments.follow(&state.segments);
        self.indexes.clone_from(&state.indexes);
        if self.epochs != state.epochs {
            self.epochs.clone_from(&state.epochs);
        }
        self.unsynced_records = state.unsynced_records;
        self.unsynced_since_ms = state.unsynced_since_ms;
    }

    /// Returns the reason why reads are not allowed.
    pub(crate) fn check_readable(&self) -> Result<(), StorageError> {
        self.status.check_readable()
    }

    /// Returns the reason why writes are not allowed.
    pub(crate) fn check_writable(&self) -> Result<(), StorageError> {
        self.status.check_writable()
    }
}
