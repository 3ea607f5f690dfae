//! Messages of `clients`. Written by `tools/schemas.py` from the schemas of Apache Kafka 4.4.0; do not edit.

use crate::schema::Type::{
    Bool, Bytes, Float64, Int8, Int16, Int32, Int64, Of, Records, String, Uint16, Uuid,
};
use crate::schema::{Kind, MAX, Message, Struct, field};

static ABORTED_TXN: Struct = Struct {
    name: "AbortedTxn",
    index: 0,
    fields: &[
        field("producer_id", Int64, 0, MAX),
        field("first_offset", Int64, 0, MAX),
        field("last_offset", Int64, 0, MAX),
        field("last_stable_offset", Int64, 0, MAX),
    ],
};

static ADD_OFFSETS_TO_TXN_REQUEST: Struct = Struct {
    name: "AddOffsetsToTxnRequest",
    index: 0,
    fields: &[
        field("transactional_id", String, 0, MAX),
        field("producer_id", Int64, 0, MAX),
        field("producer_epoch", Int16, 0, MAX),
        field("group_id", String, 0, MAX),
    ],
};

static ADD_OFFSETS_TO_TXN_RESPONSE: Struct = Struct {
    name: "AddOffsetsToTxnResponse",
    index: 0,
    fields: &[field("throttle_time_ms", Int32, 0, MAX), field("error_code", Int16, 0, MAX)],
};

static ADD_PARTITIONS_TO_TXN_REQUEST: Struct = Struct {
    name: "AddPartitionsToTxnRequest",
    index: 0,
    fields: &[
        field(
            "transactions",
            Of(&ADD_PARTITIONS_TO_TXN_REQUEST_ADD_PARTITIONS_TO_TXN_TRANSACTION),
            4,
            MAX,
        )
        .list(),
        field("v3_and_below_transactional_id", String, 0, 3),
        field("v3_and_below_producer_id", Int64, 0, 3),
        field("v3_and_below_producer_epoch", Int16, 0, 3),
        field(
            "v3_and_below_topics",
            Of(&ADD_PARTITIONS_TO_TXN_REQUEST_ADD_PARTITIONS_TO_TXN_TOPIC),
            0,
            3,
        )
        .list(),
    ],
};

static ADD_PARTITIONS_TO_TXN_REQUEST_ADD_PARTITIONS_TO_TXN_TRANSACTION: Struct = Struct {
    name: "AddPartitionsToTxnTransaction",
    index: 1,
    fields: &[
        field("transactional_id", String, 4, MAX),
        field("producer_id", Int64, 4, MAX),
        field("producer_epoch", Int16, 4, MAX),
        field("verify_only", Bool, 4, MAX),
        field("topics", Of(&ADD_PARTITIONS_TO_TXN_REQUEST_ADD_PARTITIONS_TO_TXN_TOPIC), 4, MAX)
            .list(),
    ],
};

static ADD_PARTITIONS_TO_TXN_REQUEST_ADD_PARTITIONS_TO_TXN_TOPIC: Struct = Struct {
    name: "AddPartitionsToTxnTopic",
    index: 2,
    fields: &[field("name", String, 0, MAX), field("partitions", Int32, 0, MAX).list()],
};

static ADD_PARTITIONS_TO_TXN_RESPONSE: Struct = Struct {
    name: "AddPartitionsToTxnResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 4, MAX).ignorable(),
        field(
            "results_by_transaction",
            Of(&ADD_PARTITIONS_TO_TXN_RESPONSE_ADD_PARTITIONS_TO_TXN_RESULT),
            4,
            MAX,
        )
        .list(),
        field(
            "results_by_topic_v3_and_below",
            Of(&ADD_PARTITIONS_TO_TXN_RESPONSE_ADD_PARTITIONS_TO_TXN_TOPIC_RESULT),
            0,
            3,
        )
        .list(),
    ],
};

static ADD_PARTITIONS_TO_TXN_RESPONSE_ADD_PARTITIONS_TO_TXN_RESULT: Struct = Struct {
    name: "AddPartitionsToTxnResult",
    index: 1,
    fields: &[
        field("transactional_id", String, 4, MAX),
        field(
            "topic_results",
            Of(&ADD_PARTITIONS_TO_TXN_RESPONSE_ADD_PARTITIONS_TO_TXN_TOPIC_RESULT),
            4,
            MAX,
        )
        .list(),
    ],
};

static ADD_PARTITIONS_TO_TXN_RESPONSE_ADD_PARTITIONS_TO_TXN_TOPIC_RESULT: Struct = Struct {
    name: "AddPartitionsToTxnTopicResult",
    index: 2,
    fields: &[
        field("name", String, 0, MAX),
        field(
            "results_by_partition",
            Of(&ADD_PARTITIONS_TO_TXN_RESPONSE_ADD_PARTITIONS_TO_TXN_PARTITION_RESULT),
            0,
            MAX,
        )
        .list(),
    ],
};

static ADD_PARTITIONS_TO_TXN_RESPONSE_ADD_PARTITIONS_TO_TXN_PARTITION_RESULT: Struct = Struct {
    name: "AddPartitionsToTxnPartitionResult",
    index: 3,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("partition_error_code", Int16, 0, MAX),
    ],
};

static ADD_RAFT_VOTER_REQUEST: Struct = Struct {
    name: "AddRaftVoterRequest",
    index: 0,
    fields: &[
        field("cluster_id", String, 0, MAX).nullable(0, MAX),
        field("timeout_ms", Int32, 0, MAX),
        field("voter_id", Int32, 0, MAX),
        field("voter_directory_id", Uuid, 0, MAX),
        field("listeners", Of(&ADD_RAFT_VOTER_REQUEST_LISTENER), 0, MAX).list(),
        field("ack_when_committed", Bool, 1, MAX).or(1),
    ],
};

static ADD_RAFT_VOTER_REQUEST_LISTENER: Struct = Struct {
    name: "Listener",
    index: 1,
    fields: &[
        field("name", String, 0, MAX),
        field("host", String, 0, MAX),
        field("port", Uint16, 0, MAX),
    ],
};

static ADD_RAFT_VOTER_RESPONSE: Struct = Struct {
    name: "AddRaftVoterResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).ignorable(),
    ],
};

static ALLOCATE_PRODUCER_IDS_REQUEST: Struct = Struct {
    name: "AllocateProducerIdsRequest",
    index: 0,
    fields: &[field("broker_id", Int32, 0, MAX), field("broker_epoch", Int64, 0, MAX).or(-1)],
};

static ALLOCATE_PRODUCER_IDS_RESPONSE: Struct = Struct {
    name: "AllocateProducerIdsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("producer_id_start", Int64, 0, MAX),
        field("producer_id_len", Int32, 0, MAX),
    ],
};

static ALTER_CLIENT_QUOTAS_REQUEST: Struct = Struct {
    name: "AlterClientQuotasRequest",
    index: 0,
    fields: &[
        field("entries", Of(&ALTER_CLIENT_QUOTAS_REQUEST_ENTRY_DATA), 0, MAX).list(),
        field("validate_only", Bool, 0, MAX),
    ],
};

static ALTER_CLIENT_QUOTAS_REQUEST_ENTRY_DATA: Struct = Struct {
    name: "EntryData",
    index: 1,
    fields: &[
        field("entity", Of(&ALTER_CLIENT_QUOTAS_REQUEST_ENTITY_DATA), 0, MAX).list(),
        field("ops", Of(&ALTER_CLIENT_QUOTAS_REQUEST_OP_DATA), 0, MAX).list(),
    ],
};

static ALTER_CLIENT_QUOTAS_REQUEST_ENTITY_DATA: Struct = Struct {
    name: "EntityData",
    index: 2,
    fields: &[
        field("entity_type", String, 0, MAX),
        field("entity_name", String, 0, MAX).nullable(0, MAX),
    ],
};

static ALTER_CLIENT_QUOTAS_REQUEST_OP_DATA: Struct = Struct {
    name: "OpData",
    index: 3,
    fields: &[
        field("key", String, 0, MAX),
        field("value", Float64, 0, MAX),
        field("remove", Bool, 0, MAX),
    ],
};

static ALTER_CLIENT_QUOTAS_RESPONSE: Struct = Struct {
    name: "AlterClientQuotasResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("entries", Of(&ALTER_CLIENT_QUOTAS_RESPONSE_ENTRY_DATA), 0, MAX).list(),
    ],
};

static ALTER_CLIENT_QUOTAS_RESPONSE_ENTRY_DATA: Struct = Struct {
    name: "EntryData",
    index: 1,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX),
        field("entity", Of(&ALTER_CLIENT_QUOTAS_RESPONSE_ENTITY_DATA), 0, MAX).list(),
    ],
};

static ALTER_CLIENT_QUOTAS_RESPONSE_ENTITY_DATA: Struct = Struct {
    name: "EntityData",
    index: 2,
    fields: &[
        field("entity_type", String, 0, MAX),
        field("entity_name", String, 0, MAX).nullable(0, MAX),
    ],
};

static ALTER_CONFIGS_REQUEST: Struct = Struct {
    name: "AlterConfigsRequest",
    index: 0,
    fields: &[
        field("resources", Of(&ALTER_CONFIGS_REQUEST_ALTER_CONFIGS_RESOURCE), 0, MAX).list(),
        field("validate_only", Bool, 0, MAX),
    ],
};

static ALTER_CONFIGS_REQUEST_ALTER_CONFIGS_RESOURCE: Struct = Struct {
    name: "AlterConfigsResource",
    index: 1,
    fields: &[
        field("resource_type", Int8, 0, MAX),
        field("resource_name", String, 0, MAX),
        field("configs", Of(&ALTER_CONFIGS_REQUEST_ALTERABLE_CONFIG), 0, MAX).list(),
    ],
};

static ALTER_CONFIGS_REQUEST_ALTERABLE_CONFIG: Struct = Struct {
    name: "AlterableConfig",
    index: 2,
    fields: &[field("name", String, 0, MAX), field("value", String, 0, MAX).nullable(0, MAX)],
};

static ALTER_CONFIGS_RESPONSE: Struct = Struct {
    name: "AlterConfigsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("responses", Of(&ALTER_CONFIGS_RESPONSE_ALTER_CONFIGS_RESOURCE_RESPONSE), 0, MAX)
            .list(),
    ],
};

static ALTER_CONFIGS_RESPONSE_ALTER_CONFIGS_RESOURCE_RESPONSE: Struct = Struct {
    name: "AlterConfigsResourceResponse",
    index: 1,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX),
        field("resource_type", Int8, 0, MAX),
        field("resource_name", String, 0, MAX),
    ],
};

static ALTER_PARTITION_REASSIGNMENTS_REQUEST: Struct = Struct {
    name: "AlterPartitionReassignmentsRequest",
    index: 0,
    fields: &[
        field("timeout_ms", Int32, 0, MAX).or(60_000),
        field("allow_replication_factor_change", Bool, 1, MAX).or(1),
        field("topics", Of(&ALTER_PARTITION_REASSIGNMENTS_REQUEST_REASSIGNABLE_TOPIC), 0, MAX)
            .list(),
    ],
};

static ALTER_PARTITION_REASSIGNMENTS_REQUEST_REASSIGNABLE_TOPIC: Struct = Struct {
    name: "ReassignableTopic",
    index: 1,
    fields: &[
        field("name", String, 0, MAX),
        field(
            "partitions",
            Of(&ALTER_PARTITION_REASSIGNMENTS_REQUEST_REASSIGNABLE_PARTITION),
            0,
            MAX,
        )
        .list(),
    ],
};

static ALTER_PARTITION_REASSIGNMENTS_REQUEST_REASSIGNABLE_PARTITION: Struct = Struct {
    name: "ReassignablePartition",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("replicas", Int32, 0, MAX).list().nullable(0, MAX).or_null(),
    ],
};

static ALTER_PARTITION_REASSIGNMENTS_RESPONSE: Struct = Struct {
    name: "AlterPartitionReassignmentsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("allow_replication_factor_change", Bool, 1, MAX).ignorable().or(1),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX),
        field(
            "responses",
            Of(&ALTER_PARTITION_REASSIGNMENTS_RESPONSE_REASSIGNABLE_TOPIC_RESPONSE),
            0,
            MAX,
        )
        .list(),
    ],
};

static ALTER_PARTITION_REASSIGNMENTS_RESPONSE_REASSIGNABLE_TOPIC_RESPONSE: Struct = Struct {
    name: "ReassignableTopicResponse",
    index: 1,
    fields: &[
        field("name", String, 0, MAX),
        field(
            "partitions",
            Of(&ALTER_PARTITION_REASSIGNMENTS_RESPONSE_REASSIGNABLE_PARTITION_RESPONSE),
            0,
            MAX,
        )
        .list(),
    ],
};

static ALTER_PARTITION_REASSIGNMENTS_RESPONSE_REASSIGNABLE_PARTITION_RESPONSE: Struct = Struct {
    name: "ReassignablePartitionResponse",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX),
    ],
};

static ALTER_PARTITION_REQUEST: Struct = Struct {
    name: "AlterPartitionRequest",
    index: 0,
    fields: &[
        field("broker_id", Int32, 0, MAX),
        field("broker_epoch", Int64, 0, MAX).or(-1),
        field("topics", Of(&ALTER_PARTITION_REQUEST_TOPIC_DATA), 0, MAX).list(),
    ],
};

static ALTER_PARTITION_REQUEST_TOPIC_DATA: Struct = Struct {
    name: "TopicData",
    index: 1,
    fields: &[
        field("topic_id", Uuid, 2, MAX).ignorable(),
        field("partitions", Of(&ALTER_PARTITION_REQUEST_PARTITION_DATA), 0, MAX).list(),
    ],
};

static ALTER_PARTITION_REQUEST_PARTITION_DATA: Struct = Struct {
    name: "PartitionData",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("leader_epoch", Int32, 0, MAX),
        field("new_isr", Int32, 0, 2).list(),
        field("new_isr_with_epochs", Of(&ALTER_PARTITION_REQUEST_BROKER_STATE), 3, MAX).list(),
        field("leader_recovery_state", Int8, 1, MAX),
        field("partition_epoch", Int32, 0, MAX),
    ],
};

static ALTER_PARTITION_REQUEST_BROKER_STATE: Struct = Struct {
    name: "BrokerState",
    index: 3,
    fields: &[field("broker_id", Int32, 3, MAX), field("broker_epoch", Int64, 3, MAX).or(-1)],
};

static ALTER_PARTITION_RESPONSE: Struct = Struct {
    name: "AlterPartitionResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("topics", Of(&ALTER_PARTITION_RESPONSE_TOPIC_DATA), 0, MAX).list(),
    ],
};

static ALTER_PARTITION_RESPONSE_TOPIC_DATA: Struct = Struct {
    name: "TopicData",
    index: 1,
    fields: &[
        field("topic_id", Uuid, 2, MAX).ignorable(),
        field("partitions", Of(&ALTER_PARTITION_RESPONSE_PARTITION_DATA), 0, MAX).list(),
    ],
};

static ALTER_PARTITION_RESPONSE_PARTITION_DATA: Struct = Struct {
    name: "PartitionData",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("leader_id", Int32, 0, MAX),
        field("leader_epoch", Int32, 0, MAX),
        field("isr", Int32, 0, MAX).list(),
        field("leader_recovery_state", Int8, 1, MAX).ignorable(),
        field("partition_epoch", Int32, 0, MAX),
    ],
};

static ALTER_REPLICA_LOG_DIRS_REQUEST: Struct = Struct {
    name: "AlterReplicaLogDirsRequest",
    index: 0,
    fields: &[
        field("dirs", Of(&ALTER_REPLICA_LOG_DIRS_REQUEST_ALTER_REPLICA_LOG_DIR), 0, MAX).list()
    ],
};

static ALTER_REPLICA_LOG_DIRS_REQUEST_ALTER_REPLICA_LOG_DIR: Struct = Struct {
    name: "AlterReplicaLogDir",
    index: 1,
    fields: &[
        field("path", String, 0, MAX),
        field("topics", Of(&ALTER_REPLICA_LOG_DIRS_REQUEST_ALTER_REPLICA_LOG_DIR_TOPIC), 0, MAX)
            .list(),
    ],
};

static ALTER_REPLICA_LOG_DIRS_REQUEST_ALTER_REPLICA_LOG_DIR_TOPIC: Struct = Struct {
    name: "AlterReplicaLogDirTopic",
    index: 2,
    fields: &[field("name", String, 0, MAX), field("partitions", Int32, 0, MAX).list()],
};

static ALTER_REPLICA_LOG_DIRS_RESPONSE: Struct = Struct {
    name: "AlterReplicaLogDirsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field(
            "results",
            Of(&ALTER_REPLICA_LOG_DIRS_RESPONSE_ALTER_REPLICA_LOG_DIR_TOPIC_RESULT),
            0,
            MAX,
        )
        .list(),
    ],
};

static ALTER_REPLICA_LOG_DIRS_RESPONSE_ALTER_REPLICA_LOG_DIR_TOPIC_RESULT: Struct = Struct {
    name: "AlterReplicaLogDirTopicResult",
    index: 1,
    fields: &[
        field("topic_name", String, 0, MAX),
        field(
            "partitions",
            Of(&ALTER_REPLICA_LOG_DIRS_RESPONSE_ALTER_REPLICA_LOG_DIR_PARTITION_RESULT),
            0,
            MAX,
        )
        .list(),
    ],
};

static ALTER_REPLICA_LOG_DIRS_RESPONSE_ALTER_REPLICA_LOG_DIR_PARTITION_RESULT: Struct = Struct {
    name: "AlterReplicaLogDirPartitionResult",
    index: 2,
    fields: &[field("partition_index", Int32, 0, MAX), field("error_code", Int16, 0, MAX)],
};

static ALTER_SHARE_GROUP_OFFSETS_REQUEST: Struct = Struct {
    name: "AlterShareGroupOffsetsRequest",
    index: 0,
    fields: &[
        field("group_id", String, 0, MAX),
        field(
            "topics",
            Of(&ALTER_SHARE_GROUP_OFFSETS_REQUEST_ALTER_SHARE_GROUP_OFFSETS_REQUEST_TOPIC),
            0,
            MAX,
        )
        .list(),
    ],
};

static ALTER_SHARE_GROUP_OFFSETS_REQUEST_ALTER_SHARE_GROUP_OFFSETS_REQUEST_TOPIC: Struct = Struct {
    name: "AlterShareGroupOffsetsRequestTopic",
    index: 1,
    fields: &[
        field("topic_name", String, 0, MAX),
        field(
            "partitions",
            Of(&ALTER_SHARE_GROUP_OFFSETS_REQUEST_ALTER_SHARE_GROUP_OFFSETS_REQUEST_PARTITION),
            0,
            MAX,
        )
        .list(),
    ],
};

static ALTER_SHARE_GROUP_OFFSETS_REQUEST_ALTER_SHARE_GROUP_OFFSETS_REQUEST_PARTITION: Struct =
    Struct {
        name: "AlterShareGroupOffsetsRequestPartition",
        index: 2,
        fields: &[field("partition_index", Int32, 0, MAX), field("start_offset", Int64, 0, MAX)],
    };

static ALTER_SHARE_GROUP_OFFSETS_RESPONSE: Struct = Struct {
    name: "AlterShareGroupOffsetsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
        field(
            "responses",
            Of(&ALTER_SHARE_GROUP_OFFSETS_RESPONSE_ALTER_SHARE_GROUP_OFFSETS_RESPONSE_TOPIC),
            0,
            MAX,
        )
        .list(),
    ],
};

static ALTER_SHARE_GROUP_OFFSETS_RESPONSE_ALTER_SHARE_GROUP_OFFSETS_RESPONSE_TOPIC: Struct = Struct { name: "AlterShareGroupOffsetsResponseTopic", index: 1, fields: &[
    field("topic_name", String, 0, MAX),
    field("topic_id", Uuid, 0, MAX),
    field("partitions", Of(&ALTER_SHARE_GROUP_OFFSETS_RESPONSE_ALTER_SHARE_GROUP_OFFSETS_RESPONSE_PARTITION), 0, MAX).list(),
] };

static ALTER_SHARE_GROUP_OFFSETS_RESPONSE_ALTER_SHARE_GROUP_OFFSETS_RESPONSE_PARTITION: Struct =
    Struct {
        name: "AlterShareGroupOffsetsResponsePartition",
        index: 2,
        fields: &[
            field("partition_index", Int32, 0, MAX),
            field("error_code", Int16, 0, MAX),
            field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
        ],
    };

static ALTER_USER_SCRAM_CREDENTIALS_REQUEST: Struct = Struct {
    name: "AlterUserScramCredentialsRequest",
    index: 0,
    fields: &[
        field(
            "deletions",
            Of(&ALTER_USER_SCRAM_CREDENTIALS_REQUEST_SCRAM_CREDENTIAL_DELETION),
            0,
            MAX,
        )
        .list(),
        field(
            "upsertions",
            Of(&ALTER_USER_SCRAM_CREDENTIALS_REQUEST_SCRAM_CREDENTIAL_UPSERTION),
            0,
            MAX,
        )
        .list(),
    ],
};

static ALTER_USER_SCRAM_CREDENTIALS_REQUEST_SCRAM_CREDENTIAL_DELETION: Struct = Struct {
    name: "ScramCredentialDeletion",
    index: 1,
    fields: &[field("name", String, 0, MAX), field("mechanism", Int8, 0, MAX)],
};

static ALTER_USER_SCRAM_CREDENTIALS_REQUEST_SCRAM_CREDENTIAL_UPSERTION: Struct = Struct {
    name: "ScramCredentialUpsertion",
    index: 2,
    fields: &[
        field("name", String, 0, MAX),
        field("mechanism", Int8, 0, MAX),
        field("iterations", Int32, 0, MAX),
        field("salt", Bytes, 0, MAX),
        field("salted_password", Bytes, 0, MAX),
    ],
};

static ALTER_USER_SCRAM_CREDENTIALS_RESPONSE: Struct = Struct {
    name: "AlterUserScramCredentialsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field(
            "results",
            Of(&ALTER_USER_SCRAM_CREDENTIALS_RESPONSE_ALTER_USER_SCRAM_CREDENTIALS_RESULT),
            0,
            MAX,
        )
        .list(),
    ],
};

static ALTER_USER_SCRAM_CREDENTIALS_RESPONSE_ALTER_USER_SCRAM_CREDENTIALS_RESULT: Struct = Struct {
    name: "AlterUserScramCredentialsResult",
    index: 1,
    fields: &[
        field("user", String, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX),
    ],
};

static API_VERSIONS_REQUEST: Struct = Struct {
    name: "ApiVersionsRequest",
    index: 0,
    fields: &[
        field("client_software_name", String, 3, MAX).ignorable(),
        field("client_software_version", String, 3, MAX).ignorable(),
        field("cluster_id", String, 5, MAX).nullable(5, MAX).ignorable().or_null(),
        field("node_id", Int32, 5, MAX).ignorable().or(-1),
    ],
};

static API_VERSIONS_RESPONSE: Struct = Struct {
    name: "ApiVersionsResponse",
    index: 0,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("api_keys", Of(&API_VERSIONS_RESPONSE_API_VERSION), 0, MAX).list(),
        field("throttle_time_ms", Int32, 1, MAX).ignorable(),
        field("supported_features", Of(&API_VERSIONS_RESPONSE_SUPPORTED_FEATURE_KEY), 3, MAX)
            .list()
            .tagged(0, 3, MAX)
            .ignorable(),
        field("finalized_features_epoch", Int64, 3, MAX).tagged(1, 3, MAX).ignorable().or(-1),
        field("finalized_features", Of(&API_VERSIONS_RESPONSE_FINALIZED_FEATURE_KEY), 3, MAX)
            .list()
            .tagged(2, 3, MAX)
            .ignorable(),
        field("zk_migration_ready", Bool, 3, MAX).tagged(3, 3, MAX).ignorable(),
    ],
};

static API_VERSIONS_RESPONSE_API_VERSION: Struct = Struct {
    name: "ApiVersion",
    index: 1,
    fields: &[
        field("api_key", Int16, 0, MAX),
        field("min_version", Int16, 0, MAX),
        field("max_version", Int16, 0, MAX),
    ],
};

static API_VERSIONS_RESPONSE_SUPPORTED_FEATURE_KEY: Struct = Struct {
    name: "SupportedFeatureKey",
    index: 2,
    fields: &[
        field("name", String, 3, MAX),
        field("min_version", Int16, 3, MAX),
        field("max_version", Int16, 3, MAX),
    ],
};

static API_VERSIONS_RESPONSE_FINALIZED_FEATURE_KEY: Struct = Struct {
    name: "FinalizedFeatureKey",
    index: 3,
    fields: &[
        field("name", String, 3, MAX),
        field("max_version_level", Int16, 3, MAX),
        field("min_version_level", Int16, 3, MAX),
    ],
};

static ASSIGN_REPLICAS_TO_DIRS_REQUEST: Struct = Struct {
    name: "AssignReplicasToDirsRequest",
    index: 0,
    fields: &[
        field("broker_id", Int32, 0, MAX),
        field("broker_epoch", Int64, 0, MAX).or(-1),
        field("directories", Of(&ASSIGN_REPLICAS_TO_DIRS_REQUEST_DIRECTORY_DATA), 0, MAX).list(),
    ],
};

static ASSIGN_REPLICAS_TO_DIRS_REQUEST_DIRECTORY_DATA: Struct = Struct {
    name: "DirectoryData",
    index: 1,
    fields: &[
        field("id", Uuid, 0, MAX),
        field("topics", Of(&ASSIGN_REPLICAS_TO_DIRS_REQUEST_TOPIC_DATA), 0, MAX).list(),
    ],
};

static ASSIGN_REPLICAS_TO_DIRS_REQUEST_TOPIC_DATA: Struct = Struct {
    name: "TopicData",
    index: 2,
    fields: &[
        field("topic_id", Uuid, 0, MAX),
        field("partitions", Of(&ASSIGN_REPLICAS_TO_DIRS_REQUEST_PARTITION_DATA), 0, MAX).list(),
    ],
};

static ASSIGN_REPLICAS_TO_DIRS_REQUEST_PARTITION_DATA: Struct =
    Struct { name: "PartitionData", index: 3, fields: &[field("partition_index", Int32, 0, MAX)] };

static ASSIGN_REPLICAS_TO_DIRS_RESPONSE: Struct = Struct {
    name: "AssignReplicasToDirsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("directories", Of(&ASSIGN_REPLICAS_TO_DIRS_RESPONSE_DIRECTORY_DATA), 0, MAX).list(),
    ],
};

static ASSIGN_REPLICAS_TO_DIRS_RESPONSE_DIRECTORY_DATA: Struct = Struct {
    name: "DirectoryData",
    index: 1,
    fields: &[
        field("id", Uuid, 0, MAX),
        field("topics", Of(&ASSIGN_REPLICAS_TO_DIRS_RESPONSE_TOPIC_DATA), 0, MAX).list(),
    ],
};

static ASSIGN_REPLICAS_TO_DIRS_RESPONSE_TOPIC_DATA: Struct = Struct {
    name: "TopicData",
    index: 2,
    fields: &[
        field("topic_id", Uuid, 0, MAX),
        field("partitions", Of(&ASSIGN_REPLICAS_TO_DIRS_RESPONSE_PARTITION_DATA), 0, MAX).list(),
    ],
};

static ASSIGN_REPLICAS_TO_DIRS_RESPONSE_PARTITION_DATA: Struct = Struct {
    name: "PartitionData",
    index: 3,
    fields: &[field("partition_index", Int32, 0, MAX), field("error_code", Int16, 0, MAX)],
};

static BEGIN_QUORUM_EPOCH_REQUEST: Struct = Struct {
    name: "BeginQuorumEpochRequest",
    index: 0,
    fields: &[
        field("cluster_id", String, 0, MAX).nullable(0, MAX).or_null(),
        field("voter_id", Int32, 1, MAX).ignorable().or(-1),
        field("topics", Of(&BEGIN_QUORUM_EPOCH_REQUEST_TOPIC_DATA), 0, MAX).list(),
        field("leader_endpoints", Of(&BEGIN_QUORUM_EPOCH_REQUEST_LEADER_ENDPOINT), 1, MAX)
            .list()
            .ignorable(),
    ],
};

static BEGIN_QUORUM_EPOCH_REQUEST_TOPIC_DATA: Struct = Struct {
    name: "TopicData",
    index: 1,
    fields: &[
        field("topic_name", String, 0, MAX),
        field("partitions", Of(&BEGIN_QUORUM_EPOCH_REQUEST_PARTITION_DATA), 0, MAX).list(),
    ],
};

static BEGIN_QUORUM_EPOCH_REQUEST_PARTITION_DATA: Struct = Struct {
    name: "PartitionData",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("voter_directory_id", Uuid, 1, MAX).ignorable(),
        field("leader_id", Int32, 0, MAX),
        field("leader_epoch", Int32, 0, MAX),
    ],
};

static BEGIN_QUORUM_EPOCH_REQUEST_LEADER_ENDPOINT: Struct = Struct {
    name: "LeaderEndpoint",
    index: 3,
    fields: &[
        field("name", String, 1, MAX),
        field("host", String, 1, MAX),
        field("port", Uint16, 1, MAX),
    ],
};

static BEGIN_QUORUM_EPOCH_RESPONSE: Struct = Struct {
    name: "BeginQuorumEpochResponse",
    index: 0,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("topics", Of(&BEGIN_QUORUM_EPOCH_RESPONSE_TOPIC_DATA), 0, MAX).list(),
        field("node_endpoints", Of(&BEGIN_QUORUM_EPOCH_RESPONSE_NODE_ENDPOINT), 1, MAX)
            .list()
            .tagged(0, 1, MAX),
    ],
};

static BEGIN_QUORUM_EPOCH_RESPONSE_TOPIC_DATA: Struct = Struct {
    name: "TopicData",
    index: 1,
    fields: &[
        field("topic_name", String, 0, MAX),
        field("partitions", Of(&BEGIN_QUORUM_EPOCH_RESPONSE_PARTITION_DATA), 0, MAX).list(),
    ],
};

static BEGIN_QUORUM_EPOCH_RESPONSE_PARTITION_DATA: Struct = Struct {
    name: "PartitionData",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("leader_id", Int32, 0, MAX),
        field("leader_epoch", Int32, 0, MAX),
    ],
};

static BEGIN_QUORUM_EPOCH_RESPONSE_NODE_ENDPOINT: Struct = Struct {
    name: "NodeEndpoint",
    index: 3,
    fields: &[
        field("node_id", Int32, 1, MAX),
        field("host", String, 1, MAX),
        field("port", Uint16, 1, MAX),
    ],
};

static BROKER_HEARTBEAT_REQUEST: Struct = Struct {
    name: "BrokerHeartbeatRequest",
    index: 0,
    fields: &[
        field("broker_id", Int32, 0, MAX),
        field("broker_epoch", Int64, 0, MAX).or(-1),
        field("current_metadata_offset", Int64, 0, MAX),
        field("want_fence", Bool, 0, MAX),
        field("want_shut_down", Bool, 0, MAX),
        field("offline_log_dirs", Uuid, 1, MAX).list().tagged(0, 1, MAX),
        field("cordoned_log_dirs", Uuid, 2, MAX)
            .list()
            .nullable(2, MAX)
            .tagged(1, 2, MAX)
            .or_null(),
    ],
};

static BROKER_HEARTBEAT_RESPONSE: Struct = Struct {
    name: "BrokerHeartbeatResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("is_caught_up", Bool, 0, MAX),
        field("is_fenced", Bool, 0, MAX).or(1),
        field("should_shut_down", Bool, 0, MAX),
    ],
};

static BROKER_REGISTRATION_REQUEST: Struct = Struct {
    name: "BrokerRegistrationRequest",
    index: 0,
    fields: &[
        field("broker_id", Int32, 0, MAX),
        field("cluster_id", String, 0, MAX),
        field("incarnation_id", Uuid, 0, MAX),
        field("listeners", Of(&BROKER_REGISTRATION_REQUEST_LISTENER), 0, MAX).list(),
        field("features", Of(&BROKER_REGISTRATION_REQUEST_FEATURE), 0, MAX).list(),
        field("rack", String, 0, MAX).nullable(0, MAX),
        field("is_migrating_zk_broker", Bool, 1, MAX),
        field("log_dirs", Uuid, 2, MAX).list().ignorable(),
        field("previous_broker_epoch", Int64, 3, MAX).ignorable().or(-1),
    ],
};

static BROKER_REGISTRATION_REQUEST_LISTENER: Struct = Struct {
    name: "Listener",
    index: 1,
    fields: &[
        field("name", String, 0, MAX),
        field("host", String, 0, MAX),
        field("port", Uint16, 0, MAX),
        field("security_protocol", Int16, 0, MAX),
    ],
};

static BROKER_REGISTRATION_REQUEST_FEATURE: Struct = Struct {
    name: "Feature",
    index: 2,
    fields: &[
        field("name", String, 0, MAX),
        field("min_supported_version", Int16, 0, MAX),
        field("max_supported_version", Int16, 0, MAX),
    ],
};

static BROKER_REGISTRATION_RESPONSE: Struct = Struct {
    name: "BrokerRegistrationResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("broker_epoch", Int64, 0, MAX).or(-1),
    ],
};

static CONSUMER_GROUP_DESCRIBE_REQUEST: Struct = Struct {
    name: "ConsumerGroupDescribeRequest",
    index: 0,
    fields: &[
        field("group_ids", String, 0, MAX).list(),
        field("include_authorized_operations", Bool, 0, MAX),
    ],
};

static CONSUMER_GROUP_DESCRIBE_RESPONSE: Struct = Struct {
    name: "ConsumerGroupDescribeResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("groups", Of(&CONSUMER_GROUP_DESCRIBE_RESPONSE_DESCRIBED_GROUP), 0, MAX).list(),
    ],
};

