//! Messages of `metadata`. Written by `tools/schemas.py` from the schemas of Apache Kafka 4.4.0; do not edit.

use crate::schema::Type::{Bool, Bytes, Float64, Int16, Int32, Int64, Int8, Of, String, Uint16, Uuid};
use crate::schema::{Kind, MAX, Message, Struct, field};

static ABORT_TRANSACTION_RECORD: Struct = Struct { name: "AbortTransactionRecord", index: 0, fields: &[field("reason", String, 0, MAX).nullable(0, MAX).tagged(0, 0, MAX).or_null()] };
static ACCESS_CONTROL_ENTRY_RECORD: Struct = Struct { name: "AccessControlEntryRecord", index: 0, fields: &[field("id", Uuid, 0, MAX), field("resource_type", Int8, 0, MAX), field("resource_name", String, 0, MAX), field("pattern_type", Int8, 0, MAX), field("principal", String, 0, MAX), field("host", String, 0, MAX), field("operation", Int8, 0, MAX), field("permission_type", Int8, 0, MAX)] };
static BEGIN_TRANSACTION_RECORD: Struct = Struct { name: "BeginTransactionRecord", index: 0, fields: &[field("name", String, 0, MAX).nullable(0, MAX).tagged(0, 0, MAX).or_null()] };
static BROKER_REGISTRATION_CHANGE_RECORD: Struct = Struct { name: "BrokerRegistrationChangeRecord", index: 0, fields: &[field("broker_id", Int32, 0, MAX), field("broker_epoch", Int64, 0, MAX), field("fenced", Int8, 0, MAX).tagged(0, 0, MAX), field("in_controlled_shutdown", Int8, 1, MAX).tagged(1, 1, MAX), field("log_dirs", Uuid, 2, MAX).list().tagged(2, 2, MAX), field("cordoned_log_dirs", Uuid, 3, MAX).list().nullable(3, MAX).tagged(3, 3, MAX).or_null()] };
static CLEAR_ELR_RECORD: Struct = Struct { name: "ClearElrRecord", index: 0, fields: &[field("topic_name", String, 0, MAX)] };
static CLIENT_QUOTA_RECORD: Struct = Struct { name: "ClientQuotaRecord", index: 0, fields: &[field("entity", Of(&CLIENT_QUOTA_RECORD_ENTITY_DATA), 0, MAX).list(), field("key", String, 0, MAX), field("value", Float64, 0, MAX), field("remove", Bool, 0, MAX)] };
static CLIENT_QUOTA_RECORD_ENTITY_DATA: Struct = Struct { name: "EntityData", index: 1, fields: &[field("entity_type", String, 0, MAX), field("entity_name", String, 0, MAX).nullable(0, MAX)] };
static CONFIG_RECORD: Struct = Struct { name: "ConfigRecord", index: 0, fields: &[field("resource_type", Int8, 0, MAX), field("resource_name", String, 0, MAX), field("name", String, 0, MAX), field("value", String, 0, MAX).nullable(0, MAX)] };
static DELEGATION_TOKEN_RECORD: Struct = Struct { name: "DelegationTokenRecord", index: 0, fields: &[field("owner", String, 0, MAX), field("requester", String, 0, MAX), field("renewers", String, 0, MAX).list(), field("issue_timestamp", Int64, 0, MAX), field("max_timestamp", Int64, 0, MAX), field("expiration_timestamp", Int64, 0, MAX), field("token_id", String, 0, MAX)] };
static END_TRANSACTION_RECORD: Struct = Struct { name: "EndTransactionRecord", index: 0, fields: &[] };
static FEATURE_LEVEL_RECORD: Struct = Struct { name: "FeatureLevelRecord", index: 0, fields: &[field("name", String, 0, MAX), field("feature_level", Int16, 0, MAX)] };
static FENCE_BROKER_RECORD: Struct = Struct { name: "FenceBrokerRecord", index: 0, fields: &[field("id", Int32, 0, MAX), field("epoch", Int64, 0, MAX)] };
static NO_OP_RECORD: Struct = Struct { name: "NoOpRecord", index: 0, fields: &[] };
static PARTITION_CHANGE_RECORD: Struct = Struct { name: "PartitionChangeRecord", index: 0, fields: &[field("partition_id", Int32, 0, MAX).or(-1), field("topic_id", Uuid, 0, MAX), field("isr", Int32, 0, MAX).list().nullable(0, MAX).tagged(0, 0, MAX).or_null(), field("leader", Int32, 0, MAX).tagged(1, 0, MAX).or(-2), field("replicas", Int32, 0, MAX).list().nullable(0, MAX).tagged(2, 0, MAX).or_null(), field("removing_replicas", Int32, 0, MAX).list().nullable(0, MAX).tagged(3, 0, MAX).or_null(), field("adding_replicas", Int32, 0, MAX).list().nullable(0, MAX).tagged(4, 0, MAX).or_null(), field("leader_recovery_state", Int8, 0, MAX).tagged(5, 0, MAX).or(-1), field("directories", Uuid, 1, MAX).list().nullable(1, MAX).tagged(8, 1, MAX).or_null(), field("eligible_leader_replicas", Int32, 2, MAX).list().nullable(2, MAX).tagged(6, 2, MAX).or_null(), field("last_known_elr", Int32, 2, MAX).list().nullable(2, MAX).tagged(7, 2, MAX).or_null()] };
static PARTITION_RECORD: Struct = Struct { name: "PartitionRecord", index: 0, fields: &[field("partition_id", Int32, 0, MAX).or(-1), field("topic_id", Uuid, 0, MAX), field("replicas", Int32, 0, MAX).list(), field("isr", Int32, 0, MAX).list(), field("removing_replicas", Int32, 0, MAX).list(), field("adding_replicas", Int32, 0, MAX).list(), field("leader", Int32, 0, MAX).or(-1), field("leader_recovery_state", Int8, 0, MAX).tagged(0, 0, MAX), field("leader_epoch", Int32, 0, MAX).or(-1), field("partition_epoch", Int32, 0, MAX).or(-1), field("directories", Uuid, 1, MAX).list(), field("eligible_leader_replicas", Int32, 2, MAX).list().nullable(2, MAX).tagged(1, 2, MAX).or_null(), field("last_known_elr", Int32, 2, MAX).list().nullable(2, MAX).tagged(2, 2, MAX).or_null()] };
static PRODUCER_IDS_RECORD: Struct = Struct { name: "ProducerIdsRecord", index: 0, fields: &[field("broker_id", Int32, 0, MAX), field("broker_epoch", Int64, 0, MAX).or(-1), field("next_producer_id", Int64, 0, MAX)] };
static REGISTER_BROKER_RECORD: Struct = Struct { name: "RegisterBrokerRecord", index: 0, fields: &[field("broker_id", Int32, 0, MAX), field("is_migrating_zk_broker", Bool, 2, MAX), field("incarnation_id", Uuid, 0, MAX), field("broker_epoch", Int64, 0, MAX), field("end_points", Of(&REGISTER_BROKER_RECORD_BROKER_ENDPOINT), 0, MAX).list(), field("features", Of(&REGISTER_BROKER_RECORD_BROKER_FEATURE), 0, MAX).list(), field("rack", String, 0, MAX).nullable(0, MAX), field("fenced", Bool, 0, MAX).or(1), field("in_controlled_shutdown", Bool, 1, MAX), field("log_dirs", Uuid, 3, MAX).list().tagged(0, 3, MAX), field("cordoned_log_dirs", Uuid, 4, MAX).list().nullable(4, MAX).tagged(1, 4, MAX).or_null()] };
static REGISTER_BROKER_RECORD_BROKER_ENDPOINT: Struct = Struct { name: "BrokerEndpoint", index: 1, fields: &[field("name", String, 0, MAX), field("host", String, 0, MAX), field("port", Uint16, 0, MAX), field("security_protocol", Int16, 0, MAX)] };
static REGISTER_BROKER_RECORD_BROKER_FEATURE: Struct = Struct { name: "BrokerFeature", index: 2, fields: &[field("name", String, 0, MAX), field("min_supported_version", Int16, 0, MAX), field("max_supported_version", Int16, 0, MAX)] };
static REGISTER_CONTROLLER_RECORD: Struct = Struct { name: "RegisterControllerRecord", index: 0, fields: &[field("controller_id", Int32, 0, MAX), field("incarnation_id", Uuid, 0, MAX), field("zk_migration_ready", Bool, 0, MAX), field("end_points", Of(&REGISTER_CONTROLLER_RECORD_CONTROLLER_ENDPOINT), 0, MAX).list(), field("features", Of(&REGISTER_CONTROLLER_RECORD_CONTROLLER_FEATURE), 0, MAX).list()] };
static REGISTER_CONTROLLER_RECORD_CONTROLLER_ENDPOINT: Struct = Struct { name: "ControllerEndpoint", index: 1, fields: &[field("name", String, 0, MAX), field("host", String, 0, MAX), field("port", Uint16, 0, MAX), field("security_protocol", Int16, 0, MAX)] };
static REGISTER_CONTROLLER_RECORD_CONTROLLER_FEATURE: Struct = Struct { name: "ControllerFeature", index: 2, fields: &[field("name", String, 0, MAX), field("min_supported_version", Int16, 0, MAX), field("max_supported_version", Int16, 0, MAX)] };
static REMOVE_ACCESS_CONTROL_ENTRY_RECORD: Struct = Struct { name: "RemoveAccessControlEntryRecord", index: 0, fields: &[field("id", Uuid, 0, MAX)] };
static REMOVE_DELEGATION_TOKEN_RECORD: Struct = Struct { name: "RemoveDelegationTokenRecord", index: 0, fields: &[field("token_id", String, 0, MAX)] };
static REMOVE_TOPIC_RECORD: Struct = Struct { name: "RemoveTopicRecord", index: 0, fields: &[field("topic_id", Uuid, 0, MAX)] };
static REMOVE_USER_SCRAM_CREDENTIAL_RECORD: Struct = Struct { name: "RemoveUserScramCredentialRecord", index: 0, fields: &[field("name", String, 0, MAX), field("mechanism", Int8, 0, MAX)] };
static TOPIC_RECORD: Struct = Struct { name: "TopicRecord", index: 0, fields: &[field("name", String, 0, MAX), field("topic_id", Uuid, 0, MAX)] };
static UNFENCE_BROKER_RECORD: Struct = Struct { name: "UnfenceBrokerRecord", index: 0, fields: &[field("id", Int32, 0, MAX), field("epoch", Int64, 0, MAX)] };
static UNREGISTER_BROKER_RECORD: Struct = Struct { name: "UnregisterBrokerRecord", index: 0, fields: &[field("broker_id", Int32, 0, MAX), field("broker_epoch", Int64, 0, MAX)] };
static UNREGISTER_CONTROLLER_RECORD: Struct = Struct { name: "UnregisterControllerRecord", index: 0, fields: &[field("controller_id", Int32, 0, MAX)] };
static USER_SCRAM_CREDENTIAL_RECORD: Struct = Struct { name: "UserScramCredentialRecord", index: 0, fields: &[field("name", String, 0, MAX), field("mechanism", Int8, 0, MAX), field("salt", Bytes, 0, MAX), field("stored_key", Bytes, 0, MAX), field("server_key", Bytes, 0, MAX), field("iterations", Int32, 0, MAX)] };
static ZK_MIGRATION_STATE_RECORD: Struct = Struct { name: "ZkMigrationStateRecord", index: 0, fields: &[field("zk_migration_state", Int8, 0, MAX)] };

