//! The operating system's file system.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use pykafka_forks::{ForkClosed, PerProcess};
use rustix::fs::{FallocateFlags, OFlags, SeekFrom};

use super::map::MappedWindow;
use super::open_files::{OpenFile, OpenFiles};
use super::platform::file_system;
use super::{
    Allocated, DirEntry, Disk, DiskFile, FileId, OpenMode, ReadFile, ReadMap, Reserved, Space,
    Window,
};

/// One for the process, like the limit of descriptors.
static OPEN_FILES: PerProcess<OpenFiles> = PerProcess::new(|| OpenFiles::new(None));

/// Files of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        // Without O_NONBLOCK the open of a FIFO would wait for its other end.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(mode != OpenMode::Read)
            .create(mode == OpenMode::Create)
            .create_new(mode == OpenMode::New)
            .custom_flags(flags.bits().cast_signed());
        let file = OPEN_FILES.get().open(|| options.open(path))?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(Arc::new(RealFile {
            file: Arc::new(ForkClosed::new(file)),
            _open: OPEN_FILES.get().count(),
        }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in OPEN_FILES.get().open(|| fs::read_dir(dir))? {
            let entry = entry?;
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                Err(gone) if gone.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let size = if metadata.is_file() { metadata.len() } else { 0 };
            let modified_ms = Some(metadata.mtime() * 1000 + metadata.mtime_nsec() / 1_000_000);
            let (name, is_dir, id) = (entry.file_name(), metadata.is_dir(), id_of(&metadata));
            entries.push(DirEntry { name, is_dir, size, modified_ms, id });
        }
        entries.sort();
        Ok(entries)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        OPEN_FILES.get().open(|| File::open(dir))?.sync_all()
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn set_modified_ms(&self, path: &Path, modified_ms: i64) -> io::Result<()> {
        let file = OPEN_FILES.get().open(|| File::options().write(true).open(path))?;
        let since_1970 = Duration::from_millis(u64::try_from(modified_ms).unwrap_or(0));
        file.set_modified(UNIX_EPOCH + since_1970)
    }

    fn is_in_place(&self, path: &Path, file: &dyn DiskFile) -> io::Result<bool> {
        let Some(descriptor) = file.descriptor() else { return Ok(true) };
        let opened = rustix::fs::fstat(descriptor)?;
        match rustix::fs::stat(path) {
            Ok(named) => Ok((named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn id_of(&self, path: &Path) -> io::Result<Option<FileId>> {
        Ok(id_of(&fs::metadata(path)?))
    }

    fn available_bytes(&self, dir: &Path) -> io::Result<Space> {
        let status = rustix::fs::statvfs(existing_ancestor(dir))?;
        Ok(Space {
            total: status.f_blocks.saturating_mul(status.f_frsize),
            usable: status.f_bavail.saturating_mul(status.f_frsize),
        })
    }

    fn spare_bytes(&self, dir: &Path) -> io::Result<u64> {
        let status = rustix::fs::statfs(existing_ancestor(dir))?;
        if !file_system(&status).reserves_blocks() {
            return Ok(0);
        }
        Ok(self.available_bytes(dir)?.spare())
    }

    fn open_files(&self) -> Option<&'static OpenFiles> {
        Some(OPEN_FILES.get())
    }
}

#[expect(clippy::unnecessary_wraps, reason = "other disks have no file ids")]
fn id_of(metadata: &Metadata) -> Option<FileId> {
    let created = metadata.created().ok();
    let since_1970 = created.and_then(|created| created.duration_since(UNIX_EPOCH).ok());
    let created_ns = since_1970.map(|since_1970| since_1970.as_nanos());
    Some(FileId { device: metadata.dev(), inode: metadata.ino(), created_ns })
}

/// The nearest existing directory upwards: partition directories are created by their first append.
fn existing_ancestor(dir: &Path) -> &Path {
    let found = dir.ancestors().find(|ancestor| ancestor.exists());
    found.filter(|ancestor| !ancestor.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[derive(Debug)]
struct RealFile {
    file: Arc<ForkClosed<File>>,
    _open: OpenFile,
}

impl RealFile {
    fn writes_in_place(&self) -> bool {
        rustix::fs::fstatfs(&**self.file).is_ok_and(|status| file_system(&status).writes_in_place())
    }
}

impl ReadFile for RealFile {
    fn read_at(&self, bytes: &mut [u8], position: u64) -> io::Result<usize> {
        let mut read = 0;
        while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, position + read as u64) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn id(&self) -> io::Result<Option<FileId>> {
        Ok(id_of(&self.file.metadata()?))
    }

    fn next_data(&self, position: u64) -> io::Result<Option<Range<u64>>> {
        let everywhere = Ok(Some(position..u64::MAX));
        // Some versions of OpenZFS report recently written data as a hole.
        if !self.writes_in_place() {
            return everywhere;
        }
        let start = match rustix::fs::seek(&**self.file, SeekFrom::Data(position)) {
            Ok(start) => start,
            Err(rustix::io::Errno::NXIO) => return Ok(None),
            // ext4 does not report data that was stored inline.
            Err(_) => return everywhere,
        };
        match rustix::fs::seek(&**self.file, SeekFrom::Hole(start)) {
            Ok(end) if end > start => Ok(Some(start..end)),
            _ => everywhere,
        }
    }
}

impl DiskFile for RealFile {
    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, position)
    }

    fn allocate(&self, position: u64, size: u64) -> io::Result<Allocated> {
        if size == 0 {
            return Ok(Allocated::Grown);
        }
        match rustix::fs::fallocate(&**self.file, FallocateFlags::empty(), position, size) {
            Ok(()) if self.writes_in_place() => Reserved::granted(position, size),
            Ok(()) => Ok(Allocated::Grown),
            // ext2, ext3, NFS: extend the file, so that its length is the same on every file
            // system.
            Err(rustix::io::Errno::OPNOTSUPP) => {
                let end = position.checked_add(size).ok_or(io::ErrorKind::FileTooLarge)?;
                let length = self.size()?;
                self.file.set_len(length.max(end))?;
                Ok(Allocated::Grown)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn set_len(&self, size: u64) -> io::Result<()> {
        self.file.set_len(size)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn map_window(&self, reserved: &Reserved, position: u64) -> io::Result<Box<dyn Window>> {
        Ok(Box::new(MappedWindow::new(&self.file, reserved, position)?))
    }

    fn map_read(&self, size: usize) -> io::Result<ReadMap> {
        ReadMap::map(&self.file, size)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}
