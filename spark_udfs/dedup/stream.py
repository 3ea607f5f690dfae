"""`dedup_stream`: the rows of a stream whose id is new, by fingerprints that are remembered in a folder.

    rows -- shuffle: to the bucket of their id --> rows of a bucket -- where: is the id new? --> the new ones
                                              fingerprints \\--> Python: the bucket's files --/ a boolean for each

Spark computes the fingerprints and keeps the rows; Python gets numbers and returns a boolean for each row. The function
takes an iterator of Arrow arrays: it reads all rows of its bucket and micro-batch, and puts what is new on disk before
it returns the first boolean. A sink that stops early (`limit`) would otherwise have seen rows that nothing remembers.
The function is marked as not deterministic, so that the optimizer neither runs it twice nor moves filters past it.

**The fingerprint** is two hashes: ``xxhash64(ids)`` and ``xxhash64(hash(ids), ids)``. The second begins with another
hash of the ids and not with a constant: two ids that xxhash64 takes for equal from one beginning are far more likely
than others to be equal from another one (in a model of 24 bits, 2**-15 and not 2**-24). The first tells the bucket too.

A row's source, the number of the partition it came from, goes along: a shuffle mixes the partitions that it reads from,
and keeps the order of each.
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
"""With this begin the names of columns that go through the shuffle beside the user's."""

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
    """The rows of a stream whose id did not come before: `dropDuplicates` at 16 bytes an id.

    Ids are remembered, as 16 bytes each, in the folder ``store``, to which each micro-batch adds its new ones. A query
    that goes on from its checkpoint answers as if it had never stopped, and a task or a micro-batch that is run again
    gives what it gave at first. The folder goes with the checkpoint: they are copied, restored and deleted together,
    for which it is best a folder inside the checkpoint's. A folder of another query, or one that is newer than the
    checkpoint, is refused.

    It says which *rows* are new, not that effects happen once: a micro-batch that failed behind it is run again, and
    the sink must know that (`pykafka_core.idempotent`).

    Of equal ids within a micro-batch the first in the input's order is kept, partition by partition. A row of which
    an id is null has no identity and is kept, as SQL's UNIQUE has it (`dropDuplicates` takes nulls for equal).

    Ids are compared by 128-bit fingerprints: among 1e9 honest ids one is wrongly taken for another with a chance of
    about 1e-21. The hash resists no one who makes ids collide on purpose.

    A Python worker keeps up to 256 MiB of the fingerprints that it read, and holds those of a bucket while it works on
    it: beyond some ten million ids for each bucket give a horizon or more buckets. Watermarks pass. The query's
    progress has the number of rows that came as an observed metric, ``rows`` of ``dedup_stream START FOLDER``.

    A sink function should read all rows of each micro-batch. If it reads some of one that is run again, as ``first()``
    does, ids of the others that only the failed attempt had are forgotten: duplicates of them pass.

    Args:
        df: A stream of micro-batches, without asynchronous progress tracking. Its query must be of output mode
            "append".
        ids: The columns that make the id: string, binary, integer, date or timestamp. The folder keeps their types and
            order, not their names.
        store: An absolute path, the same for the driver and all executors: on a local disk with ``local[*]``, else on
            a shared file system that has hard links, atomic renames and fsync. It is made if it is not there; one
            folder for one `dedup_stream`.
        horizon: An id is forgotten, between two micro-batches, once more than this, and at most an eighth more than
            this, lies between its first row and the newest one that its bucket has seen. A duplicate that comes later
            is passed on, never lost. None: nothing is forgotten.
        event_time: The timestamp by which ``horizon`` is measured; a null counts as the newest one known. A row that is
            older than the horizon when it comes is passed on and not remembered. One after the time of its micro-batch
            counts as a row of that time, and the worker's log says how many there are. None: the time at which Spark
            planned the micro-batch, the same when that is replayed; what is past the horizon then is forgotten first.
        buckets: Into how many parts ids fall, 1 to 4096; each is a task. None: as many as the folder has,
            ``spark.sql.shuffle.partitions`` when it is made. With another number than before the driver writes the
            whole folder once more.

    Raises:
        ValueError, TypeError: Not a stream, or one of the arguments is none of the above, or other than what ``store``
            was made with; or called in another query's ``foreachBatch``.
        pyspark.errors.AnalysisException: No such column.
        pyspark.errors.StreamingQueryException: From the query: ``store`` is of another checkpoint, is newer than this
            one, or is damaged.
    """
    if not df.isStreaming:
        raise ValueError("dedup_stream needs a stream; for a table there is dedup_batch")
    if buckets is not None:
        check_buckets(buckets)
    taken = sorted(name for name in df.columns if name.lower().startswith(_ADDED))
    if taken:
        raise ValueError(f"dedup_stream needs these names itself: rename {', '.join(taken)}")
    columns = check_ids(df, ids)
    horizon_ms = horizon_in_ms(horizon)
    time = _time(df, event_time, horizon_ms)
    settings = {
        "types": type_names(df, columns),
        "horizon_ms": horizon_ms,
        "event_time": time is not None,
    }
    context = df.sparkSession.sparkContext
    if context.getLocalProperty(_EXECUTION) is not None:
        raise ValueError(
            "dedup_stream is called in another query's foreachBatch, whose execution the attempts of this one would "
            "have: begin the query outside of it"
        )
    application = str(context.applicationId)
    prepared = prepare(_folder(store), settings, buckets, _tasks(df), application)
    return _keep_new(df, ids, time, horizon_ms, prepared)


