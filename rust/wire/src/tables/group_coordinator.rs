//! Messages of `group-coordinator`. Written by `tools/schemas.py` from the schemas of Apache Kafka 4.4.0; do not edit.

use crate::schema::Type::{Bytes, Int8, Int16, Int32, Int64, Of, String, Uint16, Uuid};
use crate::schema::{Kind, MAX, Message, Struct, field};

static CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY: Struct = Struct {
    name: "ConsumerGroupCurrentMemberAssignmentKey",
    index: 0,
    fields: &[field("group_id", String, 0, 0), field("member_id", String, 0, 0)],
};

static CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE: Struct = Struct {
    name: "ConsumerGroupCurrentMemberAssignmentValue",
    index: 0,
    fields: &[
        field("member_epoch", Int32, 0, MAX),
        field("previous_member_epoch", Int32, 0, MAX),
        field("state", Int8, 0, MAX),
        field(
            "assigned_partitions",
            Of(&CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TOPIC_PARTITIONS),
            0,
            MAX,
        )
        .list(),
        field(
            "partitions_pending_revocation",
            Of(&CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TOPIC_PARTITIONS),
            0,
            MAX,
        )
        .list(),
    ],
};

static CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TOPIC_PARTITIONS: Struct = Struct {
    name: "TopicPartitions",
    index: 1,
    fields: &[
        field("topic_id", Uuid, 0, MAX),
        field("partitions", Int32, 0, MAX).list(),
        field("assignment_epochs", Int32, 0, MAX).list().nullable(0, MAX).tagged(0, 0, MAX),
    ],
};

static CONSUMER_GROUP_MEMBER_METADATA_KEY: Struct = Struct {
    name: "ConsumerGroupMemberMetadataKey",
    index: 0,
    fields: &[field("group_id", String, 0, 0), field("member_id", String, 0, 0)],
};

static CONSUMER_GROUP_MEMBER_METADATA_VALUE: Struct = Struct {
    name: "ConsumerGroupMemberMetadataValue",
    index: 0,
    fields: &[
        field("instance_id", String, 0, MAX).nullable(0, MAX),
        field("rack_id", String, 0, MAX).nullable(0, MAX),
        field("client_id", String, 0, MAX),
        field("client_host", String, 0, MAX),
        field("subscribed_topic_names", String, 0, MAX).list(),
        field("subscribed_topic_regex", String, 0, MAX).nullable(0, MAX),
        field("rebalance_timeout_ms", Int32, 0, MAX).or(-1),
        field("server_assignor", String, 0, MAX).nullable(0, MAX),
        field(
            "classic_member_metadata",
            Of(&CONSUMER_GROUP_MEMBER_METADATA_VALUE_CLASSIC_MEMBER_METADATA),
            0,
            MAX,
        )
        .nullable(0, MAX)
        .tagged(0, 0, MAX),
    ],
};

static CONSUMER_GROUP_MEMBER_METADATA_VALUE_CLASSIC_MEMBER_METADATA: Struct = Struct {
    name: "ClassicMemberMetadata",
    index: 1,
    fields: &[
        field("session_timeout_ms", Int32, 0, MAX),
        field(
            "supported_protocols",
            Of(&CONSUMER_GROUP_MEMBER_METADATA_VALUE_CLASSIC_PROTOCOL),
            0,
            MAX,
        )
        .list(),
    ],
};

static CONSUMER_GROUP_MEMBER_METADATA_VALUE_CLASSIC_PROTOCOL: Struct = Struct {
    name: "ClassicProtocol",
    index: 2,
    fields: &[field("name", String, 0, MAX), field("metadata", Bytes, 0, MAX)],
};

static CONSUMER_GROUP_METADATA_KEY: Struct = Struct {
    name: "ConsumerGroupMetadataKey",
    index: 0,
    fields: &[field("group_id", String, 0, 0)],
};

static CONSUMER_GROUP_METADATA_VALUE: Struct = Struct {
    name: "ConsumerGroupMetadataValue",
    index: 0,
    fields: &[
        field("epoch", Int32, 0, MAX),
        field("metadata_hash", Int64, 0, MAX).tagged(0, 0, MAX),
    ],
};

static CONSUMER_GROUP_PARTITION_METADATA_KEY: Struct = Struct {
    name: "ConsumerGroupPartitionMetadataKey",
    index: 0,
    fields: &[field("group_id", String, 0, 0)],
};

