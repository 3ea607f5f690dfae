"""OffsetDelete (47): an administrator deletes offsets of a group."""

from collections.abc import Mapping, Sequence
from functools import partial

from pykafka_core.coordinator.group.offsets.deletion import delete_offsets
from pykafka_core.errors import (
    NONE,
    GroupSubscribedToTopicError,
    UnknownTopicOrPartitionError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.groups import coordinate_each
from pykafka_core.handlers.outcome import ShardCalls, ShardResult, Work
from pykafka_core.protocol.messages import OffsetDeleteRequest, OffsetDeleteResponse

_Topic = OffsetDeleteResponse.OffsetDeleteResponseTopic
_Partition = OffsetDeleteResponse.OffsetDeleteResponsePartition


def handle(context: Context, request: OffsetDeleteRequest) -> Work[ShardCalls]:
    """Delete the requested offsets, except those of topics with subscribed members."""
    known: dict[str, list[int]] = {}
    for topic in request.topics:
        yield
        found = context.image.topics.by_name.get(topic.name)
        if found is not None:
            indexes = (one.partition_index for one in topic.partitions)
            known.setdefault(topic.name, []).extend(filter(found.partitions.__contains__, indexes))

    def reply(results: Sequence[ShardResult]) -> Work[OffsetDeleteResponse]:
        return _response(request, known, results[0])

    run = partial(delete_offsets, request.group_id, known)
    return (yield from coordinate_each(context, [(request.group_id, run)], reply))


def _response(
    request: OffsetDeleteRequest, known: Mapping[str, Sequence[int]], result: ShardResult
) -> Work[OffsetDeleteResponse]:
    if result.error_code:
        return OffsetDeleteResponse(error_code=result.error_code)
    assert isinstance(result.value, frozenset), "topics that keep their offsets"
    topics: list[OffsetDeleteResponse.OffsetDeleteResponseTopic] = []
    for topic in request.topics:
        of_topic = GroupSubscribedToTopicError.code if topic.name in result.value else NONE
        existing = frozenset(known.get(topic.name, ()))
        partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition] = []
        for one in topic.partitions:
            yield
            exists = one.partition_index in existing
            code = of_topic if exists else UnknownTopicOrPartitionError.code
            partitions.append(_Partition(partition_index=one.partition_index, error_code=code))
        topics.append(_Topic(name=topic.name, partitions=partitions))
    return OffsetDeleteResponse(topics=topics)
