//! `ApiVersions` (API key 18), versions 0–5. Its response header always has version 0, so that
//! clients of any version can read the error for an unsupported version (KIP-511).

use super::{body, message};
use crate::ApiKey;

message! {
    /// The client's software, and the broker that it expects.
    pub struct Request<'a> {
        /// Letters, digits, `-` and `.`, as checked by the receiver.
        client_software_name: &'a str = "", since(3).ignorable();
        /// Letters, digits, `-` and `.`, as checked by the receiver.
        client_software_version: &'a str = "", since(3).ignorable();
        /// The cluster that the client expects (KIP-1242); `None` if `node_id` is -1.
        cluster_id: Option<&'a str> = None, since(5).ignorable();
        /// The node that the client expects.
        node_id: i32 = -1, since(5).ignorable();
    }

    /// The APIs and features of the broker.
    pub struct Response<'a> {
        /// Error of the whole request.
        error_code: i16 = 0, since(0);
        /// Sorted by key.
        api_keys: Vec<ApiVersion> = Vec::new(), since(0);
        /// How long the client is muted for its quota.
        throttle_time_ms: i32 = 0, since(1).ignorable();
        /// Feature versions that the broker supports.
        supported_features: Vec<SupportedFeatureKey<'a>> = Vec::new(), since(3).tag(0).ignorable();
        /// Offset of the metadata with `finalized_features`, -1 if unknown.
        finalized_features_epoch: i64 = -1, since(3).tag(1).ignorable();
        /// Finalized feature versions.
        finalized_features: Vec<FinalizedFeatureKey<'a>> = Vec::new(), since(3).tag(2).ignorable();
        /// Always false, because `ZooKeeper` is no longer supported.
        zk_migration_ready: bool = false, since(3).tag(3).ignorable();
    }

    /// Versions of one API, both ends inclusive.
    pub struct ApiVersion {
        /// API key.
        api_key: i16 = 0, since(0);
        /// Lowest version.
        min_version: i16 = 0, since(0);
        /// Highest version.
        max_version: i16 = 0, since(0);
    }

    /// Versions of one feature, both ends inclusive.
    pub struct SupportedFeatureKey<'a> {
        /// Name of the feature.
        name: &'a str = "", since(3);
        /// Lowest version.
        min_version: i16 = 0, since(3);
        /// Highest version.
        max_version: i16 = 0, since(3);
    }

    /// The finalized version of a feature.
    pub struct FinalizedFeatureKey<'a> {
        /// Name of the feature.
        name: &'a str = "", since(3);
        /// Highest version.
        max_version_level: i16 = 0, since(3);
        /// Lowest version.
        min_version_level: i16 = 0, since(3);
    }
}
body!(Request<'a>, ApiKey::API_VERSIONS);
body!(Response<'a>, ApiKey::API_VERSIONS);
