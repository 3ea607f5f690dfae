//! Idle partitions close their files and free the indexes of their active segments.
//!
//! A partition is listed at its first use after a release, and is released after [`IDLE_TICKS_MAX`]
//! ticks of upkeep without a use. `pykafka_log`'s `OpenFiles` limits the number of files that are
//! open until then. Reserved space that a log does not fill soon is freed at a tick, whether the
//! log is idle or not.

use pykafka_log::{Log, StorageError};

use crate::partition::Partition;
use crate::partition::guard::PartitionGuard;
use crate::partition::threads::background::Urgency;
use crate::partition::write_queue::queue::WriterToken;

/// One minute of upkeep.
const IDLE_TICKS_MAX: u8 = 12;

impl PartitionGuard<'_> {
    /// Records a use of the log.
    pub(in crate::partition) fn touch(&mut self) {
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
    /// Runs one tick of upkeep; returns false once the log is released.
    pub(crate) fn tick(&self) -> bool {
        if let Some(log) = self.opened_log() {
            if log.has_space_to_give_back() {
                self.keep_up(Log::give_back_space);
            }
            if log.may_be_displaced() {
                self.keep_up(Log::check_place);
            }
        }
        let mut guard = self.lock();
        guard.idleness.ticks = guard.idleness.ticks.saturating_add(1);
        if guard.idleness.ticks < IDLE_TICKS_MAX || !guard.waiters.is_empty() {
            return true;
        }
        guard.idleness.is_listed = false;
        drop(guard);
        self.keep_up(Log::release_idle_files);
        false
    }

    /// Schedules upkeep of the log; another tick can repeat it.
    fn keep_up(&self, upkeep: fn(&Log) -> Result<(), StorageError>) {
        self.command(Urgency::Background, move |partition, writer| {
            if let Ok(writer) = writer {
                partition.keep_up_now(writer, upkeep);
            }
        });
    }

    fn keep_up_now(&self, _writer: &WriterToken, upkeep: fn(&Log) -> Result<(), StorageError>) {
        let Some(log) = self.opened_log() else { return };
        if let Err(error) = upkeep(&log) {
            let mut guard = self.lock();
            if error.is_refusal() {
                // The next tick retries.
                guard.list();
            }
            guard.storage_failed(&error);
        }
    }
}
