//! Shortening the `.log` file of a segment.

use std::path::Path;
use std::sync::Arc;

use crate::disk::{Disk, DiskFile, OpenMode};
use crate::error::StorageError;
use crate::file_names::{FileKind, TEMPORARY_SUFFIX};
use crate::segment::SegmentFiles;

/// Bytes that are copied at once when a segment gets a new inode.
const COPY_BYTES: usize = 1 << 20;

/// Shortens a `.log`. If it was ever sealed, its inode is kept whole and the file is replaced by a
/// copy, because it may be mapped for reading, also by an earlier holder of the directory's lock.
pub(crate) fn shorten(
    disk: &dyn Disk,
    files: &Arc<SegmentFiles>,
    size: u64,
    was_sealed: bool,
) -> Result<(), StorageError> {
    let path = files.path(FileKind::Log);
    let file = disk.open(&path, OpenMode::Write).map_err(files.error("open", FileKind::Log))?;
    files.release();
    let result =
        if was_sealed { replace_by_copy(disk, &*file, &path, size) } else { file.set_len(size) };
    result.map_err(files.error("truncate", FileKind::Log))
}

fn replace_by_copy(
    disk: &dyn Disk,
    file: &dyn DiskFile,
    path: &Path,
    size: u64,
) -> std::io::Result<()> {
    let mut copy_path = path.as_os_str().to_owned();
    // If the process ends here, recovery removes files of this name.
    copy_path.push(TEMPORARY_SUFFIX);
    let copy = disk.create_anew(Path::new(&copy_path))?;
    let mut buffer = vec![0; COPY_BYTES.min(size as usize)];
    let mut position = 0;
    while position < size {
        let wanted = buffer.len().min((size - position) as usize);
        let read = file.read_at(&mut buffer[..wanted], position)?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        copy.write_at(&buffer[..read], position)?;
        position += read as u64;
    }
    copy.sync_data()?;
    disk.rename(Path::new(&copy_path), path)?;
    disk.sync_dir(path.parent().unwrap_or(path))
}
