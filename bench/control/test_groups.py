"""Consumer groups: requests per second through the control thread, and how long a large group takes to form.

Each connection is a member of a group of its own, so that as many requests are in flight as there are connections. The
broker keeps its data in memory: this is Python's share, and Rust's around it.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from bench.client import Connection, frame
from bench.conftest import Noted, Timed
from pykafka_core import Broker
from pykafka_core.protocol import decode_response
from pykafka_core.protocol.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    Message,
    OffsetCommitRequest,
    SyncGroupRequest,
)

OFFSET_COMMIT, FIND_COORDINATOR, JOIN_GROUP = (8, 7), (10, 2), (11, 3)
HEARTBEAT, SYNC_GROUP = (12, 3), (14, 3)
"""(API key, version): the last ones without flexible headers; of JoinGroup, without a round for the member id."""
MEMBERS, LARGE_GROUP, PARTITIONS = 100, 1000, 10


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    config = {"group.initial.rebalance.delay.ms": 100, "group.max.size": LARGE_GROUP}
    with Broker(durability="memory", config=config) as broker:
        broker.create_topic("topic", partitions=PARTITIONS)
        with Connection(broker.bootstrap_servers) as connection:
            request = frame(FIND_COORDINATOR, FindCoordinatorRequest(key="group-0", key_type=0))
            assert error_of(FIND_COORDINATOR, connection.ask(request)) == 0
        yield broker


@pytest.fixture(scope="module")
def members(broker: Broker) -> Iterator[list["Member"]]:
    with ExitStack() as open_ones:
        found = [Member(broker, f"group-{n}") for n in range(MEMBERS)]
        for member in found:
            open_ones.enter_context(member.connection)
        join(found)
        yield found


class Member:
    """A member of a group on a connection of its own."""

    def __init__(self, broker: Broker, group_id: str) -> None:
        self.connection = Connection(broker.bootstrap_servers)
        self.group_id = group_id
        self.member_id, self.leader, self.generation_id = "", "", -1
        self.others: list[str] = []

    def send(self, api: tuple[int, int], request: Message) -> None:
        self.connection.send(frame(api, request))

    def receive(self, api: tuple[int, int]) -> Any:
        answer: Any = decode_response(*api, self.connection.receive())
        assert answer.error_code == 0, answer
        return answer

    def join(self) -> None:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"m" * 20)
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[protocol],
        )
        self.send(JOIN_GROUP, request)

    def joined(self) -> None:
        answer = self.receive(JOIN_GROUP)
        self.member_id, self.leader = answer.member_id, answer.leader
        self.generation_id = answer.generation_id
        self.others = [member.member_id for member in answer.members]

    def sync(self) -> None:
        assignment = SyncGroupRequest.SyncGroupRequestAssignment
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            assignments=[assignment(member_id=name, assignment=b"a" * 20) for name in self.others],
        )
        self.send(SYNC_GROUP, request)

    def heartbeat(self) -> bytes:
        request = HeartbeatRequest(
            group_id=self.group_id, generation_id=self.generation_id, member_id=self.member_id
        )
        return frame(HEARTBEAT, request)

    def commit(self) -> bytes:
        partition = OffsetCommitRequest.OffsetCommitRequestPartition
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(
            name="topic",
            partitions=[
                partition(partition_index=index, committed_offset=7, committed_metadata="")
                for index in range(PARTITIONS)
            ],
        )
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=self.generation_id,
            member_id=self.member_id,
            topics=[topic],
        )
        return frame(OFFSET_COMMIT, request)


def join(members: list[Member]) -> None:
    """All of them, at the same time."""
    for member in members:
        member.join()
    for member in members:
        member.joined()
    for member in members:
        member.sync()
    for member in members:
        member.receive(SYNC_GROUP)


def ask_all(members: list[Member], frames: list[bytes]) -> list[bytes]:
    for member, request in zip(members, frames, strict=True):
        member.connection.send(request)
    return [member.connection.receive() for member in members]


@pytest.mark.benchmark(group="control: 100 members", max_time=2)
def test_heartbeats(timed: Timed, members: list[Member]) -> None:
    frames = [member.heartbeat() for member in members]
    assert {error_of(HEARTBEAT, answer) for answer in ask_all(members, frames)} == {0}
    timed(lambda: ask_all(members, frames), records=MEMBERS)


@pytest.mark.benchmark(group="control: 100 members", max_time=2)
def test_commits_of_10_partitions(timed: Timed, members: list[Member]) -> None:
    frames = [member.commit() for member in members]
    for body in ask_all(members, frames):
        answer: Any = decode_response(*OFFSET_COMMIT, body)
        assert [row.error_code for row in answer.topics[0].partitions] == [0] * PARTITIONS
    timed(lambda: ask_all(members, frames), records=MEMBERS)


def error_of(api: tuple[int, int], body: bytes) -> int:
    answer: Any = decode_response(*api, body)
    return int(answer.error_code)


def test_a_group_of_1000_members_forms(broker: Broker, noted: Noted) -> None:
    with ExitStack() as open_ones:
        members = [Member(broker, "large") for _ in range(LARGE_GROUP)]
        for member in members:
            open_ones.enter_context(member.connection)
        begun = time.perf_counter()
        join(members)
        noted("1,000 members join and get their assignments", time.perf_counter() - begun, "s")
    assert {member.generation_id for member in members} == {1}


def test_join_to_first_answer(broker: Broker, noted: Noted) -> None:
    """Of an only member; the initial delay is the one of this module, and taken off."""
    times = []
    for number in range(20):
        member = Member(broker, f"alone-{number}")
        with member.connection:
            begun = time.perf_counter()
            join([member])
            times.append(time.perf_counter() - begun - 0.1)
    noted("join to assignment without the initial delay", sorted(times)[10] * 1000, "ms")
