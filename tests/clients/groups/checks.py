"""What must hold of a group's history beyond `tests/faults/history.py`: overlaps in time, repeats and gaps."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations

from tests.faults.history import Anomaly, History, Owned, Read, check

Place = tuple[int, int]
"""Partition and offset."""


def anomalies(
    reads: Sequence[Read],
    owned: Sequence[Owned],
    *,
    written: Collection[str],
    repeated: Collection[Place] = (),
) -> list[Anomaly]:
    """Everything that is wrong.

    Args:
        reads: Of all members, each one's in the order in which they came.
        owned: Generation -1 where the client does not tell it; then overlaps in time speak alone.
        written: Every value; each must have been read.
        repeated: These may come once more: they were sought, or read by a member that died before its commit.
    """
    known = [span for span in owned if span.generation >= 0]
    return [
        *check(History(reads=_first_readings(reads), owned=known)),
        *overlaps(owned),
        *repeats(reads, repeated),
        *gaps(reads, written),
    ]


def overlaps(owned: Sequence[Owned]) -> Iterator[Anomaly]:
    """A partition has one owner at a time; a member tells that it gives one up before the group is told."""
    for one, other in combinations(owned, 2):
        is_shared = one.partition == other.partition and one.member != other.member
        if is_shared and one.since < other.until and other.since < one.until:
            yield Anomaly("two owners", f"{one} and {other}")


def repeats(reads: Sequence[Read], repeated: Collection[Place]) -> Iterator[Anomaly]:
    """A record comes once."""
    counts = Counter((read.partition, read.offset) for read in reads)
    for place, count in counts.items():
        if count > 1 + (place in repeated):
            yield Anomaly("duplicate", f"{place} came {count} times")


def gaps(reads: Sequence[Read], written: Collection[str]) -> Iterator[Anomaly]:
    """Every record comes."""
    if missing := set(written) - {read.value for read in reads}:
        yield Anomaly("lost record", f"{sorted(missing)} never came")


def _first_readings(reads: Sequence[Read]) -> list[Read]:
    """Without what a member read again after a seek, which goes back on purpose."""
    first: dict[tuple[str, int, int], Read] = {}
    for read in reads:
        first.setdefault((read.consumer, read.partition, read.offset), read)
    return list(first.values())
