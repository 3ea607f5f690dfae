"""WriteTxnMarkers (27): ends transactions on partitions.

Brokers send it to each other, and administrators send it for a hanging transaction. The coordinator
of this node needs no request for its own partitions. A request of another broker is executed,
because its coordinator has decided, and the log checks the epochs (contract/replication.md#T5). A
client may only abort an open transaction of the log (``Admin.abortTransaction``, KIP-664); every
other request of a client gets CLUSTER_AUTHORIZATION_FAILED.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from pykafka_core.coordinator.group.offsets.transaction import end_transaction
from pykafka_core.coordinator.shard import TransactionEnd
from pykafka_core.coordinator.transaction.transaction import TV2
from pykafka_core.errors import (
    ClusterAuthorizationFailedError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    InvalidProducerEpochError,
    KafkaStorageError,
    NotCoordinatorError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    RequestTimedOutError,
    TransactionCoordinatorFencedError,
    UnknownTopicOrPartitionError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.inter_broker import is_from_broker
from pykafka_core.handlers.outcome import (
    DescribeLogProducers,
    GroupOperation,
    LogCommands,
    LogResult,
    Reply,
    ShardCalls,
    ShardResult,
    Work,
    WriteMarker,
)
from pykafka_core.metadata.image.image import Topic
from pykafka_core.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from pykafka_core.types import GROUP_TOPIC

if TYPE_CHECKING:
    from pykafka_core._core import ProducerState

_NOT_READY = frozenset(
    {
        CoordinatorLoadInProgressError.code,
        CoordinatorNotAvailableError.code,
        NotCoordinatorError.code,
    }
)
"""Errors of a group shard that a transaction coordinator does not expect.

NOT_LEADER_OR_FOLLOWER makes it retry.
"""

_EXPECTED = frozenset(
    {
        0,
        InvalidProducerEpochError.code,
        KafkaStorageError.code,
        NotEnoughReplicasAfterAppendError.code,
        NotEnoughReplicasError.code,
        NotLeaderOrFollowerError.code,
        RequestTimedOutError.code,
        TransactionCoordinatorFencedError.code,
        UnknownTopicOrPartitionError.code,
    }
)
"""The codes that ``TransactionMarkerRequestCompletionHandler`` handles.

Any other code makes it drop the response, and the transaction never ends there.
"""

_Marker = WriteTxnMarkersRequest.WritableTxnMarker
_Row = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult
_TopicResult = WriteTxnMarkersResponse.WritableTxnMarkerTopicResult
_Result = WriteTxnMarkersResponse.WritableTxnMarkerResult


class _Wanted(NamedTuple):
    """The marker of one partition, and the row for its result."""

    topic: Topic
    partition: int
    end: TransactionEnd
    row: WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult


def handle(context: Context, request: WriteTxnMarkersRequest) -> Work[LogCommands]:
    """Write the markers of a broker; for a client, abort those transactions that are open.

    Each partition has a result. Without markers the response is empty.
    """
    response = WriteTxnMarkersResponse(markers=[])
    wanted: list[_Wanted] = []
    is_trusted = is_from_broker(context)
    for marker in request.markers:
        may_end = is_trusted or not marker.transaction_result
        response.markers.append((yield from _judge(context, marker, wanted, may_end)))
    if is_trusted:
        # The coordinator waits this long for the response.
        return _write(response, wanted, _of_broker, context.settings.int("request.timeout.ms"))
    commands = [DescribeLogProducers(one.topic.topic_id, one.partition) for one in wanted]
    return LogCommands(commands, None, partial(_abort, response, wanted))


def _judge(
    context: Context,
    marker: WriteTxnMarkersRequest.WritableTxnMarker,
    wanted: list[_Wanted],
    may_end: bool,
) -> Work[WriteTxnMarkersResponse.WritableTxnMarkerResult]:
    result = _Result(producer_id=marker.producer_id, topics=[])
    end = TransactionEnd(
        marker.producer_id,
        marker.producer_epoch,
        marker.coordinator_epoch,
        marker.transaction_result,
        marker.transaction_version,
    )
    for asked in marker.topics:
        topic = context.image.topics.by_name.get(asked.name)
        rows = []
        for index in asked.partition_indexes:
            yield
            code = _code(context, topic, index) if may_end else ClusterAuthorizationFailedError.code
            row = _Row(partition_index=index, error_code=code)
            rows.append(row)
            if topic is not None and not row.error_code:
                wanted.append(_Wanted(topic, index, end, row))
        result.topics.append(_TopicResult(name=asked.name, partitions=rows))
    return result


def _code(context: Context, topic: Topic | None, index: int) -> int:
    partition = topic.partitions.get(index) if topic else None
    if partition is None:
        return UnknownTopicOrPartitionError.code
    is_here = partition.leader == context.node.node_id
    return 0 if is_here else NotLeaderOrFollowerError.code


def _abort(
    response: WriteTxnMarkersResponse, wanted: Sequence[_Wanted], described: Sequence[LogResult]
) -> LogCommands:
    return _write(response, list(_hanging(wanted, described)), _of_client, None)


def _write(
    response: WriteTxnMarkersResponse,
    wanted: Sequence[_Wanted],
    converted: Callable[[int], int],
    timeout_ms: int | None,
) -> LogCommands:
    """Write the core's markers, then those of the group shards.

    Args:
        converted: Converts a code of the core or of a shard to the code in the response.
        timeout_ms: The timeout of the core's part.
    """
    own = [one for one in wanted if one.topic.name == GROUP_TOPIC]
    others = [one for one in wanted if one.topic.name != GROUP_TOPIC]
    operations = [GroupOperation(one.partition, partial(end_transaction, one.end)) for one in own]

    def written(results: Sequence[LogResult]) -> Reply:
        for one, result in zip(others, results, strict=True):
            one.row.error_code = converted(result.error_code)
        return ShardCalls(operations, ended)

    def ended(results: Sequence[ShardResult]) -> Reply:
        for one, result in zip(own, results, strict=True):
            one.row.error_code = converted(result.error_code)
        return response

    commands = [WriteMarker(one.topic.topic_id, one.partition, one.end) for one in others]
    return LogCommands(commands, timeout_ms, written)


def _of_client(code: int) -> int:
    return code


def _of_broker(code: int) -> int:
    if code in _NOT_READY:
        return NotLeaderOrFollowerError.code
    return code if code in _EXPECTED else KafkaStorageError.code


def _hanging(wanted: Sequence[_Wanted], described: Sequence[LogResult]) -> Iterator[_Wanted]:
    """Yield the requests with an open transaction; set the error of the others."""
    for one, result in zip(wanted, described, strict=True):
        producers = cast("Sequence[ProducerState]", result.value or ())
        states = (state for state in producers if state.producer_id == one.end.producer_id)
        one.row.error_code = result.error_code or _refusal(next(states, None), one.end)
        if not one.row.error_code:
            yield one


def _refusal(state: "ProducerState | None", end: TransactionEnd) -> int:
    """Return the error that the log would return.

    A batch that the log refuses costs a group's shard all its state, so the check comes first.
    """
    if state is None or state.current_txn_start_offset < 0:
        return ClusterAuthorizationFailedError.code
    raises_epoch = end.transaction_version >= TV2
    if end.producer_epoch < state.producer_epoch + raises_epoch:
        return InvalidProducerEpochError.code
    is_fenced = end.coordinator_epoch < state.coordinator_epoch
    return TransactionCoordinatorFencedError.code if is_fenced else 0
