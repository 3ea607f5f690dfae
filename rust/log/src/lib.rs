//! One partition's log on disk: segments, indexes, epochs, producer state, recovery, retention.

mod clock;
pub mod disk;

pub use clock::{Clock, ManualClock, SystemClock};
pub use disk::{DirEntry, Disk, DiskFile, MemoryDisk, OpenMode, ReadMap, RealDisk, Space, Window};
