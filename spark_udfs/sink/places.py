"""Types for partitions, as named in rows, and their offset ranges."""

from typing import NamedTuple, TypeAlias

Place: TypeAlias = tuple[str, int]
"""Topic and partition."""


class Range(NamedTuple):
    """Offsets of a partition; ``end`` is exclusive."""

    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.start} to {self.end - 1}" if self.end > self.start else "none"


def name(place: Place) -> str:
    """Return Kafka's name of the partition: "orders-0"."""
    return f"{place[0]}-{place[1]}"
