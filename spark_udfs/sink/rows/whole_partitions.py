"""One task for each Kafka partition: as read by Spark if possible, else after a shuffle."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from spark_udfs.sink.rows.micro_batch import SOURCE_COLUMNS
from spark_udfs.sink.topic_partition import Range, TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SOURCE: Final = "org.apache.spark.sql.execution.datasources.v2.DataSourceRDD"
_ONE_TO_ONE: Final = "org.apache.spark.OneToOneDependency"


def in_whole_partitions(
    df: "DataFrame", ranges: Mapping[TopicPartition, Range]
) -> "tuple[DataFrame, list[TopicPartition] | None]":
    """Return a micro-batch with each Kafka partition in one Spark partition, in offset order.

    Args:
        df: The micro-batch.
        ranges: The offsets that Spark planned for it.

    Returns:
        The frame, and the Kafka partition of each Spark partition, by number; None after a shuffle.
    """
    planned = {place: at for place, at in ranges.items() if at.end > at.start}
    read = _read_by_task(df)
    if sorted(read) == sorted(planned.items()):
        return df, [place for place, _ in read]
    tasks = max(1, min(len(planned), _shuffle_partitions(df)))
    return df.repartition(tasks, "topic", "partition").sortWithinPartitions(*SOURCE_COLUMNS), None


def _read_by_task(df: "DataFrame") -> list[tuple[TopicPartition, Range]]:
    """Return the Kafka range of each task; empty if rows pass a shuffle, a union or a coalesce.

    If the JVM does not expose the ranges, the only cost is a shuffle.
    """
    from py4j.protocol import Py4JError

    java: Any = df._jdf
    try:
        source = _source(java.queryExecution().toRdd())
        return list(_ranges(source.partitions())) if source is not None else []
    except (Py4JError, AttributeError, TypeError):
        return []


def _source(rdd: Any) -> Any:
    """Return the source's RDD if its partitions map one to one to those of ``rdd``; else None."""
    while rdd.dependencies().size() == 1:
        dependency = rdd.dependencies().apply(0)
        if dependency.getClass().getName() != _ONE_TO_ONE:
            return None
        rdd = dependency.rdd()
    return rdd if rdd.getClass().getName() == _SOURCE else None


def _ranges(partitions: Sequence[Any]) -> Iterator[tuple[TopicPartition, Range]]:
    for partition in partitions:
        at = partition.inputPartition().get().offsetRange()
        yield (at.topic(), at.partition()), Range(at.fromOffset(), at.untilOffset())


def _shuffle_partitions(df: "DataFrame") -> int:
    return int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
