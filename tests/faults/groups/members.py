"""Group members by raw requests. They keep their ids and continue after a restart of the broker."""

import struct
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pykafka_core.protocol import messages as m
from tests.faults.raw import NONE, Keys
from tests.support.patience import PATIENCE_S
from tests.support.wire import Connection

REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED = 27, 79
MODERN = "modern-member"
# A subscription to one topic, without user data, in version 0 of the consumer protocol.
SUBSCRIPTION = struct.pack(">hih6si", 0, 1, 6, b"orders", -1)


class ClassicGroup:
    """A group with a static and a dynamic member, each with an assignment of unique bytes."""

    def __init__(self, address: str, name: str) -> None:
        self._name = name
        self.generation, self.static, self.dynamic, self.fenced = -1, "", "", ""
        with Connection(address) as first, Connection(address) as second:
            self._join(first, second)

    def _join(self, first: Connection, second: Connection) -> None:
        """Join the static member, then both members; the dynamic one waits for the static one."""
        alone = self._ask_to_join(first, instance="s")
        self.static = alone.member_id
        self._sync(first, alone, instance="s")
        self.dynamic = self._ask_to_join(second).member_id
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(self._ask_to_join, second, self.dynamic)
            self.generation = alone.generation_id
            deadline = time.monotonic() + PATIENCE_S
            while self._beat(first, self.static, "s") != REBALANCE_IN_PROGRESS:
                assert time.monotonic() < deadline, "the join of the second has no effect"
            static = self._ask_to_join(first, self.static, instance="s")
            dynamic = waiting.result(PATIENCE_S)
        self.generation = static.generation_id
        for connection, joined, instance in ((first, static, "s"), (second, dynamic, None)):
            if joined.leader == joined.member_id:
                self._sync(connection, joined, instance)
        for connection, joined, instance in ((first, static, "s"), (second, dynamic, None)):
            if joined.leader != joined.member_id:
                self._sync(connection, joined, instance)

    def _ask_to_join(
        self, connection: Connection, member_id: str = "", instance: str | None = None
    ) -> Any:
        protocol = m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)
        request = m.JoinGroupRequest(
            group_id=self._name,
            session_timeout_ms=300_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=[protocol],
        )
        response = connection.ask(Keys.JOIN_GROUP, 9, request)
        is_new = not member_id and instance is None
        assert response.error_code == (MEMBER_ID_REQUIRED if is_new else NONE), response
        return response

    def _sync(self, connection: Connection, joined: Any, instance: str | None = None) -> None:
        part = m.SyncGroupRequest.SyncGroupRequestAssignment
        given = [
            part(member_id=one.member_id, assignment=b"of " + one.member_id.encode())
            for one in joined.members
        ]
        request = m.SyncGroupRequest(
            group_id=self._name,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocol_name="range",
            assignments=given,
        )
        response = connection.ask(Keys.SYNC_GROUP, 5, request)
        assert response.error_code == NONE
        assert response.assignment == b"of " + joined.member_id.encode()

    def _beat(self, connection: Connection, member_id: str, instance: str | None = None) -> int:
        request = m.HeartbeatRequest(
            group_id=self._name,
            generation_id=self.generation,
            member_id=member_id,
            group_instance_id=instance,
        )
        return int(connection.ask(Keys.HEARTBEAT, 4, request).error_code)

    def beats(self, connection: Connection) -> list[int]:
        """Return the error codes of the static, the dynamic, and the replaced static member."""
        before = [self._beat(connection, self.fenced, "s")] if self.fenced else []
        now = [self._beat(connection, self.static, "s"), self._beat(connection, self.dynamic)]
        return now + before

    def replace_the_static_member(self, connection: Connection) -> None:
        """Replace it with one of the same instance id; the group stays stable."""
        joined = self._ask_to_join(connection, instance="s")
        assert joined.generation_id == self.generation
        self.fenced, self.static = self.static, joined.member_id

    def commit(self, connection: Connection, topic: str, offset: int) -> int:
        """Commit by the static member; return the error code."""
        member = self.generation, self.static
        return commit(connection, self._name, topic, offset, *member, instance="s")


class ConsumerGroup:
    """A group of the consumer protocol (KIP-848) with one static member."""

    def __init__(self, connection: Connection, name: str, topics: list[str]) -> None:
        self._name, self._topics = name, topics
        self.epoch, self.owned = 0, list[Any]()
        self.subscribe(connection, topics)

    def beat(self, connection: Connection) -> Any:
        own = m.ConsumerGroupHeartbeatRequest.TopicPartitions
        request = m.ConsumerGroupHeartbeatRequest(
            group_id=self._name,
            member_id=MODERN,
            member_epoch=self.epoch,
            instance_id="i",
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=self._topics,
            topic_partitions=[
                own(topic_id=one.topic_id, partitions=one.partitions) for one in self.owned
            ],
        )
        return connection.ask(Keys.CONSUMER_GROUP_HEARTBEAT, 1, request)

    def subscribe(self, connection: Connection, topics: list[str]) -> None:
        """Subscribe, and wait for the resulting partitions."""
        self._topics, before = topics, self.epoch
        deadline = time.monotonic() + PATIENCE_S
        while True:
            assert time.monotonic() < deadline, "the member gets nothing"
            response = self.beat(connection)
            assert response.error_code == NONE, response
            self.epoch = response.member_epoch
            if response.assignment is not None:
                self.owned = response.assignment.topic_partitions
            if self.epoch > before and len(self.owned) == len(topics):
                break
        assert self.beat(connection).error_code == NONE

    def commit(self, connection: Connection, topic: str, offset: int) -> int:
        return commit(connection, self._name, topic, offset, self.epoch, MODERN, instance="i")


def commit(
    connection: Connection,
    group: str,
    topic: str,
    offset: int,
    generation: int = -1,
    member_id: str = "",
    instance: str | None = None,
) -> int:
    """Commit an offset, with metadata that contains it too; return the error code."""
    row = m.OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=f"at {offset}"
    )
    request = m.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance,
        topics=[m.OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=[row])],
    )
    response = connection.ask(Keys.OFFSET_COMMIT, 9, request)
    return int(response.topics[0].partitions[0].error_code)
