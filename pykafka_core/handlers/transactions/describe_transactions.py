"""DescribeTransactions (65): the states of transactional ids (KIP-664)."""

from collections.abc import Sequence
from functools import partial

from pykafka_core.coordinator.budget import Budget
from pykafka_core.coordinator.transaction.describe import describe_transaction
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.measured import Mention, Reading, coordinate_reads, value_of
from pykafka_core.handlers.coordinators.shards import shard_of
from pykafka_core.handlers.outcome import (
    ShardCalls,
    ShardResult,
    TransactionOperation,
    Work,
    collect,
)
from pykafka_core.protocol.messages import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from pykafka_core.types import TRANSACTION_TOPIC

_State = DescribeTransactionsResponse.TransactionState


RESPONSE_BYTES_MAX = 8 * 1024 * 1024
"""Limit for a response about many transactions, or with repeated ids; the ids after it get an
error."""


def handle(context: Context, request: DescribeTransactionsRequest) -> Work[ShardCalls]:
    """Describe each transactional id separately; a repeated id is read once."""
    names = request.transactional_ids

    def operation(name: str, budget: Budget) -> TransactionOperation | None:
        shard = shard_of(context, TRANSACTION_TOPIC, name)
        run = partial(describe_transaction, name, budget)
        return None if shard is None else TransactionOperation(shard, run)

    reading = Reading(
        operation,
        lambda: map(Mention, names),
        RESPONSE_BYTES_MAX,
        partial(_response, names),
    )
    return (yield from coordinate_reads(reading, dict.fromkeys(names)))


def _response(
    names: Sequence[str], results: Sequence[ShardResult]
) -> Work[DescribeTransactionsResponse]:
    rows = yield from collect(map(_row, names, results))
    return DescribeTransactionsResponse(transaction_states=rows)


def _row(name: str, result: ShardResult) -> DescribeTransactionsResponse.TransactionState:
    described = value_of(result)
    if isinstance(described, _State):
        return described
    return _State(transactional_id=name, error_code=result.error_code)
