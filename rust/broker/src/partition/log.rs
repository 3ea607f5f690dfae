//! The log of a partition: how it is opened, read, searched, synced and closed.

mod compaction;
pub(super) mod describe;
mod idle;
pub(crate) mod lookup;
pub(super) mod open;
pub(crate) mod opening;
pub(crate) mod read;
pub(crate) mod storage;
pub(super) mod sync;
