"""Where the markers of a transaction go, and the WriteTxnMarkers (27) that takes those of many to one node.

Pure: what a partition's leader is the committed image says, at the time of each try.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pykafka_core.broker.runtime.interbroker.broker_channel import Answer, BrokerApi
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
"""In one request: some 2 ms of this node's time, and 20 of the other's, in slices."""

_UNKNOWN = frozenset({UnknownTopicIdError.code, UnknownTopicOrPartitionError.code})

_Marker = WriteTxnMarkersRequest.WritableTxnMarker
_Topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic


class Division(NamedTuple):
    """Who writes the marker of each partition.

    Attributes:
        groups: Partitions of `__consumer_offsets` that this node leads: their group shards.
        logs: Other partitions that this node leads: the core.
        by_node: Partitions that other nodes lead.
        leaderless: Nobody leads them now.
        gone: They do not exist any more.
    """

    groups: Sequence[int]
    logs: Sequence[TopicPartition]
    by_node: Mapping[int, Sequence[TopicPartition]]
    leaderless: Sequence[TopicPartition]
    gone: Sequence[TopicPartition]


def divide(
    topics: Mapping[str, Topic], partitions: Iterable[TopicPartition], node_id: int
) -> Division:
    """Divide partitions by their leaders.

    Args:
        topics: Committed, by name.
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
    """One marker for each transaction: a response names them by their producer ids."""
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


def codes_of(parts: Sequence[MarkedPart], answer: Answer) -> Iterator[list[int]]:
    """The error code of each partition of each part, as the coordinator takes it.

    A leader may not know yet of a partition: whether it is gone the committed image says. A partition that the answer
    does not name is UNKNOWN_SERVER_ERROR.
    """
    if answer.error_code:
        yield from ([answer.error_code] * len(part.partitions) for part in parts)
        return
    if not isinstance(answer.message, WriteTxnMarkersResponse):
        yield from ([CorruptMessageError.code] * len(part.partitions) for part in parts)
        return
    found = {
        (marker.producer_id, topic.name, row.partition_index): row.error_code
        for marker in answer.message.markers
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
    # A log of a format that cannot hold the transaction's records does not hold any.
    return 0 if code == UnsupportedForMessageFormatError.code else code
