"""OffsetFetch (9): returns the committed offsets of groups."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from pykafka_core.coordinator.group.offsets.fetch import Fetched, Reader, fetch_offsets
from pykafka_core.coordinator.group.offsets.table import NO_TOPIC_ID, Committed
from pykafka_core.errors import (
    CoordinatorNotAvailableError,
    UnknownTopicIdError,
    UnstableOffsetCommitError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.coordinators.groups import coordinate_each
from pykafka_core.handlers.outcome import (
    Made,
    Reserve,
    ShardCalls,
    ShardResult,
    Work,
    encoded_length_max,
)
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
_ROW_BYTES = 160
"""Size of a topic or a row, encoded and as an object, without metadata."""

_Group = OffsetFetchResponse.OffsetFetchResponseGroup
_Topic = OffsetFetchResponse.OffsetFetchResponseTopics
_Row = OffsetFetchResponse.OffsetFetchResponsePartitions
_LATER = ShardResult(CoordinatorNotAvailableError.code)
_NOTHING = Committed(-1, -1, "", -1)
_NO_OFFSETS = Fetched({}, frozenset(), {}, {})


class _RequestedTopic(NamedTuple):
    """A requested topic; ``name`` is None if its id is unknown, ``topic_id`` in versions without
    ids.
    """

    name: str | None
    topic_id: bytes | None
    partitions: Sequence[int]


class _Wanted(NamedTuple):
    """A requested group; ``topics`` is None for all topics."""

    group_id: str
    topics: Sequence[_RequestedTopic] | None
    reader: Reader = Reader()

    @property
    def read(self) -> "_Read":
        """The read that has its offsets."""
        return _Read(self.group_id, self.topics is None)


class _Read(NamedTuple):
    """One read of a group, which all rows of a request about it share."""

    group_id: str
    is_of_all: bool


def handle(context: Context, request: OffsetFetchRequest) -> Work[ShardCalls]:
    """Fetch the offsets of each group separately; a partition without an offset has -1.

    A repeated group is read once, and is in the response as often as in the request.
    """
    wanted = yield from _wanted(context, request)
    reads: dict[_Read, tuple[set[str], set[Reader]]] = {}
    for one in wanted:
        yield
        names, readers = reads.setdefault(one.read, (set(), set()))
        names.update(topic.name for topic in one.topics or () if topic.name is not None)
        readers.add(one.reader)

    def reply(results: Sequence[ShardResult]) -> Work[Made]:
        return _reserve(context, request, wanted, dict(zip(reads, results, strict=True)))

    operations = (
        (
            read.group_id,
            partial(
                fetch_offsets,
                read.group_id,
                None if read.is_of_all else names,
                readers,
            ),
        )
        for read, (names, readers) in reads.items()
    )
    return (yield from coordinate_each(context, operations, reply))


def _wanted(context: Context, request: OffsetFetchRequest) -> Work[list[_Wanted]]:
    if context.caller.api_version < BATCHED_VERSION:
        topics = request.topics
        asked = (
            None
            if topics is None
            else [_RequestedTopic(t.name, None, t.partition_indexes) for t in topics]
        )
        return [_Wanted(request.group_id, asked)]
    wanted: list[_Wanted] = []
    for group in request.groups:
        found: list[_RequestedTopic] | None = None if group.topics is None else []
        for topic in group.topics or ():
            yield
            assert found is not None, "there are topics"
            found.append(_asked(context, topic))
        wanted.append(_Wanted(group.group_id, found, Reader(group.member_id, group.member_epoch)))
    return wanted


def _asked(context: Context, topic: OffsetFetchRequest.OffsetFetchRequestTopics) -> _RequestedTopic:
    if context.caller.api_version < IDS_VERSION:
        return _RequestedTopic(topic.name, None, topic.partition_indexes)
    known = context.image.topics.by_id.get(topic.topic_id)
    return _RequestedTopic(known.name if known else None, topic.topic_id, topic.partition_indexes)


def _reserve(
    context: Context,
    request: OffsetFetchRequest,
    wanted: Sequence[_Wanted],
    results: Mapping[_Read, ShardResult],
) -> Work[Made]:
    """Choose the groups that the response has room for, and reserve its memory."""
    came: list[ShardResult] = []
    bytes_left = RESPONSE_BYTES_MAX
    for one in wanted:
        yield
        # The first group is always included, whatever its size.
        came.append(_result(one, results[one.read]) if bytes_left > 0 or not came else _LATER)
        bytes_left -= yield from _size(context, one, came[-1])
    return Reserve(
        RESPONSE_BYTES_MAX - bytes_left, lambda: _response(context, request, wanted, came)
    )


def _result(wanted: _Wanted, result: ShardResult) -> ShardResult:
    """Return the result for the reader of a group."""
    if isinstance(result.value, Fetched) and wanted.reader in result.value.refused:
        return ShardResult(result.value.refused[wanted.reader])
    return result


def _size(context: Context, wanted: _Wanted, result: ShardResult) -> Work[int]:
    fetched, size = result.value, 0
    if not isinstance(fetched, Fetched):
        return size
    for topic in _topics(context, wanted, fetched):
        yield
        size += _ROW_BYTES
        offsets = fetched.offsets.get(topic.name or "", {})
        for partition in topic.partitions:
            yield
            found = offsets.get(partition, _NOTHING)
            size += _ROW_BYTES + encoded_length_max(found.metadata)
    return size


def _response(
    context: Context,
    request: OffsetFetchRequest,
    wanted: Sequence[_Wanted],
    results: Sequence[ShardResult],
) -> Work[OffsetFetchResponse]:
    groups: list[OffsetFetchResponse.OffsetFetchResponseGroup] = []
    for one, result in zip(wanted, results, strict=True):
        yield
        groups.append((yield from _group(context, one, result, request.require_stable)))
    if context.caller.api_version >= BATCHED_VERSION:
        return OffsetFetchResponse(groups=groups)
    return (yield from _unbatched(groups[0]))


def _group(
    context: Context, wanted: _Wanted, result: ShardResult, require_stable: bool
) -> Work[OffsetFetchResponse.OffsetFetchResponseGroup]:
    code, fetched = result.error_code, result.value
    if code and context.caller.api_version >= ERROR_VERSION:
        return _Group(group_id=wanted.group_id, error_code=code, topics=[])
    if code:
        fetched = _NO_OFFSETS
    assert isinstance(fetched, Fetched), "a shard answers with offsets"
    topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = []
    for topic in _topics(context, wanted, fetched):
        yield
        name = _current_name(topic, fetched)
        rows: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = []
        for partition in topic.partitions:
            yield
            rows.append(_row(name, partition, fetched, code, require_stable))
        topic_id = topic.topic_id or NO_TOPIC_ID
        topics.append(_Topic(name=topic.name or "", topic_id=topic_id, partitions=rows))
    return _Group(group_id=wanted.group_id, topics=topics)


def _topics(context: Context, wanted: _Wanted, fetched: Fetched) -> Iterable[_RequestedTopic]:
    """Return the topics of a group's response."""
    return _all(context, fetched) if wanted.topics is None else wanted.topics


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
