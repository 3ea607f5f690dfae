"""Finds the shard that coordinates a key."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from pykafka_core.coordinator.partitions import coordinator_partition
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.coordinator.transaction.transaction_shard import TransactionShard
from pykafka_core.errors import CoordinatorNotAvailableError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Reply, ShardCalls, ShardResult, TransactionOperation
from pykafka_core.metadata.image.image import NO_LEADER
from pykafka_core.protocol.messages import Message
from pykafka_core.types import TRANSACTION_TOPIC

R = TypeVar("R", bound=Reply)

RunTransaction = Callable[[TransactionShard, Waiter, CoordinatorResult], None]
"""The field ``run`` of a `TransactionOperation`."""


def shard_of(context: Context, topic: str, key: str) -> int | None:
    """Return the partition of a coordinator's topic that coordinates ``key``; None if it does not
    exist or has no leader.
    """
    found = context.image.topics.by_name.get(topic)
    if found is None or not found.partitions:
        return None
    index = coordinator_partition(key, len(found.partitions))
    partition = found.partitions.get(index)
    return None if partition is None or partition.leader == NO_LEADER else index


def coordinate_transaction(
    context: Context,
    transactional_id: str,
    run: RunTransaction,
    reply: Callable[[ShardResult], R],
) -> ShardCalls | R:
    """Run an operation in the shard of a transactional id.

    Args:
        context: Context of the request.
        transactional_id: Any text.
        run: Completes its waiter.
        reply: Gets the result; COORDINATOR_NOT_AVAILABLE if there is no shard.
    """
    shard = shard_of(context, TRANSACTION_TOPIC, transactional_id)
    if shard is None:
        return reply(ShardResult(CoordinatorNotAvailableError.code))

    def of_one(results: Sequence[ShardResult]) -> Reply:
        return reply(results[0])

    return ShardCalls([TransactionOperation(shard, run)], of_one)


def response_of(result: ShardResult, refused: Callable[[int], Message]) -> Message:
    """Return the response of a shard, or the response for its error code."""
    if result.error_code:
        return refused(result.error_code)
    assert isinstance(result.value, Message), "a shard answers with a response"
    return result.value
