"""DescribeGroups (15): members of classic groups, with their metadata and assignments."""

from collections.abc import Callable, Sequence
from functools import partial

from pykafka_core.coordinator.budget import Budget
from pykafka_core.coordinator.group.classic.describe import describe_group
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.group_shard import GroupShard
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.errors import GroupIdNotFoundError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.groups import group_operation
from pykafka_core.handlers.coordinators.measured import Mention, Reading, coordinate_reads, value_of
from pykafka_core.handlers.outcome import GroupOperation, ShardCalls, ShardResult, Work
from pykafka_core.protocol.messages import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    Message,
)
from pykafka_core.types import NO_AUTHORIZED_OPERATIONS

NOT_FOUND_VERSION = 6
"""From this version on an unknown group has an error (KIP-1043); before, it has the state Dead."""

GROUP_OPERATIONS = sum(1 << code for code in (3, 6, 8, 10, 11))
"""All operations on a group, as bits: read, delete, describe, describe configs and alter configs.
Without an authorizer, all of them are allowed."""

RESPONSE_BYTES_MAX = 8 * 1024 * 1024
"""Limit for a response about many groups, or with repeated groups; the groups after it get an
error."""

Describe = Callable[[str, Budget, GroupShard, Waiter, CoordinatorResult], None]
"""An operation that describes a group, within a budget."""

_Described = DescribeGroupsResponse.DescribedGroup


def handle(context: Context, request: DescribeGroupsRequest) -> Work[ShardCalls]:
    """Describe each group separately."""
    respond = partial(_response, context, request)
    return (yield from describe_each(context, request.groups, describe_group, respond))


def describe_each(
    context: Context,
    group_ids: Sequence[str],
    describe: Describe,
    respond: Callable[[Sequence[ShardResult]], Work[Message]],
) -> Work[ShardCalls]:
    """Read each group once, also if it is repeated; ``respond`` gets a result for each group id."""

    def operation(group_id: str, budget: Budget) -> GroupOperation | None:
        return group_operation(context, group_id, partial(describe, group_id, budget))

    reading = Reading(operation, lambda: map(Mention, group_ids), RESPONSE_BYTES_MAX, respond)
    return (yield from coordinate_reads(reading, dict.fromkeys(group_ids)))


def _response(
    context: Context, request: DescribeGroupsRequest, results: Sequence[ShardResult]
) -> Work[DescribeGroupsResponse]:
    operations = (
        GROUP_OPERATIONS if request.include_authorized_operations else NO_AUTHORIZED_OPERATIONS
    )
    groups: list[_Described] = []
    for group_id, result in zip(request.groups, results, strict=True):
        yield
        described = value_of(result)
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
