//! Allows one process per log directory, and one opener per process.
//!
//! Apache Kafka also takes an `fcntl` lock on `.lock`, so each excludes the other; `flock` would
//! not. An `fcntl` lock belongs to the process: it does not stop a second opener in the same
//! process, and closing *any* descriptor of the file releases it. So a process-wide registry is
//! checked first, and only this module opens `.lock`.
//!
//! A forked child does not hold the lock and must not use the files that its parent opened:
//! [`DirectoryLock::check_process`] fails there. The child has its own registry.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pykafka_forks::{ForkClosed, Mutex, OfProcess, PerProcess};
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use rustix::process::{Flock, FlockType};

/// The file that is locked.
pub const LOCK_FILE: &str = ".lock";

/// Device and inode of a directory, which do not depend on how its path is written.
type DirectoryId = (u64, u64);

/// Directories that this process has open.
static OPEN: PerProcess<Mutex<HashSet<DirectoryId>>> = PerProcess::new(Mutex::default);

/// The reason why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The directory is open already.
    #[error("{} is in use by {}", dir.display(), if *.here { "this process" } else { "another process" })]
    Held {
        /// The directory.
        dir: PathBuf,
        /// True if this process has it open, false if another process has.
        here: bool,
    },
    /// This process was forked from the one that opened the directory.
    #[error("{} was opened before this process was forked; reopen it", dir.display())]
    Forked {
        /// The directory.
        dir: PathBuf,
    },
    /// The lock file cannot be created or locked.
    #[error("cannot lock {}: {error}", dir.display())]
    Io {
        /// The directory.
        dir: PathBuf,
        /// The error of the system call.
        #[source]
        error: io::Error,
    },
}

/// The right to write to a directory; released when dropped.
#[derive(Debug)]
pub struct DirectoryLock {
    dir: PathBuf,
    held: OfProcess<Held>,
}

#[derive(Debug)]
struct Held {
    id: DirectoryId,
    /// The lock is held while this file is open; `None` only during the drop.
    file: Option<ForkClosed<File>>,
}

impl DirectoryLock {
    /// Takes the lock of `dir`, which must exist. Does not block.
    pub fn acquire(dir: &Path) -> Result<Self, LockError> {
        let failed = |error| LockError::Io { dir: dir.to_owned(), error };
        let metadata = fs::metadata(dir).map_err(failed)?;
        let id = (metadata.dev(), metadata.ino());
        // Held throughout: a second opener must not touch the file while the first one locks it.
        let mut open = OPEN.get().lock();
        if open.contains(&id) {
            return Err(LockError::Held { dir: dir.to_owned(), here: true });
        }
        let file = ForkClosed::new(open_lock_file(dir).map_err(failed)?);
        match rustix::fs::fcntl_lock(&*file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::AGAIN | Errno::ACCESS) => {
                return Err(LockError::Held { dir: dir.to_owned(), here: false });
            }
            Err(error) => return Err(failed(error.into())),
        }
        open.insert(id);
        let held = OfProcess::new(Held { id, file: Some(file) });
        Ok(DirectoryLock { dir: dir.to_owned(), held })
    }

    /// True if any process holds the lock of `dir`, as far as the system reports it. Takes no lock
    /// and writes nothing.
    pub(crate) fn is_held(dir: &Path) -> bool {
        let Ok(metadata) = fs::metadata(dir) else { return false };
        // Held throughout: if this process took the lock during the check, closing the descriptor
        // here would release it.
        let open = OPEN.get().lock();
        if open.contains(&(metadata.dev(), metadata.ino())) {
            return true;
        }
        let Ok(file) = open_options().read(true).open(dir.join(LOCK_FILE)) else { return false };
        let wanted = Flock::from(FlockType::WriteLock);
        rustix::process::fcntl_getlk(&file, &wanted).is_ok_and(|held| held.is_some())
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Fails in a forked child, which must not use the files that its parent opened.
    pub fn check_process(&self) -> Result<(), LockError> {
        if self.held.is_own() {
            return Ok(());
        }
        Err(LockError::Forked { dir: self.dir.clone() })
    }
}

fn open_lock_file(dir: &Path) -> io::Result<File> {
    let mut options = open_options();
    options.read(true).write(true).create(true).truncate(false).open(dir.join(LOCK_FILE))
}

fn open_options() -> OpenOptions {
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.custom_flags(flags.bits().cast_signed());
    options
}

impl Drop for Held {
    fn drop(&mut self) {
        // Closed under the registry's mutex: a close after another opener has locked would release
        // its lock.
        let mut open = OPEN.get().lock();
        drop(self.file.take());
        open.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_directory_opens_once_whatever_its_path() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("data");
        fs::create_dir(&dir).unwrap();
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&dir, &link).unwrap();
        let lock = DirectoryLock::acquire(&dir).unwrap();
        lock.check_process().unwrap();
        for path in [&dir, &link, &dir.join("../data")] {
            let error = DirectoryLock::acquire(path).unwrap_err();
            assert!(matches!(error, LockError::Held { here: true, .. }), "{error}");
        }
        drop(lock);
        DirectoryLock::acquire(&link).unwrap();
    }

    #[test]
    fn another_process_is_kept_out_until_the_lock_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let try_lock = "import fcntl, sys\n\
             file = open(sys.argv[1], 'r+')\n\
             try: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n\
             except OSError: sys.exit(7)";
        let outcome = || {
            let path = dir.path().join(LOCK_FILE);
            let status = Command::new("python3").args(["-c", try_lock]).arg(path).status();
            status.unwrap().code()
        };
        let lock = DirectoryLock::acquire(dir.path()).unwrap();
        assert!(DirectoryLock::acquire(dir.path()).is_err(), "and trying again here frees nothing");
        assert_eq!(outcome(), Some(7));
        drop(lock);
        assert_eq!(outcome(), Some(0));
    }

    #[test]
    fn lock_of_another_process_is_distinguished() {
        let dir = tempfile::tempdir().unwrap();
        let hold = "import fcntl, sys\n\
             file = open(sys.argv[1], 'w')\n\
             fcntl.lockf(file, fcntl.LOCK_EX)\n\
             print('held', flush=True)\n\
             sys.stdin.read()";
        let mut child = Command::new("python3")
            .args(["-c", hold])
            .arg(dir.path().join(LOCK_FILE))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let output = child.stdout.take().unwrap();
        assert!(!DirectoryLock::is_held(&dir.path().join("missing")));
        io::BufRead::read_line(&mut io::BufReader::new(output), &mut said).unwrap();
        assert!(DirectoryLock::is_held(dir.path()));
        let error = DirectoryLock::acquire(dir.path()).unwrap_err();
        assert!(matches!(error, LockError::Held { here: false, .. }), "{error}");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!DirectoryLock::is_held(dir.path()));
        let _lock = DirectoryLock::acquire(dir.path()).unwrap();
        assert!(DirectoryLock::is_held(dir.path()));
    }

    #[test]
    fn a_missing_directory_is_an_error() {
        let error = DirectoryLock::acquire(Path::new("/nonexistent/data")).unwrap_err();
        assert!(matches!(error, LockError::Io { .. }));
    }
}
