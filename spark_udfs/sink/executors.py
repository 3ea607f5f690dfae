"""Effects where the rows are: each task commits its own Kafka partitions.

Theory of operation. A mark is of one partition, so it is exact by itself: the rows of a partition, their ids and its
mark need one transaction, and partitions need none together::

    driver      check what Spark planned against the marks, and advance those that are before the batch to its start;
                drop the rows below the marks in the JVM
    each task   read all its rows, then ask for the topics' ids     before anything is locked
                one transaction of its partitions:
                    drop the rows below the marks as they are now, claim the ids of the rest
                    effect(connection, rows)
                    advance the marks to the end of the plan
    driver      see that no mark went back, and advance those of the partitions without rows

A task that runs twice, after a failure or by speculation, waits for its other run, and then finds its rows below the
mark. So does one of a driver that died, whatever is left of its batch: which of two drivers' tasks commits a partition
does not matter. Where a mark is before what the driver saw, the database was put back meanwhile: rows were dropped, or
committed, that it does not have. Tasks and driver refuse to go on, and the batch is repeated.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import pyarrow as pa

from pykafka_core.errors import ConfigurationError, ConsumerError, LedgerError
from pykafka_core.idempotent import Ledger, PartitionKey, Transaction
from spark_udfs.sink.brokers import TopicIds
from spark_udfs.sink.places import Place, name
from spark_udfs.sink.planned import Planned
from spark_udfs.sink.processing import Work, check_places
from spark_udfs.sink.rows.redelivery import Run, in_log_order
from spark_udfs.sink.rows.spool import spooled
from spark_udfs.sink.rows.whole_partitions import in_whole_partitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class PartitionsLedger(Ledger, Protocol):
    """A ledger on a server; it can be pickled."""

    def partitions_transaction(
        self, group: str, partitions: Sequence[PartitionKey]
    ) -> AbstractContextManager[Transaction]:
        """See `pykafka_core.idempotent.PostgresLedger`."""


class Counts(NamedTuple):
    """Rows of a batch: all, those that were not redelivered, and what became of these."""

    records: int = 0
    fresh: int = 0
    processed: int = 0
    quarantined: int = 0


class Committed(NamedTuple):
    """What the tasks of a batch committed; ``places`` are those of their rows."""

    counts: Counts
    places: Set[Place]


_REPORT: Final = pa.schema(
    [
        *((name, pa.int64()) for name in Counts._fields),
        ("topic", pa.string()),
        ("partition", pa.int32()),
    ]
)
"""A row for each partition that a task committed, or one without; the first has the counts."""

_REPORT_DDL: Final = ", ".join(
    (*(f"{name} bigint" for name in Counts._fields), "topic string", "partition int")
)


@dataclass(frozen=True, kw_only=True)
class Task:
    """What each task does with its rows.

    Attributes:
        ids: The topics' ids, which the rows' marks have.
        begun: Where the driver left the marks of all planned partitions; rows below them may have been dropped.
        places: Of which Kafka partition each task is; None if that is not known.
    """

    ledger: PartitionsLedger
    group: str
    plan: Planned
    ids: Mapping[str, bytes]
    begun: Mapping[PartitionKey, int]
    brokers: TopicIds
    work: Work
    places: Sequence[Place] | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Commit the rows; report what `committed_of` reads."""
        with spooled(batches) as rows:
            done = self._committed(rows) if rows.num_rows else Committed(Counts(), set())
        yield _report(done)

    def _committed(self, rows: pa.Table) -> Committed:
        check_places(rows)
        batch = in_log_order(rows)
        self.plan.check_rows(batch.runs)
        self._check_mine(batch.runs)
        self._check_lives({run.place[0] for run in batch.runs})
        keys = {run.place: PartitionKey(self.ids[run.place[0]], *run.place) for run in batch.runs}
        try:
            with self.ledger.partitions_transaction(self.group, list(keys.values())) as transaction:
                marks = transaction.marks()
                check_marks(self.ledger, marks, {key: self.begun[key] for key in keys.values()})
                left = batch.fresh({place: marks[key] for place, key in keys.items()})
                done = self.work.process(transaction, left)
                ends = self.plan.ends
                transaction.advance(
                    {key: max(ends[place], marks[key]) for place, key in keys.items()}
                )
        finally:
            self.ledger.close()
        return Committed(Counts(rows.num_rows, len(left), *done), keys.keys())

    def _check_mine(self, batch: Sequence[Run]) -> None:
        """Another task would take the rest of a partition for redelivered."""
        from pyspark import TaskContext

        context = TaskContext.get()
        if self.places is None or context is None:
            return
        mine = self.places[context.partitionId()]
        for run in batch:
            if run.place != mine:
                raise ConsumerError(
                    f"the task of {name(mine)} has rows of {name(run.place)}: the query changes topic or partition; "
                    "keep them as the source gives them"
                )

    def _check_lives(self, topics: set[str]) -> None:
        """The rows are of the topics that the driver knew."""
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
    """No mark is before what it is known to have been. Else records would be passed over.

    Raises:
        LedgerError: One is.
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
    """What the tasks of a batch report, together."""
    counts = Counts(*(sum(reports[one].to_pylist()) for one in Counts._fields))
    places = zip(reports["topic"].to_pylist(), reports["partition"].to_pylist(), strict=True)
    return Committed(counts, {place for place in places if place[0] is not None})


def check_pickled(**parts: object) -> None:
    """All of these can go to the executors.

    Raises:
        ConfigurationError: Some cannot; all of them are named.
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
    df: "DataFrame", marks: Mapping[Place, int]
) -> "tuple[DataFrame, Callable[[], int]]":
    """The rows that are not below these marks, so that the others need not go to Python.

    Returns:
        The frame, and what tells after its job how many rows it had before; 0 where nothing was dropped.
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
    # Rows without a place are left to the tasks, which refuse them.
    kept = rows.where((F.col("offset") >= mark) | F.col("offset").isNull())

    def records() -> int:
        try:
            return int(counted.get["records"])
        except Py4JJavaError:
            # Where nothing is left for a shuffle, adaptive execution replaces the plan by an empty one, and the
            # observation goes with it (4.2, 4.3).
            return df.count()

    return kept, records


def run_tasks(df: "DataFrame", task: Task) -> Committed:
    """Have the executors commit a batch, each its own Kafka partitions."""
    frame, places = in_whole_partitions(df, task.plan)
    reports = frame.mapInArrow(replace(task, places=places).__call__, _REPORT_DDL).toArrow()
    return committed_of(reports)
