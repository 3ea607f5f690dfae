"""The consumer's embedded protocol: subscriptions and assignments that classic members and leaders
exchange.

They are usually opaque to a coordinator (contract/kafka.md#41), but must be read here:
``ConsumerProtocol`` in Kafka.
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
"""Later versions are read as this one, as in Kafka: they only append fields."""
TOPICS_MAX = 2_000
"""Maximum number of topics that a member of a consumer group may subscribe to or own, as in a
KIP-848 heartbeat."""
_VERSION = Struct(">h")

TopicIdOf = Callable[[str], bytes | None]
"""Returns the id of a topic by its name, None if it does not exist."""


class MalformedError(Exception):
    """The bytes are not a valid subscription or assignment."""


class Subscription(NamedTuple):
    """The topics that a member subscribes to, and the partitions that it owns.

    Attributes:
        owned: Partitions by topic name.
    """

    topic_names: frozenset[str]
    owned: Mapping[str, tuple[int, ...]]
    rack_id: str | None


def subscription_of(metadata: bytes) -> Subscription:
    """Read a subscription.

    Raises:
        MalformedError: It is invalid or too large.
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
    """Return the existing partitions of an assignment.

    Empty bytes, before a member's first assignment, have none.

    Raises:
        MalformedError: The assignment is invalid, or has user data of a custom assignor, which
            would be lost.
    """
    if not assigned:
        return {}
    stored = cast("ConsumerProtocolAssignment", _decoded("ConsumerProtocolAssignment", assigned))
    if stored.user_data:
        raise MalformedError
    return by_id({row.topic: tuple(row.partitions) for row in stored.assigned_partitions}, view)


def by_id(partitions: Mapping[str, tuple[int, ...]], view: TopicsView) -> Assignment:
    """Return the partitions that exist, by topic id."""
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
    """Return an assignment as a leader encodes it, in the version of the member's metadata.

    Args:
        assignment: Partitions by topic id.
        topic_names: Topics that the member subscribes to.
        topic_id: Returns the id of a topic by its name.
        metadata: The member's subscription.
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
