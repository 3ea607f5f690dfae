//! Fetch (API key 1), versions 4–18.

use super::structs::{LeaderIdAndEpoch, NodeEndpoint};
use super::{Records, body, message};
use crate::ApiKey;

message! {
    /// What a consumer or a follower wants to read.
    pub struct Request<'a> {
        /// For the fetches of a quorum.
        cluster_id: Option<&'a str> = None, since(12).tag(0).ignorable();
        /// Node id of a follower, -1 for a consumer; up to version 14. See [`Request::replica`].
        replica_id: i32 = -1, since(0).until(14);
        /// The same from version 15 on.
        replica_state: ReplicaState = ReplicaState::CONSUMER, since(15).tag(1);
        /// How long to wait for `min_bytes`.
        max_wait_ms: i32 = 0, since(0);
        /// Bytes worth an answer.
        min_bytes: i32 = 0, since(0);
        /// Bytes of all records, soft limit.
        max_bytes: i32 = i32::MAX, since(3).ignorable();
        /// 0 read uncommitted, 1 read committed.
        isolation_level: i8 = 0, since(4).ignorable();
        /// Fetch session (KIP-227), 0 for none.
        session_id: i32 = 0, since(7).ignorable();
        /// 0 opens a session, -1 closes it.
        session_epoch: i32 = -1, since(7).ignorable();
        /// By topic; in the order they are answered.
        topics: Vec<Topic<'a>> = Vec::new(), since(0);
        /// To drop from the session.
        forgotten_topics_data: Vec<ForgottenTopic<'a>> = Vec::new(), since(7);
        /// Rack of the consumer.
        rack_id: &'a str = "", since(11).ignorable();
    }

    /// Who fetches.
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

    /// Where to read in one partition.
    pub struct Partition {
        /// Partition index.
        partition: i32 = 0, since(0);
        /// The leader epoch the reader knows, -1 for none.
        current_leader_epoch: i32 = -1, since(9).ignorable();
        /// First offset wanted.
        fetch_offset: i64 = 0, since(0);
        /// Epoch of the last record a follower has, -1 for none.
        last_fetched_epoch: i32 = -1, since(12);
        /// A follower's log start offset.
        log_start_offset: i64 = -1, since(5).ignorable();
        /// Bytes of this partition's records, soft limit.
        partition_max_bytes: i32 = 0, since(0);
        /// A follower's log directory.
        replica_directory_id: [u8; 16] = [0; 16], since(17).tag(0).ignorable();
        /// What the follower takes the high watermark for.
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

    /// What was read.
    pub struct Response<'a> {
        /// How long the client is muted for its quota.
        throttle_time_ms: i32 = 0, since(1).ignorable();
        /// Of the whole request.
        error_code: i16 = 0, since(7).ignorable();
        /// 0 when there is no session.
        session_id: i32 = 0, since(7);
        /// By topic.
        responses: Vec<TopicResponse<'a>> = Vec::new(), since(0);
        /// Where the current leaders are, for partitions that moved.
        node_endpoints: Vec<NodeEndpoint<'a>> = Vec::new(), since(16).tag(0);
    }

    /// A topic's share of the answer.
    pub struct TopicResponse<'a> {
        /// Empty from version 13 on.
        topic: &'a str = "", since(0).until(12).ignorable();
        /// Zero up to version 12.
        topic_id: [u8; 16] = [0; 16], since(13).ignorable();
        /// By partition.
        partitions: Vec<PartitionResponse> = Vec::new(), since(0);
    }

    /// A partition's share of the answer.
    pub struct PartitionResponse {
        /// Partition index.
        partition_index: i32 = 0, since(0);
        /// Kafka's code; 0 is no error.
        error_code: i16 = 0, since(0);
        /// Exclusive end of what is replicated.
        high_watermark: i64 = 0, since(0);
        /// Exclusive end of what transactions have decided.
        last_stable_offset: i64 = -1, since(4).ignorable();
        /// First offset of the log.
        log_start_offset: i64 = -1, since(5).ignorable();
        /// Where a follower's log leaves the leader's.
        diverging_epoch: EpochEndOffset = EpochEndOffset::NONE, since(12).tag(0);
        /// The leader to turn to.
        current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch::UNKNOWN, since(12).tag(1);
        /// The snapshot to fetch instead.
        snapshot_id: SnapshotId = SnapshotId::NONE, since(12).tag(2);
        /// Aborted transactions in the records; null for read uncommitted.
        aborted_transactions: Option<Vec<AbortedTransaction>> = Some(Vec::new()),
            since(4).ignorable();
        /// The replica to read from, -1 for this one.
        preferred_read_replica: i32 = -1, since(11);
        /// Record batches, whole.
        records: Option<Records> = None, since(0);
    }

    /// The largest epoch and its exclusive end, where a follower's log diverges.
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
        /// Its producer.
        producer_id: i64 = 0, since(4);
        /// Its first record.
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
