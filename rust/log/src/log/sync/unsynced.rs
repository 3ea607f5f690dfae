//! Files and directories that the next sync round must sync, besides the segments.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use crate::disk::{Disk, OpenMode};

/// Small files and directories that were changed since the last sync, each once.
#[derive(Debug, Default)]
pub(crate) struct Unsynced {
    files: BTreeSet<PathBuf>,
    dirs: BTreeSet<PathBuf>,
}

impl Unsynced {
    pub(crate) fn add_file(&mut self, path: PathBuf) {
        self.files.insert(path);
    }

    pub(crate) fn add_dir(&mut self, path: PathBuf) {
        self.dirs.insert(path);
    }

    /// Adds the files and directories of `collected` again.
    pub(super) fn take_back(&mut self, collected: &Unsynced) {
        self.files.extend(collected.files.iter().cloned());
        self.dirs.extend(collected.dirs.iter().cloned());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.dirs.is_empty()
    }

    /// Syncs files first, then their directories. Files that were deleted in between are skipped.
    pub(super) fn sync(&self, disk: &dyn Disk) -> io::Result<()> {
        let is_there = |result: io::Result<()>| match result {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        };
        for path in &self.files {
            is_there(disk.open(path, OpenMode::Read).and_then(|file| file.sync_data()))?;
        }
        self.dirs.iter().try_for_each(|dir| is_there(disk.sync_dir(dir)))
    }
}
