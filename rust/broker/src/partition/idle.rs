//! Files of partitions that nobody uses are given back, so that descriptors are bounded by use and not by partitions.
//!
//! A partition is listed by its first use after a release. It is released when it was not used for
//! [`IDLE_TICKS_MAX`] ticks of upkeep, or when more are listed than the process may hold open: then the one listed
//! longest goes, unless it is in use or was used since the last tick.

use std::sync::Arc;

use super::waiters::Wakeups;
use super::{Inner, LogSlot, Partition};

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

impl Partition {
    /// Notes a use of the log.
    pub(super) fn touch(&self, inner: &mut Inner) {
        inner.idleness.ticks = 0;
        if inner.idleness.is_listed {
            return;
        }
        inner.idleness.is_listed = true;
        let mut listed = self.host.listed.lock();
        listed.push_back(self.me.clone());
        for _ in 0..CANDIDATES_MAX {
            if listed.len() <= self.host.listed_max {
                return;
            }
            let Some(candidate) = listed.pop_front() else { return };
            let Some(partition) = candidate.upgrade() else { continue };
            // Another partition's mutex is only tried: waiting for it while holding ours could be for ever.
            match partition.inner.try_lock() {
                Some(mut other) if other.idleness.ticks > 0 => partition.release(&mut other),
                _ => listed.push_back(candidate),
            }
        }
    }

    /// One tick of upkeep; `false` once released.
    pub(crate) fn tick(&self) -> bool {
        let mut wakeups = Wakeups::default();
        let mut inner = self.inner.lock();
        inner.idleness.ticks = inner.idleness.ticks.saturating_add(1);
        if inner.idleness.ticks >= IDLE_TICKS_MAX && inner.waiters.is_empty() {
            self.release(&mut inner);
        }
        Self::fail_waiters(&mut inner, &mut wakeups);
        let is_listed = inner.idleness.is_listed;
        drop(inner);
        wakeups.tell();
        is_listed
    }

    fn release(&self, inner: &mut Inner) {
        inner.idleness.is_listed = false;
        if let LogSlot::Open(log) = &inner.log {
            let log = Arc::clone(log);
            if let Err(error) = log.release_idle_files() {
                self.storage_failed(inner, &error);
            }
        }
    }
}
