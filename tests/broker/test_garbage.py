"""Requests leave no work for the garbage collector: their objects are freed when they end.

`serve` depends on it, because it excludes objects that survive a full collection from later ones.
"""

import gc
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.broker.runtime.requests.calls import alter_configs
from pykafka_core.errors import KafkaError
from pykafka_core.handlers.registry import ROWS
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
    MetadataRequest,
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
from pykafka_core.types import RESOURCE_BROKER, RESOURCE_TOPIC, ConfigResource
from tests.support.patience import seconds
from tests.support.simulated.broker import SimulatedBroker
from tests.support.wire import Connection

ROOT = Path(__file__).parents[2]
TOO_MANY = 20_000
RESOURCES = [
    *((RESOURCE_TOPIC, name) for name in ("orders", "missing", "", "/")),
    *((RESOURCE_BROKER, name) for name in ("", "1", "7", "x")),
]
SETTINGS = [("retention.ms", "7"), ("retention.ms", "x"), ("unknown", "x"), ("retention.ms", None)]


def create(name: str, partitions: int, **setting: str) -> Message:
    of = CreateTopicsRequest
    configs = [of.CreatableTopicConfig(name=name, value=value) for name, value in setting.items()]
    topic = of.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, configs=configs
    )
    return of(topics=[topic])


def grow(name: str, count: int) -> Message:
    of = CreatePartitionsRequest.CreatePartitionsTopic
    return CreatePartitionsRequest(topics=[of(name=name, count=count)])


def alterations() -> Iterator[Message]:
    incremental, whole = IncrementalAlterConfigsRequest, AlterConfigsRequest
    for kind, name in RESOURCES:
        for setting, value in SETTINGS:
            yield incremental(
                resources=[
                    incremental.AlterConfigsResource(
                        resource_type=kind,
                        resource_name=name,
                        configs=[incremental.AlterableConfig(name=setting, value=value)],
                    )
                ]
            )
            yield whole(
                resources=[
                    whole.AlterConfigsResource(
                        resource_type=kind,
                        resource_name=name,
                        configs=[whole.AlterableConfig(name=setting, value=value)],
                    )
                ]
            )
    of = incremental.AlterConfigsResource
    yield incremental(
        resources=[of(resource_type=RESOURCE_TOPIC, resource_name=f"n{n}") for n in range(TOO_MANY)]
    )


def requests() -> Iterator[Message]:
    """Yield a valid request of each API, and rejected ones."""
    yield from (create(name, 1) for name in ("orders", "orders", "", "/", "x" * 300))
    yield from (create("other", count) for count in (0, -7, TOO_MANY))
    yield create("other", 1, **{"retention.ms": "x"})
    yield from alterations()
    yield from (grow(*to) for to in (("orders", 3), ("orders", 1), ("orders", TOO_MANY), ("x", 2)))
    for kind, name in RESOURCES:
        described = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=kind, resource_name=name
        )
        yield DescribeConfigsRequest(resources=[described])
    yield DescribeLogDirsRequest(topics=None)
    for name in ("orders", "missing"):
        asked = DescribeProducersRequest.TopicRequest(name=name, partition_indexes=[0, 7])
        yield DescribeProducersRequest(topics=[asked])
        before = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=7)
        deleted = DeleteRecordsRequest.DeleteRecordsTopic(name=name, partitions=[before])
        yield DeleteRecordsRequest(topics=[deleted])
    yield from group_requests()
    yield from transaction_requests()
    yield from cluster_requests()
    yield from consumer_group_requests()
    yield from (InitProducerIdRequest(transactional_id=name) for name in (None, "t"))
    yield DescribeQuorumRequest()
    yield DescribeClusterRequest()
    yield ListConfigResourcesRequest()
    state = DeleteTopicsRequest.DeleteTopicState
    yield from (DeleteTopicsRequest(topics=[state(name=name)]) for name in ("orders", "missing"))


