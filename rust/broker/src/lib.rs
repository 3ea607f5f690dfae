//! The data plane: listeners, partitions, purgatories, fetch sessions and the seam to Python.

pub mod api_versions;
mod clock;
mod connection;
mod connections;
mod context;
mod control;
mod core;
pub mod describe_topic_partitions;
mod dispatch;
mod endpoints;
mod engine;
mod event;
pub mod fetch;
mod fetch_session;
mod image;
mod input;
mod kafka_error;
mod leader_hint;
pub mod list_offsets;
mod listener;
mod log_ring;
pub mod maintenance;
mod memory;
pub mod metadata;
pub mod offset_for_leader_epoch;
mod output;
pub mod partition;
mod partition_table;
pub mod produce;
pub mod purgatory;
mod reply;
mod requests;
mod settings;
mod slots;
mod socket;
mod statistics;
mod storage;
#[cfg(test)]
mod testing;
mod topic_name;

pub use api_versions::{HOT_APIS, HotApi};
pub use clock::FixedClock;
pub use context::{ConnectionInfo, Context, ContextOptions, Header, Outcome, PendingOutcome};
pub use core::{Core, CoreError, CoreOptions};
pub use engine::Engine;
pub use event::{
    DiskStateKind, Event, EventQueue, PartitionStateKind, ReplicaStateKind, RequestEvent, Token,
};
pub use fetch_session::FetchSessions;
pub use image::{
    ApplyError, BrokerEndpoint, FinalizedFeatures, Image, ImageDelta, PartitionEntry, PartitionId,
    Step, TOPIC_ID_ZERO, TopicEntry, TopicId, TopicImage,
};
pub use kafka_error::KafkaError;
pub use log_ring::{Level, LogLine, LogRing, escaped};
pub use partition::isr::{BrokerState, IsrOutcome};
pub use partition::{Partition, PartitionOffsets};
pub use partition_table::{KeyValue, PartitionOptions, PartitionTable};
pub use purgatory::Purgatory;
pub use reply::{Reply, StoredRecords};
pub use settings::{SettingError, Settings};
pub use statistics::{Counter, Statistics};
pub use storage::StorageOpenError;
