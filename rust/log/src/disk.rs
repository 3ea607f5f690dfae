//! Storage behind one small trait: the real file system, memory, and for tests a faulty disk and one with a hook.
//!
//! Everything the engine keeps goes through [`Disk`] and [`DiskFile`]; nothing else in the crate names
//! `std::fs`. The traits promise what POSIX promises and no more: a write is durable only after
//! [`DiskFile::sync_data`], a name only after [`Disk::sync_dir`] of its directory.

mod faulty;
mod hooked;
pub mod map;
mod memory;
pub(crate) mod open_files;
mod real;

use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

pub use faulty::{Fault, FaultyDisk, Operations};
pub use hooked::{FileOp, Hook, HookedDisk};
pub use map::ReadMap;
pub use memory::MemoryDisk;
pub use open_files::OpenFiles;
pub use real::RealDisk;

/// How [`Disk::open`] opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, for reading only.
    Read,
    /// An existing file, for reading and writing.
    Write,
    /// A new or an existing file, for reading and writing.
    Create,
    /// A new file, for reading and writing; `AlreadyExists` if anything has this name.
    New,
}

impl OpenMode {
    /// Whether a file that is not there is made.
    fn creates(self) -> bool {
        matches!(self, OpenMode::Create | OpenMode::New)
    }
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The last component of its path.
    pub name: OsString,
    /// Whether it is a directory. A symbolic link is not followed: it is neither directory nor file.
    pub is_dir: bool,
    /// Length in bytes; 0 for directories.
    pub size: u64,
    /// When its content changed last, in ms since 1970; `None` on a disk that keeps no times.
    pub modified_ms: Option<i64>,
}

/// Space of the file system that holds a directory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Size of the file system.
    pub total: u64,
    /// What this process may still write.
    pub usable: u64,
}

impl Space {
    /// What one file may reserve long before it is needed: an eighth of what is usable.
    fn spare(&self) -> u64 {
        self.usable / 8
    }
}

/// What [`DiskFile::allocate`] did.
#[derive(Debug)]
pub enum Allocated {
    /// Each byte has its place on the disk: writing it cannot fail for want of space, also through a map.
    Reserved(Reserved),
    /// The file has the size asked for. The file system finds blocks when bytes are written, so a write may meet a
    /// full disk; through a map that would be SIGBUS.
    Grown,
}

/// Reserved space of a file, without which nothing of it is mapped for writing. Only a disk makes one.
#[derive(Debug, Clone)]
pub struct Reserved(Range<u64>);

impl Reserved {
    fn granted(position: u64, size: u64) -> io::Result<Allocated> {
        let end = position.checked_add(size).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(Allocated::Reserved(Reserved(position..end)))
    }

    /// Both as one, if `next` begins where this ends; else `next`.
    #[must_use]
    pub fn join(self, next: Reserved) -> Reserved {
        if self.0.end == next.0.start { Reserved(self.0.start..next.0.end) } else { next }
    }

    /// What of it begins at `position`, no more than `size_max` bytes.
    #[must_use]
    pub fn part(&self, position: u64, size_max: u64) -> Reserved {
        let start = position.clamp(self.0.start, self.0.end);
        Reserved(start..self.0.end.min(start.saturating_add(size_max)))
    }

    /// Where it ends (exclusive).
    pub fn end(&self) -> u64 {
        self.0.end
    }

    /// Where the window that begins at `position` ends, and its size.
    fn window(&self, position: u64) -> io::Result<(u64, usize)> {
        if !self.0.contains(&position) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let size = usize::try_from(self.0.end - position);
        Ok((self.0.end, size.map_err(|_| io::ErrorKind::FileTooLarge)?))
    }
}

/// A place for files.
pub trait Disk: Send + Sync + Debug {
    /// Opens a regular file.
    ///
    /// # Errors
    /// `NotFound` without the file (modes `Read`, `Write`) or its directory; `AlreadyExists` in mode `New`. Links and
    /// special files are refused rather than followed, so that a crafted directory leads nowhere else.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;

    /// Creates a directory and its parents; no error if it exists.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// As [`Disk::create_dir_all`], and on return the name of each directory that was made is durable.
    fn create_dir_all_durably(&self, path: &Path) -> io::Result<()> {
        let is_missing = |dir: &&Path| !dir.as_os_str().is_empty() && !self.exists(dir);
        let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
        self.create_dir_all(path)?;
        missing.iter().rev().filter_map(|dir| dir.parent()).try_for_each(|dir| self.sync_dir(dir))
    }

    /// The entries of a directory, sorted by name.
    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>>;

    /// Renames a file or directory; an existing file at `to` is replaced. Atomic, and durable only
    /// after [`Disk::sync_dir`] of the parent.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file; open handles stay usable.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory with all it holds.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Whether something has this name.
    fn exists(&self, path: &Path) -> bool;

    /// Sets when the content of a file changed last, in ms since 1970. A disk that keeps no times
    /// ignores it.
    fn set_modified_ms(&self, path: &Path, modified_ms: i64) -> io::Result<()> {
        let _ = (path, modified_ms);
        Ok(())
    }

