"""DescribeProducers (61): KIP-664; ``ReplicaManager.activeProducerState`` in Kafka."""

from typing import TYPE_CHECKING

from pykafka_core.errors import (
    KafkaError,
    NotLeaderOrFollowerError,
    UnknownTopicOrPartitionError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Slices, collect
from pykafka_core.handlers.topic_names import check_topic_name
from pykafka_core.protocol.messages import DescribeProducersRequest, DescribeProducersResponse

if TYPE_CHECKING:
    from pykafka_core._core import ProducerState

_Partition = DescribeProducersResponse.PartitionResponse


def handle(
    context: Context, request: DescribeProducersRequest
) -> Slices[DescribeProducersResponse]:
    """Producers whose sequence numbers or transactions the partitions' logs remember."""
    topics = []
    for topic in request.topics:
        yield
        described = (_describe(context, topic.name, index) for index in topic.partition_indexes)
        partitions = yield from collect(described)
        topics.append(
            DescribeProducersResponse.TopicResponse(name=topic.name, partitions=partitions)
        )
    return DescribeProducersResponse(topics=topics)


def _describe(context: Context, name: str, index: int) -> _Partition:
    try:
        producers = [_state(producer) for producer in _producers(context, name, index)]
    except KafkaError as error:
        return _Partition(partition_index=index, error_code=error.code, error_message=str(error))
    return _Partition(partition_index=index, active_producers=producers)


def _producers(context: Context, name: str, index: int) -> "list[ProducerState]":
    check_topic_name(name)
    topic = context.image.topics.by_name.get(name)
    partition = topic.partitions.get(index) if topic else None
    if topic is None or partition is None:
        raise UnknownTopicOrPartitionError
    if partition.leader != context.node.node_id:
        raise NotLeaderOrFollowerError
    return list(context.facts.describe_producers((topic.topic_id, index)))


def _state(producer: "ProducerState") -> DescribeProducersResponse.ProducerState:
    return DescribeProducersResponse.ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp_ms,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.current_txn_start_offset,
    )
