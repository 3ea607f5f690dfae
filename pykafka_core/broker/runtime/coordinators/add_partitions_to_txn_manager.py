"""Queries to the coordinator of a transaction: to the shard on this node, or to the node that leads
the shard's partition.

The leader of a partition sends a query before a transaction's first records in that partition; the
transaction's coordinator may be on another node. As in ``AddPartitionsToTxnManager``, at most one
request is in flight per node, with queries about many transactions. A second query about the same
transaction waits for the next request. Queries are not retried: without a response, the result is
NETWORK_EXCEPTION, and the client retries.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.interbroker.batched_requests import BatchedRequests
from pykafka_core.broker.runtime.interbroker.broker_channel import BrokerChannel, BrokerResponse
from pykafka_core.broker.runtime.interbroker.outbox import Outbox
from pykafka_core.broker.runtime.interbroker.question_batch import (
    ADD_PARTITIONS_TO_TXN,
    PARTITIONS_MAX,
    request_of,
    results_of,
)
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.coordinator.partitions import coordinator_partition
from pykafka_core.coordinator.transaction.add_partitions import add_partitions
from pykafka_core.coordinator.transaction.transaction import TV2
from pykafka_core.coordinator.transaction.verify_partitions import verify_partitions
from pykafka_core.errors import CoordinatorNotAvailableError
from pykafka_core.handlers.coordinators.shards import RunTransaction
from pykafka_core.handlers.outcome import ShardResult, TransactionOperation, TransactionQuery
from pykafka_core.metadata.image.image import NO_LEADER
from pykafka_core.types import TRANSACTION_TOPIC

Settle = Callable[[ShardResult], None]
"""Called once with the result of a query."""


class _PendingQuestion(NamedTuple):
    question: TransactionQuery
    settle: Settle


class AddPartitionsToTxnManager:
    """Sends queries to coordinators. Used only by the control thread.

    Args:
        node_id: This node.
        publisher: Has the committed image with the leaders of the coordinators' partitions.
        channel: Sends requests to other brokers.
        faults: Records an error in the handling of a response.
        run: Runs an operation of a shard of this node.
    """

    def __init__(
        self,
        *,
        node_id: int,
        publisher: Publisher,
        channel: BrokerChannel,
        faults: Faults,
        run: Callable[[TransactionOperation, Settle], None],
    ) -> None:
        self._node_id = node_id
        self._publisher = publisher
        self._run = run
        self._elsewhere = BatchedRequests[_PendingQuestion](
            channel,
            faults,
            api=ADD_PARTITIONS_TO_TXN,
            outbox=Outbox(
                key=lambda one: one.question.transactional_id,
                size=lambda one: len(one.question.partitions),
                size_max=PARTITIONS_MAX,
                is_wanted=lambda _: True,
            ),
            request=lambda all_: request_of(one.question for one in all_),
            on_response=_settle,
        )

    def ask(self, question: TransactionQuery, settle: Settle) -> None:
        """Send a query; ``settle`` is called once, in this turn or in a later one, unless the
        broker stops.

        The result is COORDINATOR_NOT_AVAILABLE if the coordinator's partition has no leader.
        """
        topic = self._publisher.image.topics.by_name.get(TRANSACTION_TOPIC)
        if topic is None or not topic.partitions:
            settle(ShardResult(CoordinatorNotAvailableError.code))
            return
        index = coordinator_partition(question.transactional_id, len(topic.partitions))
        partition = topic.partitions.get(index)
        leader = NO_LEADER if partition is None else partition.leader
        if leader == NO_LEADER:
            settle(ShardResult(CoordinatorNotAvailableError.code))
        elif leader == self._node_id:
            self._run(TransactionOperation(index, _operation(question)), settle)
        else:
            self._elsewhere.put(leader, _PendingQuestion(question, settle))

    @property
    def is_busy(self) -> bool:
        """Whether `advance` has queries to send."""
        return self._elsewhere.is_busy

    def advance(self) -> None:
        """Send the queued queries."""
        self._elsewhere.advance()

    def drop_all(self) -> None:
        """Drop all queries when the broker stops; all requests already have responses."""
        self._elsewhere.drop_all()


def _operation(question: TransactionQuery) -> RunTransaction:
    wanted = (
        question.transactional_id,
        question.producer_id,
        question.producer_epoch,
        question.partitions,
    )
    if question.add:
        return partial(add_partitions, *wanted, TV2)
    return partial(verify_partitions, *wanted)


def _settle(all_asked: Sequence[_PendingQuestion], response: BrokerResponse) -> None:
    results = results_of([one.question for one in all_asked], response)
    for one, result in zip(all_asked, results, strict=True):
        one.settle(result)
