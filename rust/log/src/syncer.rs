//! The threads that wait for disks.
//!
//! A sync takes as long as the disk pleases, and a disk serves many at once: 100 dirty files take 26–230 ms on one
//! thread and 5–6 ms on many. So up to [`SYNC_THREADS_MAX`] blocking threads, made when work waits and no thread
//! does, take syncs from one queue.
//!
//! There is no timer. While a file is being synced, everyone who asks for it waits for the sync after: the round in
//! flight defines the next one, so a slow disk makes its own batches. Who waits is released by their own file.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};

use crate::disk::DiskFile;

/// Enough for one disk: more threads than this gain nothing on the disks that were measured.
pub const SYNC_THREADS_MAX: usize = 16;

type Task = Box<dyn FnOnce() + Send>;

/// Told the outcome of a sync, on one of the pool's threads.
pub type OnSynced = Box<dyn FnOnce(io::Result<()>) + Send>;

/// A pool of threads for syncs. Dropping it finishes what was asked for and joins the threads.
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
    /// By address of the file, which the round's task keeps alive.
    rounds: HashMap<usize, Vec<OnSynced>>,
    threads: Vec<JoinHandle<()>>,
    idle: usize,
    /// Tasks that threads are at.
    running: usize,
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

    /// Waits until nothing is queued or running. Whoever submits meanwhile prolongs it.
    pub fn wait_idle(&self) {
        let mut state = self.shared.state.lock();
        while state.running > 0 || !state.tasks.is_empty() {
            self.shared.quiet.wait(&mut state);
        }
    }

    /// Syncs `file` once more, and then calls `on_done`; everything written before this call is covered.
    ///
    /// An error is told to everyone whose bytes were in that round.
    pub fn sync(&self, file: &Arc<dyn DiskFile>, on_done: OnSynced) {
        if self.shared.state.lock().add_waiter(file, on_done) {
            self.shared.submit_round(Arc::clone(file));
        }
    }
}

impl State {
    /// Returns whether no round of this file is queued or running: the caller begins one.
    fn add_waiter(&mut self, file: &Arc<dyn DiskFile>, on_done: OnSynced) -> bool {
        let key = key_of(file);
        let begins = !self.rounds.contains_key(&key);
        self.rounds.entry(key).or_default().push(on_done);
        begins
    }
}

fn key_of(file: &Arc<dyn DiskFile>) -> usize {
    Arc::as_ptr(file).cast::<()>().addr()
}

impl Shared {
    fn submit_round(self: &Arc<Self>, file: Arc<dyn DiskFile>) {
        let shared = Arc::clone(self);
        self.submit(Box::new(move || shared.run_round(file)));
    }

    /// One sync for all who asked before it began; another one follows for those who asked meanwhile.
    fn run_round(self: &Arc<Self>, file: Arc<dyn DiskFile>) {
        let key = key_of(&file);
        let covered = self.state.lock().rounds.insert(key, Vec::new()).unwrap_or_default();
        let result = file.sync_data();
        for on_done in covered {
            on_done(copy_of(&result));
        }
        let mut state = self.state.lock();
        if state.rounds.get(&key).is_some_and(Vec::is_empty) {
            state.rounds.remove(&key);
            return;
        }
        drop(state);
        self.submit_round(file);
    }

    fn submit(self: &Arc<Self>, task: Task) {
        let mut state = self.state.lock();
        state.tasks.push_back(task);
        if state.tasks.len() > state.idle && state.threads.len() < self.threads_max {
            let shared = Arc::clone(self);
            let name = format!("pykafka-sync-{}", state.threads.len());
            let spawned = thread::Builder::new().name(name).spawn(move || shared.serve());
            match spawned {
                Ok(thread) => state.threads.push(thread),
                // Without a single thread the caller has to wait itself; later calls try again.
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
                task();
                drop(running);
                state = self.state.lock();
            } else if state.closed {
                return;
            } else {
                state.idle += 1;
                self.work.wait(&mut state);
                state.idle -= 1;
            }
        }
    }
}

