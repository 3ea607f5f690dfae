"""DescribeGroups (15): members of classic groups, with their metadata and assignments."""

from collections.abc import Sequence
from functools import partial

from pykafka_core.coordinator.group.classic.describe import describe_group
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.errors import GroupIdNotFoundError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.groups import coordinate_each
from pykafka_core.handlers.outcome import Coordinate, Coordinated, Slices
from pykafka_core.protocol.messages import DescribeGroupsRequest, DescribeGroupsResponse
from pykafka_core.types import NO_AUTHORIZED_OPERATIONS

NOT_FOUND_VERSION = 6
"""From here on a group that does not exist is an error (KIP-1043); before, it is described as dead."""

GROUP_OPERATIONS = sum(1 << code for code in (3, 6, 8, 10, 11))
"""Every operation a group knows, as bits: read, delete, describe, describe and alter configs. Without an authorizer
everybody may do them all."""

_Described = DescribeGroupsResponse.DescribedGroup


def handle(context: Context, request: DescribeGroupsRequest) -> Slices[Coordinate]:
    """Every group by itself."""

    def reply(results: Sequence[Coordinated]) -> Slices[DescribeGroupsResponse]:
        return _answer(context, request, results)

    operations = ((group_id, partial(describe_group, group_id)) for group_id in request.groups)
    return (yield from coordinate_each(context, operations, reply))


def _answer(
    context: Context, request: DescribeGroupsRequest, results: Sequence[Coordinated]
) -> Slices[DescribeGroupsResponse]:
    operations = (
        GROUP_OPERATIONS if request.include_authorized_operations else NO_AUTHORIZED_OPERATIONS
    )
    groups = []
    for group_id, result in zip(request.groups, results, strict=True):
        yield
        described = result.answer
        if not isinstance(described, _Described):
            described = _absent(context, group_id, result.error_code)
        if not described.error_code:
            described.authorized_operations = operations
        groups.append(described)
    return DescribeGroupsResponse(groups=groups)


def _absent(context: Context, group_id: str, code: int) -> _Described:
    if code != GroupIdNotFoundError.code:
        return _Described(group_id=group_id, error_code=code)
    dead = _Described(group_id=group_id, group_state=ClassicGroupState.DEAD.value)
    if context.caller.api_version >= NOT_FOUND_VERSION:
        error = GroupIdNotFoundError(f"Group {group_id} not found.")
        dead.error_code, dead.error_message = error.code, str(error)
    return dead
