"""`dedup_stream`: the rows of a stream with a new id, by fingerprints that a folder remembers.

    rows -- shuffle by bucket --> rows of a bucket -- where: is the id new? --> new rows
                                fingerprints \\--> Python: the bucket's files --/ a boolean for each

Spark computes the fingerprints and keeps the rows; Python gets numbers and returns a boolean for
each row. The function takes an iterator of Arrow arrays: it reads all rows of its bucket and
micro-batch, and writes the new ids to disk before it returns the first boolean. Otherwise a sink
that stops early (`limit`) could have processed rows whose ids are not stored. The function is
marked as nondeterministic, so that the optimizer neither runs it twice nor moves filters past it.

**The fingerprint** is two hashes: ``xxhash64(ids)`` and ``xxhash64(hash(ids), ids)``. The second
one starts with another hash of the ids and not with a constant, because two ids that collide in
xxhash64 with one seed are far more likely than others to collide with another seed (in a model of
24 bits, 2**-15 and not 2**-24). The first hash also determines the bucket.

The number of a row's source partition is shuffled with it, because a shuffle interleaves its source
partitions but keeps the order within each.
"""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import TimestampNTZType, TimestampType

from spark_udfs.dedup import increments
from spark_udfs.dedup.attempts import Attempt
from spark_udfs.dedup.columns import (
    BUCKETS_MAX,
    Ids,
    check_buckets,
    check_ids,
    check_type,
    horizon_in_ms,
    type_names,
)
from spark_udfs.dedup.disk import StoreError
from spark_udfs.dedup.fingerprints import Fingerprints, Indices
from spark_udfs.dedup.memory import UNKNOWN, Memory, Times, claim, forget
from spark_udfs.dedup.store import Store, prepare

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["dedup_stream"]

Batches: TypeAlias = Iterator[tuple[pa.Array, ...]]
Numbers: TypeAlias = npt.NDArray[np.int64]

_EXECUTION: Final = "spark.sql.execution.root.id"
_ADDED: Final = "__dedup_"
"""Prefix of columns that are added to the user's columns for the shuffle."""

_LOGGER: Final = logging.getLogger("spark_udfs.dedup")


def dedup_stream(
    df: "DataFrame",
    ids: Ids,
    *,
    store: "str | os.PathLike[str]",
    horizon: timedelta | str | None = None,
    event_time: str | Column | None = None,
    buckets: int | None = None,
) -> "DataFrame":
    """Return the rows of a stream with a new id: `dropDuplicates` with 16 bytes per id.

    Ids are stored, as 16 bytes each, in the folder ``store``; each micro-batch adds its new ones. A
    query that continues from its checkpoint returns the same rows as if it had never stopped, and a
    repeated task or micro-batch returns the same rows again. The folder belongs to the checkpoint:
    copy, restore and delete them together; a folder inside the checkpoint's is the simplest. A
    folder of another query, or one that is newer than the checkpoint, is rejected.

    This determines which *rows* are new; it does not make effects exactly-once. A micro-batch that
    failed downstream runs again, and the sink must handle that (`pykafka_core.idempotent`).

    Of equal ids within a micro-batch, the first in input order is kept, partition by partition.
    A row with a null in its id is always kept, as in SQL's UNIQUE (`dropDuplicates` treats nulls as
    equal).

    Ids are compared by 128-bit fingerprints: among 1e9 ids, the chance of one false duplicate is
    about 1e-21. The hash does not resist ids that are chosen to collide.

    A Python worker caches up to 256 MiB of fingerprints, and holds those of a bucket while it
    processes it. For more than some ten million ids per bucket, set a horizon or use more buckets.
    Watermarks are preserved. The query's progress has the number of input rows as an observed
    metric, ``rows`` of ``dedup_stream START FOLDER``.

    A sink function should read all rows of each micro-batch. If it reads only some of a repeated
    one, as ``first()`` does, ids that only the failed attempt read are dropped: their duplicates
    are returned.

    Args:
        df: A stream of micro-batches, without asynchronous progress tracking. The output mode of
            its query must be "append".
        ids: The columns of the id: string, binary, integer, date or timestamp. The folder stores
            their types and order, not their names.
        store: An absolute path, the same for the driver and all executors: on a local disk with
            ``local[*]``, else on a shared file system with hard links, atomic renames and fsync. It
            is created if missing. Use one folder for each `dedup_stream`.
        horizon: An id is dropped, between two micro-batches, once the newest row of its bucket is
            more than this (at most an eighth more) after the id's first row. A later duplicate is
            returned, never lost. None: nothing is dropped.
        event_time: The timestamp that ``horizon`` refers to; null counts as the newest known time.
            A row older than the horizon is returned and its id is not stored. A row later than its
            micro-batch counts as a row of that time, and the worker logs their number. None: the
            time at which Spark planned the micro-batch, which a replay keeps; ids past the horizon
            are dropped before the rows are processed.
        buckets: Number of buckets, 1 to 4096; each is a task. None: as many as the folder has, or
            ``spark.sql.shuffle.partitions`` for a new one. If the number changes, the driver
            rewrites the whole folder.

    Raises:
        ValueError, TypeError: ``df`` is not a stream, an argument is invalid or differs from the
            settings of ``store``, or the call is in another query's ``foreachBatch``.
        pyspark.errors.AnalysisException: A column does not exist.
        pyspark.errors.StreamingQueryException: Raised by the query: ``store`` belongs to another
            checkpoint, is newer than this one, or is damaged.
    """
    _check_stream(df, buckets)
    types = type_names(df, check_ids(df, ids))
    horizon_ms = horizon_in_ms(horizon)
    time = _time(df, event_time, horizon_ms)
    settings = {"types": types, "horizon_ms": horizon_ms, "event_time": time is not None}
    prepared = prepare(_folder(store), settings, buckets, _tasks(df), _application(df))
    return _keep_new(df, ids, time, horizon_ms, prepared)


