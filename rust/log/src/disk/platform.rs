//! File system calls that differ between operating systems. Other modules of this crate have no
//! conditions on the operating system.

use rustix::fs::StatFs;

/// The kinds of file systems that the log distinguishes.
#[cfg_attr(target_os = "macos", expect(dead_code, reason = "its file systems are others"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileSystem {
    /// ext4; also ext2 and ext3, which cannot reserve blocks.
    Ext,
    /// XFS of any version.
    Xfs,
    /// Memory, so a reservation is not free.
    Tmpfs,
    /// Any other one, such as NFS and those that copy on write.
    Other,
}

impl FileSystem {
    /// True if it writes into the blocks that it reserved. On copy-on-write file systems a reserved
    /// block may still need a new one.
    pub(super) fn writes_in_place(self) -> bool {
        self != FileSystem::Other
    }

    /// True if it can reserve blocks of a disk. ext2 and ext3 refuse when they are asked.
    pub(super) fn reserves_blocks(self) -> bool {
        matches!(self, FileSystem::Ext | FileSystem::Xfs)
    }
}

/// Returns the kind of the file system with this status.
#[cfg(target_os = "linux")]
pub(super) fn file_system(status: &StatFs) -> FileSystem {
    match status.f_type {
        0xEF53 => FileSystem::Ext,
        0x5846_5342 => FileSystem::Xfs,
        0x0102_1994 => FileSystem::Tmpfs,
        _ => FileSystem::Other,
    }
}

/// APFS copies on write, so no file is mapped for writing.
#[cfg(target_os = "macos")]
pub(super) fn file_system(_: &StatFs) -> FileSystem {
    FileSystem::Other
}
