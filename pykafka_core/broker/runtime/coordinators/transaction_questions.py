"""Questions to the coordinator of a transaction: the shard on this node, or the node that leads its partition.

The node that leads a partition asks before a transaction begins there; the transaction's coordinator may be on another
one. As in ``AddPartitionsToTxnManager`` one request is under way to a node, with questions about many transactions; one
about the same transaction waits for the next. Nothing is asked twice: what has no answer is NETWORK_EXCEPTION, and the
client comes again.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.interbroker.batched_requests import BatchedRequests
from pykafka_core.broker.runtime.interbroker.broker_channel import Answer, BrokerChannel
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
from pykafka_core.handlers.outcome import Coordinated, TransactionOperation, TransactionQuestion
from pykafka_core.metadata.image.image import NO_LEADER
from pykafka_core.types import TRANSACTION_TOPIC

Settle = Callable[[Coordinated], None]
"""Gets what came of a question, once."""


class _Asked(NamedTuple):
    question: TransactionQuestion
    settle: Settle


class TransactionQuestions:
    """Asks coordinators. Belongs to the control thread.

    Args:
        node_id: This node.
        publisher: Has the committed image, which says who leads their partitions.
        channel: To other brokers.
        faults: Takes note of an answer that fails alone.
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
        self._elsewhere = BatchedRequests[_Asked](
            channel,
            faults,
            api=ADD_PARTITIONS_TO_TXN,
            outbox=Outbox(
                key=lambda asked: asked.question.transactional_id,
                size=lambda asked: len(asked.question.partitions),
                size_max=PARTITIONS_MAX,
                is_wanted=lambda _: True,
            ),
            request=lambda all_asked: request_of(one.question for one in all_asked),
            answered=_settle,
        )

    def ask(self, question: TransactionQuestion, settle: Settle) -> None:
        """Ask; ``settle`` is called once, in this turn or in a later one, unless the broker stops.

        Where nobody leads the coordinator's partition it gets COORDINATOR_NOT_AVAILABLE.
        """
        topic = self._publisher.image.topics.by_name.get(TRANSACTION_TOPIC)
        if topic is None or not topic.partitions:
            settle(Coordinated(CoordinatorNotAvailableError.code))
            return
        index = coordinator_partition(question.transactional_id, len(topic.partitions))
        partition = topic.partitions.get(index)
        leader = NO_LEADER if partition is None else partition.leader
        if leader == NO_LEADER:
            settle(Coordinated(CoordinatorNotAvailableError.code))
        elif leader == self._node_id:
            self._run(TransactionOperation(index, _operation(question)), settle)
        else:
            self._elsewhere.put(leader, _Asked(question, settle))

    @property
    def is_busy(self) -> bool:
        """Whether `advance` has something to do."""
        return self._elsewhere.is_busy

    def advance(self) -> None:
        """Send what waits."""
        self._elsewhere.advance()

    def drop_all(self) -> None:
        """The broker stops: whoever waited has been told."""
        self._elsewhere.drop_all()


def _operation(question: TransactionQuestion) -> RunTransaction:
    wanted = (
        question.transactional_id,
        question.producer_id,
        question.producer_epoch,
        question.partitions,
    )
    if question.add:
        return partial(add_partitions, *wanted, TV2)
    return partial(verify_partitions, *wanted)


def _settle(all_asked: Sequence[_Asked], answer: Answer) -> None:
    results = results_of([one.question for one in all_asked], answer)
    for one, result in zip(all_asked, results, strict=True):
        one.settle(result)
