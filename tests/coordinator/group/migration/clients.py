"""Members of the classic protocol that behave like clients, in groups that also have members of the
consumer protocol.
"""

from functools import partial
from typing import Any

from pykafka_core.coordinator.group.classic.heartbeat import heartbeat
from pykafka_core.coordinator.group.classic.join import Join, join_group
from pykafka_core.coordinator.group.classic.leave import leave_group
from pykafka_core.coordinator.group.classic.sync import Sync, sync_group
from pykafka_core.coordinator.shard import Waiter
from pykafka_core.protocol.coordinator_records import decode_record_value, encode_record_value
from pykafka_core.protocol.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupResponse,
)
from tests.coordinator.group.consumer.world import GROUP, REBALANCE_MS, World

CLASSIC_SESSION_MS = 10_000
UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS = 25, 22, 27
Partitions = dict[str, tuple[int, ...]]


def subscription(*topics: str, owned: Partitions | None = None, version: int = 1) -> bytes:
    row = ConsumerProtocolSubscription.TopicPartition
    said: dict[str, Any] = {"topics": sorted(topics), "user_data": None}
    if version:
        rows = [
            row(topic=name, partitions=list(numbers)) for name, numbers in (owned or {}).items()
        ]
        said["owned_partitions"] = rows
    return encode_record_value(ConsumerProtocolSubscription(**said), version)


def assignment(partitions: Partitions, user_data: bytes | None = None) -> bytes:
    row = ConsumerProtocolAssignment.TopicPartition
    rows = [row(topic=name, partitions=list(numbers)) for name, numbers in partitions.items()]
    message = ConsumerProtocolAssignment(assigned_partitions=rows, user_data=user_data)
    return encode_record_value(message, 1)


def partitions_in(assigned: bytes) -> Partitions:
    if not assigned:
        return {}
    message = decode_record_value("ConsumerProtocolAssignment", assigned)
    assert isinstance(message, ConsumerProtocolAssignment)
    return {row.topic: tuple(row.partitions) for row in message.assigned_partitions}


def join(world: World, member_id: str = "", instance: str | None = None, **changes: Any) -> Waiter:
    """Send a JoinGroup; by default of version 3, which joins at once."""
    fields: dict[str, Any] = {
        "group_id": GROUP,
        "member_id": member_id,
        "group_instance_id": instance,
        "protocol_type": "consumer",
        "protocols": (("range", subscription("t")),),
        "session_timeout_ms": CLASSIC_SESSION_MS,
        "rebalance_timeout_ms": REBALANCE_MS,
        "client_id": "classic",
        "client_host": "/127.0.0.1",
        "reason": "",
        "api_version": 3,
        **changes,
    }
    return world.submit(partial(join_group, Join(**fields), world.topics))


def sync(
    world: World,
    member_id: str,
    generation_id: int,
    assignments: dict[str, bytes] | None = None,
    protocol: tuple[str | None, str | None] = (None, None),
) -> Waiter:
    request = Sync(GROUP, member_id, None, generation_id, *protocol, assignments or {})
    return world.submit(partial(sync_group, request))


def beat(world: World, member_id: str, generation_id: int) -> int:
    """Send a Heartbeat; return the error code."""
    request = HeartbeatRequest(group_id=GROUP, member_id=member_id, generation_id=generation_id)
    response = world.ask(partial(heartbeat, request))
    if isinstance(response, int):
        return response
    assert isinstance(response, HeartbeatResponse)
    return response.error_code


def leave(world: World, *member_ids: str) -> tuple[int, ...]:
    """Send a LeaveGroup; return the error codes."""
    leaving = [LeaveGroupRequest.MemberIdentity(member_id=one) for one in member_ids]
    response = world.ask(partial(leave_group, GROUP, leaving))
    assert isinstance(response, tuple)
    return response


class ClassicClient:
    """A member that joins, syncs and sends heartbeats; it revokes partitions that are no longer
    assigned, and assigns if it is the leader.

    A leader rejoins when a topic gets more partitions.

    Args:
        is_eager: It revokes all its partitions before it joins.
    """

    def __init__(
        self, world: World, *topics: str, instance: str | None = None, is_eager: bool = False
    ) -> None:
        self.world, self.topics, self.instance = world, topics or ("t",), instance
        self.is_eager = is_eager
        self.member_id, self.generation = "", -1
        self.owned: Partitions = {}
        self.led: dict[str, int] | None = None
        """Numbers of partitions of the topics when it assigned them; None if it is not the
        leader."""
        self.waits: Waiter | None = None
        """Waiter of its pending JoinGroup or SyncGroup."""
        self.ask_to_join()

    def ask_to_join(self) -> None:
        owned = {} if self.is_eager else self.owned
        metadata = subscription(*self.topics, owned=owned, version=0 if self.is_eager else 1)
        if self.is_eager:
            self.owned = {}
        self.waits = join(
            self.world, self.member_id, self.instance, protocols=(("range", metadata),)
        )

    def live(self) -> bool:
        """Take the next step; return whether anything has changed."""
        before = self.waits, self.generation, self.owned
        if self.waits is None:
            self._beat()
        elif self.waits in self.world.responses:
            response = self.world.responses.pop(self.waits)
            self.waits = None
            self._take(response)
        return before != (self.waits, self.generation, self.owned)

    def _beat(self) -> None:
        if self.led is not None and self.led != self._counts():
            self.ask_to_join()
            return
        match beat(self.world, self.member_id, self.generation):
            case 0:
                pass
            case code if code == UNKNOWN_MEMBER_ID:
                self._begin_again()
            case code:
                assert code in (REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION)
                self.ask_to_join()

    def _begin_again(self) -> None:
        self.member_id, self.owned = "", {}
        self.ask_to_join()

    def _take(self, response: object) -> None:
        code = response if isinstance(response, int) else getattr(response, "error_code", 0)
        if code == UNKNOWN_MEMBER_ID:
            self._begin_again()
        elif code:
            assert code in (REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION), code
            self.ask_to_join()
        elif isinstance(response, JoinGroupResponse):
            self.member_id, self.generation = response.member_id, response.generation_id
            is_leader = response.leader == self.member_id
            self.led = self._counts() if is_leader else None
            given = self._assign(response) if is_leader else {}
            self.waits = sync(self.world, self.member_id, self.generation, given)
        else:
            assert isinstance(response, SyncGroupResponse)
            self.owned = partitions_in(response.assignment)

    def _assign(self, response: JoinGroupResponse) -> dict[str, bytes]:
        """Return the leader's assignments: partitions in turn."""
        ids = [member.member_id for member in response.members]
        given: dict[str, Partitions] = {member_id: {} for member_id in ids}
        for name, count in self._counts().items():
            for number in range(count):
                own = given[ids[number % len(ids)]]
                own[name] = (*own.get(name, ()), number)
        return {member_id: assignment(own) for member_id, own in given.items()}

    def _counts(self) -> dict[str, int]:
        found = {name: self.world.topics.topic(name) for name in self.topics}
        return {name: topic.partitions_count if topic else 0 for name, topic in found.items()}


def stable(world: World, *clients: ClassicClient) -> None:
    """Let classic members take steps until nothing changes."""
    for _ in range(30):
        news = [client.live() for client in clients]
        if not any(news):
            return
    raise AssertionError("they do not settle")
