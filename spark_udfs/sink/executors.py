"""Effects on the executors: each task commits its own Kafka partitions.

Theory of operation. A mark belongs to one partition, so it is exact by itself: the rows of a
partition, their ids and its mark need one transaction; different partitions need no common one::

    driver      check Spark's plan against the marks, and advance marks before the batch to its
                start; drop rows below the marks in the JVM
    each task   read all its rows, then request the topic ids       before anything is locked
                one transaction for its partitions:
                    drop rows below the current marks, claim the ids of the rest
                    effect(connection, rows)
                    advance the marks to the end of the plan
    driver      check that no mark decreased, and advance the marks of partitions without rows

A second run of a task, after a failure or by speculation, waits for the transaction of the first
and then finds its rows below the mark. This also holds for tasks of a driver that died: it does not
matter which driver's task commits a partition. If a mark is lower than the driver saw, the database
was restored in the meantime and misses rows that were dropped as redelivered, or committed. Tasks
and driver then fail, and the batch is repeated.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import pyarrow as pa

from pykafka_core.errors import ConfigurationError, ConsumerError, LedgerError
from pykafka_core.idempotent import Ledger, PartitionKey, Transaction
from spark_udfs.sink.brokers import TopicIds
from spark_udfs.sink.micro_batch_plan import Planned
from spark_udfs.sink.processing import Work, check_source_columns
from spark_udfs.sink.rows.micro_batch import PartitionRows, in_log_order
from spark_udfs.sink.rows.spill import spooled
from spark_udfs.sink.rows.whole_partitions import in_whole_partitions
from spark_udfs.sink.topic_partition import TopicPartition, name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class PartitionsLedger(Ledger, Protocol):
    """A ledger on a server, which can be pickled."""

    def partitions_transaction(
        self, group: str, partitions: Sequence[PartitionKey]
    ) -> AbstractContextManager[Transaction]:
        """Open a transaction of these partitions; see `pykafka_core.idempotent.PostgresLedger`."""


class Counts(NamedTuple):
    """Row counts of a batch: all, not redelivered, and of the latter processed and quarantined."""

    records: int = 0
    fresh: int = 0
    processed: int = 0
    quarantined: int = 0


class Committed(NamedTuple):
    """The result of a batch's tasks; ``places`` are the partitions of their rows."""

    counts: Counts
    places: Set[TopicPartition]


_REPORT: Final = pa.schema(
    [
        *((count, pa.int64()) for count in Counts._fields),
        ("topic", pa.string()),
        ("partition", pa.int32()),
    ]
)
"""One row per committed partition, or one row without; the first row holds the counts."""

_REPORT_DDL: Final = ", ".join(
    (*(f"{count} bigint" for count in Counts._fields), "topic string", "partition int")
)


@dataclass(frozen=True, kw_only=True)
class Task:
    """The work of each task, called with the task's rows.

    Attributes:
        ids: The topic ids that the marks of the rows have.
        started: Marks of all planned partitions after the driver advanced them. Rows below them may
            have been dropped.
        places: The Kafka partition of each task; None if unknown.
    """

    ledger: PartitionsLedger
    group: str
    plan: Planned
    ids: Mapping[str, bytes]
    started: Mapping[PartitionKey, int]
    brokers: TopicIds
    work: Work
    places: Sequence[TopicPartition] | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Commit the rows; yield a report for `committed_of`."""
        with spooled(batches) as rows:
            done = self._committed(rows) if rows.num_rows else Committed(Counts(), set())
        yield _report(done)

    def _committed(self, rows: pa.Table) -> Committed:
        check_source_columns(rows)
        batch = in_log_order(rows)
        self.plan.check_rows(batch.runs)
        self._check_mine(batch.runs)
        self._check_topic_ids({run.place[0] for run in batch.runs})
        keys = {run.place: PartitionKey(self.ids[run.place[0]], *run.place) for run in batch.runs}
        try:
            with self.ledger.partitions_transaction(self.group, list(keys.values())) as transaction:
                marks = transaction.marks()
                check_marks(self.ledger, marks, {key: self.started[key] for key in keys.values()})
                left = batch.fresh({place: marks[key] for place, key in keys.items()})
                done = self.work.process(transaction, left)
                ends = self.plan.ends
                transaction.advance(
                    {key: max(ends[place], marks[key]) for place, key in keys.items()}
                )
        finally:
            self.ledger.close()
        return Committed(Counts(rows.num_rows, len(left), *done), keys.keys())

    def _check_mine(self, runs: Sequence[PartitionRows]) -> None:
        """Check that rows are of the task's partition; other tasks would drop the rest of it."""
        from pyspark import TaskContext

        context = TaskContext.get()
        if self.places is None or context is None:
            return
        mine = self.places[context.partitionId()]
        for run in runs:
            if run.place != mine:
                raise ConsumerError(
                    f"the task of {name(mine)} has rows of {name(run.place)}: the query changes topic or partition; "
                    "keep them as the source gives them"
                )

    def _check_topic_ids(self, topics: set[str]) -> None:
        """Check that the topics have the ids that the driver used."""
        found = self.brokers(topics)
        replaced = sorted(topic for topic in topics if found.get(topic) != self.ids[topic])
        if replaced:
            raise ConsumerError(
                f"{', '.join(replaced)}: deleted and recreated while the query ran; start it again, with a new "
                "checkpoint and startingOffsets=earliest"
            )


