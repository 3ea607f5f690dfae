//! An in-memory disk whose operations wait for a gate, or fail.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use pykafka_forks::{Condvar, Mutex};
use pykafka_log::MemoryDisk;
pub(crate) use pykafka_log::disk::FileOp as Op;
use pykafka_log::disk::{Hook, HookedDisk};

/// An in-memory disk with a gate.
pub(crate) type GateDisk = HookedDisk<MemoryDisk, Gate>;

#[derive(Debug, Default)]
struct State {
    held: Vec<(Op, PathBuf)>,
    /// Number of held operations that may continue nevertheless.
    passes: usize,
    failing: Vec<(Op, PathBuf, io::ErrorKind)>,
    waiting: usize,
    begun: Vec<(Op, PathBuf)>,
    synced: usize,
    last_writer: String,
}

impl State {
    fn applies(rules: &[(Op, PathBuf)], op: Op, path: &Path) -> bool {
        rules.iter().any(|(ruled, dir)| *ruled == op && path.starts_with(dir))
    }
}

/// Holds or fails file operations.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    /// Makes syncs wait from now on.
    pub(crate) fn hold(&self) {
        self.hold_at(Op::Sync, "/data");
    }

    /// Makes operations below `dir` wait from now on.
    pub(crate) fn hold_at(&self, op: Op, dir: impl Into<PathBuf>) {
        self.state.lock().held.push((op, dir.into()));
    }

    /// Lets one operation pass that waits, or the next one that would; returns when it has passed.
    pub(crate) fn let_one_through(&self) {
        let mut state = self.state.lock();
        state.passes += 1;
        self.changed.notify_all();
        while state.passes > 0 {
            state = self.changed.wait(state);
        }
    }

    /// Lets all operations pass, now and later.
    pub(crate) fn open(&self) {
        self.state.lock().held.clear();
        self.changed.notify_all();
    }

    /// Makes syncs fail from now on.
    pub(crate) fn fail(&self) {
        self.fail_at(Op::Sync, "/data");
    }

    /// Makes operations below `dir` fail from now on.
    pub(crate) fn fail_at(&self, op: Op, dir: impl Into<PathBuf>) {
        self.fail_with(io::ErrorKind::Other, op, dir);
    }

    /// Makes operations below `dir` fail from now on, as without a free descriptor.
    pub(crate) fn refuse_at(&self, op: Op, dir: impl Into<PathBuf>) {
        self.fail_with(io::ErrorKind::OutOfMemory, op, dir);
    }

    /// Makes operations below `dir` fail from now on, as on a full disk.
    pub(crate) fn fill_at(&self, op: Op, dir: impl Into<PathBuf>) {
        self.fail_with(io::ErrorKind::StorageFull, op, dir);
    }

    fn fail_with(&self, kind: io::ErrorKind, op: Op, dir: impl Into<PathBuf>) {
        self.state.lock().failing.push((op, dir.into(), kind));
    }

    /// Ends all failures.
    pub(crate) fn heal(&self) {
        self.state.lock().failing.clear();
    }

    /// Blocks until `count` operations wait at the gate.
    pub(crate) fn until_waiting(&self, count: usize) {
        let mut state = self.state.lock();
        while state.waiting < count {
            state = self.changed.wait(state);
        }
    }

    /// Number of times that `op` started on the file `path`.
    pub(crate) fn count(&self, op: Op, path: &Path) -> usize {
        let state = self.state.lock();
        state.begun.iter().filter(|(begun, on)| *begun == op && on == path).count()
    }

    /// Name of the thread that wrote last.
    pub(crate) fn last_writer(&self) -> String {
        self.state.lock().last_writer.clone()
    }

    /// Number of successful syncs.
    pub(crate) fn synced(&self) -> usize {
        self.state.lock().synced
    }
}

impl Hook for Gate {
    fn before(&self, op: Op, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.begun.push((op, path.to_owned()));
        if op == Op::Write {
            thread::current().name().unwrap_or_default().clone_into(&mut state.last_writer);
        }
        state.waiting += 1;
        self.changed.notify_all();
        while State::applies(&state.held, op, path) {
            if state.passes > 0 {
                state.passes -= 1;
                self.changed.notify_all();
                break;
            }
            state = self.changed.wait(state);
        }
        state.waiting -= 1;
        let failing = |rule: &&(Op, PathBuf, _)| rule.0 == op && path.starts_with(&rule.1);
        if let Some((_, _, kind)) = state.failing.iter().find(failing) {
            return Err(io::Error::new(*kind, "the gate fails it"));
        }
        state.synced += usize::from(op == Op::Sync);
        Ok(())
    }
}
