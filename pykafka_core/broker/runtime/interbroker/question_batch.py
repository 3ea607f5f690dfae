"""AddPartitionsToTxn (24) of brokers, since version 4: queries about many transactions to one
coordinator.

Pure functions. The caller maps each error code to one for the producer.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pykafka_core.broker.runtime.interbroker.broker_channel import BrokerApi, BrokerResponse
from pykafka_core.errors import (
    ClusterAuthorizationFailedError,
    InvalidTxnStateError,
    NetworkError,
    OperationNotAttemptedError,
)
from pykafka_core.handlers.outcome import ShardResult, TransactionQuery
from pykafka_core.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

ADD_PARTITIONS_TO_TXN = BrokerApi(24, (4, 5), "transaction verification")
PARTITIONS_MAX = 2_000
"""Limit for one request."""

_Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
_Topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic


def request_of(questions: Iterable[TransactionQuery]) -> AddPartitionsToTxnRequest:
    """Return a request for different transactions; a response identifies them by transactional
    id.
    """
    return AddPartitionsToTxnRequest(transactions=[_transaction(one) for one in questions])


def _transaction(
    question: TransactionQuery,
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


def results_of(
    questions: Sequence[TransactionQuery], response: BrokerResponse
) -> Iterator[ShardResult]:
    """Yield the result of each query, mapped as by ``AddPartitionsToTxnManager``.

    If all partitions have the same error code, it is the code of the query.
    """
    message = response.message
    if response.error_code or not isinstance(message, AddPartitionsToTxnResponse):
        yield from (ShardResult(NetworkError.code) for _ in questions)
    elif message.error_code:
        code = message.error_code
        is_refused = code == ClusterAuthorizationFailedError.code
        error_code = InvalidTxnStateError.code if is_refused else code
        yield from (ShardResult(error_code) for _ in questions)
    else:
        found = {one.transactional_id: one for one in message.results_by_transaction}
        for question in questions:
            yield _result(question, found.get(question.transactional_id))


def _result(
    question: TransactionQuery,
    found: AddPartitionsToTxnResponse.AddPartitionsToTxnResult | None,
) -> ShardResult:
    rows = {
        (topic.name, row.partition_index): row.partition_error_code
        for topic in (found.topic_results if found is not None else ())
        for row in topic.results_by_partition
    }
    codes = {place: _code_of_row(rows.get(place)) for place in question.partitions}
    return _of_all(codes)


def _code_of_row(code: int | None) -> int:
    """A partition that is missing, or was not attempted because of another partition, can be
    retried.
    """
    if code is None or code == OperationNotAttemptedError.code:
        return NetworkError.code
    return code


def _of_all(codes: Mapping[tuple[str, int], int]) -> ShardResult:
    different = set(codes.values())
    (code,) = different if len(different) == 1 else (0,)
    return ShardResult(code) if code else ShardResult(0, codes)
