"""OffsetFetch: returns a group's committed offsets. An unknown group has none."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from pykafka_core.coordinator.budget import Budget, encoded_length_max
from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.offsets.deleted_topics import current_offsets
from pykafka_core.coordinator.group.offsets.table import NO_EPOCH, Committed, TopicPartition
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.errors import KafkaError

ROW_BYTES = 160
"""Size of a topic or a row in the response, encoded and as an object, without metadata."""
_GROUP_BYTES = 160
"""Size of a group in the response, encoded and as an object, without its id and topics. It is not
part of `Read.size`, which is limited, but of `Read.held_bytes`."""
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


@dataclass(slots=True)
class Selection:
    """The offsets that all parts of a response about a group need.

    Attributes:
        partitions: How often each partition is named, by topic; None for all partitions.
        readers: The members that read them.
    """

    partitions: dict[str, Counter[int]] | None
    readers: set[Reader] = field(default_factory=set)


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
    selection: Selection,
    budget: Budget,
    state: GroupState,
    waiter: Waiter,
    result: CoordinatorResult,
) -> None:
    """Respond with a `Read` of a `Fetched`.

    If all partitions are selected, the size is that of each part of the response. If partitions are
    named, the size is that of the metadata in all parts together: the request determines the other
    sizes.

    The offsets are copied, because the response is built in slices while other requests commit. All
    parts share one copy. The work is limited by the offsets of the group, not by the request.

    Args:
        group_id: Any text; may be empty.
        selection: The offsets to return.
        budget: Memory for the copy.
        state: State of the shard.
        waiter: The request.
        result: The result of this operation.
    """
    consumers = state.consumer_groups.get(group_id)
    refused = {} if consumers is None else _refused(consumers, selection.readers)
    if len(refused) == len(selection.readers):
        nothing = Fetched({}, frozenset(), {}, refused)
        result.respond(waiter, budget.read(0, 0, lambda: nothing))
        return
    named = selection.partitions
    size, held_bytes = _all_measured(group_id, state)
    if named is not None:
        size, held_bytes = _named_measured(group_id, named, state)
    held_bytes += _GROUP_BYTES + encoded_length_max(group_id)
    make = partial(_fetched, group_id, named, refused, state)
    result.respond(waiter, budget.read(size, held_bytes, make))


def _refused(group: ConsumerGroup, readers: Iterable[Reader]) -> dict[Reader, int]:
    refused: dict[Reader, int] = {}
    for reader in readers:
        try:
            group.check_fetch(*reader)
        except KafkaError as error:
            refused[reader] = error.code
    return refused


def _all_measured(group_id: str, state: GroupState) -> tuple[int, int]:
    """Return the size of a part of the response, and that of the `Fetched`."""
    size, held_bytes = 0, _UNSTABLE_BYTES * state.offsets.pending_count(group_id)
    for offsets in state.offsets.topics(group_id).values():
        metadata_bytes = sum(encoded_length_max(one.metadata) for one in offsets.values())
        size += ROW_BYTES * (1 + len(offsets)) + metadata_bytes
        held_bytes += _TOPIC_HELD_BYTES + _HELD_BYTES * len(offsets) + metadata_bytes
    return size, held_bytes


def _named_measured(
    group_id: str, named: Mapping[str, Counter[int]], state: GroupState
) -> tuple[int, int]:
    """Return the size of the metadata in all parts of the response, and that of the `Fetched`."""
    size, held_bytes = 0, _UNSTABLE_BYTES * state.offsets.pending_count(group_id)
    for _, times, offsets in _selected(group_id, named, state):
        held_bytes += _TOPIC_HELD_BYTES + _HELD_BYTES * len(offsets)
        for partition, committed in offsets.items():
            metadata_bytes = encoded_length_max(committed.metadata)
            size += metadata_bytes * times[partition]
            held_bytes += metadata_bytes
    held_bytes += _TOPIC_HELD_BYTES * len(named)
    return size, held_bytes


def _selected(
    group_id: str, named: Mapping[str, Counter[int]], state: GroupState
) -> Iterator[tuple[str, Counter[int], Mapping[int, Committed]]]:
    """Yield each named topic with offsets, how often its partitions are named, and the offsets of
    the named partitions.
    """
    found = state.offsets.topics(group_id)
    for topic in named if len(named) <= len(found) else found:
        if topic in named and topic in found:
            times, offsets = named[topic], found[topic]
            smaller = times if len(times) <= len(offsets) else offsets
            chosen = {at: offsets[at] for at in smaller if at in times and at in offsets}
            yield topic, times, chosen


def _fetched(
    group_id: str,
    named: Mapping[str, Counter[int]] | None,
    refused: Mapping[Reader, int],
    state: GroupState,
) -> Fetched:
    pending = state.offsets.pending_places(group_id)
    if named is None:
        offsets = dict(current_offsets(state, state.offsets.topics(group_id)))
        topic_ids = {name: state.topic_id(name) for name in offsets}
        return Fetched(offsets, pending, topic_ids, refused)
    chosen = {topic: found for topic, _, found in _selected(group_id, named, state)}
    offsets = dict(current_offsets(state, chosen))
    topic_ids = {name: state.topic_id(name) for name in named}
    unstable = frozenset(place for place in pending if place[1] in named.get(place[0], ()))
    return Fetched(offsets, unstable, topic_ids, refused)
