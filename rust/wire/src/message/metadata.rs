//! Metadata (API key 3), versions 0–13.

use super::{body, message};
use crate::ApiKey;

/// Value of authorised operations that were not requested.
pub const OPERATIONS_UNKNOWN: i32 = i32::MIN;

message! {
    /// A request for topics.
    pub struct Request<'a> {
        /// Null means all topics, and so does an empty list in version 0.
        topics: Option<Vec<Topic<'a>>> = Some(Vec::new()), since(0).nullable_since(1);
        /// Whether unknown topics may be created.
        allow_auto_topic_creation: bool = true, since(4);
        /// Only in versions 8–10.
        include_cluster_authorized_operations: bool = false, since(8).until(10);
        /// Whether to include the client's authorised operations on each topic.
        include_topic_authorized_operations: bool = false, since(8);
    }

    /// A topic by name or id.
    pub struct Topic<'a> {
        /// Zero in a lookup by name.
        topic_id: [u8; 16] = [0; 16], since(10).ignorable();
        /// Null in a lookup by id.
        name: Option<&'a str> = Some(""), since(0).nullable_since(10);
    }

    /// The broker's view of the cluster.
    pub struct Response<'a> {
        /// How long the client is muted for its quota.
        throttle_time_ms: i32 = 0, since(3).ignorable();
        /// Live brokers.
        brokers: Vec<Broker<'a>> = Vec::new(), since(0);
        /// Id of the cluster.
        cluster_id: Option<&'a str> = None, since(2).ignorable();
        /// A broker that accepts controller requests, -1 without one.
        controller_id: i32 = -1, since(1).ignorable();
        /// By topic.
        topics: Vec<TopicResponse<'a>> = Vec::new(), since(0);
        /// Only in versions 8–10.
        cluster_authorized_operations: i32 = OPERATIONS_UNKNOWN, since(8).until(10);
        /// Error of the whole request.
        error_code: i16 = 0, since(13).ignorable();
    }

    /// A broker and its listener's address.
    pub struct Broker<'a> {
        /// Node id.
        node_id: i32 = 0, since(0);
        /// Host name.
        host: &'a str = "", since(0);
        /// Port.
        port: i32 = 0, since(0);
        /// Rack, null if none was assigned.
        rack: Option<&'a str> = None, since(1).ignorable();
    }

    /// One topic.
    pub struct TopicResponse<'a> {
        /// Kafka's error code; 0 means success.
        error_code: i16 = 0, since(0);
        /// Null in the response to an unknown id.
        name: Option<&'a str> = Some(""), since(0).nullable_since(12);
        /// Zero in the response to an unknown name.
        topic_id: [u8; 16] = [0; 16], since(10).ignorable();
        /// Whether it belongs to Kafka itself.
        is_internal: bool = false, since(1).ignorable();
        /// By partition.
        partitions: Vec<Partition> = Vec::new(), since(0);
        /// Bits of the client's authorised operations.
        topic_authorized_operations: i32 = OPERATIONS_UNKNOWN, since(8);
    }

    /// One partition.
    pub struct Partition {
        /// Kafka's error code; 0 means success.
        error_code: i16 = 0, since(0);
        /// Partition index.
        partition_index: i32 = 0, since(0);
        /// Node id, -1 without a leader.
        leader_id: i32 = 0, since(0);
        /// Leader epoch.
        leader_epoch: i32 = -1, since(7).ignorable();
        /// All replicas, the preferred leader first.
        replica_nodes: Vec<i32> = Vec::new(), since(0);
        /// In-sync replicas.
        isr_nodes: Vec<i32> = Vec::new(), since(0);
        /// Replicas on brokers that are down.
        offline_replicas: Vec<i32> = Vec::new(), since(5).ignorable();
    }
}
body!(Request<'a>, ApiKey::METADATA);
body!(Response<'a>, ApiKey::METADATA);
