"""Effects in a database that count every record of a Kafka topic once, despite crashes.

Theory of operation. Spark repeats a micro-batch after a crash, so the effect of a ``foreachBatch``
function would be repeated, too; Spark's own state (``dropDuplicates``) does not prevent that. Here
the effect and the progress commit together, in the database that the effect writes to::

    read the rows of the batch in bounded memory    before the database is locked
    one transaction of the ledger:
        drop rows below their partitions' marks     redelivery: replay, retry, new checkpoint
        claim the ids of the rest, drop known ids   duplicates that producers wrote to the log
        effect(connection, rows)                    once for each part of the remaining rows
        advance the marks

A mark is the next offset of a partition to process. The marks decide, not Spark's batch id: a
checkpoint that was restored to an earlier state, or lost its last entries in a power failure, plans
a batch with the same number but other offsets. Skipping that batch as "done" would lose records.
If Spark itself would skip records, the batch is rejected: see `spark_udfs.sink.gap_check`. Rows
without offsets (aggregates in update mode, sources other than Kafka) only have the batch id:
``progress="batches"`` uses it, and is exact only if the checkpoint is.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, cast

import pyarrow as pa

from pykafka_core.errors import ConfigurationError, ConsumerError, UsageError
from pykafka_core.idempotent import Ledger, StatementLedger, Transaction
from spark_udfs.sink.arguments import check_arguments, check_columns
from spark_udfs.sink.brokers import KafkaBrokers, TopicIds
from spark_udfs.sink.executors import (
    Counts,
    PartitionsLedger,
    Task,
    check_marks,
    check_pickled,
    run_tasks,
    without_redelivered,
)
from spark_udfs.sink.gap_check import Read, check_logs
from spark_udfs.sink.message_ids import ID_COLUMN, with_ids
from spark_udfs.sink.micro_batch_plan import QUERY_ID, Planned, planned, run_of
from spark_udfs.sink.processing import Effect, Work, check_source_columns
from spark_udfs.sink.query_run import QueryRun
from spark_udfs.sink.rows.collect import collected
from spark_udfs.sink.rows.micro_batch import Batch, Rows, in_log_order
from spark_udfs.sink.rows.whole_partitions import in_whole_partitions
from spark_udfs.sink.statistics import Statistics, lag_of, listener_of
from spark_udfs.sink.topic_partition import Range, TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.listener import StreamingQueryListener


BATCHES_REPORTED_MAX: Final = 100
"""Spark's progress report of a batch may arrive up to this many batches later."""


