"""Effects on the executors: each task commits its Kafka partitions; every record counts once."""

import json
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException

from pykafka_core.errors import ConfigurationError, LedgerError, UsageError
from pykafka_core.idempotent import PartitionKey, PostgresLedger, SQLiteLedger
from spark_udfs.sink.brokers import KafkaBrokers
from spark_udfs.sink.executors import Committed, Counts, Task, _report, committed_of
from spark_udfs.sink.message_ids import message_header
from spark_udfs.sink.micro_batch_plan import Planned, planned
from spark_udfs.sink.processing import Effect, Work
from spark_udfs.sink.rows.spill import spooled
from spark_udfs.sink.rows.whole_partitions import in_whole_partitions
from spark_udfs.sink.sink import IdempotentSink
from spark_udfs.sink.statistics import Statistics
from spark_udfs.sink.topic_partition import Range
from tests.idempotent.databases import PostgresDatabase, effects
from tests.support.brokers import Brokers, Serve
from tests.support.patience import PATIENCE_S
from tests.support.spark.pipeline import COLUMNS, Sent, insert_values, run, send, stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPIC, GROUP, ID = "orders", "billing", b"a" * 16
TOPICS = (TOPIC,)
PARTITIONS = 3
Change = Callable[["DataFrame"], "DataFrame"]


@pytest.fixture
def broker(serve: Serve) -> Iterator[Brokers]:
    with serve() as broker:
        broker.create_topic(TOPIC, partitions=PARTITIONS)
        yield broker


@pytest.fixture
def database(postgres_dsn: str) -> PostgresDatabase:
    return PostgresDatabase(postgres_dsn)


@pytest.fixture
def ledger(database: PostgresDatabase) -> Iterator[PostgresLedger]:
    with database.ledger() as ledger:
        yield ledger


def twice_each(count: int) -> list[Sent]:
    """Return each record twice, in different partitions, as after a change of the partitioner."""
    first = [Sent(n % PARTITIONS, f"order {n:03}", f"id {n}") for n in range(count)]
    return first + [one._replace(partition=(one.partition + 1) % PARTITIONS) for one in first]


def consumer_of(broker: Brokers, ledger: PostgresLedger, **options: Any) -> IdempotentSink:
    given: dict[str, Any] = {
        "effect": insert_values("%s"),
        "brokers": broker.bootstrap_servers,
        **options,
    }
    return IdempotentSink(ledger, GROUP, effect_on="executors", **given)


def marks(ledger: PostgresLedger) -> dict[int, int]:
    with ledger.transaction(GROUP) as transaction:
        return {key.partition: mark for key, mark in transaction.marks().items()}


def test_ids_count_once_over_batches_and_partitions(
    spark: "SparkSession",
    broker: Brokers,
    database: PostgresDatabase,
    ledger: PostgresLedger,
    tmp_path: Path,
) -> None:
    send(broker.bootstrap_servers, TOPIC, twice_each(60))
    df = stream(spark, broker.bootstrap_servers, TOPIC, maxOffsetsPerTrigger=45)
    consumer = consumer_of(broker, ledger, ids=message_header("message-id"))
    run(df.selectExpr(*COLUMNS), tmp_path / "checkpoint", consumer.foreach_batch)
    assert effects(database) == [f"order {n:03}" for n in range(60)]
    assert consumer.statistics() == Statistics(
        batches=3, records=120, redelivered=0, duplicates=60, processed=60
    )
    again = consumer_of(broker, ledger)
    run(df.selectExpr(*COLUMNS), tmp_path / "another checkpoint", again.foreach_batch)
    assert len(effects(database)) == 60
    assert again.statistics() == Statistics(batches=3, records=120, redelivered=120)


