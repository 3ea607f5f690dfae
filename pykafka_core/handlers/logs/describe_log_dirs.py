"""DescribeLogDirs (35): KIP-113, KIP-827; ``ReplicaManager.describeLogDirs`` in Kafka."""

from collections.abc import Collection

from pykafka_core.handlers.context import Context
from pykafka_core.metadata.image.image import Topic
from pykafka_core.protocol.messages import DescribeLogDirsRequest, DescribeLogDirsResponse

_Partition = DescribeLogDirsResponse.DescribeLogDirsPartition


def handle(context: Context, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Sizes of this broker's replicas; one that was never written to has no files and size 0."""
    sizes = {(topic, index): size for topic, index, size in context.facts.describe_log_dirs()}
    topics = context.image.topics.by_name
    if request.topics is None:
        wanted = {name: set(topic.partitions) for name, topic in topics.items()}
    else:
        wanted = {
            asked.topic: set(asked.partitions) & topics[asked.topic].partitions.keys()
            for asked in request.topics
            if asked.topic in topics
        }
    described = [_describe(context, topics[name], wanted[name], sizes) for name in sorted(wanted)]
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
) -> DescribeLogDirsResponse.DescribeLogDirsTopic:
    partitions = [
        _Partition(partition_index=index, partition_size=sizes.get((topic.topic_id, index), 0))
        for index in sorted(wanted)
        if context.node.node_id in topic.partitions[index].replicas
    ]
    return DescribeLogDirsResponse.DescribeLogDirsTopic(name=topic.name, partitions=partitions)
