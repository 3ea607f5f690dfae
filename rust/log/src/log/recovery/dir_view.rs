//! A read-only view of a log's directory.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{DirEntry, Disk, OpenMode, ReadFile};
use crate::error::StorageError;
use crate::file_names::SWAP_SUFFIX;

/// A log's directory without any means to change a file. So a function with no other access to the
/// disk cannot change it.
pub(crate) struct DirView<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    /// Plain names of the files that still have the suffix [`SWAP_SUFFIX`].
    swapped: Vec<String>,
}

impl<'a> DirView<'a> {
    pub(crate) fn new(disk: &'a dyn Disk, dir: &'a Path) -> DirView<'a> {
        DirView { disk, dir, swapped: Vec::new() }
    }

    /// A view of the same directory, in which files with these plain names appear as if already
    /// renamed.
    pub(crate) fn with_swapped(&self, swapped: &[String]) -> DirView<'a> {
        DirView { swapped: swapped.to_vec(), ..*self }
    }

    /// The path of the directory.
    pub(crate) fn dir(&self) -> &Path {
        self.dir
    }

    /// The path of a file by its plain name.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        if self.swapped.iter().any(|swapped| swapped == name) {
            self.dir.join(format!("{name}{SWAP_SUFFIX}"))
        } else {
            self.dir.join(name)
        }
    }

    /// An error for a file of the directory.
    pub(crate) fn error(
        &self,
        action: &'static str,
        name: &str,
    ) -> impl FnOnce(io::Error) -> StorageError {
        let path = self.path(name);
        move |source| StorageError::io(action, &path, source)
    }

    /// The files of the log, without subdirectories; `None` if the directory does not exist.
    pub(crate) fn list(&self) -> Result<Option<Vec<DirEntry>>, StorageError> {
        match self.disk.list(self.dir) {
            Ok(entries) => Ok(Some(entries.into_iter().filter(|entry| !entry.is_dir).collect())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StorageError::io("list", self.dir, error)),
        }
    }

    pub(crate) fn open(&self, name: &str) -> Result<Arc<dyn ReadFile>, StorageError> {
        match self.disk.open(&self.path(name), OpenMode::Read) {
            Ok(file) => Ok(file),
            Err(error) => Err(self.error("open", name)(error)),
        }
    }

    /// Opens a file for reading; `None` if it does not exist.
    pub(crate) fn open_if_there(
        &self,
        name: &str,
    ) -> Result<Option<Arc<dyn ReadFile>>, StorageError> {
        match self.disk.open(&self.path(name), OpenMode::Read) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.error("open", name)(error)),
        }
    }

    /// The content of a small file; `None` if it does not exist.
    pub(crate) fn read_if_there(&self, name: &str) -> Result<Option<Vec<u8>>, StorageError> {
        match self.disk.read(&self.path(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.error("read", name)(error)),
        }
    }
}
