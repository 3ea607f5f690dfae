"""Selects the new rows of a batch by offset, and orders rows for an effect.

A batch is in log order if each partition is one run of rows with ascending offsets. The rows at or
after the partition's mark are then the end of its run, so a binary search per partition and slices
without a copy replace a lookup per row. A table may be a mapped file that is larger than memory, so
it is only read in pieces.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pykafka_core.idempotent.deduplication import first_fresh
from spark_udfs.sink.rows.row_bytes import row_bytes
from spark_udfs.sink.topic_partition import TopicPartition

SOURCE_COLUMNS = ("topic", "partition", "offset")
"""The columns of spark-sql-kafka with the origin of a row: string, int, bigint."""

PART_BYTES: Final = 64 << 20
"""Approximate size of the table in one call of an effect."""

_PIECE_BYTES: Final = 1 << 20
"""Piece size when one column is read."""


class PartitionRows(NamedTuple):
    """The rows [``start``, ``stop``) of a batch: one partition, in offset order."""

    place: TopicPartition
    start: int
    stop: int
    first: int
    """Offset of the first row."""
    last: int
    """Offset of the last row."""


@dataclass(frozen=True)
class Rows:
    """Some rows of a table, in the order for an effect.

    Attributes:
        table: All rows; its columns may be mapped files.
        order: Table positions of the rows in log order; None if the table is in log order.
        ranges: Row numbers of the selected rows, as (start, stop).
    """

    table: pa.Table
    order: NDArray[np.int64] | None
    ranges: Sequence[tuple[int, int]]

    @classmethod
    def all_of(cls, table: pa.Table) -> "Rows":
        """Select all rows in table order."""
        return cls(table, None, [(0, table.num_rows)])

    def __len__(self) -> int:
        return sum(stop - start for start, stop in self.ranges)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return one column of the selected rows."""
        whole = self.table[name]
        pieces = [
            chunk
            for piece in self._pieces(self.table.select([name]), _PIECE_BYTES)
            for chunk in piece[0].chunks
        ]
        return pa.chunked_array(pieces, whole.type)

    def parts(self, bytes_max: int = PART_BYTES) -> Iterator[pa.Table]:
        """Yield the rows in tables of about ``bytes_max`` bytes, without empty tables."""
        if self.order is not None:
            yield from self._pieces(self.table, bytes_max)
            return
        held: list[pa.Table] = []
        held_bytes = 0
        for piece in self._pieces(self.table, bytes_max):
            if held and held_bytes + piece.nbytes > bytes_max:
                yield pa.concat_tables(held)
                held, held_bytes = [], 0
            held.append(piece)
            held_bytes += piece.nbytes
        if held:
            yield pa.concat_tables(held)

    def _pieces(self, table: pa.Table, bytes_max: int) -> Iterator[pa.Table]:
        if self.order is not None:
            yield from _gathered(table, self._wanted(self.order), bytes_max)
            return
        for start, stop in self.ranges:
            batches = table.slice(start, stop - start).to_batches()
            yield from (pa.Table.from_batches([one]) for one in batches if one.num_rows)

    def _wanted(self, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the table positions of the selected rows, in order."""
        found = [order[start:stop] for start, stop in self.ranges]
        return np.concatenate(found) if found else order[:0]


@dataclass(frozen=True)
class Batch:
    """A batch in log order: the rows of a partition are in the order of their offsets.

    Rows with equal offsets (one record that became several rows) keep their order.

    Attributes:
        runs: One for each partition, sorted by topic and partition.
    """

    table: pa.Table
    order: NDArray[np.int64] | None
    runs: Sequence[PartitionRows]

    def fresh(self, marks: Mapping[TopicPartition, int]) -> Rows:
        """Return the rows at or after the marks, which were not processed before.

        Args:
            marks: The next offset to process of each partition; 0 if missing.
        """
        offsets = self.table["offset"]

        def offset_at(row: int) -> int:
            at = row if self.order is None else int(self.order[row])
            offset: int = offsets[at].as_py()
            return offset

        found = [
            (first_fresh(offset_at, run.start, run.stop, marks.get(run.place, 0)), run.stop)
            for run in self.runs
        ]
        return Rows(
            self.table, self.order, [(start, stop) for start, stop in found if start < stop]
        )


def in_log_order(table: pa.Table) -> Batch:
    """Order the rows by topic, partition and offset.

    A table that is already one run per partition is not reordered. Other tables are sorted, which
    takes about 60 bytes of memory per row, and the memory of a few parts when rows are read.
    """
    if (found := _runs(table)) is not None:
        return Batch(table, None, found)
    places = _numbered(table)
    keys = [(name, "ascending") for name in SOURCE_COLUMNS]
    order: NDArray[np.int64] = pc.sort_indices(pa.table(places), keys).to_numpy().view(np.int64)
    topics, partitions, offsets = (places[name][order] for name in SOURCE_COLUMNS)
    names = pa.DictionaryArray.from_arrays(topics, _topics(table))
    found = _runs(pa.table([names, partitions, offsets], names=list(SOURCE_COLUMNS)))
    assert found is not None, "sorted rows are in log order"
    return Batch(table, order, found)


def _topics(table: pa.Table) -> pa.Array:
    """Return the topic names, ascending."""
    names = pc.unique(table["topic"])
    return names.take(pc.sort_indices(names))


def _numbered(table: pa.Table) -> dict[str, NDArray[Any]]:
    """Return the sort keys, with topics as numbers: names would be limited to 2 GiB in total."""
    topics = pc.index_in(table["topic"], value_set=_topics(table))
    return {"topic": topics.to_numpy()} | {
        name: table[name].to_numpy() for name in SOURCE_COLUMNS[1:]
    }


def _gathered(table: pa.Table, wanted: NDArray[np.int64], bytes_max: int) -> Iterator[pa.Table]:
    """Yield the wanted rows in order, in tables of up to ``bytes_max`` bytes, or one larger row.

    Arrow's own ``take`` concatenates the whole column first, and fails beyond 2 GiB.
    """
    batches = [one for one in table.to_batches() if one.num_rows]
    sizes = [row_bytes(one) for one in batches]
    if not sizes:
        return
    starts = np.cumsum([0, *map(len, sizes)])
    before = np.cumsum(np.concatenate(sizes)[wanted])
    start = 0
    while start < len(wanted):
        given = before[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(before, given + bytes_max, side="right")))
        yield _taken(batches, starts, wanted[start:stop])
        start = stop


def _taken(
    batches: Sequence[pa.RecordBatch], starts: NDArray[np.int64], wanted: NDArray[np.int64]
) -> pa.Table:
    """Take rows by table position; ``starts`` are the positions of the batches' first rows."""
    ascending = np.argsort(wanted, kind="stable")
    rows = wanted[ascending]
    bounds = np.searchsorted(rows, starts)
    looks = [
        (batches[at], pa.array(rows[bounds[at] : bounds[at + 1]] - starts[at]))
        for at in np.flatnonzero(np.diff(bounds)).tolist()
    ]
    back = np.empty_like(ascending)
    back[ascending] = np.arange(len(ascending))
    # Column by column, because a column is temporarily in memory twice.
    columns = [
        pa.concat_arrays([batch[number].take(found) for batch, found in looks]).take(pa.array(back))
        for number in range(len(batches[0].schema))
    ]
    return pa.Table.from_arrays(columns, schema=batches[0].schema)


def _runs(table: pa.Table) -> list[PartitionRows] | None:
    """Return the runs of a table in log order; None if it is not in log order."""
    found: dict[TopicPartition, PartitionRows] = {}
    start = 0
    for batch in table.select(SOURCE_COLUMNS).to_batches():
        for run in _runs_of(batch, start):
            before = found.get(run.place)
            if before is None:
                found[run.place] = run
            elif before.stop == run.start and before.last <= run.first:
                found[run.place] = before._replace(stop=run.stop, last=run.last)
            else:
                return None
        start += batch.num_rows
    return sorted(found.values())


def _runs_of(batch: pa.RecordBatch, start: int) -> Iterator[PartitionRows]:
    """Yield runs of adjacent rows of one partition with ascending offsets; count from ``start``."""
    if batch.num_rows == 0:
        return
    topics = batch["topic"].dictionary_encode()
    codes, partitions = topics.indices.to_numpy(), batch["partition"].to_numpy()
    offsets = batch["offset"].to_numpy()
    ends = (codes[1:] != codes[:-1]) | (partitions[1:] != partitions[:-1])
    ends |= offsets[1:] < offsets[:-1]
    bounds = np.concatenate(([0], np.flatnonzero(ends) + 1, [batch.num_rows])).tolist()
    for first, stop in pairwise(bounds):
        place = topics.dictionary[int(codes[first])].as_py(), int(partitions[first])
        yield PartitionRows(
            place, start + first, start + stop, int(offsets[first]), int(offsets[stop - 1])
        )
