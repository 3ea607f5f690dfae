//! The data plane: listeners, partitions, purgatories, fetch sessions and the seam to Python.

mod fetch_session;
mod kafka_error;
mod purgatory;
mod partition {
    pub mod follower;
    pub mod isr;
    pub mod replication;
    pub mod waiters;
}

/// Sixteen bytes, as on the wire.
pub type TopicId = [u8; 16];

pub use fetch_session::*;
pub use kafka_error::KafkaError;
pub use partition::{follower::*, isr::*, replication::*, waiters::*};
pub use purgatory::*;
