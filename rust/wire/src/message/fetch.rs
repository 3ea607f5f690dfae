//! Fetch (API key 1), versions 4–18.

use super::structs::{LeaderIdAndEpoch, NodeEndpoint};
use super::{Records, body, message};
use crate::ApiKey;

message! {
    /// A consumer's or follower's request to read.
    pub struct Request<'a> {
        /// Only used by fetches of a metadata quorum.
        cluster_id: Option<&'a str> = None, since(12).tag(0).ignorable();
        /// Node id of a follower, -1 for a consumer; up to version 14. See [`Request::replica`].
        replica_id: i32 = -1, since(0).until(14);
        /// The replica from version 15 on.
        replica_state: ReplicaState = ReplicaState::CONSUMER, since(15).tag(1);
        /// How long to wait for `min_bytes`.
        max_wait_ms: i32 = 0, since(0);
        /// Minimum size of the records before `max_wait_ms` has passed.
        min_bytes: i32 = 0, since(0);
        /// Soft limit for the size of all records.
        max_bytes: i32 = i32::MAX, since(3).ignorable();
        /// 0 read uncommitted, 1 read committed.
        isolation_level: i8 = 0, since(4).ignorable();
        /// Fetch session (KIP-227), 0 without one.
        session_id: i32 = 0, since(7).ignorable();
        /// 0 opens a session, -1 closes it.
        session_epoch: i32 = -1, since(7).ignorable();
        /// By topic, in the order of the response.
        topics: Vec<Topic<'a>> = Vec::new(), since(0);
        /// Partitions to drop from the session.
        forgotten_topics_data: Vec<ForgottenTopic<'a>> = Vec::new(), since(7);
        /// Rack of the consumer.
        rack_id: &'a str = "", since(11).ignorable();
    }

    /// The replica that fetches.
    pub struct ReplicaState {
        /// Node id, -1 for a consumer.
        replica_id: i32 = -1, since(15);
        /// Its broker epoch, -1 if unknown.
        replica_epoch: i64 = -1, since(15);
    }

    /// Partitions of one topic.
    pub struct Topic<'a> {
        /// Empty from version 13 on.
        topic: &'a str = "", since(0).until(12).ignorable();
        /// Zero up to version 12.
        topic_id: [u8; 16] = [0; 16], since(13).ignorable();
        /// By partition.
        partitions: Vec<Partition> = Vec::new(), since(0);
    }

    /// Start position in one partition.
    pub struct Partition {
        /// Partition index.
        partition: i32 = 0, since(0);
        /// The leader epoch that the reader knows, -1 without one.
        current_leader_epoch: i32 = -1, since(9).ignorable();
        /// First requested offset.
        fetch_offset: i64 = 0, since(0);
        /// Epoch of a follower's last record, -1 without one.
        last_fetched_epoch: i32 = -1, since(12);
        /// A follower's log start offset.
        log_start_offset: i64 = -1, since(5).ignorable();
        /// Soft limit for the size of this partition's records.
        partition_max_bytes: i32 = 0, since(0);
        /// A follower's log directory.
        replica_directory_id: [u8; 16] = [0; 16], since(17).tag(0).ignorable();
        /// The follower's high watermark.
        high_watermark: i64 = i64::MAX, since(18).tag(1).ignorable();
    }

    /// Partitions to drop from the session.
    pub struct ForgottenTopic<'a> {
        /// Empty from version 13 on.
        topic: &'a str = "", since(7).until(12).ignorable();
        /// Zero up to version 12.
        topic_id: [u8; 16] = [0; 16], since(13).ignorable();
        /// Partition indexes.
        partitions: Vec<i32> = Vec::new(), since(7);
    }

    /// The records that were read.
    pub struct Response<'a> {
        /// How long the client is muted for its quota.
        throttle_time_ms: i32 = 0, since(1).ignorable();
        /// Error of the whole request.
        error_code: i16 = 0, since(7).ignorable();
        /// 0 without a session.
        session_id: i32 = 0, since(7);
        /// By topic.
        responses: Vec<TopicResponse<'a>> = Vec::new(), since(0);
        /// Addresses of the current leaders of moved partitions.
        node_endpoints: Vec<NodeEndpoint<'a>> = Vec::new(), since(16).tag(0);
    }

    /// The response for one topic.
    pub struct TopicResponse<'a> {
        /// Empty from version 13 on.
        topic: &'a str = "", since(0).until(12).ignorable();
        /// Zero up to version 12.
        topic_id: [u8; 16] = [0; 16], since(13).ignorable();
        /// By partition.
        partitions: Vec<PartitionResponse> = Vec::new(), since(0);
    }

    /// The response for one partition.
    pub struct PartitionResponse {
        /// Partition index.
        partition_index: i32 = 0, since(0);
        /// Kafka's error code; 0 means success.
        error_code: i16 = 0, since(0);
        /// Exclusive end of the replicated records.
        high_watermark: i64 = 0, since(0);
        /// Exclusive end of records without open transactions.
        last_stable_offset: i64 = -1, since(4).ignorable();
        /// First offset of the log.
        log_start_offset: i64 = -1, since(5).ignorable();
        /// End of the common log, if a follower's log diverges.
        diverging_epoch: EpochEndOffset = EpochEndOffset::NONE, since(12).tag(0);
        /// The current leader, if it is another broker.
        current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch::UNKNOWN, since(12).tag(1);
        /// The snapshot to fetch instead.
        snapshot_id: SnapshotId = SnapshotId::NONE, since(12).tag(2);
        /// Aborted transactions in the records; null for read uncommitted.
        aborted_transactions: Option<Vec<AbortedTransaction>> = Some(Vec::new()),
            since(4).ignorable();
        /// The replica to read from instead, -1 for this one.
        preferred_read_replica: i32 = -1, since(11);
        /// Whole record batches.
        records: Option<Records> = None, since(0);
    }

    /// The latest common epoch and its exclusive end, if a follower's log diverges.
    pub struct EpochEndOffset {
        /// Leader epoch.
        epoch: i32 = -1, since(12);
        /// Exclusive end.
        end_offset: i64 = -1, since(12);
    }

    /// A snapshot by its exclusive end.
    pub struct SnapshotId {
        /// Exclusive end.
        end_offset: i64 = -1, since(0);
        /// Leader epoch.
        epoch: i32 = -1, since(0);
    }

    /// An aborted transaction.
    pub struct AbortedTransaction {
        /// Id of its producer.
        producer_id: i64 = 0, since(4);
        /// Offset of its first record.
        first_offset: i64 = 0, since(4);
    }
}
body!(Request<'a>, ApiKey::FETCH);
body!(Response<'a>, ApiKey::FETCH);

impl Request<'_> {
    /// Node id of the fetching follower in any version; -1 for a consumer.
    pub fn replica(&self) -> i32 {
        self.replica_id.max(self.replica_state.replica_id)
    }
}

impl ReplicaState {
    /// The default, which is not written.
    pub const CONSUMER: ReplicaState = ReplicaState { replica_id: -1, replica_epoch: -1 };
}

impl EpochEndOffset {
    /// The default, which is not written.
    pub const NONE: EpochEndOffset = EpochEndOffset { epoch: -1, end_offset: -1 };
}

impl SnapshotId {
    /// The default, which is not written.
    pub const NONE: SnapshotId = SnapshotId { end_offset: -1, epoch: -1 };
}
