//! Reserved space of files, and windows for writing into it.

use std::fmt::Debug;
use std::io;
use std::ops::Range;

/// Result of [`super::DiskFile::allocate`].
#[derive(Debug)]
pub enum Allocated {
    /// Each byte has its block on the disk: writing it cannot fail for lack of space, also through
    /// a map.
    Reserved(Reserved),
    /// The file has the requested size. The file system allocates blocks when bytes are written, so
    /// a write may fail on a full disk; through a map that would be SIGBUS.
    Grown,
}

/// Reserved space of a file, which is required to map it for writing. Only a disk creates one.
#[derive(Debug, Clone)]
pub struct Reserved(Range<u64>);

impl Reserved {
    pub(super) fn granted(position: u64, size: u64) -> io::Result<Allocated> {
        let end = position.checked_add(size).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(Allocated::Reserved(Reserved(position..end)))
    }

    /// Both ranges as one if `next` starts where this one ends; otherwise `next`.
    #[must_use]
    pub fn join(self, next: Reserved) -> Reserved {
        if self.0.end == next.0.start { Reserved(self.0.start..next.0.end) } else { next }
    }

    /// The part that starts at `position`, at most `size_max` bytes long.
    #[must_use]
    pub fn part(&self, position: u64, size_max: u64) -> Reserved {
        let start = position.clamp(self.0.start, self.0.end);
        Reserved(start..self.0.end.min(start.saturating_add(size_max)))
    }

    /// End of the range (exclusive).
    pub fn end(&self) -> u64 {
        self.0.end
    }

    /// The end of the window that starts at `position`, and its size.
    pub(super) fn window(&self, position: u64) -> io::Result<(u64, usize)> {
        if !self.0.contains(&position) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let size = usize::try_from(self.0.end - position);
        Ok((self.0.end, size.map_err(|_| io::ErrorKind::FileTooLarge)?))
    }
}

/// A part of a file that is written by copying into memory. Written bytes are immediately visible
/// to [`super::ReadFile::read_at`], survive the process, and become durable by
/// [`super::DiskFile::sync_data`].
pub trait Window: Send + Debug {
    /// Copies `bytes` to `offset` bytes after the window's start.
    ///
    /// # Errors
    /// `InvalidInput` if it does not fit; `UnexpectedEof` if another process has shortened the
    /// file.
    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> io::Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_reserved_space_lies_within_it() {
        let reserved = Reserved(100..200);
        for (position, size_max, part) in
            [(100, 30, 100..130), (150, 1000, 150..200), (0, 10, 100..110), (300, 10, 200..200)]
        {
            assert_eq!(reserved.part(position, size_max).0, part);
        }
    }
}
