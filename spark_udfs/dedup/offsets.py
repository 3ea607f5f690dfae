"""`dedup_offsets`: removes redelivered rows by the next offset of each partition."""

import json
from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, StringType

from pykafka_core.idempotent import PartitionKey
from spark_udfs.dedup.columns import check_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["dedup_offsets"]

OFFSET_MAX: Final = 2**63 - 1
PARTITION_MAX: Final = 2**22 - 1
"""More than a cluster can have. Marks take 8 bytes for each number up to the greatest."""


def dedup_offsets(
    df: "DataFrame",
    marks: Mapping[PartitionKey, int],
    *,
    topic: "str | Column" = "topic",
    partition: "str | Column" = "partition",
    offset: "str | Column" = "offset",
) -> "DataFrame":
    """Drop rows below the mark of their topic partition, by a filter that needs no Python.

    It removes redelivery, but not duplicates that a producer sent. Rows with a null in one of the
    three columns are kept.

    Args:
        df: A table or a stream.
        marks: The next offset of each partition, as stored in a ledger (`Transaction.marks`).
            A partition without a mark is new, and its rows are kept. All marks together are one
            constant of the query.
        topic: A string.
        partition: An integer.
        offset: An integer.

    Raises:
        ValueError: ``marks`` contains a topic partition twice, with two topic ids, or an invalid
            offset.
        TypeError: A column or ``marks`` has the wrong type.
        pyspark.errors.AnalysisException: A column does not exist.
    """
    name = check_type(df, "topic", topic, [StringType], "a string")
    number = check_type(df, "partition", partition, [IntegralType], "an integer").cast("int")
    at = check_type(df, "offset", offset, [IntegralType], "an integer")
    return df.where(F.coalesce(at >= _mark(name, number, marks), F.lit(True)))


def _mark(topic: "Column", partition: "Column", marks: Mapping[PartitionKey, int]) -> "Column":
    """Return the mark of a row's partition, null if there is none.

    Marks are one JSON constant, an array for each topic, which Spark parses once. With a literal
    for each mark, building the query takes seconds from a thousand marks on; a condition for each
    topic would be too deep for Spark's optimizer.
    """
    by_topic = {
        name: [of_topic.get(number) for number in range(max(of_topic) + 1)]
        for name, of_topic in _by_topic(marks).items()
    }
    arrays = F.from_json(F.lit(json.dumps(by_topic)), "map<string, array<bigint>>")
    return F.get(F.try_element_at(arrays, topic.cast("string")), partition)


def _by_topic(marks: Mapping[PartitionKey, int]) -> dict[str, dict[int, int]]:
    if not isinstance(marks, Mapping):
        raise TypeError(
            f"marks is a mapping from PartitionKey to offset, not {type(marks).__name__}"
        )
    by_topic: dict[str, dict[int, int]] = {}
    for key, mark in marks.items():
        if not isinstance(key, PartitionKey):
            raise TypeError(f"marks are by PartitionKey(topic_id, topic, partition), not {key!r}")
        number = _number(f"the partition in {key!r}", key.partition, PARTITION_MAX)
        of_topic = by_topic.setdefault(key.topic, {})
        if number in of_topic:
            raise ValueError(
                f"two marks of {key.topic}-{number}: the rows do not say of which topic id they are; "
                "give those of the present topic only"
            )
        of_topic[number] = _number(f"the mark of {key.topic}-{number}", mark, OFFSET_MAX)
    return by_topic


def _number(what: str, value: object, most: int) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{what} is an int, not {type(value).__name__}")
    if not 0 <= int(value) <= most:
        raise ValueError(f"{what} is 0 to {most}, not {value}")
    return int(value)
