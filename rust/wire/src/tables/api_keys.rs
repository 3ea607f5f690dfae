//! API keys. Written by `tools/schemas.py` from the schemas of Apache Kafka 4.4.0; do not edit.

use crate::api_key::{Api, ApiKey};

impl ApiKey {
    /// `Produce`.
    pub const PRODUCE: ApiKey = ApiKey(0);
    /// `Fetch`.
    pub const FETCH: ApiKey = ApiKey(1);
    /// `ListOffsets`.
    pub const LIST_OFFSETS: ApiKey = ApiKey(2);
    /// `Metadata`.
    pub const METADATA: ApiKey = ApiKey(3);
    /// `OffsetCommit`.
    pub const OFFSET_COMMIT: ApiKey = ApiKey(8);
    /// `OffsetFetch`.
    pub const OFFSET_FETCH: ApiKey = ApiKey(9);
    /// `FindCoordinator`.
    pub const FIND_COORDINATOR: ApiKey = ApiKey(10);
    /// `JoinGroup`.
    pub const JOIN_GROUP: ApiKey = ApiKey(11);
    /// `Heartbeat`.
    pub const HEARTBEAT: ApiKey = ApiKey(12);
    /// `LeaveGroup`.
    pub const LEAVE_GROUP: ApiKey = ApiKey(13);
    /// `SyncGroup`.
    pub const SYNC_GROUP: ApiKey = ApiKey(14);
    /// `DescribeGroups`.
    pub const DESCRIBE_GROUPS: ApiKey = ApiKey(15);
    /// `ListGroups`.
    pub const LIST_GROUPS: ApiKey = ApiKey(16);
    /// `SaslHandshake`.
    pub const SASL_HANDSHAKE: ApiKey = ApiKey(17);
    /// `ApiVersions`.
    pub const API_VERSIONS: ApiKey = ApiKey(18);
    /// `CreateTopics`.
    pub const CREATE_TOPICS: ApiKey = ApiKey(19);
    /// `DeleteTopics`.
    pub const DELETE_TOPICS: ApiKey = ApiKey(20);
    /// `DeleteRecords`.
    pub const DELETE_RECORDS: ApiKey = ApiKey(21);
    /// `InitProducerId`.
    pub const INIT_PRODUCER_ID: ApiKey = ApiKey(22);
    /// `OffsetForLeaderEpoch`.
    pub const OFFSET_FOR_LEADER_EPOCH: ApiKey = ApiKey(23);
    /// `AddPartitionsToTxn`.
    pub const ADD_PARTITIONS_TO_TXN: ApiKey = ApiKey(24);
    /// `AddOffsetsToTxn`.
    pub const ADD_OFFSETS_TO_TXN: ApiKey = ApiKey(25);
    /// `EndTxn`.
    pub const END_TXN: ApiKey = ApiKey(26);
    /// `WriteTxnMarkers`.
    pub const WRITE_TXN_MARKERS: ApiKey = ApiKey(27);
    /// `TxnOffsetCommit`.
    pub const TXN_OFFSET_COMMIT: ApiKey = ApiKey(28);
    /// `DescribeAcls`.
    pub const DESCRIBE_ACLS: ApiKey = ApiKey(29);
    /// `CreateAcls`.
    pub const CREATE_ACLS: ApiKey = ApiKey(30);
    /// `DeleteAcls`.
    pub const DELETE_ACLS: ApiKey = ApiKey(31);
    /// `DescribeConfigs`.
    pub const DESCRIBE_CONFIGS: ApiKey = ApiKey(32);
    /// `AlterConfigs`.
    pub const ALTER_CONFIGS: ApiKey = ApiKey(33);
    /// `AlterReplicaLogDirs`.
    pub const ALTER_REPLICA_LOG_DIRS: ApiKey = ApiKey(34);
    /// `DescribeLogDirs`.
    pub const DESCRIBE_LOG_DIRS: ApiKey = ApiKey(35);
    /// `SaslAuthenticate`.
    pub const SASL_AUTHENTICATE: ApiKey = ApiKey(36);
    /// `CreatePartitions`.
    pub const CREATE_PARTITIONS: ApiKey = ApiKey(37);
    /// `CreateDelegationToken`.
    pub const CREATE_DELEGATION_TOKEN: ApiKey = ApiKey(38);
    /// `RenewDelegationToken`.
    pub const RENEW_DELEGATION_TOKEN: ApiKey = ApiKey(39);
    /// `ExpireDelegationToken`.
    pub const EXPIRE_DELEGATION_TOKEN: ApiKey = ApiKey(40);
    /// `DescribeDelegationToken`.
    pub const DESCRIBE_DELEGATION_TOKEN: ApiKey = ApiKey(41);
    /// `DeleteGroups`.
    pub const DELETE_GROUPS: ApiKey = ApiKey(42);
    /// `ElectLeaders`.
    pub const ELECT_LEADERS: ApiKey = ApiKey(43);
    /// `IncrementalAlterConfigs`.
    pub const INCREMENTAL_ALTER_CONFIGS: ApiKey = ApiKey(44);
    /// `AlterPartitionReassignments`.
    pub const ALTER_PARTITION_REASSIGNMENTS: ApiKey = ApiKey(45);
    /// `ListPartitionReassignments`.
    pub const LIST_PARTITION_REASSIGNMENTS: ApiKey = ApiKey(46);
    /// `OffsetDelete`.
    pub const OFFSET_DELETE: ApiKey = ApiKey(47);
    /// `DescribeClientQuotas`.
    pub const DESCRIBE_CLIENT_QUOTAS: ApiKey = ApiKey(48);
    /// `AlterClientQuotas`.
    pub const ALTER_CLIENT_QUOTAS: ApiKey = ApiKey(49);
    /// `DescribeUserScramCredentials`.
    pub const DESCRIBE_USER_SCRAM_CREDENTIALS: ApiKey = ApiKey(50);
    /// `AlterUserScramCredentials`.
    pub const ALTER_USER_SCRAM_CREDENTIALS: ApiKey = ApiKey(51);
    /// `Vote`.
    pub const VOTE: ApiKey = ApiKey(52);
    /// `BeginQuorumEpoch`.
    pub const BEGIN_QUORUM_EPOCH: ApiKey = ApiKey(53);
    /// `EndQuorumEpoch`.
    pub const END_QUORUM_EPOCH: ApiKey = ApiKey(54);
    /// `DescribeQuorum`.
    pub const DESCRIBE_QUORUM: ApiKey = ApiKey(55);
    /// `AlterPartition`.
    pub const ALTER_PARTITION: ApiKey = ApiKey(56);
    /// `UpdateFeatures`.
    pub const UPDATE_FEATURES: ApiKey = ApiKey(57);
    /// `Envelope`.
    pub const ENVELOPE: ApiKey = ApiKey(58);
    /// `FetchSnapshot`.
    pub const FETCH_SNAPSHOT: ApiKey = ApiKey(59);
    /// `DescribeCluster`.
    pub const DESCRIBE_CLUSTER: ApiKey = ApiKey(60);
    /// `DescribeProducers`.
    pub const DESCRIBE_PRODUCERS: ApiKey = ApiKey(61);
    /// `BrokerRegistration`.
    pub const BROKER_REGISTRATION: ApiKey = ApiKey(62);
    /// `BrokerHeartbeat`.
    pub const BROKER_HEARTBEAT: ApiKey = ApiKey(63);
    /// `UnregisterBroker`.
    pub const UNREGISTER_BROKER: ApiKey = ApiKey(64);
    /// `DescribeTransactions`.
    pub const DESCRIBE_TRANSACTIONS: ApiKey = ApiKey(65);
    /// `ListTransactions`.
    pub const LIST_TRANSACTIONS: ApiKey = ApiKey(66);
    /// `AllocateProducerIds`.
    pub const ALLOCATE_PRODUCER_IDS: ApiKey = ApiKey(67);
    /// `ConsumerGroupHeartbeat`.
    pub const CONSUMER_GROUP_HEARTBEAT: ApiKey = ApiKey(68);
    /// `ConsumerGroupDescribe`.
    pub const CONSUMER_GROUP_DESCRIBE: ApiKey = ApiKey(69);
    /// `ControllerRegistration`.
    pub const CONTROLLER_REGISTRATION: ApiKey = ApiKey(70);
    /// `GetTelemetrySubscriptions`.
    pub const GET_TELEMETRY_SUBSCRIPTIONS: ApiKey = ApiKey(71);
    /// `PushTelemetry`.
    pub const PUSH_TELEMETRY: ApiKey = ApiKey(72);
    /// `AssignReplicasToDirs`.
    pub const ASSIGN_REPLICAS_TO_DIRS: ApiKey = ApiKey(73);
    /// `ListConfigResources`.
    pub const LIST_CONFIG_RESOURCES: ApiKey = ApiKey(74);
    /// `DescribeTopicPartitions`.
    pub const DESCRIBE_TOPIC_PARTITIONS: ApiKey = ApiKey(75);
    /// `ShareGroupHeartbeat`.
    pub const SHARE_GROUP_HEARTBEAT: ApiKey = ApiKey(76);
    /// `ShareGroupDescribe`.
    pub const SHARE_GROUP_DESCRIBE: ApiKey = ApiKey(77);
    /// `ShareFetch`.
    pub const SHARE_FETCH: ApiKey = ApiKey(78);
    /// `ShareAcknowledge`.
    pub const SHARE_ACKNOWLEDGE: ApiKey = ApiKey(79);
    /// `AddRaftVoter`.
    pub const ADD_RAFT_VOTER: ApiKey = ApiKey(80);
    /// `RemoveRaftVoter`.
    pub const REMOVE_RAFT_VOTER: ApiKey = ApiKey(81);
    /// `UpdateRaftVoter`.
    pub const UPDATE_RAFT_VOTER: ApiKey = ApiKey(82);
    /// `InitializeShareGroupState`.
    pub const INITIALIZE_SHARE_GROUP_STATE: ApiKey = ApiKey(83);
    /// `ReadShareGroupState`.
    pub const READ_SHARE_GROUP_STATE: ApiKey = ApiKey(84);
    /// `WriteShareGroupState`.
    pub const WRITE_SHARE_GROUP_STATE: ApiKey = ApiKey(85);
    /// `DeleteShareGroupState`.
    pub const DELETE_SHARE_GROUP_STATE: ApiKey = ApiKey(86);
    /// `ReadShareGroupStateSummary`.
    pub const READ_SHARE_GROUP_STATE_SUMMARY: ApiKey = ApiKey(87);
    /// `StreamsGroupHeartbeat`.
    pub const STREAMS_GROUP_HEARTBEAT: ApiKey = ApiKey(88);
    /// `StreamsGroupDescribe`.
    pub const STREAMS_GROUP_DESCRIBE: ApiKey = ApiKey(89);
    /// `DescribeShareGroupOffsets`.
    pub const DESCRIBE_SHARE_GROUP_OFFSETS: ApiKey = ApiKey(90);
    /// `AlterShareGroupOffsets`.
    pub const ALTER_SHARE_GROUP_OFFSETS: ApiKey = ApiKey(91);
    /// `DeleteShareGroupOffsets`.
    pub const DELETE_SHARE_GROUP_OFFSETS: ApiKey = ApiKey(92);
    /// `StreamsGroupTopologyDescriptionUpdate`.
    pub const STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: ApiKey = ApiKey(93);
    /// `UnregisterController`.
    pub const UNREGISTER_CONTROLLER: ApiKey = ApiKey(94);
}

