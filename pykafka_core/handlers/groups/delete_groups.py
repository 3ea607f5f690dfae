"""DeleteGroups (42): deletes groups without members, and their offsets."""

from collections.abc import Mapping, Sequence
from functools import partial

from pykafka_core.coordinator.group.classic.delete import delete_group
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.groups import coordinate_each
from pykafka_core.handlers.outcome import (
    Reply,
    ShardCalls,
    ShardResult,
    Work,
    collect,
)
from pykafka_core.protocol.messages import DeleteGroupsRequest, DeleteGroupsResponse

_Result = DeleteGroupsResponse.DeletableGroupResult


def handle(context: Context, request: DeleteGroupsRequest) -> Work[ShardCalls]:
    """Delete each group separately; a repeated group has one result, as in Kafka."""
    group_ids = list(dict.fromkeys(request.groups_names))
    operations = ((group_id, partial(delete_group, group_id)) for group_id in group_ids)

    def reply(results: Sequence[ShardResult]) -> Reply:
        return _response(dict(zip(group_ids, results, strict=True)))

    return (yield from coordinate_each(context, operations, reply))


def _response(results: Mapping[str, ShardResult]) -> Work[DeleteGroupsResponse]:
    rows = yield from collect(
        _Result(group_id=group_id, error_code=result.error_code)
        for group_id, result in results.items()
    )
    return DeleteGroupsResponse(results=rows)
