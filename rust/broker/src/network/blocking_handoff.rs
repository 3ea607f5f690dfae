//! Network threads may block for a short time; if the wait becomes long, another thread takes over
//! their other work.
//!
//! # Theory of operation
//! A thread that blocks inside a task delays the tasks in its own queue, and the sockets if no
//! other thread polls them. `block_in_place` hands all of that, the thread's core, to a
//! blocking-pool thread, and takes it back if no thread has fetched it when the wait ends. Waking a
//! thread for each wait costs more than most waits take. So the runtime has exactly as many
//! blocking-pool threads as there are *spares*, and each spare keeps its thread busy. Then
//! `block_in_place` puts the core into the blocking queue and takes it back without a system call.
//!
//! One spare at a time watches. If a wait lasts from one tick to the next, the spare releases its
//! thread, which finds the stalled core in the queue and becomes a network thread. The stalled
//! thread has no core when its wait ends, so it serves the blocking queue and finds the spare that
//! was put there. The number of threads never changes.
//!
//! At most as many threads may wait at a time as there are spares, and no wait starts while another
//! one is stalled.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::thread;
use std::time::Duration;

use pykafka_forks::{Condvar, Mutex};
use tokio::task::{block_in_place, spawn_blocking};

/// A wait that lasts from one tick to the next is stalled.
const TICK: Duration = Duration::from_millis(1);
/// After this many ticks without a wait, the watching spare sleeps.
const QUIET_TICKS: u32 = 20;
/// Each wait leaves an entry in the blocking queue. At this many entries, the thread of a spare
/// removes them.
const ENTRIES_MAX: u64 = 1_024;

/// States of a place. Any other value is the number of a running wait, combined with `STALLED` if
/// it is stalled.
const FREE: u64 = 0;
const TAKEN: u64 = 1;
const STALLED: u64 = 1 << 63;

thread_local! {
    /// The spares of the engine that owns this thread.
    static HERE: OnceCell<Arc<Spares>> = const { OnceCell::new() };
}

/// The spares of one engine.
#[derive(Debug)]
pub(crate) struct Spares {
    /// One place for each spare.
    places: Box<[AtomicU64]>,
    /// Number of the last wait that started.
    last_wait: AtomicU64,
    stalled_count: AtomicUsize,
    started: Once,
    /// Locked by the watching spare.
    watching: Mutex<()>,
    /// True if that spare is awake or was woken.
    is_awake: AtomicBool,
    sleep: Mutex<()>,
    woken: Condvar,
}

/// Permission to block for a short time, on the thread that took it.
#[derive(Debug)]
pub(crate) struct BlockingPermit {
    spares: Arc<Spares>,
    place: usize,
}

impl BlockingPermit {
    /// `None` on threads that do not belong to an engine, and while too many threads wait or one is
    /// stalled.
    pub(crate) fn take() -> Option<BlockingPermit> {
        HERE.with(|here| here.get().and_then(Spares::take))
    }

    /// Runs `wait`, which should be short.
    #[expect(clippy::disallowed_methods, reason = "a spare looks after it")]
    pub(crate) fn wait<T>(self, wait: impl FnOnce() -> T) -> T {
        block_in_place(|| {
            // Not earlier: a spare that releases its thread must find the core in the queue.
            self.spares.begin(self.place);
            wait()
        })
    }
}

