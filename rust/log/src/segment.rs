//! A segment: a `.log` file of batches, its indexes, and the facts about it in memory.
//!
//! The log's lock protects [`Segment`]. [`SegmentFiles`] is shared with readers, which open, search
//! and `pread` without that lock. Files that retention or a truncation removed from the log can
//! still be read through an open handle.
//!
//! Any handle may be closed between two uses, so that other files can be opened
//! (`disk::open_files`): readers, the writer (`active_file`) and syncs request it each time.

pub(crate) mod appender;
pub(crate) mod index_entries;
pub(crate) mod index_file;
pub(crate) mod index_storage;
pub(crate) mod indexes;
pub(crate) mod list;
mod log_file_writer;
pub(crate) mod offset_index;
pub(crate) mod scan;
pub(crate) mod shorten;
pub(crate) mod time_index;
pub(crate) mod transaction_index;
pub(crate) mod withdrawn;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use pykafka_forks::Mutex;

use self::offset_index::OffsetEntry;
use self::time_index::TimeEntry;
use crate::disk::open_files::{Closed, Holder};
use crate::disk::{self, Disk, DiskFile, FileId, OpenFiles, OpenMode, Window};
use crate::error::StorageError;
use crate::file_names::{FileKind, SwapStage, file_name};
use crate::segment::index_file::IndexFile;
use crate::segment::indexes::Indexes;
use crate::segment::transaction_index::AbortedTxn;

/// The facts about one segment of a log.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    /// Bytes of batches; the file of the active segment may be longer, filled with zeros.
    pub(crate) size: u64,
    /// The largest timestamp of its records.
    pub(crate) max_timestamp: TimeEntry,
    /// The max timestamp of its first batch, from which `segment.ms` counts; read when first
    /// needed.
    pub(crate) first_timestamp: Option<i64>,
    /// When this process created or first saw it. `segment.ms` counts from then if the first batch
    /// has no timestamp.
    pub(crate) created_ms: i64,
    /// When its `.log` was last written, for `retention.ms` of records without timestamps.
    pub(crate) modified_ms: i64,
    /// When this process started the segment, on the monotonic clock; `None` if it was found or
    /// compacted.
    pub(crate) begun_ns: Option<u64>,
    pub(crate) files: Arc<SegmentFiles>,
}

impl Segment {
    pub(crate) fn base_offset(&self) -> i64 {
        self.files.base_offset
    }

    /// The timestamp for `retention.ms`: the largest timestamp, or the file's last modification
    /// without one.
    pub(crate) fn retention_timestamp(&self) -> i64 {
        if self.max_timestamp.timestamp >= 0 {
            self.max_timestamp.timestamp
        } else {
            self.modified_ms
        }
    }
}

/// Index of the segment that holds `offset`, or of the first one.
pub(crate) fn segment_of(segments: &[Segment], offset: i64) -> Option<usize> {
    let after = segments.partition_point(|segment| segment.base_offset() <= offset);
    if segments.is_empty() { None } else { Some(after.saturating_sub(1)) }
}

/// Names and handles of a segment's files. Handles are opened when needed and dropped by
/// [`Self::release`].
#[derive(Debug)]
pub(crate) struct SegmentFiles {
    me: Weak<SegmentFiles>,
    dir: Arc<Path>,
    base_offset: i64,
    /// Kinds of files that do not have their plain names: an open for reading only does not rename
    /// files, and a compaction renames files that readers already use.
    swapped: Vec<FileKind>,
    /// The [`SwapStage`] of these files.
    place: AtomicU8,
    /// The files that may be opened by their names, if other processes may replace them.
    expected: Vec<(FileKind, FileId)>,
    disk: Arc<dyn Disk>,
    handles: Mutex<Handles>,
    /// Findings of a recovery that must not store them. Readers use these instead of index files.
    rebuilt: Mutex<Option<Rebuilt>>,
    /// Expected number of aborted transactions in the index: a file with fewer is damaged.
    aborted_count: AtomicUsize,
    /// True if new look-ups find other files for this base offset, or none of it.
    is_withdrawn: AtomicBool,
}

