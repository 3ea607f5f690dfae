"""A rebalance: members join, the next generation starts, and members get their responses.

A group that stops being stable prepares a rebalance. The rebalance completes when all members have
joined again, or when the longest of their rebalance timeouts has passed: dynamic members that have
not joined are removed, a protocol is selected, and the pending JoinGroup requests are completed
with the new generation. An empty group first waits for more members.
"""

from pykafka_core.coordinator.group.classic.group import ClassicGroup, InitialDelay
from pykafka_core.coordinator.group.classic.member import Member
from pykafka_core.coordinator.group.classic.records import group_record
from pykafka_core.coordinator.group.classic.session import touch_member
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.history import What, members_text
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import BatchFullError, CoordinatorResult
from pykafka_core.errors import (
    FencedInstanceIdError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from pykafka_core.protocol.messages import JoinGroupResponse, SyncGroupResponse
from pykafka_core.types import NS_PER_MS

WAIT_AGAIN_MIN_MS = 1_000
"""Minimum time to wait again for static members: clients may send a rebalance timeout of 0 or less.
"""
_CAN_REBALANCE = frozenset(
    {ClassicGroupState.EMPTY, ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE}
)


def rebalance_or_complete(
    state: GroupState, group: ClassicGroup, reason: str, result: CoordinatorResult
) -> None:
    """Start a rebalance after a member change, or complete the current one if all members have
    joined.
    """
    if group.state in _CAN_REBALANCE:
        prepare_rebalance(state, group, reason, result)
    else:
        group.history.note(What.MEMBER, reason, result.now_ms)
        complete_if_all_joined(state, group, result)


def prepare_rebalance(
    state: GroupState, group: ClassicGroup, reason: str, result: CoordinatorResult
) -> None:
    """Start a rebalance."""
    group.rebalance_reason = reason
    group.history.note(What.REBALANCE, reason, result.now_ms)
    if group.state is ClassicGroupState.COMPLETING_REBALANCE:
        drop_assignment(state, group, RebalanceInProgressError.code, result)
    group.pending_sync.clear()
    state.deadlines.cancel(group.sync_key)
    is_initial = group.state is ClassicGroupState.EMPTY
    group.move_to(ClassicGroupState.PREPARING_REBALANCE, result.now_ms)
    if is_initial:
        _begin_initial_delay(state, group, result)
    elif group.all_joined:
        complete_rebalance(state, group, result)
    else:
        _await_members(state, group, result)


def complete_if_all_joined(
    state: GroupState, group: ClassicGroup, result: CoordinatorResult
) -> None:
    """Complete the rebalance if all members have joined and the initial delay is over."""
    if (
        group.state is ClassicGroupState.PREPARING_REBALANCE
        and group.initial_delay is None
        and group.all_joined
    ):
        complete_rebalance(state, group, result)


def complete_rebalance(state: GroupState, group: ClassicGroup, result: CoordinatorResult) -> None:
    """Start the next generation with the joined members; wait again if only static members are left
    and none has joined.
    """
    state.deadlines.cancel(group.join_key)
    for member in list(group.members.values()):
        if member.join_waiter is None and member.group_instance_id is None:
            text = f"member {member.member_id} did not join again in time"
            group.history.note(What.REMOVED, text, result.now_ms)
            remove_member(state, group, member, result)
    if group.members and not _elect_leader(group):
        _await_members(state, group, result, WAIT_AGAIN_MIN_MS)
        return
    group.initial_delay = None
    group.begin_generation(result.now_ms)
    group.history.note(
        What.GENERATION,
        f"generation {group.generation_id} began with {members_text(len(group.members))}",
        result.now_ms,
    )
    if group.members:
        _respond_to_joins(state, group, result)
    else:
        append_empty(group, result)


def wait_longer_or_complete(
    state: GroupState, group: ClassicGroup, result: CoordinatorResult
) -> None:
    """Handle the end of the time to join; members that joined during the initial delay extend
    it.
    """
    delay = group.initial_delay
    if delay is None or not group.new_member_added or not delay.remaining_ms:
        complete_rebalance(state, group, result)
        return
    next_delay = InitialDelay(
        delay_ms=min(state.settings.initial_rebalance_delay_ms, delay.remaining_ms),
        remaining_ms=max(delay.remaining_ms - delay.delay_ms, 0),
    )
    _wait_initially(state, group, next_delay, result)


def remove_member(
    state: GroupState, group: ClassicGroup, member: Member, result: CoordinatorResult
) -> None:
    """Remove a member.

    Its pending request fails with UNKNOWN_MEMBER_ID, so that a live client rejoins.
    """
    state.deadlines.cancel(member.session_key)
    respond_to_join(group, member, JoinGroupResponse(error_code=UnknownMemberIdError.code), result)
    refuse_sync(member, UnknownMemberIdError.code, result)
    group.remove(member)


def drop_assignment(
    state: GroupState, group: ClassicGroup, error_code: int, result: CoordinatorResult
) -> None:
    """Clear all assignments of this generation and fail the pending SyncGroup requests."""
    for member in group.members.values():
        member.assignment = b""
        if refuse_sync(member, error_code, result):
            touch_member(state, member, result.now_ns)


def joined(group: ClassicGroup, member: Member) -> JoinGroupResponse:
    """Return a response with the current generation; the leader's also has the metadata of all
    members.
    """
    leads = group.leader_id == member.member_id
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member.member_id,
        members=_with_metadata(group) if leads else [],
    )


