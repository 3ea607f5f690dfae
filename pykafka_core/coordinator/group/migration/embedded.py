"""The consumer's own protocol inside the classic one: subscriptions and assignments as members and leaders write them.

contract/kafka.md#41: otherwise they are opaque to a coordinator. Here they must be read: ``ConsumerProtocol`` in Kafka.
"""

from collections.abc import Callable, Collection, Mapping
from struct import Struct, error
from typing import NamedTuple, cast

from pykafka_core._core import ProtocolError
from pykafka_core.coordinator.group.consumer.member import Assignment, assignment_of
from pykafka_core.coordinator.group.consumer.topics import TopicsView, found_topics
from pykafka_core.protocol.coordinator_records import decode_record_value, encode_record_value
from pykafka_core.protocol.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

VERSION_MAX = 3
"""A later one is read as this, as in Kafka: versions only add to the end."""
TOPICS_MAX = 2_000
"""That a member may subscribe to or own in a consumer group, as in a heartbeat of KIP-848."""
OWNED_VERSION = 1
"""From here on a member says what it owns."""
RACK_VERSION = 3
_VERSION = Struct(">h")

TopicIdOf = Callable[[str], bytes | None]
"""The id of a topic by its name, None if there is none."""


class MalformedError(Exception):
    """These bytes are no subscription, or no assignment."""


class Subscription(NamedTuple):
    """What a member wants, and has.

    Attributes:
        owned: By topic name.
    """

    topic_names: frozenset[str]
    owned: Mapping[str, tuple[int, ...]]
    rack_id: str | None


def subscription_of(metadata: bytes) -> Subscription:
    """Read one.

    Raises:
        MalformedError: It is none, or too large.
    """
    stored = cast(
        "ConsumerProtocolSubscription", _decoded("ConsumerProtocolSubscription", metadata)
    )
    owned = stored.owned_partitions
    if max(len(stored.topics), len(owned)) > TOPICS_MAX:
        raise MalformedError
    return Subscription(
        frozenset(stored.topics),
        {row.topic: tuple(row.partitions) for row in owned},
        stored.rack_id,
    )


def assignment_in(assigned: bytes, view: TopicsView) -> Assignment:
    """Partitions that exist; none of no bytes at all, which a member has before its first assignment.

    Raises:
        MalformedError: It is no assignment; or a custom assignor put data of its own into it, which would be lost.
    """
    if not assigned:
        return {}
    stored = cast("ConsumerProtocolAssignment", _decoded("ConsumerProtocolAssignment", assigned))
    if stored.user_data:
        raise MalformedError
    return by_id({row.topic: tuple(row.partitions) for row in stored.assigned_partitions}, view)


def by_id(partitions: Mapping[str, tuple[int, ...]], view: TopicsView) -> Assignment:
    """Those of them that exist, by the ids of their topics."""
    topics = found_topics(view, partitions)
    return assignment_of(
        (topic.topic_id, (one for one in partitions[name] if 0 <= one < topic.partitions_count))
        for name, topic in topics.items()
    )


def encoded_assignment(
    assignment: Mapping[bytes, Collection[int]],
    topic_names: frozenset[str],
    topic_id: TopicIdOf,
    metadata: bytes,
) -> bytes:
    """As a leader would send it to a member, in the version of the member's own metadata.

    Args:
        assignment: By topic id.
        topic_names: That the member is subscribed to.
        topic_id: Of each of them.
        metadata: The member's.
    """
    row = ConsumerProtocolAssignment.TopicPartition
    names = ((name, topic_id(name)) for name in sorted(topic_names))
    rows = [
        row(topic=name, partitions=sorted(assignment[found]))
        for name, found in names
        if found is not None and found in assignment
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=rows, user_data=None)
    try:
        version = _version(metadata)
    except MalformedError:
        version = 0
    return encode_record_value(message, version)


def _decoded(name: str, data: bytes) -> object:
    try:
        return decode_record_value(name, _VERSION.pack(_version(data)) + data[_VERSION.size :])
    except ProtocolError:
        raise MalformedError from None


def _version(data: bytes) -> int:
    try:
        (version,) = _VERSION.unpack_from(data)
    except error:
        raise MalformedError from None
    if version < 0:
        raise MalformedError
    return min(int(version), VERSION_MAX)
