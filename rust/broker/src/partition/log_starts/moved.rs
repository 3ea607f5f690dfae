//! The log start offsets that wait for the checkpoint.

use std::sync::Arc;

use pykafka_forks::Mutex;
use pykafka_log::{Log, StorageError};

use crate::partition::threads::background::Urgency;

type Then = Box<dyn FnOnce(Result<(), StorageError>) + Send>;

/// The log start offsets that wait for the checkpoint.
#[derive(Default)]
pub(crate) struct LogStarts(pub(super) Mutex<State>);

#[derive(Default)]
pub(super) struct State {
    pub(super) moved: Vec<Moved>,
    /// Urgency of the next checkpoint in the background queue, if it is queued.
    pub(super) queued: Option<Urgency>,
    pub(super) is_written: bool,
}

/// A log start offset that has moved, and the callback for its durability.
pub(super) struct Moved {
    pub(super) log: Arc<Log>,
    pub(super) urgency: Urgency,
    pub(super) then: Then,
}

impl State {
    /// Returns the urgency with which the next checkpoint must be queued now, if it must be.
    pub(super) fn begin_queueing(&mut self) -> Option<Urgency> {
        let wanted = self.moved.iter().map(|moved| moved.urgency).max();
        if self.is_written || wanted <= self.queued {
            return None;
        }
        self.queued = wanted;
        wanted
    }
}