def test_processed_rows_are_not_sent_to_python_again(
    spark: "SparkSession",
    broker: Brokers,
    database: PostgresDatabase,
    ledger: PostgresLedger,
    tmp_path: Path,
) -> None:
    """Half of the rows of partition 1, all of 0 and none of 2 are below the marks."""
    df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr(*COLUMNS)
    send(broker.bootstrap_servers, TOPIC, [Sent(n % 2, f"order {n:03}") for n in range(20)])
    run(df, tmp_path / "c", consumer_of(broker, ledger).foreach_batch)
    send(broker.bootstrap_servers, TOPIC, [Sent(1 + n % 2, f"order {n:03}") for n in range(20, 40)])
    crossed = tmp_path / "crossed"
    again = consumer_of(broker, ledger, brokers=noting_rows(broker, crossed))
    run(df, tmp_path / "new", again.foreach_batch)
    assert effects(database) == [f"order {n:03}" for n in range(40)]
    assert again.statistics() == Statistics(batches=1, records=40, redelivered=20, processed=20)
    assert len(crossed.read_text().split()) == 2, "tasks of partitions 1 and 2"


def noting_rows(broker: Brokers, file: Path) -> Callable[[Collection[str]], dict[str, bytes]]:
    """Return topic ids, and write a word to the file for each task that had rows."""
    from pyspark import TaskContext

    ids = KafkaBrokers({"bootstrap.servers": broker.bootstrap_servers})(TOPICS)

    def known(topics: Collection[str]) -> dict[str, bytes]:
        if TaskContext.get() is not None:
            with file.open("a") as notes:
                notes.write("task ")
        return {topic: ids[topic] for topic in topics}

    return known


def through_python(df: "DataFrame") -> "DataFrame":
    return df.mapInArrow(lambda batches: batches, df.schema)


