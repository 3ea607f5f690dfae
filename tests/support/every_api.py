"""One request for each API that Python handles, in each of its versions.

A test describes the fields of its requests by `Content` and creates them by `request`. So a test
that sends a long name, a large list or an invalid value to every API contains that value once, and
no message classes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from pykafka_core.handlers.registry import ROWS
from pykafka_core.protocol import messages as m
from pykafka_core.protocol.messages import Message

Topics = list[tuple[str, list[int]]]
"""Names with partitions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    """Values of fields. An API uses those that it has.

    Attributes:
        topics: None requests all topics, if the API can.
        names: Groups, resources, protocols, users, features or listeners: one item of the request
            for each.
        members: Members of `group` that leave it or are assigned partitions; `member` sends the
            request.
        text: A required string that does not identify anything: a mechanism, a token, a path or a
            type of protocol.
        optional: The value of each optional string: a rack, an assignor, a filter or a pattern.
        kind: A type of coordinator, resource or endpoint, or a SCRAM mechanism.
        entity: The type of the entities with client quotas.
        operation: On a setting or a credential: 0 sets it, 1 deletes it.
        count: Partitions of a topic.
    """

    topics: Topics | None = field(default_factory=lambda: [("orders", [0])])
    names: list[str] = field(default_factory=lambda: ["name"])
    group: str = "group"
    transactional_id: str | None = "transaction"
    member: str = ""
    members: list[str] = field(default_factory=list)
    epoch: int = 0
    text: str = "text"
    optional: str | None = None
    states: list[str] = field(default_factory=list)
    kind: int = 1
    entity: str = "user"
    settings: list[tuple[str, str | None]] = field(default_factory=list)
    operation: int = 0
    count: int = 1
    offset: int = 7
    replicas: list[int] | None = field(default_factory=lambda: [1])
    verify_only: bool = False

    @property
    def listed(self) -> Topics:
        """The topics by name, for an API that cannot request all."""
        return self.topics or []

    @property
    def transaction(self) -> str:
        """The transactional id, for an API that requires one."""
        return self.transactional_id or ""


Make = Callable[[Content, int], Message]

REQUESTS: dict[str, Make] = {
    "heartbeat": lambda c, _: m.HeartbeatRequest(group_id=c.group, member_id=c.member),
    "describe_groups": lambda c, _: m.DescribeGroupsRequest(groups=c.names),
    "list_groups": lambda c, version: m.ListGroupsRequest(
        states_filter=c.states if version > 3 else []
    ),
    "delete_groups": lambda c, _: m.DeleteGroupsRequest(groups_names=c.names),
    "consumer_group_describe": lambda c, _: m.ConsumerGroupDescribeRequest(group_ids=c.names),
    "init_producer_id": lambda c, _: m.InitProducerIdRequest(
        transactional_id=c.transactional_id, transaction_timeout_ms=60_000
    ),
    "add_offsets_to_txn": lambda c, _: m.AddOffsetsToTxnRequest(
        transactional_id=c.transaction, group_id=c.group, producer_epoch=0
    ),
    "end_txn": lambda c, _: m.EndTxnRequest(transactional_id=c.transaction, committed=True),
    "describe_transactions": lambda c, _: m.DescribeTransactionsRequest(transactional_ids=c.names),
    "list_config_resources": lambda _c, _: m.ListConfigResourcesRequest(),
    "describe_cluster": lambda c, version: m.DescribeClusterRequest(
        endpoint_type=c.kind if version else 1
    ),
    "unregister_broker": lambda _c, _: m.UnregisterBrokerRequest(broker_id=7),
    "unregister_controller": lambda _c, _: m.UnregisterControllerRequest(controller_id=7),
    "remove_raft_voter": lambda c, _: m.RemoveRaftVoterRequest(cluster_id=c.optional, voter_id=7),
    "sasl_handshake": lambda c, _: m.SaslHandshakeRequest(mechanism=c.text),
    "sasl_authenticate": lambda c, _: m.SaslAuthenticateRequest(auth_bytes=c.text.encode()),
    "describe_acls": lambda c, _: m.DescribeAclsRequest(
        resource_name_filter=c.optional, principal_filter=c.optional, host_filter=c.optional
    ),
    "renew_delegation_token": lambda c, _: m.RenewDelegationTokenRequest(hmac=c.text.encode()),
    "expire_delegation_token": lambda c, _: m.ExpireDelegationTokenRequest(hmac=c.text.encode()),
}
"""By API: content and version to request. The functions below are entries, too."""

