//! The index files of a segment: the indexes in memory are loaded from them and stored in them.

use std::io;

use crate::disk::{Disk, OpenMode};
use crate::error::StorageError;
use crate::file_names::FileKind;
use crate::segment::indexes::{ActiveIndexes, Indexes, Unstored};
use crate::segment::transaction_index::AbortedTxn;
use crate::segment::{Segment, SegmentFiles};

impl Indexes {
    /// The stored indexes of `segment`; `None` if they are missing or invalid.
    pub(crate) fn load(segment: &Segment) -> Result<Option<Indexes>, StorageError> {
        let files = &segment.files;
        let (Some(offsets), Some(times)) =
            (files.read(FileKind::OffsetIndex)?, files.read(FileKind::TimeIndex)?)
        else {
            return Ok(None);
        };
        Ok(Indexes::decode(&offsets, &times, files.base_offset(), segment.size))
    }

    /// Writes unstored entries and cuts the files to their length. Not synced, because they can be
    /// rebuilt.
    pub(crate) fn store(&self, disk: &dyn Disk, files: &SegmentFiles) -> Result<(), StorageError> {
        self.unstored().write(disk, files)?;
        files.forget_indexes();
        Ok(())
    }
}

impl Unstored {
    fn write(&self, disk: &dyn Disk, files: &SegmentFiles) -> Result<(), StorageError> {
        let (bytes, position, size) = &self.offsets;
        write(disk, files, FileKind::OffsetIndex, bytes, *position, *size)?;
        let (bytes, position, size) = &self.times;
        write(disk, files, FileKind::TimeIndex, bytes, *position, *size)
    }
}

impl ActiveIndexes {
    /// Stores the entries like [`Indexes::store`]; readers can search during the write.
    pub(crate) fn store(&self, disk: &dyn Disk, files: &SegmentFiles) -> Result<(), StorageError> {
        let unstored = self.lock().unstored();
        unstored.write(disk, files)?;
        // Before entries are dropped, so that a look-up for one of them opens the current file.
        files.forget_indexes();
        let mut indexes = self.lock();
        indexes.set_stored();
        indexes.drop_stored();
        Ok(())
    }
}

fn write(
    disk: &dyn Disk,
    files: &SegmentFiles,
    kind: FileKind,
    bytes: &[u8],
    position: u64,
    size: u64,
) -> Result<(), StorageError> {
    let write = || {
        let file = disk.open(&files.path(kind), OpenMode::Create)?;
        file.write_at(bytes, position)?;
        if file.size()? == size { Ok(()) } else { file.set_len(size) }
    };
    write().map_err(files.error("write", kind))
}

/// Writes a segment's transaction index, or removes it if there are no aborted transactions.
pub(crate) fn store_aborted(
    disk: &dyn Disk,
    files: &SegmentFiles,
    aborted: &[AbortedTxn],
) -> Result<(), StorageError> {
    let path = files.path(FileKind::TransactionIndex);
    let store = || {
        if aborted.is_empty() {
            return match disk.remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let bytes: Vec<u8> = aborted.iter().flat_map(|txn| txn.encode()).collect();
        let file = disk.open(&path, OpenMode::Create)?;
        file.write_at(&bytes, 0)?;
        file.set_len(bytes.len() as u64)
    };
    store().map_err(files.error("write", FileKind::TransactionIndex))?;
    files.set_aborted(aborted.into());
    Ok(())
}