impl Drop for BlockingPermit {
    fn drop(&mut self) {
        if self.spares.places[self.place].swap(FREE, Ordering::SeqCst) & STALLED != 0 {
            self.spares.stalled_count.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Spares {
    /// Creates spares; the first [`BlockingPermit`] starts their threads.
    pub(crate) fn new(count: usize) -> Arc<Spares> {
        Arc::new(Spares {
            places: (0..count).map(|_| AtomicU64::new(FREE)).collect(),
            last_wait: AtomicU64::new(TAKEN),
            stalled_count: AtomicUsize::new(0),
            started: Once::new(),
            watching: Mutex::default(),
            is_awake: AtomicBool::new(true),
            sleep: Mutex::default(),
            woken: Condvar::new(),
        })
    }

    /// Makes moments available on the current thread. Its runtime must have `count` blocking
    /// threads.
    pub(crate) fn serve_this_thread(self: &Arc<Self>) {
        HERE.with(|here| drop(here.set(self.clone())));
    }

    fn take(self: &Arc<Self>) -> Option<BlockingPermit> {
        self.started.call_once(|| self.places.iter().for_each(|_| self.stand_by()));
        if self.stalled_count.load(Ordering::SeqCst) > 0 {
            return None;
        }
        let is_free = |place: &AtomicU64| {
            place.compare_exchange(FREE, TAKEN, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        };
        let place = self.places.iter().position(is_free)?;
        Some(BlockingPermit { spares: self.clone(), place })
    }

    fn begin(&self, place: usize) {
        let wait = self.last_wait.fetch_add(1, Ordering::SeqCst) + 1;
        self.places[place].store(wait, Ordering::SeqCst);
        if !self.is_awake.load(Ordering::SeqCst) && !self.is_awake.swap(true, Ordering::SeqCst) {
            let _sleep = self.sleep.lock();
            self.woken.notify_one();
        }
    }

    /// Queues a spare after the other entries of the blocking queue.
    #[expect(clippy::disallowed_methods, reason = "this is what those threads are for")]
    fn stand_by(self: &Arc<Self>) {
        let spares = self.clone();
        drop(spawn_blocking(move || {
            let watching = spares.watching.lock();
            spares.watch();
            spares.stand_by();
            drop(watching);
        }));
    }

    /// Returns when a wait is stalled, or when the queue has many entries.
    fn watch(&self) {
        let first_wait = self.last_wait.load(Ordering::SeqCst);
        let mut quiet_ticks = 0;
        while self.last_wait.load(Ordering::SeqCst) - first_wait < ENTRIES_MAX {
            let before: Vec<u64> = self.waits().collect();
            thread::sleep(TICK);
            let lasting = self.places.iter().zip(&before);
            if lasting.fold(false, |found, (place, wait)| self.is_stalled(place, *wait) || found) {
                return;
            }
            quiet_ticks = if self.waits().eq(before) { quiet_ticks + 1 } else { 0 };
            if quiet_ticks == QUIET_TICKS {
                quiet_ticks = 0;
                self.sleep();
            }
        }
    }

    fn waits(&self) -> impl Iterator<Item = u64> {
        self.places.iter().map(|place| place.load(Ordering::SeqCst))
    }

    /// Marks `wait` as stalled if it still runs at `place`; returns false if it does not.
    fn is_stalled(&self, place: &AtomicU64, wait: u64) -> bool {
        if !is_running(wait) {
            return false;
        }
        self.stalled_count.fetch_add(1, Ordering::SeqCst);
        let stalled = wait | STALLED;
        let marked = place.compare_exchange(wait, stalled, Ordering::SeqCst, Ordering::Relaxed);
        if marked.is_err() {
            self.stalled_count.fetch_sub(1, Ordering::SeqCst);
        }
        marked.is_ok()
    }

    /// Sleeps until the next wait starts.
    fn sleep(&self) {
        let mut sleep = self.sleep.lock();
        self.is_awake.store(false, Ordering::SeqCst);
        // A wait that started before `is_awake` was cleared did not wake this thread.
        if self.waits().any(is_running) {
            self.is_awake.store(true, Ordering::SeqCst);
        }
        while !self.is_awake.load(Ordering::SeqCst) {
            sleep = self.woken.wait(sleep);
        }
    }
}

fn is_running(wait: u64) -> bool {
    wait > TAKEN && wait & STALLED == 0
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::network::engine::Engine;

    /// Long enough for a busy machine.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Retries, because other tests use these spares too.
    async fn moment() -> BlockingPermit {
        loop {
            if let Some(moment) = BlockingPermit::take() {
                return moment;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Without spares, a task that the stalled thread has just spawned never runs: no other thread
    /// can steal it.
    #[test]
    fn tasks_of_a_thread_that_waits_long_run_on_another_thread() {
        let engine = Engine::shared().unwrap();
        // More often than there are spares, so they must be reused.
        for _ in 0..10 {
            let (run, has_run) = mpsc::channel();
            let (open, gate) = mpsc::channel();
            let waiting = engine.handle().spawn(async move {
                let moment = moment().await;
                let waits_on = thread::current().id();
                tokio::spawn(async move {
                    // Woken by the timer, so another thread must poll the driver too.
                    tokio::time::sleep(TICK).await;
                    run.send((waits_on, thread::current().id())).unwrap();
                });
                moment.wait(|| gate.recv_timeout(PATIENCE)).unwrap();
            });
            let (waits_on, ran_on) = has_run.recv_timeout(PATIENCE).unwrap();
            assert_ne!(waits_on, ran_on);
            open.send(()).unwrap();
            engine.handle().block_on(waiting).unwrap();
        }
    }

    #[test]
    fn blocking_waits_are_rejected_while_another_thread_is_stalled() {
        let engine = Engine::shared().unwrap();
        let (open, gate) = mpsc::channel::<()>();
        let waiting = engine.handle().spawn(async move {
            let moment = moment().await;
            moment.wait(|| gate.recv_timeout(PATIENCE)).unwrap();
        });
        let refused = engine.handle().spawn(async move {
            while BlockingPermit::take().is_some() {
                tokio::task::yield_now().await;
            }
        });
        engine.handle().block_on(refused).unwrap();
        open.send(()).unwrap();
        engine.handle().block_on(waiting).unwrap();
        engine.handle().block_on(engine.handle().spawn(async { drop(moment().await) })).unwrap();
    }

    fn threads_of_engines() -> usize {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")));
        names.filter(|name| name.as_ref().is_ok_and(|name| name.starts_with("pykafka-net"))).count()
    }

    #[test]
    fn number_of_threads_does_not_grow_with_waits() {
        let engine = Engine::shared().unwrap();
        let waits = engine.handle().spawn(async {
            for _ in 0..3 * ENTRIES_MAX {
                moment().await.wait(|| ());
                tokio::task::yield_now().await;
            }
        });
        engine.handle().block_on(waits).unwrap();
        let spares = engine.handle().block_on(
            engine.handle().spawn(async { HERE.with(|here| here.get().unwrap().places.len()) }),
        );
        assert_eq!(threads_of_engines(), 2 * spares.unwrap());
    }

    #[test]
    fn foreign_threads_may_not_block() {
        assert!(BlockingPermit::take().is_none());
    }
}