/// Indexes and aborted transactions of a segment, from its batches.
pub(crate) type Rebuilt = (Indexes, Arc<[AbortedTxn]>);

#[derive(Debug, Default)]
struct Handles {
    log: Option<Arc<dyn DiskFile>>,
    /// True while there is a writer: `log` is opened for writing.
    is_active: bool,
    /// The writer's window.
    window: Option<Box<dyn Window>>,
    offsets: Option<Arc<IndexFile<{ offset_index::ENTRY_SIZE }>>>,
    times: Option<Arc<IndexFile<{ time_index::ENTRY_SIZE }>>>,
    aborted: Option<Arc<[AbortedTxn]>>,
    /// Since the last check by `OpenFiles`.
    was_used: bool,
    /// True if the handles are listed in `OpenFiles`.
    is_listed: bool,
}

impl Handles {
    /// Drops everything that uses descriptors.
    fn close(&mut self) {
        self.log = None;
        self.window = None;
        self.offsets = None;
        self.times = None;
    }
}

impl Holder for SegmentFiles {
    fn close_idle(&self) -> Closed {
        let Some(mut handles) = self.handles.try_lock() else { return Closed::InUse };
        if std::mem::take(&mut handles.was_used) {
            return Closed::InUse;
        }
        handles.close();
        handles.is_listed = false;
        Closed::All
    }
}

impl SegmentFiles {
    pub(crate) fn new(dir: Arc<Path>, base_offset: i64, disk: Arc<dyn Disk>) -> Arc<SegmentFiles> {
        SegmentFiles::new_found(dir, base_offset, disk, Vec::new(), Vec::new())
    }

    /// Creates the object for existing files, of which the kinds in `swapped` still have to be
    /// renamed. With `expected`, other files of the same names are not opened: another process may
    /// replace a file.
    pub(crate) fn new_found(
        dir: Arc<Path>,
        base_offset: i64,
        disk: Arc<dyn Disk>,
        swapped: Vec<FileKind>,
        expected: Vec<(FileKind, FileId)>,
    ) -> Arc<SegmentFiles> {
        SegmentFiles::new_at(SwapStage::Swapped, dir, base_offset, disk, swapped, expected)
    }

    /// Creates the object for new files that will replace others.
    pub(crate) fn new_cleaned(
        dir: Arc<Path>,
        base_offset: i64,
        disk: Arc<dyn Disk>,
    ) -> Arc<SegmentFiles> {
        let kinds = FileKind::SEGMENT.to_vec();
        SegmentFiles::new_at(SwapStage::Cleaned, dir, base_offset, disk, kinds, Vec::new())
    }

    fn new_at(
        place: SwapStage,
        dir: Arc<Path>,
        base_offset: i64,
        disk: Arc<dyn Disk>,
        swapped: Vec<FileKind>,
        expected: Vec<(FileKind, FileId)>,
    ) -> Arc<SegmentFiles> {
        Arc::new_cyclic(|me| SegmentFiles {
            me: me.clone(),
            dir,
            base_offset,
            swapped,
            place: AtomicU8::new(place as u8),
            expected,
            disk,
            handles: Mutex::default(),
            rebuilt: Mutex::default(),
            aborted_count: AtomicUsize::default(),
            is_withdrawn: AtomicBool::default(),
        })
    }

    pub(crate) fn base_offset(&self) -> i64 {
        self.base_offset
    }

    pub(crate) fn path(&self, kind: FileKind) -> PathBuf {
        self.path_at(kind, self.place())
    }

