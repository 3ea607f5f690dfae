//! `ApiVersions` (API key 18), versions 0–5. Its response header is always version 0, so that a
//! client of any age can read the error that answers a version too new (KIP-511).

use super::{body, message};
use crate::ApiKey;

message! {
    /// What the client is.
    pub struct Request<'a> {
        /// Letters, digits, `-` and `.`, by the receiver's check.
        client_software_name: &'a str = "", since(3).ignorable();
        /// Likewise.
        client_software_version: &'a str = "", since(3).ignorable();
        /// The cluster that the client means to reach (KIP-1242); `None` if `node_id` is -1.
        cluster_id: Option<&'a str> = None, since(5).ignorable();
        /// The node that the client means to reach.
        node_id: i32 = -1, since(5).ignorable();
    }

    /// What the broker serves.
    pub struct Response<'a> {
        /// Of the whole request.
        error_code: i16 = 0, since(0);
        /// In order of their keys.
        api_keys: Vec<ApiVersion> = Vec::new(), since(0);
        /// How long the client is muted for its quota.
        throttle_time_ms: i32 = 0, since(1).ignorable();
        /// Feature versions that the broker could work with.
        supported_features: Vec<SupportedFeatureKey<'a>> = Vec::new(), since(3).tag(0).ignorable();
        /// Offset of the metadata that `finalized_features` come from, -1 if unknown.
        finalized_features_epoch: i64 = -1, since(3).tag(1).ignorable();
        /// Feature versions in force.
        finalized_features: Vec<FinalizedFeatureKey<'a>> = Vec::new(), since(3).tag(2).ignorable();
        /// Always false: `ZooKeeper` is gone.
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

    /// The version of a feature in force.
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
