"""The set of ids that `dedup_stream` has seen, as a value, without Spark and without files.

A memory consists of *slices*. A slice holds the sorted fingerprints of ids whose time is in
``[number * width, (number + 1) * width)``. The width is an eighth of the horizon, so that whole
slices are dropped, and an id takes 16 bytes instead of 24. Without a horizon there is one slice,
number 0, which is never dropped.

A slice is dropped once its whole range is more than the horizon before the newest time seen. So an
id is remembered until a time more than the horizon after its own is seen, and at most an eighth of
the horizon longer. Slices are dropped between calls, never within one, so the result of a call
depends on its set of rows and not on the order of their times.

`claim` returns the additions of a micro-batch. A memory is the union of all additions, without the
slices that are past the horizon of its newest time. It makes no difference whether they are dropped
after each addition or at the end.
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
"""An unknown time, which is treated as the newest time."""

Times: TypeAlias = npt.NDArray[np.int64]
"""Milliseconds since the epoch, one for each row, or `UNKNOWN`."""


@dataclass(frozen=True)
class Memory:
    """The seen ids of one bucket, or the additions of a micro-batch to it.

    Attributes:
        newest: The latest time seen, in milliseconds.
        slices: Fingerprints by slice number; an id is in at most one slice.
    """

    newest: int
    slices: dict[int, Sorted]

    @classmethod
    def blank(cls) -> "Memory":
        """Return a memory without ids."""
        return cls(UNKNOWN, {})

    def count(self) -> int:
        """Return the number of ids."""
        return sum(map(len, self.slices.values()))


def claim(
    memory: Memory, fingerprints: Fingerprints, times: Times | None, horizon_ms: int | None
) -> tuple[Indices, Memory]:
    """Return the new rows and their additions to the memory.

    Args:
        memory: The result of all earlier calls.
        fingerprints: Fingerprints of the rows; of equal ones, the first row is kept.
        times: Times of the rows; None if and only if ``horizon_ms`` is None.
        horizon_ms: At least 1. None: no id is ever dropped.

    Returns:
        The indices of the rows to keep, ascending, and the new ids. A row older than the horizon is
        kept, unless it repeats a row of the same call, and its id is not remembered.
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
    """Return ``memory`` at the time ``newest``, without the slices past the horizon."""
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
    """Return whether all times of the slice are more than the horizon before ``newest``."""
    return (number + 1) * _width(horizon_ms) <= newest - horizon_ms


def union(memories: Sequence[Memory]) -> Memory:
    """Return the union of one or more memories."""
    numbers = sorted({number for memory in memories for number in memory.slices})
    slices = {
        number: Sorted.union([one.slices[number] for one in memories if number in one.slices])
        for number in numbers
    }
    return Memory(max(memory.newest for memory in memories), slices)


def split(memory: Memory, buckets: int) -> dict[int, Memory]:
    """Split by bucket: the signed first half modulo ``buckets``. Empty buckets are left out."""
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
    """Return the bytes of ``memory``: header, table of slices, then the halves of each slice."""
    head = np.array([(memory.newest, len(memory.slices))], _HEAD)
    slices = np.array([(number, len(held)) for number, held in memory.slices.items()], _SLICE)
    halves = [
        half.tobytes() for held in memory.slices.values() for half in (held.first, held.second)
    ]
    return b"".join([head.tobytes(), slices.tobytes(), *halves])


def decode(data: bytes | memoryview) -> Memory:
    """Return the memory that `encode` wrote as ``data``; it shares the bytes.

    Raises:
        ValueError: ``data`` is not an encoded memory.
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
    """Return the newest time and the number of ids of each slice.

    ``data`` may be just the beginning of an encoded memory.

    Raises:
        ValueError: The table of slices is incomplete.
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
