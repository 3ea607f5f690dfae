"""Rows as blocks: many rows of a bucket as one Arrow value, so that Spark moves and counts blocks.

Spark's costs are per row: the shuffle, the sort by key, and the transfer to Python and back. So a
first map in Arrow (`pack`) computes fingerprints, splits the rows into buckets by fingerprint and
returns blocks: a bucket, a position in the input order, and up to about `BLOCK_BYTES` of rows as an
Arrow IPC stream. A stateful or grouped operator then handles a few blocks for each bucket. The
user's columns are never converted to pandas, which would change their types.

A block's columns are those of the user's rows, then the added columns (see `Routing`), then the
fingerprint, which is null if the row has no id. Rows without an id are never compared. `Routing`
assigns their buckets, so that they are not all held together.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pykafka_core.kernels import fingerprints
from spark_udfs.dedup.fingerprints import Fingerprints, of_array

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "BLOCK_BYTES",
    "BLOCK_SCHEMA",
    "Routing",
    "block_type",
    "pack",
    "read",
    "rows_of",
    "split",
    "write",
]

BLOCK_BYTES: Final = 128 * 1024
"""Spark may collect 10,000 output rows into one Arrow array of at most 2 GiB, so a block must stay
well below a ten-thousandth of that. Smaller blocks cost more: 40 µs for each block, against a few
nanoseconds for a row."""

PACKED_BYTES_MAX: Final = 32 * 1024 * 1024
"""Maximum of rows that one task holds before it returns blocks, whatever the number of buckets."""

BLOCK_SCHEMA: Final = "bucket int, place bigint, rows binary"

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Routing:
    """The layout of the rows that `pack` gets, and their buckets.

    The last column is the bucket of a row without an id, from 0 up to but excluding ``buckets``; it
    is dropped. It must depend only on the row and its task, not on the position of the row, so that
    a retried task splits the rows in the same way.

    Attributes:
        width: Number of the user's columns, which are first.
        ids: Indices of the id columns. Those that are not the user's follow them and are dropped.
        buckets: Number of buckets, at least 1.
    """

    width: int
    ids: tuple[int, ...]
    buckets: int


def block_type(df: "DataFrame") -> pa.DataType:
    """Return the Arrow type that Spark expects of a block, which depends on the session."""
    is_large = df.sparkSession.conf.get("spark.sql.execution.arrow.useLargeVarTypes") == "true"
    return pa.large_binary() if is_large else pa.binary()


def pack(routing: Routing, kind: pa.DataType) -> Callable[[Batches], Batches]:
    """Return the map from rows, as described by `Routing`, to blocks of `BLOCK_SCHEMA`.

    Args:
        routing: Layout of the rows.
        kind: See `block_type`.
    """

    def run(batches: Batches) -> Batches:
        from pyspark import TaskContext

        context = TaskContext.get()
        place = (context.partitionId() if context else 0) << 32
        for rows in _gather(batches, routing.buckets * BLOCK_BYTES):
            buckets, blocks = _part(rows, routing)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(buckets, pa.int32()),
                    pa.array(range(place, place + len(blocks)), pa.int64()),
                    pa.array(map(write, blocks), kind),
                ],
                names=["bucket", "place", "rows"],
            )
            place += len(blocks)

    return run


def rows_of(width: int) -> Callable[[Batches], Batches]:
    """Return the map from blocks, in column 0, to the first ``width`` columns of their rows."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for block in batch.column(0):
                rows = read(block.as_buffer())
                yield pa.RecordBatch.from_arrays(rows.columns[:width], rows.schema.names[:width])

    return run


def write(rows: pa.RecordBatch) -> bytes:
    """Return ``rows`` as one block."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    return bytes(sink.getvalue().to_pybytes())


def read(block: bytes | pa.Buffer) -> pa.RecordBatch:
    """Return the rows of one block without copying them."""
    return pa.ipc.open_stream(block).read_next_batch()


def _gather(batches: Batches, size: int) -> Iterator[pa.RecordBatch]:
    """Combine batches to about ``size`` bytes; skip empty ones."""
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            held_bytes += batch.nbytes
        if held_bytes >= min(size, PACKED_BYTES_MAX):
            yield _join(held)
            held, held_bytes = [], 0
    if held:
        yield _join(held)


def _join(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _part(rows: pa.RecordBatch, routing: Routing) -> tuple[list[int], list[pa.RecordBatch]]:
    """Split ``rows`` into blocks, stable within each bucket; return buckets and blocks."""
    columns, names = list(rows.columns), list(rows.schema.names)
    end = max(routing.width, 1 + max(routing.ids))
    digests = _digests_of([columns[at] for at in routing.ids])
    spread = columns.pop()
    names.pop()
    columns[routing.width : end], names[routing.width : end] = [], []
    rows = pa.RecordBatch.from_arrays([*columns, digests], [*names, "fingerprint"])
    buckets = of_array(digests)[:, 1] % np.uint64(routing.buckets)
    if digests.null_count:
        lonely = digests.is_null().to_numpy(zero_copy_only=False)
        buckets = np.where(lonely, spread.to_numpy().astype(np.uint64), buckets)
    if routing.buckets <= 2**16:  # numpy sorts 16-bit numbers by radix
        buckets = buckets.astype(np.uint16)
    order = np.argsort(buckets, kind="stable")
    bounds = np.searchsorted(buckets[order], np.arange(routing.buckets + 1))
    ordered = rows.take(pa.array(order))
    block_bytes_max = BLOCK_BYTES * 3 // 2  # bucket sizes vary; few buckets need a second block
    step = max(1, block_bytes_max * rows.num_rows // max(1, rows.nbytes))
    chosen, blocks = [], []
    for bucket in np.flatnonzero(np.diff(bounds)).tolist():
        start, end = int(bounds[bucket]), int(bounds[bucket + 1])
        for at in range(start, end, step):
            chosen.append(bucket)
            blocks.append(ordered.slice(at, min(step, end - at)))
    return chosen, blocks


def _digests_of(ids: Sequence[pa.Array]) -> pa.Array:
    """Return the fingerprints; null where one of the ids is null."""
    digests = fingerprints(*ids)
    if not any(column.null_count for column in ids):
        return digests
    known = ids[0].is_valid()
    for column in ids[1:]:
        known = pc.and_(known, column.is_valid())
    return pc.if_else(known, digests, pa.scalar(None, pa.binary(16)))


def split(digests: pa.Array) -> tuple[Fingerprints, npt.NDArray[np.intp]]:
    """Return the non-null fingerprints and their row indices."""
    at = np.flatnonzero(digests.is_valid().to_numpy(zero_copy_only=False))
    return of_array(digests).take(at, axis=0), at
