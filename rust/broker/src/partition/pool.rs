//! Who may wait for a disk. Threads that serve connections and the control thread may not; those of pools may.
//!
//! What waits takes a [`MayWait`], which only threads made for waiting have. So a call from elsewhere does not compile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pykafka_log::Syncer;
use tokio::task::{JoinError, spawn_blocking};

/// Proof that the thread at hand may wait for a disk, and for whoever does.
pub(crate) struct MayWait(());

impl MayWait {
    /// For calls of the seam that are documented to wait: those of the start and the stop.
    pub(crate) fn as_documented() -> MayWait {
        MayWait(())
    }

    /// For work on logs in memory, which let nobody wait.
    pub(super) fn in_memory() -> MayWait {
        MayWait(())
    }

    /// For a worker of the maintenance lane.
    pub(super) fn on_the_lane() -> MayWait {
        MayWait(())
    }
}

/// Runs `work` on a thread of the runtime's for blocking work.
pub(crate) async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce(&MayWait) -> T + Send + 'static,
) -> Result<T, JoinError> {
    spawn_blocking(|| work(&MayWait(()))).await
}

/// Threads that may wait, and how many tasks wait for one.
#[derive(Default)]
pub struct Pool {
    threads: Syncer,
    waiting: Arc<AtomicUsize>,
}

impl Pool {
    /// Has `task` run by one of the threads, in the order of the calls.
    pub(crate) fn submit(&self, task: impl FnOnce(&MayWait) + Send + 'static) {
        let waiting = self.waiting.clone();
        waiting.fetch_add(1, Ordering::Relaxed);
        self.threads.submit(move || {
            waiting.fetch_sub(1, Ordering::Relaxed);
            task(&MayWait(()));
        });
    }

    /// Whether a task waits that no thread has begun.
    pub(crate) fn is_behind(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Waits until nothing is queued or running.
    pub(crate) fn wait_idle(&self, _: &MayWait) {
        self.threads.wait_idle();
    }
}