static CONSUMER_GROUP_PARTITION_METADATA_VALUE: Struct = Struct {
    name: "ConsumerGroupPartitionMetadataValue",
    index: 0,
    fields: &[
        field("topics", Of(&CONSUMER_GROUP_PARTITION_METADATA_VALUE_TOPIC_METADATA), 0, MAX).list()
    ],
};

static CONSUMER_GROUP_PARTITION_METADATA_VALUE_TOPIC_METADATA: Struct = Struct {
    name: "TopicMetadata",
    index: 1,
    fields: &[
        field("topic_id", Uuid, 0, MAX),
        field("topic_name", String, 0, MAX),
        field("num_partitions", Int32, 0, MAX),
        field(
            "partition_metadata",
            Of(&CONSUMER_GROUP_PARTITION_METADATA_VALUE_PARTITION_METADATA),
            0,
            MAX,
        )
        .list(),
    ],
};

static CONSUMER_GROUP_PARTITION_METADATA_VALUE_PARTITION_METADATA: Struct = Struct {
    name: "PartitionMetadata",
    index: 2,
    fields: &[field("partition", Int32, 0, MAX), field("racks", String, 0, MAX).list()],
};

static CONSUMER_GROUP_REGULAR_EXPRESSION_KEY: Struct = Struct {
    name: "ConsumerGroupRegularExpressionKey",
    index: 0,
    fields: &[field("group_id", String, 0, 0), field("regular_expression", String, 0, 0)],
};

static CONSUMER_GROUP_REGULAR_EXPRESSION_VALUE: Struct = Struct {
    name: "ConsumerGroupRegularExpressionValue",
    index: 0,
    fields: &[
        field("topics", String, 0, MAX).list(),
        field("version", Int64, 0, MAX),
        field("timestamp", Int64, 0, MAX),
    ],
};

static CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY: Struct = Struct {
    name: "ConsumerGroupTargetAssignmentMemberKey",
    index: 0,
    fields: &[field("group_id", String, 0, 0), field("member_id", String, 0, 0)],
};

static CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE: Struct = Struct {
    name: "ConsumerGroupTargetAssignmentMemberValue",
    index: 0,
    fields: &[field(
        "topic_partitions",
        Of(&CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_TOPIC_PARTITION),
        0,
        MAX,
    )
    .list()],
};

static CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_TOPIC_PARTITION: Struct = Struct {
    name: "TopicPartition",
    index: 1,
    fields: &[field("topic_id", Uuid, 0, MAX), field("partitions", Int32, 0, MAX).list()],
};

static CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_KEY: Struct = Struct {
    name: "ConsumerGroupTargetAssignmentMetadataKey",
    index: 0,
    fields: &[field("group_id", String, 0, 0)],
};

static CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE: Struct = Struct {
    name: "ConsumerGroupTargetAssignmentMetadataValue",
    index: 0,
    fields: &[
        field("assignment_epoch", Int32, 0, MAX),
        field("assignment_timestamp", Int64, 0, MAX).tagged(0, 0, MAX).ignorable(),
    ],
};

static GROUP_METADATA_KEY: Struct =
    Struct { name: "GroupMetadataKey", index: 0, fields: &[field("group", String, 0, 0)] };

static GROUP_METADATA_VALUE: Struct = Struct {
    name: "GroupMetadataValue",
    index: 0,
    fields: &[
        field("protocol_type", String, 0, MAX),
        field("generation", Int32, 0, MAX),
        field("protocol", String, 0, MAX).nullable(0, MAX),
        field("leader", String, 0, MAX).nullable(0, MAX),
        field("current_state_timestamp", Int64, 2, MAX).ignorable().or(-1),
        field("members", Of(&GROUP_METADATA_VALUE_MEMBER_METADATA), 0, MAX).list(),
    ],
};

static GROUP_METADATA_VALUE_MEMBER_METADATA: Struct = Struct {
    name: "MemberMetadata",
    index: 1,
    fields: &[
        field("member_id", String, 0, MAX),
        field("group_instance_id", String, 3, MAX).nullable(3, MAX).ignorable().or_null(),
        field("client_id", String, 0, MAX),
        field("client_host", String, 0, MAX),
        field("rebalance_timeout", Int32, 1, MAX).ignorable().or(-1),
        field("session_timeout", Int32, 0, MAX),
        field("subscription", Bytes, 0, MAX),
        field("assignment", Bytes, 0, MAX),
    ],
};

