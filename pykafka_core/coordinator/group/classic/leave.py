"""LeaveGroup."""

from collections.abc import Sequence

from pykafka_core.coordinator.group.classic.group import ClassicGroup
from pykafka_core.coordinator.group.classic.rebalance import rebalance_or_complete, remove_member
from pykafka_core.coordinator.group.classic.session import drop_pending_member
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.consumer.leave_group import leave_consumer_group, reason_of
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.errors import NONE, KafkaError, UnknownMemberIdError
from pykafka_core.protocol.messages import LeaveGroupRequest


def leave_group(
    group_id: str,
    leaving: Sequence[LeaveGroupRequest.MemberIdentity],
    state: GroupState,
    waiter: Waiter,
    result: CoordinatorResult,
) -> None:
    """Remove members; the response is a tuple of error codes, one for each entry of ``leaving``.

    Administrators may remove a static member by its instance id, without a member id.

    Raises:
        UnknownMemberIdError: There is no such group.
        BatchFullError: It is a consumer group, and the members' tombstones do not fit.
    """
    if group_id in state.consumer_groups:
        leave_consumer_group(state.consumer_groups[group_id], leaving, state, waiter, result)
        return
    group = state.groups.get(group_id)
    if group is None:
        raise UnknownMemberIdError
    codes = tuple(_leave(state, group, identity, result) for identity in leaving)
    result.respond(waiter, codes)
    left = [one for one, code in zip(leaving, codes, strict=True) if not code]
    if left and group.state is not ClassicGroupState.EMPTY:
        rebalance_or_complete(state, group, reason_of(left), result)


def _leave(
    state: GroupState,
    group: ClassicGroup,
    identity: LeaveGroupRequest.MemberIdentity,
    result: CoordinatorResult,
) -> int:
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if member_id in group.pending_members:
        drop_pending_member(state, group, member_id)
        return NONE
    if not member_id and instance_id is not None:
        member_id = group.static_members.get(instance_id, "")
    try:
        group.check_member(member_id, instance_id)
    except KafkaError as error:
        return error.code
    remove_member(state, group, group.members[member_id], result)
    return NONE
