"""The offset ranges that Spark planned for a micro-batch, by partition of its Kafka sources.

A ledger has one mark for each partition, and rows do not contain the stream they were read by. So
streams of a query that read the same partitions must read the same offsets; `agreed` checks that
and is the only way to combine streams into one `Planned`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pykafka_core.errors import ConfigurationError, UsageError
from spark_udfs.environment import SparkSetupError
from spark_udfs.sink.rows.micro_batch import PartitionRows
from spark_udfs.sink.topic_partition import Range, TopicPartition, name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUERY_ID: Final = "sql.streaming.queryId"
_KAFKA_STREAM: Final = "org.apache.spark.sql.kafka010.KafkaMicroBatchStream"
_GROUP: Final = "kafka.group.id"


StreamPlan: TypeAlias = Mapping[TopicPartition, Range]
"""The plan of one stream. A newly discovered partition starts at 0, whatever its first offset."""


@dataclass(frozen=True)
class Planned:
    """Offsets of a micro-batch by partition; start and end are equal if nothing is left to read."""

    ranges: StreamPlan = field(default_factory=dict)

    @property
    def topics(self) -> set[str]:
        """Return the names of all planned topics."""
        return {topic for topic, _ in self.ranges}

    @property
    def starts(self) -> dict[TopicPartition, int]:
        """Return the first offset of each partition's range."""
        return {place: at.start for place, at in self.ranges.items()}

    @property
    def ends(self) -> dict[TopicPartition, int]:
        """Return the exclusive end of each partition's range, where its next batch starts."""
        return {place: at.end for place, at in self.ranges.items()}

    @classmethod
    def of_rows(cls, runs: Sequence[PartitionRows]) -> "Planned":
        """Return the plan of rows outside of a query: all from a partition's first to last row."""
        return cls({run.place: Range(run.first, run.last + 1) for run in runs})

    def check_rows(self, runs: Sequence[PartitionRows]) -> None:
        """Check that the rows belong to this batch.

        Args:
            runs: The partitions of the rows, with their first and last offsets.

        Raises:
            ConfigurationError: Some rows were held back by an operator or come from another source,
                so the mark of their partition does not apply to them.
        """
        for run in runs:
            planned = self.ranges.get(run.place)
            if planned is None:
                raise ConfigurationError(
                    [
                        f"{name(run.place)}: the batch has rows of it, and no Kafka source of the query reads it: "
                        "only records of Spark's Kafka source can be counted by offsets"
                    ]
                )
            if not planned.start <= run.first <= run.last < planned.end:
                raise ConfigurationError(
                    [
                        f"{name(run.place)}: the batch has rows of the offsets {run.first} to {run.last}, Spark "
                        f"planned {planned}: an operator of the query changes offsets or holds rows back, as joins of "
                        'streams and windows do; move it after the effect, or use progress="batches". Earlier batches '
                        "have counted rows that were held back as processed: a new group with a new checkpoint and "
                        "startingOffsets=earliest processes them"
                    ]
                )


def agreed(streams: Sequence[StreamPlan]) -> Planned:
    """Return the combined plan of a query's ``streams``.

    Raises:
        ConfigurationError: Two streams read the same partition but different offsets of its topic;
            one mark cannot store the progress of both.
    """
    for one, other in combinations(streams, 2):
        for topic in {topic for topic, _ in one}:
            ours, theirs = _of_topic(one, topic), _of_topic(other, topic)
            if ours.keys() & theirs.keys() and ours != theirs:
                raise ConfigurationError([_disagreement(theirs, ours)])
    return Planned({place: at for stream in streams for place, at in stream.items()})


def _of_topic(stream: StreamPlan, topic: str) -> StreamPlan:
    return {place: at for place, at in stream.items() if place[0] == topic}


def _disagreement(ours: StreamPlan, theirs: StreamPlan) -> str:
    place = min(
        place for place in ours.keys() | theirs.keys() if ours.get(place) != theirs.get(place)
    )
    return (
        f"two streams of the query read {name(place)}, one the offsets {theirs.get(place, 'none')}, the other "
        f"{ours.get(place, 'none')}: rows do not say which stream they are of. Load the topic once, with one load(), "
        "and derive both from that DataFrame; start it with a new checkpoint and startingOffsets=earliest"
    )


