//! Threads that may wait for a disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pykafka_log::Syncer;
use tokio::sync::oneshot;

use super::may_wait::MayWait;
use crate::network::blocking_handoff::BlockingPermit;

/// Threads that may wait, and the number of tasks that wait for one.
#[derive(Default)]
pub struct Pool {
    threads: Syncer,
    waiting: Arc<AtomicUsize>,
}

impl Pool {
    /// Runs `task` on one of the threads, in the order of the calls.
    pub(crate) fn submit(&self, task: impl FnOnce(&MayWait) + Send + 'static) {
        let waiting = self.waiting.clone();
        waiting.fetch_add(1, Ordering::Relaxed);
        self.threads.submit(move || {
            waiting.fetch_sub(1, Ordering::Relaxed);
            task(&MayWait::in_the_pool());
        });
    }

    /// Runs `task` like [`Pool::submit`]; returns `None` if it panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        task: impl FnOnce(&MayWait) -> T + Send + 'static,
    ) -> Option<T> {
        let (done, result) = oneshot::channel();
        self.submit(move |may_wait| drop(done.send(task(may_wait))));
        result.await.ok()
    }

    /// Runs `task` on the caller's thread, which may block for a short time.
    pub(in crate::partition) fn run_here<T>(
        &self,
        moment: BlockingPermit,
        task: impl FnOnce(&MayWait) -> T,
    ) -> T {
        self.threads.run_here(|| MayWait::for_a_moment(moment, task))
    }

    /// True if a task waits for a thread.
    pub(crate) fn is_behind(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Number of tasks that were submitted so far, or that callers ran.
    pub(in crate::partition) fn begun(&self) -> u64 {
        self.threads.begun()
    }

    /// Ends the threads after their current tasks; later tasks run on the threads that submit them.
    pub(in crate::partition) fn close(&self) {
        self.threads.close();
    }

    /// Waits until no task is queued or running.
    pub(crate) fn wait_idle(&self, _: &MayWait) {
        self.threads.wait_idle();
    }
}
