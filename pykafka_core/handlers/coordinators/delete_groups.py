"""DeleteGroups (42): groups without members go, with their offsets."""

from collections.abc import Mapping, Sequence
from functools import partial

from pykafka_core.coordinator.group.classic.delete import delete_group
from pykafka_core.coordinator.group.offsets.deletion import MORE
from pykafka_core.errors import NONE
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.groups import coordinate_each
from pykafka_core.handlers.outcome import (
    Coordinate,
    Coordinated,
    Reply,
    Slices,
    collect,
    finish,
)
from pykafka_core.protocol.messages import DeleteGroupsRequest, DeleteGroupsResponse

_Result = DeleteGroupsResponse.DeletableGroupResult


def handle(context: Context, request: DeleteGroupsRequest) -> Slices[Coordinate]:
    """Every group by itself; one that is named twice is answered once, as Kafka does."""
    results = dict.fromkeys(request.groups_names, Coordinated(NONE))
    return (yield from _delete(context, list(results), results))


def _delete(
    context: Context, group_ids: Sequence[str], results: dict[str, Coordinated]
) -> Slices[Coordinate]:
    """Have groups deleted; those with many offsets again until none is left."""
    operations = ((group_id, partial(delete_group, group_id)) for group_id in group_ids)

    def reply(came: Sequence[Coordinated]) -> Reply:
        results.update(zip(group_ids, came, strict=True))
        left = [group_id for group_id in group_ids if results[group_id].answer == MORE]
        return finish(_delete(context, left, results)) if left else _answer(results)

    return (yield from coordinate_each(context, operations, reply))


def _answer(results: Mapping[str, Coordinated]) -> Slices[DeleteGroupsResponse]:
    rows = yield from collect(
        _Result(group_id=group_id, error_code=result.error_code)
        for group_id, result in results.items()
    )
    return DeleteGroupsResponse(results=rows)