def _check_stream(df: "DataFrame", buckets: int | None) -> None:
    if not df.isStreaming:
        raise ValueError("dedup_stream needs a stream; for a table there is dedup_batch")
    if buckets is not None:
        check_buckets(buckets)
    taken = sorted(name for name in df.columns if name.lower().startswith(_ADDED))
    if taken:
        raise ValueError(f"dedup_stream needs these names itself: rename {', '.join(taken)}")
    if df.sparkSession.sparkContext.getLocalProperty(_EXECUTION) is not None:
        raise ValueError(
            "dedup_stream is called in another query's foreachBatch, whose execution the attempts of this one would "
            "have: begin the query outside of it"
        )


def _folder(path: "str | os.PathLike[str]") -> Path:
    """Return the folder at that path.

    Raises:
        TypeError, ValueError: It is not a path, or is relative and thus ambiguous.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"store is the path of a folder, not {type(path).__name__}")
    folder = Path(path)
    if not folder.is_absolute():
        raise ValueError(f"store is an absolute path, without a scheme, not {str(path)!r}")
    return folder


def _application(df: "DataFrame") -> str:
    return str(df.sparkSession.sparkContext.applicationId)


def _tasks(df: "DataFrame") -> int:
    """Return the number of tasks of a shuffle in the session."""
    tasks = df.sparkSession.conf.get("spark.sql.shuffle.partitions")
    assert tasks is not None, "Spark has a default"
    return min(int(tasks), BUCKETS_MAX)


def _time(
    df: "DataFrame", event_time: str | Column | None, horizon_ms: int | None
) -> Column | None:
    """Return the event time in milliseconds."""
    if event_time is None:
        return None
    if horizon_ms is None:
        raise ValueError("event_time says how to measure a horizon, and there is none")
    kinds = (TimestampType, TimestampNTZType)
    column = check_type(df, "event_time", event_time, kinds, "a timestamp")
    return F.unix_millis(column.cast("timestamp"))


def _keep_new(
    df: "DataFrame", ids: Ids, time: Column | None, horizon_ms: int | None, store: Store
) -> "DataFrame":
    """Return the rows of ``df`` whose id is new or contains a null.

    Fingerprints are computed on both sides of the shuffle, which is cheaper than shuffling them. An
    id that is an expression, such as a UDF, may be expensive, so its value is shuffled.
    """
    source = f"{_ADDED}source"
    added = {source: F.spark_partition_id()}
    columns: list[Column] = []
    for one in [ids] if isinstance(ids, str | Column) else ids:
        name = one if isinstance(one, str) else f"{_ADDED}id_{len(columns)}"
        if not isinstance(one, str):
            added[name] = one
        columns.append(F.col(name))
    first, second = _fingerprint(columns)
    # Rows without an id are distributed over the buckets: one bucket would be one task.
    bucket = F.pmod(F.coalesce(first, F.col(source).cast("bigint")), F.lit(store.layout.buckets))
    more = [column.alias(name) for name, column in added.items()]
    # For a shuffle without rows, adaptive execution plans no tasks unless the shuffle is observed.
    # Each attempt needs a task.
    observed = df.select("*", *more).observe(
        f"dedup_stream {store.start} {store.folder}", F.count("*").alias("rows")
    )
    rows = observed.repartitionById(store.layout.buckets, bucket.cast("int"))
    asked = [first, second, F.col(source)]
    if horizon_ms is not None:
        asked.append(F.unix_millis(F.current_timestamp()))
    if time is not None:
        asked.append(time)
    udf: Any = arrow_udf
    is_new = udf(_is_new(store, horizon_ms), "boolean").asNondeterministic()
    return rows.where(is_new(*asked)).drop(*added)


def _fingerprint(ids: Sequence[Column]) -> tuple[Column, Column]:
    """Return the halves of the ids' fingerprint; the first is null if one of the ids is null."""
    known = reduce(and_, [one.isNotNull() for one in ids])
    return F.when(known, F.xxhash64(*ids)), F.xxhash64(F.hash(*ids), *ids)


