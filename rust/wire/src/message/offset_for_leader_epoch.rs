//! `OffsetForLeaderEpoch` (API key 23), versions 2–4.

use super::{body, message};
use crate::ApiKey;

message! {
    /// Which epochs' ends to look up.
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

    /// What to look up in one partition.
    pub struct Partition {
        /// Partition index.
        partition: i32 = 0, since(0);
        /// The leader epoch the reader knows, -1 for none.
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

    /// A topic's share of the answer.
    pub struct TopicResponse<'a> {
        /// Name of the topic.
        topic: &'a str = "", since(0);
        /// By partition.
        partitions: Vec<EpochEndOffset> = Vec::new(), since(0);
    }

    /// A partition's share of the answer.
    pub struct EpochEndOffset {
        /// Kafka's code; 0 is no error.
        error_code: i16 = 0, since(0);
        /// Partition index.
        partition: i32 = 0, since(0);
        /// The largest epoch not above the one asked for, -1 if none.
        leader_epoch: i32 = -1, since(1).ignorable();
        /// Exclusive end of that epoch, -1 if unknown.
        end_offset: i64 = -1, since(0);
    }
}
body!(Request<'a>, ApiKey::OFFSET_FOR_LEADER_EPOCH);
body!(Response<'a>, ApiKey::OFFSET_FOR_LEADER_EPOCH);
