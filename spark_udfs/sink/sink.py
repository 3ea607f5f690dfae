"""Effects in a database that count every record of a Kafka topic once, whatever crashes.

Theory of operation. Spark repeats a micro-batch after a crash, so the effect of a ``foreachBatch``
function happens again; Spark's own state (``dropDuplicates``) cannot know of it. Here the effect and
the progress commit together, in the database that the effect goes to::

    rows of the batch, in the order of the log      read before the database is locked
    one transaction of the ledger:
        drop the rows below the partitions' marks   redelivery: batch replay, task retry, a new checkpoint
        claim the ids of the rest, drop old ones    duplicates that producers wrote to the log
        effect(connection, rows)                    once for the batch, on what is left
        advance the marks

The marks decide, not Spark's batch id. A checkpoint that was put back to an earlier state, or lost its
last entries in a power cut, plans a batch of the same number with other offsets: to skip that as "done"
would lose records. Where Spark itself would pass over records, the batch is refused: see `spark_udfs.sink.starts`.
Where rows have no offsets (aggregates in update mode, sources other than Kafka) the batch id is all there is:
``progress="batches"``, exact as long as the checkpoint is.
"""

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, cast

import pyarrow as pa

from pykafka_core.errors import ConfigurationError, ConsumerError, UsageError
from pykafka_core.idempotent import Ledger, Transaction
from spark_udfs.sink.executors import (
    PartitionsLedger,
    Task,
    check_pickled,
    run_tasks,
    without_redelivered,
)
from spark_udfs.sink.message_ids import ID_COLUMN, with_ids
from spark_udfs.sink.places import Place, Range
from spark_udfs.sink.planned import QUERY_ID, Planned, planned
from spark_udfs.sink.processing import Effect, check_places, process
from spark_udfs.sink.redelivery import fresh, in_log_order, runs
from spark_udfs.sink.starts import Read, check_logs
from spark_udfs.sink.brokers import KafkaBrokers, TopicIds

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

_PLACE_TYPES: Final = {"topic": "string", "partition": "int", "offset": "bigint"}


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """Of the batches committed by this object. ``records`` = redelivered + duplicates + processed."""

    batches: int = 0
    records: int = 0
    redelivered: int = 0
    duplicates: int = 0
    processed: int = 0


