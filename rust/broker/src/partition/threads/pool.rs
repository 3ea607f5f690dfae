//! Who may wait for a disk. Threads that serve connections may for a moment, the control thread may not; those of pools
//! may.
//!
//! What waits takes a [`MayWait`], which only threads made for waiting have. So a call from elsewhere does not compile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::network::spares::Moment;
use pykafka_log::Syncer;
use tokio::sync::oneshot;

/// Proof that the thread at hand may wait for a disk, and for whoever does.
pub(crate) struct MayWait(());

impl MayWait {
    /// For calls of the seam that are documented to wait: those of the start and the stop.
    pub(crate) fn as_documented() -> MayWait {
        MayWait(())
    }

    /// For work on logs in memory, which let nobody wait.
    pub(in crate::partition) fn in_memory() -> MayWait {
        MayWait(())
    }

    /// For a thread of the network whose other tasks are moved if the wait gets long ([`crate::network::spares`]).
    pub(crate) fn for_a_moment() -> MayWait {
        MayWait(())
    }

    /// For a worker of the maintenance lane.
    pub(in crate::partition) fn on_the_lane() -> MayWait {
        MayWait(())
    }
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

    /// Has `task` run as [`Pool::submit`] does; `None` if it panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        task: impl FnOnce(&MayWait) -> T + Send + 'static,
    ) -> Option<T> {
        let (done, result) = oneshot::channel();
        self.submit(move |may_wait| drop(done.send(task(may_wait))));
        result.await.ok()
    }

    /// Runs `task` on the caller's thread, which may wait for a moment.
    pub(in crate::partition) fn run_here<T>(
        &self,
        moment: Moment,
        task: impl FnOnce(&MayWait) -> T,
    ) -> T {
        self.threads.run_here(|| moment.wait(task))
    }

    /// Whether a task waits that no thread has begun.
    pub(crate) fn is_behind(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Tasks that were submitted up to now, and those that callers ran.
    pub(in crate::partition) fn begun(&self) -> u64 {
        self.threads.begun()
    }

    /// Lets the threads end with what they are at; what comes afterwards is done by who brings it.
    pub(in crate::partition) fn close(&self) {
        self.threads.close();
    }

    /// Waits until nothing is queued or running.
    pub(crate) fn wait_idle(&self, _: &MayWait) {
        self.threads.wait_idle();
    }
}
