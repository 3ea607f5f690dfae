"""Which ids were seen: the value behind `dedup_stream`, without Spark and without files.

A memory is a few *slices*, each the sorted fingerprints of the ids whose time lies in ``[number * width, (number + 1)
* width)``. The width is an eighth of the horizon, so that forgetting is dropping a slice whole, and an id costs 16
bytes and not 24. Without a horizon there is one slice, number 0, for ever.

A slice goes once its whole span is more than the horizon before the newest time seen. So an id is remembered at least
while no time more than the horizon after its own was seen, and at most an eighth of the horizon longer. Forgetting
happens between calls, never within one: what a call answers depends on the set of its rows and not on their order in
time.

`claim` gives what a micro-batch adds. A memory is the union of all that was added, without the slices that are past
the horizon of its newest time: the same, whether they are dropped after each addition or at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from spark_udfs.dedup.fingerprints import Fingerprints, Indices, Sorted, first_of_each

__all__ = [
    "UNKNOWN",
    "Memory",
    "Times",
    "claim",
    "decode",
    "encode",
    "forget",
    "is_past",
    "slices_in",
    "split",
    "union",
]

SLICES_PER_HORIZON: Final = 8

_HEAD: Final = np.dtype([("newest", "<i8"), ("slices", "<u4")])
_SLICE: Final = np.dtype([("number", "<i8"), ("count", "<u8")])

UNKNOWN: Final = int(np.iinfo(np.int64).min)
"""A time that is not known: it counts as the newest one."""

Times: TypeAlias = npt.NDArray[np.int64]
"""Milliseconds since the epoch, one for each row, or `UNKNOWN`."""


@dataclass(frozen=True)
class Memory:
    """What one bucket remembers, or what a micro-batch adds to it.

    Attributes:
        newest: The latest time seen, in milliseconds.
        slices: Fingerprints by number of slice; no id is in two.
    """

    newest: int
    slices: dict[int, Sorted]

    @classmethod
    def blank(cls) -> "Memory":
        """Of nothing."""
        return cls(UNKNOWN, {})

    def count(self) -> int:
        """How many ids are remembered."""
        return sum(map(len, self.slices.values()))


def claim(
    memory: Memory, fingerprints: Fingerprints, times: Times | None, horizon_ms: int | None
) -> tuple[Indices, Memory]:
    """Which rows are new, and what they add to the memory.

    Args:
        memory: Of all calls before.
        fingerprints: Of the rows, in the order in which the first of equal ones wins.
        times: Of the rows; None exactly where ``horizon_ms`` is.
        horizon_ms: At least 1. None: nothing is ever forgotten.

    Returns:
        The indices of the rows to keep, ascending, and the new ids. A row that is older than the horizon when it
        comes is kept unless the same call has it twice, and is not remembered.
    """
    first = first_of_each(fingerprints)
    candidates = fingerprints.take(first, axis=0)
    seen = np.zeros(len(first), np.bool_)
    for known in memory.slices.values():
        seen |= known.contains(candidates)
    new = first[~seen]
    added = fingerprints.take(new, axis=0)
    if times is None or horizon_ms is None:
        news = Memory(memory.newest, {0: Sorted.of(added)} if len(new) else {})
    else:
        newest = max(memory.newest, int(times.max(initial=UNKNOWN)))
        numbers = np.where(times == UNKNOWN, newest, times)[new] // _width(horizon_ms)
        slices = {
            number: Sorted.of(added.compress(numbers == number, axis=0))
            for number in np.unique(numbers).tolist()
        }
        news = forget(Memory(newest, slices), newest, horizon_ms)
    kept = np.zeros(len(fingerprints), np.bool_)
    kept[new] = True
    return np.flatnonzero(kept), news


def forget(memory: Memory, newest: int, horizon_ms: int | None) -> Memory:
    """``memory`` at the time ``newest``, without the slices that are past the horizon then."""
    newest = max(memory.newest, newest)
    if horizon_ms is None:
        return Memory(newest, memory.slices)
    slices = {
        number: held
        for number, held in memory.slices.items()
        if not is_past(number, newest, horizon_ms)
    }
    return Memory(newest, slices)


def is_past(number: int, newest: int, horizon_ms: int) -> bool:
    """Whether all times of that slice are more than the horizon before ``newest``."""
    return (number + 1) * _width(horizon_ms) <= newest - horizon_ms


def union(memories: Sequence[Memory]) -> Memory:
    """What all of ``memories``, one at least, remember together."""
    numbers = sorted({number for memory in memories for number in memory.slices})
    slices = {
        number: Sorted.union([one.slices[number] for one in memories if number in one.slices])
        for number in numbers
    }
    return Memory(max(memory.newest for memory in memories), slices)


def split(memory: Memory, buckets: int) -> dict[int, Memory]:
    """``memory`` by bucket: the first half, as a signed number, modulo ``buckets``. Empty ones are left out."""
    parts: dict[int, dict[int, Sorted]] = {}
    for number, held in memory.slices.items():
        of = held.first.view(np.int64) % buckets
        order = np.argsort(of, kind="stable")
        bounds = np.searchsorted(of[order], np.arange(buckets + 1))
        for bucket in np.flatnonzero(np.diff(bounds)).tolist():
            at = order[bounds[bucket] : bounds[bucket + 1]]
            parts.setdefault(bucket, {})[number] = held.take(at)
    return {bucket: Memory(memory.newest, slices) for bucket, slices in parts.items()}


def encode(memory: Memory) -> bytes:
    """``memory`` as bytes: a head, an entry for each slice, then the first and the second halves of each slice."""
    head = np.array([(memory.newest, len(memory.slices))], _HEAD)
    slices = np.array([(number, len(held)) for number, held in memory.slices.items()], _SLICE)
    halves = [
        half.tobytes() for held in memory.slices.values() for half in (held.first, held.second)
    ]
    return b"".join([head.tobytes(), slices.tobytes(), *halves])


def decode(data: bytes | memoryview) -> Memory:
    """The memory that `encode` gave as ``data``, whose bytes it shares.

    Raises:
        ValueError: These bytes are no memory.
    """
    newest, counts = slices_in(data)
    at = _HEAD.itemsize + len(counts) * _SLICE.itemsize
    if len(data) != at + 16 * sum(counts.values()):
        raise ValueError(f"a memory of {sum(counts.values())} ids that has {len(data)} bytes")
    slices = {}
    for number, count in counts.items():
        halves = np.frombuffer(data, "<u8", 2 * count, at)
        slices[number] = Sorted(halves[:count], halves[count:])
        at += 16 * count
    return Memory(newest, slices)


def slices_in(data: bytes | memoryview) -> tuple[int, dict[int, int]]:
    """The newest time, and how many ids each slice has, of a memory of which ``data`` is the beginning at least.

    Raises:
        ValueError: The table of slices is not all there.
    """
    if len(data) < _HEAD.itemsize:
        raise ValueError(f"a memory of ids has {_HEAD.itemsize} bytes at least, not {len(data)}")
    head = np.frombuffer(data, _HEAD, 1)[0]
    if len(data) < _HEAD.itemsize + int(head["slices"]) * _SLICE.itemsize:
        raise ValueError("a memory of ids that ends inside its table of slices")
    table = np.frombuffer(data, _SLICE, int(head["slices"]), _HEAD.itemsize)
    return int(head["newest"]), dict(table.tolist())


def _width(horizon_ms: int) -> int:
    return max(1, horizon_ms // SLICES_PER_HORIZON)
