//! One step of the metadata, sent by Python.

use std::collections::BTreeMap;

use super::client_quotas::ClientQuota;
use super::{BrokerEndpoint, FinalizedFeatures, PartitionEntry, TopicId};

/// A topic of a delta: new, completely replaced, or with some partitions added or replaced.
#[derive(Debug, Clone, Default)]
pub struct TopicImage {
    /// See [`TopicEntry`](super::TopicEntry).
    pub name: String,
    /// See [`TopicEntry`](super::TopicEntry).
    pub topic_id: TopicId,
    /// In any order.
    pub partitions: Vec<PartitionEntry>,
    /// See [`TopicEntry`](super::TopicEntry).
    pub overrides: BTreeMap<String, String>,
    /// See [`TopicEntry`](super::TopicEntry).
    pub internal: bool,
    /// See [`TopicEntry`](super::TopicEntry).
    pub hidden: bool,
    /// Whether the topic's other partitions are unchanged.
    pub partial: bool,
    /// Whether later pieces of the step contain more partitions. A new topic is visible to requests
    /// only after the last piece; changed settings of an existing topic apply to the partitions of
    /// each piece as it arrives.
    pub unfinished: bool,
}

/// One committed metadata step. `None` leaves a part unchanged.
#[derive(Debug, Clone, Default)]
pub struct ImageDelta {
    /// Last offset of the step.
    pub metadata_offset: i64,
    /// Number of the piece; a large step is sent in pieces, in ascending order.
    pub piece: u32,
    /// The endpoints of all registered brokers; replaces the previous ones.
    pub brokers: Option<Vec<BrokerEndpoint>>,
    /// The controller in responses to Metadata.
    pub controller_id: Option<i32>,
    /// Created or changed topics.
    pub topics: Vec<TopicImage>,
    /// Deleted topics; applied before `topics`.
    pub deleted: Vec<TopicId>,
    /// Effective broker-level defaults of every topic setting, by topic-level name. They apply to a
    /// topic from the next step that contains it.
    pub log_defaults: Option<BTreeMap<String, String>>,
    /// Effective broker settings.
    pub broker_settings: Option<BTreeMap<String, String>>,
    /// For responses to `ApiVersions`.
    pub finalized_features: Option<FinalizedFeatures>,
    /// Version ranges of the APIs that Python handles.
    pub api_versions: Option<BTreeMap<i16, (i16, i16)>>,
    /// For responses to `ApiVersions`.
    pub supported_features: Option<BTreeMap<String, (i16, i16)>>,
    /// Limits of clients; replaces the previous ones.
    pub client_quotas: Option<Vec<ClientQuota>>,
}
