"""Names in requests may be long; an error message that repeats one must fit into the response."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pykafka_core.handlers
from pykafka_core.errors import KafkaError
from pykafka_core.handlers.registry import ROWS, Row
from pykafka_core.protocol import ProtocolError, encode_request
from pykafka_core.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddRaftVoterRequest,
    AlterClientQuotasRequest,
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    AlterUserScramCredentialsRequest,
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    CreateAclsRequest,
    CreateDelegationTokenRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteAclsRequest,
    DeleteGroupsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeDelegationTokenRequest,
    DescribeGroupsRequest,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    DescribeQuorumRequest,
    DescribeTransactionsRequest,
    DescribeUserScramCredentialsRequest,
    ElectLeadersRequest,
    EndTxnRequest,
    ExpireDelegationTokenRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListConfigResourcesRequest,
    ListGroupsRequest,
    ListPartitionReassignmentsRequest,
    ListTransactionsRequest,
    Message,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    RemoveRaftVoterRequest,
    RenewDelegationTokenRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
    UnregisterBrokerRequest,
    UnregisterControllerRequest,
    UpdateFeaturesRequest,
    WriteTxnMarkersRequest,
)
from tests.support.simulated.broker import SimulatedBroker

NAME_LENGTH_MAX = 32_767
"""Maximum length of a string in bytes, in every version, as in Kafka."""

KINDS = (2, 4, 8, 16, 32, 99)
"""Kinds of resources, and a kind that does not exist."""

Topic = CreateTopicsRequest.CreatableTopic
TopicConfig = CreateTopicsRequest.CreatableTopicConfig
Altered = AlterConfigsRequest.AlterableConfig
AlteredResource = AlterConfigsRequest.AlterConfigsResource
Change = IncrementalAlterConfigsRequest.AlterableConfig
ChangedResource = IncrementalAlterConfigsRequest.AlterConfigsResource


def create_topics(name: str, _: int) -> Iterator[Message]:
    for topic in (
        Topic(name=name, num_partitions=1, replication_factor=1),
        Topic(name="t", configs=[TopicConfig(name=name, value="1")]),
        Topic(name="t", configs=[TopicConfig(name=name, value=None)] * 2),
        Topic(name="t", configs=[TopicConfig(name="retention.ms", value=name)]),
    ):
        yield CreateTopicsRequest(topics=[topic])


def delete_topics(name: str, version: int) -> Iterator[Message]:
    states = [DeleteTopicsRequest.DeleteTopicState(name=name)]
    if version < 6:
        yield DeleteTopicsRequest(topic_names=[name])
    else:
        yield DeleteTopicsRequest(topics=states)
        yield DeleteTopicsRequest(topics=states * 2)


def delete_records(name: str, _: int) -> Iterator[Message]:
    partitions = [DeleteRecordsRequest.DeleteRecordsPartition()]
    topic = DeleteRecordsRequest.DeleteRecordsTopic(name=name, partitions=partitions)
    yield DeleteRecordsRequest(topics=[topic])


def find_coordinator(name: str, version: int) -> Iterator[Message]:
    for kind in (0, 1, 2, 99) if version else (0,):
        if version < 4:
            yield FindCoordinatorRequest(key=name, key_type=kind)
        else:
            yield FindCoordinatorRequest(coordinator_keys=[name], key_type=kind)


def init_producer_id(name: str, _: int) -> Iterator[Message]:
    yield InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000)


def describe_configs(name: str, _: int) -> Iterator[Message]:
    for kind in KINDS:
        for asked in (None, [name]):
            resource = DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=asked
            )
            yield DescribeConfigsRequest(resources=[resource])


def alter_configs(name: str, _: int) -> Iterator[Message]:
    for kind in KINDS:
        for of, setting, value in changes(name):
            config = Altered(name=setting, value=value)
            resource = AlteredResource(resource_type=kind, resource_name=of, configs=[config])
            yield AlterConfigsRequest(resources=[resource])


def incremental_alter_configs(name: str, _: int) -> Iterator[Message]:
    for kind in KINDS:
        for of, setting, value in changes(name):
            for operation in (0, 1, 2, 3, 99):
                config = Change(name=setting, value=value, config_operation=operation)
                resource = ChangedResource(resource_type=kind, resource_name=of, configs=[config])
                yield IncrementalAlterConfigsRequest(resources=[resource])


def changes(name: str) -> Iterator[tuple[str, str, str | None]]:
    """Yield resource, setting and value."""
    for of in (name, "1"):
        yield from ((of, name, name), (of, name, None), (of, "retention.ms", name))
        yield from ((of, "log.retention.ms", name), (of, "match", name))


def describe_log_dirs(name: str, _: int) -> Iterator[Message]:
    topic = DescribeLogDirsRequest.DescribableLogDirTopic(topic=name, partitions=[0])
    yield DescribeLogDirsRequest(topics=[topic])


def create_partitions(name: str, _: int) -> Iterator[Message]:
    topic = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=1, assignments=None)
    yield CreatePartitionsRequest(topics=[topic])
    yield CreatePartitionsRequest(topics=[topic, topic])


def describe_quorum(name: str, _: int) -> Iterator[Message]:
    partitions = [DescribeQuorumRequest.PartitionData(partition_index=0)]
    topic = DescribeQuorumRequest.TopicData(topic_name=name, partitions=partitions)
    yield DescribeQuorumRequest(topics=[topic])


def describe_cluster(_name: str, version: int) -> Iterator[Message]:
    if version:
        yield DescribeClusterRequest(endpoint_type=99)


def describe_producers(name: str, _: int) -> Iterator[Message]:
    topic = DescribeProducersRequest.TopicRequest(name=name, partition_indexes=[0])
    yield DescribeProducersRequest(topics=[topic])


def list_config_resources(_name: str, _version: int) -> Iterator[Message]:
    yield ListConfigResourcesRequest()


def offset_commit(name: str, version: int) -> Iterator[Message]:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(committed_metadata=name)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(
        name=name if version < 10 else "", partitions=[partition]
    )
    for group in ("group", name):
        yield OffsetCommitRequest(group_id=group, member_id=name, topics=[topic])


def offset_fetch(name: str, version: int) -> Iterator[Message]:
    if version < 8:
        topic = OffsetFetchRequest.OffsetFetchRequestTopic(name=name, partition_indexes=[0])
        yield OffsetFetchRequest(group_id=name, topics=[topic])
        return
    wanted = OffsetFetchRequest.OffsetFetchRequestTopics(
        name=name if version < 10 else "", partition_indexes=[0]
    )
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=name, topics=[wanted])
    if version >= 9:
        group.member_id = name
    yield OffsetFetchRequest(groups=[group])


def offset_delete(name: str, _: int) -> Iterator[Message]:
    partitions = [OffsetDeleteRequest.OffsetDeleteRequestPartition()]
    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic(name=name, partitions=partitions)
    for group in ("group", name):
        yield OffsetDeleteRequest(group_id=group, topics=[topic])


def join_group(name: str, _: int) -> Iterator[Message]:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name=name)
    for member_id in ("", name):
        yield JoinGroupRequest(
            group_id=name,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id=member_id,
            protocol_type=name,
            protocols=[protocol],
        )


def heartbeat(name: str, _: int) -> Iterator[Message]:
    yield HeartbeatRequest(group_id=name, member_id=name)


def leave_group(name: str, version: int) -> Iterator[Message]:
    if version < 3:
        yield LeaveGroupRequest(group_id=name, member_id=name)
    else:
        member = LeaveGroupRequest.MemberIdentity(member_id=name, group_instance_id=name)
        yield LeaveGroupRequest(group_id=name, members=[member])


def sync_group(name: str, _: int) -> Iterator[Message]:
    assignment = SyncGroupRequest.SyncGroupRequestAssignment(member_id=name)
    yield SyncGroupRequest(group_id=name, member_id=name, assignments=[assignment])


def describe_groups(name: str, _: int) -> Iterator[Message]:
    yield DescribeGroupsRequest(groups=[name])


def list_groups(name: str, version: int) -> Iterator[Message]:
    yield ListGroupsRequest(states_filter=[name] if version >= 4 else [])


def delete_groups(name: str, _: int) -> Iterator[Message]:
    yield DeleteGroupsRequest(groups_names=[name])


def add_partitions_to_txn(name: str, version: int) -> Iterator[Message]:
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=[0])
    if version < 4:
        yield AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name, v3_and_below_topics=[topic]
        )
        return
    transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
        transactional_id=name, topics=[topic]
    )
    yield AddPartitionsToTxnRequest(transactions=[transaction])


def add_offsets_to_txn(name: str, _: int) -> Iterator[Message]:
    yield AddOffsetsToTxnRequest(transactional_id=name, group_id=name)


def end_txn(name: str, _: int) -> Iterator[Message]:
    yield EndTxnRequest(transactional_id=name)


def txn_offset_commit(name: str, version: int) -> Iterator[Message]:
    partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(committed_metadata=name)
    topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=name, partitions=[partition])
    request = TxnOffsetCommitRequest(transactional_id=name, group_id=name, topics=[topic])
    if version >= 3:
        request.member_id = request.group_instance_id = name
    yield request


def write_txn_markers(name: str, _: int) -> Iterator[Message]:
    topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=name, partition_indexes=[0])
    yield WriteTxnMarkersRequest(markers=[WriteTxnMarkersRequest.WritableTxnMarker(topics=[topic])])


def describe_transactions(name: str, _: int) -> Iterator[Message]:
    yield DescribeTransactionsRequest(transactional_ids=[name])


def list_transactions(name: str, version: int) -> Iterator[Message]:
    request = ListTransactionsRequest(state_filters=[name])
    if version >= 2:
        request.transactional_id_pattern = name
    yield request


def consumer_group_heartbeat(name: str, version: int) -> Iterator[Message]:
    for member_epoch in (0, -1, 1):
        yield ConsumerGroupHeartbeatRequest(
            group_id=name,
            member_id=name,
            instance_id=name,
            rack_id=name,
            member_epoch=member_epoch,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=[name],
            server_assignor=name,
            topic_partitions=[],
            **({"subscribed_topic_regex": name} if version else {}),
        )


def consumer_group_describe(name: str, _: int) -> Iterator[Message]:
    yield ConsumerGroupDescribeRequest(group_ids=[name])


def elect_leaders(name: str, _: int) -> Iterator[Message]:
    partitions = ElectLeadersRequest.TopicPartitions(topic=name, partitions=[0])
    yield ElectLeadersRequest(topic_partitions=[partitions])


def alter_partition_reassignments(name: str, _: int) -> Iterator[Message]:
    for replicas in (None, [1], [7]):
        partition = AlterPartitionReassignmentsRequest.ReassignablePartition(replicas=replicas)
        topic = AlterPartitionReassignmentsRequest.ReassignableTopic(
            name=name, partitions=[partition]
        )
        yield AlterPartitionReassignmentsRequest(topics=[topic])


def list_partition_reassignments(name: str, _: int) -> Iterator[Message]:
    of = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    yield ListPartitionReassignmentsRequest(topics=[of(name=name, partition_indexes=[0])])


def alter_replica_log_dirs(name: str, _: int) -> Iterator[Message]:
    topic = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name=name, partitions=[0])
    for path in (name, "/" + name[:100]):
        yield AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDirsRequest.AlterReplicaLogDir(path=path, topics=[topic])]
        )


def update_features(name: str, _: int) -> Iterator[Message]:
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature=name, max_version_level=1)
    yield UpdateFeaturesRequest(feature_updates=[update])


def describe_acls(name: str, _: int) -> Iterator[Message]:
    yield DescribeAclsRequest(resource_name_filter=name, principal_filter=name, host_filter=name)


def create_acls(name: str, _: int) -> Iterator[Message]:
    creation = CreateAclsRequest.AclCreation(resource_name=name, principal=name, host=name)
    yield CreateAclsRequest(creations=[creation])


def delete_acls(name: str, _: int) -> Iterator[Message]:
    of = DeleteAclsRequest.DeleteAclsFilter
    yield DeleteAclsRequest(filters=[of(resource_name_filter=name, principal_filter=name)])


def describe_client_quotas(name: str, _: int) -> Iterator[Message]:
    for kind in ("user", name):
        component = DescribeClientQuotasRequest.ComponentData(entity_type=kind, match=name)
        yield DescribeClientQuotasRequest(components=[component])


def alter_client_quotas(name: str, _: int) -> Iterator[Message]:
    of = AlterClientQuotasRequest
    for kind, key in (("user", "producer_byte_rate"), ("user", name), (name, name)):
        entity = of.EntityData(entity_type=kind, entity_name=name)
        for count in (1, 2):
            ops = [of.OpData(key=key, value=1.0)] * count
            yield of(entries=[of.EntryData(entity=[entity], ops=ops)])


def sasl_handshake(name: str, _: int) -> Iterator[Message]:
    yield SaslHandshakeRequest(mechanism=name)


def sasl_authenticate(name: str, _: int) -> Iterator[Message]:
    yield SaslAuthenticateRequest(auth_bytes=name.encode())


def create_delegation_token(name: str, version: int) -> Iterator[Message]:
    request = CreateDelegationTokenRequest()
    if version == 3:
        request.owner_principal_type = request.owner_principal_name = name
    yield request


def renew_delegation_token(name: str, _: int) -> Iterator[Message]:
    yield RenewDelegationTokenRequest(hmac=name.encode())


def expire_delegation_token(name: str, _: int) -> Iterator[Message]:
    yield ExpireDelegationTokenRequest(hmac=name.encode())


def describe_delegation_token(name: str, _: int) -> Iterator[Message]:
    owner = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
    yield DescribeDelegationTokenRequest(owners=[owner(principal_type=name, principal_name=name)])


def describe_user_scram_credentials(name: str, _: int) -> Iterator[Message]:
    for count in (1, 2):
        users = [DescribeUserScramCredentialsRequest.UserName(name=name)] * count
        yield DescribeUserScramCredentialsRequest(users=users)


def alter_user_scram_credentials(name: str, _: int) -> Iterator[Message]:
    of = AlterUserScramCredentialsRequest
    yield of(deletions=[of.ScramCredentialDeletion(name=name, mechanism=1)])
    for count in (1, 2):
        upsertion = of.ScramCredentialUpsertion(
            name=name, mechanism=1, iterations=8_192, salt=b"s", salted_password=b"p"
        )
        yield of(upsertions=[upsertion] * count)


def unregister_broker(_name: str, _version: int) -> Iterator[Message]:
    yield UnregisterBrokerRequest(broker_id=7)


def unregister_controller(_name: str, _version: int) -> Iterator[Message]:
    yield UnregisterControllerRequest(controller_id=7)


def add_raft_voter(name: str, _version: int) -> Iterator[Message]:
    listener = AddRaftVoterRequest.Listener(name=name, host=name)
    yield AddRaftVoterRequest(cluster_id=name, voter_id=7, listeners=[listener])


def remove_raft_voter(name: str, _version: int) -> Iterator[Message]:
    yield RemoveRaftVoterRequest(cluster_id=name, voter_id=7)


REQUESTS: dict[str, Callable[[str, int], Iterator[Message]]] = {
    make.__name__: make
    for make in (
        find_coordinator, create_topics, delete_topics, delete_records, init_producer_id,
        describe_configs, alter_configs, describe_log_dirs, create_partitions,
        incremental_alter_configs, describe_quorum, describe_cluster, describe_producers,
        list_config_resources, offset_commit, offset_fetch, offset_delete, join_group, heartbeat,
        leave_group, sync_group, describe_groups, list_groups, delete_groups, add_partitions_to_txn,
        add_offsets_to_txn, end_txn, write_txn_markers, txn_offset_commit, describe_transactions,
        list_transactions, consumer_group_heartbeat, consumer_group_describe, elect_leaders,
        alter_partition_reassignments, list_partition_reassignments, alter_replica_log_dirs,
        update_features, describe_client_quotas, alter_client_quotas, describe_acls, create_acls,
        delete_acls, sasl_handshake, sasl_authenticate, create_delegation_token,
        renew_delegation_token, expire_delegation_token, describe_delegation_token,
        describe_user_scram_credentials, alter_user_scram_credentials,
        unregister_broker, unregister_controller, add_raft_voter, remove_raft_voter,
    )
}  # fmt: skip


def error_messages(answer: object) -> Iterator[str]:
    """Yield the error messages of a response and of all its parts."""
    if isinstance(answer, list):
        for one in answer:
            yield from error_messages(one)
    if isinstance(answer, Message):
        for name in answer.__slots__:
            value = getattr(answer, name)
            if name == "error_message" and value is not None:
                yield value
            yield from error_messages(value)


def test_longer_string_cannot_be_encoded() -> None:
    longer = FindCoordinatorRequest(coordinator_keys=["n" * (NAME_LENGTH_MAX + 1)])
    with pytest.raises(ProtocolError):
        encode_request(longer, 6)


def test_every_api_has_requests() -> None:
    assert REQUESTS.keys() == {row.name for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_error_messages_are_truncated(row: Row, broker: SimulatedBroker) -> None:
    for version in range(row.versions[0], row.versions[1] + 1):
        for name in ("n" * NAME_LENGTH_MAX, "😀" * (NAME_LENGTH_MAX // 4)):
            for request in REQUESTS[row.name](name, version):
                for message in error_messages(broker.ask(request, version)):
                    assert len(message) <= KafkaError.MESSAGE_LENGTH_MAX


def test_error_messages_are_those_of_errors() -> None:
    """A text that a handler creates without an error class would not be truncated."""
    texts = set()
    for path in Path(*pykafka_core.handlers.__path__).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "error_message":
                texts.add(ast.unparse(node.value))
            if isinstance(node, ast.Assign) and "error_message" in ast.unparse(node.targets[0]):
                texts.add(ast.unparse(node.value))
    assert texts == {
        "None",
        "(error.code, str(error))",
        "UnknownTopicOrPartitionError.text",
        "str(error)",
        "str(error_of(code)())",
        "str(error) if error else None",
        "found.error_message",
        "None if isinstance(error, NoReassignmentInProgressError) else str(error)",
        # Texts with a number, and constant texts.
        "error_message",
        "text",
        "'NONE'",
        "''",
        "ALONE",
        "'No Authorizer is configured.'",
        "'SaslAuthenticate request received after successful authentication'",
        "'No Authorizer is configured on the broker'",
    }
