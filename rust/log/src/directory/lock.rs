//! Allows one process per log directory, and one opener per process.
//!
//! The lock is an `fcntl` lock on `.lock`, as Apache Kafka takes it, so each excludes the other;
//! `flock` would not. It belongs to the open file description (`F_OFD_SETLK`), and ends with the
//! descriptor that took it. A POSIX lock (`F_SETLK`) belongs to the process, which loses it when
//! any code closes any descriptor of the file, as a copy of the directory does. It is only the
//! fallback for kernels without the other kind.
//!
//! A process-wide registry distinguishes an opener in this process from one in another process, and
//! makes the fallback exclude a second opener in the same process.
//!
//! A forked child does not hold the lock and must not use the files that its parent opened:
//! [`DirectoryLock::check_process`] fails there. The child has its own registry, and its copy of
//! the descriptor is closed at the fork: otherwise the child would hold the lock too.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use libc::{c_int, c_short};
use pykafka_forks::{ForkClosed, Mutex, OfProcess, PerProcess};
use rustix::fs::OFlags;

/// The file that is locked.
pub const LOCK_FILE: &str = ".lock";

/// The commands that take the lock, best first.
const COMMANDS: [c_int; 2] = [libc::F_OFD_SETLK, libc::F_SETLK];

/// Kinds of locks. Their types differ between operating systems.
const EXCLUSIVE: c_short = libc::F_WRLCK as c_short;
const UNLOCKED: c_short = libc::F_UNLCK as c_short;

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
    /// The one of [`COMMANDS`] that took the lock.
    command: c_int,
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
        let Some(command) = lock(&file, &COMMANDS).map_err(failed)? else {
            return Err(LockError::Held { dir: dir.to_owned(), here: false });
        };
        open.insert(id);
        let held = OfProcess::new(Held { id, command, file: Some(file) });
        Ok(DirectoryLock { dir: dir.to_owned(), held })
    }

    /// True if any process holds the lock of `dir`, as far as the system reports it. Takes no lock
    /// and writes nothing.
    pub(crate) fn is_held(dir: &Path) -> bool {
        let Ok(metadata) = fs::metadata(dir) else { return false };
        // Held throughout: if this process took the lock of the fallback during the check, closing
        // the descriptor here would release it.
        let open = OPEN.get().lock();
        if open.contains(&(metadata.dev(), metadata.ino())) {
            return true;
        }
        let Ok(file) = open_options().read(true).open(dir.join(LOCK_FILE)) else { return false };
        control(&file, libc::F_GETLK, EXCLUSIVE).is_ok_and(|found| found != UNLOCKED)
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

/// Locks a file with the first of `commands` that the kernel supports, and returns that command;
/// `None` if another process holds the lock. Does not block.
fn lock(file: &File, commands: &[c_int]) -> io::Result<Option<c_int>> {
    let mut unsupported = io::Error::from(io::ErrorKind::Unsupported);
    for command in commands {
        match control(file, *command, EXCLUSIVE) {
            Ok(_) => return Ok(Some(*command)),
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EACCES) => return Ok(None),
                Some(libc::EINVAL) => unsupported = error,
                _ => return Err(error),
            },
        }
    }
    Err(unsupported)
}

/// Calls `fcntl` with a lock of a whole file, and returns the kind of lock that it stores.
fn control(file: &File, command: c_int, kind: c_short) -> io::Result<c_short> {
    let mut lock = libc::flock {
        l_type: kind,
        l_whence: libc::SEEK_SET as c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    #[expect(unsafe_code, reason = "rustix has no locks of open file descriptions")]
    // SAFETY: the descriptor is open, and each command of this module reads or writes a `flock`.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(lock.l_type) }
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
        if let Some(file) = self.file.take() {
            // A child that was forked while the file was being opened may have a copy.
            let _ = control(&file, self.command, UNLOCKED);
        }
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

    /// Whether another process, which takes a POSIX lock as Apache Kafka does, is kept out.
    fn keeps_others_out(dir: &Path) -> bool {
        let try_lock = "import fcntl, sys\n\
             file = open(sys.argv[1], 'r+')\n\
             try: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n\
             except OSError: sys.exit(7)";
        let path = dir.join(LOCK_FILE);
        let status = Command::new("python3").args(["-c", try_lock]).arg(path).status();
        match status.unwrap().code() {
            Some(7) => true,
            Some(0) => false,
            code => panic!("{code:?}"),
        }
    }

    #[test]
    fn another_process_is_kept_out_until_the_lock_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let lock = DirectoryLock::acquire(dir.path()).unwrap();
        assert!(DirectoryLock::acquire(dir.path()).is_err(), "and trying again here frees nothing");
        assert!(keeps_others_out(dir.path()));
        drop(lock);
        assert!(!keeps_others_out(dir.path()));
    }

    #[test]
    fn closing_another_descriptor_of_the_file_releases_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let _lock = DirectoryLock::acquire(dir.path()).unwrap();
        drop(File::open(dir.path().join(LOCK_FILE)).unwrap());
        fs::copy(dir.path().join(LOCK_FILE), dir.path().join("copy")).unwrap();
        assert!(keeps_others_out(dir.path()));
    }

    #[test]
    fn drop_releases_a_lock_whose_descriptor_was_copied() {
        let dir = tempfile::tempdir().unwrap();
        let lock = DirectoryLock::acquire(dir.path()).unwrap();
        let copy = lock.held.file.as_ref().unwrap().try_clone().unwrap();
        assert!(keeps_others_out(dir.path()));
        drop(lock);
        assert!(!keeps_others_out(dir.path()));
        drop(copy);
    }

    #[test]
    fn kernel_without_locks_of_descriptions_gets_posix_locks() {
        const UNKNOWN: c_int = 9999;
        let dir = tempfile::tempdir().unwrap();
        let file = open_lock_file(dir.path()).unwrap();
        assert_eq!(lock(&file, &[UNKNOWN, libc::F_SETLK]).unwrap(), Some(libc::F_SETLK));
        assert!(keeps_others_out(dir.path()));
        let error = lock(&file, &[UNKNOWN]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
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
