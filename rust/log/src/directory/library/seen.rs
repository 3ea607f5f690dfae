//! The state of a directory that other processes may change, as an open for reading finds it.

use std::io;
use std::path::Path;

use crate::checkpoint::{self, PARTITION_METADATA_FILE};
use crate::directory::checkpoints::Checkpoints;
use crate::directory_names::partition_key;
use crate::disk::{DirEntry, Disk, FileId};
use crate::error::{OpenError, StorageError};
use crate::log::types::Checkpointed;

/// Which log a directory contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    /// That of `partition.metadata`, if it exists and can be read.
    topic_id: Option<[u8; 16]>,
    dir: Option<FileId>,
}

impl Identity {
    pub(super) fn of(disk: &dyn Disk, path: &Path) -> Result<Identity, OpenError> {
        let dir = disk.id_of(path).map_err(|error| missing("look at", path, error))?;
        let file = path.join(PARTITION_METADATA_FILE);
        let bytes = match disk.read(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            bytes => Some(bytes.map_err(|error| StorageError::io("read", &file, error))?),
        };
        let found = bytes.and_then(|bytes| checkpoint::read_partition_metadata(&bytes).ok());
        Ok(Identity { topic_id: found.map(|found| found.topic_id), dir })
    }

    /// Checks that the directory still contains the same log: by the topic id, so that it may be
    /// restored from a copy, or without one by the directory itself.
    pub(super) fn check(&self, now: &Identity, path: &Path) -> Result<(), OpenError> {
        let is_same = match (self.topic_id, now.topic_id) {
            (Some(opened), Some(found)) => opened == found,
            _ => self.dir == now.dir,
        };
        if is_same { Ok(()) } else { Err(OpenError::Recreated { path: path.to_owned() }) }
    }
}

fn missing(action: &'static str, path: &Path, error: io::Error) -> OpenError {
    if error.kind() == io::ErrorKind::NotFound {
        return OpenError::Gone { path: path.to_owned() };
    }
    StorageError::io(action, path, error).into()
}

/// The checkpoints and files that an open uses. They are read without a lock, so they may be
/// inconsistent if another process writes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) checkpointed: Checkpointed,
    files: Vec<DirEntry>,
}

impl Seen {
    pub(super) fn of(disk: &dyn Disk, container: &Path, path: &Path) -> Result<Seen, OpenError> {
        let checkpoints = Checkpoints::read_for(disk, container, path)?;
        let mut files = disk.list(path).map_err(|error| missing("list", path, error))?;
        files.sort();
        Ok(Seen { checkpointed: checkpoints.of(&partition_key(path)), files })
    }

    /// The segment files, including those with the temporary names of a compaction. Compaction may
    /// replace a file by another one of the same name.
    fn segments(&self) -> impl Iterator<Item = (&str, Option<FileId>)> {
        let files = self.files.iter().filter_map(|file| Some((file.name.to_str()?, file.id)));
        files.filter(|(name, _)| name.contains(".log"))
    }

    /// True if all segments except the last one are the same. A writer appends to the last one, and
    /// appends also move the high watermark and the recovery point.
    pub(super) fn has_sealed_of(&self, other: &Seen) -> bool {
        let bounds =
            |seen: &Seen| (seen.checkpointed.log_start_offset, seen.checkpointed.cleaner_offset);
        bounds(self) == bounds(other) && self.sealed().eq(other.sealed())
    }

    fn sealed(&self) -> impl Iterator<Item = &DirEntry> {
        let last = self.segments().last().and_then(|(name, _)| name.split('.').next());
        let is_last = move |name: &str| last.is_some_and(|last| name.starts_with(last));
        self.files.iter().filter(move |file| !file.name.to_str().is_some_and(is_last))
    }

    /// True if this has all segments of `other` in the same order, and possibly more after them.
    pub(super) fn extends(&self, other: &Seen) -> bool {
        let mut segments = self.segments();
        other.segments().all(|segment| segments.next() == Some(segment))
    }
}