static CONSUMER_GROUP_DESCRIBE_RESPONSE_DESCRIBED_GROUP: Struct = Struct {
    name: "DescribedGroup",
    index: 1,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
        field("group_id", String, 0, MAX),
        field("group_state", String, 0, MAX),
        field("group_epoch", Int32, 0, MAX),
        field("assignment_epoch", Int32, 0, MAX),
        field("assignor_name", String, 0, MAX),
        field("members", Of(&CONSUMER_GROUP_DESCRIBE_RESPONSE_MEMBER), 0, MAX).list(),
        field("authorized_operations", Int32, 0, MAX).or(-2_147_483_648),
    ],
};

static CONSUMER_GROUP_DESCRIBE_RESPONSE_MEMBER: Struct = Struct {
    name: "Member",
    index: 2,
    fields: &[
        field("member_id", String, 0, MAX),
        field("instance_id", String, 0, MAX).nullable(0, MAX).or_null(),
        field("rack_id", String, 0, MAX).nullable(0, MAX).or_null(),
        field("member_epoch", Int32, 0, MAX),
        field("client_id", String, 0, MAX),
        field("client_host", String, 0, MAX),
        field("subscribed_topic_names", String, 0, MAX).list(),
        field("subscribed_topic_regex", String, 0, MAX).nullable(0, MAX).or_null(),
        field("assignment", Of(&CONSUMER_GROUP_DESCRIBE_RESPONSE_ASSIGNMENT), 0, MAX),
        field("target_assignment", Of(&CONSUMER_GROUP_DESCRIBE_RESPONSE_ASSIGNMENT), 0, MAX),
        field("member_type", Int8, 1, MAX).ignorable().or(-1),
    ],
};

static CONSUMER_GROUP_DESCRIBE_RESPONSE_TOPIC_PARTITIONS: Struct = Struct {
    name: "TopicPartitions",
    index: 3,
    fields: &[
        field("topic_id", Uuid, 0, MAX),
        field("topic_name", String, 0, MAX),
        field("partitions", Int32, 0, MAX).list(),
    ],
};

static CONSUMER_GROUP_DESCRIBE_RESPONSE_ASSIGNMENT: Struct = Struct {
    name: "Assignment",
    index: 4,
    fields: &[field(
        "topic_partitions",
        Of(&CONSUMER_GROUP_DESCRIBE_RESPONSE_TOPIC_PARTITIONS),
        0,
        MAX,
    )
    .list()],
};

static CONSUMER_GROUP_HEARTBEAT_REQUEST: Struct = Struct {
    name: "ConsumerGroupHeartbeatRequest",
    index: 0,
    fields: &[
        field("group_id", String, 0, MAX),
        field("member_id", String, 0, MAX),
        field("member_epoch", Int32, 0, MAX),
        field("instance_id", String, 0, MAX).nullable(0, MAX).or_null(),
        field("rack_id", String, 0, MAX).nullable(0, MAX).or_null(),
        field("rebalance_timeout_ms", Int32, 0, MAX).or(-1),
        field("subscribed_topic_names", String, 0, MAX).list().nullable(0, MAX).or_null(),
        field("subscribed_topic_regex", String, 1, MAX).nullable(1, MAX).or_null(),
        field("server_assignor", String, 0, MAX).nullable(0, MAX).or_null(),
        field("topic_partitions", Of(&CONSUMER_GROUP_HEARTBEAT_REQUEST_TOPIC_PARTITIONS), 0, MAX)
            .list()
            .nullable(0, MAX)
            .or_null(),
    ],
};

static CONSUMER_GROUP_HEARTBEAT_REQUEST_TOPIC_PARTITIONS: Struct = Struct {
    name: "TopicPartitions",
    index: 1,
    fields: &[field("topic_id", Uuid, 0, MAX), field("partitions", Int32, 0, MAX).list()],
};

static CONSUMER_GROUP_HEARTBEAT_RESPONSE: Struct = Struct {
    name: "ConsumerGroupHeartbeatResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
        field("member_id", String, 0, MAX).nullable(0, MAX).or_null(),
        field("member_epoch", Int32, 0, MAX),
        field("heartbeat_interval_ms", Int32, 0, MAX),
        field("assignment", Of(&CONSUMER_GROUP_HEARTBEAT_RESPONSE_ASSIGNMENT), 0, MAX)
            .nullable(0, MAX)
            .or_null(),
    ],
};

static CONSUMER_GROUP_HEARTBEAT_RESPONSE_ASSIGNMENT: Struct = Struct {
    name: "Assignment",
    index: 1,
    fields: &[field(
        "topic_partitions",
        Of(&CONSUMER_GROUP_HEARTBEAT_RESPONSE_TOPIC_PARTITIONS),
        0,
        MAX,
    )
    .list()],
};

static CONSUMER_GROUP_HEARTBEAT_RESPONSE_TOPIC_PARTITIONS: Struct = Struct {
    name: "TopicPartitions",
    index: 2,
    fields: &[field("topic_id", Uuid, 0, MAX), field("partitions", Int32, 0, MAX).list()],
};

static CONSUMER_PROTOCOL_ASSIGNMENT: Struct = Struct {
    name: "ConsumerProtocolAssignment",
    index: 0,
    fields: &[
        field("assigned_partitions", Of(&CONSUMER_PROTOCOL_ASSIGNMENT_TOPIC_PARTITION), 0, MAX)
            .list(),
        field("user_data", Bytes, 0, MAX).nullable(0, MAX).or_null(),
    ],
};

static CONSUMER_PROTOCOL_ASSIGNMENT_TOPIC_PARTITION: Struct = Struct {
    name: "TopicPartition",
    index: 1,
    fields: &[field("topic", String, 0, MAX), field("partitions", Int32, 0, MAX).list()],
};

static CONSUMER_PROTOCOL_SUBSCRIPTION: Struct = Struct {
    name: "ConsumerProtocolSubscription",
    index: 0,
    fields: &[
        field("topics", String, 0, MAX).list(),
        field("user_data", Bytes, 0, MAX).nullable(0, MAX).or_null(),
        field("owned_partitions", Of(&CONSUMER_PROTOCOL_SUBSCRIPTION_TOPIC_PARTITION), 1, MAX)
            .list()
            .ignorable(),
        field("generation_id", Int32, 2, MAX).ignorable().or(-1),
        field("rack_id", String, 3, MAX).nullable(3, MAX).ignorable().or_null(),
    ],
};

static CONSUMER_PROTOCOL_SUBSCRIPTION_TOPIC_PARTITION: Struct = Struct {
    name: "TopicPartition",
    index: 1,
    fields: &[field("topic", String, 1, MAX), field("partitions", Int32, 1, MAX).list()],
};

static CONTROL_RECORD_TYPE_SCHEMA: Struct =
    Struct { name: "ControlRecordTypeSchema", index: 0, fields: &[field("type", Int16, 0, MAX)] };

static CONTROLLER_REGISTRATION_REQUEST: Struct = Struct {
    name: "ControllerRegistrationRequest",
    index: 0,
    fields: &[
        field("controller_id", Int32, 0, MAX),
        field("incarnation_id", Uuid, 0, MAX),
        field("zk_migration_ready", Bool, 0, MAX),
        field("listeners", Of(&CONTROLLER_REGISTRATION_REQUEST_LISTENER), 0, MAX).list(),
        field("features", Of(&CONTROLLER_REGISTRATION_REQUEST_FEATURE), 0, MAX).list(),
    ],
};

static CONTROLLER_REGISTRATION_REQUEST_LISTENER: Struct = Struct {
    name: "Listener",
    index: 1,
    fields: &[
        field("name", String, 0, MAX),
        field("host", String, 0, MAX),
        field("port", Uint16, 0, MAX),
        field("security_protocol", Int16, 0, MAX),
    ],
};

static CONTROLLER_REGISTRATION_REQUEST_FEATURE: Struct = Struct {
    name: "Feature",
    index: 2,
    fields: &[
        field("name", String, 0, MAX),
        field("min_supported_version", Int16, 0, MAX),
        field("max_supported_version", Int16, 0, MAX),
    ],
};

static CONTROLLER_REGISTRATION_RESPONSE: Struct = Struct {
    name: "ControllerRegistrationResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX),
    ],
};

static CREATE_ACLS_REQUEST: Struct = Struct {
    name: "CreateAclsRequest",
    index: 0,
    fields: &[field("creations", Of(&CREATE_ACLS_REQUEST_ACL_CREATION), 0, MAX).list()],
};

static CREATE_ACLS_REQUEST_ACL_CREATION: Struct = Struct {
    name: "AclCreation",
    index: 1,
    fields: &[
        field("resource_type", Int8, 0, MAX),
        field("resource_name", String, 0, MAX),
        field("resource_pattern_type", Int8, 1, MAX).or(3),
        field("principal", String, 0, MAX),
        field("host", String, 0, MAX),
        field("operation", Int8, 0, MAX),
        field("permission_type", Int8, 0, MAX),
    ],
};

static CREATE_ACLS_RESPONSE: Struct = Struct {
    name: "CreateAclsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("results", Of(&CREATE_ACLS_RESPONSE_ACL_CREATION_RESULT), 0, MAX).list(),
    ],
};

static CREATE_ACLS_RESPONSE_ACL_CREATION_RESULT: Struct = Struct {
    name: "AclCreationResult",
    index: 1,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX),
    ],
};

static CREATE_DELEGATION_TOKEN_REQUEST: Struct = Struct {
    name: "CreateDelegationTokenRequest",
    index: 0,
    fields: &[
        field("owner_principal_type", String, 3, MAX).nullable(3, MAX),
        field("owner_principal_name", String, 3, MAX).nullable(3, MAX),
        field("renewers", Of(&CREATE_DELEGATION_TOKEN_REQUEST_CREATABLE_RENEWERS), 0, MAX).list(),
        field("max_lifetime_ms", Int64, 0, MAX),
    ],
};

static CREATE_DELEGATION_TOKEN_REQUEST_CREATABLE_RENEWERS: Struct = Struct {
    name: "CreatableRenewers",
    index: 1,
    fields: &[field("principal_type", String, 0, MAX), field("principal_name", String, 0, MAX)],
};

static CREATE_DELEGATION_TOKEN_RESPONSE: Struct = Struct {
    name: "CreateDelegationTokenResponse",
    index: 0,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("principal_type", String, 0, MAX),
        field("principal_name", String, 0, MAX),
        field("token_requester_principal_type", String, 3, MAX),
        field("token_requester_principal_name", String, 3, MAX),
        field("issue_timestamp_ms", Int64, 0, MAX),
        field("expiry_timestamp_ms", Int64, 0, MAX),
        field("max_timestamp_ms", Int64, 0, MAX),
        field("token_id", String, 0, MAX),
        field("hmac", Bytes, 0, MAX),
        field("throttle_time_ms", Int32, 0, MAX),
    ],
};

static CREATE_PARTITIONS_REQUEST: Struct = Struct {
    name: "CreatePartitionsRequest",
    index: 0,
    fields: &[
        field("topics", Of(&CREATE_PARTITIONS_REQUEST_CREATE_PARTITIONS_TOPIC), 0, MAX).list(),
        field("timeout_ms", Int32, 0, MAX),
        field("validate_only", Bool, 0, MAX),
    ],
};

static CREATE_PARTITIONS_REQUEST_CREATE_PARTITIONS_TOPIC: Struct = Struct {
    name: "CreatePartitionsTopic",
    index: 1,
    fields: &[
        field("name", String, 0, MAX),
        field("count", Int32, 0, MAX),
        field("assignments", Of(&CREATE_PARTITIONS_REQUEST_CREATE_PARTITIONS_ASSIGNMENT), 0, MAX)
            .list()
            .nullable(0, MAX),
    ],
};

static CREATE_PARTITIONS_REQUEST_CREATE_PARTITIONS_ASSIGNMENT: Struct = Struct {
    name: "CreatePartitionsAssignment",
    index: 2,
    fields: &[field("broker_ids", Int32, 0, MAX).list()],
};

static CREATE_PARTITIONS_RESPONSE: Struct = Struct {
    name: "CreatePartitionsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("results", Of(&CREATE_PARTITIONS_RESPONSE_CREATE_PARTITIONS_TOPIC_RESULT), 0, MAX)
            .list(),
    ],
};

static CREATE_PARTITIONS_RESPONSE_CREATE_PARTITIONS_TOPIC_RESULT: Struct = Struct {
    name: "CreatePartitionsTopicResult",
    index: 1,
    fields: &[
        field("name", String, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
    ],
};

static CREATE_TOPICS_REQUEST: Struct = Struct {
    name: "CreateTopicsRequest",
    index: 0,
    fields: &[
        field("topics", Of(&CREATE_TOPICS_REQUEST_CREATABLE_TOPIC), 0, MAX).list(),
        field("timeout_ms", Int32, 0, MAX).or(60_000),
        field("validate_only", Bool, 1, MAX),
    ],
};

static CREATE_TOPICS_REQUEST_CREATABLE_TOPIC: Struct = Struct {
    name: "CreatableTopic",
    index: 1,
    fields: &[
        field("name", String, 0, MAX),
        field("num_partitions", Int32, 0, MAX),
        field("replication_factor", Int16, 0, MAX),
        field("assignments", Of(&CREATE_TOPICS_REQUEST_CREATABLE_REPLICA_ASSIGNMENT), 0, MAX)
            .list(),
        field("configs", Of(&CREATE_TOPICS_REQUEST_CREATABLE_TOPIC_CONFIG), 0, MAX).list(),
    ],
};

static CREATE_TOPICS_REQUEST_CREATABLE_REPLICA_ASSIGNMENT: Struct = Struct {
    name: "CreatableReplicaAssignment",
    index: 2,
    fields: &[field("partition_index", Int32, 0, MAX), field("broker_ids", Int32, 0, MAX).list()],
};

static CREATE_TOPICS_REQUEST_CREATABLE_TOPIC_CONFIG: Struct = Struct {
    name: "CreatableTopicConfig",
    index: 3,
    fields: &[field("name", String, 0, MAX), field("value", String, 0, MAX).nullable(0, MAX)],
};

static CREATE_TOPICS_RESPONSE: Struct = Struct {
    name: "CreateTopicsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 2, MAX).ignorable(),
        field("topics", Of(&CREATE_TOPICS_RESPONSE_CREATABLE_TOPIC_RESULT), 0, MAX).list(),
    ],
};

static CREATE_TOPICS_RESPONSE_CREATABLE_TOPIC_RESULT: Struct = Struct {
    name: "CreatableTopicResult",
    index: 1,
    fields: &[
        field("name", String, 0, MAX),
        field("topic_id", Uuid, 7, MAX).ignorable(),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 1, MAX).nullable(0, MAX).ignorable(),
        field("topic_config_error_code", Int16, 5, MAX).tagged(0, 5, MAX).ignorable(),
        field("num_partitions", Int32, 5, MAX).ignorable().or(-1),
        field("replication_factor", Int16, 5, MAX).ignorable().or(-1),
        field("configs", Of(&CREATE_TOPICS_RESPONSE_CREATABLE_TOPIC_CONFIGS), 5, MAX)
            .list()
            .nullable(5, MAX)
            .ignorable(),
    ],
};

static CREATE_TOPICS_RESPONSE_CREATABLE_TOPIC_CONFIGS: Struct = Struct {
    name: "CreatableTopicConfigs",
    index: 2,
    fields: &[
        field("name", String, 5, MAX),
        field("value", String, 5, MAX).nullable(5, MAX),
        field("read_only", Bool, 5, MAX),
        field("config_source", Int8, 5, MAX).ignorable().or(-1),
        field("is_sensitive", Bool, 5, MAX),
    ],
};

static DEFAULT_PRINCIPAL_DATA: Struct = Struct {
    name: "DefaultPrincipalData",
    index: 0,
    fields: &[
        field("type", String, 0, MAX),
        field("name", String, 0, MAX),
        field("token_authenticated", Bool, 0, MAX),
    ],
};

static DELETE_ACLS_REQUEST: Struct = Struct {
    name: "DeleteAclsRequest",
    index: 0,
    fields: &[field("filters", Of(&DELETE_ACLS_REQUEST_DELETE_ACLS_FILTER), 0, MAX).list()],
};

static DELETE_ACLS_REQUEST_DELETE_ACLS_FILTER: Struct = Struct {
    name: "DeleteAclsFilter",
    index: 1,
    fields: &[
        field("resource_type_filter", Int8, 0, MAX),
        field("resource_name_filter", String, 0, MAX).nullable(0, MAX),
        field("pattern_type_filter", Int8, 1, MAX).or(3),
        field("principal_filter", String, 0, MAX).nullable(0, MAX),
        field("host_filter", String, 0, MAX).nullable(0, MAX),
        field("operation", Int8, 0, MAX),
        field("permission_type", Int8, 0, MAX),
    ],
};

static DELETE_ACLS_RESPONSE: Struct = Struct {
    name: "DeleteAclsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("filter_results", Of(&DELETE_ACLS_RESPONSE_DELETE_ACLS_FILTER_RESULT), 0, MAX).list(),
    ],
};

static DELETE_ACLS_RESPONSE_DELETE_ACLS_FILTER_RESULT: Struct = Struct {
    name: "DeleteAclsFilterResult",
    index: 1,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX),
        field("matching_acls", Of(&DELETE_ACLS_RESPONSE_DELETE_ACLS_MATCHING_ACL), 0, MAX).list(),
    ],
};

static DELETE_ACLS_RESPONSE_DELETE_ACLS_MATCHING_ACL: Struct = Struct {
    name: "DeleteAclsMatchingAcl",
    index: 2,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX),
        field("resource_type", Int8, 0, MAX),
        field("resource_name", String, 0, MAX),
        field("pattern_type", Int8, 1, MAX).or(3),
        field("principal", String, 0, MAX),
        field("host", String, 0, MAX),
        field("operation", Int8, 0, MAX),
        field("permission_type", Int8, 0, MAX),
    ],
};

static DELETE_GROUPS_REQUEST: Struct = Struct {
    name: "DeleteGroupsRequest",
    index: 0,
    fields: &[field("groups_names", String, 0, MAX).list()],
};

static DELETE_GROUPS_RESPONSE: Struct = Struct {
    name: "DeleteGroupsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("results", Of(&DELETE_GROUPS_RESPONSE_DELETABLE_GROUP_RESULT), 0, MAX).list(),
    ],
};

static DELETE_GROUPS_RESPONSE_DELETABLE_GROUP_RESULT: Struct = Struct {
    name: "DeletableGroupResult",
    index: 1,
    fields: &[
        field("group_id", String, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 3, MAX).nullable(3, MAX).ignorable().or_null(),
    ],
};

static DELETE_RECORDS_REQUEST: Struct = Struct {
    name: "DeleteRecordsRequest",
    index: 0,
    fields: &[
        field("topics", Of(&DELETE_RECORDS_REQUEST_DELETE_RECORDS_TOPIC), 0, MAX).list(),
        field("timeout_ms", Int32, 0, MAX),
    ],
};

static DELETE_RECORDS_REQUEST_DELETE_RECORDS_TOPIC: Struct = Struct {
    name: "DeleteRecordsTopic",
    index: 1,
    fields: &[
        field("name", String, 0, MAX),
        field("partitions", Of(&DELETE_RECORDS_REQUEST_DELETE_RECORDS_PARTITION), 0, MAX).list(),
    ],
};

static DELETE_RECORDS_REQUEST_DELETE_RECORDS_PARTITION: Struct = Struct {
    name: "DeleteRecordsPartition",
    index: 2,
    fields: &[field("partition_index", Int32, 0, MAX), field("offset", Int64, 0, MAX)],
};

static DELETE_RECORDS_RESPONSE: Struct = Struct {
    name: "DeleteRecordsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("topics", Of(&DELETE_RECORDS_RESPONSE_DELETE_RECORDS_TOPIC_RESULT), 0, MAX).list(),
    ],
};

static DELETE_RECORDS_RESPONSE_DELETE_RECORDS_TOPIC_RESULT: Struct = Struct {
    name: "DeleteRecordsTopicResult",
    index: 1,
    fields: &[
        field("name", String, 0, MAX),
        field("partitions", Of(&DELETE_RECORDS_RESPONSE_DELETE_RECORDS_PARTITION_RESULT), 0, MAX)
            .list(),
    ],
};

static DELETE_RECORDS_RESPONSE_DELETE_RECORDS_PARTITION_RESULT: Struct = Struct {
    name: "DeleteRecordsPartitionResult",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("low_watermark", Int64, 0, MAX),
        field("error_code", Int16, 0, MAX),
    ],
};

static DELETE_SHARE_GROUP_OFFSETS_REQUEST: Struct = Struct {
    name: "DeleteShareGroupOffsetsRequest",
    index: 0,
    fields: &[
        field("group_id", String, 0, MAX),
        field(
            "topics",
            Of(&DELETE_SHARE_GROUP_OFFSETS_REQUEST_DELETE_SHARE_GROUP_OFFSETS_REQUEST_TOPIC),
            0,
            MAX,
        )
        .list(),
    ],
};

static DELETE_SHARE_GROUP_OFFSETS_REQUEST_DELETE_SHARE_GROUP_OFFSETS_REQUEST_TOPIC: Struct =
    Struct {
        name: "DeleteShareGroupOffsetsRequestTopic",
        index: 1,
        fields: &[field("topic_name", String, 0, MAX)],
    };

static DELETE_SHARE_GROUP_OFFSETS_RESPONSE: Struct = Struct {
    name: "DeleteShareGroupOffsetsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
        field(
            "responses",
            Of(&DELETE_SHARE_GROUP_OFFSETS_RESPONSE_DELETE_SHARE_GROUP_OFFSETS_RESPONSE_TOPIC),
            0,
            MAX,
        )
        .list(),
    ],
};

static DELETE_SHARE_GROUP_OFFSETS_RESPONSE_DELETE_SHARE_GROUP_OFFSETS_RESPONSE_TOPIC: Struct =
    Struct {
        name: "DeleteShareGroupOffsetsResponseTopic",
        index: 1,
        fields: &[
            field("topic_name", String, 0, MAX),
            field("topic_id", Uuid, 0, MAX),
            field("error_code", Int16, 0, MAX),
            field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
        ],
    };

static DELETE_SHARE_GROUP_STATE_REQUEST: Struct = Struct {
    name: "DeleteShareGroupStateRequest",
    index: 0,
    fields: &[
        field("group_id", String, 0, MAX),
        field("topics", Of(&DELETE_SHARE_GROUP_STATE_REQUEST_DELETE_STATE_DATA), 0, MAX).list(),
    ],
};

static DELETE_SHARE_GROUP_STATE_REQUEST_DELETE_STATE_DATA: Struct = Struct {
    name: "DeleteStateData",
    index: 1,
    fields: &[
        field("topic_id", Uuid, 0, MAX),
        field("partitions", Of(&DELETE_SHARE_GROUP_STATE_REQUEST_PARTITION_DATA), 0, MAX).list(),
    ],
};

static DELETE_SHARE_GROUP_STATE_REQUEST_PARTITION_DATA: Struct =
    Struct { name: "PartitionData", index: 2, fields: &[field("partition", Int32, 0, MAX)] };

static DELETE_SHARE_GROUP_STATE_RESPONSE: Struct = Struct {
    name: "DeleteShareGroupStateResponse",
    index: 0,
    fields: &[
        field("results", Of(&DELETE_SHARE_GROUP_STATE_RESPONSE_DELETE_STATE_RESULT), 0, MAX).list()
    ],
};

static DELETE_SHARE_GROUP_STATE_RESPONSE_DELETE_STATE_RESULT: Struct = Struct {
    name: "DeleteStateResult",
    index: 1,
    fields: &[
        field("topic_id", Uuid, 0, MAX),
        field("partitions", Of(&DELETE_SHARE_GROUP_STATE_RESPONSE_PARTITION_RESULT), 0, MAX).list(),
    ],
};

static DELETE_SHARE_GROUP_STATE_RESPONSE_PARTITION_RESULT: Struct = Struct {
    name: "PartitionResult",
    index: 2,
    fields: &[
        field("partition", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
    ],
};

static DELETE_TOPICS_REQUEST: Struct = Struct {
    name: "DeleteTopicsRequest",
    index: 0,
    fields: &[
        field("topics", Of(&DELETE_TOPICS_REQUEST_DELETE_TOPIC_STATE), 6, MAX).list(),
        field("topic_names", String, 0, 5).list().ignorable(),
        field("timeout_ms", Int32, 0, MAX),
    ],
};

static DELETE_TOPICS_REQUEST_DELETE_TOPIC_STATE: Struct = Struct {
    name: "DeleteTopicState",
    index: 1,
    fields: &[
        field("name", String, 6, MAX).nullable(6, MAX).or_null(),
        field("topic_id", Uuid, 6, MAX),
    ],
};

static DELETE_TOPICS_RESPONSE: Struct = Struct {
    name: "DeleteTopicsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 1, MAX).ignorable(),
        field("responses", Of(&DELETE_TOPICS_RESPONSE_DELETABLE_TOPIC_RESULT), 0, MAX).list(),
    ],
};

static DELETE_TOPICS_RESPONSE_DELETABLE_TOPIC_RESULT: Struct = Struct {
    name: "DeletableTopicResult",
    index: 1,
    fields: &[
        field("name", String, 0, MAX).nullable(6, MAX),
        field("topic_id", Uuid, 6, MAX).ignorable(),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 5, MAX).nullable(5, MAX).ignorable().or_null(),
    ],
};

static DESCRIBE_ACLS_REQUEST: Struct = Struct {
    name: "DescribeAclsRequest",
    index: 0,
    fields: &[
        field("resource_type_filter", Int8, 0, MAX),
        field("resource_name_filter", String, 0, MAX).nullable(0, MAX),
        field("pattern_type_filter", Int8, 1, MAX).or(3),
        field("principal_filter", String, 0, MAX).nullable(0, MAX),
        field("host_filter", String, 0, MAX).nullable(0, MAX),
        field("operation", Int8, 0, MAX),
        field("permission_type", Int8, 0, MAX),
    ],
};

static DESCRIBE_ACLS_RESPONSE: Struct = Struct {
    name: "DescribeAclsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX),
        field("resources", Of(&DESCRIBE_ACLS_RESPONSE_DESCRIBE_ACLS_RESOURCE), 0, MAX).list(),
    ],
};

static DESCRIBE_ACLS_RESPONSE_DESCRIBE_ACLS_RESOURCE: Struct = Struct {
    name: "DescribeAclsResource",
    index: 1,
    fields: &[
        field("resource_type", Int8, 0, MAX),
        field("resource_name", String, 0, MAX),
        field("pattern_type", Int8, 1, MAX).or(3),
        field("acls", Of(&DESCRIBE_ACLS_RESPONSE_ACL_DESCRIPTION), 0, MAX).list(),
    ],
};

static DESCRIBE_ACLS_RESPONSE_ACL_DESCRIPTION: Struct = Struct {
    name: "AclDescription",
    index: 2,
    fields: &[
        field("principal", String, 0, MAX),
        field("host", String, 0, MAX),
        field("operation", Int8, 0, MAX),
        field("permission_type", Int8, 0, MAX),
    ],
};

static DESCRIBE_CLIENT_QUOTAS_REQUEST: Struct = Struct {
    name: "DescribeClientQuotasRequest",
    index: 0,
    fields: &[
        field("components", Of(&DESCRIBE_CLIENT_QUOTAS_REQUEST_COMPONENT_DATA), 0, MAX).list(),
        field("strict", Bool, 0, MAX),
    ],
};

static DESCRIBE_CLIENT_QUOTAS_REQUEST_COMPONENT_DATA: Struct = Struct {
    name: "ComponentData",
    index: 1,
    fields: &[
        field("entity_type", String, 0, MAX),
        field("match_type", Int8, 0, MAX),
        field("match", String, 0, MAX).nullable(0, MAX),
    ],
};

static DESCRIBE_CLIENT_QUOTAS_RESPONSE: Struct = Struct {
    name: "DescribeClientQuotasResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX),
        field("entries", Of(&DESCRIBE_CLIENT_QUOTAS_RESPONSE_ENTRY_DATA), 0, MAX)
            .list()
            .nullable(0, MAX),
    ],
};

static DESCRIBE_CLIENT_QUOTAS_RESPONSE_ENTRY_DATA: Struct = Struct {
    name: "EntryData",
    index: 1,
    fields: &[
        field("entity", Of(&DESCRIBE_CLIENT_QUOTAS_RESPONSE_ENTITY_DATA), 0, MAX).list(),
        field("values", Of(&DESCRIBE_CLIENT_QUOTAS_RESPONSE_VALUE_DATA), 0, MAX).list(),
    ],
};

static DESCRIBE_CLIENT_QUOTAS_RESPONSE_ENTITY_DATA: Struct = Struct {
    name: "EntityData",
    index: 2,
    fields: &[
        field("entity_type", String, 0, MAX),
        field("entity_name", String, 0, MAX).nullable(0, MAX),
    ],
};

static DESCRIBE_CLIENT_QUOTAS_RESPONSE_VALUE_DATA: Struct = Struct {
    name: "ValueData",
    index: 3,
    fields: &[field("key", String, 0, MAX), field("value", Float64, 0, MAX)],
};

static DESCRIBE_CLUSTER_REQUEST: Struct = Struct {
    name: "DescribeClusterRequest",
    index: 0,
    fields: &[
        field("include_cluster_authorized_operations", Bool, 0, MAX),
        field("endpoint_type", Int8, 1, MAX).or(1),
        field("include_fenced_brokers", Bool, 2, MAX),
    ],
};

static DESCRIBE_CLUSTER_RESPONSE: Struct = Struct {
    name: "DescribeClusterResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
        field("endpoint_type", Int8, 1, MAX).or(1),
        field("cluster_id", String, 0, MAX),
        field("controller_id", Int32, 0, MAX).or(-1),
        field("brokers", Of(&DESCRIBE_CLUSTER_RESPONSE_DESCRIBE_CLUSTER_BROKER), 0, MAX).list(),
        field("cluster_authorized_operations", Int32, 0, MAX).or(-2_147_483_648),
    ],
};

static DESCRIBE_CLUSTER_RESPONSE_DESCRIBE_CLUSTER_BROKER: Struct = Struct {
    name: "DescribeClusterBroker",
    index: 1,
    fields: &[
        field("broker_id", Int32, 0, MAX),
        field("host", String, 0, MAX),
        field("port", Int32, 0, MAX),
        field("rack", String, 0, MAX).nullable(0, MAX).or_null(),
        field("is_fenced", Bool, 2, MAX),
    ],
};

static DESCRIBE_CONFIGS_REQUEST: Struct = Struct {
    name: "DescribeConfigsRequest",
    index: 0,
    fields: &[
        field("resources", Of(&DESCRIBE_CONFIGS_REQUEST_DESCRIBE_CONFIGS_RESOURCE), 0, MAX).list(),
        field("include_synonyms", Bool, 1, MAX),
        field("include_documentation", Bool, 3, MAX),
    ],
};

static DESCRIBE_CONFIGS_REQUEST_DESCRIBE_CONFIGS_RESOURCE: Struct = Struct {
    name: "DescribeConfigsResource",
    index: 1,
    fields: &[
        field("resource_type", Int8, 0, MAX),
        field("resource_name", String, 0, MAX),
        field("configuration_keys", String, 0, MAX).list().nullable(0, MAX),
    ],
};

static DESCRIBE_CONFIGS_RESPONSE: Struct = Struct {
    name: "DescribeConfigsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("results", Of(&DESCRIBE_CONFIGS_RESPONSE_DESCRIBE_CONFIGS_RESULT), 0, MAX).list(),
    ],
};

static DESCRIBE_CONFIGS_RESPONSE_DESCRIBE_CONFIGS_RESULT: Struct = Struct {
    name: "DescribeConfigsResult",
    index: 1,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX),
        field("resource_type", Int8, 0, MAX),
        field("resource_name", String, 0, MAX),
        field("configs", Of(&DESCRIBE_CONFIGS_RESPONSE_DESCRIBE_CONFIGS_RESOURCE_RESULT), 0, MAX)
            .list(),
    ],
};

static DESCRIBE_CONFIGS_RESPONSE_DESCRIBE_CONFIGS_RESOURCE_RESULT: Struct = Struct {
    name: "DescribeConfigsResourceResult",
    index: 2,
    fields: &[
        field("name", String, 0, MAX),
        field("value", String, 0, MAX).nullable(0, MAX),
        field("read_only", Bool, 0, MAX),
        field("config_source", Int8, 1, MAX).ignorable().or(-1),
        field("is_sensitive", Bool, 0, MAX),
        field("synonyms", Of(&DESCRIBE_CONFIGS_RESPONSE_DESCRIBE_CONFIGS_SYNONYM), 1, MAX)
            .list()
            .ignorable(),
        field("config_type", Int8, 3, MAX).ignorable(),
        field("documentation", String, 3, MAX).nullable(0, MAX).ignorable(),
    ],
};

static DESCRIBE_CONFIGS_RESPONSE_DESCRIBE_CONFIGS_SYNONYM: Struct = Struct {
    name: "DescribeConfigsSynonym",
    index: 3,
    fields: &[
        field("name", String, 1, MAX),
        field("value", String, 1, MAX).nullable(0, MAX),
        field("source", Int8, 1, MAX),
    ],
};

static DESCRIBE_DELEGATION_TOKEN_REQUEST: Struct = Struct {
    name: "DescribeDelegationTokenRequest",
    index: 0,
    fields: &[field(
        "owners",
        Of(&DESCRIBE_DELEGATION_TOKEN_REQUEST_DESCRIBE_DELEGATION_TOKEN_OWNER),
        0,
        MAX,
    )
    .list()
    .nullable(0, MAX)],
};

static DESCRIBE_DELEGATION_TOKEN_REQUEST_DESCRIBE_DELEGATION_TOKEN_OWNER: Struct = Struct {
    name: "DescribeDelegationTokenOwner",
    index: 1,
    fields: &[field("principal_type", String, 0, MAX), field("principal_name", String, 0, MAX)],
};

