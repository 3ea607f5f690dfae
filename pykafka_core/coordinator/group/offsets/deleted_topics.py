"""Offsets of deleted topics: they are ignored from the deletion on, and removed later.

A topic that is created with the name of a deleted one has another id (KIP-516), so each reader
compares ids. The removal takes a time that grows with the offsets of the deleted topics, not with
all offsets.
"""

from collections.abc import Iterable, Iterator, Mapping

from pykafka_core.coordinator.group.offsets.expiry import (
    PAUSE_NS,
    REMOVED_MAX,
    SEARCHED_MAX,
    end_group,
    remove_places,
)
from pykafka_core.coordinator.group.offsets.table import NO_TOPIC_ID, Committed, TopicPartition
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult

REMOVAL = "offsets of deleted topics"
"""Key of the deadline."""


def current_offsets(
    state: GroupState, topics: Mapping[str, Mapping[int, Committed]]
) -> Iterator[tuple[str, dict[int, Committed]]]:
    """Yield those of a group's committed offsets whose topics are not deleted.

    Args:
        state: State of the shard; it must not change before the last topic is yielded.
        topics: Offsets of the group by topic and partition.

    Yields:
        A topic and a copy of its offsets by partition; no topic without offsets.
    """
    for topic, offsets in topics.items():
        if kept := _of_current(state, topic, offsets):
            yield topic, kept


def _of_current(
    state: GroupState, topic: str, offsets: Mapping[int, Committed]
) -> dict[int, Committed]:
    gone, topic_id = state.offsets.gone_ids(topic), state.topic_id(topic)
    if topic_id is None:
        return {at: one for at, one in offsets.items() if one.topic_id not in gone}
    return {
        at: one
        for at, one in offsets.items()
        if one.topic_id == topic_id or (one.topic_id == NO_TOPIC_ID and NO_TOPIC_ID not in gone)
    }


def topics_deleted(
    state: GroupState, topics: Mapping[str, bytes], result: CoordinatorResult
) -> None:
    """Schedule the removal of the offsets of deleted topics.

    Args:
        state: State of the shard.
        topics: Ids by name. Offsets with another id stay: they belong to a new topic of that name.
            Offsets without an id (in old records) are removed.
        result: The result of this operation.
    """
    state.offsets.note_deleted(topics)
    _begin_removal(state, result)


def remove_of_absent_topics(state: GroupState, result: CoordinatorResult) -> None:
    """Schedule the removal of offsets whose topics were deleted before a crash, or during the load.

    Old records have no topic id; their offsets stay if there is a topic of that name.
    """
    for topic, ids in state.offsets.replayed.items():
        current = state.topic_id(topic)
        kept = {current} if current is None else {current, NO_TOPIC_ID}
        if absent := ids - kept:
            state.offsets.note_gone(topic, absent)
    state.offsets.replayed.clear()
    _begin_removal(state, result)


def remove_gone(state: GroupState, result: CoordinatorResult) -> None:
    """Remove offsets of deleted topics, as many as one turn allows."""
    offsets, left = state.offsets, SEARCHED_MAX
    while left > 0 and (offsets.leaving or offsets.deletions):
        if not offsets.leaving:
            left -= max(offsets.look_up_deleted(left), 1)
            continue
        group_id, topic = offsets.leaving[0]
        partitions = offsets.partitions(group_id, topic)
        if not _remove_of(state, group_id, topic, partitions, result):
            break
        offsets.leaving.popleft()
        left -= 1 + len(partitions)
    if not offsets.leaving:
        offsets.gone.clear()
    if offsets.leaving or offsets.deletions:
        state.deadlines.set(REMOVAL, result.now_ns + PAUSE_NS)


def _remove_of(
    state: GroupState,
    group_id: str,
    topic: str,
    partitions: Iterable[int],
    result: CoordinatorResult,
) -> bool:
    """Remove a group's offsets in deleted topics of a name; return False if the next turn must
    continue.
    """
    offsets, gone = state.offsets, list[TopicPartition]()
    for place in ((topic, partition) for partition in partitions):
        if len(gone) == REMOVED_MAX:
            break
        if offsets.has_gone(group_id, place):
            gone.append(place)
        else:
            offsets.hide_gone(group_id, place)
    if not remove_places(state, group_id, gone, result):
        return False
    group = state.any_group(group_id)
    return group is None or not gone or end_group(state, group, result) or not result.records


def _begin_removal(state: GroupState, result: CoordinatorResult) -> None:
    # Starts without a pause, because frequent deletions would postpone it again and again.
    if state.offsets.leaving or state.offsets.deletions:
        state.deadlines.set(REMOVAL, result.now_ns)
