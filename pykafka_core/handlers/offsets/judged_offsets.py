"""Checks the offsets of a request before its group does: the common part of OffsetCommit and
TxnOffsetCommit.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from pykafka_core.coordinator.group.offsets.commit import NewOffset, StoredOffset, stored_offset
from pykafka_core.coordinator.group.offsets.records import OffsetRecords
from pykafka_core.errors import (
    NONE,
    OffsetMetadataTooLargeError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from pykafka_core.handlers.context import Context
from pykafka_core.handlers.outcome import ShardResult, Work
from pykafka_core.metadata.image.image import Topic, Topics


class AskedOffset(Protocol):
    """A partition of a request."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


class AskedTopic(Protocol):
    """A topic of a request. ``name`` or ``topic_id`` is set, depending on the version."""

    name: str
    topic_id: bytes

    @property
    def partitions(self) -> Sequence[AskedOffset]:
        """The partitions to commit, with their offsets."""


class ResultRow(Protocol):
    """A partition of a response."""

    error_code: int


R = TypeVar("R", bound=ResultRow)
T = TypeVar("T")

ROWS_A_SLICE = 16
"""Number of rows between two yields: a row takes some ten microseconds, a yield two."""


class TopicLookup(NamedTuple):
    """Finds the topics of a request in an image, by id or by name."""

    topics: Topics
    by_id: bool

    @property
    def unknown_code(self) -> int:
        """Error code for each partition of an unknown topic."""
        return (UnknownTopicIdError if self.by_id else UnknownTopicOrPartitionError).code

    def find(self, asked: AskedTopic) -> Topic | None:
        """Return the topic; None if it does not exist."""
        if self.by_id:
            return self.topics.by_id.get(asked.topic_id)
        return self.topics.by_name.get(asked.name)


class JudgedOffsets:
    """The offsets that are committed if the group accepts the request.

    Args:
        group_id: The group of the offsets.
        retention_ms: Retention of the offsets, or `NO_RETENTION`.
        now_ms: Wall-clock time.
        lookup: Finds the topics.

    Attributes:
        asked: Rows whose result depends on the group, by topic id. An error of the group replaces
            theirs; so does the deletion of the topic before the commit.
        offsets: The valid offsets.
    """

    def __init__(self, group_id: str, retention_ms: int, now_ms: int, lookup: TopicLookup) -> None:
        self._group_id = group_id
        self._retention_ms = retention_ms
        self._now_ms = now_ms
        self._lookup = lookup
        self.asked: dict[bytes, list[ResultRow]] = {}
        self.offsets: list[StoredOffset] = []

    def judge(
        self,
        context: Context,
        asked: Iterable[AskedTopic],
        topic_row: Callable[..., T],
        row: Callable[..., R],
    ) -> Work[list[T]]:
        """Check the topics; return their rows for the case that the group accepts the commit.

        Args:
            context: Has the limit of metadata.
            asked: The topics in the request.
            topic_row: Creates the row of a topic from its name, its id and its partitions.
            row: Creates the row of a partition from its index and an error code.
        """
        length_max = context.settings.int("offset.metadata.max.bytes")
        rows = []
        for topic in asked:
            yield
            partitions = yield from self._judge_topic(topic, length_max, row)
            rows.append(topic_row(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
        return rows

    def settle(self, committed: ShardResult) -> Work[None]:
        """Set the error codes that the result of the commit leads to: the group's in all rows that
        depend on it, or that of an unknown topic in the rows of each topic that was deleted.
        """
        if committed.error_code:
            for rows in self.asked.values():
                yield from _set(rows, committed.error_code)
        elif isinstance(committed.value, frozenset):
            for topic_id in committed.value:
                yield from _set(self.asked[topic_id], self._lookup.unknown_code)

    def _judge_topic(
        self, asked: AskedTopic, length_max: int, row: Callable[..., R]
    ) -> Work[list[R]]:
        rows = []
        topic = self._lookup.find(asked)
        records = None if topic is None else OffsetRecords(self._group_id, topic.name)
        for number, one in enumerate(asked.partitions):
            if number % ROWS_A_SLICE == ROWS_A_SLICE - 1:
                yield
            code = self._lookup.unknown_code if topic is None else _code(topic, one, length_max)
            result = row(partition_index=one.partition_index, error_code=code)
            rows.append(result)
            if topic is not None and code in (NONE, OffsetMetadataTooLargeError.code):
                self.asked.setdefault(topic.topic_id, []).append(result)
            if topic is not None and records is not None and code == NONE:
                new = _new(topic, one)
                stored = stored_offset(records, new, self._retention_ms, self._now_ms)
                self.offsets.append(stored)
        return rows


def _set(rows: Iterable[ResultRow], code: int) -> Work[None]:
    for row in rows:
        yield
        row.error_code = code


def _code(topic: Topic, one: AskedOffset, length_max: int) -> int:
    if one.partition_index not in topic.partitions:
        return UnknownTopicOrPartitionError.code
    text = one.committed_metadata or ""
    if 2 * len(text) > length_max and _utf16_length(text) > length_max:
        return OffsetMetadataTooLargeError.code
    return NONE


def _utf16_length(text: str) -> int:
    """Return the number of UTF-16 units, at most two per character. Kafka compares this, although
    the name of the setting contains ``bytes``.
    """
    return len(text.encode("utf-16-be", "surrogatepass")) // 2


def _new(topic: Topic, one: AskedOffset) -> NewOffset:
    return NewOffset(
        topic.name,
        one.partition_index,
        one.committed_offset,
        one.committed_leader_epoch,
        one.committed_metadata or "",
        topic.topic_id,
    )
