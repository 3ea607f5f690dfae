"""Effects in a database that count every record of a Kafka topic once, whatever crashes.

Theory of operation. Spark repeats a micro-batch after a crash, so the effect of a ``foreachBatch``
function happens again; Spark's own state (``dropDuplicates``) cannot know of it. Here the effect and
the progress commit together, in the database that the effect goes to::

    rows of the batch, in bounded memory            read before the database is locked
    one transaction of the ledger:
        drop the rows below the partitions' marks   redelivery: batch replay, task retry, a new checkpoint
        claim the ids of the rest, drop old ones    duplicates that producers wrote to the log
        effect(connection, rows)                    once for each part of what is left
        advance the marks

The marks decide, not Spark's batch id. A checkpoint that was put back to an earlier state, or lost its
last entries in a power cut, plans a batch of the same number with other offsets: to skip that as "done"
would lose records. Where Spark itself would pass over records, the batch is refused: see `spark_udfs.sink.starts`.
Where rows have no offsets (aggregates in update mode, sources other than Kafka) the batch id is all there is:
``progress="batches"``, exact as long as the checkpoint is.
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
from spark_udfs.sink.message_ids import ID_COLUMN, with_ids
from spark_udfs.sink.places import Place, Range
from spark_udfs.sink.planned import QUERY_ID, Planned, planned, run_of
from spark_udfs.sink.processing import Effect, Work, check_places
from spark_udfs.sink.rows.collected import collected
from spark_udfs.sink.rows.redelivery import Batch, Rows, in_log_order
from spark_udfs.sink.rows.whole_partitions import in_whole_partitions
from spark_udfs.sink.runs import Run
from spark_udfs.sink.starts import Read, check_logs
from spark_udfs.sink.statistics import Statistics, lag_of, listener_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.listener import StreamingQueryListener


BATCHES_REPORTED_MAX: Final = 100
"""For so many batches Spark's report may come later than the batch."""


