"""Runs operations in the shards that coordinate groups."""

from collections.abc import Callable, Iterable, Sequence

from pykafka_core.coordinator.group.group_shard import GroupShard
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.errors import CoordinatorNotAvailableError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.shards import response_of, shard_of
from pykafka_core.handlers.outcome import GroupOperation, Reply, ShardCalls, ShardResult, Work
from pykafka_core.protocol.messages import Message
from pykafka_core.types import GROUP_TOPIC

Run = Callable[[GroupShard, Waiter, CoordinatorResult], None]
"""The field ``run`` of a `GroupOperation`."""


def coordinate(
    context: Context, group_id: str, run: Run, refused: Callable[[int], Message]
) -> ShardCalls | Message:
    """Run an operation in the shard of a group, whose result is the response.

    Args:
        context: Context of the request.
        group_id: Any text; may be empty.
        run: Completes its waiter with the response or an error code.
        refused: Creates the response for an error code.
    """
    operation = group_operation(context, group_id, run)
    if operation is None:
        return refused(CoordinatorNotAvailableError.code)

    return ShardCalls([operation], lambda results: response_of(results[0], refused))


def group_operation(context: Context, group_id: str, run: Run) -> GroupOperation | None:
    """Return an operation in the shard of a group; None if there is no shard."""
    partition = shard_of(context, GROUP_TOPIC, group_id)
    return None if partition is None else GroupOperation(partition, run)


def coordinate_each(
    context: Context,
    operations: Iterable[tuple[str, Run]],
    reply: Callable[[Sequence[ShardResult]], Reply],
) -> Work[ShardCalls]:
    """Run operations in the shards of many groups.

    Args:
        context: Context of the request.
        operations: Group ids and operations.
        reply: Gets one result for each operation, in the same order; COORDINATOR_NOT_AVAILABLE if
            there is no shard.
    """
    found: list[GroupOperation] = []
    places: list[int | None] = []
    for group_id, run in operations:
        yield
        operation = group_operation(context, group_id, run)
        places.append(None if operation is None else len(found))
        if operation is not None:
            found.append(operation)
    absent = ShardResult(CoordinatorNotAvailableError.code)
    return ShardCalls(
        found,
        lambda results: reply([absent if at is None else results[at] for at in places]),
    )
