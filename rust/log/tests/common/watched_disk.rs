//! A memory disk that counts the bytes that are read, and can call a function right before a file
//! is opened.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use pykafka_log::MemoryDisk;
use pykafka_log::disk::{FileOp, Hook, HookedDisk};

pub type WatchedDisk = HookedDisk<MemoryDisk, Watch>;
type Act = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub struct Watch {
    bytes_read: AtomicU64,
    before_open: Mutex<Option<(PathBuf, Act)>>,
}

impl Watch {
    /// Bytes read from files so far.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::SeqCst)
    }

    /// Calls `act` once, right before the next open of `path`.
    pub fn before_open(&self, path: PathBuf, act: impl FnOnce() + Send + 'static) {
        *self.before_open.lock().unwrap() = Some((path, Box::new(act)));
    }

    /// True if no call of `act` is pending.
    pub fn has_acted(&self) -> bool {
        self.before_open.lock().unwrap().is_none()
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Hook for Watch {
    fn before(&self, op: FileOp, path: &Path) -> io::Result<()> {
        if op != FileOp::Open {
            return Ok(());
        }
        let act = self.before_open.lock().unwrap().take_if(|(wanted, _)| wanted == path);
        if let Some((_, act)) = act {
            act();
        }
        Ok(())
    }

    fn note_read(&self, size: usize) {
        self.bytes_read.fetch_add(size as u64, Ordering::SeqCst);
    }
}
