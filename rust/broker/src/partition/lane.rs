//! Where maintenance runs: commands that wait for a disk and that nobody on a network thread, nor the control thread, may wait for.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::Handle;

/// Threads at once: one slow command does not hold up all others, and the disk is left to the clients.
const WORKERS_MAX: usize = 2;

type Command = Box<dyn FnOnce() + Send>;

/// Runs commands in their order, two at a time, on the runtime's threads for blocking work.
pub struct Lane {
    runtime: Handle,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    commands: VecDeque<Command>,
    workers: usize,
}

impl Lane {
    /// Nothing to do yet.
    pub fn new(runtime: Handle) -> Arc<Lane> {
        Arc::new(Lane { runtime, state: Mutex::default() })
    }

    /// Queues a command; never blocks.
    pub fn push(self: &Arc<Self>, command: impl FnOnce() + Send + 'static) {
        let mut state = self.state.lock();
        state.commands.push_back(Box::new(command));
        if state.workers < WORKERS_MAX {
            state.workers += 1;
            let lane = self.clone();
            self.runtime.spawn_blocking(move || lane.work());
        }
    }

    fn work(&self) {
        while let Some(command) = self.next() {
            command();
        }
    }

    /// The next command, or the end of this worker.
    fn next(&self) -> Option<Command> {
        let mut state = self.state.lock();
        let command = state.commands.pop_front();
        if command.is_none() {
            state.workers -= 1;
        }
        command
    }
}