    /// Whether `file`, which was opened by this name, still has it: others may have removed or
    /// renamed a directory above it. Always so on a disk of this process.
    fn is_in_place(&self, path: &Path, file: &dyn DiskFile) -> io::Result<bool> {
        let _ = (path, file);
        Ok(true)
    }

    /// Space of the file system that holds `dir`.
    fn available_bytes(&self, dir: &Path) -> io::Result<Space>;

    /// How much a file in `dir` may reserve long before it is needed. 0 where the file system reserves nothing, or
    /// reserves memory.
    fn spare_bytes(&self, dir: &Path) -> io::Result<u64> {
        Ok(self.available_bytes(dir)?.spare())
    }

    /// What bounds the files that logs keep open here; `None` where files need no descriptors.
    fn open_files(&self) -> Option<&'static OpenFiles> {
        None
    }

    /// A new file of this name. What stood there is removed, whatever kind of file it was: nothing that has another
    /// name as well is written to.
    fn create_anew(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        match self.open(path, OpenMode::New) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.remove_file(path)?;
                self.open(path, OpenMode::New)
            }
            opened => opened,
        }
    }

    /// The whole content of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        read_whole(&*self.open(path, OpenMode::Read)?)
    }

    /// Replaces the content of `path` so that a crash leaves the old content or the new, never a mix.
    ///
    /// Writes `path` + `.tmp`, syncs it, renames it and syncs the directory, as Kafka does for its
    /// checkpoints. On return the content is durable.
    fn write_atomically(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        replace(self, path, |file| {
            file.write_at(bytes, 0)?;
            file.sync_data()
        })?;
        match path.parent() {
            Some(dir) => self.sync_dir(dir),
            None => Ok(()),
        }
    }
}

/// The whole content of an open file.
pub(crate) fn read_whole(file: &dyn DiskFile) -> io::Result<Vec<u8>> {
    let size = usize::try_from(file.size()?).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let mut bytes = vec![0; size];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Gives `path` the content that `write` writes to `path` + `.tmp`; on return it need not be durable.
pub(crate) fn replace<D: Disk + ?Sized>(
    disk: &D,
    path: &Path,
    write: impl FnOnce(&dyn DiskFile) -> io::Result<()>,
) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = Path::new(&temporary);
    let file = disk.create_anew(temporary)?;
    let result = write(&*file).and_then(|()| disk.rename(temporary, path));
    if result.is_err() {
        // The disk may be full: what was half written has to go.
        let _ = disk.remove_file(temporary);
    }
    result
}

/// An open regular file, as far as it can be read.
pub trait ReadFile: Send + Sync + Debug {
    /// Reads until `bytes` is full or the file ends; returns how many were read.
    fn read_at(&self, bytes: &mut [u8], position: u64) -> io::Result<usize>;

    /// Length in bytes.
    fn size(&self) -> io::Result<u64>;

    /// The next positions, from `position` on, where bytes may be other than zero; `None` if all that follow are zeros.
    /// Space that was reserved and not written is left out where the file system tells, as long as nobody reads it:
    /// what is in the page cache counts as data. What lies between two such ranges is as long as a block of a file
    /// system, 512 bytes at least.
    fn next_data(&self, position: u64) -> io::Result<Option<Range<u64>>> {
        Ok(Some(position..u64::MAX))
    }
}

/// An open regular file. Positions are bytes from its beginning. Safe to share between threads; ranges
/// written at the same time by two threads hold one or the other.
pub trait DiskFile: ReadFile {
    /// Writes all of `bytes`, growing the file as needed. After an error any part may be written.
    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()>;

    /// Reserves space for `position..position + size`; the file grows to that end, new bytes are zero.
    ///
    /// # Errors
    /// `StorageFull` when the space is not there; the file's content is then unchanged, its size may not be.
    fn allocate(&self, position: u64, size: u64) -> io::Result<Allocated>;

    /// Cuts or extends the file. Space past the new end is given back.
    ///
    /// The caller has dropped every window and read map that reaches past `size`.
    fn set_len(&self, size: u64) -> io::Result<()>;

    /// Makes content and length durable. After an error nothing about unsynced bytes may be assumed,
    /// and a later success says nothing about them: the caller gives the file up.
    fn sync_data(&self) -> io::Result<()>;

    /// A window for writing from `position` to the end of `reserved`, which [`DiskFile::allocate`] of this file returned.
    ///
    /// # Errors
    /// `InvalidInput` if `position` lies outside of `reserved`; `UnexpectedEof` if the file ends before the window does.
    fn map_window(&self, reserved: &Reserved, position: u64) -> io::Result<Box<dyn Window>>;

    /// The first `size` bytes for reading. Only for files that are never shortened again.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file is shorter.
    fn map_read(&self, size: usize) -> io::Result<ReadMap>;

    /// The file itself, for a transport that can send from it; `None` for what is not a file of the system.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A part of a file that is written by copying into memory. What was written is at once seen by
/// [`DiskFile::read_at`], survives the process, and becomes durable by [`DiskFile::sync_data`].
pub trait Window: Send + Debug {
    /// Copies `bytes` to `offset` bytes after the window's beginning.
    ///
    /// # Errors
    /// `InvalidInput` if it does not fit; `UnexpectedEof` if somebody else has shortened the file.
    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> io::Result<()>;
}

#[cfg(test)]
mod tests;