static LEGACY_OFFSET_COMMIT_KEY: Struct = Struct {
    name: "LegacyOffsetCommitKey",
    index: 0,
    fields: &[
        field("group", String, 0, 0),
        field("topic", String, 0, 0),
        field("partition", Int32, 0, 0),
    ],
};

static LEGACY_OFFSET_COMMIT_VALUE: Struct = Struct {
    name: "LegacyOffsetCommitValue",
    index: 0,
    fields: &[
        field("offset", Int64, 0, 0),
        field("metadata", String, 0, 0),
        field("commit_timestamp", Int64, 0, 0),
    ],
};

static OFFSET_COMMIT_KEY: Struct = Struct {
    name: "OffsetCommitKey",
    index: 0,
    fields: &[
        field("group", String, 0, 0),
        field("topic", String, 0, 0),
        field("partition", Int32, 0, 0),
    ],
};

static OFFSET_COMMIT_VALUE: Struct = Struct {
    name: "OffsetCommitValue",
    index: 0,
    fields: &[
        field("offset", Int64, 0, MAX),
        field("leader_epoch", Int32, 3, MAX).ignorable().or(-1),
        field("metadata", String, 0, MAX),
        field("commit_timestamp", Int64, 0, MAX),
        field("expire_timestamp", Int64, 1, 1).ignorable().or(-1),
        field("topic_id", Uuid, 4, MAX).tagged(0, 4, MAX).ignorable(),
    ],
};

static SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY: Struct = Struct {
    name: "ShareGroupCurrentMemberAssignmentKey",
    index: 0,
    fields: &[field("group_id", String, 0, 0), field("member_id", String, 0, 0)],
};

static SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE: Struct = Struct {
    name: "ShareGroupCurrentMemberAssignmentValue",
    index: 0,
    fields: &[
        field("member_epoch", Int32, 0, MAX),
        field("previous_member_epoch", Int32, 0, MAX),
        field("state", Int8, 0, MAX),
        field(
            "assigned_partitions",
            Of(&SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TOPIC_PARTITIONS),
            0,
            MAX,
        )
        .list(),
    ],
};

static SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TOPIC_PARTITIONS: Struct = Struct {
    name: "TopicPartitions",
    index: 1,
    fields: &[field("topic_id", Uuid, 0, MAX), field("partitions", Int32, 0, MAX).list()],
};

static SHARE_GROUP_MEMBER_METADATA_KEY: Struct = Struct {
    name: "ShareGroupMemberMetadataKey",
    index: 0,
    fields: &[field("group_id", String, 0, 0), field("member_id", String, 0, 0)],
};

static SHARE_GROUP_MEMBER_METADATA_VALUE: Struct = Struct {
    name: "ShareGroupMemberMetadataValue",
    index: 0,
    fields: &[
        field("rack_id", String, 0, MAX).nullable(0, MAX),
        field("client_id", String, 0, MAX),
        field("client_host", String, 0, MAX),
        field("subscribed_topic_names", String, 0, MAX).list(),
    ],
};

static SHARE_GROUP_METADATA_KEY: Struct =
    Struct { name: "ShareGroupMetadataKey", index: 0, fields: &[field("group_id", String, 0, 0)] };

static SHARE_GROUP_METADATA_VALUE: Struct = Struct {
    name: "ShareGroupMetadataValue",
    index: 0,
    fields: &[field("epoch", Int32, 0, MAX), field("metadata_hash", Int64, 0, MAX)],
};

static SHARE_GROUP_STATE_PARTITION_METADATA_KEY: Struct = Struct {
    name: "ShareGroupStatePartitionMetadataKey",
    index: 0,
    fields: &[field("group_id", String, 0, 0)],
};

static SHARE_GROUP_STATE_PARTITION_METADATA_VALUE: Struct = Struct {
    name: "ShareGroupStatePartitionMetadataValue",
    index: 0,
    fields: &[
        field(
            "initializing_topics",
            Of(&SHARE_GROUP_STATE_PARTITION_METADATA_VALUE_TOPIC_PARTITIONS_INFO),
            0,
            MAX,
        )
        .list(),
        field(
            "initialized_topics",
            Of(&SHARE_GROUP_STATE_PARTITION_METADATA_VALUE_TOPIC_PARTITIONS_INFO),
            0,
            MAX,
        )
        .list(),
        field(
            "deleting_topics",
            Of(&SHARE_GROUP_STATE_PARTITION_METADATA_VALUE_TOPIC_INFO),
            0,
            MAX,
        )
        .list(),
    ],
};

