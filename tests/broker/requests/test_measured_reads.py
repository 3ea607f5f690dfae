"""Large results of shards are measured first, and read once their memory is reserved."""

import gc
from collections.abc import Callable
from itertools import count
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import pytest

from pykafka_core._core import Cancelled
from pykafka_core.broker.runtime.requests.pending_request import RemoteRequest
from pykafka_core.coordinator.group.classic import describe as classic_describe
from pykafka_core.coordinator.group.consumer import describe as consumer_describe
from pykafka_core.coordinator.group.offsets import fetch
from pykafka_core.coordinator.partitions import coordinator_partition
from pykafka_core.coordinator.transaction import describe as transaction_describe
from pykafka_core.errors import (
    BrokerNotAvailableError,
    CoordinatorLoadInProgressError,
    NotCoordinatorError,
)
from pykafka_core.handlers.groups import consumer_group_describe, describe_groups
from pykafka_core.handlers.offsets import offset_fetch
from pykafka_core.handlers.transactions import describe_transactions
from pykafka_core.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    InitProducerIdRequest,
    Message,
    OffsetCommitRequest,
    OffsetFetchRequest,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from pykafka_core.types import GROUP_TOPIC, TRANSACTION_TOPIC
from tests.broker.requests.test_reservations import (
    broker_with_groups,
    long_names,
    waiting_for_memory,
)
from tests.handlers.foreign_brokers import commit as commit_records
from tests.handlers.group_requests import broker_with_coordinator, join_request, joined, pass_ms
from tests.handlers.offset_requests import TOPIC, broker_with_topic, commit, create_topic
from tests.handlers.transaction_requests import ID, add, producer_of, transactional_broker
from tests.support.simulated.broker import SimulatedBroker

HELD_MS = 5_000
PARTITIONS = 300


def with_offsets(is_large: bool) -> SimulatedBroker:
    broker = broker_with_topic(PARTITIONS)
    commit(broker, dict.fromkeys(range(PARTITIONS if is_large else 3), 7), metadata="\u20ac" * 20)
    return broker


def with_members(is_large: bool) -> SimulatedBroker:
    broker = broker_with_coordinator()
    if not is_large:
        joined(broker)
        return broker
    for number in range(100):
        broker.send(join_request(group_instance_id=f"i{number}"), 5)
    broker.run()
    return broker


def with_consumers(is_large: bool) -> SimulatedBroker:
    broker = broker_with_coordinator()
    for number in range(100 if is_large else 1):
        joining = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=f"m{number}",
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        broker.ask(joining, 1)
    return broker


def with_transaction(is_large: bool) -> SimulatedBroker:
    broker = transactional_broker()
    producer = producer_of(broker)
    if is_large:
        create_topic(broker, 1_000, "wide")
        add(broker, producer, *range(1_000), topic="wide")
    else:
        add(broker, producer, 0)
    return broker


def fetch_of(*group_ids: str) -> OffsetFetchRequest:
    of = OffsetFetchRequest.OffsetFetchRequestGroup
    return OffsetFetchRequest(groups=[of(group_id=name, topics=None) for name in group_ids])


class Case(NamedTuple):
    """A request whose response grows with the state of a shard.

    Attributes:
        make: Creates a broker with a large or a small result.
        request: The request about it.
        version: Its version.
        read: The operation that reads it, as the handler names it.
        built: A function that is called only while a result is built.
        rows: Field of the response with one row for each group or transaction.
        shards: Topic of the shards, and the key.
    """

    make: Callable[[bool], SimulatedBroker]
    request: Message
    version: int
    read: tuple[ModuleType, str]
    built: tuple[ModuleType, str]
    rows: str
    shards: tuple[str, str]


CASES = {
    "OffsetFetch": Case(
        with_offsets,
        fetch_of("g"),
        9,
        (offset_fetch, "fetch_offsets"),
        (fetch, "current_offsets"),
        "groups",
        (GROUP_TOPIC, "g"),
    ),
    "DescribeGroups": Case(
        with_members,
        DescribeGroupsRequest(groups=["g"]),
        5,
        (describe_groups, "describe_group"),
        (classic_describe, "_described"),
        "groups",
        (GROUP_TOPIC, "g"),
    ),
    "ConsumerGroupDescribe": Case(
        with_consumers,
        ConsumerGroupDescribeRequest(group_ids=["g"]),
        1,
        (consumer_group_describe, "describe_consumer_group"),
        (consumer_describe, "_described"),
        "groups",
        (GROUP_TOPIC, "g"),
    ),
    "DescribeTransactions": Case(
        with_transaction,
        DescribeTransactionsRequest(transactional_ids=[ID]),
        0,
        (describe_transactions, "describe_transaction"),
        (transaction_describe, "defaultdict"),
        "transaction_states",
        (TRANSACTION_TOPIC, ID),
    ),
}


