"""Expiry of committed offsets, as ``OffsetMetadataManager.cleanupExpiredOffsets``.

All groups are searched at an interval, some topics in each turn. A group without members and
offsets is removed.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice

from pykafka_core.coordinator.group.classic.group import CONSUMER_PROTOCOL, ClassicGroup
from pykafka_core.coordinator.group.classic.records import group_tombstone
from pykafka_core.coordinator.group.classic.session import drop_pending_member
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.consumer.removal import remove_empty_consumer_group
from pykafka_core.coordinator.group.offsets.records import offset_tombstones
from pykafka_core.coordinator.group.offsets.table import NO_EXPIRY, Committed, TopicPartition
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult
from pykafka_core.types import NS_PER_MS

EXPIRY = "offsets expiry"
"""Key of the deadline."""
AnyGroup = ClassicGroup | ConsumerGroup

SEARCHED_MAX = 1_000
"""Groups, topics and offsets that a turn searches, rounded up to whole topics: about a millisecond.
"""
REMOVED_MAX = 1_000
"""Offsets of one group that a turn removes: some milliseconds."""
PAUSE_NS = NS_PER_MS
"""Time between two turns of an expiry or a removal, in which requests are handled."""


def arm_expiry(state: GroupState, result: CoordinatorResult) -> None:
    """Schedule the next search after the interval."""
    interval_ms = state.settings.offsets_retention_check_interval_ms
    state.deadlines.set(EXPIRY, result.now_ns + interval_ms * NS_PER_MS)


def expire(state: GroupState, result: CoordinatorResult) -> None:
    """Search some groups, and schedule the next turn."""
    search, left = state.offsets.search, SEARCHED_MAX
    if not search.groups:
        search.groups.extend(state.groups)
        search.groups.extend(state.consumer_groups)
    while left > 0 and search.groups:
        group = state.any_group(search.groups[0])
        if group is None:
            search.next_group()
            left -= 1
        else:
            left -= _search_topics(state, group, result, left) or _end_group(state, group, result)
    if search.groups:
        state.deadlines.set(EXPIRY, result.now_ns + PAUSE_NS)
    else:
        arm_expiry(state, result)


def _search_topics(state: GroupState, group: AnyGroup, result: CoordinatorResult, left: int) -> int:
    """Remove expired offsets in the group's next topics; return the number of searched items, 0 at
    the end.
    """
    search, topics = state.offsets.search, state.offsets.topics(group.group_id)
    if search.topics is None:
        search.topics = deque(topics)
    looked_at, count, found = list[str](), 0, list[TopicPartition]()
    while search.topics and count < left and len(found) < REMOVED_MAX:
        topic = search.topics.popleft()
        looked_at.append(topic)
        count += 1 + len(topics.get(topic, ()))
        found += islice(_expired(state, group, topic, result), REMOVED_MAX)
    kept = group.subscribed_among({place[0] for place in found})
    places = [place for place in found if place[0] not in kept]
    if not remove_places(state, group.group_id, places, result):
        search.topics.extendleft(reversed(looked_at))
        return left
    return count


def _expired(
    state: GroupState, group: AnyGroup, topic: str, result: CoordinatorResult
) -> Iterator[TopicPartition]:
    """Yield the partitions whose offsets have expired; they are removed unless a member subscribes
    to the topic.
    """
    for partition, committed in state.offsets.topics(group.group_id).get(topic, {}).items():
        place = (topic, partition)
        if _can_expire(state, group, place, committed, result):
            yield place


def remove_places(
    state: GroupState, group_id: str, places: Sequence[TopicPartition], result: CoordinatorResult
) -> bool:
    """Remove offsets while they fit; return False if the next turn must continue."""
    count = result.append_some(offset_tombstones(group_id, places))
    for place in places[:count]:
        state.offsets.remove(group_id, *place)
    # A tombstone that is too large for an empty turn must not block the others.
    return count == len(places) < REMOVED_MAX or not result.records


def _end_group(state: GroupState, group: AnyGroup, result: CoordinatorResult) -> int:
    """Remove the group if nothing is left of it, after all its topics were searched; return the
    cost.
    """
    if end_group(state, group, result) or not result.records:
        state.offsets.search.next_group()
        return 1
    return SEARCHED_MAX


def end_group(state: GroupState, group: AnyGroup, result: CoordinatorResult) -> bool:
    """Remove a group without offsets and members; return False if its tombstone did not fit into
    the turn.
    """
    has_offsets = next(state.offsets.places(group.group_id), None) is not None
    return has_offsets or _remove_group(state, group, result)


def _can_expire(
    state: GroupState,
    group: AnyGroup,
    place: TopicPartition,
    committed: Committed,
    result: CoordinatorResult,
) -> bool:
    return _has_expired(state, group, committed, result.now_ms) and not state.offsets.is_pending(
        group.group_id, *place
    )


def _has_expired(state: GroupState, group: AnyGroup, committed: Committed, now_ms: int) -> bool:
    """Return whether an offset has expired.

    See ``offsetExpirationCondition`` of both kinds of groups and ``OffsetExpirationConditionImpl``.
    """
    began_ms = committed.commit_timestamp_ms
    if isinstance(group, ClassicGroup) and group.protocol_type is not None:
        if group.state is ClassicGroupState.EMPTY:
            began_ms = began_ms if group.empty_since_ms is None else group.empty_since_ms
        elif (
            group.protocol_type != CONSUMER_PROTOCOL or group.state is not ClassicGroupState.STABLE
        ):
            return False
    if committed.expire_timestamp_ms != NO_EXPIRY:
        return now_ms >= committed.expire_timestamp_ms
    return now_ms - began_ms >= state.settings.offsets_retention_ms


def _remove_group(state: GroupState, group: AnyGroup, result: CoordinatorResult) -> bool:
    """Remove a group without offsets if it has no members; return False if its tombstone did not
    fit.
    """
    if isinstance(group, ConsumerGroup):
        return remove_empty_consumer_group(group, state, result)
    if group.state is not ClassicGroupState.EMPTY:
        return True
    if not result.append_some([group_tombstone(group.group_id)]):
        return False
    for member_id in list(group.pending_members):
        drop_pending_member(state, group, member_id)
    group.move_to(ClassicGroupState.DEAD, result.now_ms)
    del state.groups[group.group_id]
    return True
