"""The idempotent consumer in `foreachBatch`: its counts, and its errors."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import Row
from pyspark.sql import functions as F

from pykafka_core.errors import ConfigurationError, ConsumerError, MessageIdError
from pykafka_core.idempotent import SQLiteLedger
from spark_udfs import fingerprint
from spark_udfs.sink.brokers import KafkaBrokers
from spark_udfs.sink.message_ids import check_ids, message_header, usable
from spark_udfs.sink.rows.micro_batch import Rows
from spark_udfs.sink.sink import IdempotentSink
from spark_udfs.sink.statistics import Statistics
from tests.support.brokers import Brokers, Serve
from tests.support.patience import exactly
from tests.support.spark.pipeline import COLUMNS, Sent, insert_values, run, send, stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "orders"
SOURCE = (
    "topic string, partition int, offset bigint, value binary, "
    "headers array<struct<key: string, value: binary>>"
)
effect = insert_values("?")


@pytest.fixture
def broker(serve: Serve) -> Iterator[Brokers]:
    with serve() as broker:
        broker.create_topic(TOPIC, partitions=2)
        yield broker


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SQLiteLedger]:
    with closing(sqlite3.connect(tmp_path / "orders.db")) as connection, connection:
        connection.execute("CREATE TABLE effects (value TEXT)")
    ledger = SQLiteLedger(tmp_path / "orders.db")
    yield ledger
    ledger.close()


def effects(tmp_path: Path) -> list[str]:
    with closing(sqlite3.connect(tmp_path / "orders.db")) as connection:
        return [value for (value,) in connection.execute("SELECT value FROM effects")]


def known(topics: Iterable[str]) -> dict[str, bytes]:
    """Return topic ids without a broker."""
    return dict.fromkeys(topics, b"a" * 16)


def twice_each(count: int) -> list[Sent]:
    """Return each record twice, in different partitions, as after a change of the partitioner."""
    first = [Sent(n % 2, f"order {n}", f"id {n}") for n in range(count)]
    return first + [record._replace(partition=1 - record.partition) for record in first]


def consumer_of(broker: Brokers, ledger: SQLiteLedger, ids: Any = None) -> IdempotentSink:
    return IdempotentSink(ledger, "billing", ids, effect=effect, brokers=broker.bootstrap_servers)


def test_ids_in_a_header_count_once_over_batches_and_partitions(
    spark: "SparkSession", broker: Brokers, ledger: SQLiteLedger, tmp_path: Path
) -> None:
    send(broker.bootstrap_servers, TOPIC, twice_each(50))
    df = stream(spark, broker.bootstrap_servers, TOPIC, maxOffsetsPerTrigger=30)
    consumer = consumer_of(broker, ledger, message_header("message-id"))
    run(df.selectExpr(*COLUMNS), tmp_path / "checkpoint", consumer.foreach_batch)
    assert sorted(effects(tmp_path)) == sorted(f"order {n}" for n in range(50))
    assert consumer.statistics() == Statistics(
        batches=4, records=100, redelivered=0, duplicates=50, processed=50
    )


def test_without_ids_every_record_counts_and_redelivery_does_not(
    spark: "SparkSession", broker: Brokers, ledger: SQLiteLedger, tmp_path: Path
) -> None:
    send(broker.bootstrap_servers, TOPIC, twice_each(20))
    df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr(*COLUMNS)
    first = consumer_of(broker, ledger)
    run(df, tmp_path / "checkpoint", first.foreach_batch)
    second = consumer_of(broker, ledger)
    run(df, tmp_path / "another checkpoint", second.foreach_batch)
    assert len(effects(tmp_path)) == 40
    assert second.statistics() == Statistics(batches=1, records=40, redelivered=40)


def test_marks_of_a_deleted_topic_do_not_apply_to_its_successor(
    spark: "SparkSession", broker: Brokers, ledger: SQLiteLedger, tmp_path: Path
) -> None:
    for life in ("first", "second"):
        send(broker.bootstrap_servers, TOPIC, [Sent(0, f"{life} {n}") for n in range(3)])
        df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr(*COLUMNS)
        run(df, tmp_path / life, consumer_of(broker, ledger).foreach_batch)
        broker.delete_topic(TOPIC)
        broker.create_topic(TOPIC, partitions=2)
    assert effects(tmp_path) == [f"{life} {n}" for life in ("first", "second") for n in range(3)]


def test_restored_checkpoint_loses_nothing_although_its_batch_numbers_are_used(
    spark: "SparkSession", broker: Brokers, ledger: SQLiteLedger, tmp_path: Path
) -> None:
    """Batch 1 is planned again and is larger: offsets decide what is skipped, never its number."""
    checkpoint = tmp_path / "checkpoint"
    df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr(*COLUMNS)
    consumer = consumer_of(broker, ledger)
    for n in range(2):
        send(broker.bootstrap_servers, TOPIC, [Sent(0, f"order {n}")])
        run(df, checkpoint, consumer.foreach_batch)
    for log in ("offsets", "commits"):
        (checkpoint / log / "1").unlink()
        (checkpoint / log / ".1.crc").unlink(missing_ok=True)
    send(broker.bootstrap_servers, TOPIC, [Sent(0, "order 2")])
    run(df, checkpoint, consumer.foreach_batch)
    assert effects(tmp_path) == ["order 0", "order 1", "order 2"]


def test_shuffled_rows_reach_the_effect_in_the_order_of_the_log(
    spark: "SparkSession", broker: Brokers, ledger: SQLiteLedger, tmp_path: Path
) -> None:
    records = [Sent(p, f"{p}-{n:03}") for p in (0, 1) for n in range(100)]
    send(broker.bootstrap_servers, TOPIC, records)
    df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr(*COLUMNS)
    run(df.repartition(2, "value"), tmp_path / "c", consumer_of(broker, ledger).foreach_batch)
    assert effects(tmp_path) == sorted(record.value for record in records)


def test_the_effect_sees_the_columns_of_the_frame_and_no_others(
    spark: "SparkSession", broker: Brokers, ledger: SQLiteLedger, tmp_path: Path
) -> None:
    send(broker.bootstrap_servers, TOPIC, twice_each(1))
    seen: list[list[str]] = []

    def note(_: Any, table: pa.Table) -> None:
        seen.append(table.column_names)

    ids = message_header("message-id")
    consumer = IdempotentSink(ledger, "g", ids, effect=note, brokers=broker.bootstrap_servers)
    df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr(*COLUMNS)
    run(df, tmp_path / "c", consumer.foreach_batch)
    assert seen == [["topic", "partition", "offset", "value", "headers"]]


def test_batches_without_offsets_are_identified_by_their_number(
    spark: "SparkSession", broker: Brokers, ledger: SQLiteLedger, tmp_path: Path
) -> None:
    send(broker.bootstrap_servers, TOPIC, twice_each(10))
    consumer = IdempotentSink(ledger, "billing", effect=effect, progress="batches")
    df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr("CAST(value AS STRING) AS value")
    crashes = iter([True])

    def batch(rows: Any, batch_id: int) -> None:
        consumer.foreach_batch(rows, batch_id)
        if next(crashes, False):
            raise RuntimeError("after the commit")

    with pytest.raises(Exception, match="after the commit"):
        run(df, tmp_path / "checkpoint", batch)
    run(df, tmp_path / "checkpoint", batch)
    assert len(effects(tmp_path)) == 20
    assert consumer.statistics().redelivered == 20
    with pytest.raises(
        Exception, match=r"(?s)group 'billing' are those of query .* processed again"
    ):
        run(df, tmp_path / "new checkpoint", consumer.foreach_batch)
    assert len(effects(tmp_path)) == 20
    again = IdempotentSink(
        ledger, "billing", effect=effect, progress="batches", allow_new_query=True
    )
    run(df, tmp_path / "new checkpoint", again.foreach_batch)
    assert len(effects(tmp_path)) == 40


@pytest.mark.parametrize(
    ("columns", "ids", "problem"),
    [
        (["value"], None, "no column topic: .* no column partition: .* no column offset"),
        (
            ["topic", "CAST(partition AS BIGINT) AS partition", "offset", "value"],
            None,
            "column partition must be int, not bigint",
        ),
        (["topic", "partition", "offset", "value"], "id", "no column 'id'"),
        ([*COLUMNS, "1 AS value"], None, "two columns value: rename one"),
        ([*COLUMNS, "1 AS Topic"], None, "column Topic has the name of .*: rename it"),
        ([*COLUMNS, "value AS ID", "value AS id"], "id", "column ID has the name of .*: rename it"),
        ([*COLUMNS, "value AS __message_id"], "__message_id", "the sink's own, .* rename yours"),
        ([*COLUMNS, "1 AS __message_id"], message_header, "the sink's own, .* rename yours"),
        (["topic", "partition", "offset", "value"], "offset", "binary or string, not bigint"),
        (["topic", "partition", "offset"], message_header, "ids cannot be computed .*headers"),
        (["topic", "partition", "nullif(offset, 0) AS offset", "value"], None, "offset has nulls"),
        (COLUMNS, message_header, "offset 1 of orders-0: its message id is null"),
        (
            COLUMNS,
            lambda name: fingerprint(F.nullif("offset", F.lit(0)), F.lit(name)),
            "offset 0 of orders-0: its message id is null",
        ),
        (
            ["topic", "partition", "offset", "value", "repeat('x', 1025) AS id"],
            "id",
            "offset 0 of orders-0: its message id has 1025 bytes; .*fingerprint",
        ),
        (
            ["topic", "partition", "offset", "value", "'' AS id"],
            "id",
            "offset 0 of orders-0: its message id has 0 bytes",
        ),
    ],
)
def test_unidentifiable_rows_are_rejected_and_nothing_is_processed(
    spark: "SparkSession",
    ledger: SQLiteLedger,
    tmp_path: Path,
    columns: list[str],
    ids: Any,
    problem: str,
) -> None:
    header = Row(key="message-id", value=b"id")
    rows = spark.createDataFrame(
        [(TOPIC, 0, 0, b"with", [header]), (TOPIC, 0, 1, b"without", [])], SOURCE
    )
    column = ids("message-id") if callable(ids) else ids
    consumer = IdempotentSink(ledger, "g", column, effect=effect, brokers=known)
    with pytest.raises((ConfigurationError, MessageIdError), match=f"(?s){problem}") as refusal:
        consumer.foreach_batch(rows.selectExpr(*columns), 7)
    assert "Batch 7 was not processed for group 'g'" in refusal.value.__notes__[0]
    assert effects(tmp_path) == []
    with ledger.transaction("g") as transaction:
        assert transaction.marks() == {}


def test_failed_query_reports_the_cause_and_the_remedy(
    spark: "SparkSession", broker: Brokers, ledger: SQLiteLedger, tmp_path: Path
) -> None:
    send(broker.bootstrap_servers, TOPIC, [Sent(0, "without an id")])
    df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr(*COLUMNS)
    consumer = consumer_of(broker, ledger, message_header("message-id"))
    with pytest.raises(
        StreamingQueryException, match=r"(?s)offset 0 of orders-0: .*null.*Fix the cause"
    ):
        run(df, tmp_path / "c", consumer.foreach_batch)


@pytest.mark.parametrize("ending", [SystemExit, KeyboardInterrupt])
def test_an_effect_that_would_end_the_process_ends_the_query(
    spark: "SparkSession",
    broker: Brokers,
    ledger: SQLiteLedger,
    tmp_path: Path,
    ending: type[BaseException],
) -> None:
    send(broker.bootstrap_servers, TOPIC, [Sent(0, "order")])

    def end(connection: Any, rows: pa.Table) -> None:
        effect(connection, rows)
        raise ending

    df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr(*COLUMNS)
    sink = IdempotentSink(ledger, "g", effect=end, brokers=broker.bootstrap_servers)
    with pytest.raises(StreamingQueryException, match=f"{ending.__name__} was raised while"):
        run(df, tmp_path / "c", sink.foreach_batch)
    rows = spark.createDataFrame([(TOPIC, 0, 0, b"order", [])], SOURCE)
    by_hand = IdempotentSink(ledger, "g", effect=end, brokers=known)
    with pytest.raises(ending):
        by_hand.foreach_batch(rows, 0)
    assert effects(tmp_path) == []


def test_invalid_arguments_are_all_rejected_by_name(ledger: SQLiteLedger) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        IdempotentSink(
            "orders.db",  # type: ignore[arg-type]
            "",
            5,  # type: ignore[arg-type]
            effect=5,  # type: ignore[arg-type]
            brokers=5,  # type: ignore[arg-type]
            fail_on_data_loss="no",  # type: ignore[arg-type]
            progress="epochs",  # type: ignore[arg-type]
            allow_new_query=True,
        )
    named = [problem.split()[0] for problem in refusal.value.problems]
    assert named == [
        "ledger",
        "group",
        "ids",
        "effect",
        "progress",
        "brokers",
        "fail_on_data_loss",
        "allow_new_query",
    ]
    ids: Any = message_header
    with pytest.raises(ConfigurationError, match="ids is the name of a column, a Column or None"):
        IdempotentSink(ledger, "g", ids, effect=effect, brokers="x:1")
    with pytest.raises(ConfigurationError, match="brokers is needed"):
        IdempotentSink(ledger, "g", effect=effect)
    with pytest.raises(ConfigurationError, match="brokers has no effect"):
        IdempotentSink(ledger, "g", effect=effect, brokers="x:1", progress="batches")


def test_settings_unknown_to_the_client_are_named(
    spark: "SparkSession", ledger: SQLiteLedger
) -> None:
    rows = spark.createDataFrame([(TOPIC, 0, 0, b"order", [])], SOURCE)
    settings = {"bootstrap.servers": "127.0.0.1:1", "nope": 1}
    consumer = IdempotentSink(ledger, "g", effect=effect, brokers=settings)
    with pytest.raises(ConfigurationError, match=r"no settings of librdkafka: .*nope"):
        consumer.foreach_batch(rows, 0)


@pytest.mark.parametrize("told", [{}, {TOPIC: "id"}, {TOPIC: b"short"}])
def test_function_that_returns_no_topic_id_is_reported(
    spark: "SparkSession", ledger: SQLiteLedger, told: Any
) -> None:
    rows = spark.createDataFrame([(TOPIC, 0, 0, b"order", [])], SOURCE)
    consumer = IdempotentSink(ledger, "g", effect=effect, brokers=lambda _: told)
    with pytest.raises(ConsumerError, match="brokers returned no id of orders: 16 bytes"):
        consumer.foreach_batch(rows, 0)


def test_row_without_an_id_is_named_by_its_number_if_it_has_no_offset() -> None:
    table = pa.table({"offset": [7, 8], "id": ["a", None]})
    with pytest.raises(MessageIdError, match="row 1 of the batch: its message id is null"):
        check_ids(Rows.all_of(table), table["id"], usable(table["id"]))


def test_unreachable_broker_is_named_and_nothing_is_processed(
    spark: "SparkSession", broker: Brokers, ledger: SQLiteLedger
) -> None:
    rows = spark.createDataFrame([(TOPIC, 0, 0, b"order", [])], SOURCE)
    address = broker.bootstrap_servers
    brokers = KafkaBrokers(
        {"bootstrap.servers": address}, timeout_s=exactly(0.5, "no broker answers")
    )
    consumer = IdempotentSink(ledger, "billing", effect=effect, brokers=brokers)
    broker.close()
    with pytest.raises(ConsumerError, match=f"{address} did not return .* restart"):
        consumer.foreach_batch(rows, 0)
    with ledger.transaction("billing") as transaction:
        assert transaction.marks() == {}


def test_missing_topic_is_named(
    spark: "SparkSession", broker: Brokers, ledger: SQLiteLedger
) -> None:
    rows = spark.createDataFrame([("other", 0, 0, b"order", [])], SOURCE)
    with pytest.raises(ConsumerError, match=r"ids of other: .*nknown topic"):
        consumer_of(broker, ledger).foreach_batch(rows, 0)


def test_topic_recreated_during_the_read_stops_the_batch(
    spark: "SparkSession", broker: Brokers, ledger: SQLiteLedger, tmp_path: Path
) -> None:
    send(broker.bootstrap_servers, TOPIC, [Sent(0, "order")])
    lives = iter([b"a" * 16, b"b" * 16])
    consumer = IdempotentSink(
        ledger, "g", effect=effect, brokers=lambda topics: dict.fromkeys(topics, next(lives))
    )
    df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr(*COLUMNS)
    with pytest.raises(StreamingQueryException, match="orders: deleted and recreated while"):
        run(df, tmp_path / "c", consumer.foreach_batch)
    assert effects(tmp_path) == []


def test_a_sink_starts_again_with_a_topic_that_was_recreated(
    spark: "SparkSession", broker: Brokers, ledger: SQLiteLedger, tmp_path: Path
) -> None:
    """As in a notebook, where the sink outlives the query."""
    consumer = consumer_of(broker, ledger)
    df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr(*COLUMNS)
    for life in ("first", "second"):
        send(broker.bootstrap_servers, TOPIC, [Sent(0, life)])
        run(df, tmp_path / life, consumer.foreach_batch)
        broker.delete_topic(TOPIC)
        broker.create_topic(TOPIC, partitions=2)
    assert effects(tmp_path) == ["first", "second"]


@pytest.mark.parametrize("progress", ["offsets", "batches"])
def test_batch_can_be_processed_only_once_in_a_run(
    spark: "SparkSession", broker: Brokers, ledger: SQLiteLedger, tmp_path: Path, progress: Any
) -> None:
    """The second half would count as redelivered. A failed call, or a new run, may repeat it."""
    send(broker.bootstrap_servers, TOPIC, [Sent(n % 2, f"order {n}") for n in range(10)])
    df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr(*COLUMNS)
    failures = iter([True])

    def failing(connection: Any, rows: pa.Table) -> None:
        effect(connection, rows)
        if next(failures, False):
            raise ValueError("not yet")

    brokers = broker.bootstrap_servers if progress == "offsets" else None
    sink = IdempotentSink(ledger, "g", effect=failing, brokers=brokers, progress=progress)

    def again(rows: Any, batch_id: int) -> None:
        with pytest.raises(ValueError, match="not yet"):
            sink.foreach_batch(rows, batch_id)
        sink.foreach_batch(rows, batch_id)
        raise RuntimeError("after the commit")

    def in_halves(rows: Any, batch_id: int) -> None:
        for partition in (0, 1):
            sink.foreach_batch(rows.where(f"coalesce(partition, 0) = {partition}"), batch_id)

    with pytest.raises(StreamingQueryException, match="after the commit"):
        run(df, tmp_path / "c", again)
    assert len(effects(tmp_path)) == 10
    with pytest.raises(
        StreamingQueryException, match=r"(?s)batch 0 was committed already .* whole DataFrame"
    ):
        run(df, tmp_path / "c", in_halves)
    run(df, tmp_path / "c", sink.foreach_batch)
    assert len(effects(tmp_path)) == 10


def test_batch_numbers_need_a_streaming_query(spark: "SparkSession", ledger: SQLiteLedger) -> None:
    consumer = IdempotentSink(ledger, "g", effect=effect, progress="batches")
    with pytest.raises(Exception, match="only inside a streaming query"):
        consumer.foreach_batch(spark.range(1), 0)


def test_rows_without_a_usable_id_are_quarantined_with_the_batch(
    spark: "SparkSession", broker: Brokers, ledger: SQLiteLedger, tmp_path: Path
) -> None:
    """They are written in the same transaction, and once: a replay skips them by their marks."""
    sent = [Sent(n % 2, f"order {n}", f"id {n % 8}") for n in range(10)]
    sent += [Sent(0, "none"), Sent(1, "empty", ""), Sent(1, "long", "x" * 1025)]
    send(broker.bootstrap_servers, TOPIC, sent)

    def keep(connection: sqlite3.Connection, rows: pa.Table) -> None:
        values = [(f"bad: {value}",) for value in rows["value"].to_pylist()]
        connection.executemany("INSERT INTO effects VALUES (?)", values)

    df = stream(spark, broker.bootstrap_servers, TOPIC).selectExpr(*COLUMNS)
    sink = IdempotentSink(
        ledger,
        "billing",
        message_header("message-id"),
        effect=effect,
        quarantine=keep,
        brokers=broker.bootstrap_servers,
    )
    for checkpoint in ("first", "new"):
        run(df, tmp_path / checkpoint, sink.foreach_batch)
    good = [f"order {n}" for n in range(8)]
    assert sorted(effects(tmp_path)) == sorted(good + ["bad: none", "bad: empty", "bad: long"])
    assert sink.statistics() == Statistics(
        batches=2, records=26, redelivered=13, duplicates=2, quarantined=3, processed=8
    )


def test_quarantine_without_ids_is_rejected(ledger: SQLiteLedger) -> None:
    with pytest.raises(ConfigurationError, match="quarantine has no effect without ids"):
        IdempotentSink(ledger, "g", effect=effect, brokers="x:1", quarantine=effect)
