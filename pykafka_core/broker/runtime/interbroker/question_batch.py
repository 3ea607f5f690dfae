"""AddPartitionsToTxn (24) as brokers send it, since version 4: questions about many transactions to one coordinator.

Pure. What the producer is told of each code is up to who asked.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pykafka_core.broker.runtime.interbroker.broker_channel import Answer, BrokerApi
from pykafka_core.errors import (
    ClusterAuthorizationFailedError,
    InvalidTxnStateError,
    NetworkError,
    OperationNotAttemptedError,
)
from pykafka_core.handlers.outcome import Coordinated, TransactionQuestion
from pykafka_core.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

ADD_PARTITIONS_TO_TXN = BrokerApi(24, (4, 5), "transaction verification")
PARTITIONS_MAX = 2_000
"""In one request."""

_Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
_Topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic


def request_of(questions: Iterable[TransactionQuestion]) -> AddPartitionsToTxnRequest:
    """One request of questions about different transactions: an answer names them by their transactional ids."""
    return AddPartitionsToTxnRequest(transactions=[_transaction(one) for one in questions])


def _transaction(
    question: TransactionQuestion,
) -> AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction:
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for topic, index in question.partitions:
        by_topic[topic].append(index)
    return _Transaction(
        transactional_id=question.transactional_id,
        producer_id=question.producer_id,
        producer_epoch=question.producer_epoch,
        verify_only=not question.add,
        topics=[_Topic(name=name, partitions=indexes) for name, indexes in by_topic.items()],
    )


def results_of(questions: Sequence[TransactionQuestion], answer: Answer) -> Iterator[Coordinated]:
    """What came of each question, as ``AddPartitionsToTxnManager`` takes the answer.

    A code that all partitions have is that of the question.
    """
    message = answer.message
    if answer.error_code or not isinstance(message, AddPartitionsToTxnResponse):
        yield from (Coordinated(NetworkError.code) for _ in questions)
    elif message.error_code:
        code = message.error_code
        is_refused = code == ClusterAuthorizationFailedError.code
        told = InvalidTxnStateError.code if is_refused else code
        yield from (Coordinated(told) for _ in questions)
    else:
        found = {one.transactional_id: one for one in message.results_by_transaction}
        for question in questions:
            yield _result(question, found.get(question.transactional_id))


def _result(
    question: TransactionQuestion,
    found: AddPartitionsToTxnResponse.AddPartitionsToTxnResult | None,
) -> Coordinated:
    rows = {
        (topic.name, row.partition_index): row.partition_error_code
        for topic in (found.topic_results if found is not None else ())
        for row in topic.results_by_partition
    }
    codes = {place: _told(rows.get(place)) for place in question.partitions}
    return _of_all(codes)


def _told(code: int | None) -> int:
    """A partition that is not named, or for which nothing was done because of another one, may be asked for again."""
    if code is None or code == OperationNotAttemptedError.code:
        return NetworkError.code
    return code


def _of_all(codes: Mapping[tuple[str, int], int]) -> Coordinated:
    different = set(codes.values())
    (code,) = different if len(different) == 1 else (0,)
    return Coordinated(code) if code else Coordinated(0, codes)
