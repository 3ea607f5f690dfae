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
would lose records. Where rows have no offsets (aggregates in update mode, sources other than Kafka)
the batch id is all there is: ``progress="batches"``, exact as long as the checkpoint is.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa

from pykafka_core.errors import ConfigurationError, ConsumerError, UsageError
from pykafka_core.idempotent import Ledger, PartitionKey, Transaction
from spark_udfs.message_ids import ID_COLUMN, check_ids, with_ids
from spark_udfs.redelivery import PLACE, Run, fresh, in_log_order, runs
from spark_udfs.topic_ids import BrokerTopicIds, TopicIds

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

Effect = Callable[[Any, pa.Table], object]
"""Gets the ledger's connection and the rows; neither commits nor rolls back."""

_PLACE_TYPES: Final = {"topic": "string", "partition": "int", "offset": "bigint"}
_QUERY_ID: Final = "sql.streaming.queryId"


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """Of the batches committed by this object. ``records`` = redelivered + duplicates + processed."""

    batches: int = 0
    records: int = 0
    redelivered: int = 0
    duplicates: int = 0
    processed: int = 0


class IdempotentConsumer:
    """The function of a ``foreachBatch`` whose effect is done exactly once for each record.

    ``df.writeStream.foreachBatch(consumer.foreach_batch)``. Between the source and here records may be
    filtered, mapped, exploded and shuffled, but not held back for a later batch (as joins and windows
    do): a partition's later records would have moved its mark past them. A batch is collected to the driver, so
    limit it: ``maxOffsetsPerTrigger``.

    Args:
        ledger: Of the database that the effect writes to.
        group: Whose progress it is. One query, and its successors with new checkpoints, have one group.
        ids: The message id of a row, binary or string of 1 to 1,024 bytes: the name of a column, or a
            Column such as ``message_header("message-id")`` or ``fingerprint("order", "line")``. None:
            what stands twice in the log counts twice.
        effect: Called at most once for a batch with the ledger's connection and the rows left, in the
            order of topic, partition and offset, with the columns of the DataFrame.
        topic_ids: Where to ask for topic ids, so that a topic deleted and made anew starts at its
            beginning: "host:port", settings of librdkafka, or a function. Only for "offsets".
        progress: "offsets" needs the columns topic, partition and offset of the Kafka source. "batches"
            trusts the query's batch numbers instead.

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
        topic_ids: str | Mapping[str, Any] | TopicIds | None = None,
        progress: Literal["offsets", "batches"] = "offsets",
    ) -> None:
        _check_arguments(effect, topic_ids, progress)
        self._ledger, self._group, self._ids, self._effect = ledger, group, ids, effect
        self._topic_ids = None if topic_ids is None else _resolver(topic_ids)
        self._known: dict[str, bytes] = {}
        self._statistics = Statistics()
        self._lock = threading.Lock()

    def statistics(self) -> Statistics:
        """What was committed so far."""
        return self._statistics

    def foreach_batch(self, df: "DataFrame", batch_id: int) -> None:
        """Process one micro-batch; on return it is committed.

        Raises:
            ConfigurationError: The columns are not what the arguments need; nothing was read.
            MessageIdError: A row has no id that can be claimed.
            ConsumerError: The broker does not tell the topics' ids, or a topic was replaced meanwhile.
            LedgerError: The database; if it was lost during the commit, the replay will tell.
            Exception: Of the effect, or of Spark's tasks. Whatever is raised, nothing was processed.
        """
        with self._lock, _noting(self._group, batch_id):
            table = self._read(df)
            if self._topic_ids is None:
                self._by_batches(table, _query_id(df), batch_id)
            else:
                self._by_offsets(in_log_order(table), self._topic_ids)

    def _read(self, df: "DataFrame") -> pa.Table:
        """Check the columns, then collect the batch, with its ids as one more column if they are computed."""
        places = self._topic_ids is not None
        frame = with_ids(df, self._ids)
        problems = _column_problems(frame.schema, self._id_column(), places)
        if problems:
            raise ConfigurationError(problems)
        table = frame.toArrow()
        for name in PLACE if places else ():
            if table[name].null_count:
                raise ConfigurationError(
                    [f"column {name} has nulls: keep it as the source gives it"]
                )
        return table

    def _by_offsets(self, table: pa.Table, topic_ids: TopicIds) -> None:
        batch = runs(table)
        ids = self._ids_of_topics(batch, topic_ids)
        with self._ledger.transaction(self._group) as transaction:
            marks = {
                (key.topic, key.partition): offset
                for key, offset in transaction.marks().items()
                if ids.get(key.topic) == key.topic_id
            }
            rows, moved = fresh(table, batch, marks)
            done = self._process(transaction, rows)
            transaction.advance(
                {PartitionKey(ids[topic], topic, p): mark for (topic, p), mark in moved.items()}
            )
        self._count(table.num_rows, rows.num_rows, done)

    def _by_batches(self, table: pa.Table, query_id: str, batch_id: int) -> None:
        with self._ledger.transaction(self._group) as transaction:
            rows = table if transaction.begin_batch(query_id, batch_id) else table.slice(0, 0)
            done = self._process(transaction, rows)
        self._count(table.num_rows, rows.num_rows, done)

    def _process(self, transaction: Transaction, rows: pa.Table) -> int:
        """Claim the ids, do the effect; how many rows it was done for."""
        column = self._id_column()
        if column is not None:
            ids = rows[column].combine_chunks()
            check_ids(rows, ids)
            rows = rows.filter(transaction.claim(ids))
        if ID_COLUMN in rows.column_names:
            rows = rows.drop_columns([ID_COLUMN])
        if rows.num_rows:
            self._effect(transaction.connection, rows)
        return int(rows.num_rows)

    def _id_column(self) -> str | None:
        return self._ids if self._ids is None or isinstance(self._ids, str) else ID_COLUMN

    def _ids_of_topics(self, batch: list[Run], topic_ids: TopicIds) -> dict[str, bytes]:
        """The ids of the batch's topics, asked after it was read.

        Rows of a topic that was replaced after they were read would move the new topic's marks. So a
        topic that has another id than at the last batch is an error once; a restart begins with it anew.
        """
        found = dict(topic_ids({run.topic for run in batch}))
        replaced = sorted(t for t, value in found.items() if self._known.get(t, value) != value)
        if replaced:
            raise ConsumerError(
                f"{', '.join(replaced)}: deleted and made anew while the query ran; "
                "start it again, with a new checkpoint"
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


def _check_arguments(effect: object, topic_ids: object, progress: str) -> None:
    problems = []
    if not callable(effect):
        problems.append("effect must be a function of (connection, table)")
    if progress not in ("offsets", "batches"):
        problems.append(f'progress is "offsets" or "batches", not {progress!r}')
    if progress == "offsets" and topic_ids is None:
        problems.append('topic_ids is needed for progress="offsets": the brokers as "host:port"')
    if progress == "batches" and topic_ids is not None:
        problems.append('topic_ids has no effect with progress="batches"; leave it out')
    if problems:
        raise ConfigurationError(problems)


def _resolver(topic_ids: str | Mapping[str, Any] | TopicIds) -> TopicIds:
    if isinstance(topic_ids, str):
        topic_ids = {"bootstrap.servers": topic_ids}
    return BrokerTopicIds(topic_ids) if isinstance(topic_ids, Mapping) else topic_ids


def _column_problems(schema: "StructType", id_column: str | None, places: bool) -> list[str]:
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    problems = []
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
    query_id = df.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
    if query_id is None:
        raise UsageError('progress="batches" works only inside a streaming query')
    return str(query_id)


@contextmanager
def _noting(group: str, batch_id: int) -> Iterator[None]:
    """Say with each error what became of the batch: the trace is what Spark shows of it."""
    try:
        yield
    except Exception as error:
        error.add_note(
            f"Batch {batch_id} was not processed for group {group!r}: the ledger is as before, unless "
            "the commit itself failed. Mend the cause and start the query again: nothing is lost or done twice."
        )
        raise
