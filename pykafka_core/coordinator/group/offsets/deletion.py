"""Offsets that go: with their group, with their topic, or because somebody asks for it (OffsetDelete)."""

from collections.abc import Mapping, Sequence

from pykafka_core.coordinator.group.classic.group import CONSUMER_PROTOCOL
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.offsets.expiry import search_soon
from pykafka_core.coordinator.group.offsets.records import offset_tombstone
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import KeyValue, Turn, Waiter
from pykafka_core.errors import GroupIdNotFoundError, NonEmptyGroupError


def tombstones_of(state: GroupState, group_id: str) -> list[KeyValue]:
    """Records that remove all offsets of a group."""
    return [offset_tombstone(group_id, *place) for place in state.offsets.places(group_id)]


def forget(state: GroupState, group_id: str) -> None:
    """All offsets of a group are gone; `tombstones_of` it are appended."""
    state.offsets.remove_group(group_id)


def topics_deleted(state: GroupState, topics: Mapping[str, bytes], turn: Turn) -> None:
    """Have the offsets of topics that are gone removed soon: by the search for what has expired.

    Args:
        state: Of the shard.
        topics: Ids by name. What is committed for a new topic of such a name is kept.
        turn: Of now.
    """
    state.offsets.gone.update(topics)
    state.offsets.to_search.clear()  # from the first group on
    search_soon(state, turn)


def delete_offsets(
    group_id: str,
    topics: Mapping[str, Sequence[int]],
    state: GroupState,
    waiter: Waiter,
    turn: Turn,
) -> None:
    """Remove offsets; answered with the frozen set of those topics that members are subscribed to, which keep theirs.

    Raises:
        GroupIdNotFoundError: There is no such group.
        NonEmptyGroupError: It has members of a protocol whose topics are not known.
        RecordListTooLargeError: So many offsets do not go into one batch.
    """
    group = state.groups.get(group_id)
    if group is None or group.state is ClassicGroupState.DEAD:
        raise GroupIdNotFoundError
    is_empty = group.state is ClassicGroupState.EMPTY
    if not is_empty and group.protocol_type != CONSUMER_PROTOCOL:
        raise NonEmptyGroupError
    kept = frozenset(topic for topic in topics if group.is_subscribed(topic))
    places = [
        (topic, partition)
        for topic in topics.keys() - kept
        for partition in dict.fromkeys(topics[topic])
        if state.offsets.get(group_id, topic, partition) is not None
        or state.offsets.is_pending(group_id, topic, partition)
    ]
    turn.append([offset_tombstone(group_id, *place) for place in places])
    for topic, partition in places:
        state.offsets.remove(group_id, topic, partition)
    turn.answer(waiter, kept)
