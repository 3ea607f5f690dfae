//! Limits the files that the logs of a process keep open.
//!
//! Logs keep handles, so that an append or a read needs no `open`. Each handle can be closed,
//! because the log opens the file again when it needs it. So the limit can always be enforced: an
//! `open` that exceeds it closes the handles of the segment that was idle longest, by the
//! second-chance algorithm (a segment that was used since the last check moves to the end). The
//! same happens when the system has no descriptor left because other parts of the process use them.

use std::collections::VecDeque;
use std::io;
use std::sync::Weak;
use std::sync::atomic::{AtomicUsize, Ordering};

use pykafka_forks::Mutex;
use rustix::process::{Resource, getrlimit};

/// Logs use half of the process's limit; the rest is for connections and for the host program.
const PART: u64 = 2;
const FILES_MIN: usize = 16;
/// Dropped holders are removed from the list when it has this many more holders than twice the open
/// files.
const GONE_MAX: usize = 64;

/// Keeps handles and can open them again.
pub(crate) trait Holder: Send + Sync {
    /// Closes the handles unless they were used since the last call, or are in use.
    fn close_idle(&self) -> Closed;
}

/// Result of [`Holder::close_idle`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closed {
    /// The handles were used recently or are in use: nothing was closed.
    InUse,
    /// All handles were closed. The holder must be listed again when it opens one.
    All,
}

/// Limits the files that logs keep open.
#[derive(Default)]
pub struct OpenFiles {
    count: AtomicUsize,
    holders: Mutex<VecDeque<Weak<dyn Holder>>>,
    /// Replaces half of the process's limit.
    count_max: Option<usize>,
}

impl OpenFiles {
    pub(crate) const fn new(count_max: Option<usize>) -> OpenFiles {
        let holders = Mutex::new(VecDeque::new());
        OpenFiles { count: AtomicUsize::new(0), holders, count_max }
    }

    /// Calls `open`, and again after other handles were closed.
    pub(crate) fn open<T>(&self, open: impl Fn() -> io::Result<T>) -> io::Result<T> {
        while self.is_full() && self.close_one() {}
        loop {
            match open() {
                Err(error) if is_out_of_descriptors(&error) && self.close_one() => {}
                result => return result,
            }
        }
    }

    /// Counts one file until the guard is dropped.
    pub(crate) fn count(&'static self) -> OpenFile {
        self.count.fetch_add(1, Ordering::Relaxed);
        OpenFile(self)
    }

    /// Lists a holder that was not listed, or whose handles were closed since.
    pub(crate) fn list(&self, holder: Weak<dyn Holder>) {
        let mut holders = self.holders.lock();
        if holders.len() > 2 * self.count.load(Ordering::Relaxed) + GONE_MAX {
            holders.retain(|holder| holder.strong_count() > 0);
        }
        holders.push_back(holder);
    }

    fn is_full(&self) -> bool {
        self.count.load(Ordering::Relaxed) >= self.count_max()
    }

    /// True if more files are in use than allowed: callers should not keep additional handles that
    /// cannot be closed now.
    pub(crate) fn are_too_many_in_use(&self) -> bool {
        self.count.load(Ordering::Relaxed) > self.count_max()
    }

    fn count_max(&self) -> usize {
        self.count_max.unwrap_or_else(files_max)
    }

    /// Closes the handles of the holder that was idle longest; `false` if there was no handle to
    /// close.
    fn close_one(&self) -> bool {
        // Twice, because at the first check each may have been used.
        let looks = 2 * self.holders.lock().len();
        for _ in 0..looks {
            let Some(holder) = self.holders.lock().pop_front() else { return false };
            match holder.upgrade().map(|holder| holder.close_idle()) {
                Some(Closed::All) => return true,
                Some(Closed::InUse) => self.holders.lock().push_back(holder),
                None => {}
            }
        }
        false
    }
}

/// The limit may be raised while the process runs, so it is read each time.
fn files_max() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit / PART).unwrap_or(usize::MAX).max(FILES_MIN)
}

/// Counts an open file until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenFile(&'static OpenFiles);

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for OpenFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenFiles").field("count", &self.count).finish_non_exhaustive()
    }
}

/// True if the process or the system has no descriptor left.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// True if the system lacks a resource that may be available later: descriptors or memory. The file
/// is not faulty.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    is_out_of_descriptors(error) || error.kind() == io::ErrorKind::OutOfMemory
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    static FILES: OpenFiles = OpenFiles::new(Some(3));

    #[derive(Default)]
    struct Handle {
        file: Mutex<Option<OpenFile>>,
        used: AtomicBool,
    }

    impl Handle {
        fn open() -> Arc<Handle> {
            let handle = Arc::new(Handle::default());
            *handle.file.lock() = FILES.open(|| Ok(Some(FILES.count()))).unwrap();
            let listed: Arc<dyn Holder> = handle.clone();
            FILES.list(Arc::downgrade(&listed));
            handle
        }

        fn is_open(&self) -> bool {
            self.file.lock().is_some()
        }
    }

    impl Holder for Handle {
        fn close_idle(&self) -> Closed {
            if self.used.swap(false, Ordering::Relaxed) {
                return Closed::InUse;
            }
            *self.file.lock() = None;
            Closed::All
        }
    }

    #[test]
    fn an_open_beyond_the_bound_closes_the_longest_idle_one_and_never_passes_it() {
        let mut handles: Vec<_> = (0..3).map(|_| Handle::open()).collect();
        handles[0].used.store(true, Ordering::Relaxed);
        handles.push(Handle::open());
        let open = |handles: &[Arc<Handle>]| {
            handles.iter().map(|handle| handle.is_open()).collect::<Vec<_>>()
        };
        assert_eq!(open(&handles), [true, false, true, true]);
        assert_eq!(FILES.count.load(Ordering::Relaxed), 3);
        // If no descriptor is available, one more handle is closed; the error is returned when none
        // is left to close.
        let refused = FILES.open(|| Err::<(), _>(rustix::io::Errno::MFILE.into())).unwrap_err();
        assert!(is_out_of_descriptors(&refused) && is_exhausted(&refused));
        assert_eq!(open(&handles), [false; 4]);
        assert_eq!(FILES.count.load(Ordering::Relaxed), 0);
    }
}
