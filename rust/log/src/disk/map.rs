//! Mapping files, which needs unsafe code.
//!
//! # Why SIGBUS cannot occur
//! A mapped access faults if its page is beyond the end of the file, or if a hole must be filled
//! and the disk is full. So:
//!
//! 1. A write window covers only space that was reserved, as [`Reserved`] proves, and only bytes
//!    before the file's end.
//! 2. The window belongs to one writer, which drops it before it shortens the file.
//! 3. Only sealed files are mapped for reading, and a file that was ever sealed is never shortened
//!    into its batches: truncation writes a new inode.
//! 4. The directory lock excludes other writers. In case another program truncates the file anyway,
//!    the file's length is checked before each copy, so that the truncation becomes an error.
#![expect(unsafe_code, reason = "a mapped file must not be truncated by others: see above")]

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::sync::Arc;

use memmap2::{Mmap, MmapMut, MmapOptions};
use pykafka_forks::ForkClosed;

use super::window::{Reserved, Window};

/// The bytes of a sealed file. Cheap to clone; released with the last clone.
#[derive(Clone, Debug)]
pub struct ReadMap(Source);

#[derive(Clone, Debug)]
enum Source {
    Mapped(Arc<Mmap>),
    Copied(Arc<[u8]>),
}

impl ReadMap {
    /// Maps the first `size` bytes of `file`, which the caller must never shorten.
    pub(super) fn map(file: &File, size: usize) -> io::Result<ReadMap> {
        if size == 0 {
            return Ok(ReadMap::copied(Vec::new()));
        }
        check_length(file, size as u64)?;
        // SAFETY: rule 3: the inode is not shortened while it is mapped, and sealed files are not
        // written.
        let map = unsafe { MmapOptions::new().len(size).map(file)? };
        Ok(ReadMap(Source::Mapped(Arc::new(map))))
    }

    /// Wraps bytes that are already in memory.
    pub(super) fn copied(bytes: Vec<u8>) -> ReadMap {
        ReadMap(Source::Copied(bytes.into()))
    }
}

impl Deref for ReadMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Source::Mapped(map) => map,
            Source::Copied(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for ReadMap {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// A shared mapping over reserved space of a file.
#[derive(Debug)]
pub(super) struct MappedWindow {
    map: MmapMut,
    file: Arc<ForkClosed<File>>,
    end: u64,
}

impl MappedWindow {
    /// Maps `reserved` from `position` on for writing. `position` need not be aligned to pages.
    pub(super) fn new(
        file: &Arc<ForkClosed<File>>,
        reserved: &Reserved,
        position: u64,
    ) -> io::Result<MappedWindow> {
        let (end, size) = reserved.window(position)?;
        check_length(file, end)?;
        // SAFETY: rules 1 and 2: the range was reserved, is within the file, and this window is the
        // only writer until it is dropped. References into the map never leave this type.
        let map = unsafe { MmapOptions::new().offset(position).len(size).map_mut(&***file)? };
        Ok(MappedWindow { map, file: Arc::clone(file), end })
    }
}

impl Window for MappedWindow {
    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> io::Result<()> {
        check_length(&self.file, self.end)?;
        let target = offset
            .checked_add(bytes.len())
            .and_then(|end| self.map.get_mut(offset..end))
            .ok_or(io::ErrorKind::InvalidInput)?;
        target.copy_from_slice(bytes);
        Ok(())
    }
}

fn check_length(file: &File, needed: u64) -> io::Result<()> {
    if file.metadata()?.len() < needed {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the file is shorter than its map",
        ));
    }
    Ok(())
}