/// Counts a task as running until it ends, be it by a panic.
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

fn copy_of(result: &io::Result<()>) -> io::Result<()> {
    match result {
        Ok(()) => Ok(()),
        Err(error) => Err(match error.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(error.kind(), error.to_string()),
        }),
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        let threads = {
            let mut state = self.shared.state.lock();
            state.closed = true;
            std::mem::take(&mut state.threads)
        };
        self.shared.work.notify_all();
        for thread in threads {
            // A task may hold the last handle: a thread does not wait for itself.
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
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;
    use crate::disk::{Allocated, ReadMap, Reserved, Window};

    /// A file whose syncs wait to be let through, each with the outcome it is told.
    #[derive(Debug)]
    struct GatedFile {
        began: Sender<()>,
        outcomes: Mutex<Receiver<io::Result<()>>>,
        syncs: AtomicUsize,
    }

    impl DiskFile for GatedFile {
        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
            Ok(0)
        }
        fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
            Ok(())
        }
        fn allocate(&self, _: u64, _: u64) -> io::Result<Allocated> {
            Ok(Allocated::Grown)
        }
        fn set_len(&self, _: u64) -> io::Result<()> {
            Ok(())
        }
        fn size(&self) -> io::Result<u64> {
            Ok(0)
        }
        fn sync_data(&self) -> io::Result<()> {
            self.syncs.fetch_add(1, Ordering::SeqCst);
            self.began.send(()).unwrap();
            self.outcomes.lock().recv().unwrap()
        }
        fn map_window(&self, _: &Reserved, _: u64) -> io::Result<Box<dyn Window>> {
            Err(io::ErrorKind::Unsupported.into())
        }
        fn map_read(&self, _: usize) -> io::Result<ReadMap> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    fn gated() -> (Arc<GatedFile>, Receiver<()>, Sender<io::Result<()>>) {
        let (began, has_begun) = channel();
        let (outcome, outcomes) = channel();
        let outcomes = Mutex::new(outcomes);
        let file = GatedFile { began, outcomes, syncs: AtomicUsize::new(0) };
        (Arc::new(file), has_begun, outcome)
    }

    #[test]
    fn the_round_in_flight_defines_the_next() {
        let syncer = Syncer::default();
        let (file, has_begun, outcome) = gated();
        let dynamic: Arc<dyn DiskFile> = file.clone();
        let (done, results) = channel();
        let ask = |who: usize| {
            let done = done.clone();
            syncer.sync(&dynamic, Box::new(move |r| done.send((who, r.is_ok())).unwrap()));
        };
        ask(0);
        has_begun.recv().unwrap();
        (1..10).for_each(ask);
        outcome.send(Ok(())).unwrap();
        assert_eq!(results.recv().unwrap(), (0, true));
        has_begun.recv().unwrap();
        outcome.send(Err(io::ErrorKind::Other.into())).unwrap();
        let mut rest: Vec<_> = (1..10).map(|_| results.recv().unwrap()).collect();
        rest.sort_unstable();
        assert_eq!(rest, (1..10).map(|who| (who, false)).collect::<Vec<_>>());
        drop(syncer);
        assert_eq!(file.syncs.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn files_wait_only_for_themselves() {
        let syncer = Syncer::default();
        let (slow, slow_began, slow_outcome) = gated();
        let (fast, fast_began, fast_outcome) = gated();
        let (done, results) = channel();
        for (name, file) in [("slow", slow as Arc<dyn DiskFile>), ("fast", fast)] {
            let done = done.clone();
            syncer.sync(&file, Box::new(move |_| done.send(name).unwrap()));
        }
        slow_began.recv().unwrap();
        fast_began.recv().unwrap();
        fast_outcome.send(Ok(())).unwrap();
        assert_eq!(results.recv().unwrap(), "fast");
        slow_outcome.send(Ok(())).unwrap();
        assert_eq!(results.recv().unwrap(), "slow");
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
