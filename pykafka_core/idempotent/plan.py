"""Which records are fresh and where the marks stand afterwards: pure functions, no database, no broker."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

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
