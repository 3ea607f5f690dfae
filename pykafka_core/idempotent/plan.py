"""Which records are fresh and where the marks stand afterwards: pure functions, no database, no broker."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from pykafka_core.errors import DataLossError
from pykafka_core.idempotent.ledger import PartitionKey


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


def plan(marks: Mapping[PartitionKey, int], places: Iterable[tuple[PartitionKey, int]]) -> Plan:
    """Compare a batch with the marks.

    Args:
        marks: Of every partition in the batch.
        places: Each record's partition and offset in the order of delivery, which within a
            partition is the log's order, begun again at an earlier offset any number of times.
    """
    fresh: list[int] = []
    moved: dict[PartitionKey, int] = {}
    gaps: list[Gap] = []
    for index, (key, offset) in enumerate(places):
        expected = moved.get(key, marks[key])
        if offset < expected:
            continue
        if offset > expected:
            gaps.append(Gap(key, expected, offset))
        fresh.append(index)
        moved[key] = offset + 1
    return Plan(fresh, moved, gaps)


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
            "processed: the log was cut or is another cluster's. Use a new group to read it again"
        )
    if mark < first and fail_on_data_loss:
        raise DataLossError(
            f"{key.topic}-{key.partition} begins at offset {first}, but only what is before {mark} "
            "was processed: retention deleted the rest. fail_on_data_loss=False goes on without it"
        )
    return max(mark, first)
