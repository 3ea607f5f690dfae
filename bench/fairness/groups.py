"""Loads of one group: its members join, rebalance, or subscribe to other topics without a pause."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from random import Random
from typing import Any

from bench.client import Connection, frame
from bench.members import HEARTBEAT, SYNC_GROUP, Member, find_coordinator, join
from pykafka_core.coordinator.group.consumer.member import JOIN_EPOCH
from pykafka_core.errors import CoordinatorNotAvailableError, MemberIdRequiredError
from pykafka_core.protocol import decode_response
from pykafka_core.protocol.messages import ConsumerGroupHeartbeatRequest, JoinGroupRequest

Load = Callable[[Connection, int, str], Iterator[int]]
"""Called with a connection, its number and a topic; yields the bytes of each request and its
response."""

JOIN_CODES = {MemberIdRequiredError.code, CoordinatorNotAvailableError.code}
"""Expected error codes; the second one once the memory limit of all groups is reached."""
JOIN_WITH_ID, CONSUMER_GROUP_HEARTBEAT = (11, 5), (68, 0)
MEMBERS = 8_000
GHOSTS_OF_A_GROUP = 20
"""Members of one group that one connection adds; all connections together stay below the limit of a
group."""
PART_TOPICS, PART_MEMBERS = 2_000, 15
"""Number of topics of all connections, and number of members of each connection."""


def part_topic(number: int) -> str:
    """Return the name of a topic of `unequal_parts`."""
    return f"part-{number:04}"


def never_join_again(connection: Connection, _number: int, topic: str) -> Iterator[int]:
    """Join repeatedly without a member id, and never use the received ids (KIP-394)."""
    find_coordinator(connection.address)
    yield 0
    for group in count():
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"m" * 20)
        request = JoinGroupRequest(
            group_id=f"{topic}-{group}",
            session_timeout_ms=6_000,
            rebalance_timeout_ms=6_000,
            protocol_type="consumer",
            protocols=[protocol],
        )
        one = frame(JOIN_WITH_ID, request)
        for _ in range(GHOSTS_OF_A_GROUP):
            body = connection.exchange(one)
            response: Any = decode_response(*JOIN_WITH_ID, body)
            assert response.error_code in JOIN_CODES, response
            yield len(one) + len(body)


def members_of_a_group(connection: Connection, _number: int, topic: str) -> Iterator[int]:
    """Run a group of 8,000 members that rebalances without a pause: all join, sync and send a
    heartbeat.
    """
    find_coordinator(connection.address)
    with ExitStack() as stack:
        members = [Member(connection.address, topic) for _ in range(MEMBERS)]
        for member in members:
            stack.enter_context(member.connection)
        join(members)
        yield 0
        for number in count():
            yield from rejoin(members, b"%20d" % number)
            for member in members:
                member.connection.send_frame(member.heartbeat())
            for member in members:
                member.receive(HEARTBEAT)
                yield len(member.heartbeat())


def rejoin(members: list[Member], metadata: bytes) -> Iterator[int]:
    """Join and sync all members; yield the bytes of metadata and assignments."""
    for member in members:
        member.join(metadata)
    for member in members:
        member.joined()
        yield len(metadata) * (1 + len(member.others))
    for member in members:
        member.sync()
    for member in members:
        member.receive(SYNC_GROUP)
        yield 20 * (1 + len(member.others))


def unequal_parts(connection: Connection, number: int, topic: str) -> Iterator[int]:
    """Run members of a KIP-848 group that subscribe to other topics in each heartbeat."""
    find_coordinator(connection.address)
    random = Random(number)
    beats = [_beat(topic, random) for _ in range(PART_MEMBERS)]
    for beat in beats:
        _ask(connection, beat)
    yield 0
    while True:
        for beat in beats:
            beat.subscribed_topic_names = _some(random)
            yield _ask(connection, beat)


def _beat(group_id: str, random: Random) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_epoch=JOIN_EPOCH,
        rebalance_timeout_ms=600_000,
        subscribed_topic_names=_some(random),
        topic_partitions=[],
    )


def _some(random: Random) -> list[str]:
    return [part_topic(number) for number in random.sample(range(PART_TOPICS), PART_TOPICS // 4)]


def _ask(connection: Connection, beat: ConsumerGroupHeartbeatRequest) -> int:
    one = frame(CONSUMER_GROUP_HEARTBEAT, beat)
    body = connection.exchange(one)
    response: Any = decode_response(*CONSUMER_GROUP_HEARTBEAT, body[1:])
    assert response.error_code == 0, response
    beat.member_id, beat.member_epoch = response.member_id, response.member_epoch
    return len(one) + len(body)


GROUP_LOADS: dict[str, Load] = {
    "never join again": never_join_again,
    "members of a group": members_of_a_group,
    "unequal parts": unequal_parts,
}
"""Each load yields once when it is prepared, and then the bytes of its requests."""
