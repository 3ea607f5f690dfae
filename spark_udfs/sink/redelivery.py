"""Which rows of a batch were not processed before, by their offsets: pure functions on Arrow tables.

A batch is sorted by topic, partition and offset, so that each partition is one run of rows. What is
at or after the partition's mark is then the end of its run: a binary search for each partition and
slices without a copy, instead of a look-up for each row.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_udfs.sink.places import Place

PLACE = ("topic", "partition", "offset")
"""The columns of spark-sql-kafka that say where a row was read: string, int, bigint."""


class Run(NamedTuple):
    """The rows [``start``, ``stop``) of a sorted table, all of one partition, in the order of their offsets."""

    place: Place
    start: int
    stop: int
    first: int
    """Offset of the first row."""
    last: int
    """Offset of the last row."""


def in_log_order(table: pa.Table) -> pa.Table:
    """The rows by topic, partition and offset; the same table where they are in this order already.

    An effect may rely on it: of one partition's rows, the one written first comes first. Rows of
    equal place (one record that became several rows) keep the order that they have.
    """
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in PLACE]).to_numpy()
    if bool((order[1:] > order[:-1]).all()):
        return table
    return table.take(pa.array(order))


def runs(table: pa.Table) -> list[Run]:
    """The partitions of a table that is in log order."""
    if table.num_rows == 0:
        return []
    topics = table["topic"].combine_chunks().dictionary_encode()
    codes, partitions = topics.indices.to_numpy(), _numbers(table, "partition")
    offsets = _numbers(table, "offset")
    changes = (codes[1:] != codes[:-1]) | (partitions[1:] != partitions[:-1])
    starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
    stops = np.concatenate((starts[1:], [table.num_rows]))
    return [
        Run(
            (topics.dictionary[int(codes[start])].as_py(), int(partitions[start])),
            start,
            stop,
            int(offsets[start]),
            int(offsets[stop - 1]),
        )
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
    ]


def fresh(table: pa.Table, batch: Sequence[Run], marks: Mapping[Place, int]) -> pa.Table:
    """The rows at or after the marks: what was not processed before.

    Args:
        table: In log order.
        batch: Its `runs`.
        marks: The next offset to process of each partition; one that is not there begins at 0.
    """
    offsets, kept = _numbers(table, "offset"), []
    for run in batch:
        mark = marks.get(run.place, 0)
        begin = run.start + int(np.searchsorted(offsets[run.start : run.stop], mark))
        if begin < run.stop:
            kept.append(table.slice(begin, run.stop - begin))
    return pa.concat_tables(kept) if kept else table.slice(0, 0)


def _numbers(table: pa.Table, name: str) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = table[name].to_numpy()
    return numbers
