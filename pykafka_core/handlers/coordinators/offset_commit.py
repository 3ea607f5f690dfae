"""OffsetCommit (8): a group commits how far it has read."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from pykafka_core.coordinator.group.offsets.commit import Commit, NewOffset, commit_offsets
from pykafka_core.errors import (
    NONE,
    InvalidCommitOffsetSizeError,
    OffsetMetadataTooLargeError,
    RecordListTooLargeError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.groups import coordinate_each
from pykafka_core.handlers.outcome import Coordinate, Coordinated, Slices
from pykafka_core.metadata.image.image import Topic
from pykafka_core.protocol.messages import OffsetCommitRequest, OffsetCommitResponse

IDS_VERSION = 10
"""From here on a request names topics by their ids."""

_Partition = OffsetCommitRequest.OffsetCommitRequestPartition
_TopicRow = OffsetCommitResponse.OffsetCommitResponseTopic
_Row = OffsetCommitResponse.OffsetCommitResponsePartition


class _Judged(NamedTuple):
    """Rows as they are if the group takes the commit, and what is committed then.

    ``asked`` are rows that the group has a say in: an error of its own comes before theirs.
    """

    topics: list[OffsetCommitResponse.OffsetCommitResponseTopic]
    asked: list[OffsetCommitResponse.OffsetCommitResponsePartition]
    offsets: list[NewOffset]


def handle(
    context: Context, request: OffsetCommitRequest
) -> Slices[Coordinate | OffsetCommitResponse]:
    """What can be committed is committed as a whole; each partition has a result."""
    judged = yield from _judge(context, request)
    if not judged.asked:
        return OffsetCommitResponse(topics=judged.topics)

    def reply(results: Sequence[Coordinated]) -> Slices[OffsetCommitResponse]:
        return _answer(judged, results[0].error_code)

    commit = Commit(
        group_id=request.group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        generation_id=request.generation_id_or_member_epoch,
        retention_ms=request.retention_time_ms,
        offsets=judged.offsets,
        api_version=context.caller.api_version,
    )
    run = partial(commit_offsets, commit)
    return (yield from coordinate_each(context, [(request.group_id, run)], reply))


def _judge(context: Context, request: OffsetCommitRequest) -> Slices[_Judged]:
    judged = _Judged([], [], [])
    length_max = context.settings.int("offset.metadata.max.bytes")
    for asked in request.topics:
        yield
        topic = _find(context, asked)
        row = _TopicRow(name=asked.name, topic_id=asked.topic_id, partitions=[])
        judged.topics.append(row)
        for one in asked.partitions:
            yield
            code = _code(context, topic, one, length_max)
            result = _Row(partition_index=one.partition_index, error_code=code)
            row.partitions.append(result)
            if code in (NONE, OffsetMetadataTooLargeError.code):
                judged.asked.append(result)
            if code == NONE:
                assert topic is not None, "an unknown topic has a code"
                judged.offsets.append(_new(topic, one))
    return judged


def _find(context: Context, asked: OffsetCommitRequest.OffsetCommitRequestTopic) -> Topic | None:
    topics = context.image.topics
    if context.caller.api_version >= IDS_VERSION:
        return topics.by_id.get(asked.topic_id)
    return topics.by_name.get(asked.name)


def _code(context: Context, topic: Topic | None, one: _Partition, length_max: int) -> int:
    if topic is None:
        by_id = context.caller.api_version >= IDS_VERSION
        return (UnknownTopicIdError if by_id else UnknownTopicOrPartitionError).code
    if one.partition_index not in topic.partitions:
        return UnknownTopicOrPartitionError.code
    # Kafka compares characters of UTF-16, whatever the setting's name says.
    text = one.committed_metadata or ""
    if len(text.encode("utf-16-be", "surrogatepass")) // 2 > length_max:
        return OffsetMetadataTooLargeError.code
    return NONE


def _new(topic: Topic, one: _Partition) -> NewOffset:
    return NewOffset(
        topic.name,
        one.partition_index,
        one.committed_offset,
        one.committed_leader_epoch,
        one.committed_metadata or "",
        topic.topic_id,
    )


def _answer(judged: _Judged, code: int) -> Slices[OffsetCommitResponse]:
    if code == RecordListTooLargeError.code:
        code = InvalidCommitOffsetSizeError.code
    for row in judged.asked if code else ():
        yield
        row.error_code = code
    return OffsetCommitResponse(topics=judged.topics)