static DESCRIBE_DELEGATION_TOKEN_RESPONSE: Struct = Struct {
    name: "DescribeDelegationTokenResponse",
    index: 0,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("tokens", Of(&DESCRIBE_DELEGATION_TOKEN_RESPONSE_DESCRIBED_DELEGATION_TOKEN), 0, MAX)
            .list(),
        field("throttle_time_ms", Int32, 0, MAX),
    ],
};

static DESCRIBE_DELEGATION_TOKEN_RESPONSE_DESCRIBED_DELEGATION_TOKEN: Struct = Struct {
    name: "DescribedDelegationToken",
    index: 1,
    fields: &[
        field("principal_type", String, 0, MAX),
        field("principal_name", String, 0, MAX),
        field("token_requester_principal_type", String, 3, MAX),
        field("token_requester_principal_name", String, 3, MAX),
        field("issue_timestamp", Int64, 0, MAX),
        field("expiry_timestamp", Int64, 0, MAX),
        field("max_timestamp", Int64, 0, MAX),
        field("token_id", String, 0, MAX),
        field("hmac", Bytes, 0, MAX),
        field(
            "renewers",
            Of(&DESCRIBE_DELEGATION_TOKEN_RESPONSE_DESCRIBED_DELEGATION_TOKEN_RENEWER),
            0,
            MAX,
        )
        .list(),
    ],
};

static DESCRIBE_DELEGATION_TOKEN_RESPONSE_DESCRIBED_DELEGATION_TOKEN_RENEWER: Struct = Struct {
    name: "DescribedDelegationTokenRenewer",
    index: 2,
    fields: &[field("principal_type", String, 0, MAX), field("principal_name", String, 0, MAX)],
};

static DESCRIBE_GROUPS_REQUEST: Struct = Struct {
    name: "DescribeGroupsRequest",
    index: 0,
    fields: &[
        field("groups", String, 0, MAX).list(),
        field("include_authorized_operations", Bool, 3, MAX),
    ],
};

static DESCRIBE_GROUPS_RESPONSE: Struct = Struct {
    name: "DescribeGroupsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 1, MAX).ignorable(),
        field("groups", Of(&DESCRIBE_GROUPS_RESPONSE_DESCRIBED_GROUP), 0, MAX).list(),
    ],
};

static DESCRIBE_GROUPS_RESPONSE_DESCRIBED_GROUP: Struct = Struct {
    name: "DescribedGroup",
    index: 1,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 6, MAX).nullable(6, MAX).or_null(),
        field("group_id", String, 0, MAX),
        field("group_state", String, 0, MAX),
        field("protocol_type", String, 0, MAX),
        field("protocol_data", String, 0, MAX),
        field("members", Of(&DESCRIBE_GROUPS_RESPONSE_DESCRIBED_GROUP_MEMBER), 0, MAX).list(),
        field("authorized_operations", Int32, 3, MAX).or(-2_147_483_648),
    ],
};

static DESCRIBE_GROUPS_RESPONSE_DESCRIBED_GROUP_MEMBER: Struct = Struct {
    name: "DescribedGroupMember",
    index: 2,
    fields: &[
        field("member_id", String, 0, MAX),
        field("group_instance_id", String, 4, MAX).nullable(4, MAX).ignorable().or_null(),
        field("client_id", String, 0, MAX),
        field("client_host", String, 0, MAX),
        field("member_metadata", Bytes, 0, MAX),
        field("member_assignment", Bytes, 0, MAX),
    ],
};

static DESCRIBE_LOG_DIRS_REQUEST: Struct = Struct {
    name: "DescribeLogDirsRequest",
    index: 0,
    fields: &[field("topics", Of(&DESCRIBE_LOG_DIRS_REQUEST_DESCRIBABLE_LOG_DIR_TOPIC), 0, MAX)
        .list()
        .nullable(0, MAX)],
};

static DESCRIBE_LOG_DIRS_REQUEST_DESCRIBABLE_LOG_DIR_TOPIC: Struct = Struct {
    name: "DescribableLogDirTopic",
    index: 1,
    fields: &[field("topic", String, 0, MAX), field("partitions", Int32, 0, MAX).list()],
};

static DESCRIBE_LOG_DIRS_RESPONSE: Struct = Struct {
    name: "DescribeLogDirsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 3, MAX).ignorable(),
        field("results", Of(&DESCRIBE_LOG_DIRS_RESPONSE_DESCRIBE_LOG_DIRS_RESULT), 0, MAX).list(),
    ],
};

static DESCRIBE_LOG_DIRS_RESPONSE_DESCRIBE_LOG_DIRS_RESULT: Struct = Struct {
    name: "DescribeLogDirsResult",
    index: 1,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("log_dir", String, 0, MAX),
        field("topics", Of(&DESCRIBE_LOG_DIRS_RESPONSE_DESCRIBE_LOG_DIRS_TOPIC), 0, MAX).list(),
        field("total_bytes", Int64, 4, MAX).ignorable().or(-1),
        field("usable_bytes", Int64, 4, MAX).ignorable().or(-1),
        field("is_cordoned", Bool, 5, MAX).ignorable(),
        field("state", String, 2, MAX).tagged(10_000, 2, MAX).ignorable(),
    ],
};

static DESCRIBE_LOG_DIRS_RESPONSE_DESCRIBE_LOG_DIRS_TOPIC: Struct = Struct {
    name: "DescribeLogDirsTopic",
    index: 2,
    fields: &[
        field("name", String, 0, MAX),
        field("partitions", Of(&DESCRIBE_LOG_DIRS_RESPONSE_DESCRIBE_LOG_DIRS_PARTITION), 0, MAX)
            .list(),
    ],
};

static DESCRIBE_LOG_DIRS_RESPONSE_DESCRIBE_LOG_DIRS_PARTITION: Struct = Struct {
    name: "DescribeLogDirsPartition",
    index: 3,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("partition_size", Int64, 0, MAX),
        field("offset_lag", Int64, 0, MAX),
        field("is_future_key", Bool, 0, MAX),
        field("state", String, 2, MAX).tagged(10_000, 2, MAX).ignorable(),
    ],
};

static DESCRIBE_PRODUCERS_REQUEST: Struct = Struct {
    name: "DescribeProducersRequest",
    index: 0,
    fields: &[field("topics", Of(&DESCRIBE_PRODUCERS_REQUEST_TOPIC_REQUEST), 0, MAX).list()],
};

static DESCRIBE_PRODUCERS_REQUEST_TOPIC_REQUEST: Struct = Struct {
    name: "TopicRequest",
    index: 1,
    fields: &[field("name", String, 0, MAX), field("partition_indexes", Int32, 0, MAX).list()],
};

static DESCRIBE_PRODUCERS_RESPONSE: Struct = Struct {
    name: "DescribeProducersResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("topics", Of(&DESCRIBE_PRODUCERS_RESPONSE_TOPIC_RESPONSE), 0, MAX).list(),
    ],
};

static DESCRIBE_PRODUCERS_RESPONSE_TOPIC_RESPONSE: Struct = Struct {
    name: "TopicResponse",
    index: 1,
    fields: &[
        field("name", String, 0, MAX),
        field("partitions", Of(&DESCRIBE_PRODUCERS_RESPONSE_PARTITION_RESPONSE), 0, MAX).list(),
    ],
};

static DESCRIBE_PRODUCERS_RESPONSE_PARTITION_RESPONSE: Struct = Struct {
    name: "PartitionResponse",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
        field("active_producers", Of(&DESCRIBE_PRODUCERS_RESPONSE_PRODUCER_STATE), 0, MAX).list(),
    ],
};

static DESCRIBE_PRODUCERS_RESPONSE_PRODUCER_STATE: Struct = Struct {
    name: "ProducerState",
    index: 3,
    fields: &[
        field("producer_id", Int64, 0, MAX),
        field("producer_epoch", Int32, 0, MAX),
        field("last_sequence", Int32, 0, MAX).or(-1),
        field("last_timestamp", Int64, 0, MAX).or(-1),
        field("coordinator_epoch", Int32, 0, MAX),
        field("current_txn_start_offset", Int64, 0, MAX).or(-1),
    ],
};

static DESCRIBE_QUORUM_REQUEST: Struct = Struct {
    name: "DescribeQuorumRequest",
    index: 0,
    fields: &[field("topics", Of(&DESCRIBE_QUORUM_REQUEST_TOPIC_DATA), 0, MAX).list()],
};

static DESCRIBE_QUORUM_REQUEST_TOPIC_DATA: Struct = Struct {
    name: "TopicData",
    index: 1,
    fields: &[
        field("topic_name", String, 0, MAX),
        field("partitions", Of(&DESCRIBE_QUORUM_REQUEST_PARTITION_DATA), 0, MAX).list(),
    ],
};

static DESCRIBE_QUORUM_REQUEST_PARTITION_DATA: Struct =
    Struct { name: "PartitionData", index: 2, fields: &[field("partition_index", Int32, 0, MAX)] };

static DESCRIBE_QUORUM_RESPONSE: Struct = Struct {
    name: "DescribeQuorumResponse",
    index: 0,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 2, MAX).nullable(2, MAX).ignorable(),
        field("topics", Of(&DESCRIBE_QUORUM_RESPONSE_TOPIC_DATA), 0, MAX).list(),
        field("nodes", Of(&DESCRIBE_QUORUM_RESPONSE_NODE), 2, MAX).list(),
    ],
};

static DESCRIBE_QUORUM_RESPONSE_TOPIC_DATA: Struct = Struct {
    name: "TopicData",
    index: 1,
    fields: &[
        field("topic_name", String, 0, MAX),
        field("partitions", Of(&DESCRIBE_QUORUM_RESPONSE_PARTITION_DATA), 0, MAX).list(),
    ],
};

static DESCRIBE_QUORUM_RESPONSE_PARTITION_DATA: Struct = Struct {
    name: "PartitionData",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 2, MAX).nullable(2, MAX).ignorable(),
        field("leader_id", Int32, 0, MAX),
        field("leader_epoch", Int32, 0, MAX),
        field("high_watermark", Int64, 0, MAX),
        field("current_voters", Of(&DESCRIBE_QUORUM_RESPONSE_REPLICA_STATE), 0, MAX).list(),
        field("observers", Of(&DESCRIBE_QUORUM_RESPONSE_REPLICA_STATE), 0, MAX).list(),
    ],
};

static DESCRIBE_QUORUM_RESPONSE_NODE: Struct = Struct {
    name: "Node",
    index: 3,
    fields: &[
        field("node_id", Int32, 2, MAX),
        field("listeners", Of(&DESCRIBE_QUORUM_RESPONSE_LISTENER), 2, MAX).list(),
    ],
};

static DESCRIBE_QUORUM_RESPONSE_LISTENER: Struct = Struct {
    name: "Listener",
    index: 4,
    fields: &[
        field("name", String, 2, MAX),
        field("host", String, 2, MAX),
        field("port", Uint16, 2, MAX),
    ],
};

static DESCRIBE_QUORUM_RESPONSE_REPLICA_STATE: Struct = Struct {
    name: "ReplicaState",
    index: 5,
    fields: &[
        field("replica_id", Int32, 0, MAX),
        field("replica_directory_id", Uuid, 2, MAX),
        field("log_end_offset", Int64, 0, MAX),
        field("last_fetch_timestamp", Int64, 1, MAX).ignorable().or(-1),
        field("last_caught_up_timestamp", Int64, 1, MAX).ignorable().or(-1),
    ],
};

static DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST: Struct = Struct {
    name: "DescribeShareGroupOffsetsRequest",
    index: 0,
    fields: &[field(
        "groups",
        Of(&DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST_DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST_GROUP),
        0,
        MAX,
    )
    .list()],
};

static DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST_DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST_GROUP: Struct = Struct { name: "DescribeShareGroupOffsetsRequestGroup", index: 1, fields: &[
    field("group_id", String, 0, MAX),
    field("topics", Of(&DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST_DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST_TOPIC), 0, MAX).list().nullable(0, MAX),
] };

static DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST_DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST_TOPIC: Struct =
    Struct {
        name: "DescribeShareGroupOffsetsRequestTopic",
        index: 2,
        fields: &[field("topic_name", String, 0, MAX), field("partitions", Int32, 0, MAX).list()],
    };

static DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE: Struct = Struct {
    name: "DescribeShareGroupOffsetsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field(
            "groups",
            Of(&DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_GROUP),
            0,
            MAX,
        )
        .list(),
    ],
};

static DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_GROUP: Struct = Struct { name: "DescribeShareGroupOffsetsResponseGroup", index: 1, fields: &[
    field("group_id", String, 0, MAX),
    field("topics", Of(&DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_TOPIC), 0, MAX).list(),
    field("error_code", Int16, 0, MAX),
    field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
] };

static DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_TOPIC: Struct = Struct { name: "DescribeShareGroupOffsetsResponseTopic", index: 2, fields: &[
    field("topic_name", String, 0, MAX),
    field("topic_id", Uuid, 0, MAX),
    field("partitions", Of(&DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_PARTITION), 0, MAX).list(),
] };

static DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_PARTITION:
    Struct = Struct {
    name: "DescribeShareGroupOffsetsResponsePartition",
    index: 3,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("start_offset", Int64, 0, MAX),
        field("leader_epoch", Int32, 0, MAX),
        field("lag", Int64, 1, MAX).ignorable().or(-1),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
    ],
};

static DESCRIBE_TOPIC_PARTITIONS_REQUEST: Struct = Struct {
    name: "DescribeTopicPartitionsRequest",
    index: 0,
    fields: &[
        field("topics", Of(&DESCRIBE_TOPIC_PARTITIONS_REQUEST_TOPIC_REQUEST), 0, MAX).list(),
        field("response_partition_limit", Int32, 0, MAX).or(2_000),
        field("cursor", Of(&DESCRIBE_TOPIC_PARTITIONS_REQUEST_CURSOR), 0, MAX)
            .nullable(0, MAX)
            .or_null(),
    ],
};

static DESCRIBE_TOPIC_PARTITIONS_REQUEST_TOPIC_REQUEST: Struct =
    Struct { name: "TopicRequest", index: 1, fields: &[field("name", String, 0, MAX)] };

static DESCRIBE_TOPIC_PARTITIONS_REQUEST_CURSOR: Struct = Struct {
    name: "Cursor",
    index: 2,
    fields: &[field("topic_name", String, 0, MAX), field("partition_index", Int32, 0, MAX)],
};

static DESCRIBE_TOPIC_PARTITIONS_RESPONSE: Struct = Struct {
    name: "DescribeTopicPartitionsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX).ignorable(),
        field(
            "topics",
            Of(&DESCRIBE_TOPIC_PARTITIONS_RESPONSE_DESCRIBE_TOPIC_PARTITIONS_RESPONSE_TOPIC),
            0,
            MAX,
        )
        .list(),
        field("next_cursor", Of(&DESCRIBE_TOPIC_PARTITIONS_RESPONSE_CURSOR), 0, MAX)
            .nullable(0, MAX)
            .or_null(),
    ],
};

static DESCRIBE_TOPIC_PARTITIONS_RESPONSE_DESCRIBE_TOPIC_PARTITIONS_RESPONSE_TOPIC: Struct = Struct { name: "DescribeTopicPartitionsResponseTopic", index: 1, fields: &[
    field("error_code", Int16, 0, MAX),
    field("name", String, 0, MAX).nullable(0, MAX),
    field("topic_id", Uuid, 0, MAX).ignorable(),
    field("is_internal", Bool, 0, MAX).ignorable(),
    field("partitions", Of(&DESCRIBE_TOPIC_PARTITIONS_RESPONSE_DESCRIBE_TOPIC_PARTITIONS_RESPONSE_PARTITION), 0, MAX).list(),
    field("topic_authorized_operations", Int32, 0, MAX).or(-2_147_483_648),
] };

static DESCRIBE_TOPIC_PARTITIONS_RESPONSE_DESCRIBE_TOPIC_PARTITIONS_RESPONSE_PARTITION: Struct =
    Struct {
        name: "DescribeTopicPartitionsResponsePartition",
        index: 2,
        fields: &[
            field("error_code", Int16, 0, MAX),
            field("partition_index", Int32, 0, MAX),
            field("leader_id", Int32, 0, MAX),
            field("leader_epoch", Int32, 0, MAX).ignorable().or(-1),
            field("replica_nodes", Int32, 0, MAX).list(),
            field("isr_nodes", Int32, 0, MAX).list(),
            field("eligible_leader_replicas", Int32, 0, MAX).list().nullable(0, MAX).or_null(),
            field("last_known_elr", Int32, 0, MAX).list().nullable(0, MAX).or_null(),
            field("offline_replicas", Int32, 0, MAX).list().ignorable(),
        ],
    };

static DESCRIBE_TOPIC_PARTITIONS_RESPONSE_CURSOR: Struct = Struct {
    name: "Cursor",
    index: 3,
    fields: &[field("topic_name", String, 0, MAX), field("partition_index", Int32, 0, MAX)],
};

static DESCRIBE_TRANSACTIONS_REQUEST: Struct = Struct {
    name: "DescribeTransactionsRequest",
    index: 0,
    fields: &[field("transactional_ids", String, 0, MAX).list()],
};

static DESCRIBE_TRANSACTIONS_RESPONSE: Struct = Struct {
    name: "DescribeTransactionsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("transaction_states", Of(&DESCRIBE_TRANSACTIONS_RESPONSE_TRANSACTION_STATE), 0, MAX)
            .list(),
    ],
};

static DESCRIBE_TRANSACTIONS_RESPONSE_TRANSACTION_STATE: Struct = Struct {
    name: "TransactionState",
    index: 1,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("transactional_id", String, 0, MAX),
        field("transaction_state", String, 0, MAX),
        field("transaction_timeout_ms", Int32, 0, MAX),
        field("transaction_start_time_ms", Int64, 0, MAX),
        field("producer_id", Int64, 0, MAX),
        field("producer_epoch", Int16, 0, MAX),
        field("topics", Of(&DESCRIBE_TRANSACTIONS_RESPONSE_TOPIC_DATA), 0, MAX).list(),
    ],
};

static DESCRIBE_TRANSACTIONS_RESPONSE_TOPIC_DATA: Struct = Struct {
    name: "TopicData",
    index: 2,
    fields: &[field("topic", String, 0, MAX), field("partitions", Int32, 0, MAX).list()],
};

static DESCRIBE_USER_SCRAM_CREDENTIALS_REQUEST: Struct = Struct {
    name: "DescribeUserScramCredentialsRequest",
    index: 0,
    fields: &[field("users", Of(&DESCRIBE_USER_SCRAM_CREDENTIALS_REQUEST_USER_NAME), 0, MAX)
        .list()
        .nullable(0, MAX)],
};

static DESCRIBE_USER_SCRAM_CREDENTIALS_REQUEST_USER_NAME: Struct =
    Struct { name: "UserName", index: 1, fields: &[field("name", String, 0, MAX)] };

static DESCRIBE_USER_SCRAM_CREDENTIALS_RESPONSE: Struct = Struct {
    name: "DescribeUserScramCredentialsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX),
        field(
            "results",
            Of(&DESCRIBE_USER_SCRAM_CREDENTIALS_RESPONSE_DESCRIBE_USER_SCRAM_CREDENTIALS_RESULT),
            0,
            MAX,
        )
        .list(),
    ],
};

static DESCRIBE_USER_SCRAM_CREDENTIALS_RESPONSE_DESCRIBE_USER_SCRAM_CREDENTIALS_RESULT: Struct =
    Struct {
        name: "DescribeUserScramCredentialsResult",
        index: 1,
        fields: &[
            field("user", String, 0, MAX),
            field("error_code", Int16, 0, MAX),
            field("error_message", String, 0, MAX).nullable(0, MAX),
            field(
                "credential_infos",
                Of(&DESCRIBE_USER_SCRAM_CREDENTIALS_RESPONSE_CREDENTIAL_INFO),
                0,
                MAX,
            )
            .list(),
        ],
    };

static DESCRIBE_USER_SCRAM_CREDENTIALS_RESPONSE_CREDENTIAL_INFO: Struct = Struct {
    name: "CredentialInfo",
    index: 2,
    fields: &[field("mechanism", Int8, 0, MAX), field("iterations", Int32, 0, MAX)],
};

static ELECT_LEADERS_REQUEST: Struct = Struct {
    name: "ElectLeadersRequest",
    index: 0,
    fields: &[
        field("election_type", Int8, 1, MAX),
        field("topic_partitions", Of(&ELECT_LEADERS_REQUEST_TOPIC_PARTITIONS), 0, MAX)
            .list()
            .nullable(0, MAX),
        field("timeout_ms", Int32, 0, MAX).or(60_000),
    ],
};

static ELECT_LEADERS_REQUEST_TOPIC_PARTITIONS: Struct = Struct {
    name: "TopicPartitions",
    index: 1,
    fields: &[field("topic", String, 0, MAX), field("partitions", Int32, 0, MAX).list()],
};

static ELECT_LEADERS_RESPONSE: Struct = Struct {
    name: "ElectLeadersResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 1, MAX),
        field(
            "replica_election_results",
            Of(&ELECT_LEADERS_RESPONSE_REPLICA_ELECTION_RESULT),
            0,
            MAX,
        )
        .list(),
    ],
};

static ELECT_LEADERS_RESPONSE_REPLICA_ELECTION_RESULT: Struct = Struct {
    name: "ReplicaElectionResult",
    index: 1,
    fields: &[
        field("topic", String, 0, MAX),
        field("partition_result", Of(&ELECT_LEADERS_RESPONSE_PARTITION_RESULT), 0, MAX).list(),
    ],
};

static ELECT_LEADERS_RESPONSE_PARTITION_RESULT: Struct = Struct {
    name: "PartitionResult",
    index: 2,
    fields: &[
        field("partition_id", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX),
    ],
};

static END_QUORUM_EPOCH_REQUEST: Struct = Struct {
    name: "EndQuorumEpochRequest",
    index: 0,
    fields: &[
        field("cluster_id", String, 0, MAX).nullable(0, MAX).or_null(),
        field("topics", Of(&END_QUORUM_EPOCH_REQUEST_TOPIC_DATA), 0, MAX).list(),
        field("leader_endpoints", Of(&END_QUORUM_EPOCH_REQUEST_LEADER_ENDPOINT), 1, MAX)
            .list()
            .ignorable(),
    ],
};

static END_QUORUM_EPOCH_REQUEST_TOPIC_DATA: Struct = Struct {
    name: "TopicData",
    index: 1,
    fields: &[
        field("topic_name", String, 0, MAX),
        field("partitions", Of(&END_QUORUM_EPOCH_REQUEST_PARTITION_DATA), 0, MAX).list(),
    ],
};

static END_QUORUM_EPOCH_REQUEST_PARTITION_DATA: Struct = Struct {
    name: "PartitionData",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("leader_id", Int32, 0, MAX),
        field("leader_epoch", Int32, 0, MAX),
        field("preferred_successors", Int32, 0, 0).list().ignorable(),
        field("preferred_candidates", Of(&END_QUORUM_EPOCH_REQUEST_REPLICA_INFO), 1, MAX)
            .list()
            .ignorable(),
    ],
};

static END_QUORUM_EPOCH_REQUEST_REPLICA_INFO: Struct = Struct {
    name: "ReplicaInfo",
    index: 3,
    fields: &[field("candidate_id", Int32, 1, MAX), field("candidate_directory_id", Uuid, 1, MAX)],
};

static END_QUORUM_EPOCH_REQUEST_LEADER_ENDPOINT: Struct = Struct {
    name: "LeaderEndpoint",
    index: 4,
    fields: &[
        field("name", String, 1, MAX),
        field("host", String, 1, MAX),
        field("port", Uint16, 1, MAX),
    ],
};

static END_QUORUM_EPOCH_RESPONSE: Struct = Struct {
    name: "EndQuorumEpochResponse",
    index: 0,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("topics", Of(&END_QUORUM_EPOCH_RESPONSE_TOPIC_DATA), 0, MAX).list(),
        field("node_endpoints", Of(&END_QUORUM_EPOCH_RESPONSE_NODE_ENDPOINT), 1, MAX)
            .list()
            .tagged(0, 1, MAX),
    ],
};

static END_QUORUM_EPOCH_RESPONSE_TOPIC_DATA: Struct = Struct {
    name: "TopicData",
    index: 1,
    fields: &[
        field("topic_name", String, 0, MAX),
        field("partitions", Of(&END_QUORUM_EPOCH_RESPONSE_PARTITION_DATA), 0, MAX).list(),
    ],
};

static END_QUORUM_EPOCH_RESPONSE_PARTITION_DATA: Struct = Struct {
    name: "PartitionData",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("leader_id", Int32, 0, MAX),
        field("leader_epoch", Int32, 0, MAX),
    ],
};

static END_QUORUM_EPOCH_RESPONSE_NODE_ENDPOINT: Struct = Struct {
    name: "NodeEndpoint",
    index: 3,
    fields: &[
        field("node_id", Int32, 1, MAX),
        field("host", String, 1, MAX),
        field("port", Uint16, 1, MAX),
    ],
};

static END_TXN_MARKER: Struct =
    Struct { name: "EndTxnMarker", index: 0, fields: &[field("coordinator_epoch", Int32, 0, MAX)] };

static END_TXN_REQUEST: Struct = Struct {
    name: "EndTxnRequest",
    index: 0,
    fields: &[
        field("transactional_id", String, 0, MAX),
        field("producer_id", Int64, 0, MAX),
        field("producer_epoch", Int16, 0, MAX),
        field("committed", Bool, 0, MAX),
    ],
};

static END_TXN_RESPONSE: Struct = Struct {
    name: "EndTxnResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("producer_id", Int64, 5, MAX).ignorable().or(-1),
        field("producer_epoch", Int16, 5, MAX).ignorable().or(-1),
    ],
};

static ENVELOPE_REQUEST: Struct = Struct {
    name: "EnvelopeRequest",
    index: 0,
    fields: &[
        field("request_data", Bytes, 0, MAX),
        field("request_principal", Bytes, 0, MAX).nullable(0, MAX),
        field("client_host_address", Bytes, 0, MAX),
    ],
};

static ENVELOPE_RESPONSE: Struct = Struct {
    name: "EnvelopeResponse",
    index: 0,
    fields: &[
        field("response_data", Bytes, 0, MAX).nullable(0, MAX).or_null(),
        field("error_code", Int16, 0, MAX),
    ],
};

static EXPIRE_DELEGATION_TOKEN_REQUEST: Struct = Struct {
    name: "ExpireDelegationTokenRequest",
    index: 0,
    fields: &[field("hmac", Bytes, 0, MAX), field("expiry_time_period_ms", Int64, 0, MAX)],
};

static EXPIRE_DELEGATION_TOKEN_RESPONSE: Struct = Struct {
    name: "ExpireDelegationTokenResponse",
    index: 0,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("expiry_timestamp_ms", Int64, 0, MAX),
        field("throttle_time_ms", Int32, 0, MAX),
    ],
};

static FETCH_REQUEST: Struct = Struct {
    name: "FetchRequest",
    index: 0,
    fields: &[
        field("cluster_id", String, 12, MAX)
            .nullable(12, MAX)
            .tagged(0, 12, MAX)
            .ignorable()
            .or_null(),
        field("replica_id", Int32, 0, 14).or(-1),
        field("replica_state", Of(&FETCH_REQUEST_REPLICA_STATE), 15, MAX).tagged(1, 15, MAX),
        field("max_wait_ms", Int32, 0, MAX),
        field("min_bytes", Int32, 0, MAX),
        field("max_bytes", Int32, 3, MAX).ignorable().or(2_147_483_647),
        field("isolation_level", Int8, 4, MAX).ignorable(),
        field("session_id", Int32, 7, MAX).ignorable(),
        field("session_epoch", Int32, 7, MAX).ignorable().or(-1),
        field("topics", Of(&FETCH_REQUEST_FETCH_TOPIC), 0, MAX).list(),
        field("forgotten_topics_data", Of(&FETCH_REQUEST_FORGOTTEN_TOPIC), 7, MAX).list(),
        field("rack_id", String, 11, MAX).ignorable(),
    ],
};

static FETCH_REQUEST_REPLICA_STATE: Struct = Struct {
    name: "ReplicaState",
    index: 1,
    fields: &[
        field("replica_id", Int32, 15, MAX).or(-1),
        field("replica_epoch", Int64, 15, MAX).or(-1),
    ],
};

static FETCH_REQUEST_FETCH_TOPIC: Struct = Struct {
    name: "FetchTopic",
    index: 2,
    fields: &[
        field("topic", String, 0, 12).ignorable(),
        field("topic_id", Uuid, 13, MAX).ignorable(),
        field("partitions", Of(&FETCH_REQUEST_FETCH_PARTITION), 0, MAX).list(),
    ],
};

static FETCH_REQUEST_FETCH_PARTITION: Struct = Struct {
    name: "FetchPartition",
    index: 3,
    fields: &[
        field("partition", Int32, 0, MAX),
        field("current_leader_epoch", Int32, 9, MAX).ignorable().or(-1),
        field("fetch_offset", Int64, 0, MAX),
        field("last_fetched_epoch", Int32, 12, MAX).or(-1),
        field("log_start_offset", Int64, 5, MAX).ignorable().or(-1),
        field("partition_max_bytes", Int32, 0, MAX),
        field("replica_directory_id", Uuid, 17, MAX).tagged(0, 17, MAX).ignorable(),
        field("high_watermark", Int64, 18, MAX)
            .tagged(1, 18, MAX)
            .ignorable()
            .or(9_223_372_036_854_775_807),
    ],
};

static FETCH_REQUEST_FORGOTTEN_TOPIC: Struct = Struct {
    name: "ForgottenTopic",
    index: 4,
    fields: &[
        field("topic", String, 7, 12).ignorable(),
        field("topic_id", Uuid, 13, MAX).ignorable(),
        field("partitions", Int32, 7, MAX).list(),
    ],
};

static FETCH_RESPONSE: Struct = Struct {
    name: "FetchResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 1, MAX).ignorable(),
        field("error_code", Int16, 7, MAX).ignorable(),
        field("session_id", Int32, 7, MAX),
        field("responses", Of(&FETCH_RESPONSE_FETCHABLE_TOPIC_RESPONSE), 0, MAX).list(),
        field("node_endpoints", Of(&FETCH_RESPONSE_NODE_ENDPOINT), 16, MAX)
            .list()
            .tagged(0, 16, MAX),
    ],
};

static FETCH_RESPONSE_FETCHABLE_TOPIC_RESPONSE: Struct = Struct {
    name: "FetchableTopicResponse",
    index: 1,
    fields: &[
        field("topic", String, 0, 12).ignorable(),
        field("topic_id", Uuid, 13, MAX).ignorable(),
        field("partitions", Of(&FETCH_RESPONSE_PARTITION_DATA), 0, MAX).list(),
    ],
};

static FETCH_RESPONSE_PARTITION_DATA: Struct = Struct {
    name: "PartitionData",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("high_watermark", Int64, 0, MAX),
        field("last_stable_offset", Int64, 4, MAX).ignorable().or(-1),
        field("log_start_offset", Int64, 5, MAX).ignorable().or(-1),
        field("diverging_epoch", Of(&FETCH_RESPONSE_EPOCH_END_OFFSET), 12, MAX).tagged(0, 12, MAX),
        field("current_leader", Of(&FETCH_RESPONSE_LEADER_ID_AND_EPOCH), 12, MAX)
            .tagged(1, 12, MAX),
        field("snapshot_id", Of(&FETCH_RESPONSE_SNAPSHOT_ID), 12, MAX).tagged(2, 12, MAX),
        field("aborted_transactions", Of(&FETCH_RESPONSE_ABORTED_TRANSACTION), 4, MAX)
            .list()
            .nullable(4, MAX)
            .ignorable(),
        field("preferred_read_replica", Int32, 11, MAX).or(-1),
        field("records", Records, 0, MAX).nullable(0, MAX),
    ],
};

static FETCH_RESPONSE_EPOCH_END_OFFSET: Struct = Struct {
    name: "EpochEndOffset",
    index: 3,
    fields: &[field("epoch", Int32, 12, MAX).or(-1), field("end_offset", Int64, 12, MAX).or(-1)],
};

static FETCH_RESPONSE_LEADER_ID_AND_EPOCH: Struct = Struct {
    name: "LeaderIdAndEpoch",
    index: 4,
    fields: &[
        field("leader_id", Int32, 12, MAX).or(-1),
        field("leader_epoch", Int32, 12, MAX).or(-1),
    ],
};

static FETCH_RESPONSE_SNAPSHOT_ID: Struct = Struct {
    name: "SnapshotId",
    index: 5,
    fields: &[field("end_offset", Int64, 0, MAX).or(-1), field("epoch", Int32, 0, MAX).or(-1)],
};

static FETCH_RESPONSE_ABORTED_TRANSACTION: Struct = Struct {
    name: "AbortedTransaction",
    index: 6,
    fields: &[field("producer_id", Int64, 4, MAX), field("first_offset", Int64, 4, MAX)],
};

static FETCH_RESPONSE_NODE_ENDPOINT: Struct = Struct {
    name: "NodeEndpoint",
    index: 7,
    fields: &[
        field("node_id", Int32, 16, MAX),
        field("host", String, 16, MAX),
        field("port", Int32, 16, MAX),
        field("rack", String, 16, MAX).nullable(16, MAX).or_null(),
    ],
};

static FETCH_SNAPSHOT_REQUEST: Struct = Struct {
    name: "FetchSnapshotRequest",
    index: 0,
    fields: &[
        field("cluster_id", String, 0, MAX).nullable(0, MAX).tagged(0, 0, MAX).or_null(),
        field("replica_id", Int32, 0, MAX).or(-1),
        field("max_bytes", Int32, 0, MAX).or(2_147_483_647),
        field("topics", Of(&FETCH_SNAPSHOT_REQUEST_TOPIC_SNAPSHOT), 0, MAX).list(),
    ],
};

