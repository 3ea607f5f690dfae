"""Which ids were seen: the value behind `dedup_stream`, without Spark.

A memory is a few *slices*, each the sorted fingerprints of the ids whose time lies in ``[number * width, (number + 1)
* width)``. The width is an eighth of the horizon, so that forgetting is dropping a slice whole, and an id costs 16
bytes and not 24. Without a horizon there is one slice, number 0, for ever.

A slice goes once its whole span is more than the horizon before the newest time seen. So an id is remembered at least
while no time more than the horizon after its own was seen, and at most an eighth of the horizon longer. Forgetting
happens between calls, never within one: what a call answers depends on the set of its rows and not on their order in
time.

Encoded: uint32 version, uint32 count of slices, int64 newest; for each slice int64 number, uint64 count; then for
each the first halves and the second halves, 8 bytes each. All little-endian.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from spark_udfs.dedup.fingerprints import Fingerprints, Indices, Sorted, first_of_each

__all__ = [
    "IDS_MAX",
    "UNKNOWN",
    "Memory",
    "MemoryFull",
    "Times",
    "claim",
    "decode",
    "encode",
    "forget",
]

SLICES_PER_HORIZON: Final = 8
IDS_MAX: Final = 2**26
"""Of one bucket, 1 GiB: Spark hands a state over as one array, which ends at 2 GiB."""

_VERSION: Final = 1
_HEAD: Final = np.dtype([("version", "<u4"), ("slices", "<u4"), ("newest", "<i8")])
_SLICE: Final = np.dtype([("number", "<i8"), ("count", "<u8")])

UNKNOWN: Final = int(np.iinfo(np.int64).min)
"""A time that is not known: it counts as the newest one."""

Times: TypeAlias = npt.NDArray[np.int64]
"""Milliseconds since the epoch, one for each row, or `UNKNOWN`."""


class MemoryFull(RuntimeError):
    """A bucket holds more ids than one state can."""


@dataclass(frozen=True)
class Memory:
    """What one bucket remembers.

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
    """Which rows are new, and the memory that holds them too.

    Args:
        memory: Of the calls before.
        fingerprints: Of the rows, in the order in which the first of equal ones wins.
        times: Of the rows; None exactly where ``horizon_ms`` is.
        horizon_ms: At least 1. None: nothing is ever forgotten.

    Returns:
        The indices of the rows to keep, ascending, and the next memory. A row that is older than the horizon when it
        comes is kept unless the same call has it twice, and is not remembered.

    Raises:
        MemoryFull: More than `IDS_MAX` ids.
    """
    first = first_of_each(fingerprints)
    candidates = fingerprints.take(first, axis=0)
    seen = np.zeros(len(first), np.bool_)
    for known in memory.slices.values():
        seen |= known.contains(candidates)
    new = first[~seen]
    if times is None or horizon_ms is None:
        grown = Memory(memory.newest, _add(memory.slices, 0, fingerprints.take(new, axis=0)))
    else:
        width = _width(horizon_ms)
        newest = max(memory.newest, int(times.max(initial=UNKNOWN)))
        times = np.where(times == UNKNOWN, newest, times)
        numbers = times[new] // width
        slices = memory.slices
        for number in np.unique(numbers).tolist():
            slices = _add(slices, number, fingerprints.take(new[numbers == number], axis=0))
        grown = forget(Memory(memory.newest, slices), newest, horizon_ms)
    if grown.count() > IDS_MAX:
        raise MemoryFull(
            f"a bucket would hold {grown.count()} ids, more than {IDS_MAX}: start a new checkpoint with more "
            "buckets, or give a horizon; ids without bound belong in a ledger (pykafka_core.idempotent)"
        )
    kept = np.zeros(len(fingerprints), np.bool_)
    kept[new] = True
    return np.flatnonzero(kept), grown


def forget(memory: Memory, newest: int, horizon_ms: int) -> Memory:
    """``memory`` at the time ``newest``, without the slices that are past the horizon then."""
    newest, width = max(memory.newest, newest), _width(horizon_ms)
    slices = {
        number: held
        for number, held in memory.slices.items()
        if (number + 1) * width > newest - horizon_ms
    }
    return Memory(newest, slices)


def encode(memory: Memory) -> bytes:
    """``memory`` as bytes, in the layout above."""
    head = np.array([(_VERSION, len(memory.slices), memory.newest)], _HEAD)
    slices = np.array([(number, len(held)) for number, held in memory.slices.items()], _SLICE)
    halves = [
        half.tobytes() for held in memory.slices.values() for half in (held.first, held.second)
    ]
    return b"".join([head.tobytes(), slices.tobytes(), *halves])


def decode(data: bytes) -> Memory:
    """The memory that `encode` gave as ``data``, whose bytes it shares.

    Raises:
        ValueError: These bytes are no memory, or of another version.
    """
    if len(data) < _HEAD.itemsize:
        raise ValueError(f"a memory of ids has {_HEAD.itemsize} bytes at least, not {len(data)}")
    head = np.frombuffer(data, _HEAD, 1)[0]
    if head["version"] != _VERSION:
        raise ValueError(f"a memory of ids of version {head['version']}, not {_VERSION}")
    at = _HEAD.itemsize + int(head["slices"]) * _SLICE.itemsize
    if len(data) < at:
        raise ValueError("a memory of ids that ends inside its table of slices")
    table = np.frombuffer(data, _SLICE, int(head["slices"]), _HEAD.itemsize)
    counts = [int(count) for count in table["count"]]
    if len(data) != at + 16 * sum(counts):
        raise ValueError(f"a memory of {sum(counts)} ids that has {len(data)} bytes")
    slices = {}
    for number, count in zip(table["number"].tolist(), counts, strict=True):
        halves = np.frombuffer(data, "<u8", 2 * count, at)
        slices[number] = Sorted(halves[:count], halves[count:])
        at += 16 * count
    return Memory(int(head["newest"]), slices)


def _width(horizon_ms: int) -> int:
    return max(1, horizon_ms // SLICES_PER_HORIZON)


def _add(slices: dict[int, Sorted], number: int, new: Fingerprints) -> dict[int, Sorted]:
    """``slices`` with ``new``, sorted, in the one of this ``number``."""
    return {**slices, number: slices.get(number, Sorted.empty()).with_new(new)}
