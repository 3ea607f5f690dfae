//! Enforces `flush.ms` for a log without a broker: one thread, started by the first append.

use std::fmt;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pykafka_forks::{Condvar, Mutex};

use crate::log::Log;

/// Syncs a log at most `flush.ms` after an append, or after the end of a sync that was running
/// then.
///
/// Uses real time, whatever clock the log has. An I/O error closes the log for writing, and the
/// next append returns it. Dropping the flusher ends the thread; in a forked child, which does not
/// have the thread, it does nothing.
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
    /// A flusher for a log whose settings limit the time without a sync; `None` for all others.
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

    /// Notes an append, which the caller may have synced already.
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
            // No thread could be started: sync here. The next append tries again to start one.
            self.shared.wishes.lock().sync = false;
            self.shared.flush();
        }
    }

    /// Ends the thread after its current sync.
    pub(crate) fn close(&self) {
        if self.process != std::process::id() {
            return;
        }
        self.shared.wishes.lock().close = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.lock().take() {
            // The thread has no result, and a panic in it has been printed.
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
            // Cleared before the sync: an append during the sync requests another one.
            wishes.sync = false;
            drop(wishes);
            self.flush();
            wishes = self.wishes.lock();
        }
    }

    fn flush(&self) {
        // An error closes the log for writing, and the next append returns it.
        drop(self.log.flush());
    }
}