static FETCH_SNAPSHOT_REQUEST_TOPIC_SNAPSHOT: Struct = Struct {
    name: "TopicSnapshot",
    index: 1,
    fields: &[
        field("name", String, 0, MAX),
        field("partitions", Of(&FETCH_SNAPSHOT_REQUEST_PARTITION_SNAPSHOT), 0, MAX).list(),
    ],
};

static FETCH_SNAPSHOT_REQUEST_PARTITION_SNAPSHOT: Struct = Struct {
    name: "PartitionSnapshot",
    index: 2,
    fields: &[
        field("partition", Int32, 0, MAX),
        field("current_leader_epoch", Int32, 0, MAX),
        field("snapshot_id", Of(&FETCH_SNAPSHOT_REQUEST_SNAPSHOT_ID), 0, MAX),
        field("position", Int64, 0, MAX),
        field("replica_directory_id", Uuid, 1, MAX).tagged(0, 1, MAX).ignorable(),
    ],
};

static FETCH_SNAPSHOT_REQUEST_SNAPSHOT_ID: Struct = Struct {
    name: "SnapshotId",
    index: 3,
    fields: &[field("end_offset", Int64, 0, MAX), field("epoch", Int32, 0, MAX)],
};

static FETCH_SNAPSHOT_RESPONSE: Struct = Struct {
    name: "FetchSnapshotResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX).ignorable(),
        field("error_code", Int16, 0, MAX),
        field("topics", Of(&FETCH_SNAPSHOT_RESPONSE_TOPIC_SNAPSHOT), 0, MAX).list(),
        field("node_endpoints", Of(&FETCH_SNAPSHOT_RESPONSE_NODE_ENDPOINT), 1, MAX)
            .list()
            .tagged(0, 1, MAX),
    ],
};

static FETCH_SNAPSHOT_RESPONSE_TOPIC_SNAPSHOT: Struct = Struct {
    name: "TopicSnapshot",
    index: 1,
    fields: &[
        field("name", String, 0, MAX),
        field("partitions", Of(&FETCH_SNAPSHOT_RESPONSE_PARTITION_SNAPSHOT), 0, MAX).list(),
    ],
};

static FETCH_SNAPSHOT_RESPONSE_PARTITION_SNAPSHOT: Struct = Struct {
    name: "PartitionSnapshot",
    index: 2,
    fields: &[
        field("index", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("snapshot_id", Of(&FETCH_SNAPSHOT_RESPONSE_SNAPSHOT_ID), 0, MAX),
        field("current_leader", Of(&FETCH_SNAPSHOT_RESPONSE_LEADER_ID_AND_EPOCH), 0, MAX)
            .tagged(0, 0, MAX),
        field("size", Int64, 0, MAX),
        field("position", Int64, 0, MAX),
        field("unaligned_records", Records, 0, MAX),
    ],
};

static FETCH_SNAPSHOT_RESPONSE_SNAPSHOT_ID: Struct = Struct {
    name: "SnapshotId",
    index: 3,
    fields: &[field("end_offset", Int64, 0, MAX), field("epoch", Int32, 0, MAX)],
};

static FETCH_SNAPSHOT_RESPONSE_LEADER_ID_AND_EPOCH: Struct = Struct {
    name: "LeaderIdAndEpoch",
    index: 4,
    fields: &[field("leader_id", Int32, 0, MAX), field("leader_epoch", Int32, 0, MAX)],
};

static FETCH_SNAPSHOT_RESPONSE_NODE_ENDPOINT: Struct = Struct {
    name: "NodeEndpoint",
    index: 5,
    fields: &[
        field("node_id", Int32, 1, MAX),
        field("host", String, 1, MAX),
        field("port", Uint16, 1, MAX),
    ],
};

static FIND_COORDINATOR_REQUEST: Struct = Struct {
    name: "FindCoordinatorRequest",
    index: 0,
    fields: &[
        field("key", String, 0, 3),
        field("key_type", Int8, 1, MAX),
        field("coordinator_keys", String, 4, MAX).list(),
    ],
};

static FIND_COORDINATOR_RESPONSE: Struct = Struct {
    name: "FindCoordinatorResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 1, MAX).ignorable(),
        field("error_code", Int16, 0, 3),
        field("error_message", String, 1, 3).nullable(1, 3).ignorable(),
        field("node_id", Int32, 0, 3),
        field("host", String, 0, 3),
        field("port", Int32, 0, 3),
        field("coordinators", Of(&FIND_COORDINATOR_RESPONSE_COORDINATOR), 4, MAX).list(),
    ],
};

static FIND_COORDINATOR_RESPONSE_COORDINATOR: Struct = Struct {
    name: "Coordinator",
    index: 1,
    fields: &[
        field("key", String, 4, MAX),
        field("node_id", Int32, 4, MAX),
        field("host", String, 4, MAX),
        field("port", Int32, 4, MAX),
        field("error_code", Int16, 4, MAX),
        field("error_message", String, 4, MAX).nullable(4, MAX).ignorable(),
    ],
};

static GET_TELEMETRY_SUBSCRIPTIONS_REQUEST: Struct = Struct {
    name: "GetTelemetrySubscriptionsRequest",
    index: 0,
    fields: &[field("client_instance_id", Uuid, 0, MAX)],
};

static GET_TELEMETRY_SUBSCRIPTIONS_RESPONSE: Struct = Struct {
    name: "GetTelemetrySubscriptionsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("client_instance_id", Uuid, 0, MAX),
        field("subscription_id", Int32, 0, MAX),
        field("accepted_compression_types", Int8, 0, MAX).list(),
        field("push_interval_ms", Int32, 0, MAX),
        field("telemetry_max_bytes", Int32, 0, MAX),
        field("delta_temporality", Bool, 0, MAX),
        field("requested_metrics", String, 0, MAX).list(),
    ],
};

static HEARTBEAT_REQUEST: Struct = Struct {
    name: "HeartbeatRequest",
    index: 0,
    fields: &[
        field("group_id", String, 0, MAX),
        field("generation_id", Int32, 0, MAX),
        field("member_id", String, 0, MAX),
        field("group_instance_id", String, 3, MAX).nullable(3, MAX).or_null(),
    ],
};

static HEARTBEAT_RESPONSE: Struct = Struct {
    name: "HeartbeatResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 1, MAX).ignorable(),
        field("error_code", Int16, 0, MAX),
    ],
};

static INCREMENTAL_ALTER_CONFIGS_REQUEST: Struct = Struct {
    name: "IncrementalAlterConfigsRequest",
    index: 0,
    fields: &[
        field("resources", Of(&INCREMENTAL_ALTER_CONFIGS_REQUEST_ALTER_CONFIGS_RESOURCE), 0, MAX)
            .list(),
        field("validate_only", Bool, 0, MAX),
    ],
};

static INCREMENTAL_ALTER_CONFIGS_REQUEST_ALTER_CONFIGS_RESOURCE: Struct = Struct {
    name: "AlterConfigsResource",
    index: 1,
    fields: &[
        field("resource_type", Int8, 0, MAX),
        field("resource_name", String, 0, MAX),
        field("configs", Of(&INCREMENTAL_ALTER_CONFIGS_REQUEST_ALTERABLE_CONFIG), 0, MAX).list(),
    ],
};

static INCREMENTAL_ALTER_CONFIGS_REQUEST_ALTERABLE_CONFIG: Struct = Struct {
    name: "AlterableConfig",
    index: 2,
    fields: &[
        field("name", String, 0, MAX),
        field("config_operation", Int8, 0, MAX),
        field("value", String, 0, MAX).nullable(0, MAX),
    ],
};

static INCREMENTAL_ALTER_CONFIGS_RESPONSE: Struct = Struct {
    name: "IncrementalAlterConfigsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field(
            "responses",
            Of(&INCREMENTAL_ALTER_CONFIGS_RESPONSE_ALTER_CONFIGS_RESOURCE_RESPONSE),
            0,
            MAX,
        )
        .list(),
    ],
};

static INCREMENTAL_ALTER_CONFIGS_RESPONSE_ALTER_CONFIGS_RESOURCE_RESPONSE: Struct = Struct {
    name: "AlterConfigsResourceResponse",
    index: 1,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX),
        field("resource_type", Int8, 0, MAX),
        field("resource_name", String, 0, MAX),
    ],
};

static INIT_PRODUCER_ID_REQUEST: Struct = Struct {
    name: "InitProducerIdRequest",
    index: 0,
    fields: &[
        field("transactional_id", String, 0, MAX).nullable(0, MAX),
        field("transaction_timeout_ms", Int32, 0, MAX),
        field("producer_id", Int64, 3, MAX).or(-1),
        field("producer_epoch", Int16, 3, MAX).or(-1),
        field("enable2_pc", Bool, 6, MAX),
        field("keep_prepared_txn", Bool, 6, MAX),
    ],
};

static INIT_PRODUCER_ID_RESPONSE: Struct = Struct {
    name: "InitProducerIdResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX).ignorable(),
        field("error_code", Int16, 0, MAX),
        field("producer_id", Int64, 0, MAX).or(-1),
        field("producer_epoch", Int16, 0, MAX),
        field("ongoing_txn_producer_id", Int64, 6, MAX).or(-1),
        field("ongoing_txn_producer_epoch", Int16, 6, MAX).or(-1),
    ],
};

static INITIALIZE_SHARE_GROUP_STATE_REQUEST: Struct = Struct {
    name: "InitializeShareGroupStateRequest",
    index: 0,
    fields: &[
        field("group_id", String, 0, MAX),
        field("topics", Of(&INITIALIZE_SHARE_GROUP_STATE_REQUEST_INITIALIZE_STATE_DATA), 0, MAX)
            .list(),
    ],
};

static INITIALIZE_SHARE_GROUP_STATE_REQUEST_INITIALIZE_STATE_DATA: Struct = Struct {
    name: "InitializeStateData",
    index: 1,
    fields: &[
        field("topic_id", Uuid, 0, MAX),
        field("partitions", Of(&INITIALIZE_SHARE_GROUP_STATE_REQUEST_PARTITION_DATA), 0, MAX)
            .list(),
    ],
};

static INITIALIZE_SHARE_GROUP_STATE_REQUEST_PARTITION_DATA: Struct = Struct {
    name: "PartitionData",
    index: 2,
    fields: &[
        field("partition", Int32, 0, MAX),
        field("state_epoch", Int32, 0, MAX),
        field("start_offset", Int64, 0, MAX),
    ],
};

static INITIALIZE_SHARE_GROUP_STATE_RESPONSE: Struct = Struct {
    name: "InitializeShareGroupStateResponse",
    index: 0,
    fields: &[field(
        "results",
        Of(&INITIALIZE_SHARE_GROUP_STATE_RESPONSE_INITIALIZE_STATE_RESULT),
        0,
        MAX,
    )
    .list()],
};

static INITIALIZE_SHARE_GROUP_STATE_RESPONSE_INITIALIZE_STATE_RESULT: Struct = Struct {
    name: "InitializeStateResult",
    index: 1,
    fields: &[
        field("topic_id", Uuid, 0, MAX),
        field("partitions", Of(&INITIALIZE_SHARE_GROUP_STATE_RESPONSE_PARTITION_RESULT), 0, MAX)
            .list(),
    ],
};

static INITIALIZE_SHARE_GROUP_STATE_RESPONSE_PARTITION_RESULT: Struct = Struct {
    name: "PartitionResult",
    index: 2,
    fields: &[
        field("partition", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
    ],
};

static JOIN_GROUP_REQUEST: Struct = Struct {
    name: "JoinGroupRequest",
    index: 0,
    fields: &[
        field("group_id", String, 0, MAX),
        field("session_timeout_ms", Int32, 0, MAX),
        field("rebalance_timeout_ms", Int32, 1, MAX).ignorable().or(-1),
        field("member_id", String, 0, MAX),
        field("group_instance_id", String, 5, MAX).nullable(5, MAX).or_null(),
        field("protocol_type", String, 0, MAX),
        field("protocols", Of(&JOIN_GROUP_REQUEST_JOIN_GROUP_REQUEST_PROTOCOL), 0, MAX).list(),
        field("reason", String, 8, MAX).nullable(8, MAX).ignorable().or_null(),
    ],
};

static JOIN_GROUP_REQUEST_JOIN_GROUP_REQUEST_PROTOCOL: Struct = Struct {
    name: "JoinGroupRequestProtocol",
    index: 1,
    fields: &[field("name", String, 0, MAX), field("metadata", Bytes, 0, MAX)],
};

static JOIN_GROUP_RESPONSE: Struct = Struct {
    name: "JoinGroupResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 2, MAX).ignorable(),
        field("error_code", Int16, 0, MAX),
        field("generation_id", Int32, 0, MAX).or(-1),
        field("protocol_type", String, 7, MAX).nullable(7, MAX).ignorable().or_null(),
        field("protocol_name", String, 0, MAX).nullable(7, MAX),
        field("leader", String, 0, MAX),
        field("skip_assignment", Bool, 9, MAX),
        field("member_id", String, 0, MAX),
        field("members", Of(&JOIN_GROUP_RESPONSE_JOIN_GROUP_RESPONSE_MEMBER), 0, MAX).list(),
    ],
};

static JOIN_GROUP_RESPONSE_JOIN_GROUP_RESPONSE_MEMBER: Struct = Struct {
    name: "JoinGroupResponseMember",
    index: 1,
    fields: &[
        field("member_id", String, 0, MAX),
        field("group_instance_id", String, 5, MAX).nullable(5, MAX).ignorable().or_null(),
        field("metadata", Bytes, 0, MAX),
    ],
};

static K_RAFT_VERSION_RECORD: Struct = Struct {
    name: "KRaftVersionRecord",
    index: 0,
    fields: &[field("version", Int16, 0, MAX), field("k_raft_version", Int16, 0, MAX)],
};

static LEADER_CHANGE_MESSAGE: Struct = Struct {
    name: "LeaderChangeMessage",
    index: 0,
    fields: &[
        field("version", Int16, 0, MAX),
        field("leader_id", Int32, 0, MAX),
        field("voters", Of(&LEADER_CHANGE_MESSAGE_VOTER), 0, MAX).list(),
        field("granting_voters", Of(&LEADER_CHANGE_MESSAGE_VOTER), 0, MAX).list(),
    ],
};

static LEADER_CHANGE_MESSAGE_VOTER: Struct = Struct {
    name: "Voter",
    index: 1,
    fields: &[field("voter_id", Int32, 0, MAX), field("voter_directory_id", Uuid, 1, MAX)],
};

static LEAVE_GROUP_REQUEST: Struct = Struct {
    name: "LeaveGroupRequest",
    index: 0,
    fields: &[
        field("group_id", String, 0, MAX),
        field("member_id", String, 0, 2),
        field("members", Of(&LEAVE_GROUP_REQUEST_MEMBER_IDENTITY), 3, MAX).list(),
    ],
};

static LEAVE_GROUP_REQUEST_MEMBER_IDENTITY: Struct = Struct {
    name: "MemberIdentity",
    index: 1,
    fields: &[
        field("member_id", String, 3, MAX),
        field("group_instance_id", String, 3, MAX).nullable(3, MAX).or_null(),
        field("reason", String, 5, MAX).nullable(5, MAX).ignorable().or_null(),
    ],
};

static LEAVE_GROUP_RESPONSE: Struct = Struct {
    name: "LeaveGroupResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 1, MAX).ignorable(),
        field("error_code", Int16, 0, MAX),
        field("members", Of(&LEAVE_GROUP_RESPONSE_MEMBER_RESPONSE), 3, MAX).list(),
    ],
};

static LEAVE_GROUP_RESPONSE_MEMBER_RESPONSE: Struct = Struct {
    name: "MemberResponse",
    index: 1,
    fields: &[
        field("member_id", String, 3, MAX),
        field("group_instance_id", String, 3, MAX).nullable(3, MAX),
        field("error_code", Int16, 3, MAX),
    ],
};

static LIST_CONFIG_RESOURCES_REQUEST: Struct = Struct {
    name: "ListConfigResourcesRequest",
    index: 0,
    fields: &[field("resource_types", Int8, 1, MAX).list()],
};

static LIST_CONFIG_RESOURCES_RESPONSE: Struct = Struct {
    name: "ListConfigResourcesResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("config_resources", Of(&LIST_CONFIG_RESOURCES_RESPONSE_CONFIG_RESOURCE), 0, MAX)
            .list(),
    ],
};

static LIST_CONFIG_RESOURCES_RESPONSE_CONFIG_RESOURCE: Struct = Struct {
    name: "ConfigResource",
    index: 1,
    fields: &[
        field("resource_name", String, 0, MAX),
        field("resource_type", Int8, 1, MAX).ignorable().or(16),
    ],
};

static LIST_GROUPS_REQUEST: Struct = Struct {
    name: "ListGroupsRequest",
    index: 0,
    fields: &[
        field("states_filter", String, 4, MAX).list(),
        field("types_filter", String, 5, MAX).list(),
    ],
};

static LIST_GROUPS_RESPONSE: Struct = Struct {
    name: "ListGroupsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 1, MAX).ignorable(),
        field("error_code", Int16, 0, MAX),
        field("groups", Of(&LIST_GROUPS_RESPONSE_LISTED_GROUP), 0, MAX).list(),
    ],
};

static LIST_GROUPS_RESPONSE_LISTED_GROUP: Struct = Struct {
    name: "ListedGroup",
    index: 1,
    fields: &[
        field("group_id", String, 0, MAX),
        field("protocol_type", String, 0, MAX),
        field("group_state", String, 4, MAX).ignorable(),
        field("group_type", String, 5, MAX).ignorable(),
    ],
};

static LIST_OFFSETS_REQUEST: Struct = Struct {
    name: "ListOffsetsRequest",
    index: 0,
    fields: &[
        field("replica_id", Int32, 0, MAX),
        field("isolation_level", Int8, 2, MAX),
        field("topics", Of(&LIST_OFFSETS_REQUEST_LIST_OFFSETS_TOPIC), 0, MAX).list(),
        field("timeout_ms", Int32, 10, MAX).ignorable(),
    ],
};

static LIST_OFFSETS_REQUEST_LIST_OFFSETS_TOPIC: Struct = Struct {
    name: "ListOffsetsTopic",
    index: 1,
    fields: &[
        field("name", String, 0, MAX),
        field("partitions", Of(&LIST_OFFSETS_REQUEST_LIST_OFFSETS_PARTITION), 0, MAX).list(),
    ],
};

static LIST_OFFSETS_REQUEST_LIST_OFFSETS_PARTITION: Struct = Struct {
    name: "ListOffsetsPartition",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("current_leader_epoch", Int32, 4, MAX).ignorable().or(-1),
        field("timestamp", Int64, 0, MAX),
    ],
};

static LIST_OFFSETS_RESPONSE: Struct = Struct {
    name: "ListOffsetsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 2, MAX).ignorable(),
        field("topics", Of(&LIST_OFFSETS_RESPONSE_LIST_OFFSETS_TOPIC_RESPONSE), 0, MAX).list(),
    ],
};

static LIST_OFFSETS_RESPONSE_LIST_OFFSETS_TOPIC_RESPONSE: Struct = Struct {
    name: "ListOffsetsTopicResponse",
    index: 1,
    fields: &[
        field("name", String, 0, MAX),
        field("partitions", Of(&LIST_OFFSETS_RESPONSE_LIST_OFFSETS_PARTITION_RESPONSE), 0, MAX)
            .list(),
    ],
};

static LIST_OFFSETS_RESPONSE_LIST_OFFSETS_PARTITION_RESPONSE: Struct = Struct {
    name: "ListOffsetsPartitionResponse",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("timestamp", Int64, 1, MAX).or(-1),
        field("offset", Int64, 1, MAX).or(-1),
        field("leader_epoch", Int32, 4, MAX).or(-1),
    ],
};

static LIST_PARTITION_REASSIGNMENTS_REQUEST: Struct = Struct {
    name: "ListPartitionReassignmentsRequest",
    index: 0,
    fields: &[
        field("timeout_ms", Int32, 0, MAX).or(60_000),
        field(
            "topics",
            Of(&LIST_PARTITION_REASSIGNMENTS_REQUEST_LIST_PARTITION_REASSIGNMENTS_TOPICS),
            0,
            MAX,
        )
        .list()
        .nullable(0, MAX)
        .or_null(),
    ],
};

static LIST_PARTITION_REASSIGNMENTS_REQUEST_LIST_PARTITION_REASSIGNMENTS_TOPICS: Struct = Struct {
    name: "ListPartitionReassignmentsTopics",
    index: 1,
    fields: &[field("name", String, 0, MAX), field("partition_indexes", Int32, 0, MAX).list()],
};

static LIST_PARTITION_REASSIGNMENTS_RESPONSE: Struct = Struct {
    name: "ListPartitionReassignmentsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX),
        field(
            "topics",
            Of(&LIST_PARTITION_REASSIGNMENTS_RESPONSE_ONGOING_TOPIC_REASSIGNMENT),
            0,
            MAX,
        )
        .list(),
    ],
};

static LIST_PARTITION_REASSIGNMENTS_RESPONSE_ONGOING_TOPIC_REASSIGNMENT: Struct = Struct {
    name: "OngoingTopicReassignment",
    index: 1,
    fields: &[
        field("name", String, 0, MAX),
        field(
            "partitions",
            Of(&LIST_PARTITION_REASSIGNMENTS_RESPONSE_ONGOING_PARTITION_REASSIGNMENT),
            0,
            MAX,
        )
        .list(),
    ],
};

static LIST_PARTITION_REASSIGNMENTS_RESPONSE_ONGOING_PARTITION_REASSIGNMENT: Struct = Struct {
    name: "OngoingPartitionReassignment",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("replicas", Int32, 0, MAX).list(),
        field("adding_replicas", Int32, 0, MAX).list(),
        field("removing_replicas", Int32, 0, MAX).list(),
    ],
};

static LIST_TRANSACTIONS_REQUEST: Struct = Struct {
    name: "ListTransactionsRequest",
    index: 0,
    fields: &[
        field("state_filters", String, 0, MAX).list(),
        field("producer_id_filters", Int64, 0, MAX).list(),
        field("duration_filter", Int64, 1, MAX).or(-1),
        field("transactional_id_pattern", String, 2, MAX).nullable(2, MAX).or_null(),
    ],
};

static LIST_TRANSACTIONS_RESPONSE: Struct = Struct {
    name: "ListTransactionsResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("unknown_state_filters", String, 0, MAX).list(),
        field("transaction_states", Of(&LIST_TRANSACTIONS_RESPONSE_TRANSACTION_STATE), 0, MAX)
            .list(),
    ],
};

static LIST_TRANSACTIONS_RESPONSE_TRANSACTION_STATE: Struct = Struct {
    name: "TransactionState",
    index: 1,
    fields: &[
        field("transactional_id", String, 0, MAX),
        field("producer_id", Int64, 0, MAX),
        field("transaction_state", String, 0, MAX),
    ],
};

static METADATA_REQUEST: Struct = Struct {
    name: "MetadataRequest",
    index: 0,
    fields: &[
        field("topics", Of(&METADATA_REQUEST_METADATA_REQUEST_TOPIC), 0, MAX)
            .list()
            .nullable(1, MAX),
        field("allow_auto_topic_creation", Bool, 4, MAX).or(1),
        field("include_cluster_authorized_operations", Bool, 8, 10),
        field("include_topic_authorized_operations", Bool, 8, MAX),
    ],
};

static METADATA_REQUEST_METADATA_REQUEST_TOPIC: Struct = Struct {
    name: "MetadataRequestTopic",
    index: 1,
    fields: &[
        field("topic_id", Uuid, 10, MAX).ignorable(),
        field("name", String, 0, MAX).nullable(10, MAX),
    ],
};

static METADATA_RESPONSE: Struct = Struct {
    name: "MetadataResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 3, MAX).ignorable(),
        field("brokers", Of(&METADATA_RESPONSE_METADATA_RESPONSE_BROKER), 0, MAX).list(),
        field("cluster_id", String, 2, MAX).nullable(2, MAX).ignorable().or_null(),
        field("controller_id", Int32, 1, MAX).ignorable().or(-1),
        field("topics", Of(&METADATA_RESPONSE_METADATA_RESPONSE_TOPIC), 0, MAX).list(),
        field("cluster_authorized_operations", Int32, 8, 10).or(-2_147_483_648),
        field("error_code", Int16, 13, MAX).ignorable(),
    ],
};

static METADATA_RESPONSE_METADATA_RESPONSE_BROKER: Struct = Struct {
    name: "MetadataResponseBroker",
    index: 1,
    fields: &[
        field("node_id", Int32, 0, MAX),
        field("host", String, 0, MAX),
        field("port", Int32, 0, MAX),
        field("rack", String, 1, MAX).nullable(1, MAX).ignorable().or_null(),
    ],
};

static METADATA_RESPONSE_METADATA_RESPONSE_TOPIC: Struct = Struct {
    name: "MetadataResponseTopic",
    index: 2,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("name", String, 0, MAX).nullable(12, MAX),
        field("topic_id", Uuid, 10, MAX).ignorable(),
        field("is_internal", Bool, 1, MAX).ignorable(),
        field("partitions", Of(&METADATA_RESPONSE_METADATA_RESPONSE_PARTITION), 0, MAX).list(),
        field("topic_authorized_operations", Int32, 8, MAX).or(-2_147_483_648),
    ],
};

static METADATA_RESPONSE_METADATA_RESPONSE_PARTITION: Struct = Struct {
    name: "MetadataResponsePartition",
    index: 3,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("partition_index", Int32, 0, MAX),
        field("leader_id", Int32, 0, MAX),
        field("leader_epoch", Int32, 7, MAX).ignorable().or(-1),
        field("replica_nodes", Int32, 0, MAX).list(),
        field("isr_nodes", Int32, 0, MAX).list(),
        field("offline_replicas", Int32, 5, MAX).list().ignorable(),
    ],
};

static OFFSET_COMMIT_REQUEST: Struct = Struct {
    name: "OffsetCommitRequest",
    index: 0,
    fields: &[
        field("group_id", String, 0, MAX),
        field("generation_id_or_member_epoch", Int32, 1, MAX).ignorable().or(-1),
        field("member_id", String, 1, MAX).ignorable(),
        field("group_instance_id", String, 7, MAX).nullable(7, MAX).or_null(),
        field("retention_time_ms", Int64, 2, 4).ignorable().or(-1),
        field("topics", Of(&OFFSET_COMMIT_REQUEST_OFFSET_COMMIT_REQUEST_TOPIC), 0, MAX).list(),
    ],
};

static OFFSET_COMMIT_REQUEST_OFFSET_COMMIT_REQUEST_TOPIC: Struct = Struct {
    name: "OffsetCommitRequestTopic",
    index: 1,
    fields: &[
        field("name", String, 0, 9).ignorable(),
        field("topic_id", Uuid, 10, MAX).ignorable(),
        field("partitions", Of(&OFFSET_COMMIT_REQUEST_OFFSET_COMMIT_REQUEST_PARTITION), 0, MAX)
            .list(),
    ],
};

static OFFSET_COMMIT_REQUEST_OFFSET_COMMIT_REQUEST_PARTITION: Struct = Struct {
    name: "OffsetCommitRequestPartition",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("committed_offset", Int64, 0, MAX),
        field("committed_leader_epoch", Int32, 6, MAX).ignorable().or(-1),
        field("committed_metadata", String, 0, MAX).nullable(0, MAX),
    ],
};

static OFFSET_COMMIT_RESPONSE: Struct = Struct {
    name: "OffsetCommitResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 3, MAX).ignorable(),
        field("topics", Of(&OFFSET_COMMIT_RESPONSE_OFFSET_COMMIT_RESPONSE_TOPIC), 0, MAX).list(),
    ],
};

static OFFSET_COMMIT_RESPONSE_OFFSET_COMMIT_RESPONSE_TOPIC: Struct = Struct {
    name: "OffsetCommitResponseTopic",
    index: 1,
    fields: &[
        field("name", String, 0, 9).ignorable(),
        field("topic_id", Uuid, 10, MAX).ignorable(),
        field("partitions", Of(&OFFSET_COMMIT_RESPONSE_OFFSET_COMMIT_RESPONSE_PARTITION), 0, MAX)
            .list(),
    ],
};

static OFFSET_COMMIT_RESPONSE_OFFSET_COMMIT_RESPONSE_PARTITION: Struct = Struct {
    name: "OffsetCommitResponsePartition",
    index: 2,
    fields: &[field("partition_index", Int32, 0, MAX), field("error_code", Int16, 0, MAX)],
};

static OFFSET_DELETE_REQUEST: Struct = Struct {
    name: "OffsetDeleteRequest",
    index: 0,
    fields: &[
        field("group_id", String, 0, MAX),
        field("topics", Of(&OFFSET_DELETE_REQUEST_OFFSET_DELETE_REQUEST_TOPIC), 0, MAX).list(),
    ],
};

static OFFSET_DELETE_REQUEST_OFFSET_DELETE_REQUEST_TOPIC: Struct = Struct {
    name: "OffsetDeleteRequestTopic",
    index: 1,
    fields: &[
        field("name", String, 0, MAX),
        field("partitions", Of(&OFFSET_DELETE_REQUEST_OFFSET_DELETE_REQUEST_PARTITION), 0, MAX)
            .list(),
    ],
};

static OFFSET_DELETE_REQUEST_OFFSET_DELETE_REQUEST_PARTITION: Struct = Struct {
    name: "OffsetDeleteRequestPartition",
    index: 2,
    fields: &[field("partition_index", Int32, 0, MAX)],
};

static OFFSET_DELETE_RESPONSE: Struct = Struct {
    name: "OffsetDeleteResponse",
    index: 0,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("throttle_time_ms", Int32, 0, MAX).ignorable(),
        field("topics", Of(&OFFSET_DELETE_RESPONSE_OFFSET_DELETE_RESPONSE_TOPIC), 0, MAX).list(),
    ],
};

static OFFSET_DELETE_RESPONSE_OFFSET_DELETE_RESPONSE_TOPIC: Struct = Struct {
    name: "OffsetDeleteResponseTopic",
    index: 1,
    fields: &[
        field("name", String, 0, MAX),
        field("partitions", Of(&OFFSET_DELETE_RESPONSE_OFFSET_DELETE_RESPONSE_PARTITION), 0, MAX)
            .list(),
    ],
};

static OFFSET_DELETE_RESPONSE_OFFSET_DELETE_RESPONSE_PARTITION: Struct = Struct {
    name: "OffsetDeleteResponsePartition",
    index: 2,
    fields: &[field("partition_index", Int32, 0, MAX), field("error_code", Int16, 0, MAX)],
};

static OFFSET_FETCH_REQUEST: Struct = Struct {
    name: "OffsetFetchRequest",
    index: 0,
    fields: &[
        field("group_id", String, 0, 7),
        field("topics", Of(&OFFSET_FETCH_REQUEST_OFFSET_FETCH_REQUEST_TOPIC), 0, 7)
            .list()
            .nullable(2, 7),
        field("groups", Of(&OFFSET_FETCH_REQUEST_OFFSET_FETCH_REQUEST_GROUP), 8, MAX).list(),
        field("require_stable", Bool, 7, MAX),
    ],
};

static OFFSET_FETCH_REQUEST_OFFSET_FETCH_REQUEST_TOPIC: Struct = Struct {
    name: "OffsetFetchRequestTopic",
    index: 1,
    fields: &[field("name", String, 0, 7), field("partition_indexes", Int32, 0, 7).list()],
};

static OFFSET_FETCH_REQUEST_OFFSET_FETCH_REQUEST_GROUP: Struct = Struct {
    name: "OffsetFetchRequestGroup",
    index: 2,
    fields: &[
        field("group_id", String, 8, MAX),
        field("member_id", String, 9, MAX).nullable(9, MAX).ignorable().or_null(),
        field("member_epoch", Int32, 9, MAX).ignorable().or(-1),
        field("topics", Of(&OFFSET_FETCH_REQUEST_OFFSET_FETCH_REQUEST_TOPICS), 8, MAX)
            .list()
            .nullable(8, MAX),
    ],
};

static OFFSET_FETCH_REQUEST_OFFSET_FETCH_REQUEST_TOPICS: Struct = Struct {
    name: "OffsetFetchRequestTopics",
    index: 3,
    fields: &[
        field("name", String, 8, 9).ignorable(),
        field("topic_id", Uuid, 10, MAX).ignorable(),
        field("partition_indexes", Int32, 8, MAX).list(),
    ],
};

static OFFSET_FETCH_RESPONSE: Struct = Struct {
    name: "OffsetFetchResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 3, MAX).ignorable(),
        field("topics", Of(&OFFSET_FETCH_RESPONSE_OFFSET_FETCH_RESPONSE_TOPIC), 0, 7).list(),
        field("error_code", Int16, 2, 7).ignorable(),
        field("groups", Of(&OFFSET_FETCH_RESPONSE_OFFSET_FETCH_RESPONSE_GROUP), 8, MAX).list(),
    ],
};

static OFFSET_FETCH_RESPONSE_OFFSET_FETCH_RESPONSE_TOPIC: Struct = Struct {
    name: "OffsetFetchResponseTopic",
    index: 1,
    fields: &[
        field("name", String, 0, 7),
        field("partitions", Of(&OFFSET_FETCH_RESPONSE_OFFSET_FETCH_RESPONSE_PARTITION), 0, 7)
            .list(),
    ],
};

static OFFSET_FETCH_RESPONSE_OFFSET_FETCH_RESPONSE_PARTITION: Struct = Struct {
    name: "OffsetFetchResponsePartition",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, 7),
        field("committed_offset", Int64, 0, 7),
        field("committed_leader_epoch", Int32, 5, 7).ignorable().or(-1),
        field("metadata", String, 0, 7).nullable(0, 7),
        field("error_code", Int16, 0, 7),
    ],
};

