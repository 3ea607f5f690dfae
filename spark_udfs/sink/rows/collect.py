"""Collects the rows of a micro-batch of any size on the driver, in bounded memory.

Spark's own methods hold a batch, or all rows of a task, in the memory of the driver's JVM, and fail
at ``spark.driver.maxResultSize``. The range of a batch is fixed in the checkpoint, so a query with
too large a batch would fail the same way forever. Here rows travel as blocks, one value for
thousands of rows. A large block, which may be a single row, is split into pieces:

    small   each task returns its rows, up to its share of `INLINE_BYTES`: one job
    large   if one task has more: a second job returns the sizes of all pieces, and a third job
            shuffles them into chunks of about `CHUNK_BYTES`, on the executors' disks; the driver
            fetches the chunks one by one

A job returns at most half of ``spark.driver.maxResultSize``; the rest is for Spark's overhead.

On the driver, rows are spooled (`spark_udfs.sink.rows.spill`): rows above a memory limit go to a
mapped file.
"""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pykafka_core.errors import ConsumerError
from spark_udfs.sink.rows.spill import spooled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INLINE_BYTES: Final = 64 << 20
CHUNK_BYTES: Final = 16 << 20
_PIECE_BYTES: Final = 1 << 20
_TASK_BYTES_MIN: Final = 256 << 10
_MAX_RESULT: Final = "spark.driver.maxResultSize"
_TASK_BITS: Final = 33
"""The shift in Spark's monotonically_increasing_id."""

_EXECUTION_ID: Final = "spark.sql.execution.id"
_PIECES: Final = "at bigint, run bigint, ends boolean, rows binary"
"""Pieces of blocks; ``ends`` marks a block's last piece. ``run`` is random per task attempt."""

Batches = Iterator[pa.RecordBatch]
Pieces = Iterator[tuple[int, int, bool, bytes]]
"""Tuples of the columns in `_PIECES`."""


@contextmanager
def collected(
    df: "DataFrame", tasks: int, in_order: "Callable[[DataFrame], DataFrame]"
) -> Iterator[pa.Table]:
    """Yield the rows of ``df`` as a table that is valid within the block.

    Args:
        df: A micro-batch. The table has the types of ``df.schema``, whatever Spark plans.
        tasks: Approximate number of tasks.
        in_order: Brings the rows of a large batch into log order, so that they are not sorted here.
    """
    schema = _schema_of(df)
    sizes = _sizes(df, max(1, tasks))
    pieces = _handed_over(df, _pieces_within(schema, sizes))
    if pieces is not None:
        yield pa.Table.from_batches(_rows_of(_in_order(pieces)), schema)
        return
    with spooled(_in_chunks(in_order(df), schema, sizes)) as table:
        yield table if table.num_columns else schema.empty_table()


class _Sizes(NamedTuple):
    """Sizes in bytes."""

    share: int
    """Maximum that one task may return in the job of a small batch."""
    chunk: int
    piece: int


