"""No client request occupies the control thread for long: each API gets its largest request, with
16,000 partitions.

The test runs the control thread, on the real core in memory. It counts the calls of Python and C
functions in each turn, while the core's clock advances by `LOOK_NS` with each read. So the result
does not depend on the processor, and work between two reads that grows with the request is
detected.
"""

import os
from collections.abc import Callable, Iterator
from itertools import count
from typing import TYPE_CHECKING, TypeVar, cast

import pytest

from pykafka_core import _core
from pykafka_core.broker.start.plan import plan
from pykafka_core.broker.start.startup import start
from pykafka_core.config import BrokerConfigs
from pykafka_core.handlers.configs.checks import UNKNOWN_NAMES_MAX
from pykafka_core.handlers.quotas.alter_client_quotas import QUOTAS_MAX
from pykafka_core.handlers.registry import BY_KEY, ROWS
from pykafka_core.handlers.security.alter_user_scram_credentials import CREDENTIALS_MAX
from pykafka_core.protocol import decode_response, encode_request
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
from pykafka_core.types import RESOURCE_BROKER, RESOURCE_CLIENT_METRICS, RESOURCE_TOPIC
from tests.support.calls import counting_calls
from tests.support.patience import POLL_NS
from tests.support.simulated import fake_core

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

TURN_CALLS_MAX = 400_000
"""About 40 ms: a call takes a tenth of a microsecond. The largest turns have 260,000 calls."""
LOOK_NS = 1_000_000
SMALL, LARGE = 8_000, 8_000
"""Number of topics with one partition, and number of partitions of one large topic."""
RECORDS_MAX = 9_999
GROUPS = 16_000
VOTER_LISTENER = AddRaftVoterRequest.Listener(name="CONTROLLER", host="127.0.0.1", port=9093)
VERSIONS = {8: 9, 9: 9}
"""Versions of requests whose newest version identifies topics by id; for others it is the
newest."""


class Catching:
    """The real core; it stores responses for the test, and its clock advances with each read."""

    def __init__(self, core: _core.Core) -> None:
        self.replies: dict[int, bytes] = {}
        self._core = core
        self._now_ns = core.now_ns()

    def now_ns(self) -> int:
        self._now_ns += LOOK_NS
        return self._now_ns

    def respond(self, replies: "Sequence[tuple[int, bytes | _core.EncodedMessage]]") -> None:
        self.replies.update((request, bytes(body)) for request, body in replies)

    def __getattr__(self, name: str) -> object:
        return getattr(self._core, name)


class Driven:
    """A broker whose control thread is run by the caller."""

    def __init__(self) -> None:
        settings = BrokerConfigs({"listeners": "PLAINTEXT://127.0.0.1:0"})
        planned = plan(settings, None, lambda: os.urandom(16))
        options = _core.CoreOptions(
            data_dir=None,
            node_id=planned.identity.node_id,
            cluster_id=planned.identity.cluster_id,
            durability="memory",
            memory_max=256 << 20,
            clock_ms=None,
        )
        self.core = _core.Core(options)
        self._catching = Catching(self.core)
        core = cast("_core.Core", self._catching)
        self._machine = start(core, _core, planned).control.dispatcher
        self._ids = count(2**40)
        self._events: list[_core.Event] = []

    def ask(self, api_key: int, request: Message) -> tuple[Message, int]:
        """Handle a request; return the response, and the largest number of calls in one turn."""
        version = VERSIONS.get(api_key, BY_KEY[api_key].versions[1])
        event = fake_core.request(
            id=next(self._ids),
            api_key=api_key,
            api_version=version,
            body=encode_request(request, version),
            received_ns=self.core.now_ns(),
        )
        self._events.append(event)
        calls_max = 0
        while event.id not in self._catching.replies:
            is_busy, calls = self._turn(self._events)
            calls_max = max(calls_max, calls)
            # Events after the response belong to the next turn.
            self._events = self.core.wait(0 if is_busy else self.core.now_ns() + POLL_NS)
        body = self._catching.replies.pop(event.id)
        return decode_response(api_key, version, body), calls_max

    def _turn(self, events: "Sequence[_core.Event]") -> tuple[bool, int]:
        with counting_calls() as calls:
            for event in events:
                self._machine.take(event)
            is_busy = self._machine.advance()
        return is_busy, calls.count


def creation(first: int, topics: int, partitions: int) -> Message:
    return CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(
                name=f"t{first + n}", num_partitions=partitions, replication_factor=1
            )
            for n in range(topics)
        ]
    )


NAMES = [f"t{n}" for n in range(SMALL)]
BIG = f"t{SMALL}"


