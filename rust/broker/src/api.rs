//! Request handlers: one file per API that Rust handles, the queue to Python for the others, and
//! shared code.

pub(crate) mod api_versions;
mod describe_topic_partitions;
pub(crate) mod dispatch;
mod endpoints;
pub(crate) mod fetch;
pub(crate) mod fetch_session;
mod forward_to_python;
mod leader_hint;
pub(crate) mod list_offsets;
pub(crate) mod metadata;
pub(crate) mod offset_for_leader_epoch;
pub(crate) mod produce;
pub(crate) mod quota;
pub(crate) mod replica_authorization;
pub(crate) mod replication_throttle;
pub(crate) mod response_size;
mod topic_name;
mod worker;

/// Requests about more partitions take milliseconds, so other threads than the network threads
/// handle them.
const PARTITIONS_AT_ONCE_MAX: usize = 2_000;
