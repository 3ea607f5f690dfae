"""Expiry of committed offsets, as ``OffsetMetadataManager.cleanupExpiredOffsets``.

All groups are searched at an interval, some in each turn. A group that is left without members and
offsets is removed.
"""

from pykafka_core.coordinator.group.classic.group import CONSUMER_PROTOCOL, ClassicGroup
from pykafka_core.coordinator.group.classic.records import group_tombstone
from pykafka_core.coordinator.group.classic.session import NS_PER_MS, drop_pending_member
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.consumer.removal import remove_empty_consumer_group
from pykafka_core.coordinator.group.offsets.records import offset_tombstone
from pykafka_core.coordinator.group.offsets.table import NO_EXPIRY, Committed, Place
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import Turn

EXPIRY = "offsets expiry"
"""The deadline's key."""
AnyGroup = ClassicGroup | ConsumerGroup

SEARCHED_MAX = 1_000
"""Groups and offsets in a turn: about a millisecond."""
PAUSE_NS = NS_PER_MS
"""Until the search goes on, so that requests are served meanwhile."""


def arm_expiry(state: GroupState, turn: Turn) -> None:
    """Search after the interval."""
    interval_ms = state.settings.offsets_retention_check_interval_ms
    state.deadlines.set(EXPIRY, turn.now_ns + interval_ms * NS_PER_MS)


def search_soon(state: GroupState, turn: Turn) -> None:
    """Go on with a search, or begin one."""
    state.deadlines.set(EXPIRY, turn.now_ns + PAUSE_NS)


def expire(state: GroupState, turn: Turn) -> None:
    """Search some groups, and arm the next turn."""
    offsets, searched, fits = state.offsets, 0, True
    if not offsets.to_search:
        offsets.to_search.extend(state.groups)
        offsets.to_search.extend(state.consumer_groups)
    while fits and offsets.to_search and searched < SEARCHED_MAX:
        group_id = offsets.to_search[0]
        group = state.any_group(group_id)
        searched += 1 + sum(map(len, offsets.topics(group_id).values()))
        fits = group is None or _search(state, group, turn)
        # What does not even fit alone must not end the search.
        if fits or not turn.records:
            offsets.to_search.popleft()
    if offsets.to_search:
        search_soon(state, turn)
    else:
        offsets.forget_gone()
        arm_expiry(state, turn)


def _search(state: GroupState, group: AnyGroup, turn: Turn) -> bool:
    """Remove what can go of a group, and the group with its last offset; whether all tombstones fitted."""
    group_id, offsets = group.group_id, state.offsets
    places = [
        (topic, partition)
        for topic, partitions in offsets.topics(group_id).items()
        for partition, committed in partitions.items()
        if _can_expire(state, group, (topic, partition), committed, turn)
    ]
    kept = group.subscribed_among({topic for topic, _ in places})
    places = [place for place in places if place[0] not in kept]
    if offsets.gone or offsets.absent:
        places = list(dict.fromkeys([*places, *offsets.gone_places(group_id)]))
    count = turn.append_some([offset_tombstone(group_id, *place) for place in places])
    for place in places[:count]:
        offsets.remove(group_id, *place)
    if count < len(places):
        return False
    if offsets.gone or offsets.absent:
        offsets.hide_gone(group_id)
    has_offsets = next(offsets.places(group_id), None) is not None
    return has_offsets or _remove_group(state, group, turn)


def _can_expire(
    state: GroupState, group: AnyGroup, place: Place, committed: Committed, turn: Turn
) -> bool:
    return _has_expired(state, group, committed, turn.now_ms) and not state.offsets.is_pending(
        group.group_id, *place
    )


def _has_expired(state: GroupState, group: AnyGroup, committed: Committed, now_ms: int) -> bool:
    """As ``offsetExpirationCondition`` of both kinds of groups and ``OffsetExpirationConditionImpl``."""
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


def _remove_group(state: GroupState, group: AnyGroup, turn: Turn) -> bool:
    """Remove a group without offsets, if it has no members; whether its record fitted."""
    if isinstance(group, ConsumerGroup):
        return remove_empty_consumer_group(group, state, turn)
    if group.state is not ClassicGroupState.EMPTY:
        return True
    if not turn.append_some([group_tombstone(group.group_id)]):
        return False
    for member_id in list(group.pending_members):
        drop_pending_member(state, group, member_id)
    group.move_to(ClassicGroupState.DEAD, turn.now_ms)
    del state.groups[group.group_id]
    return True
