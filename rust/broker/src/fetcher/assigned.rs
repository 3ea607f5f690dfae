//! A partition of a fetcher: its position and its pauses.

use std::sync::Arc;
use std::time::Duration;

use pykafka_record::LeaderEpoch;
use tokio::time::Instant;

use super::session::Spec;
use crate::partition::Partition;
use crate::partition::follower::log::Position;

/// The pause after the first error.
const PAUSE_FIRST: Duration = Duration::from_millis(10);
/// Consecutive errors before one is reported that should end once both images are equal: 1.3 s of
/// pauses by default.
pub(super) const LASTING_ERRORS: u32 = 8;

/// A pause that doubles with each error.
#[derive(Debug, Default)]
pub(super) struct Pause {
    errors: u32,
    until: Option<Instant>,
}

impl Pause {
    /// Returns the number of errors since the last success, including this one.
    pub(super) fn failed(&mut self, backoff_max: Duration) -> u32 {
        let pause = PAUSE_FIRST.saturating_mul(1 << self.errors.min(16)).min(backoff_max);
        self.until = Some(Instant::now() + pause);
        self.errors = self.errors.saturating_add(1);
        self.errors
    }

    pub(super) fn succeeded(&mut self) {
        *self = Pause::default();
    }

    /// The end of the pause, if it is after `now`.
    pub(super) fn until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| *until > now)
    }
}

/// The state of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The position of its log must be determined.
    Beginning,
    /// Its log is working; the number distinguishes this work from older work.
    Working {
        work: u64,
        since: Instant,
        /// For a write of fetched records: the log end offset before it.
        before: Option<i64>,
        /// Expected log end offset after the current write; the next fetch starts here.
        ahead: Option<Position>,
    },
    /// It can be fetched from this position.
    Fetching(Position),
    /// Stopped until the image changes it.
    Stopped,
}

/// A partition that is assigned to a fetcher.
#[derive(Debug)]
pub(super) struct Assigned {
    pub(super) partition: Arc<Partition>,
    pub(super) leader_epoch: LeaderEpoch,
    pub(super) stage: Stage,
    pub(super) pause: Pause,
    /// Time until which a throttle keeps it out of Fetches.
    pub(super) held_until: Option<Instant>,
    /// High watermark of the last response.
    pub(super) leader_high_watermark: Option<i64>,
    /// True if the log refused records and has not accepted any since: then only one batch is
    /// requested.
    pub(super) is_refused: bool,
    /// True if the log took so long that records fetched in the meantime were discarded: there is
    /// no fetch-ahead until a write was fast once.
    pub(super) is_slow: bool,
}

impl Assigned {
    pub(super) fn new(partition: Arc<Partition>, leader_epoch: LeaderEpoch) -> Assigned {
        Assigned {
            partition,
            leader_epoch,
            stage: Stage::Beginning,
            pause: Pause::default(),
            held_until: None,
            leader_high_watermark: None,
            is_refused: false,
            is_slow: false,
        }
    }

    /// Its parameters in a fetch; `None` if it is not part of one now.
    pub(super) fn spec(&self, now: Instant) -> Option<Spec> {
        if self.waits_until(now).is_some() {
            return None;
        }
        Some(self.spec_at(self.position()?))
    }

    /// Its parameters, unless its log is working.
    pub(super) fn standing(&self) -> Option<Spec> {
        let Stage::Fetching(position) = self.stage else { return None };
        Some(self.spec_at(position))
    }

    fn spec_at(&self, position: Position) -> Spec {
        Spec { leader_epoch: self.leader_epoch, position, is_one_batch: self.is_refused }
    }

    /// The position that it can be fetched from.
    fn position(&self) -> Option<Position> {
        match self.stage {
            Stage::Fetching(position) | Stage::Working { ahead: Some(position), .. } => {
                Some(position)
            }
            Stage::Beginning | Stage::Working { ahead: None, .. } | Stage::Stopped => None,
        }
    }

    /// True if only a response or the image changes its state.
    pub(super) fn rests(&self, now: Instant) -> bool {
        let rests = matches!(self.stage, Stage::Fetching(_) | Stage::Stopped);
        rests && self.waits_until(now).is_none()
    }

    /// The end of its pause or throttle, if it waits for that.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let waits = matches!(self.stage, Stage::Beginning | Stage::Fetching(_));
        self.waits_until(now).filter(|_| waits)
    }

    /// The end of the pause or throttle that keeps it out of Fetches.
    fn waits_until(&self, now: Instant) -> Option<Instant> {
        let held = self.held_until.filter(|until| *until > now);
        self.pause.until(now).into_iter().chain(held).max()
    }

    /// True if it lacks committed records, as far as is known.
    pub(super) fn lags(&self) -> bool {
        let Some(position) = self.position() else { return false };
        self.leader_high_watermark.is_none_or(|end| position.log_end_offset < end)
    }
}
