"""Which offsets of a request can be committed at all: what OffsetCommit and TxnOffsetCommit have in common."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, TypeVar

from pykafka_core.coordinator.group.offsets.commit import NewOffset
from pykafka_core.errors import (
    NONE,
    InvalidCommitOffsetSizeError,
    OffsetMetadataTooLargeError,
    RecordListTooLargeError,
    UnknownTopicOrPartitionError,
)
from pykafka_core.handlers.outcome import Slices
from pykafka_core.metadata.image.image import Topic


class AskedOffset(Protocol):
    """A partition of a request."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


class ResultRow(Protocol):
    """A partition of a response."""

    error_code: int


R = TypeVar("R", bound=ResultRow)


class JudgedOffsets(NamedTuple):
    """What is committed if the group takes it.

    ``asked`` are rows that the group has a say in: an error of its own comes before theirs.
    """

    asked: list[ResultRow]
    offsets: list[NewOffset]

    def judge(
        self,
        topic: Topic | None,
        partitions: Iterable[AskedOffset],
        length_max: int,
        row: Callable[[int, int], R],
        unknown_code: int = UnknownTopicOrPartitionError.code,
    ) -> Slices[list[R]]:
        """One topic's rows as they are if the group takes the commit.

        Args:
            topic: None if it does not exist: ``unknown_code``.
            partitions: Of the request.
            length_max: ``offset.metadata.max.bytes``.
            row: Makes a row of a partition's index and an error code.
            unknown_code: Of each partition of an unknown topic.
        """
        rows = []
        for one in partitions:
            yield
            code = unknown_code if topic is None else _code(topic, one, length_max)
            result = row(one.partition_index, code)
            rows.append(result)
            if code in (NONE, OffsetMetadataTooLargeError.code):
                self.asked.append(result)
            if topic is not None and code == NONE:
                self.offsets.append(_new(topic, one))
        return rows

    def refuse(self, code: int) -> Slices[None]:
        """The group has refused the commit, unless ``code`` is 0."""
        if code == RecordListTooLargeError.code:
            code = InvalidCommitOffsetSizeError.code
        for row in self.asked if code else ():
            yield
            row.error_code = code


def _code(topic: Topic, one: AskedOffset, length_max: int) -> int:
    if one.partition_index not in topic.partitions:
        return UnknownTopicOrPartitionError.code
    # Kafka compares characters of UTF-16, whatever the setting's name says.
    text = one.committed_metadata or ""
    if len(text.encode("utf-16-be", "surrogatepass")) // 2 > length_max:
        return OffsetMetadataTooLargeError.code
    return NONE


def _new(topic: Topic, one: AskedOffset) -> NewOffset:
    return NewOffset(
        topic.name,
        one.partition_index,
        one.committed_offset,
        one.committed_leader_epoch,
        one.committed_metadata or "",
        topic.topic_id,
    )