def group_requests() -> Iterator[Message]:
    yield FindCoordinatorRequest(coordinator_keys=["g"])
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"m")
    for member_id in ("", "stranger"):
        yield JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[protocol],
        )
    yield SyncGroupRequest(group_id="g")
    yield HeartbeatRequest(group_id="g")
    committed = OffsetCommitRequest.OffsetCommitRequestPartition(committed_offset=7)
    commits = OffsetCommitRequest.OffsetCommitRequestTopic(partitions=[committed])
    for topics in ([], [commits]):
        yield OffsetCommitRequest(
            group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=topics
        )
    fetched = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    yield OffsetFetchRequest(groups=[fetched])
    deleted = OffsetDeleteRequest.OffsetDeleteRequestTopic(
        name="orders", partitions=[OffsetDeleteRequest.OffsetDeleteRequestPartition()]
    )
    yield OffsetDeleteRequest(group_id="g", topics=[deleted])
    yield DescribeGroupsRequest(groups=["g", "missing"])
    yield ListGroupsRequest()
    leaving = LeaveGroupRequest.MemberIdentity(member_id="stranger")
    yield LeaveGroupRequest(group_id="g", members=[leaving])
    yield from (DeleteGroupsRequest(groups_names=["g"]) for _ in range(2))


def consumer_group_requests() -> Iterator[Message]:
    for member_id, epoch in (("a", 0), ("b", 0), ("stranger", 7), ("a", -1)):
        yield ConsumerGroupHeartbeatRequest(
            group_id="c",
            member_id=member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=["orders"],
            topic_partitions=[],
        )
    yield ConsumerGroupDescribeRequest(group_ids=["c", "missing"])


def cluster_requests() -> Iterator[Message]:
    yield ElectLeadersRequest(topic_partitions=None)
    for name in ("orders", "missing"):
        of = ElectLeadersRequest.TopicPartitions
        yield ElectLeadersRequest(topic_partitions=[of(topic=name, partitions=[0, 7])])
    for name in ("orders", "missing"):
        for replicas in (None, [1], [7]):
            one = AlterPartitionReassignmentsRequest.ReassignablePartition(replicas=replicas)
            topic = AlterPartitionReassignmentsRequest.ReassignableTopic(
                name=name, partitions=[one]
            )
            yield AlterPartitionReassignmentsRequest(topics=[topic])
    yield ListPartitionReassignmentsRequest(topics=None)
    moved = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name="orders", partitions=[0, 7])
    yield AlterReplicaLogDirsRequest(
        dirs=[AlterReplicaLogDirsRequest.AlterReplicaLogDir(path="/nowhere", topics=[moved])]
    )
    quotas = AlterClientQuotasRequest
    for kind in ("user", "missing"):
        limited = quotas.EntryData(
            entity=[quotas.EntityData(entity_type=kind, entity_name="u")],
            ops=[quotas.OpData(key="producer_byte_rate", value=1e9)],
        )
        yield quotas(entries=[limited])
    yield DescribeClientQuotasRequest()
    wrong = DescribeClientQuotasRequest.ComponentData(entity_type="missing")
    yield DescribeClientQuotasRequest(components=[wrong])
    yield from (DescribeAclsRequest(), UnregisterBrokerRequest(broker_id=7))
    yield UnregisterControllerRequest(controller_id=7)
    yield from (AddRaftVoterRequest(voter_id=7), RemoveRaftVoterRequest(voter_id=7))
    yield CreateAclsRequest(creations=[CreateAclsRequest.AclCreation()])
    yield DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter()])
    yield from security_requests()
    for feature in ("transaction.version", "missing"):
        update = UpdateFeaturesRequest.FeatureUpdateKey(feature=feature, max_version_level=9)
        yield UpdateFeaturesRequest(feature_updates=[update])


def security_requests() -> Iterator[Message]:
    yield from (SaslHandshakeRequest(mechanism="PLAIN"), SaslAuthenticateRequest(auth_bytes=b"u"))
    yield from (CreateDelegationTokenRequest(), RenewDelegationTokenRequest(hmac=b"x"))
    yield from (ExpireDelegationTokenRequest(hmac=b"x"), DescribeDelegationTokenRequest())
    of = AlterUserScramCredentialsRequest
    for mechanism in (1, 9):
        upsertion = of.ScramCredentialUpsertion(
            name="u", mechanism=mechanism, iterations=8_192, salt=b"s", salted_password=b"p"
        )
        deletion = of.ScramCredentialDeletion(name="w", mechanism=mechanism)
        yield of(deletions=[deletion], upsertions=[upsertion])
    yield DescribeUserScramCredentialsRequest(users=None)


