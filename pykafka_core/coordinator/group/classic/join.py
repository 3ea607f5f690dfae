"""JoinGroup in a classic group."""

from typing import NamedTuple

from pykafka_core.coordinator.group.classic.group import ClassicGroup, selected_protocol
from pykafka_core.coordinator.group.classic.member import (
    REASON_LENGTH_MAX,
    Member,
    Protocols,
    bytes_of,
)
from pykafka_core.coordinator.group.classic.rebalance import (
    complete_if_all_joined,
    joined,
    rebalance_or_complete,
    refuse_sync,
    remove_member,
    respond_to_join,
)
from pykafka_core.coordinator.group.classic.records import group_record, stored_member
from pykafka_core.coordinator.group.classic.session import (
    await_pending_member,
    touch_member,
    touch_new_member,
)
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.consumer.records import group_tombstones
from pykafka_core.coordinator.group.consumer.topics import TopicsView
from pykafka_core.coordinator.group.member_memory import MemberMemory
from pykafka_core.coordinator.group.migration.requests import join_consumers
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.errors import (
    FencedInstanceIdError,
    GroupMaxSizeReachedError,
    InconsistentGroupProtocolError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    UnknownServerError,
)
from pykafka_core.protocol.messages import JoinGroupResponse
from pykafka_core.types import NS_PER_MS

MEMBER_ID_VERSION = 4
"""From this version on a dynamic member first receives its id, and then joins with it (KIP-394)."""
SKIP_ASSIGNMENT_VERSION = 9
"""From this version on a static leader that rejoins may become leader without assigning (KIP-814).
"""
PENDING_MEMBERS_MAX = 10_000
"""Limit for one group. Pending members cost a client nothing; Kafka has no limit."""
_NAME_LENGTH_MAX = 8_000
"""Maximum characters of a client's name in a member id, so that it fits into a protocol string:
32,767 bytes."""


class Join(NamedTuple):
    """A JoinGroup request.

    Args:
        member_id: Empty if the client has none yet.
        protocols: The caller limits their number; a member without protocols is rejected.
        api_version: Version of the request.
    """

    group_id: str
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: Protocols
    session_timeout_ms: int
    rebalance_timeout_ms: int
    client_id: str
    client_host: str
    reason: str
    api_version: int

    @property
    def must_come_back(self) -> bool:
        """Return whether the client must join again with the member id that it receives
        (KIP-394).
        """
        is_dynamic = self.group_instance_id is None
        return not self.member_id and is_dynamic and self.api_version >= MEMBER_ID_VERSION


def join_group(
    join: Join, view: TopicsView, state: GroupState, waiter: Waiter, result: CoordinatorResult
) -> None:
    """Add or update a member; the response is a `JoinGroupResponse`, now or when the rebalance
    completes.

    If the group is a consumer group with members, the client becomes one of its classic members.

    Raises:
        UnknownMemberIdError: The group or the member does not exist.
        FencedInstanceIdError: Another member id has the instance id.
        GroupMaxSizeReachedError: The group is full.
        CoordinatorNotAvailableError: The memory limit of all groups is reached.
        InconsistentGroupProtocolError: The client supports no protocol that all members support.
        UnknownServerError: The group with this member is too large to be stored; or a pending
            dynamic member joins with an instance id.
    """
    consumers = state.consumer_groups.get(join.group_id)
    if consumers is not None and consumers.has_members:
        join_consumers(join, view, consumers, state, waiter, result)
        return
    group = state.groups.get(join.group_id)
    if group is None:
        if join.member_id:
            raise UnknownMemberIdError
        group = ClassicGroup(join.group_id)
        group.state_timestamp_ms = result.now_ms
    member = group.members.get(join.member_id)
    if not _has_room(state, group, member):
        _turn_away(state, group, member, waiter, result)
        return
    if not group.supports(join.protocol_type, [name for name, _ in join.protocols]):
        raise InconsistentGroupProtocolError
    _check_memory(state, group, join)
    if not join.member_id:
        _join_without_id(state, group, join, waiter, result)
    elif join.member_id in group.pending_members:
        _join_pending(state, group, join, waiter, result)
    else:
        group.check_member(join.member_id, join.group_instance_id)
        assert member is not None, "it was checked"
        _join_again(state, group, member, join, waiter, result)


