"""DescribeTransactions (65): the states of transactional ids (KIP-664)."""

from collections.abc import Mapping, Sequence
from functools import partial

from pykafka_core.coordinator.transaction.describe import describe_transaction
from pykafka_core.errors import CoordinatorNotAvailableError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.shards import shard_of
from pykafka_core.handlers.outcome import ShardCalls, ShardResult, TransactionOperation, Work
from pykafka_core.protocol.messages import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from pykafka_core.types import TRANSACTION_TOPIC

_State = DescribeTransactionsResponse.TransactionState


RESPONSE_BYTES_MAX = 8 * 1024 * 1024
"""Limit for a response about many transactions, or with repeated ids; the ids after it get an
error."""
_PARTITION_BYTES = 4
_TOPIC_BYTES = 250
"""Maximum size of a topic in a response, without its partitions."""


def handle(context: Context, request: DescribeTransactionsRequest) -> Work[ShardCalls]:
    """Describe each transactional id separately; a repeated id is read once."""
    named: dict[str, TransactionOperation | None] = {}
    for name in request.transactional_ids:
        yield
        if name not in named:
            shard = shard_of(context, TRANSACTION_TOPIC, name)
            run = partial(describe_transaction, name)
            named[name] = None if shard is None else TransactionOperation(shard, run)

    def reply(results: Sequence[ShardResult]) -> Work[DescribeTransactionsResponse]:
        came = iter(results)
        absent = ShardResult(CoordinatorNotAvailableError.code)
        by_name = {name: next(came) if operation else absent for name, operation in named.items()}
        return _response(request, by_name)

    return ShardCalls([one for one in named.values() if one], reply)


def _response(
    request: DescribeTransactionsRequest, results: Mapping[str, ShardResult]
) -> Work[DescribeTransactionsResponse]:
    rows = []
    bytes_left = RESPONSE_BYTES_MAX
    for name in request.transactional_ids:
        yield
        result = results[name]
        if bytes_left <= 0:
            result = ShardResult(CoordinatorNotAvailableError.code)
        row = _row(name, result)
        bytes_left -= sum(
            _TOPIC_BYTES + _PARTITION_BYTES * len(topic.partitions) for topic in row.topics
        )
        rows.append(row)
    return DescribeTransactionsResponse(transaction_states=rows)


def _row(name: str, result: ShardResult) -> DescribeTransactionsResponse.TransactionState:
    if isinstance(result.value, _State):
        return result.value
    return _State(transactional_id=name, error_code=result.error_code)
