//! Produce (API key 0), versions 3–13. Brokers advertise it from 0 on for librdkafka
//! (KAFKA-18659), but reject 0–2.

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
        /// Maximum time to wait for followers.
        timeout_ms: i32 = 0, since(0);
        /// By topic.
        topics: Vec<Topic<'a>> = Vec::new(), since(0);
    }

    /// The part of a produce request for one topic.
    pub struct Topic<'a> {
        /// Empty from version 13 on.
        name: &'a str = "", since(0).until(12).ignorable();
        /// Zero up to version 12.
        topic_id: [u8; 16] = [0; 16], since(13).ignorable();
        /// By partition.
        partitions: Vec<Partition<'a>> = Vec::new(), since(0);
    }

    /// The part of a produce request for one partition.
    pub struct Partition<'a> {
        /// Partition index.
        index: i32 = 0, since(0);
        /// Record batches; null means none. [`crate::span_within`] returns their range in the body.
        records: Option<&'a [u8]> = None, since(0);
    }

    /// The results of the appends.
    pub struct Response<'a> {
        /// By topic.
        responses: Vec<TopicResponse<'a>> = Vec::new(), since(0);
        /// How long the client is muted for its quota.
        throttle_time_ms: i32 = 0, since(1).ignorable();
        /// Addresses of the current leaders of moved partitions.
        node_endpoints: Vec<NodeEndpoint<'a>> = Vec::new(), since(10).tag(0);
    }

    /// The part of a produce response for one topic.
    pub struct TopicResponse<'a> {
        /// Empty from version 13 on.
        name: &'a str = "", since(0).until(12).ignorable();
        /// Zero up to version 12.
        topic_id: [u8; 16] = [0; 16], since(13).ignorable();
        /// By partition.
        partitions: Vec<PartitionResponse<'a>> = Vec::new(), since(0);
    }

    /// The part of a produce response for one partition.
    pub struct PartitionResponse<'a> {
        /// Partition index.
        index: i32 = 0, since(0);
        /// Kafka's error code; 0 means success.
        error_code: i16 = 0, since(0);
        /// Offset of the first appended record.
        base_offset: i64 = 0, since(0);
        /// The leader's time, if the topic has log append time, else -1.
        log_append_time_ms: i64 = -1, since(2).ignorable();
        /// First offset of the log, -1 if unknown.
        log_start_offset: i64 = -1, since(5).ignorable();
        /// The records that caused the batch to fail.
        record_errors: Vec<RecordError<'a>> = Vec::new(), since(8).ignorable();
        /// Their common error message.
        error_message: Option<&'a str> = None, since(8).ignorable();
        /// The current leader, if it is another broker.
        current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch::UNKNOWN, since(10).tag(0);
    }

    /// One record that caused its batch to fail.
    pub struct RecordError<'a> {
        /// Index of the record in its batch.
        batch_index: i32 = 0, since(8);
        /// The error.
        batch_index_error_message: Option<&'a str> = None, since(8);
    }
}
body!(Request<'a>, ApiKey::PRODUCE);
body!(Response<'a>, ApiKey::PRODUCE);
