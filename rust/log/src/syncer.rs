//! The threads that wait for disks. The broker has a pool for syncs, one for writes, and others.
//!
//! The disk decides how long a sync takes, and it serves many at once: 100 dirty files take 26–230
//! ms on one thread and 5–6 ms on many. So up to [`SYNC_THREADS_MAX`] blocking threads take tasks
//! from one queue. A thread is started when a task waits and no thread is idle.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use pykafka_forks::{Condvar, Mutex};

use crate::perturb::hand_over;

/// Enough for one disk: more threads gave no gain on any disk that was measured.
pub const SYNC_THREADS_MAX: usize = 16;

type Task = Box<dyn FnOnce() + Send>;

/// A pool of threads for syncs and other tasks that wait for a disk. Dropping it runs the submitted
/// tasks and joins the threads.
pub struct Syncer {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    work: Condvar,
    quiet: Condvar,
    threads_max: usize,
}

#[derive(Default)]
struct State {
    tasks: VecDeque<Task>,
    threads: Vec<JoinHandle<()>>,
    idle: usize,
    /// Tasks that are running.
    running: usize,
    /// Number of tasks that were submitted, and of those that callers ran.
    begun: u64,
    closed: bool,
}

impl Syncer {
    /// A pool without threads yet.
    pub fn new(threads_max: usize) -> Self {
        let shared = Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            quiet: Condvar::new(),
            threads_max: threads_max.max(1),
        };
        Syncer { shared: Arc::new(shared) }
    }

    /// Runs `task`, which may block, on one of the threads.
    pub fn submit(&self, task: impl FnOnce() + Send + 'static) {
        self.shared.submit(Box::new(task));
    }

    /// Runs `task` on the caller's thread, as one of the tasks that [`Syncer::wait_idle`] waits
    /// for.
    pub fn run_here<T>(&self, task: impl FnOnce() -> T) -> T {
        {
            let mut state = self.shared.state.lock();
            state.begun += 1;
            state.running += 1;
        }
        let _running = Running(&self.shared);
        task()
    }

    /// Number of tasks that were submitted so far, and of those that callers ran.
    pub fn begun(&self) -> u64 {
        self.shared.state.lock().begun
    }

    /// Ends the threads once the queue is empty; does not wait for that. Tasks that are submitted
    /// later run on the caller's thread.
    pub fn close(&self) {
        self.shared.state.lock().closed = true;
        self.shared.work.notify_all();
    }

    /// Waits until no task is queued or running, including tasks that are submitted during the
    /// wait.
    pub fn wait_idle(&self) {
        let mut state = self.shared.state.lock();
        while state.running > 0 || !state.tasks.is_empty() {
            state = self.shared.quiet.wait(state);
        }
    }
}

impl Shared {
    fn submit(self: &Arc<Self>, task: Task) {
        let mut state = self.state.lock();
        state.begun += 1;
        if state.closed {
            drop(state);
            return task();
        }
        state.tasks.push_back(task);
        if state.tasks.len() > state.idle && state.threads.len() < self.threads_max {
            let shared = Arc::clone(self);
            let name = format!("pykafka-disk-{}", state.threads.len());
            let spawned = thread::Builder::new().name(name).spawn(move || shared.serve());
            match spawned {
                Ok(thread) => state.threads.push(thread),
                // Without any thread the caller runs the task itself; later calls try again to
                // start one.
                Err(_) if state.threads.is_empty() => {
                    let task = state.tasks.pop_back();
                    drop(state);
                    return task.into_iter().for_each(|task| task());
                }
                Err(_) => {}
            }
        }
        drop(state);
        self.work.notify_one();
    }

    fn serve(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(task) = state.tasks.pop_front() {
                state.running += 1;
                drop(state);
                let running = Running(self);
                hand_over();
                task();
                hand_over();
                drop(running);
                state = self.state.lock();
            } else if state.closed {
                return;
            } else {
                state.idle += 1;
                state = self.work.wait(state);
                state.idle -= 1;
            }
        }
    }
}

/// Counts a task as running until it returns or panics.
struct Running<'a>(&'a Shared);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.running -= 1;
        if state.running == 0 && state.tasks.is_empty() {
            self.0.quiet.notify_all();
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.close();
        let threads = std::mem::take(&mut self.shared.state.lock().threads);
        for thread in threads {
            // A task may hold the last handle of the pool: a thread must not join itself.
            if thread.thread().id() != thread::current().id() {
                // A panic in a task has been reported by its thread.
                let _ = thread.join();
            }
        }
    }
}

impl Default for Syncer {
    fn default() -> Self {
        Syncer::new(SYNC_THREADS_MAX)
    }
}

impl fmt::Debug for Syncer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = self.shared.state.lock().threads.len();
        formatter.debug_struct("Syncer").field("threads", &threads).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn closed_pool_ends_its_threads_and_runs_later_tasks() {
        let syncer = Syncer::new(3);
        let (release, gate) = channel::<()>();
        let finished = Arc::new(AtomicUsize::new(0));
        let finish = |finished: &Arc<AtomicUsize>| {
            let finished = finished.clone();
            move || {
                finished.fetch_add(1, Ordering::SeqCst);
            }
        };
        syncer.submit(move || gate.recv().unwrap());
        (0..5).for_each(|_| syncer.submit(finish(&finished)));
        syncer.close();
        let before = finished.load(Ordering::SeqCst);
        syncer.submit(finish(&finished));
        assert!(finished.load(Ordering::SeqCst) > before, "by the caller");
        release.send(()).unwrap();
        let threads = std::mem::take(&mut syncer.shared.state.lock().threads);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(finished.load(Ordering::SeqCst), 6);
    }

    #[test]
    fn threads_are_made_when_needed_and_no_more_than_allowed() {
        let syncer = Syncer::new(3);
        assert_eq!(syncer.shared.state.lock().threads.len(), 0);
        let (release, gate) = channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let finished = Arc::new(AtomicUsize::new(0));
        for _ in 0..10 {
            let (gate, finished) = (gate.clone(), finished.clone());
            syncer.submit(move || {
                gate.lock().recv().unwrap();
                finished.fetch_add(1, Ordering::SeqCst);
            });
        }
        assert_eq!(syncer.shared.state.lock().threads.len(), 3);
        (0..10).for_each(|_| release.send(()).unwrap());
        drop(syncer);
        assert_eq!(finished.load(Ordering::SeqCst), 10, "dropping the pool finishes its work");
    }
}
