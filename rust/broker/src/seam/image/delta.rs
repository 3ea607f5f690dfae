//! One step of the metadata, as Python sends it.

use std::collections::BTreeMap;

use super::client_quotas::ClientQuota;
use super::{BrokerEndpoint, FinalizedFeatures, PartitionEntry, TopicId};

/// A topic of a delta: new, replaced whole, or with some partitions added or replaced.
#[derive(Debug, Clone, Default)]
pub struct TopicImage {
    /// As in [`TopicEntry`](super::TopicEntry).
    pub name: String,
    /// As in [`TopicEntry`](super::TopicEntry).
    pub topic_id: TopicId,
    /// In any order.
    pub partitions: Vec<PartitionEntry>,
    /// As in [`TopicEntry`](super::TopicEntry).
    pub overrides: BTreeMap<String, String>,
    /// As in [`TopicEntry`](super::TopicEntry).
    pub internal: bool,
    /// As in [`TopicEntry`](super::TopicEntry).
    pub hidden: bool,
    /// Whether the topic's other partitions stay as they are.
    pub partial: bool,
    /// Whether later pieces of the step have more: of a new topic, which no request sees before the last of them, or of one
    /// whose settings change, which are those of the partitions of each piece as it comes.
    pub unfinished: bool,
}

/// One committed metadata step. `None` leaves a part as it was.
#[derive(Debug, Clone, Default)]
pub struct ImageDelta {
    /// Last offset of the step.
    pub metadata_offset: i64,
    /// A large step is made in pieces, in ascending order.
    pub piece: u32,
    /// Every registered broker's endpoints, replaced whole.
    pub brokers: Option<Vec<BrokerEndpoint>>,
    /// Named by Metadata.
    pub controller_id: Option<i32>,
    /// Created or changed.
    pub topics: Vec<TopicImage>,
    /// Deletes come before creates.
    pub deleted: Vec<TopicId>,
    /// Effective broker-level defaults of every topic setting, by topic-level name. A topic has them from the step that
    /// names it.
    pub log_defaults: Option<BTreeMap<String, String>>,
    /// Effective broker settings.
    pub broker_settings: Option<BTreeMap<String, String>>,
    /// What `ApiVersions` says.
    pub finalized_features: Option<FinalizedFeatures>,
    /// Version ranges of the APIs that Python answers.
    pub api_versions: Option<BTreeMap<i16, (i16, i16)>>,
    /// What `ApiVersions` says.
    pub supported_features: Option<BTreeMap<String, (i16, i16)>>,
    /// Limits of clients, replaced whole.
    pub client_quotas: Option<Vec<ClientQuota>>,
}