/// Messages of this jar.
pub static MESSAGES: [Message; 27] = [
    Message::new(0, "AbortTransactionRecord", Kind::Metadata, 25, [0, 0], 0, &[&ABORT_TRANSACTION_RECORD]),
    Message::new(2, "AccessControlEntryRecord", Kind::Metadata, 18, [0, 0], 0, &[&ACCESS_CONTROL_ENTRY_RECORD]),
    Message::new(31, "BeginTransactionRecord", Kind::Metadata, 23, [0, 0], 0, &[&BEGIN_TRANSACTION_RECORD]),
    Message::new(34, "BrokerRegistrationChangeRecord", Kind::Metadata, 17, [0, 3], 0, &[&BROKER_REGISTRATION_CHANGE_RECORD]),
    Message::new(37, "ClearElrRecord", Kind::Metadata, 28, [0, 0], 0, &[&CLEAR_ELR_RECORD]),
    Message::new(38, "ClientQuotaRecord", Kind::Metadata, 14, [0, 0], 0, &[&CLIENT_QUOTA_RECORD, &CLIENT_QUOTA_RECORD_ENTITY_DATA]),
    Message::new(39, "ConfigRecord", Kind::Metadata, 4, [0, 0], 0, &[&CONFIG_RECORD]),
    Message::new(72, "DelegationTokenRecord", Kind::Metadata, 10, [0, 0], 0, &[&DELEGATION_TOKEN_RECORD]),
    Message::new(115, "EndTransactionRecord", Kind::Metadata, 24, [0, 0], 0, &[&END_TRANSACTION_RECORD]),
    Message::new(123, "FeatureLevelRecord", Kind::Metadata, 12, [0, 0], 0, &[&FEATURE_LEVEL_RECORD]),
    Message::new(124, "FenceBrokerRecord", Kind::Metadata, 7, [0, 0], 0, &[&FENCE_BROKER_RECORD]),
    Message::new(163, "NoOpRecord", Kind::Metadata, 20, [0, 0], 0, &[&NO_OP_RECORD]),
    Message::new(174, "PartitionChangeRecord", Kind::Metadata, 5, [0, 2], 0, &[&PARTITION_CHANGE_RECORD]),
    Message::new(175, "PartitionRecord", Kind::Metadata, 3, [0, 2], 0, &[&PARTITION_RECORD]),
    Message::new(178, "ProducerIdsRecord", Kind::Metadata, 15, [0, 0], 0, &[&PRODUCER_IDS_RECORD]),
    Message::new(187, "RegisterBrokerRecord", Kind::Metadata, 0, [0, 4], 0, &[&REGISTER_BROKER_RECORD, &REGISTER_BROKER_RECORD_BROKER_ENDPOINT, &REGISTER_BROKER_RECORD_BROKER_FEATURE]),
    Message::new(188, "RegisterControllerRecord", Kind::Metadata, 27, [0, 0], 0, &[&REGISTER_CONTROLLER_RECORD, &REGISTER_CONTROLLER_RECORD_CONTROLLER_ENDPOINT, &REGISTER_CONTROLLER_RECORD_CONTROLLER_FEATURE]),
    Message::new(193, "RemoveAccessControlEntryRecord", Kind::Metadata, 19, [0, 0], 0, &[&REMOVE_ACCESS_CONTROL_ENTRY_RECORD]),
    Message::new(194, "RemoveDelegationTokenRecord", Kind::Metadata, 26, [0, 0], 0, &[&REMOVE_DELEGATION_TOKEN_RECORD]),
    Message::new(197, "RemoveTopicRecord", Kind::Metadata, 9, [0, 0], 0, &[&REMOVE_TOPIC_RECORD]),
    Message::new(198, "RemoveUserScramCredentialRecord", Kind::Metadata, 22, [0, 0], 0, &[&REMOVE_USER_SCRAM_CREDENTIAL_RECORD]),
    Message::new(251, "TopicRecord", Kind::Metadata, 2, [0, 0], 0, &[&TOPIC_RECORD]),
    Message::new(256, "UnfenceBrokerRecord", Kind::Metadata, 8, [0, 0], 0, &[&UNFENCE_BROKER_RECORD]),
    Message::new(257, "UnregisterBrokerRecord", Kind::Metadata, 1, [0, 0], 0, &[&UNREGISTER_BROKER_RECORD]),
    Message::new(260, "UnregisterControllerRecord", Kind::Metadata, 29, [0, 0], 0, &[&UNREGISTER_CONTROLLER_RECORD]),
    Message::new(267, "UserScramCredentialRecord", Kind::Metadata, 11, [0, 0], 0, &[&USER_SCRAM_CREDENTIAL_RECORD]),
    Message::new(275, "ZkMigrationStateRecord", Kind::Metadata, 21, [0, 0], 0, &[&ZK_MIGRATION_STATE_RECORD]),
];
