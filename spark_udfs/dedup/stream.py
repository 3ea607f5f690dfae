"""`dedup_stream`: ids remembered in the state that Spark checkpoints."""

import logging
import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampNTZType, TimestampType

from spark_udfs.dedup import memory as memories
from spark_udfs.dedup.choice import Keep
from spark_udfs.dedup.columns import (
    BUCKETS_MAX,
    Ids,
    as_columns,
    check_buckets,
    check_ids,
    check_names,
    check_seed,
    horizon_in_ms,
    type_names,
    type_of,
)
from spark_udfs.dedup.fingerprints import Fingerprints
from spark_udfs.dedup.shuffled import keep_new_by_store
from spark_udfs.dedup.stateful import Keeper, keep_new
from spark_udfs.dedup.store import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["dedup_stream"]

BUCKETS: Final = 16
_LOGGER: Final = logging.getLogger("spark_udfs.dedup")


def dedup_stream(
    df: "DataFrame",
    ids: Ids,
    horizon: timedelta | str | None = None,
    buckets: int | None = None,
    *,
    event_time: "str | Column | None" = None,
    seed: int = 0,
    store: "str | os.PathLike[str] | None" = None,
) -> "DataFrame":
    """The rows of a stream whose id did not come before: `dropDuplicates` for a fraction of its memory.

    Ids are remembered, as 16 bytes each, in the state that Spark checkpoints. A query that goes on from its
    checkpoint answers as if it had never stopped; one with a new checkpoint has forgotten all. It says which *rows*
    are new, not that effects happen once: a micro-batch that failed behind it is run again, and the sink must know
    that (`pykafka_core.idempotent`).

    Of equal ids within a micro-batch the first in the input's order is kept, partition by partition. A row of which
    an id is null has no identity and is kept, as SQL's UNIQUE has it (`dropDuplicates` takes nulls for equal).

    Ids are compared by 128-bit fingerprints: among 1e9 honest ids one is wrongly taken for another with a chance of
    1e-21. The hash resists no one who makes ids collide on purpose.

    With a ``store`` the ids are remembered in that folder instead of Spark's state: rows cross to Python once and not
    three times, and Spark moves no state. The folder goes with the checkpoint: they are copied, restored and
    deleted together, and a folder that does not belong to the query, or is older, is refused. What it says holds as
    it does for the state, for task retries, speculative attempts and replayed micro-batches too. A task holds its
    rows of one micro-batch in memory.

    All of a bucket's state is written with each micro-batch: up to some ten million ids are cheap, beyond that give a
    horizon. A watermark does not pass: set it afterwards.

    Args:
        df: A stream. Its query must be of output mode "append".
        ids: The columns that make the id: string, binary, integer, date or timestamp.
        horizon: An id is forgotten, between two micro-batches, once more than this, and at most an eighth more than
            this, lies between its first row and the newest one that its bucket has seen. A duplicate that comes later
            is passed on, never lost. None: nothing is forgotten.
        buckets: Into how many parts ids fall, 1 to 4096; work is shared out among tasks by them, so a few for each of
            ``spark.sql.shuffle.partitions`` are best: None is 16. With a ``store`` each bucket is a task, and None is
            ``spark.sql.shuffle.partitions`` when the folder is made. A checkpoint is bound to their number.
        event_time: The timestamp by which ``horizon`` is measured; a null counts as the newest one known. A row that is
            older than the horizon when it comes is passed on and not remembered. One after the time of its micro-batch
            counts as a row of that time, and the worker's log says how many there are. None: the time at which Spark
            planned the micro-batch, the same when that is replayed; what is past the horizon then is forgotten first.
        seed: Of the fingerprints, 0 to 4294967295.
        store: An absolute path, the same for the driver and all executors: on a local disk with ``local[*]``, else on
            a shared file system that has hard links, atomic renames and fsync. It is made if it is not there; one
            folder for one `dedup_stream`. The stream is one of micro-batches without asynchronous progress tracking.

    Raises:
        ValueError, TypeError: Not a stream, or one of the arguments is none of the above, or other than what ``store``
            was made with.
        pyspark.errors.AnalysisException: No such column.
        pyspark.errors.StreamingQueryException: From the query: the checkpoint was written with other ids, or ids of
            other types, horizon, buckets or seed; ``store`` is of another checkpoint; or a bucket would hold more than
            2**26 ids.
    """
    if not df.isStreaming:
        raise ValueError("dedup_stream needs a stream; for a table there is dedup_batch")
    if buckets is not None:
        check_buckets(buckets)
    check_seed(seed)
    check_names(df)
    columns = check_ids(df, ids)
    horizon_ms = horizon_in_ms(horizon)
    settings = {
        "ids": df.select(*columns).columns,
        "types": type_names(df, columns),
        "horizon_ms": horizon_ms,
        "event_time": event_time is not None,
    }
    time = _time(df, event_time, horizon_ms)
    keep = _keep(horizon_ms)
    if store is None:
        buckets = buckets or BUCKETS
        return keep_new(df, ids, time, buckets=buckets, seed=seed, keeper=Keeper(keep, settings))
    folder = _store(store)
    buckets = buckets or folder.settings().get("buckets") or _tasks(df)
    folder.prepare({**settings, "buckets": buckets, "seed": seed})
    timed = horizon_ms is not None
    return keep_new_by_store(
        df, ids, time, timed=timed, buckets=buckets, seed=seed, keep=keep, store=folder
    )


def _store(path: "str | os.PathLike[str]") -> Store:
    """The folder of that path.

    Raises:
        TypeError, ValueError: It is no path, or one that means different folders in different processes.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"store is the path of a folder, not {type(path).__name__}")
    folder = Path(path)
    if not folder.is_absolute():
        raise ValueError(f"store is an absolute path, without a scheme, not {str(path)!r}")
    return Store(folder)


def _tasks(df: "DataFrame") -> int:
    """Into how many tasks the session parts a shuffle."""
    tasks = df.sparkSession.conf.get("spark.sql.shuffle.partitions")
    return min(int(tasks or BUCKETS), BUCKETS_MAX)


def _time(
    df: "DataFrame", event_time: "str | Column | None", horizon_ms: int | None
) -> "Column | None":
    """The event time in milliseconds."""
    if event_time is None:
        return None
    if horizon_ms is None:
        raise ValueError("event_time says how to measure a horizon, and there is none")
    (column,) = as_columns("event_time", event_time)
    kind = type_of(df, column)
    if not isinstance(kind, TimestampType | TimestampNTZType):
        raise TypeError(f"event_time is a timestamp, not {kind.simpleString()}")
    return F.unix_millis(column.cast("timestamp"))


def _keep(horizon_ms: int | None) -> Keep:
    def keep(
        known: bytes | None,
        fingerprints: Fingerprints,
        times: npt.NDArray[np.int64] | None,
        now_ms: int,
    ) -> tuple[npt.NDArray[np.intp], bytes]:
        memory = memories.Memory.blank() if known is None else memories.decode(known)
        if horizon_ms is not None and times is None:
            memory = memories.forget(memory, now_ms, horizon_ms)
            times = np.full(len(fingerprints), now_ms, np.int64)
        elif times is not None:
            memory = replace(memory, newest=min(memory.newest, now_ms))
            times = _no_later(times, now_ms)
        kept, memory = memories.claim(memory, fingerprints, times, horizon_ms)
        return kept, memories.encode(memory)

    return keep


def _no_later(times: npt.NDArray[np.int64], now_ms: int) -> npt.NDArray[np.int64]:
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
