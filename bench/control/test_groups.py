"""Consumer groups: requests per second through the control thread, and the formation of a group.

Each connection is a member of a separate group, so that as many requests are in flight as there are
connections. The broker keeps its data in memory: the cost is that of Python, and of Rust around it.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from bench.conftest import Noted, Timed
from bench.members import HEARTBEAT, OFFSET_COMMIT, Member, error_of, find_coordinator, join
from pykafka_core import Broker
from pykafka_core.protocol import decode_response

MEMBERS, LARGE_GROUP, PARTITIONS = 100, 1000, 10


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    config = {"group.initial.rebalance.delay.ms": 100, "group.max.size": LARGE_GROUP}
    with Broker(durability="memory", config=config) as broker:
        broker.create_topic("topic", partitions=PARTITIONS)
        find_coordinator(broker.bootstrap_servers)
        yield broker


@pytest.fixture(scope="module")
def members(broker: Broker) -> Iterator[list["Member"]]:
    with ExitStack() as open_ones:
        found = [Member(broker.bootstrap_servers, f"group-{n}") for n in range(MEMBERS)]
        for member in found:
            open_ones.enter_context(member.connection)
        join(found)
        yield found


def ask_all(members: list[Member], frames: list[bytes]) -> list[bytes]:
    for member, request in zip(members, frames, strict=True):
        member.connection.send_frame(request)
    return [member.connection.receive_body() for member in members]


@pytest.mark.benchmark(group="control: 100 members", max_time=2)
def test_heartbeats(timed: Timed, members: list[Member]) -> None:
    frames = [member.heartbeat() for member in members]
    assert {error_of(HEARTBEAT, response) for response in ask_all(members, frames)} == {0}
    timed(lambda: ask_all(members, frames), records=MEMBERS)


@pytest.mark.benchmark(group="control: 100 members", max_time=2)
def test_commits_of_10_partitions(timed: Timed, members: list[Member]) -> None:
    frames = [member.commit(PARTITIONS) for member in members]
    for body in ask_all(members, frames):
        response: Any = decode_response(*OFFSET_COMMIT, body)
        assert [row.error_code for row in response.topics[0].partitions] == [0] * PARTITIONS
    timed(lambda: ask_all(members, frames), records=MEMBERS)


def test_a_group_of_1000_members_forms(broker: Broker, noted: Noted) -> None:
    with ExitStack() as open_ones:
        members = [Member(broker.bootstrap_servers, "large") for _ in range(LARGE_GROUP)]
        for member in members:
            open_ones.enter_context(member.connection)
        begun = time.perf_counter()
        join(members)
        noted("1,000 members join and get their assignments", time.perf_counter() - begun, "s")
    assert {member.generation_id for member in members} == {1}


def test_join_to_first_answer(broker: Broker, noted: Noted) -> None:
    """Time for a single member, without the initial delay of this module."""
    times = []
    for number in range(20):
        member = Member(broker.bootstrap_servers, f"alone-{number}")
        with member.connection:
            begun = time.perf_counter()
            join([member])
            times.append(time.perf_counter() - begun - 0.1)
    noted("join to assignment without the initial delay", sorted(times)[10] * 1000, "ms")