@pytest.fixture(params=list(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[tuple[ModuleType, str]], list[object]]:
    """Replace a function by one that records its calls."""

    def count_calls(place: tuple[ModuleType, str]) -> list[object]:
        calls: list[object] = []
        real = getattr(*place)

        def recorded(*arguments: Any, **named: Any) -> object:
            calls.append(arguments)
            return real(*arguments, **named)

        monkeypatch.setattr(*place, recorded)
        return calls

    return count_calls


Counted = Callable[[tuple[ModuleType, str]], list[object]]


def codes(broker: SimulatedBroker, asked: int, case: Case) -> list[int]:
    return [row.error_code for row in getattr(broker.response(asked), case.rows)]


def grant(broker: SimulatedBroker) -> None:
    broker.core.grant_memory()
    broker.run()


def stall_shard(broker: SimulatedBroker, shards: tuple[str, str]) -> None:
    """Start an append of another group or transaction of the shard, which is not committed."""
    topic, key = shards
    partitions = len(broker.image.topics.by_name[topic].partitions)
    place = coordinator_partition(key, partitions)
    other = next(
        name for name in map(str, count()) if coordinator_partition(name, partitions) == place
    )
    request: Message = InitProducerIdRequest(transactional_id=other, transaction_timeout_ms=60_000)
    if topic == GROUP_TOPIC:
        of = OffsetCommitRequest
        row = of.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        rows = [of.OffsetCommitRequestTopic(name=TOPIC, partitions=[row])]
        request = of(group_id=other, generation_id_or_member_epoch=-1, topics=rows)
        if TOPIC not in broker.image.topics.by_name:
            create_topic(broker)
    broker.core.hold_appends = True
    broker.send(request, 9 if topic == GROUP_TOPIC else 5)
    broker.run()


def stalled_with_memory(case: Case) -> tuple[SimulatedBroker, int]:
    """Return a broker with a request that holds memory and waits for a shard."""
    broker = case.make(True)
    if case.shards[0] == GROUP_TOPIC and TOPIC not in broker.image.topics.by_name:
        create_topic(broker)
    asked = waiting_for_memory(broker, case.request, case.version)
    stall_shard(broker, case.shards)
    grant(broker)
    assert broker.response(asked) is None
    return broker, asked


RESULTS = (
    fetch.Fetched,
    consumer_describe.Described,
    DescribeGroupsResponse.DescribedGroup,
    DescribeTransactionsResponse.TransactionState,
)


def results_held() -> int:
    gc.collect()
    return sum(type(one) in RESULTS for one in gc.get_objects())


def test_no_result_is_built_before_its_memory_is_reserved(case: Case, counted: Counted) -> None:
    broker = case.make(True)
    built = counted(case.built)
    asked = waiting_for_memory(broker, case.request, case.version)
    ((_, reserved),) = broker.core.reserving
    assert built == []
    grant(broker)
    assert built
    assert reserved > 16 << 10
    assert 0 < len(broker.core.replies[asked]) <= reserved


@pytest.mark.parametrize(("is_large", "reads"), [(False, 1), (True, 2)])
def test_only_a_large_request_takes_two_reads(
    case: Case, counted: Counted, is_large: bool, reads: int
) -> None:
    broker = case.make(is_large)
    calls = counted(case.read)
    response = broker.ask(case.request, case.version)
    assert [row.error_code for row in getattr(response, case.rows)] == [0]
    assert len(calls) == reads


def test_many_small_results_that_are_large_together_are_measured(counted: Counted) -> None:
    broker = broker_with_groups()
    calls = counted((describe_groups, "describe_group"))
    built = counted((classic_describe, "_described"))
    names = list(long_names())
    asked = waiting_for_memory(broker, DescribeGroupsRequest(groups=names), 5)
    assert len(calls) == len(names)
    assert 0 < len(built) < 16
    grant(broker)
    assert len(built) == len(names)
    assert len(calls) < 2 * len(names)
    response: Any = broker.response(asked)
    assert [(group.group_id, len(group.members)) for group in response.groups] == [
        (name, 1) for name in names
    ]


def offsets_of(broker: SimulatedBroker, metadata: str, *group_ids: str) -> None:
    for group_id in group_ids:
        offsets = dict.fromkeys(range(PARTITIONS), 7)
        assert set(commit(broker, offsets, metadata=metadata, group_id=group_id)) == {0}


def rows_of(response: Any) -> list[tuple[int, int]]:
    """The error code of each group, and the number of its rows."""
    return [
        (group.error_code, sum(len(topic.partitions) for topic in group.topics))
        for group in response.groups
    ]


@pytest.mark.parametrize("grown", [0, 1])
def test_group_that_does_not_fit_any_more_is_requested_again(grown: int) -> None:
    """The first group was read without a limit: each of many requests held it."""
    broker = broker_with_topic(PARTITIONS)
    offsets_of(broker, "m" * 20, "a", "b")
    asked = waiting_for_memory(broker, fetch_of("a", "b"), 9)
    broker.core.is_memory_scarce = False
    offsets_of(broker, "m" * 2_000, "ab"[grown])
    grant(broker)
    expected = [(0, PARTITIONS)] * 2
    expected[grown] = (CoordinatorLoadInProgressError.code, 0)
    assert rows_of(broker.response(asked)) == expected


def test_group_that_has_grown_a_little_is_fetched() -> None:
    broker = broker_with_topic(PARTITIONS)
    offsets_of(broker, "m" * 20, "a", "b")
    asked = waiting_for_memory(broker, fetch_of("a", "b"), 9)
    broker.core.is_memory_scarce = False
    offsets_of(broker, "m" * 25, "a")
    grant(broker)
    assert rows_of(broker.response(asked)) == [(0, PARTITIONS)] * 2


def test_long_names_of_assigned_topics_are_part_of_the_reservation() -> None:
    """A member that subscribes by a regular expression has no names: the response had 15 times the
    reserved size, and waited for memory again, complete.
    """
    broker = broker_with_coordinator()
    for number in range(50):
        create_topic(broker, 1, f"{number:0249}")
    beat = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", rebalance_timeout_ms=60_000)
    beat.subscribed_topic_names, beat.topic_partitions = [], []
    beat.subscribed_topic_regex = "0.*"
    broker.ask(beat, 1)
    for epoch in (1, 2, 2):
        pass_ms(broker, 5_000)
        again = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch)
        broker.ask(again, 1)
    asked = waiting_for_memory(broker, ConsumerGroupDescribeRequest(group_ids=["g"] * 8), 1)
    ((_, reserved),) = broker.core.reserving
    grant(broker)
    response: Any = broker.response(asked)
    member = response.groups[0].members[0]
    assert len(member.target_assignment.topic_partitions) == 50
    assert len(broker.core.replies[asked]) <= reserved