static OFFSET_FETCH_RESPONSE_OFFSET_FETCH_RESPONSE_GROUP: Struct = Struct {
    name: "OffsetFetchResponseGroup",
    index: 3,
    fields: &[
        field("group_id", String, 8, MAX),
        field("topics", Of(&OFFSET_FETCH_RESPONSE_OFFSET_FETCH_RESPONSE_TOPICS), 8, MAX).list(),
        field("error_code", Int16, 8, MAX),
    ],
};

static OFFSET_FETCH_RESPONSE_OFFSET_FETCH_RESPONSE_TOPICS: Struct = Struct {
    name: "OffsetFetchResponseTopics",
    index: 4,
    fields: &[
        field("name", String, 8, 9).ignorable(),
        field("topic_id", Uuid, 10, MAX).ignorable(),
        field("partitions", Of(&OFFSET_FETCH_RESPONSE_OFFSET_FETCH_RESPONSE_PARTITIONS), 8, MAX)
            .list(),
    ],
};

static OFFSET_FETCH_RESPONSE_OFFSET_FETCH_RESPONSE_PARTITIONS: Struct = Struct {
    name: "OffsetFetchResponsePartitions",
    index: 5,
    fields: &[
        field("partition_index", Int32, 8, MAX),
        field("committed_offset", Int64, 8, MAX),
        field("committed_leader_epoch", Int32, 8, MAX).ignorable().or(-1),
        field("metadata", String, 8, MAX).nullable(8, MAX),
        field("error_code", Int16, 8, MAX),
    ],
};

static OFFSET_FOR_LEADER_EPOCH_REQUEST: Struct = Struct {
    name: "OffsetForLeaderEpochRequest",
    index: 0,
    fields: &[
        field("replica_id", Int32, 3, MAX).ignorable().or(-2),
        field("topics", Of(&OFFSET_FOR_LEADER_EPOCH_REQUEST_OFFSET_FOR_LEADER_TOPIC), 0, MAX)
            .list(),
    ],
};

static OFFSET_FOR_LEADER_EPOCH_REQUEST_OFFSET_FOR_LEADER_TOPIC: Struct = Struct {
    name: "OffsetForLeaderTopic",
    index: 1,
    fields: &[
        field("topic", String, 0, MAX),
        field(
            "partitions",
            Of(&OFFSET_FOR_LEADER_EPOCH_REQUEST_OFFSET_FOR_LEADER_PARTITION),
            0,
            MAX,
        )
        .list(),
    ],
};

static OFFSET_FOR_LEADER_EPOCH_REQUEST_OFFSET_FOR_LEADER_PARTITION: Struct = Struct {
    name: "OffsetForLeaderPartition",
    index: 2,
    fields: &[
        field("partition", Int32, 0, MAX),
        field("current_leader_epoch", Int32, 2, MAX).ignorable().or(-1),
        field("leader_epoch", Int32, 0, MAX),
    ],
};

static OFFSET_FOR_LEADER_EPOCH_RESPONSE: Struct = Struct {
    name: "OffsetForLeaderEpochResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 2, MAX).ignorable(),
        field(
            "topics",
            Of(&OFFSET_FOR_LEADER_EPOCH_RESPONSE_OFFSET_FOR_LEADER_TOPIC_RESULT),
            0,
            MAX,
        )
        .list(),
    ],
};

static OFFSET_FOR_LEADER_EPOCH_RESPONSE_OFFSET_FOR_LEADER_TOPIC_RESULT: Struct = Struct {
    name: "OffsetForLeaderTopicResult",
    index: 1,
    fields: &[
        field("topic", String, 0, MAX),
        field("partitions", Of(&OFFSET_FOR_LEADER_EPOCH_RESPONSE_EPOCH_END_OFFSET), 0, MAX).list(),
    ],
};

static OFFSET_FOR_LEADER_EPOCH_RESPONSE_EPOCH_END_OFFSET: Struct = Struct {
    name: "EpochEndOffset",
    index: 2,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("partition", Int32, 0, MAX),
        field("leader_epoch", Int32, 1, MAX).ignorable().or(-1),
        field("end_offset", Int64, 0, MAX).or(-1),
    ],
};

static PRODUCE_REQUEST: Struct = Struct {
    name: "ProduceRequest",
    index: 0,
    fields: &[
        field("transactional_id", String, 3, MAX).nullable(3, MAX).or_null(),
        field("acks", Int16, 0, MAX),
        field("timeout_ms", Int32, 0, MAX),
        field("topic_data", Of(&PRODUCE_REQUEST_TOPIC_PRODUCE_DATA), 0, MAX).list(),
    ],
};

static PRODUCE_REQUEST_TOPIC_PRODUCE_DATA: Struct = Struct {
    name: "TopicProduceData",
    index: 1,
    fields: &[
        field("name", String, 0, 12).ignorable(),
        field("topic_id", Uuid, 13, MAX).ignorable(),
        field("partition_data", Of(&PRODUCE_REQUEST_PARTITION_PRODUCE_DATA), 0, MAX).list(),
    ],
};

static PRODUCE_REQUEST_PARTITION_PRODUCE_DATA: Struct = Struct {
    name: "PartitionProduceData",
    index: 2,
    fields: &[field("index", Int32, 0, MAX), field("records", Records, 0, MAX).nullable(0, MAX)],
};

static PRODUCE_RESPONSE: Struct = Struct {
    name: "ProduceResponse",
    index: 0,
    fields: &[
        field("responses", Of(&PRODUCE_RESPONSE_TOPIC_PRODUCE_RESPONSE), 0, MAX).list(),
        field("throttle_time_ms", Int32, 1, MAX).ignorable(),
        field("node_endpoints", Of(&PRODUCE_RESPONSE_NODE_ENDPOINT), 10, MAX)
            .list()
            .tagged(0, 10, MAX),
    ],
};

static PRODUCE_RESPONSE_TOPIC_PRODUCE_RESPONSE: Struct = Struct {
    name: "TopicProduceResponse",
    index: 1,
    fields: &[
        field("name", String, 0, 12).ignorable(),
        field("topic_id", Uuid, 13, MAX).ignorable(),
        field("partition_responses", Of(&PRODUCE_RESPONSE_PARTITION_PRODUCE_RESPONSE), 0, MAX)
            .list(),
    ],
};

static PRODUCE_RESPONSE_PARTITION_PRODUCE_RESPONSE: Struct = Struct {
    name: "PartitionProduceResponse",
    index: 2,
    fields: &[
        field("index", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("base_offset", Int64, 0, MAX),
        field("log_append_time_ms", Int64, 2, MAX).ignorable().or(-1),
        field("log_start_offset", Int64, 5, MAX).ignorable().or(-1),
        field("record_errors", Of(&PRODUCE_RESPONSE_BATCH_INDEX_AND_ERROR_MESSAGE), 8, MAX)
            .list()
            .ignorable(),
        field("error_message", String, 8, MAX).nullable(8, MAX).ignorable().or_null(),
        field("current_leader", Of(&PRODUCE_RESPONSE_LEADER_ID_AND_EPOCH), 10, MAX)
            .tagged(0, 10, MAX),
    ],
};

static PRODUCE_RESPONSE_BATCH_INDEX_AND_ERROR_MESSAGE: Struct = Struct {
    name: "BatchIndexAndErrorMessage",
    index: 3,
    fields: &[
        field("batch_index", Int32, 8, MAX),
        field("batch_index_error_message", String, 8, MAX).nullable(8, MAX).or_null(),
    ],
};

static PRODUCE_RESPONSE_LEADER_ID_AND_EPOCH: Struct = Struct {
    name: "LeaderIdAndEpoch",
    index: 4,
    fields: &[
        field("leader_id", Int32, 10, MAX).or(-1),
        field("leader_epoch", Int32, 10, MAX).or(-1),
    ],
};

static PRODUCE_RESPONSE_NODE_ENDPOINT: Struct = Struct {
    name: "NodeEndpoint",
    index: 5,
    fields: &[
        field("node_id", Int32, 10, MAX),
        field("host", String, 10, MAX),
        field("port", Int32, 10, MAX),
        field("rack", String, 10, MAX).nullable(10, MAX).or_null(),
    ],
};

static PUSH_TELEMETRY_REQUEST: Struct = Struct {
    name: "PushTelemetryRequest",
    index: 0,
    fields: &[
        field("client_instance_id", Uuid, 0, MAX),
        field("subscription_id", Int32, 0, MAX),
        field("terminating", Bool, 0, MAX),
        field("compression_type", Int8, 0, MAX),
        field("metrics", Bytes, 0, MAX),
    ],
};

static PUSH_TELEMETRY_RESPONSE: Struct = Struct {
    name: "PushTelemetryResponse",
    index: 0,
    fields: &[field("throttle_time_ms", Int32, 0, MAX), field("error_code", Int16, 0, MAX)],
};

static READ_SHARE_GROUP_STATE_REQUEST: Struct = Struct {
    name: "ReadShareGroupStateRequest",
    index: 0,
    fields: &[
        field("group_id", String, 0, MAX),
        field("topics", Of(&READ_SHARE_GROUP_STATE_REQUEST_READ_STATE_DATA), 0, MAX).list(),
    ],
};

static READ_SHARE_GROUP_STATE_REQUEST_READ_STATE_DATA: Struct = Struct {
    name: "ReadStateData",
    index: 1,
    fields: &[
        field("topic_id", Uuid, 0, MAX),
        field("partitions", Of(&READ_SHARE_GROUP_STATE_REQUEST_PARTITION_DATA), 0, MAX).list(),
    ],
};

static READ_SHARE_GROUP_STATE_REQUEST_PARTITION_DATA: Struct = Struct {
    name: "PartitionData",
    index: 2,
    fields: &[field("partition", Int32, 0, MAX), field("leader_epoch", Int32, 0, MAX)],
};

static READ_SHARE_GROUP_STATE_RESPONSE: Struct = Struct {
    name: "ReadShareGroupStateResponse",
    index: 0,
    fields: &[
        field("results", Of(&READ_SHARE_GROUP_STATE_RESPONSE_READ_STATE_RESULT), 0, MAX).list()
    ],
};

static READ_SHARE_GROUP_STATE_RESPONSE_READ_STATE_RESULT: Struct = Struct {
    name: "ReadStateResult",
    index: 1,
    fields: &[
        field("topic_id", Uuid, 0, MAX),
        field("partitions", Of(&READ_SHARE_GROUP_STATE_RESPONSE_PARTITION_RESULT), 0, MAX).list(),
    ],
};

static READ_SHARE_GROUP_STATE_RESPONSE_PARTITION_RESULT: Struct = Struct {
    name: "PartitionResult",
    index: 2,
    fields: &[
        field("partition", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
        field("state_epoch", Int32, 0, MAX),
        field("start_offset", Int64, 0, MAX),
        field("state_batches", Of(&READ_SHARE_GROUP_STATE_RESPONSE_STATE_BATCH), 0, MAX).list(),
    ],
};

static READ_SHARE_GROUP_STATE_RESPONSE_STATE_BATCH: Struct = Struct {
    name: "StateBatch",
    index: 3,
    fields: &[
        field("first_offset", Int64, 0, MAX),
        field("last_offset", Int64, 0, MAX),
        field("delivery_state", Int8, 0, MAX),
        field("delivery_count", Int16, 0, MAX),
    ],
};

static READ_SHARE_GROUP_STATE_SUMMARY_REQUEST: Struct = Struct {
    name: "ReadShareGroupStateSummaryRequest",
    index: 0,
    fields: &[
        field("group_id", String, 0, MAX),
        field(
            "topics",
            Of(&READ_SHARE_GROUP_STATE_SUMMARY_REQUEST_READ_STATE_SUMMARY_DATA),
            0,
            MAX,
        )
        .list(),
    ],
};

static READ_SHARE_GROUP_STATE_SUMMARY_REQUEST_READ_STATE_SUMMARY_DATA: Struct = Struct {
    name: "ReadStateSummaryData",
    index: 1,
    fields: &[
        field("topic_id", Uuid, 0, MAX),
        field("partitions", Of(&READ_SHARE_GROUP_STATE_SUMMARY_REQUEST_PARTITION_DATA), 0, MAX)
            .list(),
    ],
};

static READ_SHARE_GROUP_STATE_SUMMARY_REQUEST_PARTITION_DATA: Struct = Struct {
    name: "PartitionData",
    index: 2,
    fields: &[field("partition", Int32, 0, MAX), field("leader_epoch", Int32, 0, MAX)],
};

static READ_SHARE_GROUP_STATE_SUMMARY_RESPONSE: Struct = Struct {
    name: "ReadShareGroupStateSummaryResponse",
    index: 0,
    fields: &[field(
        "results",
        Of(&READ_SHARE_GROUP_STATE_SUMMARY_RESPONSE_READ_STATE_SUMMARY_RESULT),
        0,
        MAX,
    )
    .list()],
};

static READ_SHARE_GROUP_STATE_SUMMARY_RESPONSE_READ_STATE_SUMMARY_RESULT: Struct = Struct {
    name: "ReadStateSummaryResult",
    index: 1,
    fields: &[
        field("topic_id", Uuid, 0, MAX),
        field("partitions", Of(&READ_SHARE_GROUP_STATE_SUMMARY_RESPONSE_PARTITION_RESULT), 0, MAX)
            .list(),
    ],
};

static READ_SHARE_GROUP_STATE_SUMMARY_RESPONSE_PARTITION_RESULT: Struct = Struct {
    name: "PartitionResult",
    index: 2,
    fields: &[
        field("partition", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
        field("state_epoch", Int32, 0, MAX),
        field("leader_epoch", Int32, 0, MAX),
        field("start_offset", Int64, 0, MAX),
        field("delivery_complete_count", Int32, 1, MAX).ignorable().or(-1),
    ],
};

static REMOVE_RAFT_VOTER_REQUEST: Struct = Struct {
    name: "RemoveRaftVoterRequest",
    index: 0,
    fields: &[
        field("cluster_id", String, 0, MAX).nullable(0, MAX),
        field("voter_id", Int32, 0, MAX),
        field("voter_directory_id", Uuid, 0, MAX),
    ],
};

static REMOVE_RAFT_VOTER_RESPONSE: Struct = Struct {
    name: "RemoveRaftVoterResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).ignorable(),
    ],
};

static RENEW_DELEGATION_TOKEN_REQUEST: Struct = Struct {
    name: "RenewDelegationTokenRequest",
    index: 0,
    fields: &[field("hmac", Bytes, 0, MAX), field("renew_period_ms", Int64, 0, MAX)],
};

static RENEW_DELEGATION_TOKEN_RESPONSE: Struct = Struct {
    name: "RenewDelegationTokenResponse",
    index: 0,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("expiry_timestamp_ms", Int64, 0, MAX),
        field("throttle_time_ms", Int32, 0, MAX),
    ],
};

static SASL_AUTHENTICATE_REQUEST: Struct = Struct {
    name: "SaslAuthenticateRequest",
    index: 0,
    fields: &[field("auth_bytes", Bytes, 0, MAX)],
};

static SASL_AUTHENTICATE_RESPONSE: Struct = Struct {
    name: "SaslAuthenticateResponse",
    index: 0,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX),
        field("auth_bytes", Bytes, 0, MAX),
        field("session_lifetime_ms", Int64, 1, MAX).ignorable(),
    ],
};

static SASL_HANDSHAKE_REQUEST: Struct = Struct {
    name: "SaslHandshakeRequest",
    index: 0,
    fields: &[field("mechanism", String, 0, MAX)],
};

static SASL_HANDSHAKE_RESPONSE: Struct = Struct {
    name: "SaslHandshakeResponse",
    index: 0,
    fields: &[field("error_code", Int16, 0, MAX), field("mechanisms", String, 0, MAX).list()],
};

static SHARE_ACKNOWLEDGE_REQUEST: Struct = Struct {
    name: "ShareAcknowledgeRequest",
    index: 0,
    fields: &[
        field("group_id", String, 0, MAX).nullable(0, MAX).or_null(),
        field("member_id", String, 0, MAX).nullable(0, MAX),
        field("share_session_epoch", Int32, 0, MAX),
        field("is_renew_ack", Bool, 2, MAX),
        field("topics", Of(&SHARE_ACKNOWLEDGE_REQUEST_ACKNOWLEDGE_TOPIC), 0, MAX).list(),
    ],
};

static SHARE_ACKNOWLEDGE_REQUEST_ACKNOWLEDGE_TOPIC: Struct = Struct {
    name: "AcknowledgeTopic",
    index: 1,
    fields: &[
        field("topic_id", Uuid, 0, MAX),
        field("partitions", Of(&SHARE_ACKNOWLEDGE_REQUEST_ACKNOWLEDGE_PARTITION), 0, MAX).list(),
    ],
};

static SHARE_ACKNOWLEDGE_REQUEST_ACKNOWLEDGE_PARTITION: Struct = Struct {
    name: "AcknowledgePartition",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field(
            "acknowledgement_batches",
            Of(&SHARE_ACKNOWLEDGE_REQUEST_ACKNOWLEDGEMENT_BATCH),
            0,
            MAX,
        )
        .list(),
    ],
};

static SHARE_ACKNOWLEDGE_REQUEST_ACKNOWLEDGEMENT_BATCH: Struct = Struct {
    name: "AcknowledgementBatch",
    index: 3,
    fields: &[
        field("first_offset", Int64, 0, MAX),
        field("last_offset", Int64, 0, MAX),
        field("acknowledge_types", Int8, 0, MAX).list(),
    ],
};

static SHARE_ACKNOWLEDGE_RESPONSE: Struct = Struct {
    name: "ShareAcknowledgeResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
        field("acquisition_lock_timeout_ms", Int32, 2, MAX).ignorable(),
        field(
            "responses",
            Of(&SHARE_ACKNOWLEDGE_RESPONSE_SHARE_ACKNOWLEDGE_TOPIC_RESPONSE),
            0,
            MAX,
        )
        .list(),
        field("node_endpoints", Of(&SHARE_ACKNOWLEDGE_RESPONSE_NODE_ENDPOINT), 0, MAX).list(),
    ],
};

static SHARE_ACKNOWLEDGE_RESPONSE_SHARE_ACKNOWLEDGE_TOPIC_RESPONSE: Struct = Struct {
    name: "ShareAcknowledgeTopicResponse",
    index: 1,
    fields: &[
        field("topic_id", Uuid, 0, MAX),
        field("partitions", Of(&SHARE_ACKNOWLEDGE_RESPONSE_PARTITION_DATA), 0, MAX).list(),
    ],
};

static SHARE_ACKNOWLEDGE_RESPONSE_PARTITION_DATA: Struct = Struct {
    name: "PartitionData",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
        field("current_leader", Of(&SHARE_ACKNOWLEDGE_RESPONSE_LEADER_ID_AND_EPOCH), 0, MAX),
    ],
};

static SHARE_ACKNOWLEDGE_RESPONSE_LEADER_ID_AND_EPOCH: Struct = Struct {
    name: "LeaderIdAndEpoch",
    index: 3,
    fields: &[field("leader_id", Int32, 0, MAX), field("leader_epoch", Int32, 0, MAX)],
};

static SHARE_ACKNOWLEDGE_RESPONSE_NODE_ENDPOINT: Struct = Struct {
    name: "NodeEndpoint",
    index: 4,
    fields: &[
        field("node_id", Int32, 0, MAX),
        field("host", String, 0, MAX),
        field("port", Int32, 0, MAX),
        field("rack", String, 0, MAX).nullable(0, MAX).or_null(),
    ],
};

static SHARE_FETCH_REQUEST: Struct = Struct {
    name: "ShareFetchRequest",
    index: 0,
    fields: &[
        field("group_id", String, 0, MAX).nullable(0, MAX).or_null(),
        field("member_id", String, 0, MAX).nullable(0, MAX),
        field("share_session_epoch", Int32, 0, MAX),
        field("max_wait_ms", Int32, 0, MAX),
        field("min_bytes", Int32, 0, MAX),
        field("max_bytes", Int32, 0, MAX).or(2_147_483_647),
        field("max_records", Int32, 1, MAX),
        field("batch_size", Int32, 1, MAX),
        field("share_acquire_mode", Int8, 2, MAX).ignorable(),
        field("is_renew_ack", Bool, 2, MAX),
        field("topics", Of(&SHARE_FETCH_REQUEST_FETCH_TOPIC), 0, MAX).list(),
        field("forgotten_topics_data", Of(&SHARE_FETCH_REQUEST_FORGOTTEN_TOPIC), 0, MAX).list(),
    ],
};

static SHARE_FETCH_REQUEST_FETCH_TOPIC: Struct = Struct {
    name: "FetchTopic",
    index: 1,
    fields: &[
        field("topic_id", Uuid, 0, MAX),
        field("partitions", Of(&SHARE_FETCH_REQUEST_FETCH_PARTITION), 0, MAX).list(),
    ],
};

static SHARE_FETCH_REQUEST_FETCH_PARTITION: Struct = Struct {
    name: "FetchPartition",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("partition_max_bytes", Int32, 0, 0),
        field("acknowledgement_batches", Of(&SHARE_FETCH_REQUEST_ACKNOWLEDGEMENT_BATCH), 0, MAX)
            .list(),
    ],
};

static SHARE_FETCH_REQUEST_ACKNOWLEDGEMENT_BATCH: Struct = Struct {
    name: "AcknowledgementBatch",
    index: 3,
    fields: &[
        field("first_offset", Int64, 0, MAX),
        field("last_offset", Int64, 0, MAX),
        field("acknowledge_types", Int8, 0, MAX).list(),
    ],
};

static SHARE_FETCH_REQUEST_FORGOTTEN_TOPIC: Struct = Struct {
    name: "ForgottenTopic",
    index: 4,
    fields: &[field("topic_id", Uuid, 0, MAX), field("partitions", Int32, 0, MAX).list()],
};

static SHARE_FETCH_RESPONSE: Struct = Struct {
    name: "ShareFetchResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
        field("acquisition_lock_timeout_ms", Int32, 1, MAX),
        field("responses", Of(&SHARE_FETCH_RESPONSE_SHARE_FETCHABLE_TOPIC_RESPONSE), 0, MAX).list(),
        field("node_endpoints", Of(&SHARE_FETCH_RESPONSE_NODE_ENDPOINT), 0, MAX).list(),
    ],
};

static SHARE_FETCH_RESPONSE_SHARE_FETCHABLE_TOPIC_RESPONSE: Struct = Struct {
    name: "ShareFetchableTopicResponse",
    index: 1,
    fields: &[
        field("topic_id", Uuid, 0, MAX),
        field("partitions", Of(&SHARE_FETCH_RESPONSE_PARTITION_DATA), 0, MAX).list(),
    ],
};

static SHARE_FETCH_RESPONSE_PARTITION_DATA: Struct = Struct {
    name: "PartitionData",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
        field("acknowledge_error_code", Int16, 0, MAX),
        field("acknowledge_error_message", String, 0, MAX).nullable(0, MAX).or_null(),
        field("current_leader", Of(&SHARE_FETCH_RESPONSE_LEADER_ID_AND_EPOCH), 0, MAX),
        field("records", Records, 0, MAX).nullable(0, 0),
        field("acquired_records", Of(&SHARE_FETCH_RESPONSE_ACQUIRED_RECORDS), 0, MAX).list(),
    ],
};

static SHARE_FETCH_RESPONSE_LEADER_ID_AND_EPOCH: Struct = Struct {
    name: "LeaderIdAndEpoch",
    index: 3,
    fields: &[field("leader_id", Int32, 0, MAX), field("leader_epoch", Int32, 0, MAX)],
};

static SHARE_FETCH_RESPONSE_ACQUIRED_RECORDS: Struct = Struct {
    name: "AcquiredRecords",
    index: 4,
    fields: &[
        field("first_offset", Int64, 0, MAX),
        field("last_offset", Int64, 0, MAX),
        field("delivery_count", Int16, 0, MAX),
    ],
};

static SHARE_FETCH_RESPONSE_NODE_ENDPOINT: Struct = Struct {
    name: "NodeEndpoint",
    index: 5,
    fields: &[
        field("node_id", Int32, 0, MAX),
        field("host", String, 0, MAX),
        field("port", Int32, 0, MAX),
        field("rack", String, 0, MAX).nullable(0, MAX).or_null(),
    ],
};

static SHARE_GROUP_DESCRIBE_REQUEST: Struct = Struct {
    name: "ShareGroupDescribeRequest",
    index: 0,
    fields: &[
        field("group_ids", String, 0, MAX).list(),
        field("include_authorized_operations", Bool, 0, MAX),
    ],
};

static SHARE_GROUP_DESCRIBE_RESPONSE: Struct = Struct {
    name: "ShareGroupDescribeResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("groups", Of(&SHARE_GROUP_DESCRIBE_RESPONSE_DESCRIBED_GROUP), 0, MAX).list(),
    ],
};

static SHARE_GROUP_DESCRIBE_RESPONSE_DESCRIBED_GROUP: Struct = Struct {
    name: "DescribedGroup",
    index: 1,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
        field("group_id", String, 0, MAX),
        field("group_state", String, 0, MAX),
        field("group_epoch", Int32, 0, MAX),
        field("assignment_epoch", Int32, 0, MAX),
        field("assignor_name", String, 0, MAX),
        field("members", Of(&SHARE_GROUP_DESCRIBE_RESPONSE_MEMBER), 0, MAX).list(),
        field("authorized_operations", Int32, 0, MAX).or(-2_147_483_648),
    ],
};

static SHARE_GROUP_DESCRIBE_RESPONSE_MEMBER: Struct = Struct {
    name: "Member",
    index: 2,
    fields: &[
        field("member_id", String, 0, MAX),
        field("rack_id", String, 0, MAX).nullable(0, MAX).or_null(),
        field("member_epoch", Int32, 0, MAX),
        field("client_id", String, 0, MAX),
        field("client_host", String, 0, MAX),
        field("subscribed_topic_names", String, 0, MAX).list(),
        field("assignment", Of(&SHARE_GROUP_DESCRIBE_RESPONSE_ASSIGNMENT), 0, MAX),
    ],
};

static SHARE_GROUP_DESCRIBE_RESPONSE_TOPIC_PARTITIONS: Struct = Struct {
    name: "TopicPartitions",
    index: 3,
    fields: &[
        field("topic_id", Uuid, 0, MAX),
        field("topic_name", String, 0, MAX),
        field("partitions", Int32, 0, MAX).list(),
    ],
};

static SHARE_GROUP_DESCRIBE_RESPONSE_ASSIGNMENT: Struct = Struct {
    name: "Assignment",
    index: 4,
    fields: &[field(
        "topic_partitions",
        Of(&SHARE_GROUP_DESCRIBE_RESPONSE_TOPIC_PARTITIONS),
        0,
        MAX,
    )
    .list()],
};

static SHARE_GROUP_HEARTBEAT_REQUEST: Struct = Struct {
    name: "ShareGroupHeartbeatRequest",
    index: 0,
    fields: &[
        field("group_id", String, 0, MAX),
        field("member_id", String, 0, MAX),
        field("member_epoch", Int32, 0, MAX),
        field("rack_id", String, 0, MAX).nullable(0, MAX).or_null(),
        field("subscribed_topic_names", String, 0, MAX).list().nullable(0, MAX).or_null(),
    ],
};

static SHARE_GROUP_HEARTBEAT_RESPONSE: Struct = Struct {
    name: "ShareGroupHeartbeatResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
        field("member_id", String, 0, MAX).nullable(0, MAX).or_null(),
        field("member_epoch", Int32, 0, MAX),
        field("heartbeat_interval_ms", Int32, 0, MAX),
        field("assignment", Of(&SHARE_GROUP_HEARTBEAT_RESPONSE_ASSIGNMENT), 0, MAX)
            .nullable(0, MAX)
            .or_null(),
    ],
};

static SHARE_GROUP_HEARTBEAT_RESPONSE_ASSIGNMENT: Struct = Struct {
    name: "Assignment",
    index: 1,
    fields: &[field(
        "topic_partitions",
        Of(&SHARE_GROUP_HEARTBEAT_RESPONSE_TOPIC_PARTITIONS),
        0,
        MAX,
    )
    .list()],
};

static SHARE_GROUP_HEARTBEAT_RESPONSE_TOPIC_PARTITIONS: Struct = Struct {
    name: "TopicPartitions",
    index: 2,
    fields: &[field("topic_id", Uuid, 0, MAX), field("partitions", Int32, 0, MAX).list()],
};

static SNAPSHOT_FOOTER_RECORD: Struct =
    Struct { name: "SnapshotFooterRecord", index: 0, fields: &[field("version", Int16, 0, MAX)] };

static SNAPSHOT_HEADER_RECORD: Struct = Struct {
    name: "SnapshotHeaderRecord",
    index: 0,
    fields: &[
        field("version", Int16, 0, MAX),
        field("last_contained_log_timestamp", Int64, 0, MAX),
    ],
};

static STREAMS_GROUP_DESCRIBE_REQUEST: Struct = Struct {
    name: "StreamsGroupDescribeRequest",
    index: 0,
    fields: &[
        field("group_ids", String, 0, MAX).list(),
        field("include_authorized_operations", Bool, 0, MAX),
        field("include_topology_description", Bool, 1, MAX),
    ],
};

static STREAMS_GROUP_DESCRIBE_RESPONSE: Struct = Struct {
    name: "StreamsGroupDescribeResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("groups", Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_DESCRIBED_GROUP), 0, MAX).list(),
    ],
};

static STREAMS_GROUP_DESCRIBE_RESPONSE_DESCRIBED_GROUP: Struct = Struct {
    name: "DescribedGroup",
    index: 1,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
        field("group_id", String, 0, MAX),
        field("group_state", String, 0, MAX),
        field("group_epoch", Int32, 0, MAX),
        field("assignment_epoch", Int32, 0, MAX),
        field("topology", Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_TOPOLOGY), 0, MAX)
            .nullable(0, MAX)
            .or_null(),
        field("members", Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_MEMBER), 0, MAX).list(),
        field("authorized_operations", Int32, 0, MAX).or(-2_147_483_648),
        field(
            "topology_description",
            Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_TOPOLOGY_DESCRIPTION),
            1,
            MAX,
        )
        .nullable(1, MAX)
        .or_null(),
        field("topology_description_status", Int8, 1, MAX),
        field("assignor_name", String, 1, MAX).nullable(1, MAX).ignorable().or_null(),
    ],
};

static STREAMS_GROUP_DESCRIBE_RESPONSE_TOPOLOGY: Struct = Struct {
    name: "Topology",
    index: 2,
    fields: &[
        field("epoch", Int32, 0, MAX),
        field("subtopologies", Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_SUBTOPOLOGY), 0, MAX)
            .list()
            .nullable(0, MAX)
            .or_null(),
    ],
};

static STREAMS_GROUP_DESCRIBE_RESPONSE_SUBTOPOLOGY: Struct = Struct {
    name: "Subtopology",
    index: 3,
    fields: &[
        field("subtopology_id", String, 0, MAX),
        field("source_topics", String, 0, MAX).list(),
        field("repartition_sink_topics", String, 0, MAX).list(),
        field("state_changelog_topics", Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_TOPIC_INFO), 0, MAX)
            .list(),
        field("repartition_source_topics", Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_TOPIC_INFO), 0, MAX)
            .list(),
    ],
};

static STREAMS_GROUP_DESCRIBE_RESPONSE_MEMBER: Struct = Struct {
    name: "Member",
    index: 4,
    fields: &[
        field("member_id", String, 0, MAX),
        field("member_epoch", Int32, 0, MAX),
        field("instance_id", String, 0, MAX).nullable(0, MAX).or_null(),
        field("rack_id", String, 0, MAX).nullable(0, MAX).or_null(),
        field("client_id", String, 0, MAX),
        field("client_host", String, 0, MAX),
        field("topology_epoch", Int32, 0, MAX),
        field("process_id", String, 0, MAX),
        field("user_endpoint", Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_ENDPOINT), 0, MAX)
            .nullable(0, MAX)
            .or_null(),
        field("client_tags", Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_KEY_VALUE), 0, MAX).list(),
        field("task_offsets", Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_TASK_OFFSET), 0, MAX).list(),
        field("task_end_offsets", Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_TASK_OFFSET), 0, MAX).list(),
        field("assignment", Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_ASSIGNMENT), 0, MAX),
        field("target_assignment", Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_ASSIGNMENT), 0, MAX),
        field("is_classic", Bool, 0, MAX),
    ],
};

static STREAMS_GROUP_DESCRIBE_RESPONSE_ENDPOINT: Struct = Struct {
    name: "Endpoint",
    index: 5,
    fields: &[field("host", String, 0, MAX), field("port", Uint16, 0, MAX)],
};

static STREAMS_GROUP_DESCRIBE_RESPONSE_TASK_OFFSET: Struct = Struct {
    name: "TaskOffset",
    index: 6,
    fields: &[
        field("subtopology_id", String, 0, MAX),
        field("partition", Int32, 0, MAX),
        field("offset", Int64, 0, MAX),
    ],
};

static STREAMS_GROUP_DESCRIBE_RESPONSE_ASSIGNMENT: Struct = Struct {
    name: "Assignment",
    index: 7,
    fields: &[
        field("active_tasks", Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_TASK_IDS), 0, MAX).list(),
        field("standby_tasks", Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_TASK_IDS), 0, MAX).list(),
        field("warmup_tasks", Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_TASK_IDS), 0, MAX).list(),
    ],
};

static STREAMS_GROUP_DESCRIBE_RESPONSE_TASK_IDS: Struct = Struct {
    name: "TaskIds",
    index: 8,
    fields: &[field("subtopology_id", String, 0, MAX), field("partitions", Int32, 0, MAX).list()],
};

static STREAMS_GROUP_DESCRIBE_RESPONSE_KEY_VALUE: Struct = Struct {
    name: "KeyValue",
    index: 9,
    fields: &[field("key", String, 0, MAX), field("value", String, 0, MAX)],
};