    /// The path of a file once it is at `place`.
    pub(crate) fn path_at(&self, kind: FileKind, place: SwapStage) -> PathBuf {
        let name = file_name(self.base_offset, kind);
        let suffix = if self.swapped.contains(&kind) { place.suffix() } else { "" };
        self.dir.join(name + suffix)
    }

    fn place(&self) -> SwapStage {
        match self.place.load(Ordering::SeqCst) {
            place if place == SwapStage::Swapped as u8 => SwapStage::Swapped,
            place if place == SwapStage::Cleaned as u8 => SwapStage::Cleaned,
            _ => SwapStage::Plain,
        }
    }

    /// Notes that the files were renamed.
    pub(crate) fn set_place(&self, place: SwapStage) {
        self.place.store(place as u8, Ordering::SeqCst);
    }

    /// Opens a file by its name. If it does not exist, it may have been renamed to its plain name
    /// since. The plain name is free before any file loses its suffix, so a file with that name
    /// belongs to this segment.
    fn open(&self, kind: FileKind, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let place = self.place();
        let file = match self.disk.open(&self.path_at(kind, place), mode) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && place != SwapStage::Plain => {
                self.disk.open(&self.path_at(kind, SwapStage::Plain), mode)
            }
            opened => opened,
        }?;
        self.check_expected(kind, &*file)?;
        Ok(file)
    }

    fn check_expected(&self, kind: FileKind, file: &dyn DiskFile) -> io::Result<()> {
        match self.expected.iter().find(|(expected, _)| *expected == kind) {
            Some((_, id)) if file.id()? != Some(*id) => {
                let kind = io::ErrorKind::StaleNetworkFileHandle;
                Err(io::Error::new(kind, "another process has replaced the file"))
            }
            _ => Ok(()),
        }
    }

    /// An error of this segment's file `kind`.
    pub(crate) fn error(
        &self,
        action: &'static str,
        kind: FileKind,
    ) -> impl FnOnce(io::Error) -> StorageError {
        move |source| StorageError::io(action, &self.path(kind), source)
    }

    /// The `.log` for reading, and for writing while there is a writer.
    pub(crate) fn log(&self) -> Result<Arc<dyn DiskFile>, StorageError> {
        self.open_log(&mut self.handles.lock()).map_err(self.error("open", FileKind::Log))
    }

    fn open_log(&self, handles: &mut Handles) -> io::Result<Arc<dyn DiskFile>> {
        if let Some(file) = &handles.log {
            handles.was_used = true;
            return Ok(file.clone());
        }
        let mode = if handles.is_active { OpenMode::Write } else { OpenMode::Read };
        let file = self.by_name(|| self.open(FileKind::Log, mode))?;
        handles.log = Some(file.clone());
        self.opened(handles);
        Ok(file)
    }

    /// True if the open `.log` is still the file with that name, or if none is open.
    pub(crate) fn is_in_place(&self) -> io::Result<bool> {
        let file = self.handles.lock().log.clone();
        let path = self.path(FileKind::Log);
        file.map_or(Ok(true), |file| self.disk.is_in_place(&path, &*file))
    }

    /// Notes that a handle was opened and is kept.
    fn opened(&self, handles: &mut Handles) {
        handles.was_used = true;
        if let Some(open_files) = self.disk.open_files()
            && !std::mem::replace(&mut handles.is_listed, true)
        {
            let me: Weak<SegmentFiles> = self.me.clone();
            open_files.list(me);
        }
    }

    /// True if descriptors are scarce, so that a file should not stay open for longer than a read.
    pub(crate) fn are_descriptors_scarce(&self) -> bool {
        self.disk.open_files().is_some_and(OpenFiles::are_too_many_in_use)
    }

    /// Marks the files as about to be renamed, cut or replaced: from now on they are not opened by
    /// name.
    pub(crate) fn withdraw(&self) {
        self.is_withdrawn.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_withdrawn(&self) -> bool {
        self.is_withdrawn.load(Ordering::SeqCst)
    }

    /// The result of `open`, unless the name may belong to another segment by now.
    fn by_name<T>(&self, open: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let found = open();
        // Checked afterwards, because files are renamed only once this is set.
        if self.is_withdrawn() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the segment left the log"));
        }
        found
    }

    /// New files for the same segment after it was cut or its file was replaced.
    pub(crate) fn successor(&self) -> Arc<SegmentFiles> {
        let files = SegmentFiles::new(self.dir.clone(), self.base_offset, self.disk.clone());
        files.expect_aborted(self.aborted_count());
        files
    }

    /// Syncs the `.log`. Does nothing if the segment was removed from the log in between.
    pub(crate) fn sync_log(&self) -> io::Result<()> {
        let file = self.open_log(&mut self.handles.lock());
        match file {
            Err(_) if self.is_withdrawn() => Ok(()),
            file => file?.sync_data(),
        }
    }

    /// The position for `offset` in the stored offset index; 0 without the file.
    pub(crate) fn position_of(&self, offset: i64) -> Result<u64, StorageError> {
        let rebuilt = self.with_rebuilt(|indexes| indexes.offsets.position_of(offset));
        if let Some(position) = rebuilt.flatten() {
            return Ok(position);
        }
        self.last_position(|entry| entry.offset <= offset)
    }

    /// Does the same as [`crate::segment::offset_index::OffsetIndex::boundary`], with the stored
    /// offset index.
    pub(crate) fn boundary(&self, limit: u64, upto: i64) -> Result<u64, StorageError> {
        let rebuilt = self.with_rebuilt(|indexes| indexes.offsets.boundary(limit, upto));
        if let Some(position) = rebuilt.flatten() {
            return Ok(position);
        }
        self.last_position(|entry| entry.position <= limit && entry.offset < upto)
    }

    /// The position of the last entry of the stored offset index for which `is_before` holds; 0
    /// without one.
    fn last_position(&self, is_before: impl Fn(&OffsetEntry) -> bool) -> Result<u64, StorageError> {
        let Some(index) = self.offsets()? else { return Ok(0) };
        offset_index::last_position(&index, self.base_offset, is_before)
            .map_err(self.error("read", FileKind::OffsetIndex))
    }

    /// Does the same as [`crate::segment::time_index::TimeIndex::entry_of`], with the stored time
    /// index.
    pub(crate) fn entry_of_time(&self, timestamp: i64) -> Result<TimeEntry, StorageError> {
        let rebuilt = self.with_rebuilt(|indexes| indexes.times.entry_of(timestamp));
        if let Some(entry) = rebuilt.flatten() {
            return Ok(entry);
        }
        let base = self.base_offset;
        let Some(index) = self.times()? else { return Ok(TimeEntry::none(base)) };
        let found = index
            .last_where(|entry| TimeEntry::decode(entry, base).timestamp <= timestamp)
            .map_err(self.error("read", FileKind::TimeIndex))?;
        Ok(found.map_or(TimeEntry::none(base), |entry| TimeEntry::decode(&entry, base)))
    }

    /// The content of a file; `None` if it does not exist.
    pub(crate) fn read(&self, kind: FileKind) -> Result<Option<Vec<u8>>, StorageError> {
        let read = || match self.open(kind, OpenMode::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => disk::read_whole(&*opened?).map(Some),
        };
        self.by_name(read).map_err(self.error("read", kind))
    }

    /// The aborted transactions of this segment, in the order of their markers.
    pub(crate) fn aborted(&self) -> Result<Arc<[AbortedTxn]>, StorageError> {
        if let Some((_, aborted)) = &*self.rebuilt.lock() {
            return Ok(aborted.clone());
        }
        if self.aborted_count() == 0 {
            // True for most segments. A reader of old records checks all segments that follow.
            return Ok(Arc::default());
        }
        let mut handles = self.handles.lock();
        if let Some(aborted) = &handles.aborted {
            return Ok(aborted.clone());
        }
        let (path, count) = (self.path(FileKind::TransactionIndex), self.aborted_count());
        let bytes = self.read(FileKind::TransactionIndex)?.unwrap_or_default();
        let malformed = |reason: String| StorageError::Malformed { path, position: 0, reason };
        // At most the entry, or a part of it, of a marker that is not in the log follows.
        let Some(stored) = bytes.get(..count * transaction_index::ENTRY_SIZE) else {
            let found = bytes.len() / transaction_index::ENTRY_SIZE;
            return Err(malformed(format!("{found} of {count} aborted transactions")));
        };
        let Some(aborted) = AbortedTxn::decode_all(stored) else {
            return Err(malformed("not a transaction index".to_owned()));
        };
        let aborted: Arc<[AbortedTxn]> = aborted.into();
        handles.aborted = Some(aborted.clone());
        Ok(aborted)
    }

    /// Replaces the aborted transactions for readers. The caller has written them.
    pub(crate) fn set_aborted(&self, aborted: Arc<[AbortedTxn]>) {
        self.expect_aborted(aborted.len());
        self.handles.lock().aborted = Some(aborted);
    }

    /// Sets the expected number of entries in the transaction index.
    pub(crate) fn expect_aborted(&self, count: usize) {
        self.aborted_count.store(count, Ordering::SeqCst);
    }

    pub(crate) fn aborted_count(&self) -> usize {
        self.aborted_count.load(Ordering::SeqCst)
    }

    /// Makes readers use the findings of a recovery.
    pub(crate) fn set_rebuilt(&self, indexes: Indexes, aborted: Arc<[AbortedTxn]>) {
        *self.rebuilt.lock() = Some((indexes, aborted));
    }

    /// Removes and returns the findings of a recovery, to store them.
    pub(crate) fn take_rebuilt(&self) -> Option<Rebuilt> {
        self.rebuilt.lock().take()
    }

    /// Calls `see` with the indexes from a recovery, if they are in use.
    pub(crate) fn with_rebuilt<T>(&self, see: impl FnOnce(&Indexes) -> T) -> Option<T> {
        self.rebuilt.lock().as_ref().map(|(indexes, _)| see(indexes))
    }

    /// Drops the cached contents of the index files, which have changed.
    pub(crate) fn forget_indexes(&self) {
        let mut handles = self.handles.lock();
        handles.offsets = None;
        handles.times = None;
        handles.aborted = None;
    }

    /// Drops all handles and caches.
    pub(crate) fn release(&self) {
        let mut handles = self.handles.lock();
        let Handles { is_active, is_listed, .. } = *handles;
        *handles = Handles { is_active, is_listed, ..Handles::default() };
    }

    fn offsets(
        &self,
    ) -> Result<Option<Arc<IndexFile<{ offset_index::ENTRY_SIZE }>>>, StorageError> {
        let mut handles = self.handles.lock();
        if handles.offsets.is_none() {
            handles.offsets = self.open_index(FileKind::OffsetIndex)?;
            self.opened(&mut handles);
        }
        handles.was_used = true;
        Ok(handles.offsets.clone())
    }

    fn times(&self) -> Result<Option<Arc<IndexFile<{ time_index::ENTRY_SIZE }>>>, StorageError> {
        let mut handles = self.handles.lock();
        if handles.times.is_none() {
            handles.times = self.open_index(FileKind::TimeIndex)?;
            self.opened(&mut handles);
        }
        handles.was_used = true;
        Ok(handles.times.clone())
    }

    fn open_index<const SIZE: usize>(
        &self,
        kind: FileKind,
    ) -> Result<Option<Arc<IndexFile<SIZE>>>, StorageError> {
        let open = || match self.open(kind, OpenMode::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => Ok(Some(Arc::new(IndexFile::new(opened?)?))),
        };
        self.by_name(open).map_err(self.error("open", kind))
    }
}