def planned(df: "DataFrame") -> Planned | None:
    """Return Spark's plan for the micro-batch ``df``; None outside of a streaming query.

    Raises:
        ConfigurationError: The query has no source that is Spark's Kafka source, or one with a
            fixed group id; or see `agreed`.
        UsageError: A query runs, and this is not its thread, so it is unknown whether ``df`` is one
            of its batches.
        SparkSetupError: This Spark version does not expose the plan.
    """
    session: Any = df.sparkSession
    with _naming_spark_version(session):
        query_id = session.sparkContext.getLocalProperty(QUERY_ID)
        if query_id is None and _active_queries(session).isEmpty():
            return None
        if query_id is None:
            raise UsageError(
                "a streaming query runs, and this is not the thread that Spark calls foreachBatch on. For a batch of "
                "the query, call the sink on that thread; to give the sink rows by hand, stop the application's "
                "queries first, as the rows do not say whether they are of one"
            )
        execution = _execution(session, query_id)
        sources = [execution.sources().apply(at) for at in range(execution.sources().size())]
        classes = [source.getClass().getName() for source in sources]
        streams = list(_stream_plans(execution, sources, classes))
        fixed = [
            group
            for source, class_name in zip(sources, classes, strict=True)
            if class_name == _KAFKA_STREAM and (group := _fixed_group_of(source)) is not None
        ]
    if _KAFKA_STREAM not in classes:
        raise ConfigurationError(
            [
                f"no source of the query is {_KAFKA_STREAM}, only {', '.join(classes)} (Spark {session.version}): "
                'counting by offsets needs Spark\'s Kafka source; use progress="batches" for others'
            ]
        )
    if fixed:
        raise ConfigurationError(
            [
                f"a source has {_GROUP}={fixed[0]!r}: executors keep fetched records by group id for minutes, and "
                "would use those of an earlier query, even of a topic that was deleted and recreated since. Leave it "
                "out, or give groupIdPrefix"
            ]
        )
    return agreed(streams)


def run_of(df: "DataFrame") -> str | None:
    """Return the id of the query run of ``df``, which changes at each start; None without a query.

    Raises:
        SparkSetupError: This Spark version does not expose the id.
    """
    session: Any = df.sparkSession
    with _naming_spark_version(session):
        query_id = session.sparkContext.getLocalProperty(QUERY_ID)
        return None if query_id is None else str(_execution(session, query_id).runId().toString())


@contextmanager
def _naming_spark_version(session: Any) -> Iterator[None]:
    """Convert errors of access to Spark's internals to one that names Spark's version."""
    from py4j.protocol import Py4JError

    try:
        yield
    except (Py4JError, AttributeError, TypeError, ValueError) as error:
        raise SparkSetupError(
            f"Spark {session.version} does not report the planned offsets of a batch, which the sink needs: {error}. "
            "Use a PySpark that pykafka_core[spark] was tested with (4.2, 4.3)"
        ) from error


def _active_queries(session: Any) -> Any:
    """Return the active queries of all sessions of the application, by id."""
    return session._jsparkSession.sharedState().activeStreamingQueries()


def _execution(session: Any, query_id: str) -> Any:
    """Return the query's MicroBatchExecution."""
    execution = _active_queries(session).get(session._jvm.java.util.UUID.fromString(query_id))
    if execution is None:
        raise ValueError(f"there is no query {query_id}")
    return execution


def _fixed_group_of(stream: Any) -> str | None:
    """Return the group id that the query's options set; None if each start generates one."""
    options = stream.getClass().getDeclaredField("options")
    options.setAccessible(True)
    group = options.get(stream).get(_GROUP)
    return None if group is None else str(group)


def _stream_plans(
    execution: Any, sources: Sequence[Any], classes: Sequence[str]
) -> Iterator[StreamPlan]:
    begins, ends = execution.getStartOffsetsOfLatestBatch(), execution.availableOffsets()
    for source, class_name in zip(sources, classes, strict=True):
        end = ends.get(source)
        if class_name != _KAFKA_STREAM or end.isEmpty():
            continue
        begin = begins.get(source)
        begun = _offsets((source.initialOffset() if begin.isEmpty() else begin.get()).json())
        # A deleted topic has a start and no end.
        ended = _offsets(end.get().json())
        yield {place: Range(begun.get(place, 0), offset) for place, offset in ended.items()}


def _offsets(text: str) -> dict[TopicPartition, int]:
    return {
        (topic, int(partition)): offset
        for topic, partitions in json.loads(text).items()
        for partition, offset in partitions.items()
    }
