"""AddPartitionsToTxn (24): adds partitions to transactions.

Clients send versions up to 3, for one transaction. Brokers send later versions, for many
transactions, and may only verify that partitions are part of a transaction (KIP-890).
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from pykafka_core.coordinator.transaction.add_partitions import add_partitions
from pykafka_core.coordinator.transaction.transaction import TV1, TV2
from pykafka_core.coordinator.transaction.verify_partitions import verify_partitions
from pykafka_core.errors import (
    NONE,
    CoordinatorNotAvailableError,
    OperationNotAttemptedError,
    UnknownTopicOrPartitionError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.shards import RunTransaction, shard_of
from pykafka_core.handlers.outcome import (
    ShardCalls,
    ShardResult,
    TransactionOperation,
    Work,
)
from pykafka_core.handlers.transactions.fencing import known_to
from pykafka_core.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from pykafka_core.types import TRANSACTION_TOPIC

FENCED_VERSION = 2
BATCHED_VERSION = 4
"""From this version on a request has many transactions, and the response a top-level error."""

_Topics = Sequence[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]
_Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
_TopicResult = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
_Row = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult
_TopicPartition = tuple[str, int]


class _RequestedTransaction(NamedTuple):
    """One transaction of the request.

    Attributes:
        topics: The requested partitions.
        missing: Those that do not exist.
        operation: None if a partition is missing, or if the transaction has no coordinator.
    """

    topics: _Topics
    missing: Collection[_TopicPartition]
    operation: TransactionOperation | None


def handle(
    context: Context, request: AddPartitionsToTxnRequest
) -> Work[ShardCalls | AddPartitionsToTxnResponse]:
    """Add or verify all partitions of each transaction, or reject all if one does not exist."""
    asked: list[_RequestedTransaction] = []
    for one in _transactions(context, request):
        asked.append((yield from _asked(context, one)))
    operations = [one.operation for one in asked if one.operation]

    def reply(results: Sequence[ShardResult]) -> Work[AddPartitionsToTxnResponse]:
        return _response(context, request, asked, results)

    return ShardCalls(operations, reply)


def _transactions(
    context: Context, request: AddPartitionsToTxnRequest
) -> Sequence[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction]:
    if context.caller.api_version >= BATCHED_VERSION:
        return request.transactions
    return [
        AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
    ]


def _asked(
    context: Context, one: AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
) -> Work[_RequestedTransaction]:
    known = context.image.topics.by_name
    places: list[_TopicPartition] = []
    missing: set[_TopicPartition] = set()
    for topic in one.topics:
        found = known.get(topic.name)
        for index in topic.partitions:
            yield
            exists = found is not None and index in found.partitions
            places.append((topic.name, index))
            if not exists:
                missing.add((topic.name, index))
    shard = shard_of(context, TRANSACTION_TOPIC, one.transactional_id)
    if missing or shard is None:
        return _RequestedTransaction(one.topics, missing, None)
    wanted = (one.transactional_id, one.producer_id, one.producer_epoch, places)
    version = TV2 if context.caller.api_version >= BATCHED_VERSION else TV1
    run: RunTransaction = (
        partial(verify_partitions, *wanted)
        if one.verify_only
        else partial(add_partitions, *wanted, version)
    )
    return _RequestedTransaction(one.topics, missing, TransactionOperation(shard, run))


def _response(
    context: Context,
    request: AddPartitionsToTxnRequest,
    asked: Sequence[_RequestedTransaction],
    results: Sequence[ShardResult],
) -> Work[AddPartitionsToTxnResponse]:
    came = iter(results)
    responses: list[list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]] = []
    for one in asked:
        code_of = _codes(context, one, came)
        responses.append((yield from _rows(one.topics, code_of)))
    if context.caller.api_version < BATCHED_VERSION:
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=responses[0])
    ids = (one.transactional_id for one in request.transactions)
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            _Result(transactional_id=name, topic_results=rows)
            for name, rows in zip(ids, responses, strict=True)
        ]
    )


def _codes(
    context: Context, one: _RequestedTransaction, came: Iterator[ShardResult]
) -> Callable[[_TopicPartition], int]:
    """Return a function that returns the error code of a partition."""
    if one.missing:
        missing, other = UnknownTopicOrPartitionError.code, OperationNotAttemptedError.code
        return lambda place: missing if place in one.missing else other
    if one.operation is None:
        return lambda _: CoordinatorNotAvailableError.code
    result = next(came)
    code = known_to(context, result.error_code, FENCED_VERSION)
    codes = result.value if isinstance(result.value, dict) else {}
    return lambda place: code or codes.get(place, NONE)


def _rows(
    topics: _Topics, code_of: Callable[[_TopicPartition], int]
) -> Work[list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]]:
    rows: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = []
    for topic in topics:
        row = _TopicResult(name=topic.name, results_by_partition=[])
        rows.append(row)
        for index in topic.partitions:
            yield
            code = code_of((topic.name, index))
            row.results_by_partition.append(_Row(partition_index=index, partition_error_code=code))
    return rows