def _folder(path: "str | os.PathLike[str]") -> Path:
    """The folder of that path.

    Raises:
        TypeError, ValueError: It is no path, or one that means different folders in different processes.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"store is the path of a folder, not {type(path).__name__}")
    folder = Path(path)
    if not folder.is_absolute():
        raise ValueError(f"store is an absolute path, without a scheme, not {str(path)!r}")
    return folder


def _tasks(df: "DataFrame") -> int:
    """Into how many tasks the session parts a shuffle."""
    tasks = df.sparkSession.conf.get("spark.sql.shuffle.partitions")
    assert tasks is not None, "Spark has a default"
    return min(int(tasks), BUCKETS_MAX)


def _time(
    df: "DataFrame", event_time: str | Column | None, horizon_ms: int | None
) -> Column | None:
    """The event time in milliseconds."""
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
    """The rows of ``df`` whose id is new or has a null in it.

    Fingerprints are computed on both sides of the shuffle: that is cheaper than to shuffle them. An expression may
    cost more, as a UDF does: its value is shuffled.
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
    # Rows without an id go anywhere: in one bucket they would all be one task's.
    bucket = F.pmod(F.coalesce(first, F.col(source).cast("bigint")), F.lit(store.layout.buckets))
    more = [column.alias(name) for name, column in added.items()]
    # Adaptive execution plans no task behind a shuffle without rows, unless that is observed; each attempt needs one.
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
    """The halves of the ids' fingerprint; the first is null where one of the ids is."""
    known = reduce(and_, [one.isNotNull() for one in ids])
    return F.when(known, F.xxhash64(*ids)), F.xxhash64(F.hash(*ids), *ids)


def _is_new(store: Store, horizon_ms: int | None) -> Callable[[Batches], Iterator[pa.Array]]:
    """The function from all rows of one bucket and micro-batch to whether each is new.

    Its columns are the two halves of the fingerprint and the number of the row's source; with a horizon the time of the
    micro-batch; and the row's own time if the horizon goes by that.
    """

    def is_new(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        query, batch, execution = _of_task()
        # Also without rows: what an attempt before this one added to the bucket does not count any more.
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
    """Which rows of one bucket are new; on return they are remembered on disk."""
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
    """`claim` in a micro-batch of the time ``now_ms``, which all rows have if there are no ``times``."""
    if times is None:
        memory = forget(memory, now_ms, horizon_ms)
        times = np.full(len(fingerprints), now_ms, np.int64)
    else:
        times = _no_later(times, now_ms)
        if max(memory.newest, int(times.max())) == UNKNOWN:  # no row had a time yet
            times = np.full(len(times), now_ms)
    return claim(memory, fingerprints, times, horizon_ms)


def _no_later(times: Times, now_ms: int) -> Times:
    """A row of the future would have everything before it forgotten: it counts as one of now."""
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
    """The numbers of the rows; `UNKNOWN` for null."""
    numbers: Numbers = (
        column.fill_null(UNKNOWN).to_numpy() if column.null_count else column.to_numpy()
    )
    return numbers


def _bucket(first: Numbers, buckets: int) -> int:
    """The bucket that all rows are of.

    Raises:
        StoreError: They are of several: something stands between the shuffle and this.
    """
    found = first % buckets
    if (found != found[0]).any():
        raise StoreError(f"Spark gave the rows of buckets {np.unique(found)} as one partition")
    return int(found[0])


def _of_task() -> tuple[str, int, int]:
    """The streaming query, its micro-batch, and the SQL execution that Spark runs it as.

    Raises:
        StoreError: Spark runs this in no micro-batch.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    names = "sql.streaming.queryId", "streaming.sql.batchId", _EXECUTION
    query, batch, execution = (context and context.getLocalProperty(name) for name in names)
    if not query or not batch or not execution:
        raise StoreError("dedup_stream runs in the micro-batches of a stream only")
    return query, int(batch), int(execution)
