"""`dedup_offsets`: high-water marks against redelivery."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, StringType

from pykafka_core.idempotent import PartitionKey
from spark_udfs.dedup.columns import check_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["dedup_offsets"]


def dedup_offsets(
    df: "DataFrame",
    marks: Mapping[PartitionKey, int],
    *,
    topic: "str | Column" = "topic",
    partition: "str | Column" = "partition",
    offset: "str | Column" = "offset",
) -> "DataFrame":
    """The rows of ``df`` that are not below the mark of their topic-partition, by a filter that needs no Python.

    It removes redelivery, and not the duplicates of a producer that sends twice. A row of which one of the three
    columns is null is kept.

    Args:
        df: A table or a stream.
        marks: The next offset of each partition, as a ledger has them (`Transaction.marks`). A partition without a mark
            is new: its rows are kept.
        topic: A string.
        partition: An integer.
        offset: An integer.

    Raises:
        ValueError: One topic-partition twice in ``marks``, by two topic ids.
        TypeError: A column is of another type.
        pyspark.errors.AnalysisException: No such column.
    """
    name = check_type(df, "topic", topic, [StringType], "a string")
    number = check_type(df, "partition", partition, [IntegralType], "an integer").cast("int")
    at = check_type(df, "offset", offset, [IntegralType], "an integer")
    return df.where(F.coalesce(at >= _mark(name, number, marks), F.lit(True)))


def _mark(topic: "Column", partition: "Column", marks: Mapping[PartitionKey, int]) -> "Column":
    """The mark of a row's partition, null if there is none: an array for each topic, by partition."""
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
