"""Selects new records and computes new marks: pure functions without database or broker."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from pykafka_core.errors import DataLossError, UsageError
from pykafka_core.idempotent.ledger import PartitionKey

OFFSET_MAX: Final = 2**63 - 1
"""Offsets have 64 bits, in Kafka and in ledgers."""


class Gap(NamedTuple):
    """Offsets that were expected but missing: [``expected``, ``found``)."""

    key: PartitionKey
    expected: int
    found: int


class Deduplicated(NamedTuple):
    """The effect of a batch on the marks.

    ``fresh``: indexes into the batch, ascending, of the records not processed before. ``marks``:
    the next offset of each partition that moved. ``gaps``: skipped offsets. Gaps from compaction,
    control records and aborted transactions are normal; a gap from deletion by retention is a loss.
    The caller must distinguish them with information from the broker.
    """

    fresh: list[int]
    marks: dict[PartitionKey, int]
    gaps: list[Gap]


def first_fresh(offset_at: Callable[[int], int], start: int, stop: int, mark: int) -> int:
    """Return the first row of [``start``, ``stop``) at or after the mark; ``stop`` if none is.

    Args:
        offset_at: Returns the offset of a row; offsets must not descend within the range.
    """
    return bisect_left(range(stop), mark, start, stop, key=offset_at)


def plan(
    marks: Mapping[PartitionKey, int], places: Sequence[tuple[PartitionKey, int]]
) -> Deduplicated:
    """Compare a batch with the marks.

    Args:
        marks: The marks of all partitions in the batch.
        places: Each record's partition and offset in the order of delivery. Within a partition this
            is log order, but it may restart at an earlier offset any number of times.
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
    return Deduplicated(fresh, moved, gaps)


def check_mark(key: PartitionKey, offset: int, known: int) -> None:
    """Check that a partition's mark can move to an offset.

    Args:
        key: The partition.
        offset: The new mark.
        known: The current mark.

    Raises:
        UsageError: The mark would decrease or is not an offset, or the key is not a partition.
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
    """Yield runs of adjacent records of a partition with ascending offsets: key, start, stop."""
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
    """Return True at the first position of each id in ``new``; the ids are removed from ``new``."""
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
    """Return the offset from which to read each partition.

    ``start`` applies to topics that the group has never read. New partitions of known topics and
    recreated topics start at their first record, so that no records are skipped that were written
    before the change was noticed.

    Args:
        marks: All marks of the group.
        watermarks: First offset and end (exclusive) of each partition to read.
        start: Where to start reading new topics.
        fail_on_data_loss: True: raise an error if records were deleted before they were processed.
            False: continue at the first remaining record.

    Raises:
        DataLossError: As above, or the log ends before a mark, which is always an error.
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
            f"{key.topic}-{key.partition} begins at offset {first}, but only records before {mark} "
            "were processed: retention deleted the rest. fail_on_data_loss=False continues without them"
        )
    return max(mark, first)