def backwards(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.take(pa.array(range(batch.num_rows))[::-1])


@pytest.mark.parametrize(
    ("change", "is_as_read"),
    [
        (lambda df: df, True),
        (through_python, True),
        (lambda df: df.where("value != 'order 007'"), True),
        (lambda df: df.where("partition = 1"), True),
        (lambda df: df.repartition(2, "value"), False),
        (lambda df: df.coalesce(2), False),
        (lambda df: df.where("partition < 2").union(df.where("partition = 2")), False),
        (lambda df: df.mapInArrow(backwards, df.schema), True),
    ],
    ids=[
        "nothing",
        "Python",
        "a filter",
        "one left",
        "shuffle",
        "coalesce",
        "union",
        "another order",
    ],
)
def test_task_has_whole_partitions_for_any_query(
    spark: "SparkSession",
    broker: Brokers,
    database: PostgresDatabase,
    ledger: PostgresLedger,
    tmp_path: Path,
    change: Change,
    is_as_read: bool,
) -> None:
    database.run("CREATE TABLE calls (partition int, offsets bigint[])")
    values = [f"order {n:03}" for n in range(60)]
    send(broker.bootstrap_servers, TOPIC, [Sent(n % 3, value) for n, value in enumerate(values)])
    consumer = consumer_of(broker, ledger, effect=note_call)
    kept: list[bool] = []

    def batch(df: "DataFrame", batch_id: int) -> None:
        plan = planned(df)
        assert plan is not None
        kept.append(in_whole_partitions(df, plan.ranges)[1] is not None)
        consumer.foreach_batch(df, batch_id)

    df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr(*COLUMNS)
    run(change(df), tmp_path / "c", batch)
    assert kept == [is_as_read]
    calls = database.run("SELECT partition, offsets FROM calls")
    assert len({partition for partition, _ in calls}) == len(calls)
    assert all(offsets == sorted(offsets) for _, offsets in calls)
    wanted = change(
        spark.createDataFrame(
            [(v, n % 3) for n, v in enumerate(values)], "value string, partition int"
        )
    )
    assert effects(database) == sorted(row.value for row in wanted.collect())
    assert marks(ledger) == {0: 20, 1: 20, 2: 20}


def note_call(connection: Any, rows: pa.Table) -> None:
    for partition in set(rows["partition"].to_pylist()):
        mine = rows.filter(pa.compute.equal(rows["partition"], partition))
        offsets = mine["offset"].to_pylist()
        connection.execute("INSERT INTO calls VALUES (%s, %s)", (partition, offsets))
    insert_values("%s")(connection, rows)


def test_partitions_that_spark_reads_in_pieces_are_combined(
    spark: "SparkSession",
    broker: Brokers,
    database: PostgresDatabase,
    ledger: PostgresLedger,
    tmp_path: Path,
) -> None:
    send(broker.bootstrap_servers, TOPIC, [Sent(n % 3, f"order {n:03}") for n in range(60)])
    df = stream(spark, broker.bootstrap_servers, TOPIC, minPartitions=9).selectExpr(*COLUMNS)
    run(df, tmp_path / "c", consumer_of(broker, ledger).foreach_batch)
    assert effects(database) == [f"order {n:03}" for n in range(60)]


@pytest.mark.parametrize(
    ("options", "change"),
    [
        ({"minPartitions": 9}, lambda df: df),
        ({}, lambda df: df.repartition(2)),
        ({}, lambda df: df.coalesce(1)),
        ({}, lambda df: df.where("partition < 2").union(df.where("partition = 2"))),
    ],
    ids=["pieces", "shuffle", "coalesce", "union"],
)
def test_fully_redelivered_batch_passes_through_a_shuffle(
    spark: "SparkSession",
    broker: Brokers,
    database: PostgresDatabase,
    ledger: PostgresLedger,
    tmp_path: Path,
    options: dict[str, Any],
    change: Change,
) -> None:
    """Adaptive execution finds nothing to shuffle, and removes the count of the records, too."""
    send(broker.bootstrap_servers, TOPIC, [Sent(n % 3, f"order {n:03}") for n in range(60)])
    df = change(stream(spark, broker.bootstrap_servers, TOPIC, **options).selectExpr(*COLUMNS))
    first = consumer_of(broker, ledger)

    def crash(rows: "DataFrame", batch_id: int) -> None:
        first.foreach_batch(rows, batch_id)
        raise RuntimeError("after the tasks' commits")

    with pytest.raises(StreamingQueryException, match="after the tasks' commits"):
        run(df, tmp_path / "c", crash)
    for checkpoint in ("c", "new"):
        again = consumer_of(broker, ledger)
        run(df, tmp_path / checkpoint, again.foreach_batch)
        assert again.statistics() == Statistics(batches=1, records=60, redelivered=60)
    assert effects(database) == [f"order {n:03}" for n in range(60)]


def fails_in_the_last(connection: Any, rows: pa.Table) -> None:
    insert_values("%s")(connection, rows)
    if rows["partition"][0].as_py() == 2:
        raise ValueError("no room for this one")


def test_failed_task_does_not_affect_the_others(
    spark: "SparkSession",
    broker: Brokers,
    database: PostgresDatabase,
    ledger: PostgresLedger,
    tmp_path: Path,
) -> None:
    send(broker.bootstrap_servers, TOPIC, [Sent(n % 3, f"order {n:03}") for n in range(60)])
    df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr(*COLUMNS)

    failing = consumer_of(broker, ledger, effect=fails_in_the_last)
    with pytest.raises(
        StreamingQueryException, match=r"(?s)no room for this one.*tasks committed stays"
    ):
        run(df, tmp_path / "c", failing.foreach_batch)
    done = marks(ledger)
    assert done.pop(2, 0) == 0
    assert len(effects(database)) == sum(done.values())
    run(df, tmp_path / "c", consumer_of(broker, ledger).foreach_batch)
    assert effects(database) == [f"order {n:03}" for n in range(60)]


def test_new_group_that_starts_in_the_middle_continues_after_a_failed_first_batch(
    spark: "SparkSession",
    broker: Brokers,
    database: PostgresDatabase,
    ledger: PostgresLedger,
    tmp_path: Path,
) -> None:
    """Only some partitions have marks then, but the new group's start applies to all of them."""
    send(broker.bootstrap_servers, TOPIC, [Sent(n % 3, f"order {n:03}") for n in range(30)])
    begins = json.dumps({TOPIC: {"0": 4, "1": 4, "2": 4}})
    df = stream(spark, broker.bootstrap_servers, TOPIC, startingOffsets=begins).selectExpr(*COLUMNS)
    failing = consumer_of(broker, ledger, effect=fails_in_the_last)
    with pytest.raises(StreamingQueryException, match="no room for this one"):
        run(df, tmp_path / "c", failing.foreach_batch)
    assert marks(ledger)[2] == 4
    run(df, tmp_path / "c", consumer_of(broker, ledger).foreach_batch)
    assert effects(database) == [f"order {n:03}" for n in range(12, 30)]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            ["topic", "0 AS partition", "offset", "CAST(value AS STRING) AS value"],
            r"the task of orders-\d has rows of orders-0: the query changes",
        ),
        (
            ["topic", "partition", "nullif(offset, 3) AS offset", "CAST(value AS STRING) AS value"],
            "column offset has nulls",
        ),
        (
            ["topic", "partition", "offset + 30 AS offset", "CAST(value AS STRING) AS value"],
            "rows of the offsets 30 to 49, Spark planned 0 to 19",
        ),
        (["partition", "offset"], "there is no column topic"),
    ],
)
def test_rows_outside_their_planned_ranges_are_rejected(
    spark: "SparkSession",
    broker: Brokers,
    database: PostgresDatabase,
    ledger: PostgresLedger,
    tmp_path: Path,
    change: list[str],
    problem: str,
) -> None:
    send(broker.bootstrap_servers, TOPIC, [Sent(n % 3, f"order {n:03}") for n in range(60)])
    df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr(*change)
    with pytest.raises(StreamingQueryException, match=f"(?s){problem}"):
        run(df, tmp_path / "c", consumer_of(broker, ledger).foreach_batch)
    assert sum(marks(ledger).values()) == len(effects(database))


