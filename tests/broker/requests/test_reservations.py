"""Large responses reserve their memory before they are built."""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from pykafka_core._core import Cancelled
from pykafka_core.coordinator.group.offsets.fetch import fetch_offsets
from pykafka_core.handlers.groups import consumer_group_describe, list_groups
from pykafka_core.handlers.offsets import offset_fetch
from pykafka_core.handlers.transactions import list_transactions
from pykafka_core.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    ListGroupsRequest,
    ListTransactionsRequest,
    Message,
    OffsetFetchRequest,
)
from tests.handlers.group_requests import broker_with_coordinator, join_request, joined
from tests.handlers.offset_requests import broker_with_topic, commit
from tests.handlers.transaction_requests import producer_of, transactional_broker
from tests.support.simulated.broker import SimulatedBroker

PARTITIONS, REPEATED = 100, 100


def broker_with_offsets() -> SimulatedBroker:
    broker = broker_with_topic(PARTITIONS)
    commit(broker, dict.fromkeys(range(PARTITIONS), 7), metadata="\u20ac" * 20)
    return broker


def broker_with_members() -> SimulatedBroker:
    broker = broker_with_coordinator()
    for number in range(50):
        broker.send(join_request(group_instance_id=f"i{number}"), 5)
    broker.run()
    return broker


def broker_with_large_member() -> SimulatedBroker:
    broker = broker_with_coordinator()
    joined(broker, metadata=bytes(900_000))
    return broker


def long_names(count: int = 50) -> Iterator[str]:
    return (f"{number:0500}" for number in range(count))


def broker_with_groups() -> SimulatedBroker:
    broker = broker_with_coordinator()
    for name in long_names():
        joined(broker, name)
    return broker


def broker_with_transactions() -> SimulatedBroker:
    broker = transactional_broker()
    for name in long_names():
        producer_of(broker, name)
    return broker


def fetch_of(group_id: str = "g", **fields: Any) -> OffsetFetchRequest:
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group_id, topics=None, **fields)
    return OffsetFetchRequest(groups=[group] * REPEATED)


def waiting_for_memory(broker: SimulatedBroker, request: Message, version: int) -> int:
    """Send a request whose response gets no memory yet."""
    broker.core.is_memory_scarce = True
    asked = broker.send(request, version)
    broker.run()
    assert broker.response(asked) is None
    assert len(broker.core.reserving) == 1
    return asked


@pytest.mark.parametrize(
    ("make", "request_", "version"),
    [
        (broker_with_offsets, fetch_of(), 9),
        (broker_with_members, DescribeGroupsRequest(groups=["g"] * REPEATED), 5),
        (broker_with_large_member, DescribeGroupsRequest(groups=["g"]), 5),
        (broker_with_groups, ListGroupsRequest(), 5),
        (broker_with_transactions, ListTransactionsRequest(), 1),
    ],
)
def test_large_response_is_built_within_its_reservation(
    make: Callable[[], SimulatedBroker], request_: Message, version: int
) -> None:
    broker = make()
    asked = waiting_for_memory(broker, request_, version)
    ((_, reserved),) = broker.core.reserving
    broker.core.grant_memory()
    broker.run()
    assert 0 < len(broker.core.replies[asked]) <= reserved


def test_no_row_of_a_response_is_built_before_its_memory_is_reserved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows: list[object] = []
    real = offset_fetch._Row

    def row(**fields: Any) -> object:
        rows.append(fields)
        return real(**fields)

    monkeypatch.setattr(offset_fetch, "_Row", row)
    broker = broker_with_offsets()
    waiting_for_memory(broker, fetch_of(), 9)
    assert rows == []
    broker.core.grant_memory()
    broker.run()
    assert len(rows) == PARTITIONS * REPEATED


def test_no_member_of_a_response_is_built_before_its_memory_is_reserved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[object] = []
    real = consumer_group_describe._member

    def member(*arguments: Any) -> object:
        built.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(consumer_group_describe, "_member", member)
    broker = broker_with_coordinator()
    joining = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    broker.ask(joining, 1)
    request = ConsumerGroupDescribeRequest(group_ids=["g"] * REPEATED)
    waiting_for_memory(broker, request, 1)
    assert built == []
    broker.core.grant_memory()
    broker.run()
    assert len(built) == REPEATED


@pytest.mark.parametrize(
    ("make", "request_", "version", "row"),
    [
        (broker_with_groups, ListGroupsRequest(), 5, (list_groups, "_row")),
        (broker_with_transactions, ListTransactionsRequest(), 1, (list_transactions, "listed")),
    ],
)
def test_no_row_of_a_list_is_built_before_its_memory_is_reserved(
    make: Callable[[], SimulatedBroker],
    request_: Message,
    version: int,
    row: tuple[ModuleType, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[object] = []
    real = getattr(*row)

    def counted(*arguments: Any) -> object:
        built.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(*row, counted)
    broker = make()
    waiting_for_memory(broker, request_, version)
    assert built == []
    broker.core.grant_memory()
    broker.run()
    assert len(built) == 50


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The arguments of each read of a group."""
    reads: list[object] = []

    def counted(*arguments: Any, **named: Any) -> None:
        reads.append(arguments)
        fetch_offsets(*arguments, **named)

    monkeypatch.setattr(offset_fetch, "fetch_offsets", counted)
    return reads


@pytest.mark.parametrize("repeated", [1, REPEATED])
def test_repeated_group_is_read_once(reads: list[object], repeated: int) -> None:
    broker = broker_with_offsets()
    request = fetch_of()
    request.groups = request.groups[:repeated]
    response: Any = broker.ask(request, 9)
    assert len(reads) == 1
    assert [len(group.topics[0].partitions) for group in response.groups] == [PARTITIONS] * repeated


def test_group_is_read_once_for_any_number_of_members(reads: list[object]) -> None:
    broker = broker_with_offsets()
    groups = [fetch_of(member_id=str(number)).groups[0] for number in range(REPEATED)]
    request = OffsetFetchRequest(groups=groups)
    response: Any = broker.ask(request, 9)
    assert len(reads) == 1
    assert [len(group.topics[0].partitions) for group in response.groups] == [PARTITIONS] * REPEATED


def test_topics_without_partitions_take_slices_and_memory() -> None:
    broker = broker_with_offsets()
    topic = OffsetFetchRequest.OffsetFetchRequestTopics(name="t", partition_indexes=[])
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=[topic] * 10_000)
    waiting_for_memory(broker, OffsetFetchRequest(groups=[group]), 9)


def test_request_of_a_closed_connection_waits_for_no_memory() -> None:
    broker = broker_with_offsets()
    asked = waiting_for_memory(broker, fetch_of(), 9)
    broker.core.push(Cancelled(asked))
    broker.run()
    broker.core.grant_memory()
    broker.run()
    assert broker.response(asked) is None
    assert broker.dispatcher.idle


def test_small_response_waits_for_no_memory() -> None:
    broker = broker_with_offsets()
    broker.core.is_memory_scarce = True
    broker.ask(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 3)
    broker.ask(OffsetFetchRequest(groups=fetch_of(group_id="absent").groups[:1]), 9)
    assert not broker.core.reserving
