"""Aborts transactions that are open for too long, as
``TransactionCoordinator.abortTimedOutTransactions``.

Kafka searches for them at an interval; here each has a deadline.
"""

from pykafka_core.coordinator.shard import CoordinatorResult
from pykafka_core.coordinator.transaction.prepare import fence
from pykafka_core.coordinator.transaction.state import Transactions
from pykafka_core.coordinator.transaction.states import TransactionState
from pykafka_core.coordinator.transaction.timers.keys import Timeout
from pykafka_core.errors import KafkaError
from pykafka_core.types import NS_PER_MS


def arm_timeouts(state: Transactions, result: CoordinatorResult) -> None:
    """Schedule the abort of all open transactions at their timeouts; those already past time out
    immediately.
    """
    for transaction in state.by_id.values():
        if transaction.state is TransactionState.ONGOING:
            state.arm_timeout(transaction, result)


def abort_timed_out(key: Timeout, state: Transactions, result: CoordinatorResult) -> None:
    """Abort an open transaction with a new epoch; after an error, retry after the interval of
    Kafka's search.
    """
    transaction = state.by_id[key.transactional_id]
    assert transaction.state is TransactionState.ONGOING, "only an open one has a deadline"
    try:
        fence(transaction, state, result)
    except KafkaError:
        interval_ms = state.settings.abort_timed_out_interval_ms
        state.deadlines.set(key, result.now_ns + interval_ms * NS_PER_MS)
