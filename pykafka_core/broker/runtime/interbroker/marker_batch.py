"""Groups transaction markers by partition leader, in WriteTxnMarkers (27) requests to other nodes.

Pure functions: the leader of a partition is read from the committed image for each attempt.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pykafka_core.broker.runtime.interbroker.broker_channel import BrokerApi, BrokerResponse
from pykafka_core.coordinator.shard import TransactionEnd
from pykafka_core.coordinator.transaction.transaction import TopicPartition
from pykafka_core.errors import (
    CorruptMessageError,
    NotLeaderOrFollowerError,
    UnknownServerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedForMessageFormatError,
)
from pykafka_core.metadata.image.image import NO_LEADER, Topic
from pykafka_core.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from pykafka_core.types import GROUP_TOPIC

WRITE_TXN_MARKERS = BrokerApi(27, (1, 2), "transaction markers")
PARTITIONS_MAX = 2_000
"""Limit for one request: some 2 ms of this node's time, and 20 ms of the other's, in slices."""

_UNKNOWN = frozenset({UnknownTopicIdError.code, UnknownTopicOrPartitionError.code})

_Marker = WriteTxnMarkersRequest.WritableTxnMarker
_Topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic


class Division(NamedTuple):
    """The partitions by the writer of their markers.

    Attributes:
        groups: Partitions of `__consumer_offsets` that this node leads: their group shards.
        logs: Other partitions that this node leads: the core.
        by_node: Partitions that other nodes lead.
        leaderless: Partitions that have no leader now.
        gone: Partitions that no longer exist.
    """

    groups: Sequence[int]
    logs: Sequence[TopicPartition]
    by_node: Mapping[int, Sequence[TopicPartition]]
    leaderless: Sequence[TopicPartition]
    gone: Sequence[TopicPartition]


def divide(
    topics: Mapping[str, Topic], partitions: Iterable[TopicPartition], node_id: int
) -> Division:
    """Group partitions by their leaders.

    Args:
        topics: Committed topics by name.
        partitions: Partitions of a transaction.
        node_id: This node.
    """
    groups: list[int] = []
    logs: list[TopicPartition] = []
    by_node: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    leaderless: list[TopicPartition] = []
    gone: list[TopicPartition] = []
    for place in partitions:
        name, index = place
        topic = topics.get(name)
        partition = topic.partitions.get(index) if topic else None
        if partition is None:
            gone.append(place)
        elif partition.leader == NO_LEADER:
            leaderless.append(place)
        elif partition.leader != node_id:
            by_node[partition.leader].append(place)
        elif name == GROUP_TOPIC:
            groups.append(index)
        else:
            logs.append(place)
    return Division(groups, logs, by_node, leaderless, gone)


class MarkedPart(NamedTuple):
    """Some partitions of one transaction, and the marker that ends it there."""

    end: TransactionEnd
    partitions: Sequence[TopicPartition]


def request_of(parts: Iterable[MarkedPart]) -> WriteTxnMarkersRequest:
    """Return a request with one marker for each transaction; a response identifies them by producer
    id.
    """
    ends: defaultdict[TransactionEnd, defaultdict[str, list[int]]]
    ends = defaultdict(lambda: defaultdict(list))
    for part in parts:
        for topic, index in part.partitions:
            ends[part.end][topic].append(index)
    return WriteTxnMarkersRequest(markers=[_marker(end, topics) for end, topics in ends.items()])


def _marker(
    end: TransactionEnd, topics: Mapping[str, list[int]]
) -> WriteTxnMarkersRequest.WritableTxnMarker:
    return _Marker(
        producer_id=end.producer_id,
        producer_epoch=end.producer_epoch,
        transaction_result=end.committed,
        topics=[_Topic(name=name, partition_indexes=indexes) for name, indexes in topics.items()],
        coordinator_epoch=end.coordinator_epoch,
        transaction_version=end.transaction_version,
    )


def codes_of(parts: Sequence[MarkedPart], response: BrokerResponse) -> Iterator[list[int]]:
    """Yield the error codes of the partitions of each part, mapped for the coordinator.

    A leader may not know a partition yet; only the committed image shows whether it was deleted. A
    partition that is missing in the response has UNKNOWN_SERVER_ERROR.
    """
    if response.error_code:
        yield from ([response.error_code] * len(part.partitions) for part in parts)
        return
    if not isinstance(response.message, WriteTxnMarkersResponse):
        yield from ([CorruptMessageError.code] * len(part.partitions) for part in parts)
        return
    found = {
        (marker.producer_id, topic.name, row.partition_index): row.error_code
        for marker in response.message.markers
        for topic in marker.topics
        for row in topic.partitions
    }
    for part in parts:
        producer_id = part.end.producer_id
        yield [_told(found.get((producer_id, *place))) for place in part.partitions]


def _told(code: int | None) -> int:
    if code is None:
        return UnknownServerError.code
    if code in _UNKNOWN:
        return NotLeaderOrFollowerError.code
    # A log with a format without transactions cannot contain records of the transaction.
    return 0 if code == UnsupportedForMessageFormatError.code else code
