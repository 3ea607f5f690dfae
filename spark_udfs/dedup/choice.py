"""Which rows of a bucket to keep: between what Spark hands over in pieces and what decides over arrays."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_udfs.dedup.blocks import split
from spark_udfs.dedup.fingerprints import Fingerprints, Indices, Mask
from spark_udfs.dedup.memory import UNKNOWN

__all__ = ["Keep", "Numbers", "choose", "numbers_of"]

Numbers: TypeAlias = npt.NDArray[np.int64]

Keep: TypeAlias = Callable[[bytes | None, Fingerprints, Numbers | None, int], tuple[Indices, bytes]]
"""From what was remembered (None at first), the rows' fingerprints and numbers, and the time of the micro-batch in
milliseconds, to the indices of the rows to keep, ascending, and what is to be remembered."""


def choose(
    keep: Keep,
    known: bytes | None,
    digests: Sequence[pa.Array],
    numbers: Sequence[Numbers] | None,
    now_ms: int,
    sources: Sequence[Numbers] | None = None,
) -> tuple[list[Mask], bytes]:
    """Which rows of each piece to keep, and what to remember.

    Args:
        keep, known, now_ms: As in `Keep`.
        digests: The rows' fingerprints, piece by piece; null where a row has no id: it stays.
        numbers: The rows' numbers, if ``keep`` wants any.
        sources: By which the rows are in the order of the input, those of one source being so already; None: all are.
    """
    lengths = [len(piece) for piece in digests]
    parts = [split(piece) for piece in digests]
    starts = np.cumsum([0, *lengths[:-1]])
    rows = np.concatenate([at + start for (_, at), start in zip(parts, starts, strict=True)])
    fingerprints = np.concatenate([halves for halves, _ in parts])
    if sources is not None:
        order = np.argsort(np.concatenate(sources)[rows], kind="stable")
        rows, fingerprints = rows[order], fingerprints.take(order, axis=0)
    chosen_numbers = None if numbers is None else np.concatenate(numbers)[rows]
    kept, memory = keep(known, fingerprints, chosen_numbers, now_ms)
    mask = np.ones(sum(lengths), np.bool_)
    mask[rows] = False
    mask[rows[kept]] = True
    return np.split(mask, np.cumsum(lengths[:-1])), memory


def numbers_of(column: pa.Array) -> Numbers:
    """The numbers of the rows; `UNKNOWN` for null."""
    if column.null_count:
        column = column.fill_null(UNKNOWN)
    numbers: Numbers = column.to_numpy()
    return numbers
