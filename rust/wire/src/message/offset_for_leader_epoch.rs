//! `OffsetForLeaderEpoch` (API key 23), versions 2–4.

use super::{body, message};
use crate::ApiKey;

message! {
    /// A request for the ends of epochs.
    pub struct Request<'a> {
        /// Node id of a follower, -1 for a consumer.
        replica_id: i32 = -2, since(3).ignorable();
        /// By topic.
        topics: Vec<Topic<'a>> = Vec::new(), since(0);
    }

    /// Partitions of one topic.
    pub struct Topic<'a> {
        /// Name of the topic.
        topic: &'a str = "", since(0);
        /// By partition.
        partitions: Vec<Partition> = Vec::new(), since(0);
    }

    /// The lookup in one partition.
    pub struct Partition {
        /// Partition index.
        partition: i32 = 0, since(0);
        /// The leader epoch that the reader knows, -1 without one.
        current_leader_epoch: i32 = -1, since(2).ignorable();
        /// The epoch to look up.
        leader_epoch: i32 = 0, since(0);
    }

    /// The ends found.
    pub struct Response<'a> {
        /// How long the client is muted for its quota.
        throttle_time_ms: i32 = 0, since(2).ignorable();
        /// By topic.
        topics: Vec<TopicResponse<'a>> = Vec::new(), since(0);
    }

    /// The response for one topic.
    pub struct TopicResponse<'a> {
        /// Name of the topic.
        topic: &'a str = "", since(0);
        /// By partition.
        partitions: Vec<EpochEndOffset> = Vec::new(), since(0);
    }

    /// The response for one partition.
    pub struct EpochEndOffset {
        /// Kafka's error code; 0 means success.
        error_code: i16 = 0, since(0);
        /// Partition index.
        partition: i32 = 0, since(0);
        /// The largest epoch up to the requested one, -1 without one.
        leader_epoch: i32 = -1, since(1).ignorable();
        /// Exclusive end of that epoch, -1 if unknown.
        end_offset: i64 = -1, since(0);
    }
}
body!(Request<'a>, ApiKey::OFFSET_FOR_LEADER_EPOCH);
body!(Response<'a>, ApiKey::OFFSET_FOR_LEADER_EPOCH);