class IdempotentSink:
    """The function of a ``foreachBatch`` whose effect is done exactly once for each record.

    ``df.writeStream.foreachBatch(sink.foreach_batch)``, or called by another function once for each batch, with all
    of it. Between the source and here records may be
    filtered, mapped, exploded and shuffled, but not held back for a later batch (as joins and windows
    do): a partition's later records would have moved its mark past them, so they are refused. Streams of one query
    that read the same partitions must read the same offsets, so load a topic once.

    Nothing notices, and records are lost, where two queries run at once under one group, where ``brokers`` is another
    cluster than the source's with a topic of the same name, and where the query computes the columns topic, partition
    or offset and its rows pass for others that it planned.

    Args:
        ledger: Of the database that the effect writes to.
        group: Whose progress it is. One query, and its successors with new checkpoints, have one group, one at a time.
        ids: The message id of a row, binary or string of 1 to 1,024 bytes: the name of a column, or a
            Column such as ``message_header("message-id")`` or ``fingerprint("order", "line")``. None:
            what stands twice in the log counts twice.
        effect: Called with the ledger's connection and a `pyarrow.Table` of new rows, in the order of topic, partition
            and offset, with the columns of the DataFrame: once for a batch (or task), or once for each part of about
            64 MiB where there is more; all parts commit together. It neither commits nor rolls back. If the ledger is
            a `StatementLedger`, also one statement of SQL, such as ``INSERT … SELECT … FROM staged``: it runs as often,
            each time with those rows in the temporary table ``staged``.
        brokers: Where to ask for topic ids, so that a topic deleted and recreated starts at its beginning: "host:port",
            settings of librdkafka, `KafkaBrokers`, or a function from names to ids, which does not tell where logs
            end: that one was cut is not noticed then. Only for "offsets".
        quarantine: Called as ``effect`` is, in the same transaction, with the rows whose id is null, empty or too long.
            None: such a row stops the query.
        fail_on_data_loss: Raise when a batch begins after the group's marks: with a new checkpoint under the
            connector's default ``startingOffsets`` (latest), or with an old one and another database. With a new
            checkpoint from "earliest" nothing is lost, and nothing done twice. False: go on without what is between.
            Rows given by hand, outside of a query, begin at the first row of each partition. A log that ends before
            its mark is refused either way: marks never go back. Only for "offsets".
        progress: "offsets" needs the columns topic, partition and offset of the Kafka source. "batches"
            trusts the query's batch numbers instead.
        allow_new_query: Only for "batches". A new checkpoint makes a new query, whose numbers say nothing of what the
            group has processed: it is refused. True: process all that it reads, again where the old one did.
        effect_on: "driver": the rows of a batch are brought there, in bounded memory (``$TMPDIR`` has what is over
            64 MiB), and there is one transaction for it. "executors": each task commits its own Kafka partitions, with
            a connection of its own. Needs a ledger on a server; it, ``effect``, ``quarantine`` and ``brokers`` are
            pickled, with their passwords.

    Raises:
        ConfigurationError: Arguments that cannot be used; all of them are listed.
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
        self._run = Run()
        self._query: str | None = None
        self._marks: dict[int, Mapping[Place, int]] = {}
        """Of the last batches: Spark reports on a batch while the next ones run."""
        self._statistics = Statistics()
        self._lock = threading.Lock()

    def __getstate__(self) -> NoReturn:
        raise UsageError(
            "an IdempotentSink stays in the driver's process, which Spark Connect does not have: its foreachBatch "
            "runs on the server; start the query in a classic session"
        )

    def statistics(self) -> Statistics:
        """What was committed so far."""
        return self._statistics

    def listener(
        self, report: Callable[[Statistics], object] | None = None
    ) -> "StreamingQueryListener":
        """What notes the lag of the query's partitions in `statistics` after each batch.

        ``spark.streams.addListener(sink.listener(print))``. Lag is the end of each log, as Spark saw it for the batch,
        minus the mark that the batch committed.

        Args:
            report: Called with the statistics after each batch, on a thread of Spark's.
        """

        def note(progress: Any) -> None:
            marks = self._marks.get(int(progress.batchId), {})
            self._statistics = replace(self._statistics, lag=lag_of(progress, marks))
            if report is not None:
                report(self._statistics)

        return listener_of(lambda query: query == self._query, note)

    def foreach_batch(self, df: "DataFrame", batch_id: int) -> None:
        """Process one micro-batch; on return it is committed.

        Raises:
            ConfigurationError: The columns are not what the arguments need; nothing was read.
            MessageIdError: A row has no id that can be claimed.
            ConsumerError: The broker does not tell the topics' ids, or a topic was replaced meanwhile.
            UsageError: The batch was committed in this run of the query already; or a query runs, and this is not the
                thread that Spark calls.
            DataLossError: The batch begins after the marks; or a log ends before its mark, as the broker lost its end.
            SparkSetupError: This Spark does not tell what it planned.
            LedgerError: The database; if it was lost during the commit, the replay will tell.
            Exception: Of the effect, or of Spark's tasks. Whatever is raised, nothing was processed; where effects are
                on the executors, nothing of the partitions whose tasks failed.
        """
        with self._lock:
            if not self._run.goes_on(run_id := run_of(df), batch_id):
                self._run, self._query = Run(run_id), _query_id(df)
            with _noting(self._group, batch_id, self._on_executors), _ending(run_id):
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
        """Check the columns; the batch with its ids as one more column if they are computed."""
        frame = with_ids(df, self._ids)
        check_columns(frame.schema, self._work.id_column, places=self._brokers is not None)
        return frame

    def _by_offsets(self, df: "DataFrame", batch_id: int, brokers: TopicIds) -> Counts:
        plan = planned(df)
        if plan is None:
            return self._by_hand(df, brokers)
        frame = self._checked(df)
        logs = self._logs(plan, batch_id, brokers)
        with _rows(frame, plan) as table:
            check_places(table)
            batch = in_log_order(table)
            check_logs(plan, logs)
            plan.check_rows(batch.runs)
            return self._commit(batch, plan, batch_id, logs, brokers)

    def _by_hand(self, df: "DataFrame", brokers: TopicIds) -> Counts:
        """As the first batch of a checkpoint; what it goes through is what its rows say."""
        frame = self._checked(df)
        # Before the rows are read: see `_ids_of_topics`.
        topics = [row.topic for row in frame.select("topic").distinct().collect()]
        self._ids_of_topics({topic for topic in topics if topic is not None}, brokers)
        with _rows(frame, None) as table:
            check_places(table)
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
        logs: Mapping[Place, Range],
        brokers: TopicIds,
    ) -> Counts:
        """Do the effect for what is new, and advance the marks, on the driver."""
        ids = self._ids_of_topics(plan.topics, brokers)
        with self._ledger.transaction(self._group) as transaction:
            read = self._read_so_far(transaction, ids, {} if batch_id else logs)
            self._check_ends(read, logs, brokers)
            self._check_start(read, plan, batch_id)
            fresh = batch.fresh({place: read.mark(place) for place in plan.ranges})
            done = self._work.process(transaction, fresh)
            transaction.advance(read.advanced(plan.ends))
        self._committed(batch_id, read, plan.ends)
        return Counts(batch.table.num_rows, len(fresh), *done)

    def _by_tasks(self, df: "DataFrame", batch_id: int, brokers: TopicIds) -> Counts:
        plan = planned(df)
        if plan is None:
            raise UsageError('effect_on="executors" works only inside a streaming query')
        frame = self._checked(df)
        logs = self._logs(plan, batch_id, brokers)
        check_logs(plan, logs)
        ids = self._ids_of_topics(plan.topics, brokers)
        with self._ledger.transaction(self._group) as transaction:
            read = self._read_so_far(transaction, ids, {} if batch_id else logs)
            self._check_ends(read, logs, brokers)
            self._check_start(read, plan, batch_id)
            # What may be passed over is passed over now: no mark is before the batch any more, and tasks see to that.
            begun = read.advanced(plan.starts)
            transaction.advance(begun)
        task = Task(
            ledger=cast("PartitionsLedger", self._ledger),
            group=self._group,
            plan=plan,
            ids=ids,
            begun=begun,
            brokers=brokers,
            work=self._work,
        )
        frame, records = without_redelivered(frame, read.redelivered(plan))
        counts, places = run_tasks(frame, task)
        done = {read.key(place): plan.ends[place] for place in places}
        with self._ledger.transaction(self._group) as transaction:
            if self._ids is not None:
                transaction.claim([])  # forgets the old ones, which tasks do not
            read = replace(read, marks=transaction.marks())
            check_marks(self._ledger, read.marks, begun | done)
            transaction.advance(read.advanced(plan.ends))
        self._committed(batch_id, read, plan.ends)
        return counts._replace(records=records() or counts.records)

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

    def _committed(self, batch_id: int | None, read: Read, ends: Mapping[Place, int]) -> None:
        """Note the marks, for the next batch and for the listener."""
        marks = {place: max(end, read.mark(place)) for place, end in ends.items()}
        self._run.marks |= marks
        if batch_id is not None:
            kept = list(self._marks.items())[1 - BATCHES_REPORTED_MAX :]
            self._marks = {**dict(kept), batch_id: marks}

    def _read_so_far(
        self, transaction: Transaction, ids: Mapping[str, bytes], logs: Mapping[Place, Range]
    ) -> Read:
        return Read(
            group=self._group,
            ledger=str(self._ledger),
            marks=transaction.marks(),
            ids=ids,
            logs=logs,
        )

    def _check_ends(self, read: Read, logs: Mapping[Place, Range], brokers: TopicIds) -> None:
        """The logs have all that the group processed."""
        if short := read.beyond(logs):
            # Another driver may have gone on since the logs were asked. It cannot now: the group is locked.
            read.check_ends(cast("KafkaBrokers", brokers).log_ranges(short))

    def _check_start(self, read: Read, plan: Planned, batch_id: int | None) -> None:
        """The batch begins where the group is, or before."""
        if batch_id is not None:
            read.check_lives(plan, batch_id)
        if self._fail_on_data_loss:
            read.check_gaps(plan, batch_id)

    def _logs(self, plan: Planned, batch_id: int, brokers: TopicIds) -> Mapping[Place, Range]:
        """What the broker has of partitions that a query begins or goes on with, or whose batch ends before the mark.

        The latter are read again, or their log has lost its end since the last batch. Nothing where only a function
        tells the ids. The topics that were not known yet are asked for their ids first: the same ids afterwards say
        that logs, rows and marks are of one topic.
        """
        marks = self._run.marks
        # Topics without a committed batch: an attempt that failed has checked nothing for the next one.
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
                    f"query {query_id}: its checkpoint is another one, and what it reads would be processed again. Use "
                    "the checkpoint of before or a new group; allow_new_query=True goes on"
                ]
            )

    def _ids_of_topics(self, topics: Collection[str], brokers: TopicIds) -> dict[str, bytes]:
        """The ids of the batch's topics, asked before and after it was read.

        Rows of a topic that was replaced after they were read would move the new topic's marks. So a
        topic that has another id than before in this run is an error.
        """
        found = dict(brokers(topics)) if topics else {}
        unknown = sorted(topic for topic in topics if not _is_topic_id(found.get(topic)))
        if unknown:
            raise ConsumerError(f"brokers tells no id of {', '.join(unknown)}: 16 bytes are needed")
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
    """The batch, brought here."""
    if plan is None:
        return collected(df, tasks=1, in_order=lambda frame: frame)
    return collected(df, len(plan.ranges), lambda frame: in_whole_partitions(frame, plan)[0])


def _query_id(df: "DataFrame") -> str | None:
    query_id = df.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    return None if query_id is None else str(query_id)


@contextmanager
def _noting(group: str, batch_id: int, on_executors: bool) -> Iterator[None]:
    """Say with each error what became of the batch: the trace is what Spark shows of it."""
    try:
        yield
    except Exception as error:
        left = (
            "what some of its tasks committed stays"
            if on_executors
            else "the ledger is as before, unless the commit itself failed"
        )
        error.add_note(
            f"Batch {batch_id} was not processed for group {group!r}: {left}. Mend the cause and start the query "
            "again: nothing is lost or done twice."
        )
        raise


@contextmanager
def _ending(run_id: str | None) -> Iterator[None]:
    """What would end the process, such as sys.exit() in an effect, ends the query.

    On a thread of Spark's it ends nothing, and the query would wait for ever. By hand, on the user's own, it passes.
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
