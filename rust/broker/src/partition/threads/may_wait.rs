//! Permission to wait for a disk. Connection threads may wait for a short time, the control thread
//! may not, and pool threads may.
//!
//! Functions that wait take a [`MayWait`], which only threads for waiting have. So a call from
//! another thread does not compile.

use crate::network::blocking_handoff::BlockingPermit;

/// Proof that the current thread may wait for a disk, and for threads that do.
pub(crate) struct MayWait(());

impl MayWait {
    /// For calls of the control API that are documented to wait: those of the start and the stop.
    pub(crate) fn as_documented() -> MayWait {
        MayWait(())
    }

    /// For work on logs in memory, which never waits.
    pub(in crate::partition) fn in_memory() -> MayWait {
        MayWait(())
    }

    /// Runs `wait` on a network thread whose other tasks are taken over if the wait becomes long.
    pub(super) fn for_a_moment<T>(moment: BlockingPermit, wait: impl FnOnce(&MayWait) -> T) -> T {
        moment.wait(|| wait(&MayWait(())))
    }

    /// For a thread of the pool.
    pub(super) fn in_the_pool() -> MayWait {
        MayWait(())
    }

    /// For a worker of the background queue.
    pub(in crate::partition) fn on_maintenance_thread() -> MayWait {
        MayWait(())
    }
}
