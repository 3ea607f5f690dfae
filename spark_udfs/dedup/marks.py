"""High-water marks: the value behind `dedup_offsets`, without Spark.

A mark is the next offset of one partition; a row below it was delivered before. One memory of marks holds those of all
partitions of a bucket, by the fingerprint of their names.

Encoded: uint32 version, uint32 count; then for each mark 16 bytes of fingerprint and an int64. All little-endian.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from spark_udfs.dedup.fingerprints import Fingerprints

__all__ = ["Marks", "advance", "decode", "encode"]

_VERSION: Final = 1
_HEAD: Final = np.dtype([("version", "<u4"), ("count", "<u4")])
_MARK: Final = np.dtype([("partition", "V16"), ("mark", "<i8")])


@dataclass(frozen=True)
class Marks:
    """The next offset of each partition, by the 16 bytes of its fingerprint."""

    by_partition: dict[bytes, int]


def advance(
    marks: Marks, partitions: Fingerprints, offsets: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.intp], Marks]:
    """Which rows were not delivered before, and the marks behind them.

    Args:
        marks: Of the calls before.
        partitions: Fingerprints of the rows' partitions.
        offsets: Of the rows, in any order.

    Returns:
        The indices of the rows to keep, ascending: those at or above their partition's mark, of equal offsets the
        first. And the marks, each one more than the highest offset of its partition, if that is higher.
    """
    order = np.lexsort((offsets, partitions[:, 1], partitions[:, 0]))
    ordered, ordered_offsets = partitions[order], offsets[order]
    starts = np.ones(len(order), np.bool_)
    starts[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    repeated = np.zeros(len(order), np.bool_)
    repeated[1:] = ~starts[1:] & (ordered_offsets[1:] == ordered_offsets[:-1])
    bounds = np.append(np.flatnonzero(starts), len(order)).tolist()
    advanced = dict(marks.by_partition)
    keep = ~repeated
    for start, end in pairwise(bounds):
        partition = ordered[start].tobytes()
        mark = marks.by_partition.get(partition)
        if mark is not None:
            keep[start:end] &= ordered_offsets[start:end] >= mark
        following = int(ordered_offsets[end - 1]) + 1
        advanced[partition] = following if mark is None else max(mark, following)
    return np.sort(order[keep]), Marks(advanced)


def encode(marks: Marks) -> bytes:
    """``marks`` as bytes, in the layout above."""
    head = np.array([(_VERSION, len(marks.by_partition))], _HEAD)
    return head.tobytes() + np.array(list(marks.by_partition.items()), _MARK).tobytes()


def decode(data: bytes) -> Marks:
    """The marks that `encode` gave as ``data``.

    Raises:
        ValueError: These bytes are no marks, or of another version.
    """
    if len(data) < _HEAD.itemsize:
        raise ValueError(f"marks have {_HEAD.itemsize} bytes at least, not {len(data)}")
    head = np.frombuffer(data, _HEAD, 1)[0]
    if head["version"] != _VERSION:
        raise ValueError(f"marks of version {head['version']}, not {_VERSION}")
    if len(data) != _HEAD.itemsize + int(head["count"]) * _MARK.itemsize:
        raise ValueError(f"{head['count']} marks that have {len(data)} bytes")
    table = np.frombuffer(data, _MARK, int(head["count"]), _HEAD.itemsize)
    return Marks({bytes(partition): mark for partition, mark in table.tolist()})
