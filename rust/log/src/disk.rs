//! Storage as one small trait, with implementations for the real file system and memory, and two
//! for tests: a faulty disk, and a disk with a hook.
//!
//! The engine accesses all stored data through [`Disk`] and [`DiskFile`]; nothing else in the crate
//! uses `std::fs`. The traits guarantee exactly what POSIX does: a write is durable only after
//! [`DiskFile::sync_data`], a name only after [`Disk::sync_dir`] of its directory.

mod faulty;
mod hooked;
pub mod map;
mod memory;
pub(crate) mod open_files;
mod platform;
mod real;
mod traits;
mod window;

pub use faulty::{Fault, FaultyDisk, Operations};
pub use hooked::{FileOp, Hook, HookedDisk};
pub use map::ReadMap;
pub use memory::MemoryDisk;
pub use open_files::OpenFiles;
pub use real::RealDisk;
pub use traits::{DirEntry, Disk, DiskFile, FileId, OpenMode, ReadFile, Space};
pub(crate) use traits::{read_whole, replace};
pub use window::{Allocated, Reserved, Window};

#[cfg(test)]
mod tests;
