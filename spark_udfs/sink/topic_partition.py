"""Types for partitions, as named in rows, and their offset ranges."""

from typing import NamedTuple, TypeAlias

TopicPartition: TypeAlias = tuple[str, int]
"""Name of a topic, and the number of a partition from 0 on."""


class Range(NamedTuple):
    """Offsets of a partition; ``end`` is exclusive."""

    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.start} to {self.end - 1}" if self.end > self.start else "none"


def name(place: TopicPartition) -> str:
    """Return Kafka's name of the partition: "orders-0"."""
    return f"{place[0]}-{place[1]}"
