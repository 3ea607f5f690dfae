"""ListTransactions (66): the transactional ids that this node coordinates.

KIP-664, KIP-994, KIP-1152.
"""

from collections.abc import Sequence
from functools import partial

from pykafka_core._core import Pattern
from pykafka_core.coordinator.budget import encoded_length_max
from pykafka_core.coordinator.transaction.list_transactions import (
    TransactionFilters,
    list_transactions,
    listed,
)
from pykafka_core.coordinator.transaction.states import BY_NAME
from pykafka_core.coordinator.transaction.transaction import Transaction
from pykafka_core.errors import InvalidRegularExpressionError, NotCoordinatorError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import (
    Made,
    Reserve,
    ShardCalls,
    ShardResult,
    TransactionOperation,
    Work,
    collect,
)
from pykafka_core.protocol.messages import ListTransactionsRequest, ListTransactionsResponse
from pykafka_core.types import TRANSACTION_TOPIC

_ROW_BYTES = 160
"""Size of a row, encoded and as an object, without its transactional id."""


def handle(
    context: Context, request: ListTransactionsRequest
) -> Work[ShardCalls | ListTransactionsResponse]:
    """List the transactions of all shards on this node. Unknown states match nothing, and are
    listed in the response.
    """
    named = yield from collect(request.state_filters)
    unknown = [name for name in named if name not in BY_NAME]
    topic = context.image.topics.by_name.get(TRANSACTION_TOPIC)
    if topic is None:
        return ListTransactionsResponse(unknown_state_filters=unknown)
    text = request.transactional_id_pattern
    try:
        pattern = Pattern(text) if text else None
    except ValueError:
        return ListTransactionsResponse(error_code=InvalidRegularExpressionError.code)
    filters = TransactionFilters(
        states={BY_NAME[name] for name in named if name in BY_NAME} if named else None,
        producer_ids=set((yield from collect(request.producer_id_filters))),
        duration_ms=request.duration_filter,
        matches=pattern.matches if pattern else None,
    )
    led = [
        TransactionOperation(index, list_transactions)
        for index, partition in topic.partitions.items()
        if partition.leader == context.node.node_id
    ]
    return ShardCalls(led, partial(_reserve, filters, context.now_ms, unknown))


def _reserve(
    filters: TransactionFilters, now_ms: int, unknown: list[str], results: Sequence[ShardResult]
) -> Work[Made]:
    """Choose the transactions, and reserve the memory of the response."""
    chosen: list[Transaction] = []
    size = sum(map(encoded_length_max, unknown))
    for result in results:
        if result.error_code == NotCoordinatorError.code:
            continue  # another node leads the partition now, and lists its transactions
        if result.error_code:
            return ListTransactionsResponse(error_code=result.error_code)
        assert isinstance(result.value, tuple), "transactions are listed in a tuple"
        for transaction in result.value:
            yield
            if filters.take(transaction, now_ms):
                chosen.append(transaction)
                size += _ROW_BYTES + encoded_length_max(transaction.transactional_id)
    return Reserve(size, partial(_response, unknown, chosen))


def _response(unknown: list[str], chosen: Sequence[Transaction]) -> Work[ListTransactionsResponse]:
    rows = yield from collect(map(listed, chosen))
    return ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=rows)
