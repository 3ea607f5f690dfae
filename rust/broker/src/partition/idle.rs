//! Partitions that nobody uses give back their files and the indexes of their active segments.
//!
//! A partition is listed by its first use after a release, and released when it was not used for [`IDLE_TICKS_MAX`]
//! ticks of upkeep. How many files may be open until then is bounded by the log (`pykafka_log`'s `OpenFiles`). Space that a
//! log has reserved and does not fill soon is given back at a tick, idle or not.

use pykafka_log::{Log, StorageError};

use super::Partition;
use super::threads::lane::Urgency;
use super::turn::Turn;
use super::work::Writer;

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
        self.list();
    }

    fn list(&mut self) {
        if !std::mem::replace(&mut self.idleness.is_listed, true) {
            let partition = self.partition();
            partition.host.listed.lock().push(partition.me.clone());
        }
    }
}

impl Partition {
    /// One tick of upkeep; `false` once released.
    pub(crate) fn tick(&self) -> bool {
        if let Some(log) = self.opened_log() {
            if log.has_space_to_give_back() {
                self.keep_up(Log::give_back_space);
            }
            if log.may_be_displaced() {
                self.keep_up(Log::check_place);
            }
        }
        let mut turn = self.turn();
        turn.idleness.ticks = turn.idleness.ticks.saturating_add(1);
        if turn.idleness.ticks < IDLE_TICKS_MAX || !turn.waiters.is_empty() {
            return true;
        }
        turn.idleness.is_listed = false;
        drop(turn);
        self.keep_up(Log::release_idle_files);
        false
    }

    /// Does something to the log, later, that another tick can do again.
    fn keep_up(&self, upkeep: fn(&Log) -> Result<(), StorageError>) {
        self.command(Urgency::Background, move |partition, writer| {
            if let Ok(writer) = writer {
                partition.keep_up_now(writer, upkeep);
            }
        });
    }

    fn keep_up_now(&self, _writer: &Writer, upkeep: fn(&Log) -> Result<(), StorageError>) {
        let Some(log) = self.opened_log() else { return };
        if let Err(error) = upkeep(&log) {
            let mut turn = self.turn();
            if error.is_refusal() {
                // The next tick tries again.
                turn.list();
            }
            turn.storage_failed(&error);
        }
    }
}
