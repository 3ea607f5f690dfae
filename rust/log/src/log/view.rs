//! The readers' view of a log: a copy of the facts, made when a change ends.
//!
//! A change locks [`State`] while the disk works. Readers never wait for that: they use the
//! [`View`], whose lock is held only while facts are copied. [`Writing`] is the only way to change
//! a state, and publishes it at its end.
//!
//! Two facts come from outside the log: its settings and the high watermark. Their callers must not
//! wait for the disk either, so they set them in the view, and the next change copies them from
//! there.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pykafka_forks::MutexGuard;

use super::Log;
use super::snapshot::Segments;
use super::state::{State, Status};
use crate::config::LogConfig;
use crate::epoch_cache::EpochCache;
use crate::error::StorageError;
use crate::segment::Segment;
use crate::segment::indexes::ActiveIndexes;

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
    high_watermark: i64,
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

    fn publish(&mut self, state: &State) {
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

pub(super) fn segment_of(segments: &[Segment], offset: i64) -> Option<usize> {
    let after = segments.partition_point(|segment| segment.base_offset() <= offset);
    if segments.is_empty() { None } else { Some(after.saturating_sub(1)) }
}

/// A running change: the state, locked. Dropping it publishes the new state.
pub(crate) struct Writing<'a> {
    state: MutexGuard<'a, State>,
    /// Dropped after the lock.
    ended: Ended<'a>,
}

struct Ended<'a>(&'a Log);

impl Log {
    /// Starts a change; waits for the running one, and so for the disk.
    pub(crate) fn write(&self) -> Writing<'_> {
        self.writing(self.state.lock())
    }

    /// Starts a change; `None` while another change is running.
    pub(crate) fn try_write(&self) -> Option<Writing<'_>> {
        self.state.try_lock().map(|state| self.writing(state))
    }

    fn writing<'a>(&'a self, mut state: MutexGuard<'a, State>) -> Writing<'a> {
        let view = self.view.lock();
        if !Arc::ptr_eq(&state.config, &view.config) {
            state.config = view.config.clone();
        }
        drop(view);
        Writing { state, ended: Ended(self) }
    }

    /// Sets the settings for the next operations.
    pub fn update_config(&self, config: Arc<LogConfig>) {
        self.view.lock().config = config;
    }

    /// Sets the high watermark: transactions that ended below it are stable now, or once the
    /// running change ends.
    pub fn on_high_watermark_updated(&self, high_watermark: i64) {
        self.view.lock().high_watermark = high_watermark;
        drop(self.try_write());
    }
}

impl Writing<'_> {
    /// Publishes the state before the change ends.
    pub(super) fn publish(&mut self) {
        self.publish_to(&mut self.ended.0.view.lock());
    }

    /// Publishes the state, and makes every running look-up repeat.
    pub(super) fn publish_truncated(&mut self) {
        let mut view = self.ended.0.view.lock();
        self.publish_to(&mut view);
        self.ended.0.truncations.fetch_add(1, Ordering::SeqCst);
    }

    /// Publishes the state after a replacement in the middle of the list of segments.
    pub(super) fn publish_replaced(&mut self) {
        let mut view = self.ended.0.view.lock();
        view.segments = Segments::of(&self.state.segments);
        self.publish_to(&mut view);
    }

    fn publish_to(&mut self, view: &mut View) {
        self.state.take_high_watermark(view.high_watermark);
        view.publish(&self.state);
    }
}

impl Deref for Writing<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Writing<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.publish();
    }
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        // A high watermark that was set between the publication and the release of the lock could
        // not be copied.
        let log = self.0;
        if let Some(state) = log.state.try_lock()
            && state.high_watermark != log.view.lock().high_watermark
        {
            drop(log.writing(state));
        }
    }
}
