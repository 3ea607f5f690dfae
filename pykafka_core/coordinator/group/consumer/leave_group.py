"""LeaveGroup for members of a consumer group, which administrators use to remove members."""

from collections.abc import Sequence

from pykafka_core.coordinator.group.classic.member import REASON_LENGTH_MAX
from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.consumer.leave import remove_members
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.errors import NONE, KafkaError, UnknownMemberIdError
from pykafka_core.protocol.messages import LeaveGroupRequest


def leave_consumer_group(
    group: ConsumerGroup,
    leaving: Sequence[LeaveGroupRequest.MemberIdentity],
    state: GroupState,
    waiter: Waiter,
    result: CoordinatorResult,
) -> None:
    """Remove members; respond with a tuple of error codes, one for each of them.

    Raises:
        BatchFullError: Their tombstones do not fit into one batch; no member is removed.
    """
    found = [_found(group, identity) for identity in leaving]
    # A member that is listed twice is removed once.
    member_ids = list(dict.fromkeys(one for one in found if isinstance(one, str)))
    if member_ids:
        pairs = zip(leaving, found, strict=True)
        cause = reason_of([identity for identity, one in pairs if isinstance(one, str)])
        remove_members(state, group, member_ids, None, cause, result)
    result.respond(waiter, tuple(NONE if isinstance(one, str) else one for one in found))


def _found(group: ConsumerGroup, identity: LeaveGroupRequest.MemberIdentity) -> str | int:
    """Return the id of the member, or an error code."""
    try:
        return _member_id(group, identity.member_id, identity.group_instance_id)
    except KafkaError as error:
        return error.code


def _member_id(group: ConsumerGroup, member_id: str, instance_id: str | None) -> str:
    if member_id or instance_id is None:
        return group.member_of(member_id, instance_id).member_id
    member = group.static_member(instance_id)
    if member is None:
        raise UnknownMemberIdError
    return member.member_id


def reason_of(left: Sequence[LeaveGroupRequest.MemberIdentity]) -> str:
    """Return why members have left, for the history; ``left`` is not empty."""
    first = left[0]
    name = first.member_id or first.group_instance_id
    others = f" and {len(left) - 1} more" if len(left) > 1 else ""
    return f"{name}{others} left: {(first.reason or '')[:REASON_LENGTH_MAX]}"