static STREAMS_GROUP_DESCRIBE_RESPONSE_TOPIC_INFO: Struct = Struct {
    name: "TopicInfo",
    index: 10,
    fields: &[
        field("name", String, 0, MAX),
        field("partitions", Int32, 0, MAX),
        field("replication_factor", Int16, 0, MAX),
        field("topic_configs", Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_KEY_VALUE), 0, MAX).list(),
    ],
};

static STREAMS_GROUP_DESCRIBE_RESPONSE_TOPOLOGY_DESCRIPTION: Struct = Struct {
    name: "TopologyDescription",
    index: 11,
    fields: &[
        field(
            "subtopologies",
            Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_TOPOLOGY_DESCRIPTION_SUBTOPOLOGY),
            1,
            MAX,
        )
        .list(),
        field(
            "global_stores",
            Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_TOPOLOGY_DESCRIPTION_GLOBAL_STORE),
            1,
            MAX,
        )
        .list(),
    ],
};

static STREAMS_GROUP_DESCRIBE_RESPONSE_TOPOLOGY_DESCRIPTION_SUBTOPOLOGY: Struct = Struct {
    name: "TopologyDescriptionSubtopology",
    index: 12,
    fields: &[
        field("subtopology_id", String, 1, MAX),
        field("nodes", Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_TOPOLOGY_DESCRIPTION_NODE), 1, MAX)
            .list(),
    ],
};

static STREAMS_GROUP_DESCRIBE_RESPONSE_TOPOLOGY_DESCRIPTION_NODE: Struct = Struct {
    name: "TopologyDescriptionNode",
    index: 13,
    fields: &[
        field("name", String, 1, MAX),
        field("node_type", Int8, 1, MAX),
        field("source_topics", String, 1, MAX).list(),
        field("sink_topic", String, 1, MAX).nullable(1, MAX).or_null(),
        field("stores", String, 1, MAX).list(),
        field("successors", String, 1, MAX).list(),
    ],
};

static STREAMS_GROUP_DESCRIBE_RESPONSE_TOPOLOGY_DESCRIPTION_GLOBAL_STORE: Struct = Struct {
    name: "TopologyDescriptionGlobalStore",
    index: 14,
    fields: &[
        field("source", Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_TOPOLOGY_DESCRIPTION_NODE), 1, MAX),
        field("processor", Of(&STREAMS_GROUP_DESCRIBE_RESPONSE_TOPOLOGY_DESCRIPTION_NODE), 1, MAX),
    ],
};

static STREAMS_GROUP_HEARTBEAT_REQUEST: Struct = Struct {
    name: "StreamsGroupHeartbeatRequest",
    index: 0,
    fields: &[
        field("group_id", String, 0, MAX),
        field("member_id", String, 0, MAX),
        field("member_epoch", Int32, 0, MAX),
        field("endpoint_information_epoch", Int32, 0, MAX),
        field("instance_id", String, 0, MAX).nullable(0, MAX).or_null(),
        field("rack_id", String, 0, MAX).nullable(0, MAX).or_null(),
        field("rebalance_timeout_ms", Int32, 0, MAX).or(-1),
        field("topology", Of(&STREAMS_GROUP_HEARTBEAT_REQUEST_TOPOLOGY), 0, MAX)
            .nullable(0, MAX)
            .or_null(),
        field("active_tasks", Of(&STREAMS_GROUP_HEARTBEAT_REQUEST_TASK_IDS), 0, MAX)
            .list()
            .nullable(0, MAX)
            .or_null(),
        field("standby_tasks", Of(&STREAMS_GROUP_HEARTBEAT_REQUEST_TASK_IDS), 0, MAX)
            .list()
            .nullable(0, MAX)
            .or_null(),
        field("warmup_tasks", Of(&STREAMS_GROUP_HEARTBEAT_REQUEST_TASK_IDS), 0, MAX)
            .list()
            .nullable(0, MAX)
            .or_null(),
        field("process_id", String, 0, MAX).nullable(0, MAX).or_null(),
        field("user_endpoint", Of(&STREAMS_GROUP_HEARTBEAT_REQUEST_ENDPOINT), 0, MAX)
            .nullable(0, MAX)
            .or_null(),
        field("client_tags", Of(&STREAMS_GROUP_HEARTBEAT_REQUEST_KEY_VALUE), 0, MAX)
            .list()
            .nullable(0, MAX)
            .or_null(),
        field("task_offsets", Of(&STREAMS_GROUP_HEARTBEAT_REQUEST_TASK_OFFSET), 0, MAX)
            .list()
            .nullable(0, MAX)
            .or_null(),
        field("task_end_offsets", Of(&STREAMS_GROUP_HEARTBEAT_REQUEST_TASK_OFFSET), 0, MAX)
            .list()
            .nullable(0, MAX)
            .or_null(),
        field("shutdown_application", Bool, 0, MAX),
    ],
};

static STREAMS_GROUP_HEARTBEAT_REQUEST_TOPOLOGY: Struct = Struct {
    name: "Topology",
    index: 1,
    fields: &[
        field("epoch", Int32, 0, MAX),
        field("subtopologies", Of(&STREAMS_GROUP_HEARTBEAT_REQUEST_SUBTOPOLOGY), 0, MAX).list(),
    ],
};

static STREAMS_GROUP_HEARTBEAT_REQUEST_SUBTOPOLOGY: Struct = Struct {
    name: "Subtopology",
    index: 2,
    fields: &[
        field("subtopology_id", String, 0, MAX),
        field("source_topics", String, 0, MAX).list(),
        field("source_topic_regex", String, 0, MAX).list(),
        field("state_changelog_topics", Of(&STREAMS_GROUP_HEARTBEAT_REQUEST_TOPIC_INFO), 0, MAX)
            .list(),
        field("repartition_sink_topics", String, 0, MAX).list(),
        field("repartition_source_topics", Of(&STREAMS_GROUP_HEARTBEAT_REQUEST_TOPIC_INFO), 0, MAX)
            .list(),
        field("copartition_groups", Of(&STREAMS_GROUP_HEARTBEAT_REQUEST_COPARTITION_GROUP), 0, MAX)
            .list(),
    ],
};

static STREAMS_GROUP_HEARTBEAT_REQUEST_COPARTITION_GROUP: Struct = Struct {
    name: "CopartitionGroup",
    index: 3,
    fields: &[
        field("source_topics", Int16, 0, MAX).list(),
        field("source_topic_regex", Int16, 0, MAX).list(),
        field("repartition_source_topics", Int16, 0, MAX).list(),
    ],
};

static STREAMS_GROUP_HEARTBEAT_REQUEST_KEY_VALUE: Struct = Struct {
    name: "KeyValue",
    index: 4,
    fields: &[field("key", String, 0, MAX), field("value", String, 0, MAX)],
};

static STREAMS_GROUP_HEARTBEAT_REQUEST_TOPIC_INFO: Struct = Struct {
    name: "TopicInfo",
    index: 5,
    fields: &[
        field("name", String, 0, MAX),
        field("partitions", Int32, 0, MAX),
        field("replication_factor", Int16, 0, MAX),
        field("topic_configs", Of(&STREAMS_GROUP_HEARTBEAT_REQUEST_KEY_VALUE), 0, MAX).list(),
    ],
};

static STREAMS_GROUP_HEARTBEAT_REQUEST_ENDPOINT: Struct = Struct {
    name: "Endpoint",
    index: 6,
    fields: &[field("host", String, 0, MAX), field("port", Uint16, 0, MAX)],
};

static STREAMS_GROUP_HEARTBEAT_REQUEST_TASK_OFFSET: Struct = Struct {
    name: "TaskOffset",
    index: 7,
    fields: &[
        field("subtopology_id", String, 0, MAX),
        field("partition", Int32, 0, MAX),
        field("offset", Int64, 0, MAX),
    ],
};

static STREAMS_GROUP_HEARTBEAT_REQUEST_TASK_IDS: Struct = Struct {
    name: "TaskIds",
    index: 8,
    fields: &[field("subtopology_id", String, 0, MAX), field("partitions", Int32, 0, MAX).list()],
};

static STREAMS_GROUP_HEARTBEAT_RESPONSE: Struct = Struct {
    name: "StreamsGroupHeartbeatResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
        field("member_id", String, 0, MAX),
        field("member_epoch", Int32, 0, MAX),
        field("heartbeat_interval_ms", Int32, 0, MAX),
        field("acceptable_recovery_lag_legacy", Int32, 0, 0),
        field("task_offset_interval_ms", Int32, 0, MAX),
        field("acceptable_recovery_lag", Int64, 1, MAX).ignorable().or(-1),
        field("status", Of(&STREAMS_GROUP_HEARTBEAT_RESPONSE_STATUS), 0, MAX)
            .list()
            .nullable(0, MAX),
        field("active_tasks", Of(&STREAMS_GROUP_HEARTBEAT_RESPONSE_TASK_IDS), 0, MAX)
            .list()
            .nullable(0, MAX)
            .or_null(),
        field("standby_tasks", Of(&STREAMS_GROUP_HEARTBEAT_RESPONSE_TASK_IDS), 0, MAX)
            .list()
            .nullable(0, MAX)
            .or_null(),
        field("warmup_tasks", Of(&STREAMS_GROUP_HEARTBEAT_RESPONSE_TASK_IDS), 0, MAX)
            .list()
            .nullable(0, MAX)
            .or_null(),
        field("topology_description_required", Bool, 1, MAX),
        field("endpoint_information_epoch", Int32, 0, MAX),
        field(
            "partitions_by_user_endpoint",
            Of(&STREAMS_GROUP_HEARTBEAT_RESPONSE_ENDPOINT_TO_PARTITIONS),
            0,
            MAX,
        )
        .list()
        .nullable(0, MAX)
        .or_null(),
    ],
};

static STREAMS_GROUP_HEARTBEAT_RESPONSE_ENDPOINT_TO_PARTITIONS: Struct = Struct {
    name: "EndpointToPartitions",
    index: 1,
    fields: &[
        field("user_endpoint", Of(&STREAMS_GROUP_HEARTBEAT_RESPONSE_ENDPOINT), 0, MAX),
        field("active_partitions", Of(&STREAMS_GROUP_HEARTBEAT_RESPONSE_TOPIC_PARTITION), 0, MAX)
            .list(),
        field("standby_partitions", Of(&STREAMS_GROUP_HEARTBEAT_RESPONSE_TOPIC_PARTITION), 0, MAX)
            .list(),
    ],
};

static STREAMS_GROUP_HEARTBEAT_RESPONSE_STATUS: Struct = Struct {
    name: "Status",
    index: 2,
    fields: &[field("status_code", Int8, 0, MAX), field("status_detail", String, 0, MAX)],
};

static STREAMS_GROUP_HEARTBEAT_RESPONSE_TOPIC_PARTITION: Struct = Struct {
    name: "TopicPartition",
    index: 3,
    fields: &[field("topic", String, 0, MAX), field("partitions", Int32, 0, MAX).list()],
};

static STREAMS_GROUP_HEARTBEAT_RESPONSE_TASK_IDS: Struct = Struct {
    name: "TaskIds",
    index: 4,
    fields: &[field("subtopology_id", String, 0, MAX), field("partitions", Int32, 0, MAX).list()],
};

static STREAMS_GROUP_HEARTBEAT_RESPONSE_ENDPOINT: Struct = Struct {
    name: "Endpoint",
    index: 5,
    fields: &[field("host", String, 0, MAX), field("port", Uint16, 0, MAX)],
};

static STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_REQUEST: Struct = Struct {
    name: "StreamsGroupTopologyDescriptionUpdateRequest",
    index: 0,
    fields: &[
        field("group_id", String, 0, MAX),
        field("member_id", String, 0, MAX),
        field("topology_epoch", Int32, 0, MAX),
        field(
            "topology_description",
            Of(&STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_REQUEST_TOPOLOGY_DESCRIPTION),
            0,
            MAX,
        ),
    ],
};

static STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_REQUEST_TOPOLOGY_DESCRIPTION: Struct = Struct { name: "TopologyDescription", index: 1, fields: &[
    field("subtopologies", Of(&STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_REQUEST_TOPOLOGY_DESCRIPTION_SUBTOPOLOGY), 0, MAX).list(),
    field("global_stores", Of(&STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_REQUEST_TOPOLOGY_DESCRIPTION_GLOBAL_STORE), 0, MAX).list(),
] };

static STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_REQUEST_TOPOLOGY_DESCRIPTION_SUBTOPOLOGY: Struct =
    Struct {
        name: "TopologyDescriptionSubtopology",
        index: 2,
        fields: &[
            field("subtopology_id", String, 0, MAX),
            field(
                "nodes",
                Of(&STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_REQUEST_TOPOLOGY_DESCRIPTION_NODE),
                0,
                MAX,
            )
            .list(),
        ],
    };

static STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_REQUEST_TOPOLOGY_DESCRIPTION_NODE: Struct =
    Struct {
        name: "TopologyDescriptionNode",
        index: 3,
        fields: &[
            field("name", String, 0, MAX),
            field("node_type", Int8, 0, MAX),
            field("source_topics", String, 0, MAX).list(),
            field("sink_topic", String, 0, MAX).nullable(0, MAX).or_null(),
            field("stores", String, 0, MAX).list(),
            field("successors", String, 0, MAX).list(),
        ],
    };

static STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_REQUEST_TOPOLOGY_DESCRIPTION_GLOBAL_STORE: Struct =
    Struct {
        name: "TopologyDescriptionGlobalStore",
        index: 4,
        fields: &[
            field(
                "source",
                Of(&STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_REQUEST_TOPOLOGY_DESCRIPTION_NODE),
                0,
                MAX,
            ),
            field(
                "processor",
                Of(&STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_REQUEST_TOPOLOGY_DESCRIPTION_NODE),
                0,
                MAX,
            ),
        ],
    };

static STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_RESPONSE: Struct = Struct {
    name: "StreamsGroupTopologyDescriptionUpdateResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
    ],
};

static SYNC_GROUP_REQUEST: Struct = Struct {
    name: "SyncGroupRequest",
    index: 0,
    fields: &[
        field("group_id", String, 0, MAX),
        field("generation_id", Int32, 0, MAX),
        field("member_id", String, 0, MAX),
        field("group_instance_id", String, 3, MAX).nullable(3, MAX).or_null(),
        field("protocol_type", String, 5, MAX).nullable(5, MAX).ignorable().or_null(),
        field("protocol_name", String, 5, MAX).nullable(5, MAX).ignorable().or_null(),
        field("assignments", Of(&SYNC_GROUP_REQUEST_SYNC_GROUP_REQUEST_ASSIGNMENT), 0, MAX).list(),
    ],
};

static SYNC_GROUP_REQUEST_SYNC_GROUP_REQUEST_ASSIGNMENT: Struct = Struct {
    name: "SyncGroupRequestAssignment",
    index: 1,
    fields: &[field("member_id", String, 0, MAX), field("assignment", Bytes, 0, MAX)],
};

static SYNC_GROUP_RESPONSE: Struct = Struct {
    name: "SyncGroupResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 1, MAX).ignorable(),
        field("error_code", Int16, 0, MAX),
        field("protocol_type", String, 5, MAX).nullable(5, MAX).ignorable().or_null(),
        field("protocol_name", String, 5, MAX).nullable(5, MAX).ignorable().or_null(),
        field("assignment", Bytes, 0, MAX),
    ],
};

static TXN_OFFSET_COMMIT_REQUEST: Struct = Struct {
    name: "TxnOffsetCommitRequest",
    index: 0,
    fields: &[
        field("transactional_id", String, 0, MAX),
        field("group_id", String, 0, MAX),
        field("producer_id", Int64, 0, MAX),
        field("producer_epoch", Int16, 0, MAX),
        field("generation_id_or_member_epoch", Int32, 3, MAX).or(-1),
        field("member_id", String, 3, MAX),
        field("group_instance_id", String, 3, MAX).nullable(3, MAX).or_null(),
        field("topics", Of(&TXN_OFFSET_COMMIT_REQUEST_TXN_OFFSET_COMMIT_REQUEST_TOPIC), 0, MAX)
            .list(),
    ],
};

static TXN_OFFSET_COMMIT_REQUEST_TXN_OFFSET_COMMIT_REQUEST_TOPIC: Struct = Struct {
    name: "TxnOffsetCommitRequestTopic",
    index: 1,
    fields: &[
        field("name", String, 0, 5).ignorable(),
        field("topic_id", Uuid, 6, MAX).ignorable(),
        field(
            "partitions",
            Of(&TXN_OFFSET_COMMIT_REQUEST_TXN_OFFSET_COMMIT_REQUEST_PARTITION),
            0,
            MAX,
        )
        .list(),
    ],
};

static TXN_OFFSET_COMMIT_REQUEST_TXN_OFFSET_COMMIT_REQUEST_PARTITION: Struct = Struct {
    name: "TxnOffsetCommitRequestPartition",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("committed_offset", Int64, 0, MAX),
        field("committed_leader_epoch", Int32, 2, MAX).ignorable().or(-1),
        field("committed_metadata", String, 0, MAX).nullable(0, MAX),
    ],
};

static TXN_OFFSET_COMMIT_RESPONSE: Struct = Struct {
    name: "TxnOffsetCommitResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("topics", Of(&TXN_OFFSET_COMMIT_RESPONSE_TXN_OFFSET_COMMIT_RESPONSE_TOPIC), 0, MAX)
            .list(),
    ],
};

static TXN_OFFSET_COMMIT_RESPONSE_TXN_OFFSET_COMMIT_RESPONSE_TOPIC: Struct = Struct {
    name: "TxnOffsetCommitResponseTopic",
    index: 1,
    fields: &[
        field("name", String, 0, 5).ignorable(),
        field("topic_id", Uuid, 6, MAX).ignorable(),
        field(
            "partitions",
            Of(&TXN_OFFSET_COMMIT_RESPONSE_TXN_OFFSET_COMMIT_RESPONSE_PARTITION),
            0,
            MAX,
        )
        .list(),
    ],
};

static TXN_OFFSET_COMMIT_RESPONSE_TXN_OFFSET_COMMIT_RESPONSE_PARTITION: Struct = Struct {
    name: "TxnOffsetCommitResponsePartition",
    index: 2,
    fields: &[field("partition_index", Int32, 0, MAX), field("error_code", Int16, 0, MAX)],
};

static UNREGISTER_BROKER_REQUEST: Struct = Struct {
    name: "UnregisterBrokerRequest",
    index: 0,
    fields: &[field("broker_id", Int32, 0, MAX)],
};

static UNREGISTER_BROKER_RESPONSE: Struct = Struct {
    name: "UnregisterBrokerResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX),
    ],
};

static UNREGISTER_CONTROLLER_REQUEST: Struct = Struct {
    name: "UnregisterControllerRequest",
    index: 0,
    fields: &[field("controller_id", Int32, 0, MAX)],
};

static UNREGISTER_CONTROLLER_RESPONSE: Struct = Struct {
    name: "UnregisterControllerResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX),
    ],
};

static UPDATE_FEATURES_REQUEST: Struct = Struct {
    name: "UpdateFeaturesRequest",
    index: 0,
    fields: &[
        field("timeout_ms", Int32, 0, MAX).or(60_000),
        field("feature_updates", Of(&UPDATE_FEATURES_REQUEST_FEATURE_UPDATE_KEY), 0, MAX).list(),
        field("validate_only", Bool, 1, MAX),
    ],
};

static UPDATE_FEATURES_REQUEST_FEATURE_UPDATE_KEY: Struct = Struct {
    name: "FeatureUpdateKey",
    index: 1,
    fields: &[
        field("feature", String, 0, MAX),
        field("max_version_level", Int16, 0, MAX),
        field("allow_downgrade", Bool, 0, 0),
        field("upgrade_type", Int8, 1, MAX).or(1),
    ],
};

static UPDATE_FEATURES_RESPONSE: Struct = Struct {
    name: "UpdateFeaturesResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX),
        field("results", Of(&UPDATE_FEATURES_RESPONSE_UPDATABLE_FEATURE_RESULT), 0, 1)
            .list()
            .ignorable(),
    ],
};

static UPDATE_FEATURES_RESPONSE_UPDATABLE_FEATURE_RESULT: Struct = Struct {
    name: "UpdatableFeatureResult",
    index: 1,
    fields: &[
        field("feature", String, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX),
    ],
};

static UPDATE_RAFT_VOTER_REQUEST: Struct = Struct {
    name: "UpdateRaftVoterRequest",
    index: 0,
    fields: &[
        field("cluster_id", String, 0, MAX).nullable(0, MAX),
        field("current_leader_epoch", Int32, 0, MAX),
        field("voter_id", Int32, 0, MAX),
        field("voter_directory_id", Uuid, 0, MAX),
        field("listeners", Of(&UPDATE_RAFT_VOTER_REQUEST_LISTENER), 0, MAX).list(),
        field(
            "k_raft_version_feature",
            Of(&UPDATE_RAFT_VOTER_REQUEST_K_RAFT_VERSION_FEATURE),
            0,
            MAX,
        ),
    ],
};

static UPDATE_RAFT_VOTER_REQUEST_LISTENER: Struct = Struct {
    name: "Listener",
    index: 1,
    fields: &[
        field("name", String, 0, MAX),
        field("host", String, 0, MAX),
        field("port", Uint16, 0, MAX),
    ],
};

static UPDATE_RAFT_VOTER_REQUEST_K_RAFT_VERSION_FEATURE: Struct = Struct {
    name: "KRaftVersionFeature",
    index: 2,
    fields: &[
        field("min_supported_version", Int16, 0, MAX),
        field("max_supported_version", Int16, 0, MAX),
    ],
};

static UPDATE_RAFT_VOTER_RESPONSE: Struct = Struct {
    name: "UpdateRaftVoterResponse",
    index: 0,
    fields: &[
        field("throttle_time_ms", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("current_leader", Of(&UPDATE_RAFT_VOTER_RESPONSE_CURRENT_LEADER), 0, MAX)
            .tagged(0, 0, MAX),
    ],
};

static UPDATE_RAFT_VOTER_RESPONSE_CURRENT_LEADER: Struct = Struct {
    name: "CurrentLeader",
    index: 1,
    fields: &[
        field("leader_id", Int32, 0, MAX).or(-1),
        field("leader_epoch", Int32, 0, MAX).or(-1),
        field("host", String, 0, MAX),
        field("port", Int32, 0, MAX),
    ],
};

static VOTE_REQUEST: Struct = Struct {
    name: "VoteRequest",
    index: 0,
    fields: &[
        field("cluster_id", String, 0, MAX).nullable(0, MAX).or_null(),
        field("voter_id", Int32, 1, MAX).ignorable().or(-1),
        field("topics", Of(&VOTE_REQUEST_TOPIC_DATA), 0, MAX).list(),
    ],
};

static VOTE_REQUEST_TOPIC_DATA: Struct = Struct {
    name: "TopicData",
    index: 1,
    fields: &[
        field("topic_name", String, 0, MAX),
        field("partitions", Of(&VOTE_REQUEST_PARTITION_DATA), 0, MAX).list(),
    ],
};

static VOTE_REQUEST_PARTITION_DATA: Struct = Struct {
    name: "PartitionData",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("replica_epoch", Int32, 0, MAX),
        field("replica_id", Int32, 0, MAX),
        field("replica_directory_id", Uuid, 1, MAX).ignorable(),
        field("voter_directory_id", Uuid, 1, MAX).ignorable(),
        field("last_offset_epoch", Int32, 0, MAX),
        field("last_offset", Int64, 0, MAX),
        field("pre_vote", Bool, 2, MAX),
    ],
};

static VOTE_RESPONSE: Struct = Struct {
    name: "VoteResponse",
    index: 0,
    fields: &[
        field("error_code", Int16, 0, MAX),
        field("topics", Of(&VOTE_RESPONSE_TOPIC_DATA), 0, MAX).list(),
        field("node_endpoints", Of(&VOTE_RESPONSE_NODE_ENDPOINT), 1, MAX).list().tagged(0, 1, MAX),
    ],
};

static VOTE_RESPONSE_TOPIC_DATA: Struct = Struct {
    name: "TopicData",
    index: 1,
    fields: &[
        field("topic_name", String, 0, MAX),
        field("partitions", Of(&VOTE_RESPONSE_PARTITION_DATA), 0, MAX).list(),
    ],
};

