"""ListTransactions: which transactions there are."""

from collections.abc import Callable, Set
from typing import NamedTuple

from pykafka_core.coordinator.shard import Turn, Waiter
from pykafka_core.coordinator.transaction.state import Transactions
from pykafka_core.coordinator.transaction.states import TransactionState
from pykafka_core.coordinator.transaction.transaction import Transaction
from pykafka_core.protocol.messages import ListTransactionsResponse


class TransactionFilters(NamedTuple):
    """What is wanted; all of it must hold.

    Args:
        states: None for all. An empty set lists nothing: all that the client named are unknown.
        producer_ids: All if empty.
        duration_ms: Only what began longer ago; negative for all. As in Kafka, an id without a transaction since
            InitProducerId counts as begun in 1970.
        matches: Whether a transactional id is wanted; None for all.
    """

    states: Set[TransactionState] | None = None
    producer_ids: Set[int] = frozenset()
    duration_ms: int = -1
    matches: Callable[[str], bool] | None = None

    def take(self, transaction: Transaction, now_ms: int) -> bool:
        """Whether a transaction is listed."""
        return (
            (self.states is None or transaction.state in self.states)
            and (not self.producer_ids or transaction.producer_id in self.producer_ids)
            and (self.duration_ms < 0 or now_ms - transaction.start_ms > self.duration_ms)
            and (self.matches is None or self.matches(transaction.transactional_id))
        )


def list_transactions(
    filters: TransactionFilters, state: Transactions, waiter: Waiter, turn: Turn
) -> None:
    """Answer with a tuple of `ListTransactionsResponse.TransactionState`."""
    listed = tuple(
        ListTransactionsResponse.TransactionState(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            transaction_state=transaction.state.kafka_name,
        )
        for transaction in state.by_id.values()
        if filters.take(transaction, turn.now_ms)
    )
    turn.answer(waiter, listed)