_NEWEST = {row.name: row.versions[1] for row in ROWS}


def request(api: str, content: Content, version: int | None = None) -> Message:
    """Return a request, in the newest version unless another one is given."""
    return REQUESTS[api](content, _NEWEST[api] if version is None else version)


def _api(make: Make) -> Make:
    REQUESTS[make.__name__] = make
    return make


# Groups


@_api
def offset_commit(c: Content, version: int) -> Message:
    of, one = m.OffsetCommitRequest, m.OffsetCommitRequest.OffsetCommitRequestPartition
    topics = [
        of.OffsetCommitRequestTopic(
            name=name if version < 10 else "",
            partitions=[
                one(partition_index=p, committed_offset=c.offset, committed_metadata=c.optional)
                for p in partitions
            ],
        )
        for name, partitions in c.listed
    ]
    return of(
        group_id=c.group,
        generation_id_or_member_epoch=-1,
        member_id=c.member,
        topics=topics,
    )


@_api
def offset_fetch(c: Content, version: int) -> Message:
    of = m.OffsetFetchRequest
    if version < 8:
        old = of.OffsetFetchRequestTopic
        topics = [old(name=name, partition_indexes=indexes) for name, indexes in c.listed]
        return of(group_id=c.names[0], topics=topics)
    groups = [of.OffsetFetchRequestGroup(group_id=name, topics=None) for name in c.names]
    for group in groups:
        if c.topics is not None:
            group.topics = [
                of.OffsetFetchRequestTopics(
                    name=name if version < 10 else "", partition_indexes=indexes
                )
                for name, indexes in c.topics
            ]
        if version > 8:
            group.member_id = c.member
    return of(groups=groups)


@_api
def offset_delete(c: Content, _: int) -> Message:
    of, one = m.OffsetDeleteRequest, m.OffsetDeleteRequest.OffsetDeleteRequestPartition
    topics = [
        of.OffsetDeleteRequestTopic(name=name, partitions=[one(partition_index=p) for p in indexes])
        for name, indexes in c.listed
    ]
    return of(group_id=c.group, topics=topics)


@_api
def find_coordinator(c: Content, version: int) -> Message:
    kind = c.kind if version else 0
    if version < 4:
        return m.FindCoordinatorRequest(key=c.names[0], key_type=kind)
    return m.FindCoordinatorRequest(coordinator_keys=c.names, key_type=kind)


@_api
def join_group(c: Content, _: int) -> Message:
    protocol = m.JoinGroupRequest.JoinGroupRequestProtocol
    return m.JoinGroupRequest(
        group_id=c.group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=c.member,
        protocol_type=c.text,
        protocols=[protocol(name=name, metadata=b"m") for name in c.names],
    )


@_api
def sync_group(c: Content, _: int) -> Message:
    one = m.SyncGroupRequest.SyncGroupRequestAssignment
    assignments = [one(member_id=member) for member in c.members]
    return m.SyncGroupRequest(group_id=c.group, member_id=c.member, assignments=assignments)


@_api
def leave_group(c: Content, version: int) -> Message:
    if version < 3:
        return m.LeaveGroupRequest(group_id=c.group, member_id=c.member)
    one = m.LeaveGroupRequest.MemberIdentity
    members = [one(member_id=member, group_instance_id=c.optional) for member in c.members]
    return m.LeaveGroupRequest(group_id=c.group, members=members)


@_api
def consumer_group_heartbeat(c: Content, version: int) -> Message:
    request = m.ConsumerGroupHeartbeatRequest(
        group_id=c.group,
        member_id=c.member,
        instance_id=c.optional,
        rack_id=c.optional,
        member_epoch=c.epoch,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=[name for name, _ in c.listed],
        server_assignor=c.optional,
        topic_partitions=[],
    )
    if version:
        request.subscribed_topic_regex = c.optional
    return request


# Transactions


@_api
def add_partitions_to_txn(c: Content, version: int) -> Message:
    of, one = m.AddPartitionsToTxnRequest, m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    topics = [one(name=name, partitions=partitions) for name, partitions in c.listed]
    if version < 4:
        return of(v3_and_below_transactional_id=c.transaction, v3_and_below_topics=topics)
    transaction = of.AddPartitionsToTxnTransaction(
        transactional_id=c.transaction, verify_only=c.verify_only, topics=topics
    )
    return of(transactions=[transaction])


