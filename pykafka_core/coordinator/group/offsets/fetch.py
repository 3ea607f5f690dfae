"""OffsetFetch: returns a group's committed offsets. An unknown group has none."""

from collections import Counter
from collections.abc import Iterable, Mapping
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


Offsets = Mapping[str, Mapping[int, Committed]]
"""Offsets by topic and partition."""


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

    offsets: Offsets
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
    chosen = state.offsets.topics(group_id)
    if named is not None:
        chosen = _named_offsets(chosen, named)
    size, held_bytes = _measured(chosen, named)
    held_bytes += _GROUP_BYTES + encoded_length_max(group_id)
    held_bytes += _UNSTABLE_BYTES * state.offsets.pending_count(group_id)
    make = partial(_fetched, group_id, chosen, named, refused, state)
    result.respond(waiter, budget.read(size, held_bytes, make))


def _refused(group: ConsumerGroup, readers: Iterable[Reader]) -> dict[Reader, int]:
    refused: dict[Reader, int] = {}
    for reader in readers:
        try:
            group.check_fetch(*reader)
        except KafkaError as error:
            refused[reader] = error.code
    return refused


def _named_offsets(found: Offsets, named: Mapping[str, Counter[int]]) -> Offsets:
    """Return the offsets of named partitions, in a time limited by the offsets of the group."""
    smaller = named if len(named) <= len(found) else found
    return {
        topic: _of_partitions(found[topic], named[topic])
        for topic in smaller
        if topic in named and topic in found
    }


def _of_partitions(
    offsets: Mapping[int, Committed], times: Mapping[int, int]
) -> Mapping[int, Committed]:
    smaller = times if len(times) <= len(offsets) else offsets
    return {at: offsets[at] for at in smaller if at in times and at in offsets}


def _measured(chosen: Offsets, named: Mapping[str, Counter[int]] | None) -> tuple[int, int]:
    """Return the size for the `Read`, and that of the `Fetched` without open transactions."""
    size, held_bytes = 0, _TOPIC_HELD_BYTES * len(chosen if named is None else named)
    for topic, offsets in chosen.items():
        lengths = {at: encoded_length_max(one.metadata) for at, one in offsets.items()}
        metadata_bytes = sum(lengths.values())
        held_bytes += _HELD_BYTES * len(offsets) + metadata_bytes
        if named is None:
            size += ROW_BYTES * (1 + len(offsets)) + metadata_bytes
        else:
            size += sum(named[topic][at] * length for at, length in lengths.items())
    return size, held_bytes


def _fetched(
    group_id: str,
    chosen: Offsets,
    named: Mapping[str, Counter[int]] | None,
    refused: Mapping[Reader, int],
    state: GroupState,
) -> Fetched:
    offsets = dict(current_offsets(state, chosen))
    names = offsets if named is None else named
    topic_ids = {name: state.topic_id(name) for name in names}
    unstable = state.offsets.pending_places(group_id)
    if named is not None:
        unstable = frozenset(place for place in unstable if place[1] in named.get(place[0], ()))
    return Fetched(offsets, unstable, topic_ids, refused)
