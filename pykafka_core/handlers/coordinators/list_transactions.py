"""ListTransactions (66): the transactional ids that this node coordinates (KIP-664, KIP-994, KIP-1152)."""

from collections.abc import Sequence
from functools import partial

from pykafka_core._core import Pattern
from pykafka_core.coordinator.transaction.list_transactions import (
    TransactionFilters,
    list_transactions,
)
from pykafka_core.coordinator.transaction.states import TransactionState
from pykafka_core.errors import InvalidRegularExpressionError, NotCoordinatorError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Coordinate, Coordinated, Slices, TransactionOperation
from pykafka_core.protocol.messages import ListTransactionsRequest, ListTransactionsResponse
from pykafka_core.types import TRANSACTION_TOPIC


def handle(
    context: Context, request: ListTransactionsRequest
) -> Coordinate | ListTransactionsResponse:
    """Ask all shards here. Unknown states are named in the answer, and match nothing."""
    by_name = {state.kafka_name: state for state in TransactionState}
    known = [by_name[name] for name in request.state_filters if name in by_name]
    unknown = [name for name in request.state_filters if name not in by_name]
    topic = context.image.topics.by_name.get(TRANSACTION_TOPIC)
    if topic is None:
        return ListTransactionsResponse(unknown_state_filters=unknown)
    text = request.transactional_id_pattern
    try:
        pattern = Pattern(text) if text else None
    except ValueError:
        return ListTransactionsResponse(error_code=InvalidRegularExpressionError.code)
    wanted = TransactionFilters(
        states=frozenset(known) if request.state_filters else None,
        producer_ids=frozenset(request.producer_id_filters),
        duration_ms=request.duration_filter,
        matches=pattern.matches if pattern else None,
    )
    led = [
        TransactionOperation(index, partial(list_transactions, wanted))
        for index, partition in topic.partitions.items()
        if partition.leader == context.node.node_id
    ]
    return Coordinate(led, partial(_answer, unknown))


def _answer(unknown: list[str], results: Sequence[Coordinated]) -> Slices[ListTransactionsResponse]:
    rows: list[ListTransactionsResponse.TransactionState] = []
    for result in results:
        if result.error_code == NotCoordinatorError.code:
            continue  # it is another node's by now, which lists its transactions
        if result.error_code:
            return ListTransactionsResponse(error_code=result.error_code)
        assert isinstance(result.answer, tuple), "transactions are listed in a tuple"
        for row in result.answer:
            yield
            rows.append(row)
    return ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=rows)