def transaction_requests() -> Iterator[Message]:
    yield FindCoordinatorRequest(coordinator_keys=["t"], key_type=1)
    yield InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
    of = AddPartitionsToTxnRequest
    for verify_only in (False, True):
        for name in ("orders", "missing"):
            topic = of.AddPartitionsToTxnTopic(name=name, partitions=[0, 7])
            transaction = of.AddPartitionsToTxnTransaction(
                transactional_id="t", verify_only=verify_only, topics=[topic]
            )
            yield of(transactions=[transaction])
    for name in ("t", "missing"):
        yield AddOffsetsToTxnRequest(transactional_id=name, group_id="g", producer_epoch=0)
        yield EndTxnRequest(transactional_id=name, committed=True)
    committed = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(committed_offset=7)
    commits = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
        name="orders", partitions=[committed]
    )
    yield TxnOffsetCommitRequest(transactional_id="t", group_id="g", topics=[commits])
    marked = WriteTxnMarkersRequest.WritableTxnMarkerTopic(name="orders", partition_indexes=[0])
    yield WriteTxnMarkersRequest(
        markers=[WriteTxnMarkersRequest.WritableTxnMarker(topics=[marked])]
    )
    yield DescribeTransactionsRequest(transactional_ids=["t", "missing"])
    yield ListTransactionsRequest()
    yield ListTransactionsRequest(transactional_id_pattern="(")


def test_every_api_has_requests() -> None:
    asked = {type(request).__name__ for request in requests()}
    assert asked == {f"{row.name.title().replace('_', '')}Request" for row in ROWS}


@pytest.mark.load
@pytest.mark.parametrize("check", ["requests_of_clients", "requests_of_the_process_itself"])
def test_no_request_makes_a_reference_cycle(check: str) -> None:
    """Runs in a separate process, because threads of other tests may also create cycles."""
    script = f"import gc; gc.disable(); from {__name__} import check_{check}; check_{check}()"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, timeout=seconds(300))


def check_requests_of_clients() -> None:
    for request in requests():
        SimulatedBroker().ask(request)  # for imports and caches of the first request
    broker = SimulatedBroker()
    gc.collect()
    for request in requests():
        broker.ask(request)
        assert gc.collect() == 0, f"{type(request).__name__}: {str(request)[:300]}"


def ways_without_a_client(broker: Broker, connection: Connection) -> Iterator[str]:
    """Send requests of this process; yield the name of each after its end."""
    broker.create_topic("orders")
    yield "creation"
    with suppress(KafkaError):
        broker.create_topic("orders")
    yield "refused creation"
    broker.undo_alterations(["log.retention.ms", "min.insync.replicas"])
    yield "nothing to undo"
    broker._ask(alter_configs({ConfigResource(RESOURCE_BROKER, ""): {"log.retention.ms": "7"}}))
    broker.undo_alterations(["log.retention.hours"])
    yield "undone alteration"
    asked = MetadataRequest.MetadataRequestTopic
    names = ("new", "new", "bad/name", "orders", "or.ders", "or_ders")
    for name in names:
        connection.ask(
            3, 12, MetadataRequest(topics=[asked(name=name)], allow_auto_topic_creation=True)
        )
        broker.topics()
        yield f"creation by Metadata of {name}"
    for name in ("orders", "orders", "new", "or.ders"):
        with suppress(KafkaError):
            broker.delete_topic(name)
        yield f"deletion of {name}"


def check_requests_of_the_process_itself() -> None:
    with Broker() as broker, Connection(broker.bootstrap_servers) as connection:
        for _ in ways_without_a_client(broker, connection):
            pass  # for imports and caches of the first request
        gc.collect()
        for way in ways_without_a_client(broker, connection):
            assert gc.collect() == 0, way


def test_cycles_that_survive_a_full_collection_are_freed_later() -> None:
    script = """if True:
        import gc
        from pykafka_core.cli.serve import OBJECTS_FREE, _begin_collecting
        _begin_collecting()
        before = gc.get_freeze_count()
        for _ in range(40):
            cycles = [[] for _ in range(50_000)]
            for cycle in cycles:
                cycle.append(cycle)
            gc.collect()
            del cycles, cycle
            assert gc.get_freeze_count() <= 2 * before + OBJECTS_FREE + 200_000
    """
    subprocess.run([sys.executable, "-c", script], check=True, timeout=seconds(300))


def test_server_freezes_objects_that_survive_a_full_collection() -> None:
    script = """if True:
        import gc
        from pykafka_core.cli.serve import _begin_collecting
        _begin_collecting()
        before = gc.get_freeze_count()
        kept = [[] for _ in range(100_000)]
        gc.collect()
        assert gc.get_freeze_count() >= before + 100_000
        assert len(gc.get_objects()) < 1000
        del kept
        assert gc.get_freeze_count() < before + 1000
    """
    subprocess.run([sys.executable, "-c", script], check=True, timeout=seconds(300))