def _has_room(state: GroupState, group: ClassicGroup, member: Member | None) -> bool:
    """Check the group size, as ``acceptJoiningMember``.

    A group above a lowered limit rejects the last to rejoin.
    """
    size_max = state.settings.max_size
    match group.state:
        case ClassicGroupState.EMPTY:
            return True
        case ClassicGroupState.PREPARING_REBALANCE:
            waits = member is not None and member.join_waiter is not None
            return waits or group.awaiting_join < size_max
        case _:
            return member is not None or len(group.members) < size_max


def _check_memory(state: GroupState, group: ClassicGroup, join: Join) -> None:
    """Check the memory limit; memory that the member already uses is subtracted."""
    instance_id = join.group_instance_id
    known_id = join.member_id
    if not known_id and instance_id is not None:
        known_id = group.static_members.get(instance_id, "")
    known = group.members.get(known_id)
    if known is None:
        growth = bytes_of(join.client_id, instance_id, join.protocols)
    else:
        # A member that joins again keeps its client id and instance id. A static member that
        # replaces another one has a new client id.
        client_id = known.client_id if join.member_id else join.client_id
        own = bytes_of(client_id, known.group_instance_id, join.protocols)
        growth = own + len(known.assignment) - known.held_bytes
    state.member_memory.check_join(growth, is_new=known is None)


def _turn_away(
    state: GroupState,
    group: ClassicGroup,
    member: Member | None,
    waiter: Waiter,
    result: CoordinatorResult,
) -> None:
    if member is not None:
        remove_member(state, group, member, result)
        complete_if_all_joined(state, group, result)
    result.respond(waiter, JoinGroupResponse(error_code=GroupMaxSizeReachedError.code))


def _join_without_id(
    state: GroupState, group: ClassicGroup, join: Join, waiter: Waiter, result: CoordinatorResult
) -> None:
    instance_id = join.group_instance_id
    old_id = None if instance_id is None else group.static_members.get(instance_id)
    name = join.client_id if instance_id is None else instance_id
    member_id = f"{name[:_NAME_LENGTH_MAX]}-{state.new_uuid()}"
    if old_id is not None:
        _join_as_static(state, group, group.members[old_id], member_id, join, waiter, result)
        return
    if join.must_come_back and len(group.pending_members) >= PENDING_MEMBERS_MAX:
        raise GroupMaxSizeReachedError
    _store_new_group(state, group, result)
    if join.must_come_back:
        due_ns = result.now_ns + join.session_timeout_ms * NS_PER_MS
        await_pending_member(state, group, member_id, due_ns)
        required = MemberIdRequiredError.code
        result.respond(waiter, JoinGroupResponse(error_code=required, member_id=member_id))
    else:
        _add(state, group, member_id, join, waiter, result)


def _store_new_group(state: GroupState, group: ClassicGroup, result: CoordinatorResult) -> None:
    """Store a new group, so that it exists when its member rejoins at another node."""
    if group.group_id in state.groups:
        return
    consumers = state.consumer_groups.get(group.group_id)
    gone = [] if consumers is None else group_tombstones(consumers)
    result.append([*gone, group_record(group, (), None)])
    state.consumer_groups.pop(group.group_id, None)
    state.groups[group.group_id] = group


def _join_pending(
    state: GroupState, group: ClassicGroup, join: Join, waiter: Waiter, result: CoordinatorResult
) -> None:
    if join.group_instance_id is not None:
        raise UnknownServerError("A static member never gets MEMBER_ID_REQUIRED.")
    _add(state, group, join.member_id, join, waiter, result)


def _join_again(
    state: GroupState,
    group: ClassicGroup,
    member: Member,
    join: Join,
    waiter: Waiter,
    result: CoordinatorResult,
) -> None:
    states = ClassicGroupState
    # The leader of a stable group may want to assign differently, although its own metadata is
    # unchanged.
    follows = group.state is states.STABLE and group.leader_id != member.member_id
    if (
        follows or group.state is states.COMPLETING_REBALANCE
    ) and member.protocols == join.protocols:
        touch_member(state, member, result.now_ns)
        result.respond(waiter, joined(group, member))
        return
    respond_to_join(
        group, member, JoinGroupResponse(error_code=RebalanceInProgressError.code), result
    )
    _update(group, member, join)
    group.wait_for_join(member, waiter)
    rebalance_or_complete(
        state, group, f"member {member.member_id} joined again: {member.reason}", result
    )