static SHARE_GROUP_STATE_PARTITION_METADATA_VALUE_TOPIC_PARTITIONS_INFO: Struct = Struct {
    name: "TopicPartitionsInfo",
    index: 1,
    fields: &[
        field("topic_id", Uuid, 0, MAX),
        field("topic_name", String, 0, MAX),
        field("partitions", Int32, 0, MAX).list(),
    ],
};

static SHARE_GROUP_STATE_PARTITION_METADATA_VALUE_TOPIC_INFO: Struct = Struct {
    name: "TopicInfo",
    index: 2,
    fields: &[field("topic_id", Uuid, 0, MAX), field("topic_name", String, 0, MAX)],
};

static SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY: Struct = Struct {
    name: "ShareGroupTargetAssignmentMemberKey",
    index: 0,
    fields: &[field("group_id", String, 0, 0), field("member_id", String, 0, 0)],
};

static SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE: Struct = Struct {
    name: "ShareGroupTargetAssignmentMemberValue",
    index: 0,
    fields: &[field(
        "topic_partitions",
        Of(&SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_TOPIC_PARTITION),
        0,
        MAX,
    )
    .list()],
};

static SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_TOPIC_PARTITION: Struct = Struct {
    name: "TopicPartition",
    index: 1,
    fields: &[field("topic_id", Uuid, 0, MAX), field("partitions", Int32, 0, MAX).list()],
};

static SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY: Struct = Struct {
    name: "ShareGroupTargetAssignmentMetadataKey",
    index: 0,
    fields: &[field("group_id", String, 0, 0)],
};

static SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE: Struct = Struct {
    name: "ShareGroupTargetAssignmentMetadataValue",
    index: 0,
    fields: &[
        field("assignment_epoch", Int32, 0, MAX),
        field("assignment_timestamp", Int64, 0, MAX).tagged(0, 0, MAX).ignorable(),
    ],
};

static STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY: Struct = Struct {
    name: "StreamsGroupCurrentMemberAssignmentKey",
    index: 0,
    fields: &[field("group_id", String, 0, 0), field("member_id", String, 0, 0)],
};

static STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE: Struct = Struct {
    name: "StreamsGroupCurrentMemberAssignmentValue",
    index: 0,
    fields: &[
        field("member_epoch", Int32, 0, MAX),
        field("previous_member_epoch", Int32, 0, MAX),
        field("state", Int8, 0, MAX),
        field("active_tasks", Of(&STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TASK_IDS), 0, MAX)
            .list(),
        field("standby_tasks", Of(&STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TASK_IDS), 0, MAX)
            .list(),
        field("warmup_tasks", Of(&STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TASK_IDS), 0, MAX)
            .list(),
        field(
            "active_tasks_pending_revocation",
            Of(&STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TASK_IDS),
            0,
            MAX,
        )
        .list(),
        field(
            "standby_tasks_pending_revocation",
            Of(&STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TASK_IDS),
            0,
            MAX,
        )
        .list(),
        field(
            "warmup_tasks_pending_revocation",
            Of(&STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TASK_IDS),
            0,
            MAX,
        )
        .list(),
    ],
};

static STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TASK_IDS: Struct = Struct {
    name: "TaskIds",
    index: 1,
    fields: &[
        field("subtopology_id", String, 0, MAX),
        field("partitions", Int32, 0, MAX).list(),
        field("assignment_epochs", Int32, 0, MAX).list().nullable(0, MAX).tagged(0, 0, MAX),
    ],
};

static STREAMS_GROUP_MEMBER_METADATA_KEY: Struct = Struct {
    name: "StreamsGroupMemberMetadataKey",
    index: 0,
    fields: &[field("group_id", String, 0, 0), field("member_id", String, 0, 0)],
};

static STREAMS_GROUP_MEMBER_METADATA_VALUE: Struct = Struct {
    name: "StreamsGroupMemberMetadataValue",
    index: 0,
    fields: &[
        field("instance_id", String, 0, MAX).nullable(0, MAX),
        field("rack_id", String, 0, MAX).nullable(0, MAX),
        field("client_id", String, 0, MAX),
        field("client_host", String, 0, MAX),
        field("rebalance_timeout_ms", Int32, 0, MAX).or(-1),
        field("topology_epoch", Int32, 0, MAX),
        field("process_id", String, 0, MAX),
        field("user_endpoint", Of(&STREAMS_GROUP_MEMBER_METADATA_VALUE_ENDPOINT), 0, MAX)
            .nullable(0, MAX)
            .or_null(),
        field("client_tags", Of(&STREAMS_GROUP_MEMBER_METADATA_VALUE_KEY_VALUE), 0, MAX).list(),
    ],
};