class IdempotentSink:
    """The function of a ``foreachBatch`` whose effect is done exactly once for each record.

    ``df.writeStream.foreachBatch(consumer.foreach_batch)``. Between the source and here records may be
    filtered, mapped, exploded and shuffled, but not held back for a later batch (as joins and windows
    do): a partition's later records would have moved its mark past them, so they are refused. Streams of one query
    that read the same partitions must read the same offsets, so load a topic once. With ``effect_on="driver"`` a batch
    is collected there, so limit it: ``maxOffsetsPerTrigger``.

    Args:
        ledger: Of the database that the effect writes to.
        group: Whose progress it is. One query, and its successors with new checkpoints, have one group.
        ids: The message id of a row, binary or string of 1 to 1,024 bytes: the name of a column, or a
            Column such as ``message_header("message-id")`` or ``fingerprint("order", "line")``. None:
            what stands twice in the log counts twice.
        effect: Called at most once for a batch (or task) with the ledger's connection and the rows left, in the
            order of topic, partition and offset, with the columns of the DataFrame.
        brokers: Where to ask for topic ids, so that a topic deleted and recreated starts at its
            beginning: "host:port", settings of librdkafka, or a function. Only for "offsets".
        fail_on_data_loss: Raise when a batch begins after the group's marks: with a new checkpoint under the
            connector's default ``startingOffsets`` (latest), or with an old one and another database. With a new
            checkpoint from "earliest" nothing is lost, and nothing done twice. False: go on without what is between.
            Only for "offsets".
        progress: "offsets" needs the columns topic, partition and offset of the Kafka source. "batches"
            trusts the query's batch numbers instead.
        allow_new_query: Only for "batches". A new checkpoint makes a new query, whose numbers say nothing of what the
            group has processed: it is refused. True: process all that it reads, again where the old one did.
        effect_on: "driver": all rows of a batch are collected there, and the effect is called once for it. "executors":
            each task commits its own Kafka partitions, with a connection of its own, and calls the effect for their
            rows. Nothing is collected, so no batch is too large. Needs a ledger on a server; it, ``effect`` and
            ``brokers`` are pickled, with their passwords.

    Raises:
        ConfigurationError: Arguments that cannot be used; all of them are listed.
    """

    def __init__(
        self,
        ledger: Ledger,
        group: str,
        ids: "str | Column | None" = None,
        *,
        effect: Effect,
        brokers: str | Mapping[str, Any] | TopicIds | None = None,
        fail_on_data_loss: bool = True,
        progress: Literal["offsets", "batches"] = "offsets",
        allow_new_query: bool = False,
        effect_on: Literal["driver", "executors"] = "driver",
    ) -> None:
        _check_arguments(
            ledger=ledger,
            group=group,
            ids=ids,
            effect=effect,
            brokers=brokers,
            fail_on_data_loss=fail_on_data_loss,
            progress=progress,
            allow_new_query=allow_new_query,
            effect_on=effect_on,
        )
        self._ledger, self._group, self._ids, self._effect = ledger, group, ids, effect
        self._brokers = None if brokers is None else _resolver(brokers)
        self._fail_on_data_loss = fail_on_data_loss
        self._allow_new_query = allow_new_query
        self._on_executors = effect_on == "executors"
        if self._on_executors:
            check_pickled(ledger=ledger, effect=effect, brokers=self._brokers)
        self._known: dict[str, bytes] = {}
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

    def foreach_batch(self, df: "DataFrame", batch_id: int) -> None:
        """Process one micro-batch; on return it is committed.

        Raises:
            ConfigurationError: The columns are not what the arguments need; nothing was read.
            MessageIdError: A row has no id that can be claimed.
            ConsumerError: The broker does not tell the topics' ids, or a topic was replaced meanwhile.
            DataLossError: The batch begins after the marks.
            SparkSetupError: This Spark does not tell what it planned.
            LedgerError: The database; if it was lost during the commit, the replay will tell.
            Exception: Of the effect, or of Spark's tasks. Whatever is raised, nothing was processed; where effects are
                on the executors, nothing of the partitions whose tasks failed.
        """
        with self._lock, _noting(self._group, batch_id, self._on_executors):
            if self._brokers is None:
                self._by_batches(self._read(df), _query_id(df), batch_id)
            elif self._on_executors:
                self._by_tasks(df, batch_id, self._brokers)
            else:
                self._by_offsets(df, batch_id, self._brokers)

    def _read(self, df: "DataFrame") -> pa.Table:
        """Collect the batch."""
        table = self._checked(df).toArrow()
        if self._brokers is not None:
            check_places(table)
        return table

    def _checked(self, df: "DataFrame") -> "DataFrame":
        """Check the columns; the batch with its ids as one more column if they are computed."""
        frame = with_ids(df, self._ids)
        problems = _column_problems(frame.schema, self._id_column(), self._brokers is not None)
        if problems:
            raise ConfigurationError(problems)
        return frame

    def _by_offsets(self, df: "DataFrame", batch_id: int, brokers: TopicIds) -> None:
        plan = planned(df)
        logs = self._logs(plan, batch_id, brokers) if plan else {}
        table = in_log_order(self._read(df))
        batch = runs(table)
        if plan:
            check_logs(plan, logs)
            plan.check_rows(batch)
        topics = {run.place[0] for run in batch} | (plan.topics if plan else set())
        ids = self._ids_of_topics(topics, brokers)
        with self._ledger.transaction(self._group) as transaction:
            read = self._read_so_far(transaction, ids, logs if batch_id == 0 else {})
            if plan:
                self._check_start(read, plan, batch_id)
            ends = plan.ends if plan else {run.place: run.last + 1 for run in batch}
            rows = fresh(table, batch, {place: read.mark(place) for place in ends})
            done = process(transaction, rows, self._id_column(), self._effect)
            transaction.advance(read.advanced(ends))
        self._count(table.num_rows, rows.num_rows, done)

    def _by_tasks(self, df: "DataFrame", batch_id: int, brokers: TopicIds) -> None:
        plan = planned(df)
        if plan is None:
            raise UsageError('effect_on="executors" works only inside a streaming query')
        frame = self._checked(df)
        logs = self._logs(plan, batch_id, brokers)
        check_logs(plan, logs)
        ids = self._ids_of_topics(plan.topics, brokers)
        with self._ledger.transaction(self._group) as transaction:
            read = self._read_so_far(transaction, ids, logs if batch_id == 0 else {})
            self._check_start(read, plan, batch_id)
            # What may be passed over is passed over now: no mark is before the batch any more, and tasks see to that.
            transaction.advance(read.advanced(plan.starts))
        task = Task(
            ledger=cast("PartitionsLedger", self._ledger),
            group=self._group,
            plan=plan,
            ids=ids,
            brokers=brokers,
            id_column=self._id_column(),
            effect=self._effect,
        )
        frame, records = without_redelivered(frame, read.redelivered(plan))
        counts = run_tasks(frame, task)
        with self._ledger.transaction(self._group) as transaction:
            if self._ids is not None:
                transaction.claim([])  # forgets the old ones, which tasks do not
            read = replace(read, marks=transaction.marks())
            transaction.advance(read.advanced(plan.ends))
        self._count(records() or counts.records, counts.fresh, counts.processed)

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

    def _check_start(self, read: Read, plan: Planned, batch_id: int) -> None:
        """The batch begins where the group is, or before."""
        read.check_lives(plan, batch_id)
        if self._fail_on_data_loss:
            read.check_gaps(plan, batch_id)

    def _logs(self, plan: Planned, batch_id: int, brokers: TopicIds) -> Mapping[Place, Range]:
        """What the broker has of partitions that a query begins or goes on with.

        Nothing where only a function tells the ids. The topics that were not known yet are asked for their ids first:
        the same ids afterwards say that logs, rows and marks are of one topic.
        """
        begun = plan.topics if batch_id == 0 else plan.topics - self._known.keys()
        self._ids_of_topics(begun - self._known.keys(), brokers)
        ask = getattr(brokers, "log_ranges", None)
        return ask([place for place in plan.ranges if place[0] in begun]) if ask else {}

    def _by_batches(self, table: pa.Table, query_id: str, batch_id: int) -> None:
        with self._ledger.transaction(self._group) as transaction:
            self._check_query(query_id, transaction.batches())
            rows = table if transaction.begin_batch(query_id, batch_id) else table.slice(0, 0)
            done = process(transaction, rows, self._id_column(), self._effect)
        self._count(table.num_rows, rows.num_rows, done)

    def _check_query(self, query_id: str, batches: Mapping[str, int]) -> None:
        if batches and query_id not in batches and not self._allow_new_query:
            raise ConfigurationError(
                [
                    f"the batches of group {self._group!r} are those of query {', '.join(sorted(batches))}, this is "
                    f"query {query_id}: its checkpoint is another one, and what it reads would be processed again. Use "
                    "the checkpoint of before or a new group; allow_new_query=True goes on"
                ]
            )

    def _id_column(self) -> str | None:
        return self._ids if self._ids is None or isinstance(self._ids, str) else ID_COLUMN

    def _ids_of_topics(self, topics: Collection[str], brokers: TopicIds) -> dict[str, bytes]:
        """The ids of the batch's topics, asked before and after it was read.

        Rows of a topic that was replaced after they were read would move the new topic's marks. So a
        topic that has another id than before is an error.
        """
        found = dict(brokers(topics)) if topics else {}
        unknown = sorted(topic for topic in topics if not _is_topic_id(found.get(topic)))
        if unknown:
            raise ConsumerError(
                f"brokers tells no id of {', '.join(unknown)}: 16 bytes are needed"
            )
        replaced = sorted(t for t, value in found.items() if self._known.get(t, value) != value)
        if replaced:
            raise ConsumerError(
                f"{', '.join(replaced)}: deleted and recreated while the query ran; "
                "start it again, with a new checkpoint and startingOffsets=earliest"
            )
        self._known |= found
        return found

    def _count(self, records: int, fresh_count: int, processed: int) -> None:
        before = self._statistics
        self._statistics = Statistics(
            batches=before.batches + 1,
            records=before.records + records,
            redelivered=before.redelivered + records - fresh_count,
            duplicates=before.duplicates + fresh_count - processed,
            processed=before.processed + processed,
        )