class IdempotentSink:
    """A ``foreachBatch`` function with an exactly-once effect for each record.

    Use ``df.writeStream.foreachBatch(sink.foreach_batch)``, or call it from another function, once
    for each batch and with all its rows. Between the source and the sink, records may be filtered,
    mapped, exploded and shuffled, but not held back for a later batch, as joins and windows do.
    Such records are rejected, because the mark of their partition would already be past them.
    If several streams of a query read the same partitions, they must read the same offsets, so load
    a topic once.

    Three mistakes are not detected and lose records: two concurrent queries with one group, or two
    sinks with one group in a query; ``brokers`` of another cluster than the source's that has a
    topic of the same name; and a query that computes the columns topic, partition or offset so that
    its rows match other planned rows.

    Args:
        ledger: A ledger in the database that the effect writes to.
        group: Name of the progress. A query and its successors with new checkpoints share a group;
            only one of them may run at a time.
        ids: The message id of a row, binary or string of 1 to 1,024 bytes: the name of a column, or
            a Column such as ``message_header("message-id")`` or ``fingerprint("order", "line")``.
            Of several rows with one id, also of one record (an explode), only the first is
            processed. None: duplicates in the log are processed twice.
        effect: Called with the ledger's connection and a `pyarrow.Table` of new rows, ordered by
            topic, partition and offset, with the columns of the DataFrame. It is called once per
            batch (or task), or once per part of about 64 MiB of larger batches; all parts commit
            together. It must neither commit nor roll back. If the ledger is a `StatementLedger`, a
            SQL statement such as ``INSERT … SELECT … FROM staged`` is also accepted: it runs once
            per part, with those rows in the temporary view ``staged``.
        brokers: Source of topic ids, so that a recreated topic starts at its first record:
            "host:port", librdkafka settings, `KafkaBrokers`, or a function from names to ids. A
            function does not return log end offsets, so truncated logs are not detected. Only for
            "offsets".
        quarantine: Called like ``effect``, in the same transaction, with the rows whose id is null,
            empty or too long. None: such a row stops the query.
        fail_on_data_loss: Raise an error if a batch starts after the group's marks. That happens
            with a new checkpoint and the connector's default ``startingOffsets`` (latest), or with
            an old checkpoint and another database. A new checkpoint from "earliest" neither loses
            nor repeats records. False: skip the records in between. Rows passed outside of a query
            start at the first row of each partition. A log that ends before its mark is always an
            error, because marks never decrease. Only for "offsets".
        progress: "offsets" needs the columns topic, partition and offset of the Kafka source.
            "batches" relies on the query's batch numbers instead.
        allow_new_query: Only for "batches". A new checkpoint makes a new query with new batch
            numbers, which say nothing about the progress of the group. False: reject it. True:
            process everything it reads, including records that the old query processed.
        effect_on: "driver": the rows of a batch are collected on the driver in bounded memory (rows
            above 64 MiB are written to ``$TMPDIR``) and committed in one transaction. "executors":
            each task commits its own Kafka partitions through its own connection. This needs a
            ledger on a server; ``ledger``, ``effect``, ``quarantine`` and ``brokers`` are pickled,
            including passwords.

    Raises:
        ConfigurationError: Invalid arguments; all of them are listed.
    """

    def __init__(
        self,
        ledger: Ledger,
        group: str,
        ids: "str | Column | None" = None,
        *,
        effect: Effect | str,
        brokers: str | Mapping[str, Any] | TopicIds | None = None,
        quarantine: Effect | str | None = None,
        fail_on_data_loss: bool = True,
        progress: Literal["offsets", "batches"] = "offsets",
        allow_new_query: bool = False,
        effect_on: Literal["driver", "executors"] = "driver",
    ) -> None:
        check_arguments(
            ledger=ledger,
            group=group,
            ids=ids,
            effect=effect,
            brokers=brokers,
            quarantine=quarantine,
            fail_on_data_loss=fail_on_data_loss,
            progress=progress,
            allow_new_query=allow_new_query,
            effect_on=effect_on,
        )
        self._ledger, self._group, self._ids = ledger, group, ids
        self._work = Work(
            effect=_effect_of(ledger, effect),
            id_column=ids if ids is None or isinstance(ids, str) else ID_COLUMN,
            quarantine=None if quarantine is None else _effect_of(ledger, quarantine),
        )
        self._brokers = None if brokers is None else _resolver(brokers)
        self._fail_on_data_loss = fail_on_data_loss
        self._allow_new_query = allow_new_query
        self._on_executors = effect_on == "executors"
        if self._on_executors:
            check_pickled(
                ledger=ledger,
                effect=self._work.effect,
                quarantine=self._work.quarantine,
                brokers=self._brokers,
            )
        self._run = QueryRun()
        self._query: str | None = None
        self._marks: dict[int, Mapping[TopicPartition, int]] = {}
        """Marks of recent batches: Spark reports on a batch while later batches run."""
        self._statistics = Statistics()
        self._lock = threading.Lock()

    def __getstate__(self) -> NoReturn:
        raise UsageError(
            "an IdempotentSink stays in the driver's process, which Spark Connect does not have: its foreachBatch "
            "runs on the server; start the query in a classic session"
        )

    def statistics(self) -> Statistics:
        """Return the totals of all committed batches."""
        return self._statistics

    def listener(
        self, report: Callable[[Statistics], object] | None = None
    ) -> "StreamingQueryListener":
        """Return a listener that updates the lag in `statistics` after each batch.

        ``spark.streams.addListener(sink.listener(print))``. Lag is the log end offset that Spark
        saw for the batch, minus the mark that the batch committed.

        Args:
            report: Called with the statistics after each batch, on one of Spark's threads.
        """

        def note(progress: Any) -> None:
            marks = self._marks.get(int(progress.batchId), {})
            self._statistics = replace(self._statistics, lag=lag_of(progress, marks))
            if report is not None:
                report(self._statistics)

        return listener_of(lambda query: query == self._query, note)

    def foreach_batch(self, df: "DataFrame", batch_id: int) -> None:
        """Process and commit one micro-batch.

        Raises:
            ConfigurationError: The columns do not fit the arguments; nothing was read.
            MessageIdError: A row has an unusable id.
            ConsumerError: The broker did not return the topic ids, or a topic was replaced while
                the batch was processed.
            UsageError: This run of the query has already committed the batch; or a query runs, and
                this is not the thread on which Spark calls the function.
            DataLossError: The batch starts after the marks, or the broker lost the end of a log, so
                that the log ends before its mark.
            SparkSetupError: This Spark version does not expose what it planned.
            LedgerError: A database error. If the connection was lost during the commit, the replay
                finds out whether the batch was committed.
            Exception: Any error of the effect or of Spark's tasks. After any error, nothing was
                processed; with effects on executors, this holds for the partitions of failed tasks.
        """
        with self._lock:
            if not self._run.goes_on(run_id := run_of(df), batch_id):
                self._run, self._query = QueryRun(run_id), _query_id(df)
            with (
                _naming_batch(self._group, batch_id, self._on_executors),
                _without_exit(run_id),
            ):
                self._process(df, batch_id)
            self._run.committed = batch_id

    def _process(self, df: "DataFrame", batch_id: int) -> None:
        begun = time.monotonic()
        if self._brokers is None:
            counts = self._by_batches(df, batch_id)
        elif self._on_executors:
            counts = self._by_tasks(df, batch_id, self._brokers)
        else:
            counts = self._by_offsets(df, batch_id, self._brokers)
        seconds = time.monotonic() - begun
        self._statistics = self._statistics.with_batch(**counts._asdict(), seconds=seconds)

    def _checked(self, df: "DataFrame") -> "DataFrame":
        """Check the columns; return the batch, with an id column if ids are computed."""
        frame = with_ids(df, self._ids)
        check_columns(frame.schema, self._work.id_column, places=self._brokers is not None)
        return frame

    def _by_offsets(self, df: "DataFrame", batch_id: int, brokers: TopicIds) -> Counts:
        plan = planned(df)
        if plan is None:
            return self._by_rows(df, brokers)
        frame = self._checked(df)
        logs = self._logs(plan, batch_id, brokers)
        check_logs(plan, logs)  # before the read: Spark searches minutes for missing records
        with _rows(frame, plan) as table:
            check_source_columns(table)
            batch = in_log_order(table)
            plan.check_rows(batch.runs)
            return self._commit(batch, plan, batch_id, logs, brokers)

    def _by_rows(self, df: "DataFrame", brokers: TopicIds) -> Counts:
        """Process rows outside of a query, like batch 0. The plan is derived from the rows."""
        frame = self._checked(df)
        # Before the rows are read; see `_ids_of_topics`.
        topics = [row.topic for row in frame.select("topic").distinct().collect()]
        self._ids_of_topics({topic for topic in topics if topic is not None}, brokers)
        with _rows(frame, None) as table:
            check_source_columns(table)
            batch = in_log_order(table)
            plan = Planned.of_rows(batch.runs)
            logs = self._logs(plan, 0, brokers)
            check_logs(plan, logs)
            return self._commit(batch, plan, None, logs, brokers)

    def _commit(
        self,
        batch: Batch,
        plan: Planned,
        batch_id: int | None,
        logs: Mapping[TopicPartition, Range],
        brokers: TopicIds,
    ) -> Counts:
        """Run the effect for the new rows and advance the marks, on the driver."""
        with self._checked_transaction(plan, batch_id, logs, brokers) as (transaction, read):
            fresh = batch.fresh({place: read.mark(place) for place in plan.ranges})
            done = self._work.process(transaction, fresh)
            transaction.advance(read.advanced(plan.ends))
        self._note_committed(batch_id, read, plan.ends)
        return Counts(batch.table.num_rows, len(fresh), *done)

    def _by_tasks(self, df: "DataFrame", batch_id: int, brokers: TopicIds) -> Counts:
        plan = planned(df)
        if plan is None:
            raise UsageError('effect_on="executors" works only inside a streaming query')
        frame = self._checked(df)
        logs = self._logs(plan, batch_id, brokers)
        check_logs(plan, logs)
        with self._checked_transaction(plan, batch_id, logs, brokers) as (transaction, read):
            # Skip permitted gaps here: the tasks require that no mark is before the batch.
            begun = read.advanced(plan.starts)
            transaction.advance(begun)
        task = Task(
            ledger=cast("PartitionsLedger", self._ledger),
            group=self._group,
            plan=plan,
            ids=read.ids,
            started=begun,
            brokers=brokers,
            work=self._work,
        )
        frame, records = without_redelivered(frame, read.redelivered(plan))
        counts, places = run_tasks(frame, task)
        done = {read.key(place): plan.ends[place] for place in places}
        with self._ledger.transaction(self._group) as transaction:
            if self._ids is not None:
                transaction.claim([])  # deletes expired ids, which tasks do not do
            read = replace(read, marks=transaction.marks())
            check_marks(self._ledger, read.marks, begun | done)
            transaction.advance(read.advanced(plan.ends))
        self._note_committed(batch_id, read, plan.ends)
        return counts._replace(records=records() or counts.records)

    @contextmanager
    def _checked_transaction(
        self,
        plan: Planned,
        batch_id: int | None,
        logs: Mapping[TopicPartition, Range],
        brokers: TopicIds,
    ) -> Iterator[tuple[Transaction, Read]]:
        """Open a transaction whose marks fit the plan and the logs."""
        ids = self._ids_of_topics(plan.topics, brokers)
        with self._ledger.transaction(self._group) as transaction:
            read = Read(
                group=self._group,
                ledger=str(self._ledger),
                marks=transaction.marks(),
                ids=ids,
                logs={} if batch_id else logs,
            )
            if short := read.beyond(logs):
                # Another driver may have advanced the marks after the offsets were read. Read them
                # again: the group is locked now.
                read.check_ends(cast("KafkaBrokers", brokers).log_ranges(short))
            if batch_id is not None:
                read.check_topic_ids(plan, batch_id)
            if self._fail_on_data_loss:
                read.check_gaps(plan, batch_id)
            yield transaction, read

    def _by_batches(self, df: "DataFrame", batch_id: int) -> Counts:
        query_id = _query_id(df)
        if query_id is None:
            raise UsageError('progress="batches" works only inside a streaming query')
        with _rows(self._checked(df), None) as table:
            with self._ledger.transaction(self._group) as transaction:
                self._check_query(query_id, transaction.batches())
                is_new = transaction.begin_batch(query_id, batch_id)
                rows = Rows.all_of(table if is_new else table.slice(0, 0))
                done = self._work.process(transaction, rows)
            return Counts(table.num_rows, len(rows), *done)

    def _note_committed(
        self, batch_id: int | None, read: Read, ends: Mapping[TopicPartition, int]
    ) -> None:
        """Save the marks for the next batch and for the listener."""
        marks = {place: max(end, read.mark(place)) for place, end in ends.items()}
        self._run.marks |= marks
        if batch_id is not None:
            kept = list(self._marks.items())[1 - BATCHES_REPORTED_MAX :]
            self._marks = {**dict(kept), batch_id: marks}

    def _logs(
        self, plan: Planned, batch_id: int, brokers: TopicIds
    ) -> Mapping[TopicPartition, Range]:
        """Return log ranges of partitions that are new in this run or whose batch ends early.

        New means that this is batch 0, or that the run has not committed a batch of the topic. A
        batch ends early if it ends before the mark: it is either read again, or the log was
        truncated. Empty if ``brokers`` is only a function for ids. The ids of new topics are
        requested first: if they are equal afterwards, logs, rows and marks are of the same topic.
        """
        marks = self._run.marks
        # Topics without a committed batch; a failed attempt does not count as a check.
        begun = plan.topics if batch_id == 0 else plan.topics - {topic for topic, _ in marks}
        self._ids_of_topics(begun - self._run.topic_ids.keys(), brokers)
        wanted = [
            place
            for place, at in plan.ranges.items()
            if place[0] in begun or at.end < marks.get(place, 0)
        ]
        ask = getattr(brokers, "log_ranges", None)
        return ask(wanted) if ask and wanted else {}

    def _check_query(self, query_id: str, batches: Mapping[str, int]) -> None:
        if batches and query_id not in batches and not self._allow_new_query:
            raise ConfigurationError(
                [
                    f"the batches of group {self._group!r} are those of query {', '.join(sorted(batches))}, this is "
                    f"query {query_id}: its checkpoint is another one, and its rows would be processed again. Use "
                    "the former checkpoint or a new group; allow_new_query=True continues"
                ]
            )

    def _ids_of_topics(self, topics: Collection[str], brokers: TopicIds) -> dict[str, bytes]:
        """Return the ids of the batch's topics; called before and after the rows are read.

        If a topic is replaced after its rows were read, those rows would advance the marks of the
        new topic. Therefore a topic id that changes within a run is an error.
        """
        found = dict(brokers(topics)) if topics else {}
        unknown = sorted(topic for topic in topics if not _is_topic_id(found.get(topic)))
        if unknown:
            raise ConsumerError(
                f"brokers returned no id of {', '.join(unknown)}: 16 bytes are needed"
            )
        known = self._run.topic_ids
        replaced = sorted(t for t, value in found.items() if known.get(t, value) != value)
        if replaced:
            raise ConsumerError(
                f"{', '.join(replaced)}: deleted and recreated while the query ran; "
                "start it again, with a new checkpoint and startingOffsets=earliest"
            )
        known |= found
        return found


