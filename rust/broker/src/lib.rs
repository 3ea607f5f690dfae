//! The data plane: listeners, partitions, purgatories, fetch sessions and the interface to Python.
//!
//! - `control_api`: the interface to Python: the core, the image and the event queue.
//! - `network`: listeners, connections, and bounds for the memory that peers can occupy.
//! - `api`: one file per API that Rust handles, and shared code.
//! - `fetcher`: the tasks by which followers fetch from leaders.
//! - `maintenance`: periodic work, such as checkpoints and compactions.
//! - `partition`: the partitions of this broker, their logs, and the requests that wait for them.

mod api;
mod context;
mod control_api;
mod fetcher;
mod hot_apis;
mod kafka_error;
mod maintenance;
mod network;
mod partition;
mod request;
mod slots;
#[cfg(test)]
mod testing;

pub use api::fetch_session::FetchSessions;
pub use context::{Context, ContextOptions};
pub use control_api::clock::FixedClock;
pub use control_api::core::{Core, CoreError, CoreOptions};
pub use control_api::event::faults::{Faults, LogFault};
pub use control_api::event::queue::EventQueue;
pub use control_api::event::{
    DiskStateKind, Event, RecordsRead, ReplicaStateKind, Replied, RequestEvent, Token,
    VerifyTransaction,
};
pub use control_api::image::client_quotas::{ClientQuota, Metered, Named};
pub use control_api::image::delta::{ImageDelta, TopicImage};
pub use control_api::image::step::{Refusal, Step};
pub use control_api::image::{
    BrokerEndpoint, FinalizedFeatures, Image, PartitionEntry, PartitionId, TOPIC_ID_ZERO,
    TopicEntry, TopicId,
};
pub use control_api::log_ring::{Level, LogLine, LogRing, escaped};
pub use control_api::peers::code_of;
pub use control_api::requests::Room;
pub use control_api::settings::{SettingError, Settings};
pub use control_api::statistics::{Counter, Statistics};
pub use hot_apis::{HOT_APIS, HotApi};
pub use kafka_error::KafkaError;
pub use network::Network;
pub use network::engine::Engine;
pub use network::fault_injection::{PeerAddress, Unreachable};
pub use network::listener::Audience;
pub use network::outcome::{Outcome, PendingOutcome};
pub use network::reply::{ReadFailures, Reply, StoredRecords};
pub use partition::log::storage::StorageOpenError;
pub use partition::partition_table::command::{BatchKind, KeyValue};
pub use partition::partition_table::health::ProbeNeeds;
pub use partition::partition_table::markers::Marker;
pub use partition::partition_table::{PartitionOptions, PartitionTable};
pub use partition::purgatory::Purgatory;
pub use partition::replication::isr::{BrokerState, IsrOutcome};
pub use partition::{Partition, PartitionOffsets};
pub use request::{ConnectionInfo, ControllerApis, Header};