@_api
def txn_offset_commit(c: Content, version: int) -> Message:
    of, one = m.TxnOffsetCommitRequest, m.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
    topics = [
        of.TxnOffsetCommitRequestTopic(
            name=name,
            partitions=[
                one(partition_index=p, committed_offset=c.offset, committed_metadata=c.optional)
                for p in partitions
            ],
        )
        for name, partitions in c.listed
    ]
    request = of(transactional_id=c.transaction, group_id=c.group, topics=topics)
    if version > 2:
        request.member_id, request.group_instance_id = c.member, c.optional
    return request


@_api
def write_txn_markers(c: Content, _: int) -> Message:
    of, one = m.WriteTxnMarkersRequest, m.WriteTxnMarkersRequest.WritableTxnMarkerTopic
    topics = [one(name=name, partition_indexes=indexes) for name, indexes in c.listed]
    return of(markers=[of.WritableTxnMarker(topics=topics)])


@_api
def list_transactions(c: Content, version: int) -> Message:
    request = m.ListTransactionsRequest(state_filters=c.states)
    if version > 1:
        request.transactional_id_pattern = c.optional
    return request


# Topics and their logs


@_api
def create_topics(c: Content, _: int) -> Message:
    of, one = m.CreateTopicsRequest, m.CreateTopicsRequest.CreatableTopic
    configs = [of.CreatableTopicConfig(name=name, value=value) for name, value in c.settings]
    topics = [
        one(name=name, num_partitions=c.count, replication_factor=1, configs=configs)
        for name, _ in c.listed
    ]
    return of(topics=topics)


@_api
def delete_topics(c: Content, version: int) -> Message:
    of, names = m.DeleteTopicsRequest, [name for name, _ in c.listed]
    if version < 6:
        return of(topic_names=names)
    return of(topics=[of.DeleteTopicState(name=name) for name in names])


@_api
def create_partitions(c: Content, _: int) -> Message:
    one = m.CreatePartitionsRequest.CreatePartitionsTopic
    topics = [one(name=name, count=c.count, assignments=None) for name, _ in c.listed]
    return m.CreatePartitionsRequest(topics=topics, timeout_ms=1)


@_api
def delete_records(c: Content, _: int) -> Message:
    of, one = m.DeleteRecordsRequest, m.DeleteRecordsRequest.DeleteRecordsPartition
    topics = [
        of.DeleteRecordsTopic(
            name=name, partitions=[one(partition_index=p, offset=c.offset) for p in partitions]
        )
        for name, partitions in c.listed
    ]
    return of(topics=topics)


@_api
def describe_producers(c: Content, _: int) -> Message:
    one = m.DescribeProducersRequest.TopicRequest
    topics = [one(name=name, partition_indexes=indexes) for name, indexes in c.listed]
    return m.DescribeProducersRequest(topics=topics)


@_api
def describe_log_dirs(c: Content, _: int) -> Message:
    if c.topics is None:
        return m.DescribeLogDirsRequest(topics=None)
    one = m.DescribeLogDirsRequest.DescribableLogDirTopic
    topics = [one(topic=name, partitions=partitions) for name, partitions in c.topics]
    return m.DescribeLogDirsRequest(topics=topics)


@_api
def alter_replica_log_dirs(c: Content, _: int) -> Message:
    of, one = m.AlterReplicaLogDirsRequest, m.AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic
    topics = [one(name=name, partitions=partitions) for name, partitions in c.listed]
    return of(dirs=[of.AlterReplicaLogDir(path=c.text, topics=topics)])


@_api
def elect_leaders(c: Content, _: int) -> Message:
    if c.topics is None:
        return m.ElectLeadersRequest(topic_partitions=None)
    one = m.ElectLeadersRequest.TopicPartitions
    topics = [one(topic=name, partitions=partitions) for name, partitions in c.topics]
    return m.ElectLeadersRequest(topic_partitions=topics)


@_api
def alter_partition_reassignments(c: Content, _: int) -> Message:
    of = m.AlterPartitionReassignmentsRequest
    topics = [
        of.ReassignableTopic(
            name=name,
            partitions=[
                of.ReassignablePartition(partition_index=p, replicas=c.replicas) for p in indexes
            ],
        )
        for name, indexes in c.listed
    ]
    return of(topics=topics)


@_api
def list_partition_reassignments(c: Content, _: int) -> Message:
    if c.topics is None:
        return m.ListPartitionReassignmentsRequest(topics=None)
    one = m.ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    topics = [one(name=name, partition_indexes=indexes) for name, indexes in c.topics]
    return m.ListPartitionReassignmentsRequest(topics=topics)


# Settings and quotas