def _is_new(store: Store, horizon_ms: int | None) -> Callable[[Batches], Iterator[pa.Array]]:
    """Return the function from all rows of a bucket and micro-batch to whether each is new.

    Its columns are the two halves of the fingerprint and the row's source partition; with a horizon
    also the time of the micro-batch; and the row's own time if there is an event time.
    """

    def is_new(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        query, batch, execution = _of_task()
        # Even without rows: additions of earlier attempts to the bucket must be invalidated.
        attempt = store.open(query, batch, execution)
        held = [columns for columns in batches if len(columns[0])]
        if not held:
            return
        columns = [pa.chunked_array(pieces) for pieces in zip(*held, strict=True)]
        new = np.ones(len(columns[0]), np.bool_)
        rows = np.flatnonzero(columns[0].is_valid().to_numpy())
        if len(rows):
            new[rows] = False
            numbers = [_numbers(column)[rows] for column in columns]
            new[rows[_claim(store, batch, attempt, horizon_ms, numbers)]] = True
        for piece in np.split(new, np.cumsum([len(first) for first, *_ in held])[:-1]):
            yield pa.array(piece)

    return is_new


def _claim(
    store: Store,
    batch: int,
    attempt: Attempt,
    horizon_ms: int | None,
    columns: list[Numbers],
) -> Indices:
    """Return the indices of new rows of one bucket; on return they are stored on disk."""
    first, second, source, *timed = columns
    folder = store.bucket(_bucket(first, store.layout.buckets))
    now_ms = int(timed[0][0]) if timed else None
    known = increments.load(folder, batch, horizon_ms, now_ms)
    order = np.argsort(source, kind="stable")
    fingerprints = np.column_stack([first, second]).view(np.uint64).take(order, axis=0)
    if horizon_ms is None or now_ms is None:
        kept, news = claim(known.memory, fingerprints, None, None)
    else:
        times = timed[1].take(order) if len(timed) > 1 else None
        kept, news = _claim_at(now_ms, known.memory, fingerprints, times, horizon_ms)
    increments.save(folder, batch, attempt, known, news, horizon_ms)
    return order[kept]


def _claim_at(
    now_ms: int, memory: Memory, fingerprints: Fingerprints, times: Times | None, horizon_ms: int
) -> tuple[Indices, Memory]:
    """Run `claim` for a micro-batch at ``now_ms``, which is also the default of ``times``."""
    if times is None:
        memory = forget(memory, now_ms, horizon_ms)
        times = np.full(len(fingerprints), now_ms, np.int64)
    else:
        times = _no_later(times, now_ms)
        if max(memory.newest, int(times.max())) == UNKNOWN:  # no row has had a time so far
            times = np.full(len(times), now_ms)
    return claim(memory, fingerprints, times, horizon_ms)


def _no_later(times: Times, now_ms: int) -> Times:
    """Limit times to ``now_ms``: a row in the future would cause all earlier ids to be dropped."""
    later = times > now_ms
    if not later.any():
        return times
    _LOGGER.warning(
        "%d rows have an event_time after that of their micro-batch, by up to %d ms: they count as rows of now",
        int(later.sum()),
        int(times.max()) - now_ms,
    )
    return np.minimum(times, now_ms)


def _numbers(column: pa.ChunkedArray) -> Numbers:
    """Return the column as integers; `UNKNOWN` for null."""
    numbers: Numbers = (
        column.fill_null(UNKNOWN).to_numpy() if column.null_count else column.to_numpy()
    )
    return numbers


def _bucket(first: Numbers, buckets: int) -> int:
    """Return the common bucket of all rows.

    Raises:
        StoreError: The rows are of several buckets, so an operator is between shuffle and filter.
    """
    found = first % buckets
    if (found != found[0]).any():
        raise StoreError(f"Spark gave the rows of buckets {np.unique(found)} as one partition")
    return int(found[0])


def _of_task() -> tuple[str, int, int]:
    """Return the streaming query, its micro-batch, and Spark's SQL execution of it.

    Raises:
        StoreError: The task does not belong to a micro-batch.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    names = "sql.streaming.queryId", "streaming.sql.batchId", _EXECUTION
    query, batch, execution = (context and context.getLocalProperty(name) for name in names)
    if not query or not batch or not execution:
        raise StoreError("dedup_stream runs in the micro-batches of a stream only")
    return query, int(batch), int(execution)
