//! A memory disk that counts what is read and lets something happen right before a file is opened.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pykafka_log::{
    Allocated, DirEntry, Disk, DiskFile, MemoryDisk, OpenMode, ReadMap, Reserved, Space, Window,
};

type Act = Box<dyn FnOnce() + Send>;

#[derive(Clone, Default)]
pub struct WatchedDisk {
    disk: Arc<MemoryDisk>,
    bytes_read: Arc<AtomicU64>,
    before_open: Arc<Mutex<Option<(PathBuf, Act)>>>,
}

impl WatchedDisk {
    /// Bytes read from files so far.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::SeqCst)
    }

    /// Calls `act` once, right before `path` is opened the next time.
    pub fn before_open(&self, path: PathBuf, act: impl FnOnce() + Send + 'static) {
        *self.before_open.lock().unwrap() = Some((path, Box::new(act)));
    }

    /// Whether nothing waits for a file to be opened.
    pub fn has_acted(&self) -> bool {
        self.before_open.lock().unwrap().is_none()
    }
}

impl std::fmt::Debug for WatchedDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.disk.fmt(f)
    }
}

impl Disk for WatchedDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let act = self.before_open.lock().unwrap().take_if(|(wanted, _)| wanted == path);
        if let Some((_, act)) = act {
            act();
        }
        let file = self.disk.open(path, mode)?;
        Ok(Arc::new(WatchedFile { file, bytes_read: self.bytes_read.clone() }))
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
        self.disk.sync_dir(dir)
    }

    fn exists(&self, path: &Path) -> bool {
        self.disk.exists(path)
    }

    fn available_bytes(&self, dir: &Path) -> io::Result<Space> {
        self.disk.available_bytes(dir)
    }
}

#[derive(Debug)]
struct WatchedFile {
    file: Arc<dyn DiskFile>,
    bytes_read: Arc<AtomicU64>,
}

impl DiskFile for WatchedFile {
    fn read_at(&self, bytes: &mut [u8], position: u64) -> io::Result<usize> {
        let read = self.file.read_at(bytes, position)?;
        self.bytes_read.fetch_add(read as u64, Ordering::SeqCst);
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        self.file.write_at(bytes, position)
    }

    fn allocate(&self, position: u64, size: u64) -> io::Result<Allocated> {
        self.file.allocate(position, size)
    }

    fn set_len(&self, size: u64) -> io::Result<()> {
        self.file.set_len(size)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn map_window(&self, reserved: &Reserved, position: u64) -> io::Result<Box<dyn Window>> {
        self.file.map_window(reserved, position)
    }

    fn map_read(&self, size: usize) -> io::Result<ReadMap> {
        self.file.map_read(size)
    }
}
