"""OffsetFetch (9): returns the committed offsets of groups."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from pykafka_core.coordinator.budget import Budget
from pykafka_core.coordinator.group.offsets.fetch import (
    ROW_BYTES,
    Fetched,
    Reader,
    Selection,
    fetch_offsets,
)
from pykafka_core.coordinator.group.offsets.table import NO_TOPIC_ID, Committed
from pykafka_core.errors import UnknownTopicIdError, UnstableOffsetCommitError
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.groups import group_operation
from pykafka_core.handlers.coordinators.measured import Mention, Reading, coordinate_reads, value_of
from pykafka_core.handlers.outcome import GroupOperation, ShardCalls, ShardResult, Work
from pykafka_core.protocol.messages import OffsetFetchRequest, OffsetFetchResponse

ERROR_VERSION = 2
"""From this version on a response has a top-level error; before, each partition has the error."""
BATCHED_VERSION = 8
"""From this version on a request has many groups."""
IDS_VERSION = 10
"""From this version on a request identifies topics by their ids."""

RESPONSE_BYTES_MAX = 32 * 1024 * 1024
"""Limit for a response about many groups, or with repeated groups, with the objects that it is made
of: some 200,000 rows. Clients must request the groups after it again."""

_Group = OffsetFetchResponse.OffsetFetchResponseGroup
_Topic = OffsetFetchResponse.OffsetFetchResponseTopics
_Row = OffsetFetchResponse.OffsetFetchResponsePartitions
_NOTHING = Committed(-1, -1, "", -1)
_NO_OFFSETS = Fetched({}, frozenset(), {}, {})


class _Read(NamedTuple):
    """One read of a group, which all rows of a request about it share."""

    group_id: str
    is_of_all: bool


class _RequestedTopic(NamedTuple):
    """A requested topic; ``name`` is None if its id is unknown, ``topic_id`` in versions without
    ids.
    """

    name: str | None
    topic_id: bytes | None
    partitions: Sequence[int]


class _Part(NamedTuple):
    """A requested group.

    Attributes:
        topics: Its topics; None for all.
        reader: The member that reads them.
        mention: The read that has its offsets, and its size.
    """

    topics: Sequence[_RequestedTopic] | None
    reader: Reader
    mention: Mention[_Read]


def handle(context: Context, request: OffsetFetchRequest) -> Work[ShardCalls]:
    """Fetch the offsets of each group separately; a partition without an offset has -1.

    A repeated group is read once, and is in the response as often as in the request.
    """
    reads: dict[_Read, Selection] = {}
    parts: list[_Part] = []
    for group_id, topics, reader in (yield from _requested(context, request)):
        yield
        read = _Read(group_id, topics is None)
        # The size of the metadata of named partitions belongs to the first part.
        has_size = topics is None or read not in reads
        selection = reads.setdefault(read, Selection(None if topics is None else {}))
        selection.readers.add(reader)
        own_bytes = yield from _add(selection, topics or ())
        parts.append(_Part(topics, reader, Mention(read, own_bytes, has_size)))

    def operation(read: _Read, budget: Budget) -> GroupOperation | None:
        run = partial(fetch_offsets, read.group_id, reads[read], budget)
        return group_operation(context, read.group_id, run)

    reading = Reading(
        operation,
        lambda: (part.mention for part in parts),
        RESPONSE_BYTES_MAX,
        partial(_response, context, request, parts),
    )
    return (yield from coordinate_reads(reading, reads))


def _add(selection: Selection, topics: Iterable[_RequestedTopic]) -> Work[int]:
    """Add the partitions of a part; return an upper bound of their rows without metadata."""
    size = 0
    for topic in topics:
        yield
        size += ROW_BYTES * (1 + len(topic.partitions))
        if topic.name is None:
            continue
        assert selection.partitions is not None, "the topics are named"
        times = selection.partitions.setdefault(topic.name, Counter())
        for partition in topic.partitions:
            yield
            times[partition] += 1
    return size


def _requested(
    context: Context, request: OffsetFetchRequest
) -> Work[list[tuple[str, list[_RequestedTopic] | None, Reader]]]:
    if context.caller.api_version < BATCHED_VERSION:
        topics = request.topics
        found = (
            None
            if topics is None
            else [_RequestedTopic(one.name, None, one.partition_indexes) for one in topics]
        )
        return [(request.group_id, found, Reader())]
    requested: list[tuple[str, list[_RequestedTopic] | None, Reader]] = []
    for group in request.groups:
        found = None if group.topics is None else []
        for topic in group.topics or ():
            yield
            assert found is not None, "there are topics"
            found.append(_topic(context, topic))
        requested.append((group.group_id, found, Reader(group.member_id, group.member_epoch)))
    return requested


def _topic(context: Context, topic: OffsetFetchRequest.OffsetFetchRequestTopics) -> _RequestedTopic:
    if context.caller.api_version < IDS_VERSION:
        return _RequestedTopic(topic.name, None, topic.partition_indexes)
    known = context.image.topics.by_id.get(topic.topic_id)
    return _RequestedTopic(known.name if known else None, topic.topic_id, topic.partition_indexes)


def _response(
    context: Context,
    request: OffsetFetchRequest,
    parts: Sequence[_Part],
    results: Sequence[ShardResult],
) -> Work[OffsetFetchResponse]:
    groups: list[OffsetFetchResponse.OffsetFetchResponseGroup] = []
    for part, result in zip(parts, results, strict=True):
        yield
        groups.append((yield from _group(context, part, result, request.require_stable)))
    if context.caller.api_version >= BATCHED_VERSION:
        return OffsetFetchResponse(groups=groups)
    return (yield from _unbatched(groups[0]))


def _group(
    context: Context, part: _Part, result: ShardResult, require_stable: bool
) -> Work[OffsetFetchResponse.OffsetFetchResponseGroup]:
    code, fetched = result.error_code, value_of(result)
    group_id = part.mention.key.group_id
    if isinstance(fetched, Fetched):
        code = fetched.refused.get(part.reader, 0)
    if code and context.caller.api_version >= ERROR_VERSION:
        return _Group(group_id=group_id, error_code=code, topics=[])
    if code:
        fetched = _NO_OFFSETS
    assert isinstance(fetched, Fetched), "a shard answers with offsets"
    topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = []
    for topic in _topics(context, part, fetched):
        yield
        name = _current_name(topic, fetched)
        rows: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = []
        for partition in topic.partitions:
            yield
            rows.append(_row(name, partition, fetched, code, require_stable))
        topic_id = topic.topic_id or NO_TOPIC_ID
        topics.append(_Topic(name=topic.name or "", topic_id=topic_id, partitions=rows))
    return _Group(group_id=group_id, topics=topics)


def _topics(context: Context, part: _Part, fetched: Fetched) -> Iterable[_RequestedTopic]:
    """Return the topics of a group's response."""
    return _all(context, fetched) if part.topics is None else part.topics


