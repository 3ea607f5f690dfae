//! A change of a log, the end of which publishes it; see [`super::view`].

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pykafka_forks::MutexGuard;

use crate::config::LogConfig;
use crate::log::Log;
use crate::log::state::State;
use crate::log::view::View;
use crate::segment::list::Segments;
use crate::segment::withdrawn::{Taken, Withdrawn};

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
