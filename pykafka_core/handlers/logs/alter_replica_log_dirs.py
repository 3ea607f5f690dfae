"""AlterReplicaLogDirs (34): KIP-113; ``ReplicaManager.alterReplicaLogDirs`` in Kafka.

A broker has one log directory here, so a replica can only move to its present directory.
"""

from pykafka_core.errors import (
    NONE,
    InvalidTopicError,
    LogDirNotFoundError,
    ReplicaNotAvailableError,
    UnknownTopicOrPartitionError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Work
from pykafka_core.protocol.messages import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse

FILE_NAME_LENGTH_MAX = 255
FUTURE_SUFFIX_LENGTH = len(".") + 32 + len("-future")
"""The length of the suffix of the directory into which Kafka copies a replica.

The directory is ``topic-partition.<uuid in hex>-future``.
"""

_Topic = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
_Partition = AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult


def handle(
    context: Context, request: AlterReplicaLogDirsRequest
) -> Work[AlterReplicaLogDirsResponse]:
    """Return one result per partition; the last directory named for it counts."""
    wanted: dict[str, dict[int, str]] = {}
    for log_dir in request.dirs:
        for topic in log_dir.topics:
            for index in topic.partitions:
                yield
                wanted.setdefault(topic.name, {})[index] = log_dir.path
    results = []
    for name, paths in wanted.items():
        result = _Topic(topic_name=name, partitions=[])
        results.append(result)
        for index, path in paths.items():
            yield
            code = _error_code(context, name, index, path)
            result.partitions.append(_Partition(partition_index=index, error_code=code))
    return AlterReplicaLogDirsResponse(results=results)


def _error_code(context: Context, name: str, index: int, path: str) -> int:
    if len(f"{name}-{index}") + FUTURE_SUFFIX_LENGTH > FILE_NAME_LENGTH_MAX:
        return InvalidTopicError.code
    if path != context.node.log_dir:
        return LogDirNotFoundError.code
    partition = context.image.partition(name, index)
    if partition is None:
        return UnknownTopicOrPartitionError.code
    return NONE if context.node.node_id in partition.replicas else ReplicaNotAvailableError.code
