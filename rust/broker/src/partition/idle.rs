//! Files of partitions that nobody uses are given back, so that descriptors are bounded by use and not by partitions.
//!
//! A partition is listed by its first use after a release. It is released when it was not used for
//! [`IDLE_TICKS_MAX`] ticks of upkeep, or when more are listed than the process may hold open: then the one listed
//! longest goes, unless it is in use or was used since the last tick.

use super::turn::Turn;
use super::{Host, Partition};

/// A minute of upkeep.
const IDLE_TICKS_MAX: u8 = 12;
/// Looks at so many candidates before it lets the bound be passed by one.
const CANDIDATES_MAX: usize = 8;

/// How a partition stands to the list.
#[derive(Debug, Default)]
pub(super) struct Idleness {
    is_listed: bool,
    ticks: u8,
}

impl Turn<'_> {
    /// Notes a use of the log.
    pub(super) fn touch(&mut self) {
        self.idleness.ticks = 0;
        if !self.idleness.is_listed {
            self.idleness.is_listed = true;
            self.list_after();
        }
    }

    fn release(&mut self) {
        self.idleness.is_listed = false;
        if let Some(log) = self.opened()
            && let Err(error) = log.release_idle_files()
        {
            self.storage_failed(&error);
        }
    }
}

impl Host {
    /// Lists a partition that is in use again, and releases another one if too many are listed.
    pub(super) fn list(&self, partition: &Partition) {
        let mut listed = self.listed.lock();
        listed.push_back(partition.me.clone());
        for _ in 0..CANDIDATES_MAX {
            if listed.len() <= self.listed_max {
                return;
            }
            let Some(candidate) = listed.pop_front() else { return };
            let Some(partition) = candidate.upgrade() else { continue };
            // Whoever has the turn uses it.
            match partition.try_turn() {
                Some(mut turn) if turn.idleness.ticks > 0 => turn.release(),
                _ => listed.push_back(candidate),
            }
        }
    }
}

impl Partition {
    /// One tick of upkeep; `false` once released.
    pub(crate) fn tick(&self) -> bool {
        let mut turn = self.turn();
        turn.idleness.ticks = turn.idleness.ticks.saturating_add(1);
        if turn.idleness.ticks >= IDLE_TICKS_MAX && turn.waiters.is_empty() {
            turn.release();
        }
        turn.idleness.is_listed
    }
}
