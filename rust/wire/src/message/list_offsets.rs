//! `ListOffsets` (API key 2), versions 1–11.

use super::{body, message};
use crate::ApiKey;

message! {
    /// A request to look up offsets.
    pub struct Request<'a> {
        /// Node id of a follower, -1 for a consumer.
        replica_id: i32 = 0, since(0);
        /// 0 read uncommitted, 1 read committed.
        isolation_level: i8 = 0, since(2);
        /// By topic.
        topics: Vec<Topic<'a>> = Vec::new(), since(0);
        /// Time limit for tiered storage.
        timeout_ms: i32 = 0, since(10).ignorable();
    }

    /// Partitions of one topic.
    pub struct Topic<'a> {
        /// Name of the topic.
        name: &'a str = "", since(0);
        /// By partition.
        partitions: Vec<Partition> = Vec::new(), since(0);
    }

    /// The lookup in one partition.
    pub struct Partition {
        /// Partition index.
        partition_index: i32 = 0, since(0);
        /// The leader epoch that the reader knows, -1 without one.
        current_leader_epoch: i32 = -1, since(4).ignorable();
        /// Milliseconds; -1 latest, -2 earliest, -3 max timestamp, -4 … -6 tiered storage.
        timestamp: i64 = 0, since(0);
    }

    /// The offsets found.
    pub struct Response<'a> {
        /// How long the client is muted for its quota.
        throttle_time_ms: i32 = 0, since(2).ignorable();
        /// By topic.
        topics: Vec<TopicResponse<'a>> = Vec::new(), since(0);
    }

    /// The response for one topic.
    pub struct TopicResponse<'a> {
        /// Name of the topic.
        name: &'a str = "", since(0);
        /// By partition.
        partitions: Vec<PartitionResponse> = Vec::new(), since(0);
    }

    /// The response for one partition.
    pub struct PartitionResponse {
        /// Partition index.
        partition_index: i32 = 0, since(0);
        /// Kafka's error code; 0 means success.
        error_code: i16 = 0, since(0);
        /// Timestamp of the record found, -1 without one.
        timestamp: i64 = -1, since(1);
        /// The offset found, -1 without one.
        offset: i64 = -1, since(1);
        /// Epoch of the record found, -1 if unknown.
        leader_epoch: i32 = -1, since(4);
    }
}
body!(Request<'a>, ApiKey::LIST_OFFSETS);
body!(Response<'a>, ApiKey::LIST_OFFSETS);