static VOTE_RESPONSE_PARTITION_DATA: Struct = Struct {
    name: "PartitionData",
    index: 2,
    fields: &[
        field("partition_index", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("leader_id", Int32, 0, MAX),
        field("leader_epoch", Int32, 0, MAX),
        field("vote_granted", Bool, 0, MAX),
    ],
};

static VOTE_RESPONSE_NODE_ENDPOINT: Struct = Struct {
    name: "NodeEndpoint",
    index: 3,
    fields: &[
        field("node_id", Int32, 1, MAX),
        field("host", String, 1, MAX),
        field("port", Uint16, 1, MAX),
    ],
};

static VOTERS_RECORD: Struct = Struct {
    name: "VotersRecord",
    index: 0,
    fields: &[
        field("version", Int16, 0, MAX),
        field("voters", Of(&VOTERS_RECORD_VOTER), 0, MAX).list(),
    ],
};

static VOTERS_RECORD_VOTER: Struct = Struct {
    name: "Voter",
    index: 1,
    fields: &[
        field("voter_id", Int32, 0, MAX),
        field("voter_directory_id", Uuid, 0, MAX),
        field("endpoints", Of(&VOTERS_RECORD_ENDPOINT), 0, MAX).list(),
        field("k_raft_version_feature", Of(&VOTERS_RECORD_K_RAFT_VERSION_FEATURE), 0, MAX),
    ],
};

static VOTERS_RECORD_ENDPOINT: Struct = Struct {
    name: "Endpoint",
    index: 2,
    fields: &[
        field("name", String, 0, MAX),
        field("host", String, 0, MAX),
        field("port", Uint16, 0, MAX),
    ],
};

static VOTERS_RECORD_K_RAFT_VERSION_FEATURE: Struct = Struct {
    name: "KRaftVersionFeature",
    index: 3,
    fields: &[
        field("min_supported_version", Int16, 0, MAX),
        field("max_supported_version", Int16, 0, MAX),
    ],
};

static WRITE_SHARE_GROUP_STATE_REQUEST: Struct = Struct {
    name: "WriteShareGroupStateRequest",
    index: 0,
    fields: &[
        field("group_id", String, 0, MAX),
        field("topics", Of(&WRITE_SHARE_GROUP_STATE_REQUEST_WRITE_STATE_DATA), 0, MAX).list(),
    ],
};

static WRITE_SHARE_GROUP_STATE_REQUEST_WRITE_STATE_DATA: Struct = Struct {
    name: "WriteStateData",
    index: 1,
    fields: &[
        field("topic_id", Uuid, 0, MAX),
        field("partitions", Of(&WRITE_SHARE_GROUP_STATE_REQUEST_PARTITION_DATA), 0, MAX).list(),
    ],
};

static WRITE_SHARE_GROUP_STATE_REQUEST_PARTITION_DATA: Struct = Struct {
    name: "PartitionData",
    index: 2,
    fields: &[
        field("partition", Int32, 0, MAX),
        field("state_epoch", Int32, 0, MAX),
        field("leader_epoch", Int32, 0, MAX),
        field("start_offset", Int64, 0, MAX),
        field("delivery_complete_count", Int32, 1, MAX).ignorable().or(-1),
        field("state_batches", Of(&WRITE_SHARE_GROUP_STATE_REQUEST_STATE_BATCH), 0, MAX).list(),
    ],
};

static WRITE_SHARE_GROUP_STATE_REQUEST_STATE_BATCH: Struct = Struct {
    name: "StateBatch",
    index: 3,
    fields: &[
        field("first_offset", Int64, 0, MAX),
        field("last_offset", Int64, 0, MAX),
        field("delivery_state", Int8, 0, MAX),
        field("delivery_count", Int16, 0, MAX),
    ],
};

static WRITE_SHARE_GROUP_STATE_RESPONSE: Struct = Struct {
    name: "WriteShareGroupStateResponse",
    index: 0,
    fields: &[
        field("results", Of(&WRITE_SHARE_GROUP_STATE_RESPONSE_WRITE_STATE_RESULT), 0, MAX).list()
    ],
};

static WRITE_SHARE_GROUP_STATE_RESPONSE_WRITE_STATE_RESULT: Struct = Struct {
    name: "WriteStateResult",
    index: 1,
    fields: &[
        field("topic_id", Uuid, 0, MAX),
        field("partitions", Of(&WRITE_SHARE_GROUP_STATE_RESPONSE_PARTITION_RESULT), 0, MAX).list(),
    ],
};

static WRITE_SHARE_GROUP_STATE_RESPONSE_PARTITION_RESULT: Struct = Struct {
    name: "PartitionResult",
    index: 2,
    fields: &[
        field("partition", Int32, 0, MAX),
        field("error_code", Int16, 0, MAX),
        field("error_message", String, 0, MAX).nullable(0, MAX).or_null(),
    ],
};

static WRITE_TXN_MARKERS_REQUEST: Struct = Struct {
    name: "WriteTxnMarkersRequest",
    index: 0,
    fields: &[field("markers", Of(&WRITE_TXN_MARKERS_REQUEST_WRITABLE_TXN_MARKER), 0, MAX).list()],
};

static WRITE_TXN_MARKERS_REQUEST_WRITABLE_TXN_MARKER: Struct = Struct {
    name: "WritableTxnMarker",
    index: 1,
    fields: &[
        field("producer_id", Int64, 0, MAX),
        field("producer_epoch", Int16, 0, MAX),
        field("transaction_result", Bool, 0, MAX),
        field("topics", Of(&WRITE_TXN_MARKERS_REQUEST_WRITABLE_TXN_MARKER_TOPIC), 0, MAX).list(),
        field("coordinator_epoch", Int32, 0, MAX),
        field("transaction_version", Int8, 2, MAX).ignorable(),
    ],
};

static WRITE_TXN_MARKERS_REQUEST_WRITABLE_TXN_MARKER_TOPIC: Struct = Struct {
    name: "WritableTxnMarkerTopic",
    index: 2,
    fields: &[field("name", String, 0, MAX), field("partition_indexes", Int32, 0, MAX).list()],
};

static WRITE_TXN_MARKERS_RESPONSE: Struct = Struct {
    name: "WriteTxnMarkersResponse",
    index: 0,
    fields: &[
        field("markers", Of(&WRITE_TXN_MARKERS_RESPONSE_WRITABLE_TXN_MARKER_RESULT), 0, MAX).list()
    ],
};

static WRITE_TXN_MARKERS_RESPONSE_WRITABLE_TXN_MARKER_RESULT: Struct = Struct {
    name: "WritableTxnMarkerResult",
    index: 1,
    fields: &[
        field("producer_id", Int64, 0, MAX),
        field("topics", Of(&WRITE_TXN_MARKERS_RESPONSE_WRITABLE_TXN_MARKER_TOPIC_RESULT), 0, MAX)
            .list(),
    ],
};

static WRITE_TXN_MARKERS_RESPONSE_WRITABLE_TXN_MARKER_TOPIC_RESULT: Struct = Struct {
    name: "WritableTxnMarkerTopicResult",
    index: 2,
    fields: &[
        field("name", String, 0, MAX),
        field(
            "partitions",
            Of(&WRITE_TXN_MARKERS_RESPONSE_WRITABLE_TXN_MARKER_PARTITION_RESULT),
            0,
            MAX,
        )
        .list(),
    ],
};

static WRITE_TXN_MARKERS_RESPONSE_WRITABLE_TXN_MARKER_PARTITION_RESULT: Struct = Struct {
    name: "WritableTxnMarkerPartitionResult",
    index: 3,
    fields: &[field("partition_index", Int32, 0, MAX), field("error_code", Int16, 0, MAX)],
};

/// Messages of this jar.
pub static MESSAGES: [Message; 193] = [
    Message::new(1, "AbortedTxn", Kind::Data, -1, [0, 0], MAX, &[&ABORTED_TXN]),
    Message::new(
        3,
        "AddOffsetsToTxnRequest",
        Kind::Request,
        25,
        [0, 4],
        3,
        &[&ADD_OFFSETS_TO_TXN_REQUEST],
    ),
    Message::new(
        4,
        "AddOffsetsToTxnResponse",
        Kind::Response,
        25,
        [0, 4],
        3,
        &[&ADD_OFFSETS_TO_TXN_RESPONSE],
    ),
    Message::new(
        5,
        "AddPartitionsToTxnRequest",
        Kind::Request,
        24,
        [0, 5],
        3,
        &[
            &ADD_PARTITIONS_TO_TXN_REQUEST,
            &ADD_PARTITIONS_TO_TXN_REQUEST_ADD_PARTITIONS_TO_TXN_TRANSACTION,
            &ADD_PARTITIONS_TO_TXN_REQUEST_ADD_PARTITIONS_TO_TXN_TOPIC,
        ],
    ),
    Message::new(
        6,
        "AddPartitionsToTxnResponse",
        Kind::Response,
        24,
        [0, 5],
        3,
        &[
            &ADD_PARTITIONS_TO_TXN_RESPONSE,
            &ADD_PARTITIONS_TO_TXN_RESPONSE_ADD_PARTITIONS_TO_TXN_RESULT,
            &ADD_PARTITIONS_TO_TXN_RESPONSE_ADD_PARTITIONS_TO_TXN_TOPIC_RESULT,
            &ADD_PARTITIONS_TO_TXN_RESPONSE_ADD_PARTITIONS_TO_TXN_PARTITION_RESULT,
        ],
    ),
    Message::new(
        7,
        "AddRaftVoterRequest",
        Kind::Request,
        80,
        [0, 1],
        0,
        &[&ADD_RAFT_VOTER_REQUEST, &ADD_RAFT_VOTER_REQUEST_LISTENER],
    ),
    Message::new(
        8,
        "AddRaftVoterResponse",
        Kind::Response,
        80,
        [0, 1],
        0,
        &[&ADD_RAFT_VOTER_RESPONSE],
    ),
    Message::new(
        9,
        "AllocateProducerIdsRequest",
        Kind::Request,
        67,
        [0, 0],
        0,
        &[&ALLOCATE_PRODUCER_IDS_REQUEST],
    ),
    Message::new(
        10,
        "AllocateProducerIdsResponse",
        Kind::Response,
        67,
        [0, 0],
        0,
        &[&ALLOCATE_PRODUCER_IDS_RESPONSE],
    ),
    Message::new(
        11,
        "AlterClientQuotasRequest",
        Kind::Request,
        49,
        [0, 1],
        1,
        &[
            &ALTER_CLIENT_QUOTAS_REQUEST,
            &ALTER_CLIENT_QUOTAS_REQUEST_ENTRY_DATA,
            &ALTER_CLIENT_QUOTAS_REQUEST_ENTITY_DATA,
            &ALTER_CLIENT_QUOTAS_REQUEST_OP_DATA,
        ],
    ),
    Message::new(
        12,
        "AlterClientQuotasResponse",
        Kind::Response,
        49,
        [0, 1],
        1,
        &[
            &ALTER_CLIENT_QUOTAS_RESPONSE,
            &ALTER_CLIENT_QUOTAS_RESPONSE_ENTRY_DATA,
            &ALTER_CLIENT_QUOTAS_RESPONSE_ENTITY_DATA,
        ],
    ),
    Message::new(
        13,
        "AlterConfigsRequest",
        Kind::Request,
        33,
        [0, 2],
        2,
        &[
            &ALTER_CONFIGS_REQUEST,
            &ALTER_CONFIGS_REQUEST_ALTER_CONFIGS_RESOURCE,
            &ALTER_CONFIGS_REQUEST_ALTERABLE_CONFIG,
        ],
    ),
    Message::new(
        14,
        "AlterConfigsResponse",
        Kind::Response,
        33,
        [0, 2],
        2,
        &[&ALTER_CONFIGS_RESPONSE, &ALTER_CONFIGS_RESPONSE_ALTER_CONFIGS_RESOURCE_RESPONSE],
    ),
    Message::new(
        15,
        "AlterPartitionReassignmentsRequest",
        Kind::Request,
        45,
        [0, 1],
        0,
        &[
            &ALTER_PARTITION_REASSIGNMENTS_REQUEST,
            &ALTER_PARTITION_REASSIGNMENTS_REQUEST_REASSIGNABLE_TOPIC,
            &ALTER_PARTITION_REASSIGNMENTS_REQUEST_REASSIGNABLE_PARTITION,
        ],
    ),
    Message::new(
        16,
        "AlterPartitionReassignmentsResponse",
        Kind::Response,
        45,
        [0, 1],
        0,
        &[
            &ALTER_PARTITION_REASSIGNMENTS_RESPONSE,
            &ALTER_PARTITION_REASSIGNMENTS_RESPONSE_REASSIGNABLE_TOPIC_RESPONSE,
            &ALTER_PARTITION_REASSIGNMENTS_RESPONSE_REASSIGNABLE_PARTITION_RESPONSE,
        ],
    ),
    Message::new(
        17,
        "AlterPartitionRequest",
        Kind::Request,
        56,
        [2, 3],
        0,
        &[
            &ALTER_PARTITION_REQUEST,
            &ALTER_PARTITION_REQUEST_TOPIC_DATA,
            &ALTER_PARTITION_REQUEST_PARTITION_DATA,
            &ALTER_PARTITION_REQUEST_BROKER_STATE,
        ],
    ),
    Message::new(
        18,
        "AlterPartitionResponse",
        Kind::Response,
        56,
        [2, 3],
        0,
        &[
            &ALTER_PARTITION_RESPONSE,
            &ALTER_PARTITION_RESPONSE_TOPIC_DATA,
            &ALTER_PARTITION_RESPONSE_PARTITION_DATA,
        ],
    ),
    Message::new(
        19,
        "AlterReplicaLogDirsRequest",
        Kind::Request,
        34,
        [1, 2],
        2,
        &[
            &ALTER_REPLICA_LOG_DIRS_REQUEST,
            &ALTER_REPLICA_LOG_DIRS_REQUEST_ALTER_REPLICA_LOG_DIR,
            &ALTER_REPLICA_LOG_DIRS_REQUEST_ALTER_REPLICA_LOG_DIR_TOPIC,
        ],
    ),
    Message::new(
        20,
        "AlterReplicaLogDirsResponse",
        Kind::Response,
        34,
        [1, 2],
        2,
        &[
            &ALTER_REPLICA_LOG_DIRS_RESPONSE,
            &ALTER_REPLICA_LOG_DIRS_RESPONSE_ALTER_REPLICA_LOG_DIR_TOPIC_RESULT,
            &ALTER_REPLICA_LOG_DIRS_RESPONSE_ALTER_REPLICA_LOG_DIR_PARTITION_RESULT,
        ],
    ),
    Message::new(
        21,
        "AlterShareGroupOffsetsRequest",
        Kind::Request,
        91,
        [0, 0],
        0,
        &[
            &ALTER_SHARE_GROUP_OFFSETS_REQUEST,
            &ALTER_SHARE_GROUP_OFFSETS_REQUEST_ALTER_SHARE_GROUP_OFFSETS_REQUEST_TOPIC,
            &ALTER_SHARE_GROUP_OFFSETS_REQUEST_ALTER_SHARE_GROUP_OFFSETS_REQUEST_PARTITION,
        ],
    ),
    Message::new(
        22,
        "AlterShareGroupOffsetsResponse",
        Kind::Response,
        91,
        [0, 0],
        0,
        &[
            &ALTER_SHARE_GROUP_OFFSETS_RESPONSE,
            &ALTER_SHARE_GROUP_OFFSETS_RESPONSE_ALTER_SHARE_GROUP_OFFSETS_RESPONSE_TOPIC,
            &ALTER_SHARE_GROUP_OFFSETS_RESPONSE_ALTER_SHARE_GROUP_OFFSETS_RESPONSE_PARTITION,
        ],
    ),
    Message::new(
        23,
        "AlterUserScramCredentialsRequest",
        Kind::Request,
        51,
        [0, 0],
        0,
        &[
            &ALTER_USER_SCRAM_CREDENTIALS_REQUEST,
            &ALTER_USER_SCRAM_CREDENTIALS_REQUEST_SCRAM_CREDENTIAL_DELETION,
            &ALTER_USER_SCRAM_CREDENTIALS_REQUEST_SCRAM_CREDENTIAL_UPSERTION,
        ],
    ),
    Message::new(
        24,
        "AlterUserScramCredentialsResponse",
        Kind::Response,
        51,
        [0, 0],
        0,
        &[
            &ALTER_USER_SCRAM_CREDENTIALS_RESPONSE,
            &ALTER_USER_SCRAM_CREDENTIALS_RESPONSE_ALTER_USER_SCRAM_CREDENTIALS_RESULT,
        ],
    ),
    Message::new(25, "ApiVersionsRequest", Kind::Request, 18, [0, 5], 3, &[&API_VERSIONS_REQUEST]),
    Message::new(
        26,
        "ApiVersionsResponse",
        Kind::Response,
        18,
        [0, 5],
        3,
        &[
            &API_VERSIONS_RESPONSE,
            &API_VERSIONS_RESPONSE_API_VERSION,
            &API_VERSIONS_RESPONSE_SUPPORTED_FEATURE_KEY,
            &API_VERSIONS_RESPONSE_FINALIZED_FEATURE_KEY,
        ],
    ),
    Message::new(
        27,
        "AssignReplicasToDirsRequest",
        Kind::Request,
        73,
        [0, 0],
        0,
        &[
            &ASSIGN_REPLICAS_TO_DIRS_REQUEST,
            &ASSIGN_REPLICAS_TO_DIRS_REQUEST_DIRECTORY_DATA,
            &ASSIGN_REPLICAS_TO_DIRS_REQUEST_TOPIC_DATA,
            &ASSIGN_REPLICAS_TO_DIRS_REQUEST_PARTITION_DATA,
        ],
    ),
    Message::new(
        28,
        "AssignReplicasToDirsResponse",
        Kind::Response,
        73,
        [0, 0],
        0,
        &[
            &ASSIGN_REPLICAS_TO_DIRS_RESPONSE,
            &ASSIGN_REPLICAS_TO_DIRS_RESPONSE_DIRECTORY_DATA,
            &ASSIGN_REPLICAS_TO_DIRS_RESPONSE_TOPIC_DATA,
            &ASSIGN_REPLICAS_TO_DIRS_RESPONSE_PARTITION_DATA,
        ],
    ),
    Message::new(
        29,
        "BeginQuorumEpochRequest",
        Kind::Request,
        53,
        [0, 1],
        1,
        &[
            &BEGIN_QUORUM_EPOCH_REQUEST,
            &BEGIN_QUORUM_EPOCH_REQUEST_TOPIC_DATA,
            &BEGIN_QUORUM_EPOCH_REQUEST_PARTITION_DATA,
            &BEGIN_QUORUM_EPOCH_REQUEST_LEADER_ENDPOINT,
        ],
    ),
    Message::new(
        30,
        "BeginQuorumEpochResponse",
        Kind::Response,
        53,
        [0, 1],
        1,
        &[
            &BEGIN_QUORUM_EPOCH_RESPONSE,
            &BEGIN_QUORUM_EPOCH_RESPONSE_TOPIC_DATA,
            &BEGIN_QUORUM_EPOCH_RESPONSE_PARTITION_DATA,
            &BEGIN_QUORUM_EPOCH_RESPONSE_NODE_ENDPOINT,
        ],
    ),
    Message::new(
        32,
        "BrokerHeartbeatRequest",
        Kind::Request,
        63,
        [0, 2],
        0,
        &[&BROKER_HEARTBEAT_REQUEST],
    ),
    Message::new(
        33,
        "BrokerHeartbeatResponse",
        Kind::Response,
        63,
        [0, 2],
        0,
        &[&BROKER_HEARTBEAT_RESPONSE],
    ),
    Message::new(
        35,
        "BrokerRegistrationRequest",
        Kind::Request,
        62,
        [0, 4],
        0,
        &[
            &BROKER_REGISTRATION_REQUEST,
            &BROKER_REGISTRATION_REQUEST_LISTENER,
            &BROKER_REGISTRATION_REQUEST_FEATURE,
        ],
    ),
    Message::new(
        36,
        "BrokerRegistrationResponse",
        Kind::Response,
        62,
        [0, 4],
        0,
        &[&BROKER_REGISTRATION_RESPONSE],
    ),
    Message::new(
        42,
        "ConsumerGroupDescribeRequest",
        Kind::Request,
        69,
        [0, 1],
        0,
        &[&CONSUMER_GROUP_DESCRIBE_REQUEST],
    ),
    Message::new(
        43,
        "ConsumerGroupDescribeResponse",
        Kind::Response,
        69,
        [0, 1],
        0,
        &[
            &CONSUMER_GROUP_DESCRIBE_RESPONSE,
            &CONSUMER_GROUP_DESCRIBE_RESPONSE_DESCRIBED_GROUP,
            &CONSUMER_GROUP_DESCRIBE_RESPONSE_MEMBER,
            &CONSUMER_GROUP_DESCRIBE_RESPONSE_TOPIC_PARTITIONS,
            &CONSUMER_GROUP_DESCRIBE_RESPONSE_ASSIGNMENT,
        ],
    ),
    Message::new(
        44,
        "ConsumerGroupHeartbeatRequest",
        Kind::Request,
        68,
        [0, 1],
        0,
        &[&CONSUMER_GROUP_HEARTBEAT_REQUEST, &CONSUMER_GROUP_HEARTBEAT_REQUEST_TOPIC_PARTITIONS],
    ),
    Message::new(
        45,
        "ConsumerGroupHeartbeatResponse",
        Kind::Response,
        68,
        [0, 1],
        0,
        &[
            &CONSUMER_GROUP_HEARTBEAT_RESPONSE,
            &CONSUMER_GROUP_HEARTBEAT_RESPONSE_ASSIGNMENT,
            &CONSUMER_GROUP_HEARTBEAT_RESPONSE_TOPIC_PARTITIONS,
        ],
    ),
    Message::new(
        58,
        "ConsumerProtocolAssignment",
        Kind::Data,
        -1,
        [0, 3],
        MAX,
        &[&CONSUMER_PROTOCOL_ASSIGNMENT, &CONSUMER_PROTOCOL_ASSIGNMENT_TOPIC_PARTITION],
    ),
    Message::new(
        59,
        "ConsumerProtocolSubscription",
        Kind::Data,
        -1,
        [0, 3],
        MAX,
        &[&CONSUMER_PROTOCOL_SUBSCRIPTION, &CONSUMER_PROTOCOL_SUBSCRIPTION_TOPIC_PARTITION],
    ),
    Message::new(
        60,
        "ControlRecordTypeSchema",
        Kind::Data,
        -1,
        [0, 0],
        MAX,
        &[&CONTROL_RECORD_TYPE_SCHEMA],
    ),
    Message::new(
        61,
        "ControllerRegistrationRequest",
        Kind::Request,
        70,
        [0, 0],
        0,
        &[
            &CONTROLLER_REGISTRATION_REQUEST,
            &CONTROLLER_REGISTRATION_REQUEST_LISTENER,
            &CONTROLLER_REGISTRATION_REQUEST_FEATURE,
        ],
    ),
    Message::new(
        62,
        "ControllerRegistrationResponse",
        Kind::Response,
        70,
        [0, 0],
        0,
        &[&CONTROLLER_REGISTRATION_RESPONSE],
    ),
    Message::new(
        63,
        "CreateAclsRequest",
        Kind::Request,
        30,
        [1, 3],
        2,
        &[&CREATE_ACLS_REQUEST, &CREATE_ACLS_REQUEST_ACL_CREATION],
    ),
    Message::new(
        64,
        "CreateAclsResponse",
        Kind::Response,
        30,
        [1, 3],
        2,
        &[&CREATE_ACLS_RESPONSE, &CREATE_ACLS_RESPONSE_ACL_CREATION_RESULT],
    ),
    Message::new(
        65,
        "CreateDelegationTokenRequest",
        Kind::Request,
        38,
        [1, 3],
        2,
        &[&CREATE_DELEGATION_TOKEN_REQUEST, &CREATE_DELEGATION_TOKEN_REQUEST_CREATABLE_RENEWERS],
    ),
    Message::new(
        66,
        "CreateDelegationTokenResponse",
        Kind::Response,
        38,
        [1, 3],
        2,
        &[&CREATE_DELEGATION_TOKEN_RESPONSE],
    ),
    Message::new(
        67,
        "CreatePartitionsRequest",
        Kind::Request,
        37,
        [0, 3],
        2,
        &[
            &CREATE_PARTITIONS_REQUEST,
            &CREATE_PARTITIONS_REQUEST_CREATE_PARTITIONS_TOPIC,
            &CREATE_PARTITIONS_REQUEST_CREATE_PARTITIONS_ASSIGNMENT,
        ],
    ),
    Message::new(
        68,
        "CreatePartitionsResponse",
        Kind::Response,
        37,
        [0, 3],
        2,
        &[&CREATE_PARTITIONS_RESPONSE, &CREATE_PARTITIONS_RESPONSE_CREATE_PARTITIONS_TOPIC_RESULT],
    ),
    Message::new(
        69,
        "CreateTopicsRequest",
        Kind::Request,
        19,
        [2, 7],
        5,
        &[
            &CREATE_TOPICS_REQUEST,
            &CREATE_TOPICS_REQUEST_CREATABLE_TOPIC,
            &CREATE_TOPICS_REQUEST_CREATABLE_REPLICA_ASSIGNMENT,
            &CREATE_TOPICS_REQUEST_CREATABLE_TOPIC_CONFIG,
        ],
    ),
    Message::new(
        70,
        "CreateTopicsResponse",
        Kind::Response,
        19,
        [2, 7],
        5,
        &[
            &CREATE_TOPICS_RESPONSE,
            &CREATE_TOPICS_RESPONSE_CREATABLE_TOPIC_RESULT,
            &CREATE_TOPICS_RESPONSE_CREATABLE_TOPIC_CONFIGS,
        ],
    ),
    Message::new(71, "DefaultPrincipalData", Kind::Data, -1, [0, 0], 0, &[&DEFAULT_PRINCIPAL_DATA]),
    Message::new(
        73,
        "DeleteAclsRequest",
        Kind::Request,
        31,
        [1, 3],
        2,
        &[&DELETE_ACLS_REQUEST, &DELETE_ACLS_REQUEST_DELETE_ACLS_FILTER],
    ),
    Message::new(
        74,
        "DeleteAclsResponse",
        Kind::Response,
        31,
        [1, 3],
        2,
        &[
            &DELETE_ACLS_RESPONSE,
            &DELETE_ACLS_RESPONSE_DELETE_ACLS_FILTER_RESULT,
            &DELETE_ACLS_RESPONSE_DELETE_ACLS_MATCHING_ACL,
        ],
    ),
    Message::new(
        75,
        "DeleteGroupsRequest",
        Kind::Request,
        42,
        [0, 3],
        2,
        &[&DELETE_GROUPS_REQUEST],
    ),
    Message::new(
        76,
        "DeleteGroupsResponse",
        Kind::Response,
        42,
        [0, 3],
        2,
        &[&DELETE_GROUPS_RESPONSE, &DELETE_GROUPS_RESPONSE_DELETABLE_GROUP_RESULT],
    ),
    Message::new(
        77,
        "DeleteRecordsRequest",
        Kind::Request,
        21,
        [0, 2],
        2,
        &[
            &DELETE_RECORDS_REQUEST,
            &DELETE_RECORDS_REQUEST_DELETE_RECORDS_TOPIC,
            &DELETE_RECORDS_REQUEST_DELETE_RECORDS_PARTITION,
        ],
    ),
    Message::new(
        78,
        "DeleteRecordsResponse",
        Kind::Response,
        21,
        [0, 2],
        2,
        &[
            &DELETE_RECORDS_RESPONSE,
            &DELETE_RECORDS_RESPONSE_DELETE_RECORDS_TOPIC_RESULT,
            &DELETE_RECORDS_RESPONSE_DELETE_RECORDS_PARTITION_RESULT,
        ],
    ),
    Message::new(
        79,
        "DeleteShareGroupOffsetsRequest",
        Kind::Request,
        92,
        [0, 0],
        0,
        &[
            &DELETE_SHARE_GROUP_OFFSETS_REQUEST,
            &DELETE_SHARE_GROUP_OFFSETS_REQUEST_DELETE_SHARE_GROUP_OFFSETS_REQUEST_TOPIC,
        ],
    ),
    Message::new(
        80,
        "DeleteShareGroupOffsetsResponse",
        Kind::Response,
        92,
        [0, 0],
        0,
        &[
            &DELETE_SHARE_GROUP_OFFSETS_RESPONSE,
            &DELETE_SHARE_GROUP_OFFSETS_RESPONSE_DELETE_SHARE_GROUP_OFFSETS_RESPONSE_TOPIC,
        ],
    ),
    Message::new(
        81,
        "DeleteShareGroupStateRequest",
        Kind::Request,
        86,
        [0, 0],
        0,
        &[
            &DELETE_SHARE_GROUP_STATE_REQUEST,
            &DELETE_SHARE_GROUP_STATE_REQUEST_DELETE_STATE_DATA,
            &DELETE_SHARE_GROUP_STATE_REQUEST_PARTITION_DATA,
        ],
    ),
    Message::new(
        82,
        "DeleteShareGroupStateResponse",
        Kind::Response,
        86,
        [0, 0],
        0,
        &[
            &DELETE_SHARE_GROUP_STATE_RESPONSE,
            &DELETE_SHARE_GROUP_STATE_RESPONSE_DELETE_STATE_RESULT,
            &DELETE_SHARE_GROUP_STATE_RESPONSE_PARTITION_RESULT,
        ],
    ),
    Message::new(
        83,
        "DeleteTopicsRequest",
        Kind::Request,
        20,
        [1, 6],
        4,
        &[&DELETE_TOPICS_REQUEST, &DELETE_TOPICS_REQUEST_DELETE_TOPIC_STATE],
    ),
    Message::new(
        84,
        "DeleteTopicsResponse",
        Kind::Response,
        20,
        [1, 6],
        4,
        &[&DELETE_TOPICS_RESPONSE, &DELETE_TOPICS_RESPONSE_DELETABLE_TOPIC_RESULT],
    ),
    Message::new(
        85,
        "DescribeAclsRequest",
        Kind::Request,
        29,
        [1, 3],
        2,
        &[&DESCRIBE_ACLS_REQUEST],
    ),
    Message::new(
        86,
        "DescribeAclsResponse",
        Kind::Response,
        29,
        [1, 3],
        2,
        &[
            &DESCRIBE_ACLS_RESPONSE,
            &DESCRIBE_ACLS_RESPONSE_DESCRIBE_ACLS_RESOURCE,
            &DESCRIBE_ACLS_RESPONSE_ACL_DESCRIPTION,
        ],
    ),
    Message::new(
        87,
        "DescribeClientQuotasRequest",
        Kind::Request,
        48,
        [0, 1],
        1,
        &[&DESCRIBE_CLIENT_QUOTAS_REQUEST, &DESCRIBE_CLIENT_QUOTAS_REQUEST_COMPONENT_DATA],
    ),
    Message::new(
        88,
        "DescribeClientQuotasResponse",
        Kind::Response,
        48,
        [0, 1],
        1,
        &[
            &DESCRIBE_CLIENT_QUOTAS_RESPONSE,
            &DESCRIBE_CLIENT_QUOTAS_RESPONSE_ENTRY_DATA,
            &DESCRIBE_CLIENT_QUOTAS_RESPONSE_ENTITY_DATA,
            &DESCRIBE_CLIENT_QUOTAS_RESPONSE_VALUE_DATA,
        ],
    ),
    Message::new(
        89,
        "DescribeClusterRequest",
        Kind::Request,
        60,
        [0, 2],
        0,
        &[&DESCRIBE_CLUSTER_REQUEST],
    ),
    Message::new(
        90,
        "DescribeClusterResponse",
        Kind::Response,
        60,
        [0, 2],
        0,
        &[&DESCRIBE_CLUSTER_RESPONSE, &DESCRIBE_CLUSTER_RESPONSE_DESCRIBE_CLUSTER_BROKER],
    ),
    Message::new(
        91,
        "DescribeConfigsRequest",
        Kind::Request,
        32,
        [1, 4],
        4,
        &[&DESCRIBE_CONFIGS_REQUEST, &DESCRIBE_CONFIGS_REQUEST_DESCRIBE_CONFIGS_RESOURCE],
    ),
    Message::new(
        92,
        "DescribeConfigsResponse",
        Kind::Response,
        32,
        [1, 4],
        4,
        &[
            &DESCRIBE_CONFIGS_RESPONSE,
            &DESCRIBE_CONFIGS_RESPONSE_DESCRIBE_CONFIGS_RESULT,
            &DESCRIBE_CONFIGS_RESPONSE_DESCRIBE_CONFIGS_RESOURCE_RESULT,
            &DESCRIBE_CONFIGS_RESPONSE_DESCRIBE_CONFIGS_SYNONYM,
        ],
    ),
    Message::new(
        93,
        "DescribeDelegationTokenRequest",
        Kind::Request,
        41,
        [1, 3],
        2,
        &[
            &DESCRIBE_DELEGATION_TOKEN_REQUEST,
            &DESCRIBE_DELEGATION_TOKEN_REQUEST_DESCRIBE_DELEGATION_TOKEN_OWNER,
        ],
    ),
    Message::new(
        94,
        "DescribeDelegationTokenResponse",
        Kind::Response,
        41,
        [1, 3],
        2,
        &[
            &DESCRIBE_DELEGATION_TOKEN_RESPONSE,
            &DESCRIBE_DELEGATION_TOKEN_RESPONSE_DESCRIBED_DELEGATION_TOKEN,
            &DESCRIBE_DELEGATION_TOKEN_RESPONSE_DESCRIBED_DELEGATION_TOKEN_RENEWER,
        ],
    ),
    Message::new(
        95,
        "DescribeGroupsRequest",
        Kind::Request,
        15,
        [0, 6],
        5,
        &[&DESCRIBE_GROUPS_REQUEST],
    ),
    Message::new(
        96,
        "DescribeGroupsResponse",
        Kind::Response,
        15,
        [0, 6],
        5,
        &[
            &DESCRIBE_GROUPS_RESPONSE,
            &DESCRIBE_GROUPS_RESPONSE_DESCRIBED_GROUP,
            &DESCRIBE_GROUPS_RESPONSE_DESCRIBED_GROUP_MEMBER,
        ],
    ),
    Message::new(
        97,
        "DescribeLogDirsRequest",
        Kind::Request,
        35,
        [1, 5],
        2,
        &[&DESCRIBE_LOG_DIRS_REQUEST, &DESCRIBE_LOG_DIRS_REQUEST_DESCRIBABLE_LOG_DIR_TOPIC],
    ),
    Message::new(
        98,
        "DescribeLogDirsResponse",
        Kind::Response,
        35,
        [1, 5],
        2,
        &[
            &DESCRIBE_LOG_DIRS_RESPONSE,
            &DESCRIBE_LOG_DIRS_RESPONSE_DESCRIBE_LOG_DIRS_RESULT,
            &DESCRIBE_LOG_DIRS_RESPONSE_DESCRIBE_LOG_DIRS_TOPIC,
            &DESCRIBE_LOG_DIRS_RESPONSE_DESCRIBE_LOG_DIRS_PARTITION,
        ],
    ),
    Message::new(
        99,
        "DescribeProducersRequest",
        Kind::Request,
        61,
        [0, 0],
        0,
        &[&DESCRIBE_PRODUCERS_REQUEST, &DESCRIBE_PRODUCERS_REQUEST_TOPIC_REQUEST],
    ),
    Message::new(
        100,
        "DescribeProducersResponse",
        Kind::Response,
        61,
        [0, 0],
        0,
        &[
            &DESCRIBE_PRODUCERS_RESPONSE,
            &DESCRIBE_PRODUCERS_RESPONSE_TOPIC_RESPONSE,
            &DESCRIBE_PRODUCERS_RESPONSE_PARTITION_RESPONSE,
            &DESCRIBE_PRODUCERS_RESPONSE_PRODUCER_STATE,
        ],
    ),
    Message::new(
        101,
        "DescribeQuorumRequest",
        Kind::Request,
        55,
        [0, 2],
        0,
        &[
            &DESCRIBE_QUORUM_REQUEST,
            &DESCRIBE_QUORUM_REQUEST_TOPIC_DATA,
            &DESCRIBE_QUORUM_REQUEST_PARTITION_DATA,
        ],
    ),
    Message::new(
        102,
        "DescribeQuorumResponse",
        Kind::Response,
        55,
        [0, 2],
        0,
        &[
            &DESCRIBE_QUORUM_RESPONSE,
            &DESCRIBE_QUORUM_RESPONSE_TOPIC_DATA,
            &DESCRIBE_QUORUM_RESPONSE_PARTITION_DATA,
            &DESCRIBE_QUORUM_RESPONSE_NODE,
            &DESCRIBE_QUORUM_RESPONSE_LISTENER,
            &DESCRIBE_QUORUM_RESPONSE_REPLICA_STATE,
        ],
    ),
    Message::new(
        103,
        "DescribeShareGroupOffsetsRequest",
        Kind::Request,
        90,
        [0, 1],
        0,
        &[
            &DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST,
            &DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST_DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST_GROUP,
            &DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST_DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST_TOPIC,
        ],
    ),
    Message::new(
        104,
        "DescribeShareGroupOffsetsResponse",
        Kind::Response,
        90,
        [0, 1],
        0,
        &[
            &DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE,
            &DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_GROUP,
            &DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_TOPIC,
            &DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE_PARTITION,
        ],
    ),
    Message::new(
        105,
        "DescribeTopicPartitionsRequest",
        Kind::Request,
        75,
        [0, 0],
        0,
        &[
            &DESCRIBE_TOPIC_PARTITIONS_REQUEST,
            &DESCRIBE_TOPIC_PARTITIONS_REQUEST_TOPIC_REQUEST,
            &DESCRIBE_TOPIC_PARTITIONS_REQUEST_CURSOR,
        ],
    ),
    Message::new(
        106,
        "DescribeTopicPartitionsResponse",
        Kind::Response,
        75,
        [0, 0],
        0,
        &[
            &DESCRIBE_TOPIC_PARTITIONS_RESPONSE,
            &DESCRIBE_TOPIC_PARTITIONS_RESPONSE_DESCRIBE_TOPIC_PARTITIONS_RESPONSE_TOPIC,
            &DESCRIBE_TOPIC_PARTITIONS_RESPONSE_DESCRIBE_TOPIC_PARTITIONS_RESPONSE_PARTITION,
            &DESCRIBE_TOPIC_PARTITIONS_RESPONSE_CURSOR,
        ],
    ),
    Message::new(
        107,
        "DescribeTransactionsRequest",
        Kind::Request,
        65,
        [0, 0],
        0,
        &[&DESCRIBE_TRANSACTIONS_REQUEST],
    ),
    Message::new(
        108,
        "DescribeTransactionsResponse",
        Kind::Response,
        65,
        [0, 0],
        0,
        &[
            &DESCRIBE_TRANSACTIONS_RESPONSE,
            &DESCRIBE_TRANSACTIONS_RESPONSE_TRANSACTION_STATE,
            &DESCRIBE_TRANSACTIONS_RESPONSE_TOPIC_DATA,
        ],
    ),
    Message::new(
        109,
        "DescribeUserScramCredentialsRequest",
        Kind::Request,
        50,
        [0, 0],
        0,
        &[
            &DESCRIBE_USER_SCRAM_CREDENTIALS_REQUEST,
            &DESCRIBE_USER_SCRAM_CREDENTIALS_REQUEST_USER_NAME,
        ],
    ),
    Message::new(
        110,
        "DescribeUserScramCredentialsResponse",
        Kind::Response,
        50,
        [0, 0],
        0,
        &[
            &DESCRIBE_USER_SCRAM_CREDENTIALS_RESPONSE,
            &DESCRIBE_USER_SCRAM_CREDENTIALS_RESPONSE_DESCRIBE_USER_SCRAM_CREDENTIALS_RESULT,
            &DESCRIBE_USER_SCRAM_CREDENTIALS_RESPONSE_CREDENTIAL_INFO,
        ],
    ),
    Message::new(
        111,
        "ElectLeadersRequest",
        Kind::Request,
        43,
        [0, 2],
        2,
        &[&ELECT_LEADERS_REQUEST, &ELECT_LEADERS_REQUEST_TOPIC_PARTITIONS],
    ),
    Message::new(
        112,
        "ElectLeadersResponse",
        Kind::Response,
        43,
        [0, 2],
        2,
        &[
            &ELECT_LEADERS_RESPONSE,
            &ELECT_LEADERS_RESPONSE_REPLICA_ELECTION_RESULT,
            &ELECT_LEADERS_RESPONSE_PARTITION_RESULT,
        ],
    ),
    Message::new(
        113,
        "EndQuorumEpochRequest",
        Kind::Request,
        54,
        [0, 1],
        1,
        &[
            &END_QUORUM_EPOCH_REQUEST,
            &END_QUORUM_EPOCH_REQUEST_TOPIC_DATA,
            &END_QUORUM_EPOCH_REQUEST_PARTITION_DATA,
            &END_QUORUM_EPOCH_REQUEST_REPLICA_INFO,
            &END_QUORUM_EPOCH_REQUEST_LEADER_ENDPOINT,
        ],
    ),
    Message::new(
        114,
        "EndQuorumEpochResponse",
        Kind::Response,
        54,
        [0, 1],
        1,
        &[
            &END_QUORUM_EPOCH_RESPONSE,
            &END_QUORUM_EPOCH_RESPONSE_TOPIC_DATA,
            &END_QUORUM_EPOCH_RESPONSE_PARTITION_DATA,
            &END_QUORUM_EPOCH_RESPONSE_NODE_ENDPOINT,
        ],
    ),
    Message::new(116, "EndTxnMarker", Kind::Data, -1, [0, 0], MAX, &[&END_TXN_MARKER]),
    Message::new(117, "EndTxnRequest", Kind::Request, 26, [0, 5], 3, &[&END_TXN_REQUEST]),
    Message::new(118, "EndTxnResponse", Kind::Response, 26, [0, 5], 3, &[&END_TXN_RESPONSE]),
    Message::new(119, "EnvelopeRequest", Kind::Request, 58, [0, 0], 0, &[&ENVELOPE_REQUEST]),
    Message::new(120, "EnvelopeResponse", Kind::Response, 58, [0, 0], 0, &[&ENVELOPE_RESPONSE]),
    Message::new(
        121,
        "ExpireDelegationTokenRequest",
        Kind::Request,
        40,
        [1, 2],
        2,
        &[&EXPIRE_DELEGATION_TOKEN_REQUEST],
    ),
    Message::new(
        122,
        "ExpireDelegationTokenResponse",
        Kind::Response,
        40,
        [1, 2],
        2,
        &[&EXPIRE_DELEGATION_TOKEN_RESPONSE],
    ),
    Message::new(
        125,
        "FetchRequest",
        Kind::Request,
        1,
        [4, 18],
        12,
        &[
            &FETCH_REQUEST,
            &FETCH_REQUEST_REPLICA_STATE,
            &FETCH_REQUEST_FETCH_TOPIC,
            &FETCH_REQUEST_FETCH_PARTITION,
            &FETCH_REQUEST_FORGOTTEN_TOPIC,
        ],
    ),
    Message::new(
        126,
        "FetchResponse",
        Kind::Response,
        1,
        [4, 18],
        12,
        &[
            &FETCH_RESPONSE,
            &FETCH_RESPONSE_FETCHABLE_TOPIC_RESPONSE,
            &FETCH_RESPONSE_PARTITION_DATA,
            &FETCH_RESPONSE_EPOCH_END_OFFSET,
            &FETCH_RESPONSE_LEADER_ID_AND_EPOCH,
            &FETCH_RESPONSE_SNAPSHOT_ID,
            &FETCH_RESPONSE_ABORTED_TRANSACTION,
            &FETCH_RESPONSE_NODE_ENDPOINT,
        ],
    ),
    Message::new(
        127,
        "FetchSnapshotRequest",
        Kind::Request,
        59,
        [0, 1],
        0,
        &[
            &FETCH_SNAPSHOT_REQUEST,
            &FETCH_SNAPSHOT_REQUEST_TOPIC_SNAPSHOT,
            &FETCH_SNAPSHOT_REQUEST_PARTITION_SNAPSHOT,
            &FETCH_SNAPSHOT_REQUEST_SNAPSHOT_ID,
        ],
    ),
    Message::new(
        128,
        "FetchSnapshotResponse",
        Kind::Response,
        59,
        [0, 1],
        0,
        &[
            &FETCH_SNAPSHOT_RESPONSE,
            &FETCH_SNAPSHOT_RESPONSE_TOPIC_SNAPSHOT,
            &FETCH_SNAPSHOT_RESPONSE_PARTITION_SNAPSHOT,
            &FETCH_SNAPSHOT_RESPONSE_SNAPSHOT_ID,
            &FETCH_SNAPSHOT_RESPONSE_LEADER_ID_AND_EPOCH,
            &FETCH_SNAPSHOT_RESPONSE_NODE_ENDPOINT,
        ],
    ),
    Message::new(
        129,
        "FindCoordinatorRequest",
        Kind::Request,
        10,
        [0, 6],
        3,
        &[&FIND_COORDINATOR_REQUEST],
    ),
    Message::new(
        130,
        "FindCoordinatorResponse",
        Kind::Response,
        10,
        [0, 6],
        3,
        &[&FIND_COORDINATOR_RESPONSE, &FIND_COORDINATOR_RESPONSE_COORDINATOR],
    ),
    Message::new(
        131,
        "GetTelemetrySubscriptionsRequest",
        Kind::Request,
        71,
        [0, 0],
        0,
        &[&GET_TELEMETRY_SUBSCRIPTIONS_REQUEST],
    ),
    Message::new(
        132,
        "GetTelemetrySubscriptionsResponse",
        Kind::Response,
        71,
        [0, 0],
        0,
        &[&GET_TELEMETRY_SUBSCRIPTIONS_RESPONSE],
    ),
    Message::new(135, "HeartbeatRequest", Kind::Request, 12, [0, 4], 4, &[&HEARTBEAT_REQUEST]),
    Message::new(136, "HeartbeatResponse", Kind::Response, 12, [0, 4], 4, &[&HEARTBEAT_RESPONSE]),
    Message::new(
        137,
        "IncrementalAlterConfigsRequest",
        Kind::Request,
        44,
        [0, 1],
        1,
        &[
            &INCREMENTAL_ALTER_CONFIGS_REQUEST,
            &INCREMENTAL_ALTER_CONFIGS_REQUEST_ALTER_CONFIGS_RESOURCE,
            &INCREMENTAL_ALTER_CONFIGS_REQUEST_ALTERABLE_CONFIG,
        ],
    ),
    Message::new(
        138,
        "IncrementalAlterConfigsResponse",
        Kind::Response,
        44,
        [0, 1],
        1,
        &[
            &INCREMENTAL_ALTER_CONFIGS_RESPONSE,
            &INCREMENTAL_ALTER_CONFIGS_RESPONSE_ALTER_CONFIGS_RESOURCE_RESPONSE,
        ],
    ),
    Message::new(
        139,
        "InitProducerIdRequest",
        Kind::Request,
        22,
        [0, 6],
        2,
        &[&INIT_PRODUCER_ID_REQUEST],
    ),
    Message::new(
        140,
        "InitProducerIdResponse",
        Kind::Response,
        22,
        [0, 6],
        2,
        &[&INIT_PRODUCER_ID_RESPONSE],
    ),
    Message::new(
        141,
        "InitializeShareGroupStateRequest",
        Kind::Request,
        83,
        [0, 0],
        0,
        &[
            &INITIALIZE_SHARE_GROUP_STATE_REQUEST,
            &INITIALIZE_SHARE_GROUP_STATE_REQUEST_INITIALIZE_STATE_DATA,
            &INITIALIZE_SHARE_GROUP_STATE_REQUEST_PARTITION_DATA,
        ],
    ),
    Message::new(
        142,
        "InitializeShareGroupStateResponse",
        Kind::Response,
        83,
        [0, 0],
        0,
        &[
            &INITIALIZE_SHARE_GROUP_STATE_RESPONSE,
            &INITIALIZE_SHARE_GROUP_STATE_RESPONSE_INITIALIZE_STATE_RESULT,
            &INITIALIZE_SHARE_GROUP_STATE_RESPONSE_PARTITION_RESULT,
        ],
    ),
    Message::new(
        143,
        "JoinGroupRequest",
        Kind::Request,
        11,
        [0, 9],
        6,
        &[&JOIN_GROUP_REQUEST, &JOIN_GROUP_REQUEST_JOIN_GROUP_REQUEST_PROTOCOL],
    ),
    Message::new(
        144,
        "JoinGroupResponse",
        Kind::Response,
        11,
        [0, 9],
        6,
        &[&JOIN_GROUP_RESPONSE, &JOIN_GROUP_RESPONSE_JOIN_GROUP_RESPONSE_MEMBER],
    ),
    Message::new(145, "KRaftVersionRecord", Kind::Data, -1, [0, 0], 0, &[&K_RAFT_VERSION_RECORD]),
    Message::new(
        146,
        "LeaderChangeMessage",
        Kind::Data,
        -1,
        [0, 1],
        0,
        &[&LEADER_CHANGE_MESSAGE, &LEADER_CHANGE_MESSAGE_VOTER],
    ),
    Message::new(
        147,
        "LeaveGroupRequest",
        Kind::Request,
        13,
        [0, 5],
        4,
        &[&LEAVE_GROUP_REQUEST, &LEAVE_GROUP_REQUEST_MEMBER_IDENTITY],
    ),
    Message::new(
        148,
        "LeaveGroupResponse",
        Kind::Response,
        13,
        [0, 5],
        4,
        &[&LEAVE_GROUP_RESPONSE, &LEAVE_GROUP_RESPONSE_MEMBER_RESPONSE],
    ),
    Message::new(
        151,
        "ListConfigResourcesRequest",
        Kind::Request,
        74,
        [0, 1],
        0,
        &[&LIST_CONFIG_RESOURCES_REQUEST],
    ),
    Message::new(
        152,
        "ListConfigResourcesResponse",
        Kind::Response,
        74,
        [0, 1],
        0,
        &[&LIST_CONFIG_RESOURCES_RESPONSE, &LIST_CONFIG_RESOURCES_RESPONSE_CONFIG_RESOURCE],
    ),
    Message::new(153, "ListGroupsRequest", Kind::Request, 16, [0, 5], 3, &[&LIST_GROUPS_REQUEST]),
    Message::new(
        154,
        "ListGroupsResponse",
        Kind::Response,
        16,
        [0, 5],
        3,
        &[&LIST_GROUPS_RESPONSE, &LIST_GROUPS_RESPONSE_LISTED_GROUP],
    ),
    Message::new(
        155,
        "ListOffsetsRequest",
        Kind::Request,
        2,
        [1, 11],
        6,
        &[
            &LIST_OFFSETS_REQUEST,
            &LIST_OFFSETS_REQUEST_LIST_OFFSETS_TOPIC,
            &LIST_OFFSETS_REQUEST_LIST_OFFSETS_PARTITION,
        ],
    ),
    Message::new(
        156,
        "ListOffsetsResponse",
        Kind::Response,
        2,
        [1, 11],
        6,
        &[
            &LIST_OFFSETS_RESPONSE,
            &LIST_OFFSETS_RESPONSE_LIST_OFFSETS_TOPIC_RESPONSE,
            &LIST_OFFSETS_RESPONSE_LIST_OFFSETS_PARTITION_RESPONSE,
        ],
    ),
    Message::new(
        157,
        "ListPartitionReassignmentsRequest",
        Kind::Request,
        46,
        [0, 0],
        0,
        &[
            &LIST_PARTITION_REASSIGNMENTS_REQUEST,
            &LIST_PARTITION_REASSIGNMENTS_REQUEST_LIST_PARTITION_REASSIGNMENTS_TOPICS,
        ],
    ),
    Message::new(
        158,
        "ListPartitionReassignmentsResponse",
        Kind::Response,
        46,
        [0, 0],
        0,
        &[
            &LIST_PARTITION_REASSIGNMENTS_RESPONSE,
            &LIST_PARTITION_REASSIGNMENTS_RESPONSE_ONGOING_TOPIC_REASSIGNMENT,
            &LIST_PARTITION_REASSIGNMENTS_RESPONSE_ONGOING_PARTITION_REASSIGNMENT,
        ],
    ),
    Message::new(
        159,
        "ListTransactionsRequest",
        Kind::Request,
        66,
        [0, 2],
        0,
        &[&LIST_TRANSACTIONS_REQUEST],
    ),
    Message::new(
        160,
        "ListTransactionsResponse",
        Kind::Response,
        66,
        [0, 2],
        0,
        &[&LIST_TRANSACTIONS_RESPONSE, &LIST_TRANSACTIONS_RESPONSE_TRANSACTION_STATE],
    ),
    Message::new(
        161,
        "MetadataRequest",
        Kind::Request,
        3,
        [0, 13],
        9,
        &[&METADATA_REQUEST, &METADATA_REQUEST_METADATA_REQUEST_TOPIC],
    ),
    Message::new(
        162,
        "MetadataResponse",
        Kind::Response,
        3,
        [0, 13],
        9,
        &[
            &METADATA_RESPONSE,
            &METADATA_RESPONSE_METADATA_RESPONSE_BROKER,
            &METADATA_RESPONSE_METADATA_RESPONSE_TOPIC,
            &METADATA_RESPONSE_METADATA_RESPONSE_PARTITION,
        ],
    ),
    Message::new(
        165,
        "OffsetCommitRequest",
        Kind::Request,
        8,
        [2, 10],
        8,
        &[
            &OFFSET_COMMIT_REQUEST,
            &OFFSET_COMMIT_REQUEST_OFFSET_COMMIT_REQUEST_TOPIC,
            &OFFSET_COMMIT_REQUEST_OFFSET_COMMIT_REQUEST_PARTITION,
        ],
    ),
    Message::new(
        166,
        "OffsetCommitResponse",
        Kind::Response,
        8,
        [2, 10],
        8,
        &[
            &OFFSET_COMMIT_RESPONSE,
            &OFFSET_COMMIT_RESPONSE_OFFSET_COMMIT_RESPONSE_TOPIC,
            &OFFSET_COMMIT_RESPONSE_OFFSET_COMMIT_RESPONSE_PARTITION,
        ],
    ),
    Message::new(
        168,
        "OffsetDeleteRequest",
        Kind::Request,
        47,
        [0, 0],
        MAX,
        &[
            &OFFSET_DELETE_REQUEST,
            &OFFSET_DELETE_REQUEST_OFFSET_DELETE_REQUEST_TOPIC,
            &OFFSET_DELETE_REQUEST_OFFSET_DELETE_REQUEST_PARTITION,
        ],
    ),
    Message::new(
        169,
        "OffsetDeleteResponse",
        Kind::Response,
        47,
        [0, 0],
        MAX,
        &[
            &OFFSET_DELETE_RESPONSE,
            &OFFSET_DELETE_RESPONSE_OFFSET_DELETE_RESPONSE_TOPIC,
            &OFFSET_DELETE_RESPONSE_OFFSET_DELETE_RESPONSE_PARTITION,
        ],
    ),
    Message::new(
        170,
        "OffsetFetchRequest",
        Kind::Request,
        9,
        [1, 10],
        6,
        &[
            &OFFSET_FETCH_REQUEST,
            &OFFSET_FETCH_REQUEST_OFFSET_FETCH_REQUEST_TOPIC,
            &OFFSET_FETCH_REQUEST_OFFSET_FETCH_REQUEST_GROUP,
            &OFFSET_FETCH_REQUEST_OFFSET_FETCH_REQUEST_TOPICS,
        ],
    ),
    Message::new(
        171,
        "OffsetFetchResponse",
        Kind::Response,
        9,
        [1, 10],
        6,
        &[
            &OFFSET_FETCH_RESPONSE,
            &OFFSET_FETCH_RESPONSE_OFFSET_FETCH_RESPONSE_TOPIC,
            &OFFSET_FETCH_RESPONSE_OFFSET_FETCH_RESPONSE_PARTITION,
            &OFFSET_FETCH_RESPONSE_OFFSET_FETCH_RESPONSE_GROUP,
            &OFFSET_FETCH_RESPONSE_OFFSET_FETCH_RESPONSE_TOPICS,
            &OFFSET_FETCH_RESPONSE_OFFSET_FETCH_RESPONSE_PARTITIONS,
        ],
    ),
    Message::new(
        172,
        "OffsetForLeaderEpochRequest",
        Kind::Request,
        23,
        [2, 4],
        4,
        &[
            &OFFSET_FOR_LEADER_EPOCH_REQUEST,
            &OFFSET_FOR_LEADER_EPOCH_REQUEST_OFFSET_FOR_LEADER_TOPIC,
            &OFFSET_FOR_LEADER_EPOCH_REQUEST_OFFSET_FOR_LEADER_PARTITION,
        ],
    ),
    Message::new(
        173,
        "OffsetForLeaderEpochResponse",
        Kind::Response,
        23,
        [2, 4],
        4,
        &[
            &OFFSET_FOR_LEADER_EPOCH_RESPONSE,
            &OFFSET_FOR_LEADER_EPOCH_RESPONSE_OFFSET_FOR_LEADER_TOPIC_RESULT,
            &OFFSET_FOR_LEADER_EPOCH_RESPONSE_EPOCH_END_OFFSET,
        ],
    ),
    Message::new(
        176,
        "ProduceRequest",
        Kind::Request,
        0,
        [3, 13],
        9,
        &[
            &PRODUCE_REQUEST,
            &PRODUCE_REQUEST_TOPIC_PRODUCE_DATA,
            &PRODUCE_REQUEST_PARTITION_PRODUCE_DATA,
        ],
    ),
    Message::new(
        177,
        "ProduceResponse",
        Kind::Response,
        0,
        [3, 13],
        9,
        &[
            &PRODUCE_RESPONSE,
            &PRODUCE_RESPONSE_TOPIC_PRODUCE_RESPONSE,
            &PRODUCE_RESPONSE_PARTITION_PRODUCE_RESPONSE,
            &PRODUCE_RESPONSE_BATCH_INDEX_AND_ERROR_MESSAGE,
            &PRODUCE_RESPONSE_LEADER_ID_AND_EPOCH,
            &PRODUCE_RESPONSE_NODE_ENDPOINT,
        ],
    ),
    Message::new(
        180,
        "PushTelemetryRequest",
        Kind::Request,
        72,
        [0, 0],
        0,
        &[&PUSH_TELEMETRY_REQUEST],
    ),
    Message::new(
        181,
        "PushTelemetryResponse",
        Kind::Response,
        72,
        [0, 0],
        0,
        &[&PUSH_TELEMETRY_RESPONSE],
    ),
    Message::new(
        183,
        "ReadShareGroupStateRequest",
        Kind::Request,
        84,
        [0, 0],
        0,
        &[
            &READ_SHARE_GROUP_STATE_REQUEST,
            &READ_SHARE_GROUP_STATE_REQUEST_READ_STATE_DATA,
            &READ_SHARE_GROUP_STATE_REQUEST_PARTITION_DATA,
        ],
    ),
    Message::new(
        184,
        "ReadShareGroupStateResponse",
        Kind::Response,
        84,
        [0, 0],
        0,
        &[
            &READ_SHARE_GROUP_STATE_RESPONSE,
            &READ_SHARE_GROUP_STATE_RESPONSE_READ_STATE_RESULT,
            &READ_SHARE_GROUP_STATE_RESPONSE_PARTITION_RESULT,
            &READ_SHARE_GROUP_STATE_RESPONSE_STATE_BATCH,
        ],
    ),
    Message::new(
        185,
        "ReadShareGroupStateSummaryRequest",
        Kind::Request,
        87,
        [0, 1],
        0,
        &[
            &READ_SHARE_GROUP_STATE_SUMMARY_REQUEST,
            &READ_SHARE_GROUP_STATE_SUMMARY_REQUEST_READ_STATE_SUMMARY_DATA,
            &READ_SHARE_GROUP_STATE_SUMMARY_REQUEST_PARTITION_DATA,
        ],
    ),
    Message::new(
        186,
        "ReadShareGroupStateSummaryResponse",
        Kind::Response,
        87,
        [0, 1],
        0,
        &[
            &READ_SHARE_GROUP_STATE_SUMMARY_RESPONSE,
            &READ_SHARE_GROUP_STATE_SUMMARY_RESPONSE_READ_STATE_SUMMARY_RESULT,
            &READ_SHARE_GROUP_STATE_SUMMARY_RESPONSE_PARTITION_RESULT,
        ],
    ),
    Message::new(
        195,
        "RemoveRaftVoterRequest",
        Kind::Request,
        81,
        [0, 0],
        0,
        &[&REMOVE_RAFT_VOTER_REQUEST],
    ),
    Message::new(
        196,
        "RemoveRaftVoterResponse",
        Kind::Response,
        81,
        [0, 0],
        0,
        &[&REMOVE_RAFT_VOTER_RESPONSE],
    ),
    Message::new(
        199,
        "RenewDelegationTokenRequest",
        Kind::Request,
        39,
        [1, 2],
        2,
        &[&RENEW_DELEGATION_TOKEN_REQUEST],
    ),
    Message::new(
        200,
        "RenewDelegationTokenResponse",
        Kind::Response,
        39,
        [1, 2],
        2,
        &[&RENEW_DELEGATION_TOKEN_RESPONSE],
    ),
    Message::new(
        201,
        "SaslAuthenticateRequest",
        Kind::Request,
        36,
        [0, 2],
        2,
        &[&SASL_AUTHENTICATE_REQUEST],
    ),
    Message::new(
        202,
        "SaslAuthenticateResponse",
        Kind::Response,
        36,
        [0, 2],
        2,
        &[&SASL_AUTHENTICATE_RESPONSE],
    ),
    Message::new(
        203,
        "SaslHandshakeRequest",
        Kind::Request,
        17,
        [0, 1],
        MAX,
        &[&SASL_HANDSHAKE_REQUEST],
    ),
    Message::new(
        204,
        "SaslHandshakeResponse",
        Kind::Response,
        17,
        [0, 1],
        MAX,
        &[&SASL_HANDSHAKE_RESPONSE],
    ),
    Message::new(
        205,
        "ShareAcknowledgeRequest",
        Kind::Request,
        79,
        [1, 2],
        0,
        &[
            &SHARE_ACKNOWLEDGE_REQUEST,
            &SHARE_ACKNOWLEDGE_REQUEST_ACKNOWLEDGE_TOPIC,
            &SHARE_ACKNOWLEDGE_REQUEST_ACKNOWLEDGE_PARTITION,
            &SHARE_ACKNOWLEDGE_REQUEST_ACKNOWLEDGEMENT_BATCH,
        ],
    ),
    Message::new(
        206,
        "ShareAcknowledgeResponse",
        Kind::Response,
        79,
        [1, 2],
        0,
        &[
            &SHARE_ACKNOWLEDGE_RESPONSE,
            &SHARE_ACKNOWLEDGE_RESPONSE_SHARE_ACKNOWLEDGE_TOPIC_RESPONSE,
            &SHARE_ACKNOWLEDGE_RESPONSE_PARTITION_DATA,
            &SHARE_ACKNOWLEDGE_RESPONSE_LEADER_ID_AND_EPOCH,
            &SHARE_ACKNOWLEDGE_RESPONSE_NODE_ENDPOINT,
        ],
    ),
    Message::new(
        207,
        "ShareFetchRequest",
        Kind::Request,
        78,
        [1, 2],
        0,
        &[
            &SHARE_FETCH_REQUEST,
            &SHARE_FETCH_REQUEST_FETCH_TOPIC,
            &SHARE_FETCH_REQUEST_FETCH_PARTITION,
            &SHARE_FETCH_REQUEST_ACKNOWLEDGEMENT_BATCH,
            &SHARE_FETCH_REQUEST_FORGOTTEN_TOPIC,
        ],
    ),
    Message::new(
        208,
        "ShareFetchResponse",
        Kind::Response,
        78,
        [1, 2],
        0,
        &[
            &SHARE_FETCH_RESPONSE,
            &SHARE_FETCH_RESPONSE_SHARE_FETCHABLE_TOPIC_RESPONSE,
            &SHARE_FETCH_RESPONSE_PARTITION_DATA,
            &SHARE_FETCH_RESPONSE_LEADER_ID_AND_EPOCH,
            &SHARE_FETCH_RESPONSE_ACQUIRED_RECORDS,
            &SHARE_FETCH_RESPONSE_NODE_ENDPOINT,
        ],
    ),
    Message::new(
        211,
        "ShareGroupDescribeRequest",
        Kind::Request,
        77,
        [1, 1],
        0,
        &[&SHARE_GROUP_DESCRIBE_REQUEST],
    ),
    Message::new(
        212,
        "ShareGroupDescribeResponse",
        Kind::Response,
        77,
        [1, 1],
        0,
        &[
            &SHARE_GROUP_DESCRIBE_RESPONSE,
            &SHARE_GROUP_DESCRIBE_RESPONSE_DESCRIBED_GROUP,
            &SHARE_GROUP_DESCRIBE_RESPONSE_MEMBER,
            &SHARE_GROUP_DESCRIBE_RESPONSE_TOPIC_PARTITIONS,
            &SHARE_GROUP_DESCRIBE_RESPONSE_ASSIGNMENT,
        ],
    ),
    Message::new(
        213,
        "ShareGroupHeartbeatRequest",
        Kind::Request,
        76,
        [1, 1],
        0,
        &[&SHARE_GROUP_HEARTBEAT_REQUEST],
    ),
    Message::new(
        214,
        "ShareGroupHeartbeatResponse",
        Kind::Response,
        76,
        [1, 1],
        0,
        &[
            &SHARE_GROUP_HEARTBEAT_RESPONSE,
            &SHARE_GROUP_HEARTBEAT_RESPONSE_ASSIGNMENT,
            &SHARE_GROUP_HEARTBEAT_RESPONSE_TOPIC_PARTITIONS,
        ],
    ),
    Message::new(
        229,
        "SnapshotFooterRecord",
        Kind::Data,
        -1,
        [0, 0],
        0,
        &[&SNAPSHOT_FOOTER_RECORD],
    ),
    Message::new(
        230,
        "SnapshotHeaderRecord",
        Kind::Data,
        -1,
        [0, 0],
        0,
        &[&SNAPSHOT_HEADER_RECORD],
    ),
    Message::new(
        233,
        "StreamsGroupDescribeRequest",
        Kind::Request,
        89,
        [0, 1],
        0,
        &[&STREAMS_GROUP_DESCRIBE_REQUEST],
    ),
    Message::new(
        234,
        "StreamsGroupDescribeResponse",
        Kind::Response,
        89,
        [0, 1],
        0,
        &[
            &STREAMS_GROUP_DESCRIBE_RESPONSE,
            &STREAMS_GROUP_DESCRIBE_RESPONSE_DESCRIBED_GROUP,
            &STREAMS_GROUP_DESCRIBE_RESPONSE_TOPOLOGY,
            &STREAMS_GROUP_DESCRIBE_RESPONSE_SUBTOPOLOGY,
            &STREAMS_GROUP_DESCRIBE_RESPONSE_MEMBER,
            &STREAMS_GROUP_DESCRIBE_RESPONSE_ENDPOINT,
            &STREAMS_GROUP_DESCRIBE_RESPONSE_TASK_OFFSET,
            &STREAMS_GROUP_DESCRIBE_RESPONSE_ASSIGNMENT,
            &STREAMS_GROUP_DESCRIBE_RESPONSE_TASK_IDS,
            &STREAMS_GROUP_DESCRIBE_RESPONSE_KEY_VALUE,
            &STREAMS_GROUP_DESCRIBE_RESPONSE_TOPIC_INFO,
            &STREAMS_GROUP_DESCRIBE_RESPONSE_TOPOLOGY_DESCRIPTION,
            &STREAMS_GROUP_DESCRIBE_RESPONSE_TOPOLOGY_DESCRIPTION_SUBTOPOLOGY,
            &STREAMS_GROUP_DESCRIBE_RESPONSE_TOPOLOGY_DESCRIPTION_NODE,
            &STREAMS_GROUP_DESCRIBE_RESPONSE_TOPOLOGY_DESCRIPTION_GLOBAL_STORE,
        ],
    ),
    Message::new(
        235,
        "StreamsGroupHeartbeatRequest",
        Kind::Request,
        88,
        [0, 1],
        0,
        &[
            &STREAMS_GROUP_HEARTBEAT_REQUEST,
            &STREAMS_GROUP_HEARTBEAT_REQUEST_TOPOLOGY,
            &STREAMS_GROUP_HEARTBEAT_REQUEST_SUBTOPOLOGY,
            &STREAMS_GROUP_HEARTBEAT_REQUEST_COPARTITION_GROUP,
            &STREAMS_GROUP_HEARTBEAT_REQUEST_KEY_VALUE,
            &STREAMS_GROUP_HEARTBEAT_REQUEST_TOPIC_INFO,
            &STREAMS_GROUP_HEARTBEAT_REQUEST_ENDPOINT,
            &STREAMS_GROUP_HEARTBEAT_REQUEST_TASK_OFFSET,
            &STREAMS_GROUP_HEARTBEAT_REQUEST_TASK_IDS,
        ],
    ),
    Message::new(
        236,
        "StreamsGroupHeartbeatResponse",
        Kind::Response,
        88,
        [0, 1],
        0,
        &[
            &STREAMS_GROUP_HEARTBEAT_RESPONSE,
            &STREAMS_GROUP_HEARTBEAT_RESPONSE_ENDPOINT_TO_PARTITIONS,
            &STREAMS_GROUP_HEARTBEAT_RESPONSE_STATUS,
            &STREAMS_GROUP_HEARTBEAT_RESPONSE_TOPIC_PARTITION,
            &STREAMS_GROUP_HEARTBEAT_RESPONSE_TASK_IDS,
            &STREAMS_GROUP_HEARTBEAT_RESPONSE_ENDPOINT,
        ],
    ),
    Message::new(
        245,
        "StreamsGroupTopologyDescriptionUpdateRequest",
        Kind::Request,
        93,
        [0, 0],
        0,
        &[
            &STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_REQUEST,
            &STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_REQUEST_TOPOLOGY_DESCRIPTION,
            &STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_REQUEST_TOPOLOGY_DESCRIPTION_SUBTOPOLOGY,
            &STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_REQUEST_TOPOLOGY_DESCRIPTION_NODE,
            &STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_REQUEST_TOPOLOGY_DESCRIPTION_GLOBAL_STORE,
        ],
    ),
    Message::new(
        246,
        "StreamsGroupTopologyDescriptionUpdateResponse",
        Kind::Response,
        93,
        [0, 0],
        0,
        &[&STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_RESPONSE],
    ),
    Message::new(
        249,
        "SyncGroupRequest",
        Kind::Request,
        14,
        [0, 5],
        4,
        &[&SYNC_GROUP_REQUEST, &SYNC_GROUP_REQUEST_SYNC_GROUP_REQUEST_ASSIGNMENT],
    ),
    Message::new(250, "SyncGroupResponse", Kind::Response, 14, [0, 5], 4, &[&SYNC_GROUP_RESPONSE]),
    Message::new(
        254,
        "TxnOffsetCommitRequest",
        Kind::Request,
        28,
        [0, 6],
        3,
        &[
            &TXN_OFFSET_COMMIT_REQUEST,
            &TXN_OFFSET_COMMIT_REQUEST_TXN_OFFSET_COMMIT_REQUEST_TOPIC,
            &TXN_OFFSET_COMMIT_REQUEST_TXN_OFFSET_COMMIT_REQUEST_PARTITION,
        ],
    ),
    Message::new(
        255,
        "TxnOffsetCommitResponse",
        Kind::Response,
        28,
        [0, 6],
        3,
        &[
            &TXN_OFFSET_COMMIT_RESPONSE,
            &TXN_OFFSET_COMMIT_RESPONSE_TXN_OFFSET_COMMIT_RESPONSE_TOPIC,
            &TXN_OFFSET_COMMIT_RESPONSE_TXN_OFFSET_COMMIT_RESPONSE_PARTITION,
        ],
    ),
    Message::new(
        258,
        "UnregisterBrokerRequest",
        Kind::Request,
        64,
        [0, 0],
        0,
        &[&UNREGISTER_BROKER_REQUEST],
    ),
    Message::new(
        259,
        "UnregisterBrokerResponse",
        Kind::Response,
        64,
        [0, 0],
        0,
        &[&UNREGISTER_BROKER_RESPONSE],
    ),
    Message::new(
        261,
        "UnregisterControllerRequest",
        Kind::Request,
        94,
        [0, 0],
        0,
        &[&UNREGISTER_CONTROLLER_REQUEST],
    ),
    Message::new(
        262,
        "UnregisterControllerResponse",
        Kind::Response,
        94,
        [0, 0],
        0,
        &[&UNREGISTER_CONTROLLER_RESPONSE],
    ),
    Message::new(
        263,
        "UpdateFeaturesRequest",
        Kind::Request,
        57,
        [0, 2],
        0,
        &[&UPDATE_FEATURES_REQUEST, &UPDATE_FEATURES_REQUEST_FEATURE_UPDATE_KEY],
    ),
    Message::new(
        264,
        "UpdateFeaturesResponse",
        Kind::Response,
        57,
        [0, 2],
        0,
        &[&UPDATE_FEATURES_RESPONSE, &UPDATE_FEATURES_RESPONSE_UPDATABLE_FEATURE_RESULT],
    ),
    Message::new(
        265,
        "UpdateRaftVoterRequest",
        Kind::Request,
        82,
        [0, 0],
        0,
        &[
            &UPDATE_RAFT_VOTER_REQUEST,
            &UPDATE_RAFT_VOTER_REQUEST_LISTENER,
            &UPDATE_RAFT_VOTER_REQUEST_K_RAFT_VERSION_FEATURE,
        ],
    ),
    Message::new(
        266,
        "UpdateRaftVoterResponse",
        Kind::Response,
        82,
        [0, 0],
        0,
        &[&UPDATE_RAFT_VOTER_RESPONSE, &UPDATE_RAFT_VOTER_RESPONSE_CURRENT_LEADER],
    ),
    Message::new(
        268,
        "VoteRequest",
        Kind::Request,
        52,
        [0, 2],
        0,
        &[&VOTE_REQUEST, &VOTE_REQUEST_TOPIC_DATA, &VOTE_REQUEST_PARTITION_DATA],
    ),
    Message::new(
        269,
        "VoteResponse",
        Kind::Response,
        52,
        [0, 2],
        0,
        &[
            &VOTE_RESPONSE,
            &VOTE_RESPONSE_TOPIC_DATA,
            &VOTE_RESPONSE_PARTITION_DATA,
            &VOTE_RESPONSE_NODE_ENDPOINT,
        ],
    ),
    Message::new(
        270,
        "VotersRecord",
        Kind::Data,
        -1,
        [0, 0],
        0,
        &[
            &VOTERS_RECORD,
            &VOTERS_RECORD_VOTER,
            &VOTERS_RECORD_ENDPOINT,
            &VOTERS_RECORD_K_RAFT_VERSION_FEATURE,
        ],
    ),
    Message::new(
        271,
        "WriteShareGroupStateRequest",
        Kind::Request,
        85,
        [0, 1],
        0,
        &[
            &WRITE_SHARE_GROUP_STATE_REQUEST,
            &WRITE_SHARE_GROUP_STATE_REQUEST_WRITE_STATE_DATA,
            &WRITE_SHARE_GROUP_STATE_REQUEST_PARTITION_DATA,
            &WRITE_SHARE_GROUP_STATE_REQUEST_STATE_BATCH,
        ],
    ),
    Message::new(
        272,
        "WriteShareGroupStateResponse",
        Kind::Response,
        85,
        [0, 1],
        0,
        &[
            &WRITE_SHARE_GROUP_STATE_RESPONSE,
            &WRITE_SHARE_GROUP_STATE_RESPONSE_WRITE_STATE_RESULT,
            &WRITE_SHARE_GROUP_STATE_RESPONSE_PARTITION_RESULT,
        ],
    ),
    Message::new(
        273,
        "WriteTxnMarkersRequest",
        Kind::Request,
        27,
        [1, 2],
        1,
        &[
            &WRITE_TXN_MARKERS_REQUEST,
            &WRITE_TXN_MARKERS_REQUEST_WRITABLE_TXN_MARKER,
            &WRITE_TXN_MARKERS_REQUEST_WRITABLE_TXN_MARKER_TOPIC,
        ],
    ),
    Message::new(
        274,
        "WriteTxnMarkersResponse",
        Kind::Response,
        27,
        [1, 2],
        1,
        &[
            &WRITE_TXN_MARKERS_RESPONSE,
            &WRITE_TXN_MARKERS_RESPONSE_WRITABLE_TXN_MARKER_RESULT,
            &WRITE_TXN_MARKERS_RESPONSE_WRITABLE_TXN_MARKER_TOPIC_RESULT,
            &WRITE_TXN_MARKERS_RESPONSE_WRITABLE_TXN_MARKER_PARTITION_RESULT,
        ],
    ),
];
