"""DescribeLogDirs (35): KIP-113, KIP-827; ``ReplicaManager.describeLogDirs`` in Kafka."""

from collections.abc import Collection

from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import Slices
from pykafka_core.metadata.image.image import Topic
from pykafka_core.protocol.messages import DescribeLogDirsRequest, DescribeLogDirsResponse

_Partition = DescribeLogDirsResponse.DescribeLogDirsPartition


def handle(context: Context, request: DescribeLogDirsRequest) -> Slices[DescribeLogDirsResponse]:
    """Sizes of this broker's replicas; one that was never written to has no files and size 0."""
    sizes: dict[tuple[bytes, int], int] = {}
    for topic_id, index, size in context.facts.describe_log_dirs():
        sizes[topic_id, index] = size
        yield
    topics = context.image.topics.by_name
    wanted: dict[str, Collection[int]] = {}
    if request.topics is None:
        wanted = {name: topic.partitions.keys() for name, topic in topics.items()}
    else:
        for asked in request.topics:
            yield
            if asked.topic in topics:
                wanted[asked.topic] = set(asked.partitions) & topics[asked.topic].partitions.keys()
    described = []
    for name in sorted(wanted):
        described.append((yield from _describe(context, topics[name], wanted[name], sizes)))
    total, usable = context.facts.disk_space()
    result = DescribeLogDirsResponse.DescribeLogDirsResult(
        log_dir=context.facts.log_dir(),
        topics=[topic for topic in described if topic.partitions],
        total_bytes=total,
        usable_bytes=usable,
    )
    return DescribeLogDirsResponse(results=[result])


def _describe(
    context: Context, topic: Topic, wanted: Collection[int], sizes: dict[tuple[bytes, int], int]
) -> Slices[DescribeLogDirsResponse.DescribeLogDirsTopic]:
    partitions = []
    for index in sorted(wanted):
        yield
        if context.node.node_id in topic.partitions[index].replicas:
            size = sizes.get((topic.topic_id, index), 0)
            partitions.append(_Partition(partition_index=index, partition_size=size))
    return DescribeLogDirsResponse.DescribeLogDirsTopic(name=topic.name, partitions=partitions)
