"""AddPartitionsToTxn that only verifies whether a broker may append a client's records."""

from collections.abc import Collection

from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
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
    result: CoordinatorResult,
) -> None:
    """Check which partitions are in the transaction; the response is a dict of error codes by
    partition.

    A partition that is not in it has TRANSACTION_ABORTABLE; the caller maps it to other errors for
    older clients.

    Raises:
        InvalidRequestError: The transactional id is empty.
        InvalidProducerIdMappingError: The transactional id is unknown, or has another producer id.
        ProducerFencedError: The producer has another epoch.
        ConcurrentTransactionsError: The transaction is prepared.
    """
    transaction = state.known(transactional_id)
    transaction.check_producer(producer_id, producer_epoch)
    if transaction.state.is_prepared:
        raise ConcurrentTransactionsError
    is_in = transaction.partitions.__contains__
    codes = {one: NONE if is_in(one) else TransactionAbortableError.code for one in partitions}
    result.respond(waiter, codes)
