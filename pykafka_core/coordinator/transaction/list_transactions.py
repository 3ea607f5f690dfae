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


def list_transactions(state: Transactions, waiter: Waiter, turn: Turn) -> None:
    """Answer with a tuple of all `Transaction`s.

    They are values: the caller looks at some ten thousands of them in its own time, while the shard goes on.
    """
    turn.answer(waiter, tuple(state.by_id.values()))


def listed(transaction: Transaction) -> ListTransactionsResponse.TransactionState:
    """What a client sees of a transaction."""
    return ListTransactionsResponse.TransactionState(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        transaction_state=transaction.state.kafka_name,
    )
