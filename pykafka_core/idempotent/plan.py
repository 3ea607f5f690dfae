"""Which records are fresh and where the marks stand afterwards: pure functions, no database, no broker."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from pykafka_core.errors import DataLossError, UsageError
from pykafka_core.idempotent.ledger import PartitionKey

OFFSET_MAX: Final = 2**63 - 1
"""Kafka's offsets, and what ledgers keep them in, have 64 bits."""


class Gap(NamedTuple):
    """Offsets that were expected and did not come: [``expected``, ``found``)."""

    key: PartitionKey
    expected: int
    found: int


class Plan(NamedTuple):
    """What a batch comes to.

    ``fresh``: indexes into the batch, ascending, of the records not processed before. ``marks``:
    the next offset of each partition that moved. ``gaps``: what was skipped on the way; compaction,
    control records and aborted transactions leave gaps that are in order, deletion by retention
    leaves one that is loss. The caller, who can ask the broker, decides.
    """

    fresh: list[int]
    marks: dict[PartitionKey, int]
    gaps: list[Gap]


def first_fresh(offset_at: Callable[[int], int], start: int, stop: int, mark: int) -> int:
    """The first row of [``start``, ``stop``) at or after the mark; ``stop`` if there is none.

    Args:
        offset_at: The offset of a row; offsets do not descend within the range.
    """
    return bisect_left(range(stop), mark, start, stop, key=offset_at)


def plan(marks: Mapping[PartitionKey, int], places: Sequence[tuple[PartitionKey, int]]) -> Plan:
    """Compare a batch with the marks.

    Args:
        marks: Of every partition in the batch.
        places: Each record's partition and offset in the order of delivery, which within a
            partition is the log's order, begun again at an earlier offset any number of times.
    """
    fresh: list[int] = []
    moved: dict[PartitionKey, int] = {}
    gaps: list[Gap] = []
    for key, start, stop in _runs(places):
        expected = moved.get(key, marks[key])
        begin = first_fresh(lambda at: places[at][1], start, stop, expected)
        for index in range(begin, stop):
            offset = places[index][1]
            if offset > expected:
                gaps.append(Gap(key, expected, offset))
            expected = offset + 1
        if begin < stop:
            fresh.extend(range(begin, stop))
            moved[key] = expected
    return Plan(fresh, moved, gaps)


def check_mark(key: PartitionKey, offset: int, known: int) -> None:
    """Do nothing if a partition's mark can move to an offset.

    Args:
        key: The partition.
        offset: The mark to be.
        known: The mark as it is.

    Raises:
        UsageError: The mark would go back or is no offset, or the key is of no partition.
    """
    if not isinstance(key, PartitionKey) or len(key.topic_id) != 16:
        raise UsageError(f"a mark's key is a PartitionKey with a topic id of 16 bytes, not {key!r}")
    if type(offset) is not int or not known <= offset <= OFFSET_MAX:
        raise UsageError(
            f"the mark of {key.topic}-{key.partition} cannot go from {known} to {offset!r}"
        )


def _runs(
    places: Sequence[tuple[PartitionKey, int]],
) -> Iterator[tuple[PartitionKey, int, int]]:
    """Records of one partition that follow each other with ascending offsets: key, start and stop."""
    start = 0
    for index in range(1, len(places) + 1):
        if index < len(places):
            (key, offset), (key_before, offset_before) = places[index], places[index - 1]
            if key == key_before and offset > offset_before:
                continue
        if start < index:
            yield places[start][0], start, index
        start = index


def first_of_each(ids: Sequence[bytes], new: set[bytes]) -> list[bool]:
    """True at the first place of each id that is in ``new``, which is emptied on the way."""
    mask = []
    for value in ids:
        is_new = value in new
        if is_new:
            new.remove(value)
        mask.append(is_new)
    return mask


def starting_marks(
    marks: Mapping[PartitionKey, int],
    watermarks: Mapping[PartitionKey, tuple[int, int]],
    *,
    start: Literal["earliest", "latest"],
    fail_on_data_loss: bool,
) -> dict[PartitionKey, int]:
    """Where to go on reading each partition.

    ``start`` is for topics that the group has never seen. A partition added later and a topic that
    was recreated begin at their first record: what was written before anybody noticed must not be skipped.

    Args:
        marks: All of the group's.
        watermarks: First offset and end (exclusive) of each partition to read.
        start: Which of the two.
        fail_on_data_loss: Whether it is an error that records were deleted before they were
            processed; else reading goes on at the first that is left.

    Raises:
        DataLossError: That; or the log ends before a mark, which is never passed over in silence.
    """
    topics_seen = {key.topic for key in marks}
    starts = {}
    for key, (first, end) in watermarks.items():
        if key in marks:
            starts[key] = _resumed(key, marks[key], first, end, fail_on_data_loss)
        else:
            starts[key] = end if start == "latest" and key.topic not in topics_seen else first
    return starts


def _resumed(key: PartitionKey, mark: int, first: int, end: int, fail_on_data_loss: bool) -> int:
    if mark > end:
        raise DataLossError(
            f"{key.topic}-{key.partition} ends at offset {end}, but everything before {mark} was "
            "processed: the log was cut, or is another cluster's, or the consumer reads committed records now and read "
            "others before (isolation.level; then wait for the open transaction). A new group reads all of it again"
        )
    if mark < first and fail_on_data_loss:
        raise DataLossError(
            f"{key.topic}-{key.partition} begins at offset {first}, but only what is before {mark} "
            "was processed: retention deleted the rest. fail_on_data_loss=False goes on without it"
        )
    return max(mark, first)
