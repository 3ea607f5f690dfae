"""AddPartitionsToTxn that only verifies: whether a broker may append a client's records."""

from collections.abc import Collection

from pykafka_core.coordinator.shard import Turn, Waiter
from pykafka_core.coordinator.transaction.state import Transactions
from pykafka_core.coordinator.transaction.transaction import TopicPartition
from pykafka_core.errors import NONE, ConcurrentTransactionsError, TransactionAbortableError


def verify_partitions(
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: Collection[TopicPartition],
    state: Transactions,
    waiter: Waiter,
    turn: Turn,
) -> None:
    """Say which partitions are in the transaction; answered with a dict of error codes by partition.

    One that is not in it has TRANSACTION_ABORTABLE; what older clients are told instead is up to the caller.

    Raises:
        InvalidRequestError: The transactional id is empty.
        InvalidProducerIdMappingError: The transactional id is unknown, or has another producer id.
        ProducerFencedError: The producer has another epoch.
        ConcurrentTransactionsError: The transaction is decided.
    """
    transaction = state.known(transactional_id)
    transaction.check_producer(producer_id, producer_epoch)
    if transaction.state.is_prepared:
        raise ConcurrentTransactionsError
    is_in = transaction.partitions.__contains__
    codes = {one: NONE if is_in(one) else TransactionAbortableError.code for one in partitions}
    turn.answer(waiter, codes)