/// In order of their keys: key, name, [first, last stable, last] version,
/// first flexible version, whether on a broker's listener.
pub static APIS: &[Api] = &[
    Api::new(0, "Produce", [3, 13, 13], 9, true),
    Api::new(1, "Fetch", [4, 18, 18], 12, true),
    Api::new(2, "ListOffsets", [1, 11, 11], 6, true),
    Api::new(3, "Metadata", [0, 13, 13], 9, true),
    Api::new(8, "OffsetCommit", [2, 10, 10], 8, true),
    Api::new(9, "OffsetFetch", [1, 10, 10], 6, true),
    Api::new(10, "FindCoordinator", [0, 6, 6], 3, true),
    Api::new(11, "JoinGroup", [0, 9, 9], 6, true),
    Api::new(12, "Heartbeat", [0, 4, 4], 4, true),
    Api::new(13, "LeaveGroup", [0, 5, 5], 4, true),
    Api::new(14, "SyncGroup", [0, 5, 5], 4, true),
    Api::new(15, "DescribeGroups", [0, 6, 6], 5, true),
    Api::new(16, "ListGroups", [0, 5, 5], 3, true),
    Api::new(17, "SaslHandshake", [0, 1, 1], 32767, true),
    Api::new(18, "ApiVersions", [0, 5, 5], 3, true),
    Api::new(19, "CreateTopics", [2, 7, 7], 5, true),
    Api::new(20, "DeleteTopics", [1, 6, 6], 4, true),
    Api::new(21, "DeleteRecords", [0, 2, 2], 2, true),
    Api::new(22, "InitProducerId", [0, 5, 6], 2, true),
    Api::new(23, "OffsetForLeaderEpoch", [2, 4, 4], 4, true),
    Api::new(24, "AddPartitionsToTxn", [0, 5, 5], 3, true),
    Api::new(25, "AddOffsetsToTxn", [0, 4, 4], 3, true),
    Api::new(26, "EndTxn", [0, 5, 5], 3, true),
    Api::new(27, "WriteTxnMarkers", [1, 2, 2], 1, true),
    Api::new(28, "TxnOffsetCommit", [0, 6, 6], 3, true),
    Api::new(29, "DescribeAcls", [1, 3, 3], 2, true),
    Api::new(30, "CreateAcls", [1, 3, 3], 2, true),
    Api::new(31, "DeleteAcls", [1, 3, 3], 2, true),
    Api::new(32, "DescribeConfigs", [1, 4, 4], 4, true),
    Api::new(33, "AlterConfigs", [0, 2, 2], 2, true),
    Api::new(34, "AlterReplicaLogDirs", [1, 2, 2], 2, true),
    Api::new(35, "DescribeLogDirs", [1, 5, 5], 2, true),
    Api::new(36, "SaslAuthenticate", [0, 2, 2], 2, true),
    Api::new(37, "CreatePartitions", [0, 3, 3], 2, true),
    Api::new(38, "CreateDelegationToken", [1, 3, 3], 2, true),
    Api::new(39, "RenewDelegationToken", [1, 2, 2], 2, true),
    Api::new(40, "ExpireDelegationToken", [1, 2, 2], 2, true),
    Api::new(41, "DescribeDelegationToken", [1, 3, 3], 2, true),
    Api::new(42, "DeleteGroups", [0, 3, 3], 2, true),
    Api::new(43, "ElectLeaders", [0, 2, 2], 2, true),
    Api::new(44, "IncrementalAlterConfigs", [0, 1, 1], 1, true),
    Api::new(45, "AlterPartitionReassignments", [0, 1, 1], 0, true),
    Api::new(46, "ListPartitionReassignments", [0, 0, 0], 0, true),
    Api::new(47, "OffsetDelete", [0, 0, 0], 32767, true),
    Api::new(48, "DescribeClientQuotas", [0, 1, 1], 1, true),
    Api::new(49, "AlterClientQuotas", [0, 1, 1], 1, true),
    Api::new(50, "DescribeUserScramCredentials", [0, 0, 0], 0, true),
    Api::new(51, "AlterUserScramCredentials", [0, 0, 0], 0, true),
    Api::new(52, "Vote", [0, 2, 2], 0, false),
    Api::new(53, "BeginQuorumEpoch", [0, 1, 1], 1, false),
    Api::new(54, "EndQuorumEpoch", [0, 1, 1], 1, false),
    Api::new(55, "DescribeQuorum", [0, 2, 2], 0, true),
    Api::new(56, "AlterPartition", [2, 3, 3], 0, false),
    Api::new(57, "UpdateFeatures", [0, 2, 2], 0, true),
    Api::new(58, "Envelope", [0, 0, 0], 0, false),
    Api::new(59, "FetchSnapshot", [0, 1, 1], 0, false),
    Api::new(60, "DescribeCluster", [0, 2, 2], 0, true),
    Api::new(61, "DescribeProducers", [0, 0, 0], 0, true),
    Api::new(62, "BrokerRegistration", [0, 4, 4], 0, false),
    Api::new(63, "BrokerHeartbeat", [0, 2, 2], 0, false),
    Api::new(64, "UnregisterBroker", [0, 0, 0], 0, true),
    Api::new(65, "DescribeTransactions", [0, 0, 0], 0, true),
    Api::new(66, "ListTransactions", [0, 2, 2], 0, true),
    Api::new(67, "AllocateProducerIds", [0, 0, 0], 0, false),
    Api::new(68, "ConsumerGroupHeartbeat", [0, 1, 1], 0, true),
    Api::new(69, "ConsumerGroupDescribe", [0, 1, 1], 0, true),
    Api::new(70, "ControllerRegistration", [0, 0, 0], 0, false),
    Api::new(71, "GetTelemetrySubscriptions", [0, 0, 0], 0, true),
    Api::new(72, "PushTelemetry", [0, 0, 0], 0, true),
    Api::new(73, "AssignReplicasToDirs", [0, 0, 0], 0, false),
    Api::new(74, "ListConfigResources", [0, 1, 1], 0, true),
    Api::new(75, "DescribeTopicPartitions", [0, 0, 0], 0, true),
    Api::new(76, "ShareGroupHeartbeat", [1, 1, 1], 0, true),
    Api::new(77, "ShareGroupDescribe", [1, 1, 1], 0, true),
    Api::new(78, "ShareFetch", [1, 2, 2], 0, true),
    Api::new(79, "ShareAcknowledge", [1, 2, 2], 0, true),
    Api::new(80, "AddRaftVoter", [0, 1, 1], 0, true),
    Api::new(81, "RemoveRaftVoter", [0, 0, 0], 0, true),
    Api::new(82, "UpdateRaftVoter", [0, 0, 0], 0, false),
    Api::new(83, "InitializeShareGroupState", [0, 0, 0], 0, true),
    Api::new(84, "ReadShareGroupState", [0, 0, 0], 0, true),
    Api::new(85, "WriteShareGroupState", [0, 1, 1], 0, true),
    Api::new(86, "DeleteShareGroupState", [0, 0, 0], 0, true),
    Api::new(87, "ReadShareGroupStateSummary", [0, 1, 1], 0, true),
    Api::new(88, "StreamsGroupHeartbeat", [0, 1, 1], 0, true),
    Api::new(89, "StreamsGroupDescribe", [0, 1, 1], 0, true),
    Api::new(90, "DescribeShareGroupOffsets", [0, 1, 1], 0, true),
    Api::new(91, "AlterShareGroupOffsets", [0, 0, 0], 0, true),
    Api::new(92, "DeleteShareGroupOffsets", [0, 0, 0], 0, true),
    Api::new(93, "StreamsGroupTopologyDescriptionUpdate", [0, 0, 0], 0, true),
    Api::new(94, "UnregisterController", [0, 0, 0], 0, true),
];