static STREAMS_GROUP_MEMBER_METADATA_VALUE_ENDPOINT: Struct = Struct {
    name: "Endpoint",
    index: 1,
    fields: &[field("host", String, 0, MAX), field("port", Uint16, 0, MAX)],
};

static STREAMS_GROUP_MEMBER_METADATA_VALUE_KEY_VALUE: Struct = Struct {
    name: "KeyValue",
    index: 2,
    fields: &[field("key", String, 0, MAX), field("value", String, 0, MAX)],
};

static STREAMS_GROUP_METADATA_KEY: Struct = Struct {
    name: "StreamsGroupMetadataKey",
    index: 0,
    fields: &[field("group_id", String, 0, 0)],
};

static STREAMS_GROUP_METADATA_VALUE: Struct = Struct {
    name: "StreamsGroupMetadataValue",
    index: 0,
    fields: &[
        field("epoch", Int32, 0, MAX),
        field("metadata_hash", Int64, 0, MAX),
        field("validated_topology_epoch", Int32, 0, MAX).tagged(0, 0, MAX).or(-1),
        field(
            "last_assignment_configs",
            Of(&STREAMS_GROUP_METADATA_VALUE_LAST_ASSIGNMENT_CONFIG),
            0,
            MAX,
        )
        .list()
        .nullable(0, MAX)
        .tagged(1, 0, MAX),
        field("stored_description_topology_epoch", Int32, 0, MAX).tagged(2, 0, MAX).or(-1),
        field("failed_description_topology_epoch", Int32, 0, MAX).tagged(3, 0, MAX).or(-1),
    ],
};

static STREAMS_GROUP_METADATA_VALUE_LAST_ASSIGNMENT_CONFIG: Struct = Struct {
    name: "LastAssignmentConfig",
    index: 1,
    fields: &[field("key", String, 0, MAX), field("value", String, 0, MAX)],
};

static STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY: Struct = Struct {
    name: "StreamsGroupTargetAssignmentMemberKey",
    index: 0,
    fields: &[field("group_id", String, 0, 0), field("member_id", String, 0, 0)],
};

static STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE: Struct = Struct {
    name: "StreamsGroupTargetAssignmentMemberValue",
    index: 0,
    fields: &[
        field("active_tasks", Of(&STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_TASK_IDS), 0, MAX)
            .list(),
        field("standby_tasks", Of(&STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_TASK_IDS), 0, MAX)
            .list(),
        field("warmup_tasks", Of(&STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_TASK_IDS), 0, MAX)
            .list(),
    ],
};

static STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_TASK_IDS: Struct = Struct {
    name: "TaskIds",
    index: 1,
    fields: &[field("subtopology_id", String, 0, MAX), field("partitions", Int32, 0, MAX).list()],
};

static STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_KEY: Struct = Struct {
    name: "StreamsGroupTargetAssignmentMetadataKey",
    index: 0,
    fields: &[field("group_id", String, 0, 0)],
};

static STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE: Struct = Struct {
    name: "StreamsGroupTargetAssignmentMetadataValue",
    index: 0,
    fields: &[
        field("assignment_epoch", Int32, 0, MAX),
        field("assignment_timestamp", Int64, 0, MAX).tagged(0, 0, MAX).ignorable(),
    ],
};

static STREAMS_GROUP_TOPOLOGY_KEY: Struct = Struct {
    name: "StreamsGroupTopologyKey",
    index: 0,
    fields: &[field("group_id", String, 0, 0)],
};

static STREAMS_GROUP_TOPOLOGY_VALUE: Struct = Struct {
    name: "StreamsGroupTopologyValue",
    index: 0,
    fields: &[
        field("epoch", Int32, 0, MAX),
        field("subtopologies", Of(&STREAMS_GROUP_TOPOLOGY_VALUE_SUBTOPOLOGY), 0, MAX).list(),
    ],
};