def _sizes(df: "DataFrame", tasks: int) -> _Sizes:
    """Return sizes with which no job returns more than Spark allows."""
    context: Any = df.sparkSession.sparkContext
    result_max = context._jvm.org.apache.spark.network.util.JavaUtils.byteStringAsBytes(
        context.getConf().get(_MAX_RESULT, "1g")
    )
    share = max(_TASK_BYTES_MIN, INLINE_BYTES // tasks)
    if result_max <= 0:
        return _Sizes(share, CHUNK_BYTES, _PIECE_BYTES)
    usable = max(1, result_max // 2)
    return _Sizes(min(share, usable // tasks), min(CHUNK_BYTES, usable), min(_PIECE_BYTES, usable))


def _handed_over(df: "DataFrame", pieces: Callable[[Batches], Batches]) -> pa.Table | None:
    """Return the pieces of a small batch; None if the batch is large.

    There may be more tasks than expected, so that their total exceeds Spark's limit. Spark then
    fails with an error that names the limit.
    """
    try:
        found = df.mapInArrow(pieces, _PIECES).toArrow()
    except Exception as error:
        if _MAX_RESULT in str(error):
            return None
        raise
    return None if found["rows"].null_count else found


def _schema_of(df: "DataFrame") -> pa.Schema:
    """Return the columns of the query. Tasks may see stricter nullability, from the optimizer."""
    from pyspark.sql.pandas.types import to_arrow_schema

    conf = df.sparkSession.conf
    to_schema: Any = to_arrow_schema
    schema: pa.Schema = to_schema(
        df.schema,
        timezone=conf.get("spark.sql.session.timeZone"),
        prefers_large_types=conf.get("spark.sql.execution.arrow.useLargeVarTypes") == "true",
    )
    return schema


def _with_schema(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast to ``schema`` without a copy: types differ only in nullability of nested fields."""
    columns = [
        column if column.type == kind else column.cast(kind)
        for column, kind in zip(rows.columns, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _pieces_within(schema: pa.Schema, sizes: _Sizes) -> Callable[[Batches], Batches]:
    """Return a map from a task's rows to pieces, or to one null if they exceed its share."""

    def run(batches: Batches) -> Batches:
        held = []
        size = 0
        for piece in _pieces(schema, sizes.piece)(batches):
            size += piece["rows"].nbytes
            if size > sizes.share:
                yield _piece(0, 0, True, None)
                return
            held.append(piece)
        yield from held

    return run


def _pieces(schema: pa.Schema, piece_bytes: int) -> Callable[[Batches], Batches]:
    """Return a map from rows to pieces, numbered in the order of the frame's rows."""

    def run(batches: Batches) -> Batches:
        from pyspark import TaskContext

        context = TaskContext.get()
        at = (context.partitionId() if context else 0) << _TASK_BITS
        number = secrets.randbits(63)
        for block in _blocks(batches, schema, piece_bytes):
            for start in range(0, len(block), piece_bytes):
                stop = start + piece_bytes
                yield _piece(at, number, stop >= len(block), block[start:stop])
                at += 1

    return run


def _piece(at: int, run: int, ends: bool, rows: bytes | None) -> pa.RecordBatch:
    columns = [pa.array([at]), pa.array([run]), pa.array([ends]), pa.array([rows], pa.binary())]
    return pa.record_batch(columns, ["at", "run", "ends", "rows"])


def _blocks(batches: Batches, schema: pa.Schema, block_bytes: int) -> Iterator[bytes]:
    """Yield blocks of one or more rows, of about ``block_bytes`` on average."""
    for batch in batches:
        step = max(1, batch.num_rows * block_bytes // max(1, batch.nbytes))
        for start in range(0, batch.num_rows, step):
            yield _written(_with_schema(batch.slice(start, step), schema))


def _written(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    return bytes(sink.getvalue())


def _in_order(pieces: pa.Table) -> Pieces:
    for number in pc.sort_indices(pieces["at"]).to_pylist():
        at, run, ends, rows = (pieces[name][number].as_py() for name in pieces.column_names)
        yield at, run, ends, rows


def _rows_of(pieces: Pieces) -> Batches:
    """Yield the rows of ordered pieces.

    Raises:
        ConsumerError: A task ran again between two chunks, for example because an executor was
            lost. A shuffle does not keep the order of rows, so some could be repeated and others
            missing.
    """
    held: list[bytes] = []
    runs: dict[int, int] = {}
    for at, run, ends, piece in pieces:
        if runs.setdefault(at >> _TASK_BITS, run) != run:
            raise ConsumerError(
                "an executor was lost while the rows of the batch were brought to the driver; start the query again"
            )
        held.append(piece)
        if ends:
            yield pa.ipc.open_stream(b"".join(held)).read_next_batch()
            held.clear()
    if held:
        raise ConsumerError("Spark left out the end of a block of rows; start the query again")


def _in_chunks(df: "DataFrame", schema: pa.Schema, sizes: _Sizes) -> Batches:
    """Yield the rows in the order of the frame.

    They are computed twice, because Spark's cache would hold some hundred pieces of each task in
    memory while it writes them.
    """
    from pyspark.sql import functions as F

    pieces = df.mapInArrow(_pieces(schema, sizes.piece), _PIECES)
    known = pieces.select("at", F.octet_length("rows").alias("size")).toArrow()
    plan = _chunks(known["at"].to_pylist(), known["size"].to_pylist(), sizes.chunk)
    task = F.shiftright("at", _TASK_BITS).cast("int")
    number = F.col("at").bitwiseAND((1 << _TASK_BITS) - 1)
    # A nondeterministic query may return other rows now. Chunk numbers still ascend with piece
    # numbers, so the pieces of a block stay adjacent: extra pieces of a task are in its last chunk,
    # and pieces of extra tasks are in the very last chunk.
    chunk = F.least(
        F.get(_array(plan.first), task) + F.floor(number / F.get(_array(plan.each), task)),
        F.get(_array(plan.last), task),
    )
    count = max(1, plan.total)
    numbered = F.coalesce(chunk.cast("int"), F.lit(count - 1))
    chunks = pieces.repartitionById(count, numbered)
    ordered = chunks.sortWithinPartitions("at")
    with _outside_of_execution(df):
        rows = ordered.rdd.toLocalIterator(prefetchPartitions=True)
    yield from _rows_of((row.at, row.run, row.ends, row.rows) for row in rows)


@contextmanager
def _outside_of_execution(df: "DataFrame") -> Iterator[None]:
    """Detach jobs in the block from the SQL query, which would keep all their results (4.3.0)."""
    context = df.sparkSession.sparkContext
    execution: Any = context.getLocalProperty(_EXECUTION_ID)
    no_execution: Any = None
    context.setLocalProperty(_EXECUTION_ID, no_execution)
    try:
        yield
    finally:
        context.setLocalProperty(_EXECUTION_ID, execution)


def _array(values: list[int]) -> Any:
    from pyspark.sql import functions as F

    return F.array(*(F.lit(value) for value in values))


class _Chunks(NamedTuple):
    """Chunk numbers: by task the first chunk, pieces per chunk and last chunk; and the total."""

    first: list[int]
    each: list[int]
    last: list[int]
    total: int


def _chunks(at: list[int], sizes: list[int], chunk_bytes: int) -> _Chunks:
    counts: dict[int, int] = {}
    largest: dict[int, int] = {}
    for number, size in zip(at, sizes, strict=True):
        task = number >> _TASK_BITS
        counts[task] = counts.get(task, 0) + 1
        largest[task] = max(largest.get(task, 1), size)
    first, each, last, count = [], [], [], 0
    for task in range(max(counts, default=-1) + 1):
        pieces = max(1, chunk_bytes // largest.get(task, chunk_bytes))
        first.append(count)
        each.append(pieces)
        count += -(-counts.get(task, 0) // pieces)
        last.append(max(first[-1], count - 1))
    return _Chunks(first, each, last, count)
