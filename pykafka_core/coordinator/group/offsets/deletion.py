"""Offsets that are removed with their group, or by OffsetDelete."""

from collections.abc import Mapping, Sequence
from itertools import islice

from pykafka_core.coordinator.group.classic.group import CONSUMER_PROTOCOL, ClassicGroup
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.offsets.expiry import REMOVED_MAX
from pykafka_core.coordinator.group.offsets.records import offset_tombstones
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import Turn, Waiter
from pykafka_core.errors import GroupIdNotFoundError, NonEmptyGroupError

MORE = "more"
"""The answer to a removal that goes on in another turn: it is to be asked for again."""


def remove_some(state: GroupState, group_id: str, turn: Turn) -> bool:
    """Remove the offsets of a group, as many as a turn takes; whether none is left."""
    places = list(islice(state.offsets.places(group_id), REMOVED_MAX))
    count = turn.append_some(offset_tombstones(group_id, places))
    for place in places[:count]:
        state.offsets.remove(group_id, *place)
    return next(state.offsets.places(group_id), None) is None


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
    turn.append(offset_tombstones(group_id, places))
    for topic, partition in places:
        state.offsets.remove(group_id, topic, partition)
    turn.answer(waiter, kept)


def _knows_topics(group: ClassicGroup) -> bool:
    """Whether it is known what its members are subscribed to."""
    is_empty = group.state is ClassicGroupState.EMPTY
    return is_empty or group.protocol_type == CONSUMER_PROTOCOL