def _check_arguments(
    *,
    ledger: object,
    group: object,
    ids: object,
    effect: object,
    brokers: object,
    fail_on_data_loss: object,
    progress: object,
    allow_new_query: object,
    effect_on: object,
) -> None:
    from pyspark.sql import Column

    is_place = isinstance(brokers, str | Mapping) and bool(brokers)
    good = {
        "ledger is a Ledger, such as SQLiteLedger(path)": hasattr(ledger, "transaction"),
        "group is a name": isinstance(group, str) and bool(group),
        "ids is the name of a column, a Column or None": ids is None
        or isinstance(ids, Column)
        or (isinstance(ids, str) and bool(ids)),
        "effect is a function of (connection, table)": callable(effect),
        'progress is "offsets" or "batches"': progress in ("offsets", "batches"),
        'brokers is "host:port", settings of librdkafka or a function': brokers is None
        or is_place
        or callable(brokers),
        "fail_on_data_loss is True or False": type(fail_on_data_loss) is bool,
        'allow_new_query is True or False, and only for progress="batches"': allow_new_query
        is False
        or (allow_new_query is True and progress == "batches"),
        'brokers is needed for progress="offsets": the brokers as "host:port"': not (
            progress == "offsets" and brokers is None
        ),
        'effect_on is "driver" or "executors"': effect_on in ("driver", "executors"),
        'effect_on="executors" needs a ledger on a server, such as PostgresLedger(conninfo)': not (
            effect_on == "executors" and not hasattr(ledger, "partitions_transaction")
        ),
        'effect_on="executors" needs progress="offsets"': not (
            effect_on == "executors" and progress == "batches"
        ),
        'brokers has no effect with progress="batches"; leave it out': not (
            progress == "batches" and brokers is not None
        ),
    }
    problems = [problem for problem, is_good in good.items() if not is_good]
    if problems:
        raise ConfigurationError(problems)


