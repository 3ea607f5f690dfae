"""AddPartitionsToTxn and AddOffsetsToTxn: start a transaction, or add partitions to it."""

from collections.abc import Collection
from sys import intern

from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.coordinator.transaction.state import Transactions
from pykafka_core.coordinator.transaction.states import TransactionState
from pykafka_core.coordinator.transaction.transaction import (
    NO_PRODUCER_ID,
    TV1,
    TV2,
    TopicPartition,
)
from pykafka_core.errors import ConcurrentTransactionsError, PolicyViolationError

PARTITIONS_MAX = 10_000
"""Limit for one transaction. Kafka's only limit is the size of the record, which is written again
with each addition."""


def add_partitions(
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: Collection[TopicPartition],
    transaction_version: int,
    state: Transactions,
    waiter: Waiter,
    result: CoordinatorResult,
) -> None:
    """Add partitions to a transaction; the response is None.

    Nothing is stored if all are already in it.

    Args:
        transaction_version: `TV2` if a broker adds them for a client, else `TV1`.

    Raises:
        InvalidRequestError: The transactional id is empty.
        InvalidProducerIdMappingError: The transactional id is unknown, or has another producer id.
        ConcurrentTransactionsError: The last transaction is prepared but not complete.
        ProducerFencedError: The producer has another epoch.
        PolicyViolationError: The limit of a transaction or of a shard is exceeded.
    """
    transaction = state.known(transactional_id)
    if transaction.state.is_prepared:
        raise ConcurrentTransactionsError
    transaction.check_producer(producer_id, producer_epoch)
    is_open = transaction.state is TransactionState.ONGOING
    if not (is_open and transaction.partitions.issuperset(partitions)):
        new = frozenset((intern(topic), partition) for topic, partition in partitions)
        grown = transaction._replace(
            state=TransactionState.ONGOING,
            previous_producer_id=NO_PRODUCER_ID,
            partitions=transaction.partitions | new,
            start_ms=transaction.start_ms if is_open else result.now_ms,
            last_update_ms=result.now_ms,
            client_version=transaction_version if transaction_version >= TV2 else TV1,
        )
        if len(grown.partitions) > PARTITIONS_MAX:
            raise PolicyViolationError(f"a transaction has at most {PARTITIONS_MAX} partitions")
        state.store(grown, result)
    result.respond(waiter, None)
