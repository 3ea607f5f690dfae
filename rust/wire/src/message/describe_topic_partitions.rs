//! `DescribeTopicPartitions` (API key 75), version 0.

use super::{body, message};
use crate::{ApiKey, DecodeError, EncodeError, Reader, Sink, Wire, Writer};

message! {
    /// A request for topics, page by page.
    pub struct Request<'a> {
        /// Empty means all topics.
        topics: Vec<Topic<'a>> = Vec::new(), since(0);
        /// Maximum number of partitions in the response.
        response_partition_limit: i32 = 2000, since(0);
        /// Start of the page.
        cursor: Option<Cursor<'a>> = None, since(0);
    }

    /// A topic by name.
    pub struct Topic<'a> {
        /// Name of the topic.
        name: &'a str = "", since(0);
    }

    /// The first partition of a page.
    pub struct Cursor<'a> {
        /// Name of the topic.
        topic_name: &'a str = "", since(0);
        /// Partition index.
        partition_index: i32 = 0, since(0);
    }

    /// A page of topics.
    pub struct Response<'a> {
        /// How long the client is muted for its quota.
        throttle_time_ms: i32 = 0, since(0).ignorable();
        /// By topic.
        topics: Vec<TopicResponse<'a>> = Vec::new(), since(0);
        /// Start of the next page, null for the last one.
        next_cursor: Option<Cursor<'a>> = None, since(0);
    }

    /// One topic.
    pub struct TopicResponse<'a> {
        /// Kafka's error code; 0 means success.
        error_code: i16 = 0, since(0);
        /// Name of the topic.
        name: Option<&'a str> = Some(""), since(0);
        /// Zero for an unknown topic.
        topic_id: [u8; 16] = [0; 16], since(0).ignorable();
        /// Whether it belongs to Kafka itself.
        is_internal: bool = false, since(0).ignorable();
        /// By partition.
        partitions: Vec<Partition> = Vec::new(), since(0);
        /// Bits of the client's authorised operations.
        topic_authorized_operations: i32 = crate::message::metadata::OPERATIONS_UNKNOWN, since(0);
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
        leader_epoch: i32 = -1, since(0).ignorable();
        /// All replicas, the preferred leader first.
        replica_nodes: Vec<i32> = Vec::new(), since(0);
        /// In-sync replicas.
        isr_nodes: Vec<i32> = Vec::new(), since(0);
        /// Replicas out of sync that can lead without data loss (KIP-966).
        eligible_leader_replicas: Option<Vec<i32>> = None, since(0);
        /// The last known eligible replicas.
        last_known_elr: Option<Vec<i32>> = None, since(0);
        /// Replicas on brokers that are down.
        offline_replicas: Vec<i32> = Vec::new(), since(0).ignorable();
    }
}
body!(Request<'a>, ApiKey::DESCRIBE_TOPIC_PARTITIONS);
body!(Response<'a>, ApiKey::DESCRIBE_TOPIC_PARTITIONS);

/// A nullable struct that is not tagged starts with -1 or 1.
impl<'a> Wire<'a> for Option<Cursor<'a>> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        if reader.i8()? < 0 {
            return Ok(None);
        }
        Cursor::read(reader).map(Some)
    }

    fn write<S: Sink>(&self, writer: &mut Writer<'_, S>) -> Result<(), EncodeError> {
        let Some(cursor) = self else { return (-1i8).write(writer) };
        1i8.write(writer)?;
        cursor.write(writer)
    }

    fn is_null(&self) -> bool {
        self.is_none()
    }
}
