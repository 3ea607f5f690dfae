"""DescribeLogDirs (35): KIP-113, KIP-827; ``ReplicaManager.describeLogDirs`` in Kafka.

A directory with an I/O error has ``KAFKA_STORAGE_ERROR``, as in Kafka. Other states have no field
in Kafka; they are in our tagged fields, as names with commas, which are absent if everything
is right. The metadata log, which Kafka never lists, is listed while it has a problem.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from pykafka_core.errors import KafkaStorageError
from pykafka_core.handlers.cluster.broker_records import cordoned_directories
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import DescribeLogs, LogCommands, LogResult, Work
from pykafka_core.metadata.health import Directory, Replicas, State
from pykafka_core.metadata.image.image import Topic
from pykafka_core.protocol.messages import DescribeLogDirsRequest, DescribeLogDirsResponse
from pykafka_core.types import METADATA_TOPIC, METADATA_TOPIC_ID, PartitionId

if TYPE_CHECKING:
    from pykafka_core._core import LogDirs

COMMAND_PARTITIONS_MAX = 1_000
"""The maximum of partitions in one command to the core."""

_Result = DescribeLogDirsResponse.DescribeLogDirsResult
_Topic = DescribeLogDirsResponse.DescribeLogDirsTopic
_Partition = DescribeLogDirsResponse.DescribeLogDirsPartition


class _Wanted(NamedTuple):
    topic: Topic
    indexes: list[int]


def handle(context: Context, request: DescribeLogDirsRequest) -> Work[LogCommands]:
    """Return the sizes of this broker's replicas.

    A replica that was never written to has no files and size 0.
    """
    wanted = yield from _wanted(context, request)
    commands: list[DescribeLogs] = []
    partitions: list[PartitionId] = []
    for topic, indexes in wanted:
        for index in indexes:
            yield
            partitions.append((topic.topic_id, index))
            if len(partitions) == COMMAND_PARTITIONS_MAX:
                commands.append(DescribeLogs(partitions))
                partitions = []
    if partitions or not commands:  # the response needs the free space in any case
        commands.append(DescribeLogs(partitions))
    return LogCommands(commands, None, lambda results: _response(context, wanted, results))


def _wanted(context: Context, request: DescribeLogDirsRequest) -> Work[list[_Wanted]]:
    topics = context.image.topics.by_name
    wanted = [*_metadata_log(context, request)]
    asked: dict[str, Iterable[int]] = {}
    if request.topics is None:
        asked = {name: topic.partitions.keys() for name, topic in topics.items()}
    else:
        for topic in request.topics:
            yield
            if topic.topic in topics:
                known = topics[topic.topic].partitions.keys()
                asked[topic.topic] = known & set(topic.partitions)
    for name in sorted(asked):
        yield
        partitions = topics[name].partitions
        here = [i for i in sorted(asked[name]) if context.node.node_id in partitions[i].replicas]
        if here:
            wanted.append(_Wanted(topics[name], here))
    return wanted


def _metadata_log(context: Context, request: DescribeLogDirsRequest) -> Iterable[_Wanted]:
    is_asked = request.topics is None or any(
        topic.topic == METADATA_TOPIC for topic in request.topics
    )
    if is_asked and (METADATA_TOPIC_ID, 0) in context.replicas.broken():
        yield _Wanted(Topic(METADATA_TOPIC, METADATA_TOPIC_ID, {}), [0])


def _response(
    context: Context, wanted: Sequence[_Wanted], results: Sequence[LogResult]
) -> Work[DescribeLogDirsResponse]:
    result = _Result(
        error_code=max(result.error_code for result in results),
        log_dir=context.node.log_dir,
        topics=[],
        is_cordoned=bool(
            cordoned_directories(context.image, context.settings, context.node.directory_id)
        ),
    )
    if not result.error_code:
        responses = [cast("LogDirs", result.value) for result in results]
        result.total_bytes = responses[-1].total_bytes
        result.usable_bytes = responses[-1].usable_bytes
        result.topics = yield from _topics(wanted, responses, context.replicas.broken())
        _describe_directory(result, context.replicas)
    return DescribeLogDirsResponse(results=[result])


def _describe_directory(result: _Result, replicas: Replicas) -> None:
    """Add the states of the directory, and those of the node, as there is only one directory."""
    states = []
    if replicas.directory is Directory.FAILED:
        result.error_code = KafkaStorageError.code
    elif replicas.directory.state is not None:
        states.append(replicas.directory.state)
    if replicas.lacks_controller:
        states.append(State.NO_CONTROLLER)
    result.state = ",".join(states)


def _topics(
    wanted: Sequence[_Wanted],
    responses: "Sequence[LogDirs]",
    broken: Mapping[PartitionId, Sequence[State]],
) -> Work[list[_Topic]]:
    sizes: dict[PartitionId, int] = {}
    for response in responses:
        yield
        sizes |= {(topic_id, index): size for topic_id, index, size in response.sizes}
    topics = []
    for topic, indexes in wanted:
        described = _Topic(name=topic.name, partitions=[])
        for index in indexes:
            yield
            size = sizes.get((topic.topic_id, index), 0)
            state = ",".join(broken.get((topic.topic_id, index), ()))
            described.partitions.append(
                _Partition(partition_index=index, partition_size=size, state=state)
            )
        topics.append(described)
    return topics
