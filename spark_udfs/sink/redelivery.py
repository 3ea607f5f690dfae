"""Which rows of a batch were not processed before, by their offsets, and in which order an effect gets them.

A batch is in log order where each partition is one run of rows with ascending offsets. What is at or after the
partition's mark is then the end of its run: a binary search for each partition and slices without a copy, instead of
a look-up for each row. A table may be a mapped file that is larger than memory, so it is only ever read piece by piece.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pykafka_core.idempotent.plan import first_fresh
from spark_udfs.sink.places import Place

PLACE = ("topic", "partition", "offset")
"""The columns of spark-sql-kafka that say where a row was read: string, int, bigint."""

PART_BYTES: Final = 64 << 20
"""An effect gets about so much at a time."""

_PIECE_ROWS: Final = 10_000


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
            chunk for piece in self._pieces(self.table.select([name])) for chunk in piece[0].chunks
        ]
        return pa.chunked_array(pieces, whole.type)

    def parts(self, bytes_max: int = PART_BYTES) -> Iterator[pa.Table]:
        """The rows in tables of about so many bytes: one for what is not larger, none where there are no rows."""
        held: list[pa.Table] = []
        held_bytes = 0
        for piece in self._pieces(self.table):
            if held and held_bytes + piece.nbytes > bytes_max:
                yield pa.concat_tables(held)
                held, held_bytes = [], 0
            held.append(piece)
            held_bytes += piece.nbytes
        if held:
            yield pa.concat_tables(held)

    def _pieces(self, table: pa.Table) -> Iterator[pa.Table]:
        for start, stop in self.ranges:
            if self.order is None:
                batches = table.slice(start, stop - start).to_batches()
                yield from (pa.Table.from_batches([one]) for one in batches if one.num_rows)
                continue
            for at in range(start, stop, _PIECE_ROWS):
                yield table.take(pa.array(self.order[at : min(stop, at + _PIECE_ROWS)]))


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
    30 bytes of memory a row.
    """
    if (found := _runs(table)) is not None:
        return Batch(table, None, found)
    order: NDArray[np.int64] = pc.sort_indices(
        table.select(PLACE), sort_keys=[(name, "ascending") for name in PLACE]
    ).to_numpy()
    found = _runs(table.select(PLACE).take(pa.array(order)))
    assert found is not None, "sorted rows are in log order"
    return Batch(table, order, found)


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
