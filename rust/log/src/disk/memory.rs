//! Files in memory: for brokers without a directory, and for tests.
//!
//! A file is a table of pages. Pages that were never written use no memory, so reserving space is
//! free. The disk counts the used pages and fails with `StorageFull` at its limit.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pykafka_forks::RwLock;

use super::{
    Allocated, DirEntry, Disk, DiskFile, FileId, OpenMode, ReadFile, ReadMap, Reserved, Space,
    Window,
};

/// Small, because a partition with one record uses a page for each of its files.
const PAGE_BYTES: usize = 4096;

/// A disk that exists as long as its handles. Clones share the files.
#[derive(Clone)]
pub struct MemoryDisk {
    names: Arc<RwLock<BTreeMap<PathBuf, Node>>>,
    usage: Arc<Usage>,
}

#[derive(Clone)]
enum Node {
    Directory,
    File(Arc<MemoryFile>),
}

struct Usage {
    files_created: AtomicU64,
    bytes: AtomicU64,
    bytes_max: u64,
}

impl MemoryDisk {
    /// An empty disk that holds at most `bytes_max` bytes, counted in pages.
    pub fn new(bytes_max: u64) -> Self {
        let (files_created, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        let usage = Usage { files_created, bytes, bytes_max };
        MemoryDisk { names: Arc::default(), usage: Arc::new(usage) }
    }

    /// Memory that the files use, in whole pages.
    pub fn used_bytes(&self) -> u64 {
        self.usage.bytes.load(Ordering::Relaxed)
    }
}

impl Default for MemoryDisk {
    fn default() -> Self {
        MemoryDisk::new(u64::MAX)
    }
}

impl fmt::Debug for MemoryDisk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MemoryDisk").field("used_bytes", &self.used_bytes()).finish()
    }
}

impl Usage {
    fn take_page(&self) -> io::Result<()> {
        let taken = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |bytes| {
            bytes.checked_add(PAGE_BYTES as u64).filter(|bytes| *bytes <= self.bytes_max)
        });
        taken.map(drop).map_err(|_| io::ErrorKind::StorageFull.into())
    }

    fn give_back(&self, pages: usize) {
        self.bytes.fetch_sub((pages * PAGE_BYTES) as u64, Ordering::Relaxed);
    }
}

