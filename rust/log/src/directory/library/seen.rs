//! The state of a directory that other processes may change, as an open for reading finds it.

use std::io;
use std::path::Path;

use crate::checkpoint::{self, PartitionIdentity};
use crate::directory::checkpoints::Checkpoints;
use crate::directory_names::partition_key;
use crate::disk::{DirEntry, Disk, FileId};
use crate::error::{OpenError, StorageError};
use crate::log::types::Checkpointed;

/// Which log a directory contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    /// The content of `partition.metadata`, if it exists and can be understood.
    pub(super) partition: Option<PartitionIdentity>,
    dir: Option<FileId>,
}

impl Identity {
    pub(super) fn of(disk: &dyn Disk, path: &Path) -> Result<Identity, OpenError> {
        let dir = disk.id_of(path).map_err(|error| missing("look at", path, error))?;
        let partition = match checkpoint::identity_in(disk, path) {
            Err(OpenError::Malformed { .. }) => None,
            found => found?,
        };
        Ok(Identity { partition, dir })
    }

    /// Checks that the directory still contains the same log: by the topic id and the partition, so
    /// that it may be restored from a copy, or without an id by the directory itself.
    pub(super) fn check(&self, now: &Identity, path: &Path) -> Result<(), OpenError> {
        let is_same = match (self.partition, now.partition) {
            (Some(opened), Some(found)) => opened.may_equal(&found),
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