static STREAMS_GROUP_TOPOLOGY_VALUE_SUBTOPOLOGY: Struct = Struct {
    name: "Subtopology",
    index: 1,
    fields: &[
        field("subtopology_id", String, 0, MAX),
        field("source_topics", String, 0, MAX).list(),
        field("source_topic_regex", String, 0, MAX).list(),
        field("state_changelog_topics", Of(&STREAMS_GROUP_TOPOLOGY_VALUE_TOPIC_INFO), 0, MAX)
            .list(),
        field("repartition_sink_topics", String, 0, MAX).list(),
        field("repartition_source_topics", Of(&STREAMS_GROUP_TOPOLOGY_VALUE_TOPIC_INFO), 0, MAX)
            .list(),
        field("copartition_groups", Of(&STREAMS_GROUP_TOPOLOGY_VALUE_COPARTITION_GROUP), 0, MAX)
            .list(),
    ],
};

static STREAMS_GROUP_TOPOLOGY_VALUE_COPARTITION_GROUP: Struct = Struct {
    name: "CopartitionGroup",
    index: 2,
    fields: &[
        field("source_topics", Int16, 0, MAX).list(),
        field("source_topic_regex", Int16, 0, MAX).list(),
        field("repartition_source_topics", Int16, 0, MAX).list(),
    ],
};

static STREAMS_GROUP_TOPOLOGY_VALUE_TOPIC_CONFIG: Struct = Struct {
    name: "TopicConfig",
    index: 3,
    fields: &[field("key", String, 0, MAX), field("value", String, 0, MAX)],
};

static STREAMS_GROUP_TOPOLOGY_VALUE_TOPIC_INFO: Struct = Struct {
    name: "TopicInfo",
    index: 4,
    fields: &[
        field("name", String, 0, MAX),
        field("partitions", Int32, 0, MAX),
        field("replication_factor", Int16, 0, MAX),
        field("topic_configs", Of(&STREAMS_GROUP_TOPOLOGY_VALUE_TOPIC_CONFIG), 0, MAX).list(),
    ],
};