def _all(context: Context, fetched: Fetched) -> Iterable[_RequestedTopic]:
    """Yield the topics with offsets; in versions with topic ids, only existing topics."""
    for name, partitions in fetched.offsets.items():
        topic_id = fetched.topic_ids[name]
        if topic_id is not None or context.caller.api_version < IDS_VERSION:
            yield _RequestedTopic(name, topic_id, list(partitions))


def _current_name(topic: _RequestedTopic, fetched: Fetched) -> str | None:
    """Return the topic's name, or None if that topic did not exist when the offsets were read."""
    if topic.name is None or topic.topic_id in (None, fetched.topic_ids.get(topic.name)):
        return topic.name
    return None


def _row(
    name: str | None, partition: int, fetched: Fetched, code: int, require_stable: bool
) -> OffsetFetchResponse.OffsetFetchResponsePartitions:
    found = None
    if name is None:
        code = UnknownTopicIdError.code
    elif require_stable and (name, partition) in fetched.unstable:
        code = UnstableOffsetCommitError.code
    else:
        found = fetched.offsets.get(name, {}).get(partition)
    found = found or _NOTHING
    return _Row(
        partition_index=partition,
        committed_offset=found.offset,
        committed_leader_epoch=found.leader_epoch,
        metadata=found.metadata,
        error_code=code,
    )


def _unbatched(
    group: OffsetFetchResponse.OffsetFetchResponseGroup,
) -> Work[OffsetFetchResponse]:
    topics: list[OffsetFetchResponse.OffsetFetchResponseTopic] = []
    for topic in group.topics:
        rows: list[OffsetFetchResponse.OffsetFetchResponsePartition] = []
        for row in topic.partitions:
            yield
            rows.append(
                OffsetFetchResponse.OffsetFetchResponsePartition(
                    partition_index=row.partition_index,
                    committed_offset=row.committed_offset,
                    committed_leader_epoch=row.committed_leader_epoch,
                    metadata=row.metadata,
                    error_code=row.error_code,
                )
            )
        topics.append(
            OffsetFetchResponse.OffsetFetchResponseTopic(name=topic.name, partitions=rows)
        )
    return OffsetFetchResponse(error_code=group.error_code, topics=topics)
