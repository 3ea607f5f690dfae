"""Removal of offsets with their group, or by OffsetDelete."""

from collections.abc import Mapping, Sequence
from itertools import islice

from pykafka_core.coordinator.group.classic.group import CONSUMER_PROTOCOL, ClassicGroup
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.offsets.expiry import PAUSE_NS, REMOVED_MAX
from pykafka_core.coordinator.group.offsets.records import offset_tombstones
from pykafka_core.coordinator.group.offsets.table import Detached, TopicPartition
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.errors import GroupIdNotFoundError, NonEmptyGroupError

DELETION = "offsets of deleted groups"
"""Key of the deadline."""


def delete_with_group(
    state: GroupState, group_id: str, waiter: Waiter, result: CoordinatorResult
) -> None:
    """Remove the offsets of a group that this turn deletes, in as many turns as needed.

    They are ignored from now on: a new group with this id has no offsets. The response is the group
    id, when all tombstones are written.
    """
    state.offsets.detach(group_id, waiter)
    remove_detached(state, result)


def remove_detached(state: GroupState, result: CoordinatorResult) -> None:
    """Write tombstones for offsets that are already ignored, as many as one turn allows."""
    offsets, left = state.offsets, REMOVED_MAX
    while left > 0 and offsets.detached:
        head = offsets.detached[0]
        places = list(islice(head.places(), left))
        if not _write_tombstones(state, head, places, result):
            break
        left -= max(len(places), 1)
        if next(head.places(), None) is None:
            offsets.detached.popleft()
            if head.waiter is not None:
                result.respond(head.waiter, head.group_id)
    if offsets.detached:
        state.deadlines.set(DELETION, result.now_ns + PAUSE_NS)


def _write_tombstones(
    state: GroupState, head: Detached, places: Sequence[TopicPartition], result: CoordinatorResult
) -> bool:
    """Remove offsets that a new group with this id has not committed again; return False if the
    turn is full.
    """
    offsets, group_id = state.offsets, head.group_id
    old = [place for place in places if offsets.get(group_id, *place) is None]
    head.remove(set(places) - set(old))
    count = result.append_some(offset_tombstones(group_id, old))
    # A tombstone that is too large for an empty turn must not block the others.
    is_done = count == len(old) or not result.records
    head.remove(old if is_done else old[:count])
    return is_done


def delete_offsets(
    group_id: str,
    topics: Mapping[str, Sequence[int]],
    state: GroupState,
    waiter: Waiter,
    result: CoordinatorResult,
) -> None:
    """Remove offsets; the response is the frozen set of topics with subscribed members, which keep
    their offsets.

    Raises:
        GroupIdNotFoundError: There is no such group.
        NonEmptyGroupError: It has members of a protocol whose topics are not known.
        BatchFullError: The tombstones do not fit into one batch.
    """
    group = state.any_group(group_id)
    if group is None or group.state is ClassicGroupState.DEAD:
        raise GroupIdNotFoundError
    if isinstance(group, ClassicGroup) and not _knows_topics(group):
        raise NonEmptyGroupError
    kept = group.subscribed_among(topics)
    places = [
        (topic, partition)
        for topic in topics.keys() - kept
        for partition in dict.fromkeys(topics[topic])
        if state.offsets.get(group_id, topic, partition) is not None
        or state.offsets.is_pending(group_id, topic, partition)
    ]
    result.append(offset_tombstones(group_id, places))
    for topic, partition in places:
        state.offsets.remove(group_id, topic, partition)
    result.respond(waiter, kept)


def _knows_topics(group: ClassicGroup) -> bool:
    """Return whether the subscribed topics of the group are known."""
    is_empty = group.state is ClassicGroupState.EMPTY
    return is_empty or group.protocol_type == CONSUMER_PROTOCOL