def check_marks(
    ledger: Ledger, marks: Mapping[PartitionKey, int], known: Mapping[PartitionKey, int]
) -> None:
    """Check that no mark is lower than a known earlier value, which would skip records.

    Raises:
        LedgerError: A mark is lower.
    """
    for key, begin in known.items():
        if marks.get(key, 0) < begin:
            raise LedgerError(
                f"{ledger}: the mark of {name((key.topic, key.partition))} went back to {marks.get(key, 0)}, and the "
                f"batch begins at {begin}: the database was put back while it ran; start the query again"
            )


def _report(done: Committed) -> pa.RecordBatch:
    places: list[tuple[str | None, int | None]] = [*sorted(done.places)] or [(None, None)]
    none = [0] * (len(places) - 1)
    topics, partitions = zip(*places, strict=True)
    return pa.record_batch(
        [*([count, *none] for count in done.counts), topics, partitions], schema=_REPORT
    )


def committed_of(reports: pa.Table) -> Committed:
    """Return the sum of the reports of a batch's tasks."""
    counts = Counts(*(sum(reports[one].to_pylist()) for one in Counts._fields))
    places = zip(reports["topic"].to_pylist(), reports["partition"].to_pylist(), strict=True)
    return Committed(counts, {place for place in places if place[0] is not None})


def check_pickled(**parts: object) -> None:
    """Check that all of these can be sent to the executors.

    Raises:
        ConfigurationError: Some cannot be pickled; all of them are named.
    """
    from pyspark import cloudpickle

    problems = []
    for what, part in parts.items():
        try:
            cloudpickle.dumps(part)  # type: ignore[no-untyped-call]
        except Exception as error:
            problems.append(
                f'effect_on="executors" sends {what} to the executors, and it cannot be pickled: {error}. Make '
                "connections, files and locks inside of it"
            )
    if problems:
        raise ConfigurationError(problems)


def without_redelivered(
    df: "DataFrame", marks: Mapping[TopicPartition, int]
) -> "tuple[DataFrame, Callable[[], int]]":
    """Drop rows below these marks in the JVM, so that they are not sent to Python.

    Returns:
        The frame, and a function that returns, after its job, the number of rows before the filter;
        0 if there was no filter.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    if not marks:
        return df, lambda: 0
    counted = Observation()
    known = F.create_map(
        *(F.lit(one) for place, mark in marks.items() for one in (name(place), mark))
    )
    place = F.concat_ws("-", "topic", F.col("partition").cast("string"))
    mark = F.coalesce(F.try_element_at(known, place), F.lit(0))
    rows = df.observe(counted, F.count(F.lit(1)).alias("records"))
    # Rows without an offset are kept: the tasks reject them.
    kept = rows.where((F.col("offset") >= mark) | F.col("offset").isNull())

    def records() -> int:
        try:
            return int(counted.get["records"])
        except Py4JJavaError:
            # If a shuffle has no rows, adaptive execution replaces the plan by an empty one, which
            # loses the observation (4.2, 4.3).
            return df.count()

    return kept, records


def run_tasks(df: "DataFrame", task: Task) -> Committed:
    """Let the executors commit a batch, each task its own Kafka partitions."""
    frame, places = in_whole_partitions(df, task.plan.ranges)
    reports = frame.mapInArrow(replace(task, places=places).__call__, _REPORT_DDL).toArrow()
    return committed_of(reports)