def _with_metadata(group: ClassicGroup) -> list[JoinGroupResponse.JoinGroupResponseMember]:
    row, protocol_name = JoinGroupResponse.JoinGroupResponseMember, group.protocol_name
    return [
        row(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.metadata(protocol_name),
        )
        for member in group.members.values()
    ]


def synced(group: ClassicGroup, member: Member) -> SyncGroupResponse:
    """Return a response with the member's assignment."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )


def respond_to_join(
    group: ClassicGroup, member: Member, response: JoinGroupResponse, result: CoordinatorResult
) -> None:
    """Respond to the member's pending JoinGroup, if any."""
    waiter = group.take_join_waiter(member)
    if response.error_code == FencedInstanceIdError.code:
        text = f"member {member.member_id}: another one came as {member.group_instance_id}"
        group.history.note(What.FENCED, text, result.now_ms)
    if waiter is not None:
        result.respond(waiter, response)


def refuse_sync(member: Member, error_code: int, result: CoordinatorResult) -> bool:
    """Fail the member's pending SyncGroup; return whether there was one."""
    waiter, member.sync_waiter = member.sync_waiter, None
    if waiter is not None:
        result.respond(waiter, error_code)
    return waiter is not None


def append_empty(group: ClassicGroup, result: CoordinatorResult) -> None:
    """Store that the group has no members."""
    try:
        result.append([group_record(group, (), None)])
    except BatchFullError:
        # Only a tiny max.message.bytes causes this. If the group is loaded again, its stored
        # members exist until their sessions end; Kafka only logs a warning for the same reason.
        return


def _begin_initial_delay(state: GroupState, group: ClassicGroup, result: CoordinatorResult) -> None:
    delay_ms = state.settings.initial_rebalance_delay_ms
    if delay_ms:
        remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        _wait_initially(state, group, InitialDelay(delay_ms, remaining_ms), result)
    else:
        complete_rebalance(state, group, result)


def _wait_initially(
    state: GroupState, group: ClassicGroup, delay: InitialDelay, result: CoordinatorResult
) -> None:
    group.initial_delay = delay
    group.new_member_added = False
    state.deadlines.set(group.join_key, result.now_ns + delay.delay_ms * NS_PER_MS)


def _await_members(
    state: GroupState, group: ClassicGroup, result: CoordinatorResult, least_ms: int = 0
) -> None:
    timeout_ms = max(group.rebalance_timeout_ms, least_ms)
    state.deadlines.set(group.join_key, result.now_ns + timeout_ms * NS_PER_MS)


def _elect_leader(group: ClassicGroup) -> bool:
    """Make a joined member the leader; return whether there is one."""
    leader = group.members.get(group.leader_id or "")
    if leader is None or leader.join_waiter is None:
        leader = next((one for one in group.members.values() if one.join_waiter is not None), None)
        if leader is None:
            return False
        group.leader_id = leader.member_id
    return True


def _respond_to_joins(state: GroupState, group: ClassicGroup, result: CoordinatorResult) -> None:
    for member in group.members.values():
        waiter = group.take_join_waiter(member)
        if waiter is not None:
            result.respond(waiter, joined(group, member))
        touch_member(state, member, result.now_ns)
        member.is_new = False
    group.pending_sync.update(group.members)
    state.deadlines.set(group.sync_key, result.now_ns + group.rebalance_timeout_ms * NS_PER_MS)
