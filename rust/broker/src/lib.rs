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
mod fetch_session;
mod image;
mod input;
mod kafka_error;
mod listener;
mod log_ring;
pub mod metadata;
mod output;
mod purgatory;
mod requests;
mod settings;
mod slots;
mod statistics;
mod topic_name;
mod partition {
    pub mod follower;
    pub mod isr;
    pub mod replication;
    pub mod waiters;
}

pub use api_versions::{HOT_APIS, HotApi};
pub use clock::FixedClock;
pub use context::{ConnectionInfo, Context, ContextOptions, Header, Outcome, PendingOutcome};
pub use core::{Core, CoreError, CoreOptions};
pub use engine::Engine;
pub use event::{
    DiskStateKind, Event, EventQueue, PartitionStateKind, ReplicaStateKind, RequestEvent, Token,
};
pub use fetch_session::*;
pub use image::{
    ApplyError, BrokerEndpoint, FinalizedFeatures, Image, ImageDelta, PartitionEntry, PartitionId,
    Step, TOPIC_ID_ZERO, TopicEntry, TopicId, TopicImage,
};
pub use kafka_error::KafkaError;
pub use log_ring::{Level, LogLine, LogRing, escaped};
pub use partition::{follower::*, isr::*, replication::*, waiters::*};
pub use purgatory::*;
pub use settings::{SettingError, Settings};
pub use statistics::{Counter, Statistics};
