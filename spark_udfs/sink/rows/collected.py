"""The rows of a micro-batch on the driver, in bounded memory, however many there are.

Spark's own ways to collect hold a batch, or all that one task has of it, in the memory of the driver's JVM, and are
stopped by ``spark.driver.maxResultSize``. A batch's range is fixed in the checkpoint, so a query whose batch is too
large would meet the same error for ever. Here rows travel as blocks, one value for thousands of rows, and a block that
is large, as a single row may be, in pieces:

    small   each task hands over its rows, up to its share of `INLINE_BYTES`: one job
    large   as soon as one task has more: a second job tells the sizes of all pieces, a third shuffles them into
            chunks of about `CHUNK_BYTES`, on the executors' disks, which are brought to the driver one by one

What a job brings is at most half of ``spark.driver.maxResultSize``, whose other half is for what Spark adds.

On the driver rows are spooled (`spark_udfs.sink.rows.spool`): beyond its memory they go to a file that is mapped.
"""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pykafka_core.errors import ConsumerError
from spark_udfs.sink.rows.spool import spooled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INLINE_BYTES: Final = 64 << 20
CHUNK_BYTES: Final = 16 << 20
_PIECE_BYTES: Final = 1 << 20
_TASK_BYTES_MIN: Final = 256 << 10
_MAX_RESULT: Final = "spark.driver.maxResultSize"
_TASK_BITS: Final = 33
"""As in Spark's monotonically_increasing_id."""

_EXECUTION_ID: Final = "spark.sql.execution.id"
_PIECES: Final = "at bigint, run bigint, ends boolean, rows binary"
"""Of a block, one or many; the last one says that the block ends with it. ``run`` is random, of a run of the task."""

Batches = Iterator[pa.RecordBatch]
Pieces = Iterator[tuple[int, int, bool, bytes]]
"""As in `_PIECES`."""


@contextmanager
def collected(
    df: "DataFrame", tasks: int, in_order: "Callable[[DataFrame], DataFrame]"
) -> Iterator[pa.Table]:
    """The rows of ``df``, within the block.

    Args:
        df: A micro-batch. The table has its columns, as ``df.schema`` says, whatever Spark plans.
        tasks: About how many tasks it has.
        in_order: What brings the rows of a large batch into log order, so that they need not be sorted here.
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
    """In bytes."""

    share: int
    """What one task may hand over in the job of a small batch."""
    chunk: int
    piece: int


def _sizes(df: "DataFrame", tasks: int) -> _Sizes:
    """Such that no job brings more than Spark allows."""
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
    """The pieces of a small batch; None if it is large.

    There may be more tasks than are known before, so that all together bring too much: Spark's error says so.
    """
    try:
        found = df.mapInArrow(pieces, _PIECES).toArrow()
    except Exception as error:
        if _MAX_RESULT in str(error):
            return None
        raise
    return None if found["rows"].null_count else found


def _schema_of(df: "DataFrame") -> pa.Schema:
    """The columns that the query has. What tasks see depends on the optimizer, which knows more about nulls."""
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
    """The same columns; where types differ, it is in the nullability of nested fields, which costs no copy."""
    columns = [
        column if column.type == kind else column.cast(kind)
        for column, kind in zip(rows.columns, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _pieces_within(schema: pa.Schema, sizes: _Sizes) -> Callable[[Batches], Batches]:
    """Of each task the rows, or one null where they are more than its share."""

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
    """The map from rows to pieces, with a number each that ascends as the rows of the frame do."""

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
    """Each has some rows, on the average so many bytes of them."""
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
    """The rows of pieces in their order.

    Raises:
        ConsumerError: A task was run again between two chunks, as after the loss of an executor: rows that a shuffle
            does not order may have changed places, so that some would come twice and others not at all.
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
    """The rows in the order of the frame.

    They are computed twice, as Spark's cache holds some hundred pieces of each task in memory while it writes them.
    """
    from pyspark.sql import functions as F

    pieces = df.mapInArrow(_pieces(schema, sizes.piece), _PIECES)
    known = pieces.select("at", F.octet_length("rows").alias("size")).toArrow()
    plan = _chunks(known["at"].to_pylist(), known["size"].to_pylist(), sizes.chunk)
    task = F.shiftright("at", _TASK_BITS).cast("int")
    number = F.col("at").bitwiseAND((1 << _TASK_BITS) - 1)
    # A query that is not deterministic has other rows now. Chunks ascend as pieces do all the same, so that those of
    # one block follow each other: what a task has more is in its last chunk, and what other tasks have is in the last.
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
    """Jobs that are begun in the block are not the SQL query's, which keeps all their results until it ends (4.3.0)."""
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
    """How pieces are put together: of each task first and last chunk and pieces a chunk; chunks in all."""

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
