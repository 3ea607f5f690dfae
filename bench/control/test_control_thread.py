"""Requests per second of one control thread: Python's work, from an event to its response.

The data plane is `FakeCore`, whose appends are free: there are no sockets, no disk and no other
thread.
"""

from typing import Any

import pytest

from bench.conftest import Timed
from pykafka_core.protocol import encode_request
from pykafka_core.protocol.messages import (
    CreateTopicsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    Message,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from tests.support.simulated import fake_core
from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.fake_core import FakeCore

OFFSET_COMMIT, HEARTBEAT = (8, 7), (12, 3)
GROUPS, PARTITIONS = 100, 10


class _Instant(FakeCore):
    """A core whose logs only count appended records."""

    def _write(self, log: Any, records: Any, control: bool, producer: Any) -> None:
        log.end += len(records)


class Members:
    """One member in each of `GROUPS` groups; all send the same kind of request in each round."""

    def __init__(self) -> None:
        config = {"group.initial.rebalance.delay.ms": "0"}
        self.broker = SimulatedBroker(config, core=_Instant())
        self.broker.ask(FindCoordinatorRequest(key="g", key_type=0), 3)
        topic = CreateTopicsRequest.CreatableTopic(
            name="topic", num_partitions=PARTITIONS, replication_factor=1
        )
        self.broker.ask(CreateTopicsRequest(topics=[topic]))
        self.ids = {f"group-{number}": self._join(f"group-{number}") for number in range(GROUPS)}
        self._number = 1_000_000

    def _join(self, group_id: str) -> str:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"m" * 20)
        join = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[protocol],
        )
        joined: Any = self.broker.ask(join, 3)
        mine = SyncGroupRequest.SyncGroupRequestAssignment(
            member_id=joined.member_id, assignment=b"a" * 20
        )
        sync = SyncGroupRequest(
            group_id=group_id, generation_id=1, member_id=joined.member_id, assignments=[mine]
        )
        synced: Any = self.broker.ask(sync, 3)
        assert synced.error_code == 0
        return str(joined.member_id)

    def bodies(self, api: tuple[int, int], requests: list[Message]) -> list[bytes]:
        return [encode_request(request, api[1]) for request in requests]

    def round(self, api: tuple[int, int], bodies: list[bytes]) -> list[bytes]:
        """Deliver all requests and return the responses."""
        core, first = self.broker.core, self._number
        for body in bodies:
            event = fake_core.request(
                id=self._number,
                connection=self._number,
                api_key=api[0],
                api_version=api[1],
                body=body,
                received_ns=core.clock_ns,
            )
            core.push(event)
            self._number += 1
        core.clock_ns += 1_000_000
        self.broker.run()
        return [core.replies.pop(number) for number in range(first, self._number)]


@pytest.fixture(scope="module")
def members() -> Members:
    return Members()


@pytest.mark.benchmark(group="control thread: 100 groups", max_time=3)
def test_heartbeats(timed: Timed, members: Members) -> None:
    requests: list[Message] = [
        HeartbeatRequest(group_id=group, generation_id=1, member_id=member)
        for group, member in members.ids.items()
    ]
    bodies = members.bodies(HEARTBEAT, requests)
    assert set(members.round(HEARTBEAT, bodies)) == {bytes(6)}, "throttle time and error code"
    timed(lambda: members.round(HEARTBEAT, bodies), records=GROUPS)


@pytest.mark.benchmark(group="control thread: 100 groups", max_time=3)
def test_commits_of_10_partitions(timed: Timed, members: Members) -> None:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(
        name="topic",
        partitions=[
            partition(partition_index=index, committed_offset=7, committed_metadata="")
            for index in range(PARTITIONS)
        ],
    )
    requests: list[Message] = [
        OffsetCommitRequest(
            group_id=group, generation_id_or_member_epoch=1, member_id=member, topics=[topic]
        )
        for group, member in members.ids.items()
    ]
    bodies = members.bodies(OFFSET_COMMIT, requests)
    for body in members.round(OFFSET_COMMIT, bodies):
        assert body.endswith(b"".join(index.to_bytes(4, "big") + bytes(2) for index in range(10)))
    timed(lambda: members.round(OFFSET_COMMIT, bodies), records=GROUPS)
