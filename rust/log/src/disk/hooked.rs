//! A disk for tests that calls a hook before another disk performs the operation.

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{
    Allocated, DirEntry, Disk, DiskFile, FileId, OpenMode, ReadFile, ReadMap, Reserved, Space,
    Window,
};

/// The kinds of operations that a [`Hook`] sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOp {
    /// Opening or creating a file.
    Open,
    /// Reading.
    Read,
    /// Writing and reserving.
    Write,
    /// Syncing data.
    Sync,
    /// Syncing the names of a directory.
    SyncDir,
}

/// Code that runs around the operations of a [`HookedDisk`].
pub trait Hook: Debug + Send + Sync + 'static {
    /// Called before `op` on `path`. It may block; if it fails, the operation fails with its error
    /// and is not performed.
    fn before(&self, op: FileOp, path: &Path) -> io::Result<()>;

    /// Called after a read of `size` bytes.
    fn note_read(&self, size: usize) {
        let _ = size;
    }
}

/// A disk with a hook. Clones share both.
#[derive(Debug)]
pub struct HookedDisk<D, H> {
    disk: Arc<D>,
    hook: Arc<H>,
}

impl<D, H> HookedDisk<D, H> {
    /// Calls `hook` before the operations of `disk`.
    pub fn new(disk: D, hook: Arc<H>) -> HookedDisk<D, H> {
        HookedDisk { disk: Arc::new(disk), hook }
    }

    /// The disk that performs the operations.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// The hook that is called before operations.
    pub fn hook(&self) -> &H {
        &self.hook
    }
}

impl<D: Default, H: Default> Default for HookedDisk<D, H> {
    fn default() -> Self {
        HookedDisk::new(D::default(), Arc::default())
    }
}

impl<D, H> Clone for HookedDisk<D, H> {
    fn clone(&self) -> Self {
        HookedDisk { disk: self.disk.clone(), hook: self.hook.clone() }
    }
}

impl<D: Disk, H: Hook> Disk for HookedDisk<D, H> {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        self.hook.before(FileOp::Open, path)?;
        let file = self.disk.open(path, mode)?;
        Ok(Arc::new(HookedFile { file, path: path.to_owned(), hook: self.hook.clone() }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        self.disk.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_dir_all(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.hook.before(FileOp::SyncDir, dir)?;
        self.disk.sync_dir(dir)
    }

    fn set_modified_ms(&self, path: &Path, modified_ms: i64) -> io::Result<()> {
        self.disk.set_modified_ms(path, modified_ms)
    }

    fn exists(&self, path: &Path) -> bool {
        self.disk.exists(path)
    }

    fn id_of(&self, path: &Path) -> io::Result<Option<FileId>> {
        self.disk.id_of(path)
    }

    fn available_bytes(&self, dir: &Path) -> io::Result<Space> {
        self.disk.available_bytes(dir)
    }

    fn spare_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.disk.spare_bytes(dir)
    }
}

#[derive(Debug)]
struct HookedFile<H> {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    hook: Arc<H>,
}

impl<H: Hook> ReadFile for HookedFile<H> {
    fn read_at(&self, bytes: &mut [u8], position: u64) -> io::Result<usize> {
        self.hook.before(FileOp::Read, &self.path)?;
        let read = self.file.read_at(bytes, position)?;
        self.hook.note_read(read);
        Ok(read)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn id(&self) -> io::Result<Option<FileId>> {
        self.file.id()
    }

    fn next_data(&self, position: u64) -> io::Result<Option<Range<u64>>> {
        self.file.next_data(position)
    }
}

impl<H: Hook> DiskFile for HookedFile<H> {
    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        self.hook.before(FileOp::Write, &self.path)?;
        self.file.write_at(bytes, position)
    }

    fn allocate(&self, position: u64, size: u64) -> io::Result<Allocated> {
        self.hook.before(FileOp::Write, &self.path)?;
        self.file.allocate(position, size)
    }

    fn set_len(&self, size: u64) -> io::Result<()> {
        self.file.set_len(size)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.hook.before(FileOp::Sync, &self.path)?;
        self.file.sync_data()
    }

    fn map_window(&self, reserved: &Reserved, position: u64) -> io::Result<Box<dyn Window>> {
        self.file.map_window(reserved, position)
    }

    fn map_read(&self, size: usize) -> io::Result<ReadMap> {
        self.file.map_read(size)
    }
}
