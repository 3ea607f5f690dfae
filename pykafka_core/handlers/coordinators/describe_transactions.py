"""DescribeTransactions (65): KIP-664."""

from collections.abc import Sequence
from functools import partial

from pykafka_core.coordinator.transaction.describe import describe_transaction
from pykafka_core.errors import CoordinatorNotAvailableError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.shards import shard_of
from pykafka_core.handlers.outcome import Coordinate, Coordinated, Slices, TransactionOperation
from pykafka_core.protocol.messages import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from pykafka_core.types import TRANSACTION_TOPIC

_State = DescribeTransactionsResponse.TransactionState


def handle(context: Context, request: DescribeTransactionsRequest) -> Slices[Coordinate]:
    """Each transactional id by itself."""
    operations: list[TransactionOperation | None] = []
    for name in request.transactional_ids:
        yield
        shard = shard_of(context, TRANSACTION_TOPIC, name)
        run = partial(describe_transaction, name)
        operations.append(None if shard is None else TransactionOperation(shard, run))

    def reply(results: Sequence[Coordinated]) -> Slices[DescribeTransactionsResponse]:
        came = iter(results)
        absent = Coordinated(CoordinatorNotAvailableError.code)
        rows = []
        for name, operation in zip(request.transactional_ids, operations, strict=True):
            yield
            rows.append(_row(name, next(came) if operation else absent))
        return DescribeTransactionsResponse(transaction_states=rows)

    return Coordinate([one for one in operations if one], reply)


def _row(name: str, result: Coordinated) -> DescribeTransactionsResponse.TransactionState:
    if isinstance(result.answer, _State):
        return result.answer
    return _State(transactional_id=name, error_code=result.error_code)