@pytest.fixture(scope="module")
def driven() -> Iterator[Driven]:
    driven = Driven()
    for first in range(0, SMALL, SMALL // 2):
        driven.ask(19, creation(first, SMALL // 2, 1))
    driven.ask(19, creation(SMALL, 1, LARGE))
    driven.ask(10, FindCoordinatorRequest(coordinator_keys=["g0"]))
    yield driven
    driven.core.stop(0)


def partitions_of(make: Callable[[str, list[int]], T]) -> list[T]:
    """Return one item for each small topic, and one for the large topic."""
    return [*(make(name, [0]) for name in NAMES), make(BIG, list(range(LARGE)))]


def delete_records() -> Message:
    one = DeleteRecordsRequest.DeleteRecordsPartition
    of = DeleteRecordsRequest.DeleteRecordsTopic
    topics = partitions_of(
        lambda name, indexes: of(
            name=name, partitions=[one(partition_index=index, offset=-1) for index in indexes]
        )
    )
    return DeleteRecordsRequest(topics=topics)


def describe_producers() -> Message:
    of = DescribeProducersRequest.TopicRequest
    topics = partitions_of(lambda name, indexes: of(name=name, partition_indexes=indexes))
    return DescribeProducersRequest(topics=topics)


def describe_log_dirs() -> Message:
    of = DescribeLogDirsRequest.DescribableLogDirTopic
    topics = partitions_of(lambda name, indexes: of(topic=name, partitions=indexes))
    return DescribeLogDirsRequest(topics=topics)


def describe_configs() -> Message:
    of = DescribeConfigsRequest.DescribeConfigsResource
    resources = [of(resource_type=RESOURCE_TOPIC, resource_name=name) for name in [*NAMES, BIG]]
    return DescribeConfigsRequest(resources=resources, include_synonyms=True)


def alter_configs() -> Message:
    of, setting = AlterConfigsRequest.AlterConfigsResource, AlterConfigsRequest.AlterableConfig
    configs = [setting(name="retention.ms", value="70000")]
    names = [*NAMES, BIG]
    return AlterConfigsRequest(
        resources=[
            of(resource_type=RESOURCE_TOPIC, resource_name=name, configs=configs) for name in names
        ]
    )


def incremental_alter_configs() -> Message:
    of = IncrementalAlterConfigsRequest.AlterConfigsResource
    configs = [IncrementalAlterConfigsRequest.AlterableConfig(name="segment.ms", value="70000")]
    names = [*NAMES, BIG]
    return IncrementalAlterConfigsRequest(
        resources=[
            of(resource_type=RESOURCE_TOPIC, resource_name=name, configs=configs) for name in names
        ]
    )


def alterations_of_one_broker(first: int, count: int) -> Message:
    of = IncrementalAlterConfigsRequest.AlterConfigsResource
    setting = IncrementalAlterConfigsRequest.AlterableConfig
    configs = [setting(name=f"unknown.{first + n}", value="v") for n in range(count)]
    return IncrementalAlterConfigsRequest(
        resources=[of(resource_type=RESOURCE_BROKER, resource_name="", configs=configs)]
    )


def a_costly_pattern() -> Message:
    of = IncrementalAlterConfigsRequest.AlterConfigsResource
    setting = IncrementalAlterConfigsRequest.AlterableConfig
    match = "client_id=(?i:" + "[\x01-\uffff]" * 4_000 + ")"
    one = of(
        resource_type=RESOURCE_CLIENT_METRICS,
        resource_name="m",
        configs=[setting(name="match", value=match)],
    )
    return IncrementalAlterConfigsRequest(resources=[one])


def replaced_settings_of_one_broker() -> Message:
    of, setting = AlterConfigsRequest.AlterConfigsResource, AlterConfigsRequest.AlterableConfig
    configs = [setting(name=f"other.{n}", value="v") for n in range(RECORDS_MAX)]
    return AlterConfigsRequest(
        resources=[of(resource_type=RESOURCE_BROKER, resource_name="", configs=configs)]
    )


def too_many_alterations() -> Message:
    of = IncrementalAlterConfigsRequest.AlterConfigsResource
    resources = [of(resource_type=RESOURCE_TOPIC, resource_name=f"n{n}") for n in range(50_000)]
    return IncrementalAlterConfigsRequest(resources=resources)


def create_partitions() -> Message:
    of = CreatePartitionsRequest.CreatePartitionsTopic
    return CreatePartitionsRequest(
        topics=[of(name=name, count=2, assignments=None) for name in NAMES], timeout_ms=1
    )


def delete_topics() -> Message:
    of = DeleteTopicsRequest.DeleteTopicState
    return DeleteTopicsRequest(topics=[of(name=name) for name in NAMES])


def offset_commit(group_id: str = "commits") -> Message:
    one = OffsetCommitRequest.OffsetCommitRequestPartition
    topics = partitions_of(
        lambda name, indexes: OffsetCommitRequest.OffsetCommitRequestTopic(
            name=name, partitions=[one(partition_index=index) for index in indexes]
        )
    )
    return OffsetCommitRequest(
        group_id=group_id, generation_id_or_member_epoch=-1, member_id="", topics=topics
    )


def offset_fetch() -> Message:
    of = OffsetFetchRequest.OffsetFetchRequestTopics
    topics = partitions_of(lambda name, indexes: of(name=name, partition_indexes=indexes))
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="commits", topics=topics)
    return OffsetFetchRequest(groups=[group])


def fetch_all_offsets() -> Message:
    of = OffsetFetchRequest.OffsetFetchRequestGroup
    return OffsetFetchRequest(groups=[of(group_id="commits", topics=None)])


def fetch_of_many_groups() -> Message:
    of = OffsetFetchRequest.OffsetFetchRequestGroup
    return OffsetFetchRequest(groups=[of(group_id=f"g{n}", topics=None) for n in range(GROUPS)])


def offset_delete() -> Message:
    one = OffsetDeleteRequest.OffsetDeleteRequestPartition
    topics = partitions_of(
        lambda name, indexes: OffsetDeleteRequest.OffsetDeleteRequestTopic(
            name=name, partitions=[one(partition_index=index) for index in indexes]
        )
    )
    return OffsetDeleteRequest(group_id="commits", topics=topics)


def join_group(member_id: str = "") -> Message:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol
    return JoinGroupRequest(
        group_id="g0",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[protocol(name=f"p{n}") for n in range(100)],
    )


def sync_group() -> Message:
    one = SyncGroupRequest.SyncGroupRequestAssignment
    assignments = [one(member_id=f"m{n}") for n in range(50_000)]
    return SyncGroupRequest(group_id="g0", assignments=assignments)


def leave_group() -> Message:
    one = LeaveGroupRequest.MemberIdentity
    members = [one(member_id=f"m{n}") for n in range(50_000)]
    return LeaveGroupRequest(group_id="g0", members=members)


def consumer_group_heartbeat() -> Message:
    return ConsumerGroupHeartbeatRequest(
        group_id="new",
        member_id="member",
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=NAMES[:2_000],
        topic_partitions=[],
    )


def elect_leaders() -> Message:
    of = ElectLeadersRequest.TopicPartitions
    topics = partitions_of(lambda name, indexes: of(topic=name, partitions=list(indexes)))
    return ElectLeadersRequest(topic_partitions=topics)


def alter_partition_reassignments() -> Message:
    of = AlterPartitionReassignmentsRequest
    topics = partitions_of(
        lambda name, indexes: of.ReassignableTopic(
            name=name,
            partitions=[
                of.ReassignablePartition(partition_index=index, replicas=[1]) for index in indexes
            ],
        )
    )
    return of(topics=topics)


def list_partition_reassignments() -> Message:
    of = ListPartitionReassignmentsRequest
    topics = partitions_of(
        lambda name, indexes: of.ListPartitionReassignmentsTopics(
            name=name, partition_indexes=list(indexes)
        )
    )
    return of(topics=topics)


def alter_replica_log_dirs() -> Message:
    of = AlterReplicaLogDirsRequest
    topics = partitions_of(
        lambda name, indexes: of.AlterReplicaLogDirTopic(name=name, partitions=list(indexes))
    )
    return of(dirs=[of.AlterReplicaLogDir(path="/nowhere", topics=topics)])


def update_features() -> Message:
    of = UpdateFeaturesRequest
    updates = [of.FeatureUpdateKey(feature=f"f{n}", max_version_level=1) for n in range(20_000)]
    return of(feature_updates=updates)


def add_partitions_to_txn() -> Message:
    of = AddPartitionsToTxnRequest
    topics = partitions_of(
        lambda name, indexes: of.AddPartitionsToTxnTopic(name=name, partitions=list(indexes))
    )
    transaction = of.AddPartitionsToTxnTransaction(transactional_id="t", topics=topics)
    return of(transactions=[transaction])


def txn_offset_commit() -> Message:
    one = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
    topics = partitions_of(
        lambda name, indexes: TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
            name=name, partitions=[one(partition_index=index) for index in indexes]
        )
    )
    return TxnOffsetCommitRequest(transactional_id="t", group_id="commits", topics=topics)


def write_txn_markers() -> Message:
    of = WriteTxnMarkersRequest
    topics = partitions_of(
        lambda name, indexes: of.WritableTxnMarkerTopic(name=name, partition_indexes=list(indexes))
    )
    return of(markers=[of.WritableTxnMarker(topics=topics)])


def alter_client_quotas() -> Message:
    of = AlterClientQuotasRequest
    entries = [
        of.EntryData(
            entity=[of.EntityData(entity_type="user", entity_name=f"u{n}")],
            ops=[of.OpData(key="producer_byte_rate", value=1.0)],
        )
        for n in range(QUOTAS_MAX)
    ]
    return of(entries=entries)


def alter_user_scram_credentials() -> Message:
    of = AlterUserScramCredentialsRequest
    return of(
        upsertions=[
            of.ScramCredentialUpsertion(
                name=f"u{n}",
                mechanism=1,
                iterations=8_192,
                salt=b"s",
                salted_password=b"p" * 32,
            )
            for n in range(CREDENTIALS_MAX)
        ]
    )


LARGEST: list[tuple[int, Callable[[], Message]]] = [
    (10, lambda: FindCoordinatorRequest(coordinator_keys=[f"g{n}" for n in range(16_000)])),
    (22, lambda: InitProducerIdRequest(transactional_id=None)),
    (60, DescribeClusterRequest),
    (55, DescribeQuorumRequest),
    (74, ListConfigResourcesRequest),
    (32, describe_configs),
    (35, describe_log_dirs),
    (35, lambda: DescribeLogDirsRequest(topics=None)),
    (61, describe_producers),
    (21, delete_records),
    (33, alter_configs),
    (44, incremental_alter_configs),
    (44, too_many_alterations),
    (44, lambda: alterations_of_one_broker(0, UNKNOWN_NAMES_MAX)),
    (44, lambda: alterations_of_one_broker(1, RECORDS_MAX)),
    (33, replaced_settings_of_one_broker),
    (44, a_costly_pattern),
    (19, lambda: creation(SMALL + 1, RECORDS_MAX // 2, 1)),
    (37, create_partitions),
    (8, offset_commit),
    (9, offset_fetch),
    (9, fetch_all_offsets),
    (9, fetch_of_many_groups),
    (47, offset_delete),
    (11, join_group),
    (14, sync_group),
    (12, HeartbeatRequest),
    (13, leave_group),
    (15, lambda: DescribeGroupsRequest(groups=[f"g{n}" for n in range(GROUPS)])),
    (16, ListGroupsRequest),
    (42, lambda: DeleteGroupsRequest(groups_names=[f"g{n}" for n in range(GROUPS)])),
    (68, consumer_group_heartbeat),
    (69, lambda: ConsumerGroupDescribeRequest(group_ids=[f"g{n}" for n in range(GROUPS)])),
    (24, add_partitions_to_txn),
    (29, DescribeAclsRequest),
    (30, lambda: CreateAclsRequest(creations=[CreateAclsRequest.AclCreation()] * 10_000)),
    (31, lambda: DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter()] * 10_000)),
    (17, SaslHandshakeRequest),
    (36, SaslAuthenticateRequest),
    (38, CreateDelegationTokenRequest),
    (39, RenewDelegationTokenRequest),
    (40, ExpireDelegationTokenRequest),
    (41, DescribeDelegationTokenRequest),
    (51, alter_user_scram_credentials),
    (50, DescribeUserScramCredentialsRequest),
    (64, lambda: UnregisterBrokerRequest(broker_id=7)),
    (94, lambda: UnregisterControllerRequest(controller_id=7)),
    (80, lambda: AddRaftVoterRequest(voter_id=7, listeners=[VOTER_LISTENER] * 10_000)),
    (81, lambda: RemoveRaftVoterRequest(voter_id=7)),
    (34, alter_replica_log_dirs),
    (43, elect_leaders),
    (43, lambda: ElectLeadersRequest(topic_partitions=None)),
    (45, alter_partition_reassignments),
    (46, list_partition_reassignments),
    (57, update_features),
    (49, alter_client_quotas),
    (48, DescribeClientQuotasRequest),
    (25, lambda: AddOffsetsToTxnRequest(transactional_id="t", group_id="g0")),
    (26, lambda: EndTxnRequest(transactional_id="t")),
    (27, write_txn_markers),
    (28, txn_offset_commit),
    (65, lambda: DescribeTransactionsRequest(transactional_ids=[f"t{n}" for n in range(GROUPS)])),
    (66, ListTransactionsRequest),
    (20, delete_topics),
]


def test_every_api_has_its_largest_request() -> None:
    assert {api_key for api_key, _ in LARGEST} == {row.api_key for row in ROWS}


@pytest.mark.load
@pytest.mark.parametrize(
    ("api_key", "make"),
    LARGEST,
    ids=[f"{n}-{BY_KEY[key].name}" for n, (key, _) in enumerate(LARGEST)],
)
def test_no_request_blocks_the_control_thread(
    driven: Driven, api_key: int, make: Callable[[], Message]
) -> None:
    _, calls = driven.ask(api_key, make())
    print(f"{BY_KEY[api_key].name}: {calls} calls")
    assert calls <= TURN_CALLS_MAX
