"""Rules of a group's history beyond `tests/faults/history.py`: overlaps, repeats and gaps."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations

from tests.faults.history import Anomaly, History, Owned, Read, check

TopicPartition = tuple[int, int]
"""Partition and offset."""


def anomalies(
    reads: Sequence[Read],
    owned: Sequence[Owned],
    *,
    written: Collection[str],
    repeated: Collection[TopicPartition] = (),
) -> list[Anomaly]:
    """Return all anomalies.

    Args:
        reads: Reads of all members, each member's in order.
        owned: Generation -1 if the client does not report it; then only overlaps are checked.
        written: Every value; each must have been read.
        repeated: Places that may be read twice: after a seek, or after a member died before its
            commit.
    """
    known = [span for span in owned if span.generation >= 0]
    return [
        *check(History(reads=_first_readings(reads), owned=known)),
        *overlaps(owned),
        *repeats(reads, repeated),
        *gaps(reads, written),
    ]


def overlaps(owned: Sequence[Owned]) -> Iterator[Anomaly]:
    """Find partitions with two owners at a time.

    A member reports a revocation before it sends it to the group, so spans of owners never overlap.
    """
    for one, other in combinations(owned, 2):
        is_shared = one.partition == other.partition and one.member != other.member
        if is_shared and one.since < other.until and other.since < one.until:
            yield Anomaly("two owners", f"{one} and {other}")


def repeats(reads: Sequence[Read], repeated: Collection[TopicPartition]) -> Iterator[Anomaly]:
    """Find records that were read twice."""
    counts = Counter((read.partition, read.offset) for read in reads)
    for place, count in counts.items():
        if count > 1 + (place in repeated):
            yield Anomaly("duplicate", f"{place} came {count} times")


def gaps(reads: Sequence[Read], written: Collection[str]) -> Iterator[Anomaly]:
    """Find records that were not read."""
    if missing := set(written) - {read.value for read in reads}:
        yield Anomaly("lost record", f"{sorted(missing)} never came")


def _first_readings(reads: Sequence[Read]) -> list[Read]:
    """Remove repeated reads of a member, such as after a seek."""
    first: dict[tuple[str, int, int], Read] = {}
    for read in reads:
        first.setdefault((read.consumer, read.partition, read.offset), read)
    return list(first.values())