def _is_topic_id(value: object) -> bool:
    return isinstance(value, bytes) and len(value) == 16


def _resolver(brokers: str | Mapping[str, Any] | TopicIds) -> TopicIds:
    return KafkaBrokers(brokers) if isinstance(brokers, str | Mapping) else brokers


def _effect_of(ledger: Ledger, effect: Effect | str) -> Effect:
    return cast("StatementLedger", ledger).statement(effect) if isinstance(effect, str) else effect


def _rows(df: "DataFrame", plan: Planned | None) -> AbstractContextManager[pa.Table]:
    """Return the rows of the batch, collected on the driver."""
    if plan is None:
        return collected(df, tasks=1, in_order=lambda frame: frame)
    return collected(df, len(plan.ranges), lambda frame: in_whole_partitions(frame, plan.ranges)[0])


def _query_id(df: "DataFrame") -> str | None:
    query_id = df.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    return None if query_id is None else str(query_id)


@contextmanager
def _naming_batch(group: str, batch_id: int, on_executors: bool) -> Iterator[None]:
    """Add the state of the batch to each error: Spark shows only the traceback."""
    try:
        yield
    except Exception as error:
        left = (
            "what some of its tasks committed stays"
            if on_executors
            else "the ledger is as before, unless the commit itself failed"
        )
        error.add_note(
            f"Batch {batch_id} was not processed for group {group!r}: {left}. Fix the cause and start the query "
            "again: the batch's planned offsets are then processed once."
        )
        raise


@contextmanager
def _without_exit(run_id: str | None) -> Iterator[None]:
    """Convert exceptions that would end the process, such as sys.exit() in an effect.

    On a Spark thread they would end nothing, and the query would wait forever; the conversion stops
    the query. Outside of a query, on the user's thread, they are raised unchanged.
    """
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        if run_id is None:
            raise
        raise UsageError(
            f"{type(error).__name__} was raised while a batch was processed: in a query it cannot end the process; "
            "raise an Exception to stop the query"
        ) from error
