"""A rebalance: members join, the next generation begins, and is answered.

A group that stops being stable prepares a rebalance. When all members have joined again, or the longest of their
rebalance timeouts has passed, the rebalance completes: who has not joined is removed, unless it is static, a protocol
is selected, and everybody who waits is told the new generation. An empty group waits for more members first.
"""

from pykafka_core.coordinator.deadlines import NS_PER_MS
from pykafka_core.coordinator.group.classic.group import ClassicGroup, InitialDelay
from pykafka_core.coordinator.group.classic.member import Member
from pykafka_core.coordinator.group.classic.records import group_record
from pykafka_core.coordinator.group.classic.session import touch_member
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.history import What
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import Turn, TurnFullError
from pykafka_core.errors import (
    FencedInstanceIdError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from pykafka_core.protocol.messages import JoinGroupResponse, SyncGroupResponse

WAIT_AGAIN_MIN_MS = 1_000
"""Until static members are waited for again: clients may send a rebalance timeout of 0, or a negative one."""
_CAN_REBALANCE = frozenset(
    {ClassicGroupState.EMPTY, ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE}
)


def rebalance_or_complete(state: GroupState, group: ClassicGroup, reason: str, turn: Turn) -> None:
    """A member came, changed or went: begin a rebalance, or complete the one there is if nobody is missing."""
    if group.state in _CAN_REBALANCE:
        prepare_rebalance(state, group, reason, turn)
    else:
        group.history.note(What.MEMBER, reason, turn.now_ms)
        complete_if_all_joined(state, group, turn)


def prepare_rebalance(state: GroupState, group: ClassicGroup, reason: str, turn: Turn) -> None:
    """Begin a rebalance."""
    group.rebalance_reason = reason
    group.history.note(What.REBALANCE, reason, turn.now_ms)
    if group.state is ClassicGroupState.COMPLETING_REBALANCE:
        drop_assignment(state, group, RebalanceInProgressError.code, turn)
    group.pending_sync.clear()
    state.deadlines.cancel(group.sync_key)
    is_initial = group.state is ClassicGroupState.EMPTY
    group.move_to(ClassicGroupState.PREPARING_REBALANCE, turn.now_ms)
    if is_initial:
        _begin_initial_delay(state, group, turn)
    elif group.all_joined:
        complete_rebalance(state, group, turn)
    else:
        _await_members(state, group, turn)


def complete_if_all_joined(state: GroupState, group: ClassicGroup, turn: Turn) -> None:
    """Complete the rebalance unless somebody is missing, or more may come."""
    if (
        group.state is ClassicGroupState.PREPARING_REBALANCE
        and group.initial_delay is None
        and group.all_joined
    ):
        complete_rebalance(state, group, turn)


def complete_rebalance(state: GroupState, group: ClassicGroup, turn: Turn) -> None:
    """Begin the next generation with who has joined, or wait again if there are static members alone who have not."""
    state.deadlines.cancel(group.join_key)
    for member in list(group.members.values()):
        if member.join_waiter is None and member.group_instance_id is None:
            text = f"member {member.member_id} did not join again in time"
            group.history.note(What.REMOVED, text, turn.now_ms)
            remove_member(state, group, member, turn)
    if group.members and not _elect_leader(group):
        _await_members(state, group, turn, WAIT_AGAIN_MIN_MS)
        return
    group.initial_delay = None
    group.begin_generation(turn.now_ms)
    group.history.note(
        What.GENERATION,
        f"generation {group.generation_id} began with {len(group.members)} members",
        turn.now_ms,
    )
    if group.members:
        _answer_joins(state, group, turn)
    else:
        append_empty(group, turn)


def wait_longer_or_complete(state: GroupState, group: ClassicGroup, turn: Turn) -> None:
    """The time to join is over, but that of a first rebalance may be extended: by members that came meanwhile."""
    delay = group.initial_delay
    if delay is None or not group.new_member_added or not delay.remaining_ms:
        complete_rebalance(state, group, turn)
        return
    next_delay = InitialDelay(
        delay_ms=min(state.settings.initial_rebalance_delay_ms, delay.remaining_ms),
        remaining_ms=max(delay.remaining_ms - delay.delay_ms, 0),
    )
    _wait_initially(state, group, next_delay, turn)


def remove_member(state: GroupState, group: ClassicGroup, member: Member, turn: Turn) -> None:
    """Remove a member; if it waits, it is told that it is none, so that it comes back if it is still there."""
    state.deadlines.cancel(member.session_key)
    answer_join(group, member, JoinGroupResponse(error_code=UnknownMemberIdError.code), turn)
    refuse_sync(member, UnknownMemberIdError.code, turn)
    group.remove(member)


def drop_assignment(state: GroupState, group: ClassicGroup, error_code: int, turn: Turn) -> None:
    """There will be no assignment for this generation: refuse who waits for it."""
    for member in group.members.values():
        member.assignment = b""
        if refuse_sync(member, error_code, turn):
            touch_member(state, member, turn.now_ns)


def joined(group: ClassicGroup, member: Member) -> JoinGroupResponse:
    """The generation, as its members are told; the leader with everybody's metadata."""
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
    """The member's assignment."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )


def answer_join(group: ClassicGroup, member: Member, answer: JoinGroupResponse, turn: Turn) -> None:
    """Answer the member's JoinGroup, if one waits."""
    waiter = group.take_join_waiter(member)
    if answer.error_code == FencedInstanceIdError.code:
        text = f"member {member.member_id}: another one came as {member.group_instance_id}"
        group.history.note(What.FENCED, text, turn.now_ms)
    if waiter is not None:
        turn.answer(waiter, answer)


def refuse_sync(member: Member, error_code: int, turn: Turn) -> bool:
    """Refuse the member's SyncGroup, if one waits; whether it did."""
    waiter, member.sync_waiter = member.sync_waiter, None
    if waiter is not None:
        turn.answer(waiter, error_code)
    return waiter is not None


def append_empty(group: ClassicGroup, turn: Turn) -> None:
    """Have it stored that there are no members."""
    try:
        turn.append([group_record(group, (), None)])
    except TurnFullError:
        # Only a tiny max.message.bytes does this. If the group is loaded again, its stored members are back until
        # their sessions end; Kafka leaves it at a warning for the same reason.
        return


def _begin_initial_delay(state: GroupState, group: ClassicGroup, turn: Turn) -> None:
    delay_ms = state.settings.initial_rebalance_delay_ms
    if delay_ms:
        remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        _wait_initially(state, group, InitialDelay(delay_ms, remaining_ms), turn)
    else:
        complete_rebalance(state, group, turn)


def _wait_initially(
    state: GroupState, group: ClassicGroup, delay: InitialDelay, turn: Turn
) -> None:
    group.initial_delay = delay
    group.new_member_added = False
    state.deadlines.set(group.join_key, turn.now_ns + delay.delay_ms * NS_PER_MS)


def _await_members(state: GroupState, group: ClassicGroup, turn: Turn, least_ms: int = 0) -> None:
    timeout_ms = max(group.rebalance_timeout_ms, least_ms)
    state.deadlines.set(group.join_key, turn.now_ns + timeout_ms * NS_PER_MS)


def _elect_leader(group: ClassicGroup) -> bool:
    """Have a member lead that has joined; whether there is one."""
    leader = group.members.get(group.leader_id or "")
    if leader is None or leader.join_waiter is None:
        leader = next((one for one in group.members.values() if one.join_waiter is not None), None)
        if leader is None:
            return False
        group.leader_id = leader.member_id
    return True


def _answer_joins(state: GroupState, group: ClassicGroup, turn: Turn) -> None:
    for member in group.members.values():
        waiter = group.take_join_waiter(member)
        if waiter is not None:
            turn.answer(waiter, joined(group, member))
        touch_member(state, member, turn.now_ns)
        member.is_new = False
    group.pending_sync.update(group.members)
    state.deadlines.set(group.sync_key, turn.now_ns + group.rebalance_timeout_ms * NS_PER_MS)
