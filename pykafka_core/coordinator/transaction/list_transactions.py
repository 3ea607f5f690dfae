"""ListTransactions: returns the transactions that match filters."""

from collections.abc import Callable, Set
from typing import NamedTuple

from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.coordinator.transaction.state import Transactions
from pykafka_core.coordinator.transaction.states import TransactionState
from pykafka_core.coordinator.transaction.transaction import Transaction
from pykafka_core.protocol.messages import ListTransactionsResponse


class TransactionFilters(NamedTuple):
    """Filters of a request; all of them must match.

    Args:
        states: None for all. An empty set lists nothing: all states that the client named are
            unknown.
        producer_ids: Empty for all.
        duration_ms: Only transactions that started longer ago; negative for all. As in Kafka, an id
            without a transaction since InitProducerId counts as started in 1970.
        matches: Filter for transactional ids; None for all.
    """

    states: Set[TransactionState] | None = None
    producer_ids: Set[int] = frozenset()
    duration_ms: int = -1
    matches: Callable[[str], bool] | None = None

    def take(self, transaction: Transaction, now_ms: int) -> bool:
        """Return whether a transaction is listed."""
        return (
            (self.states is None or transaction.state in self.states)
            and (not self.producer_ids or transaction.producer_id in self.producer_ids)
            and (self.duration_ms < 0 or now_ms - transaction.start_ms > self.duration_ms)
            and (self.matches is None or self.matches(transaction.transactional_id))
        )


def list_transactions(state: Transactions, waiter: Waiter, result: CoordinatorResult) -> None:
    """Respond with a tuple of all `Transaction`s.

    They are immutable, so the caller can filter ten thousands of them in slices while the shard
    continues.
    """
    result.respond(waiter, tuple(state.by_id.values()))


def listed(transaction: Transaction) -> ListTransactionsResponse.TransactionState:
    """Return a transaction as in the response."""
    return ListTransactionsResponse.TransactionState(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        transaction_state=transaction.state.kafka_name,
    )
