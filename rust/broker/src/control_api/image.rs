//! The projection: the metadata in the data plane, immutable and replaced as a whole.
//!
//! Python owns the committed metadata records and sends steps (`delta`), each of which creates the
//! next image (`step`). A request loads one image and uses only that, so a response never mixes two
//! steps.

pub(crate) mod client_quotas;
pub(crate) mod delta;
pub(crate) mod step;
pub(crate) mod throttled;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use pykafka_log::LogConfig;
use pykafka_record::LeaderEpoch;

use crate::control_api::cow_collections::{Indexed, Pages, Shards};
use crate::control_api::image::client_quotas::ClientQuotas;
use crate::control_api::image::throttled::ThrottledReplicas;
use crate::control_api::settings::Settings;

/// The 16 bytes of a topic id, as on the wire.
pub type TopicId = [u8; 16];
/// The partition of a command (docs/PLANES.md S3).
pub type PartitionId = (TopicId, i32);
/// Not the id of any topic.
pub const TOPIC_ID_ZERO: TopicId = [0; 16];

/// A registered broker's endpoint at one listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerEndpoint {
    /// Node id of the broker.
    pub node_id: i32,
    /// Name of the listener.
    pub listener: Arc<str>,
    /// The advertised value.
    pub host: Arc<str>,
    /// The advertised value.
    pub port: u16,
    /// `broker.rack`.
    pub rack: Option<Arc<str>>,
    /// Epoch of its registration; -1 if unknown.
    pub broker_epoch: i64,
    /// Fenced: not reported to clients, and not eligible for an ISR.
    pub fenced: bool,
    /// In controlled shutdown: not eligible for an ISR.
    pub in_controlled_shutdown: bool,
}

/// A broker's registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registration {
    /// -1 if not known.
    pub broker_epoch: i64,
    /// Whether it may join an ISR: neither fenced nor in controlled shutdown
    /// (contract/replication.md#26).
    pub is_eligible: bool,
}

/// A partition's state in the metadata.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartitionEntry {
    /// Index of the partition in the topic.
    pub index: i32,
    /// Node id; −1 without a leader.
    pub leader: i32,
    /// Incremented with every change of the leader.
    pub leader_epoch: LeaderEpoch,
    /// Incremented with every change.
    pub partition_epoch: i32,
    /// In assignment order.
    pub replicas: Vec<i32>,
    /// Committed.
    pub isr: Vec<i32>,
    /// Eligible leader replicas (KIP-966).
    pub elr: Vec<i32>,
    /// See KIP-966.
    pub last_known_elr: Vec<i32>,
    /// Replicas whose brokers cannot write them, so they do not fetch.
    pub lost: Vec<i32>,
}

/// A topic's state in the metadata.
#[derive(Debug, Clone)]
pub struct TopicEntry {
    /// Valid by Kafka's rules; Python has checked it.
    pub name: Arc<str>,
    /// Never zero.
    pub id: TopicId,
    /// One of Kafka's own topics.
    pub internal: bool,
    /// Only visible to Python: `__cluster_metadata`.
    pub hidden: bool,
    /// By ascending index.
    pub partitions: Pages<PartitionEntry>,
    /// Settings of the topic that differ from the broker's defaults, by Kafka's names.
    pub overrides: BTreeMap<String, String>,
    /// The effective settings: `defaults` with the overrides.
    pub config: Arc<LogConfig>,
    /// The throttled replicas in the overrides.
    pub throttled: Arc<ThrottledReplicas>,
    /// The broker's defaults in the last step that contained the topic.
    defaults: Arc<LogConfig>,
}

impl TopicEntry {
    /// The entry of a partition.
    pub fn partition(&self, index: i32) -> Option<&PartitionEntry> {
        self.partitions.get(index)
    }
}

impl Indexed for PartitionEntry {
    fn index(&self) -> i32 {
        self.index
    }
}

/// Finalized features: their epoch, and level by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FinalizedFeatures {
    /// Metadata offset at which they were finalized; -1 if never.
    pub epoch: i64,
    /// Feature levels by name.
    pub levels: BTreeMap<String, i16>,
}

/// The projection after one step.
#[derive(Debug, Clone)]
pub struct Image {
    /// Offset and piece of the last step; offset -1 before the first.
    made: (i64, u32),
    /// Unfenced brokers, an entry for each listener.
    pub brokers: Arc<[BrokerEndpoint]>,
    /// Registrations of all brokers, also of fenced ones, by node id.
    pub registrations: Arc<HashMap<i32, Registration>>,
    /// Advertised hosts of registered brokers, also of fenced ones; a host may occur twice.
    pub hosts: Arc<Vec<(i32, Arc<str>)>>,
    /// Node id, -1 if unknown.
    pub controller_id: i32,
    /// Effective broker-level defaults.
    pub log_defaults: Arc<LogConfig>,
    /// The defaults of the broker's durability only; the base of `log_defaults`.
    durability_defaults: Arc<LogConfig>,
    /// Effective broker settings.
    pub settings: Arc<Settings>,
    /// For responses to `ApiVersions`.
    pub finalized_features: Arc<FinalizedFeatures>,
    /// For responses to `ApiVersions`.
    pub supported_features: Arc<BTreeMap<String, (i16, i16)>>,
    /// Version ranges of the APIs that Python handles, and narrower ranges of ours.
    pub api_versions: Arc<BTreeMap<i16, (i16, i16)>>,
    /// Limits of clients.
    pub client_quotas: Arc<ClientQuotas>,
    by_name: Shards<Arc<str>, Arc<TopicEntry>>,
    by_id: Shards<TopicId, Arc<TopicEntry>>,
    /// New topics with missing pieces.
    unfinished: Shards<TopicId, Arc<TopicEntry>>,
}

impl Image {
    /// The image before the first step; `log_defaults` apply until Python sends its own.
    pub fn empty(log_defaults: LogConfig) -> Image {
        let log_defaults = Arc::new(log_defaults);
        Image {
            durability_defaults: log_defaults.clone(),
            made: (-1, 0),
            brokers: Arc::new([]),
            registrations: Arc::default(),
            hosts: Arc::default(),
            controller_id: -1,
            log_defaults,
            settings: Arc::new(Settings::default()),
            finalized_features: Arc::new(FinalizedFeatures { epoch: -1, levels: BTreeMap::new() }),
            supported_features: Arc::default(),
            api_versions: Arc::default(),
            client_quotas: Arc::default(),
            by_name: Shards::default(),
            by_id: Shards::default(),
            unfinished: Shards::default(),
        }
    }

    /// A topic by its name, including hidden ones.
    #[inline]
    pub fn topic(&self, name: &str) -> Option<&Arc<TopicEntry>> {
        self.by_name.get(name)
    }

    /// A topic by id, including hidden ones.
    #[inline]
    pub fn topic_by_id(&self, id: &TopicId) -> Option<&Arc<TopicEntry>> {
        self.by_id.get(id)
    }

    /// All topics, including hidden ones, in no particular order.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<TopicEntry>> {
        self.by_name.values()
    }
}

#[cfg(test)]
mod tests;
