"""Which offsets of a request can be committed at all: what OffsetCommit and TxnOffsetCommit have in common."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from pykafka_core.coordinator.group.offsets.commit import NewOffset, StoredOffset, stored_offset
from pykafka_core.coordinator.group.offsets.records import OffsetRecords
from pykafka_core.errors import (
    NONE,
    OffsetMetadataTooLargeError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from pykafka_core.handlers.outcome import Slices
from pykafka_core.metadata.image.image import Topic, Topics


class AskedOffset(Protocol):
    """A partition of a request."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


class AskedTopic(Protocol):
    """A topic of a request. Its version decides whether ``name`` or ``topic_id`` is set."""

    name: str
    topic_id: bytes

    @property
    def partitions(self) -> Sequence[AskedOffset]:
        """The partitions to commit, with their offsets."""


class ResultRow(Protocol):
    """A partition of a response."""

    error_code: int


R = TypeVar("R", bound=ResultRow)

ROWS_A_SLICE = 16
"""A row takes some ten microseconds, a yield two."""


class TopicLookup(NamedTuple):
    """Topics of an image as a version of a request names them."""

    topics: Topics
    by_id: bool

    @property
    def unknown_code(self) -> int:
        """The error of each partition of an unknown topic."""
        return (UnknownTopicIdError if self.by_id else UnknownTopicOrPartitionError).code

    def find(self, asked: AskedTopic) -> Topic | None:
        """The topic that a request names, None if it does not exist."""
        if self.by_id:
            return self.topics.by_id.get(asked.topic_id)
        return self.topics.by_name.get(asked.name)


class JudgedOffsets:
    """What is committed if the group takes it.

    Args:
        group_id: Whose they are.
        retention_ms: How long they are kept, or `NO_RETENTION`.
        now_ms: The wall clock.

    Attributes:
        asked: Rows that the group has a say in: an error of its own comes before theirs.
        offsets: What is committed.
    """

    def __init__(self, group_id: str, retention_ms: int, now_ms: int) -> None:
        self._group_id = group_id
        self._retention_ms = retention_ms
        self._now_ms = now_ms
        self.asked: list[ResultRow] = []
        self.offsets: list[StoredOffset] = []

    def judge(
        self,
        lookup: TopicLookup,
        asked: AskedTopic,
        length_max: int,
        row: Callable[[int, int], R],
    ) -> Slices[list[R]]:
        """One topic's rows as they are if the group takes the commit.

        Args:
            lookup: Finds the topic.
            asked: Of the request.
            length_max: ``offset.metadata.max.bytes``.
            row: Makes a row of a partition's index and an error code.
        """
        rows = []
        topic = lookup.find(asked)
        records = None if topic is None else OffsetRecords(self._group_id, topic.name)
        for number, one in enumerate(asked.partitions):
            if number % ROWS_A_SLICE == ROWS_A_SLICE - 1:
                yield
            code = lookup.unknown_code if topic is None else _code(topic, one, length_max)
            result = row(one.partition_index, code)
            rows.append(result)
            if code in (NONE, OffsetMetadataTooLargeError.code):
                self.asked.append(result)
            if topic is not None and records is not None and code == NONE:
                new = _new(topic, one)
                stored = stored_offset(records, new, self._retention_ms, self._now_ms)
                self.offsets.append(stored)
        return rows

    def refuse(self, code: int) -> Slices[None]:
        """The group has refused the commit, unless ``code`` is 0."""
        for row in self.asked if code else ():
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
    """What Kafka compares, whatever the setting's name says. At most two for each character."""
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