def test_work_of_a_read_does_not_depend_on_repeated_partitions(counted: Counted) -> None:
    """The shard iterated over each of 99,000 repeated partitions, which took 30 ms."""
    broker = broker_with_topic(1)
    commit(broker, {0: 7})
    calls: Any = counted((offset_fetch, "fetch_offsets"))
    topic = OffsetFetchRequest.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0] * 1_000)
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=[topic, topic])
    response: Any = broker.ask(OffsetFetchRequest(groups=[group, group]), 9)
    assert rows_of(response) == [(0, 2_000)] * 2
    ((_, selection, *_),) = calls
    assert selection.partitions == {TOPIC: {0: 4_000}}


def test_group_that_has_shrunk_is_fetched_as_it_is() -> None:
    broker = broker_with_topic(PARTITIONS)
    offsets_of(broker, "m" * 200, "a", "b")
    asked = waiting_for_memory(broker, fetch_of("a", "b"), 9)
    offsets_of(broker, "", "b")
    grant(broker)
    response: Any = broker.response(asked)
    assert [
        {row.metadata for topic in group.topics for row in topic.partitions}
        for group in response.groups
    ] == [{"m" * 200}, {""}]


def test_group_that_has_disappeared_is_absent() -> None:
    broker = broker_with_topic(PARTITIONS)
    offsets_of(broker, "m" * 20, "a", "b")
    asked = waiting_for_memory(broker, fetch_of("a", "b"), 9)
    broker.ask(DeleteGroupsRequest(groups_names=["a"]), 2)
    grant(broker)
    response: Any = broker.response(asked)
    assert [(group.error_code, len(group.topics)) for group in response.groups] == [(0, 0), (0, 1)]


