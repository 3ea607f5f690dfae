//! The APIs that Rust handles, and their versions.

use pykafka_wire::ApiKey;

/// An API that Rust handles.
#[derive(Debug, Clone, Copy)]
pub struct HotApi {
    /// API key.
    pub key: ApiKey,
    /// Name in statistics.
    pub name: &'static str,
    /// Lowest version that is advertised.
    pub advertised_min: i16,
    /// Lowest version that is served.
    pub min: i16,
    /// Highest version that is served.
    pub max: i16,
}

const fn hot(key: ApiKey, name: &'static str, advertised_min: i16, min: i16, max: i16) -> HotApi {
    HotApi { key, name, advertised_min, min, max }
}

/// The APIs that Rust handles, by key.
///
/// Produce is advertised from version 0 on, as in Kafka, because librdkafka disables compression if
/// the low versions are missing (KAFKA-18659). Requests in these versions are rejected.
pub const HOT_APIS: [HotApi; 7] = [
    hot(ApiKey::PRODUCE, "produce", 0, 3, 13),
    hot(ApiKey::FETCH, "fetch", 4, 4, 18),
    hot(ApiKey::LIST_OFFSETS, "list_offsets", 1, 1, 11),
    hot(ApiKey::METADATA, "metadata", 0, 0, 13),
    hot(ApiKey::API_VERSIONS, "api_versions", 0, 0, 5),
    hot(ApiKey::OFFSET_FOR_LEADER_EPOCH, "offset_for_leader_epoch", 2, 2, 4),
    hot(ApiKey::DESCRIBE_TOPIC_PARTITIONS, "describe_topic_partitions", 0, 0, 0),
];

/// Index of a key in [`HOT_APIS`].
#[inline]
pub(crate) fn hot_index(key: ApiKey) -> Option<usize> {
    HOT_APIS.iter().position(|api| api.key == key)
}
