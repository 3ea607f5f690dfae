"""WriteTxnMarkers (27): ends transactions on partitions, as brokers do for each other and administrators if one hangs.

The coordinator of this node needs no request for its own partitions. A client may abort what its log has open
(``Admin.abortTransaction``, KIP-664), and nothing else: everything but that is CLUSTER_AUTHORIZATION_FAILED.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from pykafka_core.coordinator.group.offsets.transaction import end_transaction
from pykafka_core.coordinator.shard import TransactionEnd
from pykafka_core.coordinator.transaction.transaction import TV2
from pykafka_core.errors import (
    ClusterAuthorizationFailedError,
    InvalidProducerEpochError,
    NotLeaderOrFollowerError,
    TransactionCoordinatorFencedError,
    UnknownTopicOrPartitionError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import (
    Coordinate,
    Coordinated,
    DescribeLogProducers,
    GroupOperation,
    Maintain,
    Maintained,
    Reply,
    Slices,
    WriteMarker,
)
from pykafka_core.metadata.image.image import Topic
from pykafka_core.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from pykafka_core.types import GROUP_TOPIC

if TYPE_CHECKING:
    from pykafka_core._core import ProducerState

_Marker = WriteTxnMarkersRequest.WritableTxnMarker
_Row = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult
_TopicResult = WriteTxnMarkersResponse.WritableTxnMarkerTopicResult
_Result = WriteTxnMarkersResponse.WritableTxnMarkerResult


class _Wanted(NamedTuple):
    """One partition's marker, and where its result goes."""

    topic: Topic
    partition: int
    end: TransactionEnd
    row: WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult


def handle(context: Context, request: WriteTxnMarkersRequest) -> Slices[Maintain]:
    """Look which transactions are open, then abort those; each partition has a result."""
    response = WriteTxnMarkersResponse(markers=[])
    wanted: list[_Wanted] = []
    for marker in request.markers:
        response.markers.append((yield from _judge(context, marker, wanted)))
    commands = [DescribeLogProducers(one.topic.topic_id, one.partition) for one in wanted]
    return Maintain(commands, None, partial(_abort, response, wanted))


def _judge(
    context: Context, marker: WriteTxnMarkersRequest.WritableTxnMarker, wanted: list[_Wanted]
) -> Slices[WriteTxnMarkersResponse.WritableTxnMarkerResult]:
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
            row = _Row(partition_index=index, error_code=_code(context, topic, index, end))
            rows.append(row)
            if topic is not None and not row.error_code:
                wanted.append(_Wanted(topic, index, end, row))
        result.topics.append(_TopicResult(name=asked.name, partitions=rows))
    return result


def _code(context: Context, topic: Topic | None, index: int, end: TransactionEnd) -> int:
    if end.committed:
        return ClusterAuthorizationFailedError.code
    partition = topic.partitions.get(index) if topic else None
    if partition is None:
        return UnknownTopicOrPartitionError.code
    is_here = partition.leader == context.node.node_id
    return 0 if is_here else NotLeaderOrFollowerError.code


def _abort(
    response: WriteTxnMarkersResponse, wanted: Sequence[_Wanted], described: Sequence[Maintained]
) -> Reply:
    hanging = list(_hanging(wanted, described))
    own = [one for one in hanging if one.topic.name == GROUP_TOPIC]
    others = [one for one in hanging if one.topic.name != GROUP_TOPIC]
    operations = [GroupOperation(one.partition, partial(end_transaction, one.end)) for one in own]

    def written(results: Sequence[Maintained]) -> Reply:
        for one, result in zip(others, results, strict=True):
            one.row.error_code = result.error_code
        return Coordinate(operations, ended)

    def ended(results: Sequence[Coordinated]) -> Reply:
        for one, result in zip(own, results, strict=True):
            one.row.error_code = result.error_code
        return response

    commands = [WriteMarker(one.topic.topic_id, one.partition, one.end) for one in others]
    return Maintain(commands, None, written)


def _hanging(wanted: Sequence[_Wanted], described: Sequence[Maintained]) -> Iterator[_Wanted]:
    """Those whose transaction is open; the others are told why they are not aborted."""
    for one, result in zip(wanted, described, strict=True):
        producers = cast("Sequence[ProducerState]", result.answer or ())
        states = (state for state in producers if state.producer_id == one.end.producer_id)
        one.row.error_code = result.error_code or _refusal(next(states, None), one.end)
        if not one.row.error_code:
            yield one


def _refusal(state: "ProducerState | None", end: TransactionEnd) -> int:
    """What the log would say as well; but a batch that it refuses costs a group's shard all that it holds."""
    if state is None or state.current_txn_start_offset < 0:
        return ClusterAuthorizationFailedError.code
    raises_epoch = end.transaction_version >= TV2
    if end.producer_epoch < state.producer_epoch + raises_epoch:
        return InvalidProducerEpochError.code
    is_fenced = end.coordinator_epoch < state.coordinator_epoch
    return TransactionCoordinatorFencedError.code if is_fenced else 0
