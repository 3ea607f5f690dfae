//! The limits of a fetch.

use crate::partition::log::read::Isolation;

/// The parameters of a request apart from its partitions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) version: i16,
    pub(super) isolation: Isolation,
    /// True if followers may serve it.
    pub(super) any_replica: bool,
    /// A negative limit fails when bytes would be read (contract/kafka.md#62).
    pub(super) bytes_max: i64,
    pub(super) bytes_min: i64,
    pub(super) wait_ms: i32,
}
