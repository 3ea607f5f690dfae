//! Produce (API key 0), versions 3–13. Brokers advertise from 0 on, for librdkafka's sake
//! (KAFKA-18659), and refuse 0–2.

use super::structs::{LeaderIdAndEpoch, NodeEndpoint};
use super::{body, message};
use crate::ApiKey;

message! {
    /// Records to append, by topic and partition.
    pub struct Request<'a> {
        /// Null unless the producer is transactional.
        transactional_id: Option<&'a str> = None, since(3);
        /// 0, 1 or -1 (all).
        acks: i16 = 0, since(0);
        /// How long the leader may wait for its followers.
        timeout_ms: i32 = 0, since(0);
        /// By topic.
        topics: Vec<Topic<'a>> = Vec::new(), since(0);
    }

    /// A topic's share of a produce request.
    pub struct Topic<'a> {
        /// Empty from version 13 on.
        name: &'a str = "", since(0).until(12).ignorable();
        /// Zero up to version 12.
        topic_id: [u8; 16] = [0; 16], since(13).ignorable();
        /// By partition.
        partitions: Vec<Partition<'a>> = Vec::new(), since(0);
    }

    /// A partition's share of a produce request.
    pub struct Partition<'a> {
        /// Partition index.
        index: i32 = 0, since(0);
        /// Record batches; null is an empty set. [`crate::span_within`] tells their place in the body.
        records: Option<&'a [u8]> = None, since(0);
    }

    /// What became of the records.
    pub struct Response<'a> {
        /// By topic.
        responses: Vec<TopicResponse<'a>> = Vec::new(), since(0);
        /// How long the client is muted for its quota.
        throttle_time_ms: i32 = 0, since(1).ignorable();
        /// Where the current leaders are, for partitions that moved.
        node_endpoints: Vec<NodeEndpoint<'a>> = Vec::new(), since(10).tag(0);
    }

    /// A topic's share of a produce response.
    pub struct TopicResponse<'a> {
        /// Empty from version 13 on.
        name: &'a str = "", since(0).until(12).ignorable();
        /// Zero up to version 12.
        topic_id: [u8; 16] = [0; 16], since(13).ignorable();
        /// By partition.
        partitions: Vec<PartitionResponse<'a>> = Vec::new(), since(0);
    }

    /// A partition's share of a produce response.
    pub struct PartitionResponse<'a> {
        /// Partition index.
        index: i32 = 0, since(0);
        /// Kafka's code; 0 is no error.
        error_code: i16 = 0, since(0);
        /// Offset of the first record appended.
        base_offset: i64 = 0, since(0);
        /// The leader's clock if the topic stamps records, else -1.
        log_append_time_ms: i64 = -1, since(2).ignorable();
        /// First offset of the log, -1 if unknown.
        log_start_offset: i64 = -1, since(5).ignorable();
        /// The records that made the batch fail.
        record_errors: Vec<RecordError<'a>> = Vec::new(), since(8).ignorable();
        /// What they have in common.
        error_message: Option<&'a str> = None, since(8).ignorable();
        /// The leader to turn to.
        current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch::UNKNOWN, since(10).tag(0);
    }

    /// One record that made its batch fail.
    pub struct RecordError<'a> {
        /// Index of the record in its batch.
        batch_index: i32 = 0, since(8);
        /// What is wrong with it.
        batch_index_error_message: Option<&'a str> = None, since(8);
    }
}
body!(Request<'a>, ApiKey::PRODUCE);
body!(Response<'a>, ApiKey::PRODUCE);
