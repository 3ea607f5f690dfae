"""Deadlines of a classic group."""

from pykafka_core.coordinator.group.classic.group import ClassicGroup
from pykafka_core.coordinator.group.classic.keys import Due, DueInGroup
from pykafka_core.coordinator.group.classic.rebalance import (
    complete_rebalance,
    prepare_rebalance,
    rebalance_or_complete,
    remove_member,
    wait_longer_or_complete,
)
from pykafka_core.coordinator.group.classic.session import drop_pending_member, touch_member
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.history import What
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult


def run_due(state: GroupState, key: DueInGroup, result: CoordinatorResult) -> None:
    """Handle a deadline that has passed. Does nothing if the group was deleted."""
    group = state.groups.get(key.group_id)
    if group is None:
        return
    match key.what:
        case Due.SESSION:
            _end_session(state, group, key.member_id, result)
        case Due.JOIN:
            wait_longer_or_complete(state, group, result)
        case Due.SYNC:
            _remove_unsynced(state, group, result)


def arm_loaded(state: GroupState, result: CoordinatorResult) -> None:
    """Start the sessions of loaded members.

    A group above ``group.max.size`` rebalances; the last to join are rejected.
    """
    for group in state.groups.values():
        for member in group.members.values():
            touch_member(state, member, result.now_ns)
        if len(group.members) > state.settings.max_size:
            prepare_rebalance(state, group, "loaded with more members than group.max.size", result)


def _end_session(
    state: GroupState, group: ClassicGroup, member_id: str, result: CoordinatorResult
) -> None:
    if member_id in group.pending_members:
        drop_pending_member(state, group, member_id)
        _complete_even_early(state, group, result)
        return
    member = group.members.get(member_id)
    if member is None or member.is_heard_of:
        return  # the response to its pending request sets the next deadline
    remove_member(state, group, member, result)
    reason = f"the session of member {member_id} ended"
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        group.history.note(What.MEMBER, reason, result.now_ms)
        _complete_even_early(state, group, result)
    else:
        rebalance_or_complete(state, group, reason, result)


def _complete_even_early(state: GroupState, group: ClassicGroup, result: CoordinatorResult) -> None:
    """Complete a rebalance if all members have joined, even during the initial delay, as Kafka
    does.
    """
    if group.state is ClassicGroupState.PREPARING_REBALANCE and group.all_joined:
        complete_rebalance(state, group, result)


def _remove_unsynced(state: GroupState, group: ClassicGroup, result: CoordinatorResult) -> None:
    unsynced = sorted(group.pending_sync)
    for member_id in unsynced:
        group.history.note(What.REMOVED, f"member {member_id} did not sync in time", result.now_ms)
        remove_member(state, group, group.members[member_id], result)
    if unsynced:
        prepare_rebalance(state, group, f"{len(unsynced)} members did not sync", result)