/// Messages of this jar.
pub static MESSAGES: [Message; 44] = [
    Message::new(
        40,
        "ConsumerGroupCurrentMemberAssignmentKey",
        Kind::CoordinatorKey,
        8,
        [0, 0],
        MAX,
        &[&CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY],
    ),
    Message::new(
        41,
        "ConsumerGroupCurrentMemberAssignmentValue",
        Kind::CoordinatorValue,
        8,
        [0, 0],
        0,
        &[
            &CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE,
            &CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TOPIC_PARTITIONS,
        ],
    ),
    Message::new(
        46,
        "ConsumerGroupMemberMetadataKey",
        Kind::CoordinatorKey,
        5,
        [0, 0],
        MAX,
        &[&CONSUMER_GROUP_MEMBER_METADATA_KEY],
    ),
    Message::new(
        47,
        "ConsumerGroupMemberMetadataValue",
        Kind::CoordinatorValue,
        5,
        [0, 0],
        0,
        &[
            &CONSUMER_GROUP_MEMBER_METADATA_VALUE,
            &CONSUMER_GROUP_MEMBER_METADATA_VALUE_CLASSIC_MEMBER_METADATA,
            &CONSUMER_GROUP_MEMBER_METADATA_VALUE_CLASSIC_PROTOCOL,
        ],
    ),
    Message::new(
        48,
        "ConsumerGroupMetadataKey",
        Kind::CoordinatorKey,
        3,
        [0, 0],
        MAX,
        &[&CONSUMER_GROUP_METADATA_KEY],
    ),
    Message::new(
        49,
        "ConsumerGroupMetadataValue",
        Kind::CoordinatorValue,
        3,
        [0, 0],
        0,
        &[&CONSUMER_GROUP_METADATA_VALUE],
    ),
    Message::new(
        50,
        "ConsumerGroupPartitionMetadataKey",
        Kind::CoordinatorKey,
        4,
        [0, 0],
        MAX,
        &[&CONSUMER_GROUP_PARTITION_METADATA_KEY],
    ),
    Message::new(
        51,
        "ConsumerGroupPartitionMetadataValue",
        Kind::CoordinatorValue,
        4,
        [0, 0],
        0,
        &[
            &CONSUMER_GROUP_PARTITION_METADATA_VALUE,
            &CONSUMER_GROUP_PARTITION_METADATA_VALUE_TOPIC_METADATA,
            &CONSUMER_GROUP_PARTITION_METADATA_VALUE_PARTITION_METADATA,
        ],
    ),
    Message::new(
        52,
        "ConsumerGroupRegularExpressionKey",
        Kind::CoordinatorKey,
        16,
        [0, 0],
        MAX,
        &[&CONSUMER_GROUP_REGULAR_EXPRESSION_KEY],
    ),
    Message::new(
        53,
        "ConsumerGroupRegularExpressionValue",
        Kind::CoordinatorValue,
        16,
        [0, 0],
        0,
        &[&CONSUMER_GROUP_REGULAR_EXPRESSION_VALUE],
    ),
    Message::new(
        54,
        "ConsumerGroupTargetAssignmentMemberKey",
        Kind::CoordinatorKey,
        7,
        [0, 0],
        MAX,
        &[&CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY],
    ),
    Message::new(
        55,
        "ConsumerGroupTargetAssignmentMemberValue",
        Kind::CoordinatorValue,
        7,
        [0, 0],
        0,
        &[
            &CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE,
            &CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_TOPIC_PARTITION,
        ],
    ),
    Message::new(
        56,
        "ConsumerGroupTargetAssignmentMetadataKey",
        Kind::CoordinatorKey,
        6,
        [0, 0],
        MAX,
        &[&CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_KEY],
    ),
    Message::new(
        57,
        "ConsumerGroupTargetAssignmentMetadataValue",
        Kind::CoordinatorValue,
        6,
        [0, 0],
        0,
        &[&CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE],
    ),
    Message::new(
        133,
        "GroupMetadataKey",
        Kind::CoordinatorKey,
        2,
        [0, 0],
        MAX,
        &[&GROUP_METADATA_KEY],
    ),
    Message::new(
        134,
        "GroupMetadataValue",
        Kind::CoordinatorValue,
        2,
        [0, 4],
        4,
        &[&GROUP_METADATA_VALUE, &GROUP_METADATA_VALUE_MEMBER_METADATA],
    ),
    Message::new(
        149,
        "LegacyOffsetCommitKey",
        Kind::CoordinatorKey,
        0,
        [0, 0],
        MAX,
        &[&LEGACY_OFFSET_COMMIT_KEY],
    ),
    Message::new(
        150,
        "LegacyOffsetCommitValue",
        Kind::CoordinatorValue,
        0,
        [0, 0],
        MAX,
        &[&LEGACY_OFFSET_COMMIT_VALUE],
    ),
    Message::new(
        164,
        "OffsetCommitKey",
        Kind::CoordinatorKey,
        1,
        [0, 0],
        MAX,
        &[&OFFSET_COMMIT_KEY],
    ),
    Message::new(
        167,
        "OffsetCommitValue",
        Kind::CoordinatorValue,
        1,
        [0, 4],
        4,
        &[&OFFSET_COMMIT_VALUE],
    ),
    Message::new(
        209,
        "ShareGroupCurrentMemberAssignmentKey",
        Kind::CoordinatorKey,
        14,
        [0, 0],
        MAX,
        &[&SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY],
    ),
    Message::new(
        210,
        "ShareGroupCurrentMemberAssignmentValue",
        Kind::CoordinatorValue,
        14,
        [0, 0],
        0,
        &[
            &SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE,
            &SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TOPIC_PARTITIONS,
        ],
    ),
    Message::new(
        215,
        "ShareGroupMemberMetadataKey",
        Kind::CoordinatorKey,
        10,
        [0, 0],
        MAX,
        &[&SHARE_GROUP_MEMBER_METADATA_KEY],
    ),
    Message::new(
        216,
        "ShareGroupMemberMetadataValue",
        Kind::CoordinatorValue,
        10,
        [0, 0],
        0,
        &[&SHARE_GROUP_MEMBER_METADATA_VALUE],
    ),
    Message::new(
        217,
        "ShareGroupMetadataKey",
        Kind::CoordinatorKey,
        11,
        [0, 0],
        MAX,
        &[&SHARE_GROUP_METADATA_KEY],
    ),
    Message::new(
        218,
        "ShareGroupMetadataValue",
        Kind::CoordinatorValue,
        11,
        [0, 0],
        0,
        &[&SHARE_GROUP_METADATA_VALUE],
    ),
    Message::new(
        219,
        "ShareGroupStatePartitionMetadataKey",
        Kind::CoordinatorKey,
        15,
        [0, 0],
        MAX,
        &[&SHARE_GROUP_STATE_PARTITION_METADATA_KEY],
    ),
    Message::new(
        220,
        "ShareGroupStatePartitionMetadataValue",
        Kind::CoordinatorValue,
        15,
        [0, 0],
        0,
        &[
            &SHARE_GROUP_STATE_PARTITION_METADATA_VALUE,
            &SHARE_GROUP_STATE_PARTITION_METADATA_VALUE_TOPIC_PARTITIONS_INFO,
            &SHARE_GROUP_STATE_PARTITION_METADATA_VALUE_TOPIC_INFO,
        ],
    ),
    Message::new(
        221,
        "ShareGroupTargetAssignmentMemberKey",
        Kind::CoordinatorKey,
        13,
        [0, 0],
        MAX,
        &[&SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY],
    ),
    Message::new(
        222,
        "ShareGroupTargetAssignmentMemberValue",
        Kind::CoordinatorValue,
        13,
        [0, 0],
        0,
        &[
            &SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE,
            &SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_TOPIC_PARTITION,
        ],
    ),
    Message::new(
        223,
        "ShareGroupTargetAssignmentMetadataKey",
        Kind::CoordinatorKey,
        12,
        [0, 0],
        MAX,
        &[&SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY],
    ),
    Message::new(
        224,
        "ShareGroupTargetAssignmentMetadataValue",
        Kind::CoordinatorValue,
        12,
        [0, 0],
        0,
        &[&SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE],
    ),
    Message::new(
        231,
        "StreamsGroupCurrentMemberAssignmentKey",
        Kind::CoordinatorKey,
        22,
        [0, 0],
        MAX,
        &[&STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY],
    ),
    Message::new(
        232,
        "StreamsGroupCurrentMemberAssignmentValue",
        Kind::CoordinatorValue,
        22,
        [0, 0],
        0,
        &[
            &STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE,
            &STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TASK_IDS,
        ],
    ),
    Message::new(
        237,
        "StreamsGroupMemberMetadataKey",
        Kind::CoordinatorKey,
        19,
        [0, 0],
        MAX,
        &[&STREAMS_GROUP_MEMBER_METADATA_KEY],
    ),
    Message::new(
        238,
        "StreamsGroupMemberMetadataValue",
        Kind::CoordinatorValue,
        19,
        [0, 0],
        0,
        &[
            &STREAMS_GROUP_MEMBER_METADATA_VALUE,
            &STREAMS_GROUP_MEMBER_METADATA_VALUE_ENDPOINT,
            &STREAMS_GROUP_MEMBER_METADATA_VALUE_KEY_VALUE,
        ],
    ),
    Message::new(
        239,
        "StreamsGroupMetadataKey",
        Kind::CoordinatorKey,
        17,
        [0, 0],
        MAX,
        &[&STREAMS_GROUP_METADATA_KEY],
    ),
    Message::new(
        240,
        "StreamsGroupMetadataValue",
        Kind::CoordinatorValue,
        17,
        [0, 0],
        0,
        &[&STREAMS_GROUP_METADATA_VALUE, &STREAMS_GROUP_METADATA_VALUE_LAST_ASSIGNMENT_CONFIG],
    ),
    Message::new(
        241,
        "StreamsGroupTargetAssignmentMemberKey",
        Kind::CoordinatorKey,
        21,
        [0, 0],
        MAX,
        &[&STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY],
    ),
    Message::new(
        242,
        "StreamsGroupTargetAssignmentMemberValue",
        Kind::CoordinatorValue,
        21,
        [0, 0],
        0,
        &[
            &STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE,
            &STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_TASK_IDS,
        ],
    ),
    Message::new(
        243,
        "StreamsGroupTargetAssignmentMetadataKey",
        Kind::CoordinatorKey,
        20,
        [0, 0],
        MAX,
        &[&STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_KEY],
    ),
    Message::new(
        244,
        "StreamsGroupTargetAssignmentMetadataValue",
        Kind::CoordinatorValue,
        20,
        [0, 0],
        0,
        &[&STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE],
    ),
    Message::new(
        247,
        "StreamsGroupTopologyKey",
        Kind::CoordinatorKey,
        23,
        [0, 0],
        MAX,
        &[&STREAMS_GROUP_TOPOLOGY_KEY],
    ),
    Message::new(
        248,
        "StreamsGroupTopologyValue",
        Kind::CoordinatorValue,
        23,
        [0, 0],
        0,
        &[
            &STREAMS_GROUP_TOPOLOGY_VALUE,
            &STREAMS_GROUP_TOPOLOGY_VALUE_SUBTOPOLOGY,
            &STREAMS_GROUP_TOPOLOGY_VALUE_COPARTITION_GROUP,
            &STREAMS_GROUP_TOPOLOGY_VALUE_TOPIC_CONFIG,
            &STREAMS_GROUP_TOPOLOGY_VALUE_TOPIC_INFO,
        ],
    ),
];
