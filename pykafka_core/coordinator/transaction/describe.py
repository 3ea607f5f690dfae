"""DescribeTransactions: returns one transaction."""

from collections import defaultdict

from pykafka_core.coordinator.shard import CoordinatorResult, Waiter
from pykafka_core.coordinator.transaction.state import Transactions, check_id
from pykafka_core.errors import TransactionalIdNotFoundError
from pykafka_core.protocol.messages import DescribeTransactionsResponse


def describe_transaction(
    transactional_id: str, state: Transactions, waiter: Waiter, result: CoordinatorResult
) -> None:
    """Respond with a `DescribeTransactionsResponse.TransactionState`; the caller removes
    unauthorized topics.

    Raises:
        InvalidRequestError: The transactional id is empty.
        TransactionalIdNotFoundError: It is unknown.
    """
    transaction = state.by_id.get(check_id(transactional_id))
    if transaction is None:
        raise TransactionalIdNotFoundError
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(transaction.partitions):
        topics[topic].append(partition)
    described = DescribeTransactionsResponse.TransactionState(
        transactional_id=transactional_id,
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
    result.respond(waiter, described)
