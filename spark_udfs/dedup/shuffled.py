"""The way of a stream through one shuffle of its rows, with memories in a folder.

    rows -- to the bucket of their id --> rows of a bucket -- Python: a memory from the folder --> the new ones

A row crosses to Python once, and Spark keeps no state: `spark_udfs.dedup.store` does. Rows are sent to buckets by
Spark's own hash of their ids, and compared by fingerprints. The bucket and the number of the row's partition go along:
the first says which memory, also if Spark runs two buckets in one task (`coalesce` afterwards does that); the second
restores the input's order, for a shuffle mixes the partitions it reads from and keeps the order of each.

All rows of a bucket and micro-batch are held until the new memory is on disk. A sink that stops early
(`limit`) would otherwise have seen rows that no one remembers.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from spark_udfs.dedup.blocks import digests_of
from spark_udfs.dedup.choice import Keep, choose, numbers_of
from spark_udfs.dedup.columns import Ids, as_columns, placed
from spark_udfs.dedup.store import Store, StoreError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["keep_new_by_store"]

_BUCKET: Final = "__bucket"
_SOURCE: Final = "__source"
_NUMBER: Final = "__number"
_NOW: Final = "__now"

Batches = Iterator[pa.RecordBatch]


def keep_new_by_store(
    df: "DataFrame",
    ids: Ids,
    number: "Column | None",
    *,
    timed: bool,
    buckets: int,
    seed: int,
    keep: Keep,
    store: Store,
) -> "DataFrame":
    """The rows of the stream ``df`` that ``keep`` keeps, and those of which an id is null.

    ``timed``: whether ``keep`` asks for the time of the micro-batch.
    """
    at, more = placed(df, ids)
    extra = [column.alias(f"__id_{number}") for number, column in enumerate(more)]
    extra.append(F.pmod(F.hash(*as_columns("ids", ids)), F.lit(buckets)).alias(_BUCKET))
    extra.append(F.spark_partition_id().cast("bigint").alias(_SOURCE))
    if number is not None:
        extra.append(number.alias(_NUMBER))
    if timed:
        extra.append(F.unix_millis(F.current_timestamp()).alias(_NOW))
    rows = df.select("*", *extra).repartitionById(buckets, _BUCKET)
    return rows.mapInArrow(_step(len(df.columns), at, seed, keep, store), df.schema)


def _step(
    width: int, ids: Sequence[int], seed: int, keep: Keep, store: Store
) -> Callable[[Batches], Batches]:
    """The map from all rows of one bucket and micro-batch to those that are new."""

    def run(batches: Batches) -> Batches:
        query, batch = _of_task()
        store.open(query)
        rows = [rows for rows in batches if rows.num_rows]
        if not rows:
            return
        bucket = _bucket(_added(rows, width, _BUCKET))
        digests = [digests_of([part.column(at) for at in ids], seed) for part in rows]
        numbers, now, sources = (
            [numbers_of(column) for column in _added(rows, width, name)]
            for name in (_NUMBER, _NOW, _SOURCE)
        )
        now_ms = int(now[0][0]) if now else 0
        known = store.load(bucket, batch)
        masks, memory = choose(keep, known, digests, numbers or None, now_ms, sources)
        store.save(bucket, batch, memory)
        for part, mask in zip(rows, masks, strict=True):
            users = pa.RecordBatch.from_arrays(part.columns[:width], part.schema.names[:width])
            yield users.filter(pa.array(mask))

    return run


def _of_task() -> tuple[str, int]:
    """The streaming query, and its micro-batch.

    Raises:
        StoreError: Spark runs this in no micro-batch.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    query = context and context.getLocalProperty("sql.streaming.queryId")
    batch = context and context.getLocalProperty("streaming.sql.batchId")
    if not query or not batch:
        raise StoreError("dedup_stream with a store runs in the micro-batches of a stream only")
    return query, int(batch)


def _added(rows: Sequence[pa.RecordBatch], width: int, name: str) -> list[pa.Array]:
    """The column of this name behind the user's, piece by piece; empty if there is none."""
    names = rows[0].schema.names[width:]
    return [part.column(width + names.index(name)) for part in rows] if name in names else []


def _bucket(columns: Sequence[pa.Array]) -> int:
    """The bucket that all rows are of.

    Raises:
        StoreError: They are of several: something stands between the shuffle and this.
    """
    found = {one for column in columns for one in pc.unique(column).to_pylist()}
    if len(found) != 1:
        raise StoreError(f"Spark handed over the rows of buckets {sorted(found)} as one partition")
    return int(found.pop())