@_api
def describe_configs(c: Content, _: int) -> Message:
    one = m.DescribeConfigsRequest.DescribeConfigsResource
    keys = None if c.optional is None else [c.optional]
    resources = [
        one(resource_type=c.kind, resource_name=name, configuration_keys=keys) for name in c.names
    ]
    return m.DescribeConfigsRequest(resources=resources, include_synonyms=True)


@_api
def alter_configs(c: Content, _: int) -> Message:
    of, one = m.AlterConfigsRequest, m.AlterConfigsRequest.AlterConfigsResource
    configs = [of.AlterableConfig(name=name, value=value) for name, value in c.settings]
    resources = [one(resource_type=c.kind, resource_name=name, configs=configs) for name in c.names]
    return of(resources=resources)


@_api
def incremental_alter_configs(c: Content, _: int) -> Message:
    of, one = m.IncrementalAlterConfigsRequest, m.IncrementalAlterConfigsRequest.AlterableConfig
    configs = [
        one(name=name, value=value, config_operation=c.operation) for name, value in c.settings
    ]
    resources = [
        of.AlterConfigsResource(resource_type=c.kind, resource_name=name, configs=configs)
        for name in c.names
    ]
    return of(resources=resources)


@_api
def describe_client_quotas(c: Content, _: int) -> Message:
    one = m.DescribeClientQuotasRequest.ComponentData
    components = [one(entity_type=c.entity, match=name) for name in c.names]
    return m.DescribeClientQuotasRequest(components=components)


@_api
def alter_client_quotas(c: Content, _: int) -> Message:
    of = m.AlterClientQuotasRequest
    ops = [of.OpData(key=name, value=float(value or 0)) for name, value in c.settings]
    entities = [[of.EntityData(entity_type=c.entity, entity_name=name)] for name in c.names]
    return of(entries=[of.EntryData(entity=entity, ops=ops) for entity in entities])


# The cluster


@_api
def describe_quorum(c: Content, _: int) -> Message:
    of, one = m.DescribeQuorumRequest, m.DescribeQuorumRequest.PartitionData
    topics = [
        of.TopicData(topic_name=name, partitions=[one(partition_index=p) for p in partitions])
        for name, partitions in c.listed
    ]
    return of(topics=topics)


@_api
def update_features(c: Content, _: int) -> Message:
    one = m.UpdateFeaturesRequest.FeatureUpdateKey
    updates = [one(feature=name, max_version_level=9) for name in c.names]
    return m.UpdateFeaturesRequest(feature_updates=updates)


@_api
def add_raft_voter(c: Content, _: int) -> Message:
    one = m.AddRaftVoterRequest.Listener
    listeners = [one(name=name, host=name, port=9093) for name in c.names]
    return m.AddRaftVoterRequest(cluster_id=c.optional, voter_id=7, listeners=listeners)


# Security


@_api
def create_acls(c: Content, _: int) -> Message:
    one = m.CreateAclsRequest.AclCreation
    creations = [one(resource_name=name, principal=name, host=name) for name in c.names]
    return m.CreateAclsRequest(creations=creations)


@_api
def delete_acls(c: Content, _: int) -> Message:
    one = m.DeleteAclsRequest.DeleteAclsFilter
    filters = [one(resource_name_filter=name, principal_filter=name) for name in c.names]
    return m.DeleteAclsRequest(filters=filters)


@_api
def create_delegation_token(c: Content, version: int) -> Message:
    request = m.CreateDelegationTokenRequest()
    if version > 2:
        request.owner_principal_type = request.owner_principal_name = c.optional
    return request


@_api
def describe_delegation_token(c: Content, _: int) -> Message:
    one = m.DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
    owners = [one(principal_type=name, principal_name=name) for name in c.names]
    return m.DescribeDelegationTokenRequest(owners=owners)


@_api
def describe_user_scram_credentials(c: Content, _: int) -> Message:
    one = m.DescribeUserScramCredentialsRequest.UserName
    users = [one(name=name) for name in c.names]
    return m.DescribeUserScramCredentialsRequest(users=users)


@_api
def alter_user_scram_credentials(c: Content, _: int) -> Message:
    of = m.AlterUserScramCredentialsRequest
    if c.operation:
        one = of.ScramCredentialDeletion
        return of(deletions=[one(name=name, mechanism=c.kind) for name in c.names])
    upsertions = [
        of.ScramCredentialUpsertion(
            name=name, mechanism=c.kind, iterations=8_192, salt=b"s", salted_password=b"p" * 32
        )
        for name in c.names
    ]
    return of(upsertions=upsertions)
