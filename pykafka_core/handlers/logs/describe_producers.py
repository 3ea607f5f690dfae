"""DescribeProducers (61): KIP-664; ``ReplicaManager.activeProducerState`` in Kafka."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from pykafka_core.errors import (
    KafkaError,
    NotLeaderOrFollowerError,
    UnknownTopicOrPartitionError,
    error_of,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import DescribeLogProducers, LogCommands, LogResult, Work
from pykafka_core.handlers.topic_names import check_topic_name
from pykafka_core.protocol.messages import DescribeProducersRequest, DescribeProducersResponse

if TYPE_CHECKING:
    from pykafka_core._core import ProducerState

_Partition = DescribeProducersResponse.PartitionResponse


def handle(context: Context, request: DescribeProducersRequest) -> Work[LogCommands]:
    """Describe the producers with sequence numbers or transactions in the partitions' logs."""
    commands: list[DescribeLogProducers] = []
    waiting: list[_Partition] = []
    topics: list[DescribeProducersResponse.TopicResponse] = []
    all_wanted = yield from _wanted(request)
    for name, indexes in all_wanted.items():
        topic = DescribeProducersResponse.TopicResponse(name=name, partitions=[])
        topics.append(topic)
        for index in indexes:
            yield
            partition = _Partition(partition_index=index)
            topic.partitions.append(partition)
            try:
                commands.append(_command(context, name, index))
                waiting.append(partition)
            except KafkaError as error:
                _refuse(partition, error)

    def reply(results: Sequence[LogResult]) -> Work[DescribeProducersResponse]:
        for partition, described in zip(waiting, results, strict=True):
            yield
            if described.error_code:
                _refuse(partition, error_of(described.error_code)())
            else:
                producers = cast("Sequence[ProducerState]", described.value)
                partition.active_producers = [_state(producer) for producer in producers]
        return DescribeProducersResponse(topics=topics)

    return LogCommands(commands, None, reply)


def _wanted(request: DescribeProducersRequest) -> Work[dict[str, dict[int, None]]]:
    """Group the partitions by topic; a repeated partition is described once."""
    wanted: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        yield
        of_topic = wanted.setdefault(topic.name, {})
        for index in topic.partition_indexes:
            of_topic[index] = None
            yield
    return wanted


def _command(context: Context, name: str, index: int) -> DescribeLogProducers:
    check_topic_name(name)
    topic = context.image.topics.by_name.get(name)
    partition = topic.partitions.get(index) if topic else None
    if topic is None or partition is None:
        raise UnknownTopicOrPartitionError
    if context.node.node_id not in partition.replicas:
        raise NotLeaderOrFollowerError
    return DescribeLogProducers(topic.topic_id, index)


def _refuse(partition: _Partition, error: KafkaError) -> None:
    partition.error_code = error.code
    partition.error_message = str(error)


def _state(producer: "ProducerState") -> DescribeProducersResponse.ProducerState:
    return DescribeProducersResponse.ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp_ms,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.current_txn_start_offset,
    )
