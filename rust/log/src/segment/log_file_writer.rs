//! The `.log` of a segment for its writer. It is opened and mapped again after its handle was
//! closed for other files.

use std::io;
use std::sync::Arc;

use super::SegmentFiles;
use crate::disk::{Allocated, DiskFile, FileId, ReadFile, ReadMap, Reserved, Window};

/// The writer's file. While it exists, the segment's readers share a handle that can write.
#[derive(Debug)]
struct ActiveFile(Arc<SegmentFiles>);

/// A window of [`ActiveFile`]. The map is stored with the handles; only one exists at a time.
#[derive(Debug)]
struct ActiveWindow {
    files: Arc<SegmentFiles>,
    reserved: Reserved,
    position: u64,
}

impl SegmentFiles {
    /// The `.log` for its only writer.
    pub(crate) fn active_file(self: &Arc<Self>) -> Arc<dyn DiskFile> {
        let mut handles = self.handles.lock();
        handles.log = None;
        handles.is_active = true;
        Arc::new(ActiveFile(self.clone()))
    }
}

impl ActiveFile {
    fn open(&self) -> io::Result<Arc<dyn DiskFile>> {
        self.0.open_log(&mut self.0.handles.lock())
    }
}

impl Drop for ActiveFile {
    fn drop(&mut self) {
        self.0.handles.lock().is_active = false;
    }
}

impl ReadFile for ActiveFile {
    fn read_at(&self, bytes: &mut [u8], position: u64) -> io::Result<usize> {
        self.open()?.read_at(bytes, position)
    }

    fn size(&self) -> io::Result<u64> {
        self.open()?.size()
    }

    fn id(&self) -> io::Result<Option<FileId>> {
        self.open()?.id()
    }
}

impl DiskFile for ActiveFile {
    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        self.open()?.write_at(bytes, position)
    }

    fn allocate(&self, position: u64, size: u64) -> io::Result<Allocated> {
        self.open()?.allocate(position, size)
    }

    fn set_len(&self, size: u64) -> io::Result<()> {
        self.open()?.set_len(size)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.open()?.sync_data()
    }

    fn map_window(&self, reserved: &Reserved, position: u64) -> io::Result<Box<dyn Window>> {
        let window = ActiveWindow { files: self.0.clone(), reserved: reserved.clone(), position };
        window.with(|_| Ok(()))?;
        Ok(Box::new(window))
    }

    fn map_read(&self, size: usize) -> io::Result<ReadMap> {
        self.open()?.map_read(size)
    }
}

impl ActiveWindow {
    fn with<T>(&self, act: impl FnOnce(&mut dyn Window) -> io::Result<T>) -> io::Result<T> {
        let mut handles = self.files.handles.lock();
        if handles.window.is_none() {
            let file = self.files.open_log(&mut handles)?;
            handles.window = Some(file.map_window(&self.reserved, self.position)?);
        }
        handles.was_used = true;
        act(&mut **handles.window.as_mut().expect("it was mapped"))
    }
}

impl Window for ActiveWindow {
    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> io::Result<()> {
        self.with(|window| window.write_at(offset, bytes))
    }
}

impl Drop for ActiveWindow {
    fn drop(&mut self) {
        self.files.handles.lock().window = None;
    }
}