def test_topic_recreated_before_its_rows_are_processed_is_rejected(
    spark: "SparkSession",
    broker: Brokers,
    database: PostgresDatabase,
    ledger: PostgresLedger,
    tmp_path: Path,
) -> None:
    def ids(topics: Collection[str]) -> dict[str, bytes]:
        from pyspark import TaskContext

        return dict.fromkeys(topics, ID if TaskContext.get() is None else b"b" * 16)

    send(broker.bootstrap_servers, TOPIC, [Sent(0, "order")])
    df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr(*COLUMNS)
    with pytest.raises(StreamingQueryException, match="orders: deleted and recreated while"):
        run(df, tmp_path / "c", consumer_of(broker, ledger, brokers=ids).foreach_batch)
    assert effects(database) == []
    assert set(marks(ledger).values()) == {0}


def test_batch_that_starts_after_the_marks_is_rejected(
    spark: "SparkSession",
    broker: Brokers,
    database: PostgresDatabase,
    ledger: PostgresLedger,
    tmp_path: Path,
) -> None:
    df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr(*COLUMNS)
    send(broker.bootstrap_servers, TOPIC, [Sent(0, "order 0")])
    run(df, tmp_path / "c", consumer_of(broker, ledger).foreach_batch)
    database.run("UPDATE pykafka_marks SET next_offset = 0")
    send(broker.bootstrap_servers, TOPIC, [Sent(0, "order 1")])
    with pytest.raises(StreamingQueryException, match="offsets 0 to 0 of orders-0 would be lost"):
        run(df, tmp_path / "c", consumer_of(broker, ledger).foreach_batch)
    assert effects(database) == ["order 0"]


def known(topics: Collection[str]) -> dict[str, bytes]:
    return dict.fromkeys(topics, ID)


def test_sink_cannot_be_pickled_for_a_connect_server(ledger: PostgresLedger) -> None:
    consumer = IdempotentSink(ledger, GROUP, effect=insert_values("%s"), brokers=known)
    with pytest.raises(UsageError, match=r"stays in the driver's process, .* Spark Connect"):
        cloudpickle.dumps(consumer.foreach_batch)  # type: ignore[no-untyped-call]


def test_ledger_or_effect_that_cannot_run_on_executors_is_rejected_at_once(
    spark: "SparkSession", ledger: PostgresLedger, tmp_path: Path
) -> None:
    lock = threading.Lock()

    def effect(_: Any, rows: pa.Table) -> None:
        with lock:
            rows.validate()

    def make(ledger: Any = ledger, **options: Any) -> IdempotentSink:
        given = {"effect": insert_values("%s"), "brokers": known, **options}
        return IdempotentSink(ledger, GROUP, effect_on="executors", **given)

    with pytest.raises(ConfigurationError, match=r"sends effect to the executors, .*lock"):
        make(effect=effect)
    with (
        SQLiteLedger(tmp_path / "a.db") as sqlite,
        pytest.raises(ConfigurationError, match="needs a ledger on a server"),
    ):
        make(sqlite)
    with pytest.raises(ConfigurationError, match='needs progress="offsets"'):
        make(progress="batches", brokers=None)
    rows = spark.createDataFrame([(TOPIC, 0, 0)], "topic string, partition int, offset bigint")
    with pytest.raises(UsageError, match="only inside a streaming query"):
        make().foreach_batch(rows, 0)


