"""`dedup_offsets`: high-water marks against redelivery."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from pyspark.sql import functions as F

from pykafka_core.idempotent import PartitionKey
from spark_udfs.dedup import marks as kept_marks
from spark_udfs.dedup.columns import (
    Ids,
    as_columns,
    check_buckets,
    check_ids,
    check_names,
    is_integral,
    type_names,
    type_of,
)
from spark_udfs.dedup.fingerprints import Fingerprints
from spark_udfs.dedup.stateful import Keeper, keep_new

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["dedup_offsets"]


def dedup_offsets(
    df: "DataFrame",
    marks: Mapping[PartitionKey, int] | None = None,
    *,
    partition_by: Ids = ("topic", "partition"),
    offset: "str | Column" = "offset",
    buckets: int = 16,
) -> "DataFrame":
    """The rows that were not delivered before, by the high-water mark of each topic-partition.

    It tells redelivery (a source that starts again further back), at 24 bytes for each partition, and not a producer
    that sends twice. Each partition's rows must come in the order of offsets, as Kafka's do: what comes late is below
    the mark, and lost. A recreated topic begins at offset 0, below the old mark: start a new checkpoint for it, or give
    ``partition_by`` a column that tells its lives apart. A row of which the offset or a column of
    ``partition_by`` is null is kept.

    Args:
        df: A stream; a table too, if there are ``marks``.
        marks: The next offset of each partition, as a ledger has them (`Transaction.marks`); partitions without a mark
            are new. Nothing is remembered then, and Python is not called. None: marks are kept in the state that Spark
            checkpoints, and of two equal offsets in one micro-batch the first in the input's order is kept.
        partition_by: The columns that name a partition. With ``marks`` these are topic and partition, in this order.
        offset: The column of the offset, an integer.
        buckets: As in `dedup_stream`; of no effect with ``marks``.

    Raises:
        ValueError, TypeError: A table without marks; one topic-partition twice in ``marks``; or one of the arguments is
            none of the above.
        pyspark.errors.AnalysisException: No such column.
    """
    check_buckets(buckets)
    columns = check_ids(df, partition_by)
    (at,) = as_columns("offset", offset)
    kind = type_of(df, at)
    if not is_integral(kind):
        raise TypeError(f"an offset is an integer, not {kind.simpleString()}")
    if marks is not None:
        return df.where(F.coalesce(at >= _mark(columns, marks), F.lit(True)))
    if not df.isStreaming:
        raise ValueError("dedup_offsets of a table needs marks; for a stream Spark keeps them")
    check_names(df)
    settings = {
        "partition_by": df.select(*columns).columns,
        "types": type_names(df, columns),
    }
    known = [F.when(at.isNotNull(), column) for column in columns]
    keeper = Keeper(_keep, settings)
    return keep_new(df, known, at.cast("bigint"), buckets=buckets, seed=0, keeper=keeper)


def _mark(columns: list["Column"], marks: Mapping[PartitionKey, int]) -> "Column":
    """The mark of a row's partition, null if there is none: an array for each topic, by partition."""
    if len(columns) != 2:
        raise ValueError("with marks, partition_by is the columns of the topic and the partition")
    topic, partition = columns
    found = F.lit(None).cast("bigint")
    for name, of_topic in _by_topic(marks).items():
        offsets = [of_topic.get(number) for number in range(max(of_topic) + 1)]
        array = F.array(*[F.lit(value).cast("bigint") for value in offsets])
        found = F.when(topic == name, F.get(array, partition)).otherwise(found)
    return found


def _by_topic(marks: Mapping[PartitionKey, int]) -> dict[str, dict[int, int]]:
    by_topic: dict[str, dict[int, int]] = {}
    for key, mark in marks.items():
        of_topic = by_topic.setdefault(key.topic, {})
        if key.partition in of_topic:
            raise ValueError(
                f"two marks of {key.topic}-{key.partition}: the rows do not say of which topic id they are; "
                "give those of the present topic only"
            )
        of_topic[key.partition] = mark
    return by_topic


def _keep(
    known: bytes | None,
    partitions: Fingerprints,
    offsets: npt.NDArray[np.int64] | None,
    now_ms: int,
) -> tuple[npt.NDArray[np.intp], bytes]:
    assert offsets is not None, "keep_new was given the column of the offset"
    before = kept_marks.Marks({}) if known is None else kept_marks.decode(known)
    kept, after = kept_marks.advance(before, partitions, offsets)
    return kept, kept_marks.encode(after)
