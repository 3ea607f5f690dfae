//! The projection: what the data plane knows of the metadata, immutable and swapped whole.
//!
//! Python owns the truth (committed metadata records) and sends steps (`delta`), each of which makes the next image (`step`).
//! A request loads one image and answers from it alone, so an answer is never made of two steps.

pub(crate) mod client_quotas;
pub(crate) mod delta;
pub(crate) mod step;
pub(crate) mod throttled;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use pykafka_log::LogConfig;
use pykafka_record::LeaderEpoch;

use crate::seam::image::client_quotas::ClientQuotas;
use crate::seam::image::throttled::ThrottledReplicas;
use crate::seam::settings::Settings;
use crate::seam::shared::{Indexed, Pages, Shards};

/// Sixteen bytes, as on the wire.
pub type TopicId = [u8; 16];
/// What a command names (docs/SEAM.md S3).
pub type PartitionId = (TopicId, i32);
/// The id of no topic.
pub const TOPIC_ID_ZERO: TopicId = [0; 16];

/// A registered broker's endpoint at one listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerEndpoint {
    /// Which broker.
    pub node_id: i32,
    /// Name of the listener.
    pub listener: Arc<str>,
    /// As advertised.
    pub host: Arc<str>,
    /// As advertised.
    pub port: u16,
    /// `broker.rack`.
    pub rack: Option<Arc<str>>,
    /// Of its registration, -1 if not known.
    pub broker_epoch: i64,
    /// Not live: no client is told of it, and it joins no ISR.
    pub fenced: bool,
    /// It leaves: it joins no ISR.
    pub in_controlled_shutdown: bool,
}

/// A broker's registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registration {
    /// -1 if not known.
    pub broker_epoch: i64,
    /// Whether it may join an ISR: neither fenced nor in controlled shutdown (contract/replication.md#26).
    pub is_eligible: bool,
}

/// A partition as decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartitionEntry {
    /// Index.
    pub index: i32,
    /// Node id, -1 for none.
    pub leader: i32,
    /// Grows with every change of leader.
    pub leader_epoch: LeaderEpoch,
    /// Grows with every change.
    pub partition_epoch: i32,
    /// In assignment order.
    pub replicas: Vec<i32>,
    /// Committed.
    pub isr: Vec<i32>,
    /// Eligible leader replicas (KIP-966).
    pub elr: Vec<i32>,
    /// See KIP-966.
    pub last_known_elr: Vec<i32>,
    /// Replicas whose brokers cannot write them: they fetch nothing.
    pub lost: Vec<i32>,
}

/// A topic as decided.
#[derive(Debug, Clone)]
pub struct TopicEntry {
    /// Kafka's rules hold; Python checked them.
    pub name: Arc<str>,
    /// Never zero.
    pub id: TopicId,
    /// One of Kafka's own topics.
    pub internal: bool,
    /// Served to the seam alone: `__cluster_metadata`.
    pub hidden: bool,
    /// By ascending index.
    pub partitions: Pages<PartitionEntry>,
    /// Settings of the topic that differ from the broker's defaults, by Kafka's names.
    pub overrides: BTreeMap<String, String>,
    /// Effective: `defaults` with the overrides.
    pub config: Arc<LogConfig>,
    /// By the overrides.
    pub throttled: Arc<ThrottledReplicas>,
    /// The broker's defaults when a step named the topic last.
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
    /// Metadata offset at which they were finalized; -1 for never.
    pub epoch: i64,
    /// By name.
    pub levels: BTreeMap<String, i16>,
}

/// The projection after one step.
#[derive(Debug, Clone)]
pub struct Image {
    /// Offset and piece of the last step; offset -1 before the first.
    made: (i64, u32),
    /// Live brokers, an entry for each listener.
    pub brokers: Arc<[BrokerEndpoint]>,
    /// Those that are fenced too, by node id.
    pub registrations: Arc<HashMap<i32, Registration>>,
    /// Where registered brokers say that they are, fenced ones too; a host may occur twice.
    pub hosts: Arc<Vec<(i32, Arc<str>)>>,
    /// Node id, -1 if not known.
    pub controller_id: i32,
    /// Effective broker-level defaults.
    pub log_defaults: Arc<LogConfig>,
    /// What the broker's durability alone says; `log_defaults` stand on it.
    durability_defaults: Arc<LogConfig>,
    /// Effective broker settings.
    pub settings: Arc<Settings>,
    /// What `ApiVersions` says.
    pub finalized_features: Arc<FinalizedFeatures>,
    /// What `ApiVersions` says.
    pub supported_features: Arc<BTreeMap<String, (i16, i16)>>,
    /// Version ranges of the APIs that Python answers, and narrower ranges of ours.
    pub api_versions: Arc<BTreeMap<i16, (i16, i16)>>,
    /// Limits of clients.
    pub client_quotas: Arc<ClientQuotas>,
    by_name: Shards<Arc<str>, Arc<TopicEntry>>,
    by_id: Shards<TopicId, Arc<TopicEntry>>,
    /// New topics of which pieces are still to come.
    unfinished: Shards<TopicId, Arc<TopicEntry>>,
}

impl Image {
    /// Before the first step; `log_defaults` hold until Python sends its own.
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

    /// A topic by name, hidden ones too.
    #[inline]
    pub fn topic(&self, name: &str) -> Option<&Arc<TopicEntry>> {
        self.by_name.get(name)
    }

    /// A topic by id, hidden ones too.
    #[inline]
    pub fn topic_by_id(&self, id: &TopicId) -> Option<&Arc<TopicEntry>> {
        self.by_id.get(id)
    }

    /// All topics, hidden ones too, in no order.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<TopicEntry>> {
        self.by_name.values()
    }
}

#[cfg(test)]
mod tests;
