//! The traits of a disk and its files, and functions for any disk.

use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use super::map::ReadMap;
use super::open_files::OpenFiles;
use super::window::{Allocated, Reserved, Window};

/// How [`Disk::open`] opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, for reading only.
    Read,
    /// An existing file, for reading and writing.
    Write,
    /// A new or an existing file, for reading and writing.
    Create,
    /// A new file, for reading and writing; `AlreadyExists` if the name exists.
    New,
}

impl OpenMode {
    /// True if a missing file is created.
    pub(super) fn creates(self) -> bool {
        matches!(self, OpenMode::Create | OpenMode::New)
    }
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The last component of its path.
    pub name: OsString,
    /// True for a directory. A symbolic link is not followed: it is neither a directory nor a file.
    pub is_dir: bool,
    /// Length in bytes; 0 for directories.
    pub size: u64,
    /// Last change of its content, in ms since 1970; `None` on a disk that does not store it.
    pub modified_ms: Option<i64>,
    /// Which file or directory has the name; `None` on a disk without ids.
    pub id: Option<FileId>,
}

/// Identifies a file or directory regardless of its name: two files of the same name that existed
/// one after the other differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId {
    /// The file system.
    pub device: u64,
    /// The file. A file system uses the number of a removed file again.
    pub inode: u64,
    /// Time of the creation, in ns since 1970, which distinguishes such files; `None` on a file
    /// system that does not store it.
    pub created_ns: Option<u128>,
}

/// Space of the file system that holds a directory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Size of the file system.
    pub total: u64,
    /// Bytes that this process may still write.
    pub usable: u64,
}

impl Space {
    /// Bytes that one file may reserve long before they are needed: an eighth of the usable ones.
    pub(super) fn spare(&self) -> u64 {
        self.usable / 8
    }
}

/// Stores files by path.
pub trait Disk: Send + Sync + Debug {
    /// Opens a regular file.
    ///
    /// # Errors
    /// `NotFound` if the file (modes `Read`, `Write`) or its directory does not exist;
    /// `AlreadyExists` in mode `New`. Links and special files are rejected and not followed, so
    /// that a crafted directory cannot refer to files elsewhere.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;

    /// Creates a directory and its parents; not an error if it exists.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Creates a directory and its parents like [`Disk::create_dir_all`]. On return the names of
    /// the created directories are durable.
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

    /// Removes a directory and its contents.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// True if the name exists.
    fn exists(&self, path: &Path) -> bool;

    /// Sets the time of the last change of a file's content, in ms since 1970. Ignored by a disk
    /// that does not store it.
    fn set_modified_ms(&self, path: &Path, modified_ms: i64) -> io::Result<()> {
        let _ = (path, modified_ms);
        Ok(())
    }

    /// True if `file`, which was opened by this name, still has it: another process may have
    /// removed or renamed a directory above it. Always true for a disk in memory.
    fn is_in_place(&self, path: &Path, file: &dyn DiskFile) -> io::Result<bool> {
        let _ = (path, file);
        Ok(true)
    }

    /// Which file or directory has this name; `None` on a disk without ids.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    fn id_of(&self, path: &Path) -> io::Result<Option<FileId>> {
        if self.exists(path) { Ok(None) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Space of the file system that holds `dir`.
    fn available_bytes(&self, dir: &Path) -> io::Result<Space>;

    /// Bytes that a file in `dir` may reserve long before it needs them. 0 if the file system
    /// cannot reserve space, or reserves memory.
    fn spare_bytes(&self, dir: &Path) -> io::Result<u64> {
        Ok(self.available_bytes(dir)?.spare())
    }

    /// The limit of open files for logs on this disk; `None` if files need no descriptors.
    fn open_files(&self) -> Option<&'static OpenFiles> {
        None
    }

    /// Creates a new file with this name. An existing file of any kind is removed, so that no file
    /// is written that also has another name.
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

    /// Replaces the content of `path` so that a crash leaves the old content or the new one, never
    /// a mix.
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

/// Replaces the content of `path`: `write` writes the new content to `path` + `.tmp`, which is then
/// renamed. Not durable on return.
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
        // The disk may be full, so the incomplete file must be removed.
        let _ = disk.remove_file(temporary);
    }
    result
}

/// The read operations of an open regular file.
pub trait ReadFile: Send + Sync + Debug {
    /// Reads until `bytes` is full or the file ends; returns the number of bytes.
    fn read_at(&self, bytes: &mut [u8], position: u64) -> io::Result<usize>;

    /// Length in bytes.
    fn size(&self) -> io::Result<u64>;

    /// Which file this is; `None` on a disk without ids.
    fn id(&self) -> io::Result<Option<FileId>> {
        Ok(None)
    }

    /// The next range, from `position` on, whose bytes may be other than zero; `None` if only zeros
    /// follow. Reserved space that was never written is skipped if the file system reports it and
    /// the space was not read: pages in the page cache count as data. The space between two such
    /// ranges is at least one block of the file system, which is 512 bytes or more.
    fn next_data(&self, position: u64) -> io::Result<Option<Range<u64>>> {
        Ok(Some(position..u64::MAX))
    }
}

/// An open regular file. Positions are in bytes from its start. Safe to share between threads; if
/// two threads write a range concurrently, it contains the bytes of one of them.
pub trait DiskFile: ReadFile {
    /// Writes all of `bytes`, and extends the file as needed. After an error any part may be
    /// written.
    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()>;

    /// Reserves space for `position..position + size`. The file grows to that end, and new bytes
    /// are zero.
    ///
    /// # Errors
    /// `StorageFull` if there is not enough space. The file's content is then unchanged, but its
    /// size may have changed.
    fn allocate(&self, position: u64, size: u64) -> io::Result<Allocated>;

    /// Cuts or extends the file. Space after the new end is released.
    ///
    /// The caller must have dropped all windows and read maps that reach beyond `size`.
    fn set_len(&self, size: u64) -> io::Result<()>;

    /// Makes content and length durable. After an error, nothing is known about the unsynced bytes,
    /// and a later success does not change that: the caller must stop using the file.
    fn sync_data(&self) -> io::Result<()>;

    /// A window for writing, from `position` to the end of `reserved`, which must come from
    /// [`DiskFile::allocate`] of this file.
    ///
    /// # Errors
    /// `InvalidInput` if `position` is outside of `reserved`; `UnexpectedEof` if the file is
    /// shorter than the window's end.
    fn map_window(&self, reserved: &Reserved, position: u64) -> io::Result<Box<dyn Window>>;

    /// Maps the first `size` bytes for reading. Only for files that are never shortened again.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file is shorter.
    fn map_read(&self, size: usize) -> io::Result<ReadMap>;

    /// The file descriptor, for a transport that can send from it; `None` if this is not a file of
    /// the operating system.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
