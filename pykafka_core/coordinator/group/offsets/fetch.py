"""OffsetFetch: returns a group's committed offsets. An unknown group has none."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from pykafka_core.coordinator.budget import Budget, encoded_length_max
from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.offsets.deleted_topics import current_offsets
from pykafka_core.coordinator.group.offsets.table import NO_EPOCH, Committed, TopicPartition
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.errors import KafkaError

_ROW_BYTES = 160
"""Size of a topic or a row in the response, encoded and as an object, without metadata."""
_GROUP_BYTES = 160
"""Size of a group in the response, encoded and as an object, without its id and topics. It is not
part of `Read.sizes`, which are limited, but of `Read.held_bytes`."""
_TOPIC_HELD_BYTES = 400
"""Upper bound of what `Fetched` holds for a topic."""
_HELD_BYTES = 64
"""What `Fetched` holds for an offset, without metadata: an entry of a mapping."""
_UNSTABLE_BYTES = 160
"""Upper bound of what `Fetched` holds for an offset of an open transaction."""


class Reader(NamedTuple):
    """A member and its epoch, or neither."""

    member_id: str | None = None
    epoch: int = NO_EPOCH


class WantedTopic(NamedTuple):
    """A requested topic; ``name`` is None if its id is unknown, ``topic_id`` in versions without
    ids.
    """

    name: str | None
    topic_id: bytes | None
    partitions: Sequence[int]


class Wanted(NamedTuple):
    """The offsets that one part of a response needs; ``topics`` is None for all topics."""

    topics: Sequence[WantedTopic] | None
    reader: Reader


class Fetched(NamedTuple):
    """Offsets by topic and partition at one time.

    Attributes:
        offsets: No topic without offsets.
        unstable: The partitions with offsets of open transactions.
        topic_ids: The ids of the requested topics; None if a topic does not exist.
        refused: Error codes of members that may not read them.
    """

    offsets: Mapping[str, Mapping[int, Committed]]
    unstable: frozenset[TopicPartition]
    topic_ids: Mapping[str, bytes | None]
    refused: Mapping[Reader, int]


def fetch_offsets(
    group_id: str,
    wanted: Sequence[Wanted],
    budget: Budget,
    state: GroupState,
    waiter: Waiter,
    result: CoordinatorResult,
) -> None:
    """Respond with a `Read` of a `Fetched`, and with the size of each part of the response.

    The offsets are copied, because the response is built in slices while other requests commit. All
    parts share one copy.

    Args:
        group_id: Any text; may be empty.
        wanted: The parts of the response about the group: all of them name their topics, or none.
        budget: Memory for the copy.
        state: State of the shard.
        waiter: The request.
        result: The result of this operation.
    """
    consumers = state.consumer_groups.get(group_id)
    refused = {} if consumers is None else _refused(consumers, {one.reader for one in wanted})
    sizes, held_bytes = _measured(group_id, wanted, state)
    if refused:
        sizes = [
            0 if one.reader in refused else size for one, size in zip(wanted, sizes, strict=True)
        ]
    make = partial(_fetched, group_id, wanted, refused, state)
    result.respond(waiter, budget.read(sizes, held_bytes, make))


def _refused(group: ConsumerGroup, readers: Iterable[Reader]) -> dict[Reader, int]:
    refused: dict[Reader, int] = {}
    for reader in readers:
        try:
            group.check_fetch(*reader)
        except KafkaError as error:
            refused[reader] = error.code
    return refused


def _measured(group_id: str, wanted: Sequence[Wanted], state: GroupState) -> tuple[list[int], int]:
    """Return the size of each part of the response, and of their `Fetched`."""
    found, pending = state.offsets.topics(group_id), state.offsets.pending_count(group_id)
    held_bytes = _GROUP_BYTES + encoded_length_max(group_id)
    if wanted[0].topics is None:
        size = 0
        held_bytes += _UNSTABLE_BYTES * pending
        for offsets in found.values():
            metadata_bytes = _metadata_bytes(offsets.values())
            size += _ROW_BYTES * (1 + len(offsets)) + metadata_bytes
            held_bytes += _TOPIC_HELD_BYTES + _HELD_BYTES * len(offsets) + metadata_bytes
        return [size] * len(wanted), held_bytes
    sizes: list[int] = []
    row_held_bytes = _HELD_BYTES + (_UNSTABLE_BYTES if pending else 0)
    for one in wanted:
        size = 0
        for topic in one.topics or ():
            named, known = topic.partitions, found.get(topic.name or "", {})
            metadata_bytes = _metadata_bytes(known[index] for index in named if index in known)
            size += _ROW_BYTES * (1 + len(named)) + metadata_bytes
            held_bytes += _TOPIC_HELD_BYTES + row_held_bytes * len(named) + metadata_bytes
        sizes.append(size)
    return sizes, held_bytes


def _metadata_bytes(offsets: Iterable[Committed]) -> int:
    return sum(encoded_length_max(one.metadata) for one in offsets)


def _fetched(
    group_id: str, wanted: Sequence[Wanted], refused: Mapping[Reader, int], state: GroupState
) -> Fetched:
    if wanted[0].topics is None:
        offsets = dict(current_offsets(state, group_id))
        topic_ids = {name: state.topic_id(name) for name in offsets}
        return Fetched(offsets, state.offsets.pending_places(group_id), topic_ids, refused)
    named: dict[str, list[Sequence[int]]] = {}
    for one in wanted:
        for topic in one.topics or ():
            if topic.name is not None:
                named.setdefault(topic.name, []).append(topic.partitions)
    offsets = dict(current_offsets(state, group_id, named))
    topic_ids = {name: state.topic_id(name) for name in named}
    unstable = frozenset(_unstable(group_id, named, state))
    return Fetched(offsets, unstable, topic_ids, refused)


def _unstable(
    group_id: str, named: Mapping[str, Iterable[Sequence[int]]], state: GroupState
) -> Iterator[TopicPartition]:
    if not state.offsets.pending_count(group_id):
        return
    for name, lists in named.items():
        for partitions in lists:
            for partition in partitions:
                if state.offsets.is_pending(group_id, name, partition):
                    yield name, partition