impl Disk for MemoryDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut names = self.names.write();
        match names.get(path) {
            Some(_) if mode == OpenMode::New => return Err(io::ErrorKind::AlreadyExists.into()),
            Some(Node::File(file)) => {
                let writable = mode != OpenMode::Read;
                return Ok(Arc::new(MemoryHandle { file: Arc::clone(file), writable }));
            }
            Some(Node::Directory) => return Err(io::ErrorKind::IsADirectory.into()),
            None if !mode.creates() => return Err(io::ErrorKind::NotFound.into()),
            None => {}
        }
        if !parent_exists(&names, path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let pages = RwLock::new(Pages::default());
        let number = self.usage.files_created.fetch_add(1, Ordering::Relaxed);
        let file = Arc::new(MemoryFile { number, pages, usage: Arc::clone(&self.usage) });
        names.insert(path.to_owned(), Node::File(Arc::clone(&file)));
        Ok(Arc::new(MemoryHandle { file, writable: true }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut names = self.names.write();
        for ancestor in path.ancestors().filter(|ancestor| !is_root(ancestor)) {
            match names.get(ancestor) {
                Some(Node::Directory) => break,
                Some(Node::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
                None => names.insert(ancestor.to_owned(), Node::Directory),
            };
        }
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let names = self.names.read();
        if !is_root(dir) && !matches!(names.get(dir), Some(Node::Directory)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut entries = Vec::new();
        for (path, node) in below(&names, dir) {
            if path.parent() == Some(dir) {
                let name = path.file_name().unwrap_or_default().to_owned();
                entries.push(match node {
                    Node::Directory => {
                        DirEntry { name, is_dir: true, size: 0, modified_ms: None, id: None }
                    }
                    Node::File(file) => {
                        let (size, id) = (file.pages.read().size, Some(file.id()));
                        DirEntry { name, is_dir: false, size, modified_ms: None, id }
                    }
                });
            }
        }
        entries.sort();
        Ok(entries)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut names = self.names.write();
        if from == to {
            return if names.contains_key(from) {
                Ok(())
            } else {
                Err(io::ErrorKind::NotFound.into())
            };
        }
        if !parent_exists(&names, to) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let from_dir = match names.get(from) {
            None => return Err(io::ErrorKind::NotFound.into()),
            Some(node) => matches!(node, Node::Directory),
        };
        match names.get(to) {
            Some(Node::Directory) if !from_dir => return Err(io::ErrorKind::IsADirectory.into()),
            Some(Node::Directory) if below(&names, to).next().is_some() => {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            Some(Node::File(_)) if from_dir => return Err(io::ErrorKind::NotADirectory.into()),
            _ => {}
        }
        let moved: Vec<PathBuf> = below(&names, from).map(|(path, _)| path.clone()).collect();
        for path in moved.iter().map(PathBuf::as_path).chain([from]) {
            if let (Some(node), Ok(rest)) = (names.remove(path), path.strip_prefix(from)) {
                let target = if rest == Path::new("") { to.to_owned() } else { to.join(rest) };
                names.insert(target, node);
            }
        }
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut names = self.names.write();
        match names.get(path) {
            Some(Node::File(_)) => drop(names.remove(path)),
            Some(Node::Directory) => return Err(io::ErrorKind::IsADirectory.into()),
            None => return Err(io::ErrorKind::NotFound.into()),
        }
        Ok(())
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut names = self.names.write();
        if !matches!(names.get(path), Some(Node::Directory)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        names.retain(|name, _| !name.starts_with(path));
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let there = is_root(dir) || matches!(self.names.read().get(dir), Some(Node::Directory));
        if there { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn exists(&self, path: &Path) -> bool {
        is_root(path) || self.names.read().contains_key(path)
    }

    fn available_bytes(&self, _dir: &Path) -> io::Result<Space> {
        let total = self.usage.bytes_max;
        Ok(Space { total, usable: total.saturating_sub(self.used_bytes()) })
    }
}

fn is_root(path: &Path) -> bool {
    path.as_os_str().is_empty() || path == Path::new("/")
}

fn parent_exists(names: &BTreeMap<PathBuf, Node>, path: &Path) -> bool {
    path.parent().is_some_and(|dir| is_root(dir) || matches!(names.get(dir), Some(Node::Directory)))
}

/// All paths under `dir`, without `dir` itself. Paths sort by components, so they are one range.
fn below<'a>(
    names: &'a BTreeMap<PathBuf, Node>,
    dir: &'a Path,
) -> impl Iterator<Item = (&'a PathBuf, &'a Node)> {
    names
        .range::<Path, _>((Bound::Excluded(dir), Bound::Unbounded))
        .take_while(move |(path, _)| path.starts_with(dir) || dir.as_os_str() == OsStr::new(""))
}

struct MemoryFile {
    /// The number of files that the disk created before.
    number: u64,
    pages: RwLock<Pages>,
    usage: Arc<Usage>,
}

#[derive(Default)]
struct Pages {
    /// `None` for a page of zeros.
    table: Vec<Option<Box<[u8; PAGE_BYTES]>>>,
    size: u64,
}

impl Pages {
    fn in_use_from(&self, first: usize) -> usize {
        self.table.iter().skip(first).filter(|page| page.is_some()).count()
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        self.usage.give_back(self.pages.get_mut().in_use_from(0));
    }
}

impl MemoryFile {
    fn id(&self) -> FileId {
        FileId { device: 0, inode: self.number, created_ns: None }
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        let end = position.checked_add(bytes.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        let mut pages = self.pages.write();
        let page_count = usize::try_from(end.div_ceil(PAGE_BYTES as u64))
            .map_err(|_| io::ErrorKind::FileTooLarge)?;
        if pages.table.len() < page_count {
            pages.table.resize_with(page_count, || None);
        }
        let mut rest = bytes;
        let mut at = position as usize;
        while !rest.is_empty() {
            let offset = at % PAGE_BYTES;
            let (now, later) = rest.split_at(rest.len().min(PAGE_BYTES - offset));
            let page = &mut pages.table[at / PAGE_BYTES];
            if page.is_none() {
                if let Err(full) = self.usage.take_page() {
                    if at as u64 > position {
                        // Like a file system, it keeps the part for which there was space.
                        pages.size = pages.size.max(at as u64);
                    }
                    return Err(full);
                }
                *page = Some(Box::new([0; PAGE_BYTES]));
            }
            if let Some(page) = page {
                page[offset..offset + now.len()].copy_from_slice(now);
            }
            at += now.len();
            rest = later;
        }
        pages.size = pages.size.max(end);
        Ok(())
    }

    fn read_at(&self, bytes: &mut [u8], position: u64) -> usize {
        let pages = self.pages.read();
        let count = pages.size.saturating_sub(position).min(bytes.len() as u64) as usize;
        let (mut rest, _) = bytes.split_at_mut(count);
        let mut at = position as usize;
        while !rest.is_empty() {
            let offset = at % PAGE_BYTES;
            let (now, later) = rest.split_at_mut(rest.len().min(PAGE_BYTES - offset));
            match pages.table.get(at / PAGE_BYTES) {
                Some(Some(page)) => now.copy_from_slice(&page[offset..offset + now.len()]),
                _ => now.fill(0),
            }
            at += now.len();
            rest = later;
        }
        count
    }

    fn set_len(&self, size: u64) {
        let mut pages = self.pages.write();
        let keep = usize::try_from(size.div_ceil(PAGE_BYTES as u64)).unwrap_or(usize::MAX);
        if keep < pages.table.len() {
            self.usage.give_back(pages.in_use_from(keep));
            pages.table.truncate(keep);
        }
        let used_of_last = (size % PAGE_BYTES as u64) as usize;
        if used_of_last > 0
            && let Some(Some(page)) = pages.table.get_mut((size / PAGE_BYTES as u64) as usize)
        {
            page[used_of_last..].fill(0);
        }
        pages.size = size;
    }
}

struct MemoryHandle {
    file: Arc<MemoryFile>,
    writable: bool,
}

impl MemoryHandle {
    fn check_writable(&self) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }
}

impl fmt::Debug for MemoryHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("MemoryFile")
            .field("size", &self.file.pages.read().size)
            .finish_non_exhaustive()
    }
}

impl ReadFile for MemoryHandle {
    fn read_at(&self, bytes: &mut [u8], position: u64) -> io::Result<usize> {
        Ok(self.file.read_at(bytes, position))
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.file.pages.read().size)
    }

    fn id(&self) -> io::Result<Option<FileId>> {
        Ok(Some(self.file.id()))
    }
}

impl DiskFile for MemoryHandle {
    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        self.check_writable()?;
        self.file.write_at(bytes, position)
    }

    fn allocate(&self, position: u64, size: u64) -> io::Result<Allocated> {
        self.check_writable()?;
        let end = position.checked_add(size).ok_or(io::ErrorKind::FileTooLarge)?;
        let mut pages = self.file.pages.write();
        pages.size = pages.size.max(end);
        // A full disk is reported as an error of the window, never as a signal.
        Reserved::granted(position, size)
    }

    fn set_len(&self, size: u64) -> io::Result<()> {
        self.check_writable()?;
        self.file.set_len(size);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn map_window(&self, reserved: &Reserved, position: u64) -> io::Result<Box<dyn Window>> {
        self.check_writable()?;
        let (end, size) = reserved.window(position)?;
        if self.size()? < end {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Box::new(MemoryWindow { file: Arc::clone(&self.file), position, size }))
    }

    fn map_read(&self, size: usize) -> io::Result<ReadMap> {
        if self.size()? < size as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; size];
        self.file.read_at(&mut bytes, 0);
        Ok(ReadMap::copied(bytes))
    }
}

struct MemoryWindow {
    file: Arc<MemoryFile>,
    position: u64,
    size: usize,
}

impl fmt::Debug for MemoryWindow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("MemoryWindow")
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

impl Window for MemoryWindow {
    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> io::Result<()> {
        if offset.checked_add(bytes.len()).is_none_or(|end| end > self.size) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if self.file.pages.read().size < self.position + self.size as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.file.write_at(bytes, self.position + offset as u64)
    }
}
