//! The log of a partition: how it is opened, read, searched, synced and closed.

pub(crate) mod await_open;
mod compaction;
pub(super) mod describe;
mod idle;
pub(crate) mod lookup;
pub(super) mod open_log;
pub(crate) mod read;
pub(crate) mod storage;
pub(super) mod sync;
