//! Partitions that nobody uses give back their files and the indexes of their active segments.
//!
//! A partition is listed by its first use after a release, and released when it was not used for [`IDLE_TICKS_MAX`]
//! ticks of upkeep. How many files may be open until then is bounded by the log (`pykafka_log`'s `OpenFiles`).

use super::Partition;
use super::turn::Turn;

/// A minute of upkeep.
const IDLE_TICKS_MAX: u8 = 12;

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
        if !std::mem::replace(&mut self.idleness.is_listed, true) {
            let partition = self.partition();
            partition.host.listed.lock().push(partition.me.clone());
        }
    }

    fn release(&mut self) {
        self.idleness.is_listed = false;
        if let Some(log) = self.opened()
            && let Err(error) = log.release_idle_files()
        {
            // What was refused is tried again at the next tick.
            self.idleness.is_listed = error.is_refusal();
            self.storage_failed(&error);
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
