"""LeaveGroup (13): members leave, or an administrator removes them."""

from collections.abc import Sequence
from functools import partial

from pykafka_core.coordinator.group.classic.leave import leave_group
from pykafka_core.errors import InvalidGroupIdError, UnknownMemberIdError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.groups import coordinate_each
from pykafka_core.handlers.outcome import ShardCalls, ShardResult, Work
from pykafka_core.protocol.messages import LeaveGroupRequest, LeaveGroupResponse

BATCHED_VERSION = 3
"""From this version on a request has many members, and each has a result."""
AT_ONCE = 500
"""Maximum number of members that leave in one operation, which is one turn of the shard."""


def handle(context: Context, request: LeaveGroupRequest) -> Work[ShardCalls | LeaveGroupResponse]:
    """Remove each member separately; the remaining members rebalance."""
    if not request.group_id:
        return LeaveGroupResponse(error_code=InvalidGroupIdError.code)
    is_batched = context.caller.api_version >= BATCHED_VERSION
    leaving = (
        request.members
        if is_batched
        else [LeaveGroupRequest.MemberIdentity(member_id=request.member_id)]
    )
    parts = [leaving[start : start + AT_ONCE] for start in range(0, max(len(leaving), 1), AT_ONCE)]

    def reply(results: Sequence[ShardResult]) -> Work[LeaveGroupResponse]:
        return _response(parts, results, is_batched=is_batched)

    group_id = request.group_id
    operations = ((group_id, partial(leave_group, group_id, part)) for part in parts)
    return (yield from coordinate_each(context, operations, reply))


def _response(
    parts: Sequence[Sequence[LeaveGroupRequest.MemberIdentity]],
    results: Sequence[ShardResult],
    *,
    is_batched: bool,
) -> Work[LeaveGroupResponse]:
    members: list[LeaveGroupResponse.MemberResponse] = []
    for part, result in zip(parts, results, strict=True):
        if result.error_code not in (0, UnknownMemberIdError.code):
            return LeaveGroupResponse(error_code=result.error_code)
        codes = result.value if not result.error_code else [result.error_code] * len(part)
        assert isinstance(codes, Sequence), "one code for each member"
        for identity, code in zip(part, codes, strict=True):
            yield
            members.append(_left(identity, code))
    if is_batched:
        return LeaveGroupResponse(members=members)
    return LeaveGroupResponse(error_code=next((member.error_code for member in members), 0))


def _left(
    identity: LeaveGroupRequest.MemberIdentity, code: int
) -> LeaveGroupResponse.MemberResponse:
    return LeaveGroupResponse.MemberResponse(
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        error_code=code,
    )