def test_request_with_memory_waits_five_seconds_for_its_shard(case: Case) -> None:
    before = results_held()
    broker, asked = stalled_with_memory(case)
    assert results_held() > before
    pass_ms(broker, HELD_MS - 1)
    assert broker.response(asked) is None
    pass_ms(broker, 1)
    # The append is not committed yet, and its shard still has the read.
    assert results_held() == before
    assert codes(broker, asked, case) == [CoordinatorLoadInProgressError.code]
    assert asked not in broker.dispatcher._requests._open
    del broker.core.replies[asked]
    broker.core.release_appends()
    broker.run()
    assert asked not in broker.core.replies


def test_request_without_memory_waits_for_its_shard_as_long_as_it_takes(case: Case) -> None:
    broker = case.make(True)
    stall_shard(broker, case.shards)
    asked = broker.send(case.request, case.version)
    broker.run()
    pass_ms(broker, 2 * HELD_MS)
    assert broker.response(asked) is None
    broker.core.release_appends()
    broker.run()
    assert codes(broker, asked, case) == [0]


def closed_connection(broker: SimulatedBroker, asked: int) -> None:
    broker.core.push(Cancelled(asked))
    broker.run()


def stop(broker: SimulatedBroker, _asked: int) -> None:
    broker.dispatcher.fail_all(BrokerNotAvailableError.code)


@pytest.mark.parametrize("end", [closed_connection, stop])
def test_results_and_memory_are_released_when_the_request_ends(
    case: Case, end: Callable[[SimulatedBroker, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = results_held()
    broker, asked = stalled_with_memory(case)
    timers = len(broker.control.timers)
    released: list[object] = []
    real = RemoteRequest.unreserve

    def unreserve(self: RemoteRequest) -> None:
        released.append(self.key)
        real(self)

    monkeypatch.setattr(RemoteRequest, "unreserve", unreserve)
    end(broker, asked)
    assert released.count(asked) == 1
    assert results_held() == before
    assert len(broker.control.timers) == timers - 1
    broker.core.release_appends()
    broker.run()
    assert broker.response(asked) is None


def test_coordinator_that_moves_between_the_reads_is_not_the_coordinator(case: Case) -> None:
    broker = case.make(True)
    asked = waiting_for_memory(broker, case.request, case.version)
    end_point = RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host="node-2", port=9092)
    topic = broker.image.topics.by_name[case.shards[0]]
    commit_records(
        broker,
        RegisterBrokerRecord(
            broker_id=2, incarnation_id=bytes(16), end_points=[end_point], fenced=False
        ),
        *(
            PartitionChangeRecord(
                topic_id=topic.topic_id, partition_id=index, replicas=[2], isr=[2], leader=2
            )
            for index in topic.partitions
        ),
    )
    grant(broker)
    assert codes(broker, asked, case) == [NotCoordinatorError.code]


class Connection:
    """The memory of one request, and a core that reserves it at once."""

    id, api_key, api_version, body = 1, 9, 9, b""

    def __init__(self) -> None:
        self.reserved = 0
        self.has_body = True

    def unreserve(self) -> None:
        self.reserved = 0

    def release(self) -> None:
        self.has_body = False

    def reserve_response(self, token: int, request: int, bytes: int) -> None:
        del token, request
        assert self.reserved == 0, "a holder of memory must not wait for more"
        self.reserved = bytes


@pytest.fixture
def connection() -> Connection:
    return Connection()


@pytest.fixture
def remote(connection: Connection) -> RemoteRequest:
    row: Any = SimpleNamespace(module="offset_fetch", owner=None)
    event: Any = connection
    return RemoteRequest(event, row, event, [])


def test_memory_that_is_reserved_for_a_response_is_kept_while_the_request_waits(
    connection: Connection, remote: RemoteRequest
) -> None:
    connection.reserved = 20_000
    remote.park()
    assert (connection.reserved, connection.has_body) == (0, False)
    assert remote.reserve(1, 100_000)
    remote.park()
    assert connection.reserved == 100_000
    assert remote.reserve(2, 200_000)
    assert connection.reserved == 200_000
    remote.unreserve()
    assert connection.reserved == 0


def test_memory_that_covers_a_response_is_kept_while_the_request_waits(
    connection: Connection, remote: RemoteRequest
) -> None:
    connection.reserved = 100_000
    assert not remote.reserve(1, 50_000)
    remote.park()
    assert connection.reserved == 100_000
