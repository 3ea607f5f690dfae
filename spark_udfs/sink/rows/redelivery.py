"""Which rows of a batch were not processed before, by their offsets, and in which order an effect gets them.

A batch is in log order where each partition is one run of rows with ascending offsets. What is at or after the
partition's mark is then the end of its run: a binary search for each partition and slices without a copy, instead of
a look-up for each row. A table may be a mapped file that is larger than memory, so it is only ever read piece by piece.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pykafka_core.idempotent.plan import first_fresh
from spark_udfs.sink.places import Place
from spark_udfs.sink.rows.row_bytes import row_bytes

PLACE = ("topic", "partition", "offset")
"""The columns of spark-sql-kafka that say where a row was read: string, int, bigint."""

PART_BYTES: Final = 64 << 20
"""An effect gets about so much at a time."""

_PIECE_BYTES: Final = 1 << 20
"""Of one column."""


class Run(NamedTuple):
    """The rows [``start``, ``stop``) of a batch, all of one partition, in the order of their offsets."""

    place: Place
    start: int
    stop: int
    first: int
    """Offset of the first row."""
    last: int
    """Offset of the last row."""


@dataclass(frozen=True)
class Rows:
    """Some of the rows of a table, in the order in which an effect gets them.

    Attributes:
        table: All rows, whose columns may be mapped files.
        order: Where the rows of `ranges` are in the table; None: where they say.
        ranges: Of rows, start and stop.
    """

    table: pa.Table
    order: NDArray[np.int64] | None
    ranges: Sequence[tuple[int, int]]

    @classmethod
    def all_of(cls, table: pa.Table) -> "Rows":
        """As they come."""
        return cls(table, None, [(0, table.num_rows)])

    def __len__(self) -> int:
        return sum(stop - start for start, stop in self.ranges)

    def column(self, name: str) -> pa.ChunkedArray:
        """The column of these rows."""
        whole = self.table[name]
        pieces = [
            chunk
            for piece in self._pieces(self.table.select([name]), _PIECE_BYTES)
            for chunk in piece[0].chunks
        ]
        return pa.chunked_array(pieces, whole.type)

    def parts(self, bytes_max: int = PART_BYTES) -> Iterator[pa.Table]:
        """The rows in tables of about so many bytes: one for what is not larger, none where there are no rows."""
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
        """Where the rows are in the table, in their order."""
        found = [order[start:stop] for start, stop in self.ranges]
        return np.concatenate(found) if found else order[:0]


@dataclass(frozen=True)
class Batch:
    """A batch in log order: of one partition's rows the one written first comes first.

    Rows of equal place (one record that became several rows) keep the order that they have.

    Attributes:
        runs: One for each partition, by topic and partition.
    """

    table: pa.Table
    order: NDArray[np.int64] | None
    runs: Sequence[Run]

    def fresh(self, marks: Mapping[Place, int]) -> Rows:
        """The rows at or after the marks: what was not processed before.

        Args:
            marks: The next offset to process of each partition; one that is not there begins at 0.
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
    """The rows by topic, partition and offset.

    Rows that come in this order, partition by partition, are left where they are. Others are sorted, which takes some
    60 bytes of memory a row, and as much as a few parts when they are given out.
    """
    if (found := _runs(table)) is not None:
        return Batch(table, None, found)
    places = _numbered(table)
    keys = [(name, "ascending") for name in PLACE]
    order: NDArray[np.int64] = pc.sort_indices(pa.table(places), keys).to_numpy().view(np.int64)
    topics, partitions, offsets = (places[name][order] for name in PLACE)
    names = pa.DictionaryArray.from_arrays(topics, _topics(table))
    found = _runs(pa.table([names, partitions, offsets], names=list(PLACE)))
    assert found is not None, "sorted rows are in log order"
    return Batch(table, order, found)


def _topics(table: pa.Table) -> pa.Array:
    """Their names, ascending."""
    names = pc.unique(table["topic"])
    return names.take(pc.sort_indices(names))


def _numbered(table: pa.Table) -> dict[str, NDArray[Any]]:
    """The rows' places with a number for each topic, as numbers have no limit of 2 GiB when they are put together."""
    topics = pc.index_in(table["topic"], value_set=_topics(table))
    return {"topic": topics.to_numpy()} | {name: table[name].to_numpy() for name in PLACE[1:]}


def _gathered(table: pa.Table, wanted: NDArray[np.int64], bytes_max: int) -> Iterator[pa.Table]:
    """The wanted rows in their order, in tables of so many bytes or of one row that is larger.

    Arrow's own ``take`` puts all of a column together first, whatever is taken, and fails beyond 2 GiB.
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
    """Rows by their number in all batches, of which each has its first in ``starts``: one look at each batch."""
    ascending = np.argsort(wanted, kind="stable")
    rows = wanted[ascending]
    bounds = np.searchsorted(rows, starts)
    looks = [
        (batches[at], pa.array(rows[bounds[at] : bounds[at + 1]] - starts[at]))
        for at in np.flatnonzero(np.diff(bounds)).tolist()
    ]
    back = np.empty_like(ascending)
    back[ascending] = np.arange(len(ascending))
    # Column by column, as a column is in memory twice meanwhile.
    columns = [
        pa.concat_arrays([batch[number].take(found) for batch, found in looks]).take(pa.array(back))
        for number in range(len(batches[0].schema))
    ]
    return pa.Table.from_arrays(columns, schema=batches[0].schema)


def _runs(table: pa.Table) -> list[Run] | None:
    """The partitions of a table that is in log order; None if it is not."""
    found: dict[Place, Run] = {}
    start = 0
    for batch in table.select(PLACE).to_batches():
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


def _runs_of(batch: pa.RecordBatch, start: int) -> Iterator[Run]:
    """Rows that follow each other, of one partition and with ascending offsets; the first has the number ``start``."""
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
        yield Run(place, start + first, start + stop, int(offsets[first]), int(offsets[stop - 1]))
