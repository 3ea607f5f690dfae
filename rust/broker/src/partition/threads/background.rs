//! The threads for maintenance: work that waits for a disk, or that connection threads and the
//! control thread must not wait for.
//!
//! Two threads work, so that the clients can use the disk. Commands that hang on a disk do not
//! count: if none has ended for [`STALLED_AFTER`] and some wait, another thread is started, up to
//! [`WORKERS_MAX`]. Commands that a request waits for run before background commands.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pykafka_forks::{Condvar, Mutex};
use pykafka_log::perturb::hand_over;

use super::may_wait::MayWait;

/// Number of threads while commands end.
const WORKERS: usize = 2;
/// Maximum number of threads, including stalled ones.
const WORKERS_MAX: usize = 16;
/// The threads count as stalled if no command has ended for this time.
const STALLED_AFTER: Duration = Duration::from_millis(100);

type Command = Box<dyn FnOnce(&MayWait) + Send>;

/// The urgency of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// No request waits for it.
    Background,
    /// A request waits for it, or a topic that is created again.
    Asked,
}

/// The maintenance threads. Commands of the same urgency start in the order of the calls.
#[derive(Default)]
pub(crate) struct BackgroundQueue {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    asked: VecDeque<Command>,
    background: VecDeque<Command>,
    workers: usize,
    /// True if a thread watches the workers.
    is_watched: bool,
    /// Number of queued commands.
    begun: u64,
    /// Number of ended commands.
    ended: u64,
}

impl BackgroundQueue {
    /// Queues a command; never blocks.
    pub(crate) fn push(&self, urgency: Urgency, command: impl FnOnce(&MayWait) + Send + 'static) {
        let mut state = self.shared.state.lock();
        state.begun += 1;
        match urgency {
            Urgency::Asked => state.asked.push_back(Box::new(command)),
            Urgency::Background => state.background.push_back(Box::new(command)),
        }
        if state.workers < WORKERS {
            state.workers += 1;
            drop(state);
            self.shared.spawn(Shared::work);
        } else if !state.is_watched && state.workers < WORKERS_MAX {
            state.is_watched = true;
            drop(state);
            self.shared.spawn(Shared::watch);
        }
    }

    /// Number of commands that were queued so far.
    pub(in crate::partition) fn begun(&self) -> u64 {
        self.shared.state.lock().begun
    }

    /// Waits until no command is queued or running.
    pub(crate) fn wait_idle(&self, _: &MayWait) {
        let mut state = self.shared.state.lock();
        while state.workers > 0 || !state.is_empty() {
            state = self.shared.changed.wait(state);
        }
    }
}

impl Shared {
    /// Runs `run` on a new thread, or on the caller's if that cannot be started.
    fn spawn(self: &Arc<Self>, run: fn(&Arc<Shared>)) {
        let shared = self.clone();
        let name = "pykafka-maint".to_owned();
        if thread::Builder::new().name(name).spawn(move || run(&shared)).is_err() {
            run(self);
        }
    }

    fn work(self: &Arc<Self>) {
        let working = Working(self);
        while let Some(command) = self.next() {
            hand_over();
            command(&MayWait::on_maintenance_thread());
            hand_over();
            self.state.lock().ended += 1;
        }
        mem::forget(working);
    }

    /// The next command; without one, this worker ends.
    fn next(&self) -> Option<Command> {
        let mut state = self.state.lock();
        let command = state.asked.pop_front().or_else(|| state.background.pop_front());
        if command.is_none() {
            state.workers -= 1;
            self.changed.notify_all();
        }
        command
    }

    /// Waits until no command is left to start, or until no command ends any more; then becomes a
    /// worker.
    fn watch(self: &Arc<Self>) {
        let mut state = self.state.lock();
        loop {
            let ended = state.ended;
            state = self.changed.wait_for(state, STALLED_AFTER);
            if state.is_empty() {
                state.is_watched = false;
                return;
            }
            if state.ended == ended {
                break;
            }
        }
        state.workers += 1;
        let is_last = state.workers >= WORKERS_MAX;
        state.is_watched = !is_last;
        drop(state);
        if !is_last {
            self.spawn(Shared::watch);
        }
        self.work();
    }
}

impl State {
    fn is_empty(&self) -> bool {
        self.asked.is_empty() && self.background.is_empty()
    }
}

/// Counts a worker as ended if its command panics.
struct Working<'a>(&'a Shared);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.state.lock().workers -= 1;
        self.0.changed.notify_all();
    }
}
