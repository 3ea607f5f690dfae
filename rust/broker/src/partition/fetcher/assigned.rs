//! A partition as its fetcher knows it: where it stands, and when it goes on.

use std::sync::Arc;
use std::time::Duration;

use pykafka_record::LeaderEpoch;
use tokio::time::Instant;

use super::session::Spec;
use crate::partition::Partition;
use crate::partition::follower_log::Position;

/// The pause after a first error.
const PAUSE_FIRST: Duration = Duration::from_millis(10);
/// Errors in a row before one that ends with equal images is reported: 1.3 s of pauses by default.
pub(super) const LASTING_ERRORS: u32 = 8;

/// A pause that doubles with each error.
#[derive(Debug, Default)]
pub(super) struct Pause {
    errors: u32,
    until: Option<Instant>,
}

impl Pause {
    /// Returns the number of errors since a success, with this one.
    pub(super) fn failed(&mut self, backoff_max: Duration) -> u32 {
        let pause = PAUSE_FIRST.saturating_mul(1 << self.errors.min(16)).min(backoff_max);
        self.until = Some(Instant::now() + pause);
        self.errors = self.errors.saturating_add(1);
        self.errors
    }

    pub(super) fn succeeded(&mut self) {
        *self = Pause::default();
    }

    /// When it ends, if that is later than `now`.
    pub(super) fn until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| *until > now)
    }
}

/// What a partition is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its log has to be asked where it stands.
    Beginning,
    /// Its log is at work; the number tells its end from that of older work.
    Working {
        work: u64,
        since: Instant,
        /// Where it ended before what was fetched is written, of such work.
        before: Option<i64>,
        /// Where it will stand if it can write what is committed: it is fetched from there meanwhile.
        ahead: Option<Position>,
    },
    /// It can be fetched from here.
    Fetching(Position),
    /// Nothing happens before the image changes it.
    Stopped,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Assigned {
    pub(super) partition: Arc<Partition>,
    pub(super) leader_epoch: LeaderEpoch,
    pub(super) stage: Stage,
    pub(super) pause: Pause,
    /// Until when a throttle keeps it out of Fetches.
    pub(super) held_until: Option<Instant>,
    /// As the leader told last.
    pub(super) leader_high_watermark: Option<i64>,
    /// Whether its log has refused what came for it, and has taken nothing since: one batch is as good as many.
    pub(super) is_refused: bool,
    /// Whether its log took so long that what was fetched meanwhile came to nothing: it is not fetched ahead of again before
    /// it was quick once.
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

    /// What a fetch wants of it; `None` if it has no part in one now.
    pub(super) fn spec(&self, now: Instant) -> Option<Spec> {
        if self.waits_until(now).is_some() {
            return None;
        }
        Some(self.spec_at(self.position()?))
    }

    /// How its log stands, while it is not at work.
    pub(super) fn standing(&self) -> Option<Spec> {
        let Stage::Fetching(position) = self.stage else { return None };
        Some(self.spec_at(position))
    }

    fn spec_at(&self, position: Position) -> Spec {
        Spec { leader_epoch: self.leader_epoch, position, is_one_batch: self.is_refused }
    }

    /// Where it can be fetched from.
    fn position(&self) -> Option<Position> {
        match self.stage {
            Stage::Fetching(position) | Stage::Working { ahead: Some(position), .. } => {
                Some(position)
            }
            Stage::Beginning | Stage::Working { ahead: None, .. } | Stage::Stopped => None,
        }
    }

    /// Whether it stays as it is until an answer or the image changes it.
    pub(super) fn rests(&self, now: Instant) -> bool {
        let rests = matches!(self.stage, Stage::Fetching(_) | Stage::Stopped);
        rests && self.waits_until(now).is_none()
    }

    /// When its pause ends, or the throttle, if it waits for that.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let waits = matches!(self.stage, Stage::Beginning | Stage::Fetching(_));
        self.waits_until(now).filter(|_| waits)
    }

    /// When the pause or the throttle ends that keeps it out of Fetches.
    fn waits_until(&self, now: Instant) -> Option<Instant> {
        let held = self.held_until.filter(|until| *until > now);
        self.pause.until(now).into_iter().chain(held).max()
    }

    /// Whether it lacks records that are committed, as far as is known.
    pub(super) fn lags(&self) -> bool {
        let Some(position) = self.position() else { return false };
        self.leader_high_watermark.is_none_or(|end| position.log_end_offset < end)
    }
}