def _is_topic_id(value: object) -> bool:
    return isinstance(value, bytes) and len(value) == 16


def _resolver(brokers: str | Mapping[str, Any] | TopicIds) -> TopicIds:
    if isinstance(brokers, str):
        brokers = {"bootstrap.servers": brokers}
    return KafkaBrokers(brokers) if isinstance(brokers, Mapping) else brokers


def _column_problems(schema: "StructType", id_column: str | None, places: bool) -> list[str]:
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    repeated = sorted({name for name in schema.names if schema.names.count(name) > 1})
    problems = [f"two columns {name}: rename one" for name in repeated]
    for name, wanted in _PLACE_TYPES.items() if places else ():
        if name not in types:
            problems.append(f"there is no column {name}: keep the Kafka source's in the select")
        elif types[name] != wanted:
            problems.append(f"column {name} must be {wanted}, not {types[name]}")
    if id_column is not None and id_column not in types:
        problems.append(f"there is no column {id_column!r} for ids")
    elif id_column is not None and types[id_column] not in ("binary", "string"):
        problems.append(
            f"ids must be binary or string, not {types[id_column]}: cast, or fingerprint"
        )
    return problems


def _query_id(df: "DataFrame") -> str:
    query_id = df.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    if query_id is None:
        raise UsageError('progress="batches" works only inside a streaming query')
    return str(query_id)


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
