"""AddPartitionsToTxn and AddOffsetsToTxn: a transaction begins, or reaches more partitions."""

from collections.abc import Collection
from sys import intern

from pykafka_core.coordinator.shard import Turn, Waiter
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
"""In one transaction. Kafka has no limit but the size of the record, which is written again with each addition."""


def add_partitions(
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: Collection[TopicPartition],
    transaction_version: int,
    state: Transactions,
    waiter: Waiter,
    turn: Turn,
) -> None:
    """Add partitions to a transaction; answered with None. Nothing is stored when all are in.

    Args:
        transaction_version: `TV2` if a broker adds them for a client, else `TV1`.

    Raises:
        InvalidRequestError: The transactional id is empty.
        InvalidProducerIdMappingError: The transactional id is unknown, or has another producer id.
        ConcurrentTransactionsError: The last transaction is decided and not complete.
        ProducerFencedError: The producer has another epoch.
        PolicyViolationError: These are more than one transaction, or a shard, can have.
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
            start_ms=transaction.start_ms if is_open else turn.now_ms,
            last_update_ms=turn.now_ms,
            client_version=transaction_version if transaction_version >= TV2 else TV1,
        )
        if len(grown.partitions) > PARTITIONS_MAX:
            raise PolicyViolationError(f"a transaction has at most {PARTITIONS_MAX} partitions")
        state.store(grown, turn)
    turn.answer(waiter, None)
