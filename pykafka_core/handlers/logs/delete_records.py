"""DeleteRecords (21): contract/kafka.md#39; ``ReplicaManager.deleteRecords`` in Kafka."""

from collections.abc import Sequence

from pykafka_core.errors import (
    InvalidTopicError,
    KafkaError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    UnknownTopicOrPartitionError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import DeleteBefore, LogCommands, LogResult, Work
from pykafka_core.protocol.messages import DeleteRecordsRequest, DeleteRecordsResponse
from pykafka_core.types import INTERNAL_TOPICS, RESOURCE_TOPIC

HIGH_WATERMARK = -1
NO_LOW_WATERMARK = -1

_Partition = DeleteRecordsResponse.DeleteRecordsPartitionResult
_Topic = DeleteRecordsResponse.DeleteRecordsTopicResult


def handle(context: Context, request: DeleteRecordsRequest) -> Work[LogCommands]:
    """Advance the log start of each partition separately; it is durable after the response."""
    commands: list[DeleteBefore] = []
    waiting: list[_Partition] = []
    topics: list[_Topic] = []
    all_wanted = yield from _wanted(request)
    for name, wanted in all_wanted.items():
        partitions: list[_Partition] = []
        for asked in wanted.values():
            yield
            result = _Partition(
                partition_index=asked.partition_index, low_watermark=NO_LOW_WATERMARK
            )
            try:
                commands.append(_command(context, name, asked))
                waiting.append(result)
            except KafkaError as error:
                result.error_code = error.code
            partitions.append(result)
        topics.append(_Topic(name=name, partitions=partitions))

    def reply(results: Sequence[LogResult]) -> Work[DeleteRecordsResponse]:
        for partition, done in zip(waiting, results, strict=True):
            yield
            partition.error_code = done.error_code
            partition.low_watermark = NO_LOW_WATERMARK if done.error_code else done.offset
        return DeleteRecordsResponse(topics=topics)

    return LogCommands(commands, request.timeout_ms, reply)


def _wanted(
    request: DeleteRecordsRequest,
) -> Work[dict[str, dict[int, DeleteRecordsRequest.DeleteRecordsPartition]]]:
    """Group the partitions by topic.

    As in Kafka, the last of several offsets of a partition counts.
    """
    wanted: dict[str, dict[int, DeleteRecordsRequest.DeleteRecordsPartition]] = {}
    for topic in request.topics:
        yield
        of_topic = wanted.setdefault(topic.name, {})
        for partition in topic.partitions:
            of_topic[partition.partition_index] = partition
            yield
    return wanted


def _command(
    context: Context, name: str, asked: DeleteRecordsRequest.DeleteRecordsPartition
) -> DeleteBefore:
    topic = context.image.topics.by_name.get(name)
    partition = topic.partitions.get(asked.partition_index) if topic else None
    if topic is None or partition is None:
        raise UnknownTopicOrPartitionError
    if name in INTERNAL_TOPICS:
        raise InvalidTopicError(f"Cannot delete records of internal topic {name}")
    if partition.leader != context.node.node_id:
        raise NotLeaderOrFollowerError
    if "delete" not in _cleanup_policy(context, name).split(","):
        raise PolicyViolationError
    if asked.offset < HIGH_WATERMARK:
        raise OffsetOutOfRangeError
    return DeleteBefore(topic.topic_id, asked.partition_index, asked.offset)


def _cleanup_policy(context: Context, name: str) -> str:
    overrides = context.image.configs.of(RESOURCE_TOPIC, name)
    return context.settings.topic_value("cleanup.policy", overrides) or ""
