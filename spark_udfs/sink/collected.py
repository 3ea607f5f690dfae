"""The rows of a micro-batch on the driver, in bounded memory, however many there are.

Spark's own ways to collect hold a batch, or all that one task has of it, in the memory of the driver's JVM, and are
stopped by ``spark.driver.maxResultSize``. A batch's range is fixed in the checkpoint, so a query whose batch is too
large would meet the same error for ever. Here rows travel as blocks, one value for thousands of rows:

    small   each task hands over its rows, up to its share of `INLINE_BYTES`: one job
    large   as soon as one task has more: a second job tells the sizes of all blocks, a third shuffles them into
            chunks of about `CHUNK_BYTES`, on the executors' disks, which are brought to the driver one by one

On the driver rows are spooled (`spark_udfs.sink.spool`): beyond its memory they go to a file that is mapped.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from spark_udfs.sink.spool import spooled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INLINE_BYTES: Final = 64 << 20
CHUNK_BYTES: Final = 16 << 20
_BLOCK_BYTES: Final = 1 << 20
_TASK_BYTES_MIN: Final = 256 << 10
_TASK_BITS: Final = 33
"""As in Spark's monotonically_increasing_id."""

_EXECUTION_ID: Final = "spark.sql.execution.id"
_BLOCK_SCHEMA: Final = "at bigint, rows binary"

Batches = Iterator[pa.RecordBatch]


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
    share = max(_TASK_BYTES_MIN, INLINE_BYTES // max(1, tasks))
    schema = _schema_of(df)
    blocks = df.mapInArrow(_blocks_within(schema, share, _BLOCK_BYTES), _BLOCK_SCHEMA).toArrow()
    if blocks["rows"].null_count == 0:
        yield pa.Table.from_batches(_read(blocks), schema)
        return
    del blocks
    with spooled(_in_chunks(in_order(df), schema)) as table:
        yield table if table.num_columns else schema.empty_table()


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


def _blocks_within(schema: pa.Schema, share: int, block_bytes: int) -> Callable[[Batches], Batches]:
    """Of each task the rows, or one null where they are more than so many bytes."""

    def run(batches: Batches) -> Batches:
        held = []
        size = 0
        for block in _blocks(schema, block_bytes)(batches):
            size += block["rows"].nbytes
            if size > share:
                yield pa.RecordBatch.from_pydict({"at": [0], "rows": [None]}, block.schema)
                return
            held.append(block)
        yield from held

    return run


def _blocks(schema: pa.Schema, block_bytes: int) -> Callable[[Batches], Batches]:
    """The map from rows to blocks, with a number each that ascends as the rows of the frame do."""

    def run(batches: Batches) -> Batches:
        from pyspark import TaskContext

        context = TaskContext.get()
        at = (context.partitionId() if context else 0) << _TASK_BITS
        for batch in batches:
            step = max(1, batch.num_rows * block_bytes // max(1, batch.nbytes))
            for start in range(0, batch.num_rows, step):
                rows = _with_schema(batch.slice(start, step), schema)
                block = pa.array([_written(rows)], pa.binary())
                number = pa.array([at], pa.int64())
                yield pa.RecordBatch.from_arrays([number, block], ["at", "rows"])
                at += 1

    return run


def _written(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    return bytes(sink.getvalue())


def _read(blocks: pa.Table) -> Batches:
    for block in blocks.sort_by("at")["rows"]:
        yield _rows_of(block.as_buffer())


def _rows_of(block: pa.Buffer | bytes) -> pa.RecordBatch:
    return pa.ipc.open_stream(block).read_next_batch()


def _in_chunks(df: "DataFrame", schema: pa.Schema) -> Batches:
    """The rows in the order of the frame.

    They are computed twice, as Spark's cache holds some hundred blocks of each task in memory while it writes them.
    """
    from pyspark.sql import functions as F

    blocks = df.mapInArrow(_blocks(schema, _BLOCK_BYTES), _BLOCK_SCHEMA)
    sizes = blocks.select("at", F.octet_length("rows").alias("size")).toArrow()
    first, each, count = _chunks(sizes["at"].to_pylist(), sizes["size"].to_pylist())
    task = F.shiftright("at", _TASK_BITS).cast("int")
    number = F.col("at").bitwiseAND((1 << _TASK_BITS) - 1)
    chunk = F.get(_array(first), task) + F.floor(number / F.get(_array(each), task))
    numbered = F.coalesce(chunk.cast("int"), F.lit(0))  # null where the second time has more rows
    chunks = blocks.repartitionById(max(1, count), numbered)
    ordered = chunks.sortWithinPartitions("at").select("rows")
    with _outside_of_execution(df):
        rows = ordered.rdd.toLocalIterator(prefetchPartitions=True)
    for row in rows:
        yield _rows_of(row.rows)


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


def _chunks(at: list[int], sizes: list[int]) -> tuple[list[int], list[int], int]:
    """How blocks are put together: of each task its first chunk and how many blocks a chunk has, and all chunks."""
    counts: dict[int, int] = {}
    largest: dict[int, int] = {}
    for number, size in zip(at, sizes, strict=True):
        task = number >> _TASK_BITS
        counts[task] = counts.get(task, 0) + 1
        largest[task] = max(largest.get(task, 1), size)
    first, each, count = [], [], 0
    for task in range(max(counts, default=-1) + 1):
        blocks = max(1, CHUNK_BYTES // largest.get(task, CHUNK_BYTES))
        first.append(count)
        each.append(blocks)
        count += -(-counts.get(task, 0) // blocks)
    return first, each, count