def _add(
    state: GroupState,
    group: ClassicGroup,
    member_id: str,
    join: Join,
    waiter: Waiter,
    result: CoordinatorResult,
) -> None:
    member = _member(join, member_id, state.member_memory)
    member.is_new = True
    if not group.members:
        group.protocol_type = join.protocol_type
    group.add(member)
    group.new_member_added = True
    group.wait_for_join(member, waiter)
    touch_new_member(state, member, result.now_ns)
    rebalance_or_complete(state, group, f"member {member_id} joined: {member.reason}", result)


def _member(join: Join, member_id: str, memory: MemberMemory) -> Member:
    member = Member(
        join.group_id,
        member_id,
        join.group_instance_id,
        client_id=join.client_id,
        client_host=join.client_host,
        session_timeout_ms=join.session_timeout_ms,
        rebalance_timeout_ms=join.rebalance_timeout_ms,
        protocols=join.protocols,
        memory=memory,
    )
    member.reason = join.reason[:REASON_LENGTH_MAX]
    return member


def _update(group: ClassicGroup, member: Member, join: Join) -> None:
    group.update(member, join.protocols)
    member.session_timeout_ms = join.session_timeout_ms
    member.rebalance_timeout_ms = join.rebalance_timeout_ms
    member.reason = join.reason[:REASON_LENGTH_MAX]


# Static members that rejoin without their member id (KIP-345).


def _join_as_static(
    state: GroupState,
    group: ClassicGroup,
    old: Member,
    member_id: str,
    join: Join,
    waiter: Waiter,
    result: CoordinatorResult,
) -> None:
    """Replace the member with the same instance id; the old member id is fenced from now on."""
    new = _member(join, member_id, state.member_memory)
    new.assignment = old.assignment
    led = group.leader_id == old.member_id
    stays = group.state is ClassicGroupState.STABLE and _selects_the_same(group, old, new)
    if stays:
        _store_replaced(group, old, new, result)
    _replace(state, group, old, new, result)
    if stays:
        result.respond(
            waiter, _rejoined(group, new, old.member_id if led else None, join.api_version)
        )
        return
    group.wait_for_join(new, waiter)
    rebalance_or_complete(state, group, f"static member {member_id} rejoined: {new.reason}", result)


def _selects_the_same(group: ClassicGroup, old: Member, new: Member) -> bool:
    members = [new if member is old else member for member in group.members.values()]
    return selected_protocol(members) == group.protocol_name


def _store_replaced(
    group: ClassicGroup, old: Member, new: Member, result: CoordinatorResult
) -> None:
    members = [new if member is old else member for member in group.members.values()]
    leader_id = new.member_id if group.leader_id == old.member_id else group.leader_id
    stored = [stored_member(one, group.protocol_name, one.assignment) for one in members]
    result.append([group_record(group, stored, leader_id)])


def _replace(
    state: GroupState, group: ClassicGroup, old: Member, new: Member, result: CoordinatorResult
) -> None:
    fenced = FencedInstanceIdError.code
    respond_to_join(
        group, old, JoinGroupResponse(error_code=fenced, member_id=old.member_id), result
    )
    refuse_sync(old, fenced, result)
    state.deadlines.cancel(old.session_key)
    group.replace(old, new)
    touch_member(state, new, result.now_ns)


def _rejoined(
    group: ClassicGroup, member: Member, led_as: str | None, api_version: int
) -> JoinGroupResponse:
    """Return a response with the current generation.

    Clients without ``skip_assignment`` get the old member id as the leader's id, so that they do
    not assign.
    """
    response = joined(group, member)
    if led_as is None:
        return response
    if api_version < SKIP_ASSIGNMENT_VERSION:
        response.leader, response.members = led_as, []
    else:
        response.skip_assignment = True
    return response
