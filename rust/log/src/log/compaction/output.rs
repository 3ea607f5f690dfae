//! A segment that will replace others, written to `.cleaned` files that are synced before they are
//! used.

use std::io;
use std::sync::Arc;

use pykafka_record::BatchHeader;

use crate::disk::DiskFile;
use crate::error::StorageError;
use crate::file_names::{CLEANED_SUFFIX, FileKind};
use crate::log::types::Shared;
use crate::segment::index_storage::store_aborted;
use crate::segment::indexes::Indexes;
use crate::segment::time_index::TimeEntry;
use crate::segment::transaction_index::AbortedTxn;
use crate::segment::{Segment, SegmentFiles};

/// The segment that is being written. If it is dropped before [`Output::finish`], its files are
/// removed.
pub(crate) struct Output<'a> {
    shared: &'a Shared,
    files: Arc<SegmentFiles>,
    log: Arc<dyn DiskFile>,
    indexes: Indexes,
    interval: u64,
    write_bytes: usize,
    max_timestamp: TimeEntry,
    aborted: Vec<AbortedTxn>,
    /// Batches that are not written yet; they belong at `position`.
    pub(crate) buffer: Vec<u8>,
    position: u64,
    is_finished: bool,
}

impl<'a> Output<'a> {
    pub(crate) fn create(
        shared: &'a Shared,
        base_offset: i64,
        interval: u64,
        write_bytes: usize,
    ) -> Result<Output<'a>, StorageError> {
        let (dir, disk) = (shared.dir.clone(), shared.disk.clone());
        let files = SegmentFiles::new_cleaned(dir, base_offset, disk);
        // An earlier attempt may have left files.
        remove(shared, &files)?;
        let log = shared.disk.create_anew(&files.path(FileKind::Log));
        let log = log.map_err(files.error("create", FileKind::Log))?;
        Ok(Output {
            shared,
            files,
            log,
            indexes: Indexes::new(base_offset),
            interval,
            write_bytes,
            max_timestamp: TimeEntry::none(base_offset),
            aborted: Vec::new(),
            buffer: Vec::new(),
            position: 0,
            is_finished: false,
        })
    }

    /// Bytes of the batches so far.
    pub(crate) fn size(&self) -> u64 {
        self.position + self.buffer.len() as u64
    }

    /// Adds the last batch in the buffer, which starts at `start`, to the indexes.
    pub(crate) fn note(&mut self, start: usize) -> Result<(), StorageError> {
        if let Ok(batch) = BatchHeader::read(&self.buffer[start..]) {
            self.max_timestamp.note(&batch);
            let position = self.position + start as u64;
            self.indexes.note(&batch, position, self.max_timestamp, self.interval);
        }
        if self.buffer.len() >= self.write_bytes { self.write() } else { Ok(()) }
    }

    pub(crate) fn note_aborted(&mut self, aborted: AbortedTxn) {
        self.aborted.push(aborted);
    }

    fn write(&mut self) -> Result<(), StorageError> {
        let written = self.log.write_at(&self.buffer, self.position);
        written.map_err(self.files.error("write", FileKind::Log))?;
        self.position += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes and syncs all files and their names. `last` is the last of the replaced segments: the
    /// new file gets its modification time.
    pub(crate) fn finish(mut self, last: &Segment) -> Result<Segment, StorageError> {
        self.write()?;
        let Shared { disk, dir, .. } = self.shared;
        let modified = disk.set_modified_ms(&self.files.path(FileKind::Log), last.modified_ms);
        modified.map_err(self.files.error("write", FileKind::Log))?;
        let synced = self.log.sync_data();
        synced.map_err(self.files.error("sync", FileKind::Log))?;
        self.indexes.times.append(self.max_timestamp);
        self.indexes.store(&**disk, &self.files)?;
        self.sync(FileKind::OffsetIndex)?;
        self.sync(FileKind::TimeIndex)?;
        if !self.aborted.is_empty() {
            store_aborted(&**disk, &self.files, &self.aborted)?;
            self.sync(FileKind::TransactionIndex)?;
        }
        let synced = disk.sync_dir(dir);
        synced.map_err(|error| StorageError::io("sync", dir, error))?;
        self.is_finished = true;
        Ok(Segment {
            size: self.position,
            max_timestamp: self.max_timestamp,
            first_timestamp: None,
            created_ms: last.created_ms,
            modified_ms: last.modified_ms,
            begun_ns: None,
            files: self.files.clone(),
        })
    }

    /// Removes the segment's files.
    pub(crate) fn discard(mut self) -> Result<(), StorageError> {
        self.is_finished = true;
        remove(self.shared, &self.files)
    }

    fn sync(&self, kind: FileKind) -> Result<(), StorageError> {
        let opened = self.shared.disk.open(&self.files.path(kind), crate::disk::OpenMode::Write);
        opened.and_then(|file| file.sync_data()).map_err(self.files.error("sync", kind))
    }
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            // Files that cannot be removed now are removed at the next open of the log, or by the
            // next attempt.
            let _ = remove(self.shared, &self.files);
        }
    }
}

/// Removes the files of earlier attempts. Recovery treats a `.swap` file next to a `.cleaned` file
/// of a lower offset as half of a result (KAFKA-6264).
pub(crate) fn remove_leftovers(shared: &Shared) -> Result<(), StorageError> {
    let Shared { disk, dir, .. } = shared;
    let entries = disk.list(dir).map_err(|error| StorageError::io("list", dir, error))?;
    let is_left =
        |name: &&std::ffi::OsStr| name.to_str().is_some_and(|name| name.ends_with(CLEANED_SUFFIX));
    for name in entries.iter().map(|entry| &*entry.name).filter(is_left) {
        let path = dir.join(name);
        let removed = disk.remove_file(&path);
        removed.map_err(|error| StorageError::io("remove", &path, error))?;
    }
    Ok(())
}

/// Removes the files of a segment that did not become part of the log.
pub(crate) fn remove(shared: &Shared, files: &SegmentFiles) -> Result<(), StorageError> {
    files.release();
    FileKind::SEGMENT.into_iter().try_for_each(|kind| {
        match shared.disk.remove_file(&files.path(kind)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(files.error("remove", kind)(error))
            }
            _ => Ok(()),
        }
    })
}
