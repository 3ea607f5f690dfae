//! Which sync rounds of a log began and ended.

use pykafka_forks::{Condvar, Mutex};

/// The state of a log's sync rounds.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    pub(super) state: Mutex<RoundsState>,
    pub(super) ended: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct RoundsState {
    pub(super) in_flight: bool,
    /// Number of rounds that started; the first has number 1.
    pub(super) begun: u64,
    /// Number of the newest successful round.
    pub(super) done: u64,
}
