//! Keeps `flush.ms` for a log that no broker looks after: one thread, made with the first append.

use std::fmt;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pykafka_forks::{Condvar, Mutex};

use crate::log::Log;

/// Syncs a log at the latest `flush.ms` after an append, or after the sync that was under way then.
///
/// The time is real time, whatever clock the log has. An error is final for the log, which tells the next append.
/// Dropping it ends the thread; in a forked child, which has none, nothing happens.
pub struct Flusher {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    process: u32,
}

struct Shared {
    log: Arc<Log>,
    interval: Duration,
    wishes: Mutex<Wishes>,
    wake: Condvar,
}

#[derive(Default)]
struct Wishes {
    sync: bool,
    close: bool,
}

impl Flusher {
    /// The flusher of a log whose settings bound the time without a sync; others need none.
    pub(crate) fn of(log: &Arc<Log>) -> Option<Flusher> {
        let config = log.config();
        let interval = Duration::from_millis(u64::try_from(config.flush_ms).ok()?);
        if config.flush_ms == i64::MAX || config.syncs_every_append() {
            return None;
        }
        let (wishes, wake) = (Mutex::default(), Condvar::new());
        let shared = Shared { log: log.clone(), interval, wishes, wake };
        let process = std::process::id();
        Some(Flusher { shared: Arc::new(shared), thread: Mutex::default(), process })
    }

    /// Tells of an append, which the caller may have synced.
    pub fn note_append(&self) {
        let mut wishes = self.shared.wishes.lock();
        if !wishes.sync && !wishes.close {
            wishes.sync = true;
            self.shared.wake.notify_one();
            drop(wishes);
            self.start();
        }
    }

    fn start(&self) {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = self.shared.clone();
            let spawned = thread::Builder::new()
                .name("pykafka-flush".to_owned())
                .spawn(move || shared.serve());
            *thread = spawned.ok();
        }
        if thread.is_none() {
            // Nobody else will: the next append tries again for a thread.
            self.shared.wishes.lock().sync = false;
            self.shared.flush();
        }
    }

    /// Ends the thread, which finishes the sync it is at.
    pub(crate) fn close(&self) {
        if self.process != std::process::id() {
            return;
        }
        self.shared.wishes.lock().close = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.lock().take() {
            // It holds nothing to lose: a panic there has been printed.
            drop(thread.join());
        }
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Flusher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flusher").field("interval", &self.shared.interval).finish_non_exhaustive()
    }
}

impl Shared {
    fn serve(&self) {
        let mut wishes = self.wishes.lock();
        loop {
            wishes = self.wake.wait_while(wishes, |wishes| !wishes.sync && !wishes.close);
            wishes = self.wake.wait_while_for(wishes, |wishes| !wishes.close, self.interval);
            if wishes.close {
                return;
            }
            // Before the sync: an append that comes while it runs asks for another one.
            wishes.sync = false;
            drop(wishes);
            self.flush();
            wishes = self.wishes.lock();
        }
    }

    fn flush(&self) {
        // An error closes the log for writing, and the next append raises it.
        drop(self.log.flush());
    }
}
