//! Partitions that nobody uses give back their files and the indexes of their active segments.
//!
//! A partition is listed by its first use after a release, and released when it was not used for [`IDLE_TICKS_MAX`]
//! ticks of upkeep. How many files may be open until then is bounded by the log (`pykafka_log`'s `OpenFiles`).

use std::sync::Arc;

use pykafka_log::Log;

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

    /// The log whose files are to be released, if any; unlisted then.
    fn unlist(&mut self) -> Option<Arc<Log>> {
        self.idleness.is_listed = false;
        self.opened()
    }
}

impl Partition {
    /// One tick of upkeep; `false` once released. May wait for the disk.
    pub(crate) fn tick(&self) -> bool {
        let mut turn = self.turn();
        turn.idleness.ticks = turn.idleness.ticks.saturating_add(1);
        if turn.idleness.ticks < IDLE_TICKS_MAX || !turn.waiters.is_empty() {
            return turn.idleness.is_listed;
        }
        let log = turn.unlist();
        drop(turn);
        self.release(log);
        self.turn().idleness.is_listed
    }

    fn release(&self, log: Option<Arc<Log>>) {
        let _writer = self.writer.lock();
        if let Some(log) = log
            && let Err(error) = log.release_idle_files()
        {
            let mut turn = self.turn();
            // What was refused is tried again at the next tick.
            turn.idleness.is_listed |= error.is_refusal();
            turn.storage_failed(&error);
        }
    }
}
