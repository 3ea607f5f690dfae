//! Messages of `storage`. Written by `tools/schemas.py` from the schemas of Apache Kafka 4.4.0; do not edit.

use crate::schema::Type::{Bool, Bytes, Int8, Int16, Int32, Int64, Of, String, Uint32, Uuid};
use crate::schema::{Kind, MAX, Message, Struct, field};

static PRODUCER_SNAPSHOT: Struct = Struct {
    name: "ProducerSnapshot",
    index: 0,
    fields: &[
        field("crc", Uint32, 1, 1),
        field("producer_entries", Of(&PRODUCER_SNAPSHOT_PRODUCER_ENTRY), 1, 1).list(),
    ],
};

static PRODUCER_SNAPSHOT_PRODUCER_ENTRY: Struct = Struct {
    name: "ProducerEntry",
    index: 1,
    fields: &[
        field("producer_id", Int64, 1, 1),
        field("epoch", Int16, 1, 1),
        field("last_sequence", Int32, 1, 1),
        field("last_offset", Int64, 1, 1),
        field("offset_delta", Int32, 1, 1),
        field("timestamp", Int64, 1, 1),
        field("coordinator_epoch", Int32, 1, 1),
        field("current_txn_first_offset", Int64, 1, 1),
    ],
};

static REMOTE_LOG_SEGMENT_METADATA_RECORD: Struct = Struct {
    name: "RemoteLogSegmentMetadataRecord",
    index: 0,
    fields: &[
        field(
            "remote_log_segment_id",
            Of(&REMOTE_LOG_SEGMENT_METADATA_RECORD_REMOTE_LOG_SEGMENT_ID_ENTRY),
            0,
            MAX,
        ),
        field("start_offset", Int64, 0, MAX),
        field("end_offset", Int64, 0, MAX),
        field("broker_id", Int32, 0, MAX),
        field("max_timestamp_ms", Int64, 0, MAX),
        field("event_timestamp_ms", Int64, 0, MAX),
        field(
            "segment_leader_epochs",
            Of(&REMOTE_LOG_SEGMENT_METADATA_RECORD_SEGMENT_LEADER_EPOCH_ENTRY),
            0,
            MAX,
        )
        .list(),
        field("segment_size_in_bytes", Int32, 0, MAX),
        field("custom_metadata", Bytes, 0, MAX).nullable(0, MAX).or_null(),
        field("remote_log_segment_state", Int8, 0, MAX),
        field("txn_index_empty", Bool, 0, MAX).tagged(0, 0, MAX),
    ],
};

static REMOTE_LOG_SEGMENT_METADATA_RECORD_REMOTE_LOG_SEGMENT_ID_ENTRY: Struct = Struct {
    name: "RemoteLogSegmentIdEntry",
    index: 1,
    fields: &[
        field(
            "topic_id_partition",
            Of(&REMOTE_LOG_SEGMENT_METADATA_RECORD_TOPIC_ID_PARTITION_ENTRY),
            0,
            MAX,
        ),
        field("id", Uuid, 0, MAX),
    ],
};

static REMOTE_LOG_SEGMENT_METADATA_RECORD_TOPIC_ID_PARTITION_ENTRY: Struct = Struct {
    name: "TopicIdPartitionEntry",
    index: 2,
    fields: &[
        field("name", String, 0, MAX),
        field("id", Uuid, 0, MAX),
        field("partition", Int32, 0, MAX),
    ],
};

static REMOTE_LOG_SEGMENT_METADATA_RECORD_SEGMENT_LEADER_EPOCH_ENTRY: Struct = Struct {
    name: "SegmentLeaderEpochEntry",
    index: 3,
    fields: &[field("leader_epoch", Int32, 0, MAX), field("offset", Int64, 0, MAX)],
};

static REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD: Struct = Struct {
    name: "RemoteLogSegmentMetadataSnapshotRecord",
    index: 0,
    fields: &[
        field("segment_id", Uuid, 0, MAX),
        field("start_offset", Int64, 0, MAX),
        field("end_offset", Int64, 0, MAX),
        field("broker_id", Int32, 0, MAX),
        field("max_timestamp_ms", Int64, 0, MAX),
        field("event_timestamp_ms", Int64, 0, MAX),
        field(
            "segment_leader_epochs",
            Of(&REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD_SEGMENT_LEADER_EPOCH_ENTRY),
            0,
            MAX,
        )
        .list(),
        field("segment_size_in_bytes", Int32, 0, MAX),
        field("custom_metadata", Bytes, 0, MAX).nullable(0, MAX).or_null(),
        field("remote_log_segment_state", Int8, 0, MAX),
        field("txn_index_empty", Bool, 0, MAX).tagged(0, 0, MAX),
    ],
};

static REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD_SEGMENT_LEADER_EPOCH_ENTRY: Struct = Struct {
    name: "SegmentLeaderEpochEntry",
    index: 1,
    fields: &[field("leader_epoch", Int32, 0, MAX), field("offset", Int64, 0, MAX)],
};

static REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD: Struct = Struct {
    name: "RemoteLogSegmentMetadataUpdateRecord",
    index: 0,
    fields: &[
        field(
            "remote_log_segment_id",
            Of(&REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD_REMOTE_LOG_SEGMENT_ID_ENTRY),
            0,
            MAX,
        ),
        field("broker_id", Int32, 0, MAX),
        field("event_timestamp_ms", Int64, 0, MAX),
        field("custom_metadata", Bytes, 0, MAX).nullable(0, MAX).or_null(),
        field("remote_log_segment_state", Int8, 0, MAX),
    ],
};

static REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD_REMOTE_LOG_SEGMENT_ID_ENTRY: Struct = Struct {
    name: "RemoteLogSegmentIdEntry",
    index: 1,
    fields: &[
        field(
            "topic_id_partition",
            Of(&REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD_TOPIC_ID_PARTITION_ENTRY),
            0,
            MAX,
        ),
        field("id", Uuid, 0, MAX),
    ],
};

static REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD_TOPIC_ID_PARTITION_ENTRY: Struct = Struct {
    name: "TopicIdPartitionEntry",
    index: 2,
    fields: &[
        field("name", String, 0, MAX),
        field("id", Uuid, 0, MAX),
        field("partition", Int32, 0, MAX),
    ],
};

static REMOTE_PARTITION_DELETE_METADATA_RECORD: Struct = Struct {
    name: "RemotePartitionDeleteMetadataRecord",
    index: 0,
    fields: &[
        field(
            "topic_id_partition",
            Of(&REMOTE_PARTITION_DELETE_METADATA_RECORD_TOPIC_ID_PARTITION_ENTRY),
            0,
            MAX,
        ),
        field("broker_id", Int32, 0, MAX),
        field("event_timestamp_ms", Int64, 0, MAX),
        field("remote_partition_delete_state", Int8, 0, MAX),
    ],
};

static REMOTE_PARTITION_DELETE_METADATA_RECORD_TOPIC_ID_PARTITION_ENTRY: Struct = Struct {
    name: "TopicIdPartitionEntry",
    index: 1,
    fields: &[
        field("name", String, 0, MAX),
        field("id", Uuid, 0, MAX),
        field("partition", Int32, 0, MAX),
    ],
};

/// Messages of this jar.
pub static MESSAGES: [Message; 5] = [
    Message::new(
        179,
        "ProducerSnapshot",
        Kind::Data,
        -1,
        [1, 1],
        MAX,
        &[&PRODUCER_SNAPSHOT, &PRODUCER_SNAPSHOT_PRODUCER_ENTRY],
    ),
    Message::new(
        189,
        "RemoteLogSegmentMetadataRecord",
        Kind::RemoteMetadata,
        0,
        [0, 0],
        0,
        &[
            &REMOTE_LOG_SEGMENT_METADATA_RECORD,
            &REMOTE_LOG_SEGMENT_METADATA_RECORD_REMOTE_LOG_SEGMENT_ID_ENTRY,
            &REMOTE_LOG_SEGMENT_METADATA_RECORD_TOPIC_ID_PARTITION_ENTRY,
            &REMOTE_LOG_SEGMENT_METADATA_RECORD_SEGMENT_LEADER_EPOCH_ENTRY,
        ],
    ),
    Message::new(
        190,
        "RemoteLogSegmentMetadataSnapshotRecord",
        Kind::RemoteMetadata,
        3,
        [0, 0],
        0,
        &[
            &REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD,
            &REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD_SEGMENT_LEADER_EPOCH_ENTRY,
        ],
    ),
    Message::new(
        191,
        "RemoteLogSegmentMetadataUpdateRecord",
        Kind::RemoteMetadata,
        1,
        [0, 0],
        0,
        &[
            &REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD,
            &REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD_REMOTE_LOG_SEGMENT_ID_ENTRY,
            &REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD_TOPIC_ID_PARTITION_ENTRY,
        ],
    ),
    Message::new(
        192,
        "RemotePartitionDeleteMetadataRecord",
        Kind::RemoteMetadata,
        2,
        [0, 0],
        0,
        &[
            &REMOTE_PARTITION_DELETE_METADATA_RECORD,
            &REMOTE_PARTITION_DELETE_METADATA_RECORD_TOPIC_ID_PARTITION_ENTRY,
        ],
    ),
];