KEY = PartitionKey(ID, TOPIC, 0)


def task_of(ledger: PostgresLedger, effect: Effect | None = None, **changes: Any) -> Task:
    given: dict[str, Any] = {
        "ledger": ledger,
        "group": GROUP,
        "plan": Planned({(TOPIC, 0): Range(0, 10)}),
        "ids": {TOPIC: ID},
        "brokers": known,
        **changes,
    }
    given.setdefault("started", {KEY: given["plan"].starts[TOPIC, 0]})
    return Task(work=Work(effect=effect or insert_values("%s")), **given)


def rows_of(count: int) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "topic": [TOPIC] * count,
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "value": [f"order {n}" for n in range(count)],
        }
    )


def test_two_concurrent_runs_of_a_task_commit_once(database: PostgresDatabase) -> None:
    both = threading.Barrier(2)

    def effect(connection: Any, rows: pa.Table) -> None:
        insert_values("%s")(connection, rows)

    def ids(topics: Collection[str]) -> dict[str, bytes]:
        both.wait(PATIENCE_S)
        return known(topics)

    def commit(_: int) -> Committed:
        task = task_of(database.ledger(), effect=effect, brokers=ids)
        return committed_of(pa.Table.from_batches(task(iter([rows_of(10)]))))

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(commit, range(2))) == [
            (Counts(10, 0, 0, 0), {(TOPIC, 0)}),
            (Counts(10, 10, 10, 0), {(TOPIC, 0)}),
        ]
    assert len(effects(database)) == 10


def test_task_whose_batch_starts_after_the_mark_is_rejected(
    database: PostgresDatabase, ledger: PostgresLedger
) -> None:
    """The database was restored from a backup, or is another one."""
    late = Planned({(TOPIC, 0): Range(5, 10)})
    rows = rows_of(10).slice(5)
    with pytest.raises(LedgerError, match="orders-0 went back to 0, and the batch begins at 5"):
        list(task_of(database.ledger(), plan=late)(iter([rows])))
    assert effects(database) == []
    assert marks(ledger) == {}
    with ledger.transaction(GROUP) as transaction:
        transaction.advance({KEY: 5})
    list(task_of(database.ledger(), plan=late)(iter([rows])))
    assert len(effects(database)) == 5


def test_task_without_dropped_rows_is_rejected_if_the_mark_went_back(
    database: PostgresDatabase, ledger: PostgresLedger
) -> None:
    """The driver dropped rows below a mark of 5, and the database was restored before the task.

    The batch begins at 0, like the restored mark, so nothing seemed to be skipped.
    """
    rows = rows_of(10).slice(5)
    with pytest.raises(LedgerError, match="orders-0 went back to 0, and the batch begins at 5"):
        list(task_of(database.ledger(), started={KEY: 5})(iter([rows])))
    assert effects(database) == []
    assert marks(ledger) == {}


def test_reports_of_tasks_are_added_up() -> None:
    plan = Planned({(TOPIC, 0): Range(0, 10), (TOPIC, 1): Range(0, 10)})
    reports = [
        _report(Committed(Counts(7, 6, 5, 1), plan.ranges.keys())),
        _report(Committed(Counts(), set())),
        _report(Committed(Counts(1, 1, 1, 0), {("b", 0)})),
    ]
    assert committed_of(pa.Table.from_batches(reports)) == (
        Counts(8, 7, 6, 1),
        {(TOPIC, 0), (TOPIC, 1), ("b", 0)},
    )


def test_rows_beyond_the_memory_limit_are_read_from_a_file() -> None:
    batches = [rows_of(1_000) for _ in range(20)]
    wanted = pa.Table.from_batches(batches)
    before = pa.total_allocated_bytes()
    for memory_bytes in (0, wanted.nbytes // 2, wanted.nbytes):
        with spooled(iter(batches), memory_bytes) as rows:
            assert rows.equals(wanted)
            assert pa.total_allocated_bytes() - before < wanted.nbytes // 10
    with spooled(iter([])) as rows:
        assert rows.num_rows == 0
