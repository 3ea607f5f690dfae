"""DescribeTransactions: returns one transaction."""

from collections import defaultdict
from functools import partial

from pykafka_core.coordinator.budget import Budget, encoded_length_max
from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.coordinator.transaction.state import Transactions, check_id
from pykafka_core.coordinator.transaction.transaction import Transaction
from pykafka_core.errors import TransactionalIdNotFoundError
from pykafka_core.protocol.messages import DescribeTransactionsResponse

_STATE_BYTES = 320
"""Upper bound of a transaction as an object and in a response, without its id and partitions. It is
not part of `Read.size`, which is limited."""
_PARTITION_BYTES = 4
_TOPIC_BYTES = 250
"""Maximum size of a topic in a response, without its partitions."""
_HELD_BYTES = 256
"""Upper bound of a topic as an object, without its fields."""
_HELD_PARTITION_BYTES = 24
"""Upper bound of a partition in a list, and in the sorted list of all partitions."""


def describe_transaction(
    transactional_id: str,
    budget: Budget,
    state: Transactions,
    waiter: Waiter,
    result: CoordinatorResult,
) -> None:
    """Respond with a `Read` of a `DescribeTransactionsResponse.TransactionState`; the caller
    removes unauthorized topics.

    Args:
        transactional_id: Any text.
        budget: Memory for the description.
        state: State of the shard.
        waiter: The request.
        result: The result of this operation.

    Raises:
        InvalidRequestError: The transactional id is empty.
        TransactionalIdNotFoundError: It is unknown.
    """
    transaction = state.by_id.get(check_id(transactional_id))
    if transaction is None:
        raise TransactionalIdNotFoundError
    topics, partitions = len({place[0] for place in transaction.partitions}), transaction.partitions
    size = _TOPIC_BYTES * topics + _PARTITION_BYTES * len(partitions)
    held_bytes = _STATE_BYTES + encoded_length_max(transactional_id)
    held_bytes += _HELD_BYTES * topics + _HELD_PARTITION_BYTES * len(partitions)
    result.respond(waiter, budget.read(size, held_bytes, partial(_described, transaction)))


def _described(transaction: Transaction) -> DescribeTransactionsResponse.TransactionState:
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(transaction.partitions):
        topics[topic].append(partition)
    return DescribeTransactionsResponse.TransactionState(
        transactional_id=transaction.transactional_id,
        transaction_state=transaction.state.kafka_name,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[
            DescribeTransactionsResponse.TopicData(topic=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ],
    )
