"""A query that would start after the ledger's marks is refused; nothing is skipped silently."""

import json
import shutil
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from pyspark.errors import StreamingQueryException

from pykafka_core.errors import ConsumerError, DataLossError
from pykafka_core.idempotent import PartitionKey, SQLiteLedger
from spark_udfs.sink.brokers import KafkaBrokers
from spark_udfs.sink.gap_check import Read
from spark_udfs.sink.micro_batch_plan import Planned
from spark_udfs.sink.sink import IdempotentSink
from spark_udfs.sink.statistics import Statistics
from spark_udfs.sink.topic_partition import Range, TopicPartition
from tests.idempotent.kafka import add_partitions
from tests.support.brokers import Brokers, Serve
from tests.support.patience import PATIENCE_S
from tests.support.spark.pipeline import COLUMNS, Sent, insert_values, run, send, stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

TOPIC = "orders"
OLD, NEW = b"o" * 16, b"n" * 16


class Query:
    """One group and one database; each run is a separate query with a new consumer."""

    def __init__(self, spark: "SparkSession", broker: Brokers, home: Path) -> None:
        self._spark, self.broker, self._home = spark, broker, home
        self._sent = 0
        self.use_broker(broker)
        self.use_database("orders.db")
        broker.create_topic(TOPIC)

    @property
    def _arguments(self) -> dict[str, Any]:
        return {"effect": insert_values("?"), "brokers": self.broker.bootstrap_servers}

    def delete_records(self, before: int) -> None:
        deleted = confluent_kafka.TopicPartition(TOPIC, 0, before)
        for done in self._admin.delete_records([deleted]).values():
            done.result(PATIENCE_S)

    def grow(self, partitions: int) -> None:
        add_partitions(self.broker.bootstrap_servers, TOPIC, partitions)

    def use_broker(self, broker: Brokers) -> None:
        """Use this broker from now on."""
        self.broker = broker
        self._admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})

    def by_hand(self, start: int, end: int, **arguments: Any) -> None:
        """Process these offsets of partition 0, outside of a query."""
        reader = self._spark.read.format("kafka").option("subscribe", TOPIC)
        reader = reader.option("kafka.bootstrap.servers", self.broker.bootstrap_servers)
        for option, offset in (("startingOffsets", start), ("endingOffsets", end)):
            reader = reader.option(option, json.dumps({TOPIC: {"0": offset}}))
        with closing(SQLiteLedger(self.database)) as ledger:
            sink = IdempotentSink(ledger, "g", **self._arguments | arguments)
            sink.foreach_batch(reader.load().selectExpr(*COLUMNS[:4]), 0)

    def use_database(self, name: str) -> None:
        """Use this database from now on; a new one does not contain a ledger yet."""
        self.database = self._home / name
        with closing(sqlite3.connect(self.database)) as connection, connection:
            connection.execute("CREATE TABLE IF NOT EXISTS effects (value TEXT)")

    def back_up_database(self, name: str) -> None:
        with (
            closing(sqlite3.connect(self.database)) as here,
            closing(sqlite3.connect(self._home / name)) as there,
        ):
            here.backup(there)

    def send(self, count: int, *, topic: str = TOPIC, partition: int = 0) -> None:
        """Send records "0", "1" and so on, across all topics and recreated topics."""
        values = range(self._sent, self._sent + count)
        records = [Sent(partition, str(value)) for value in values]
        send(self.broker.bootstrap_servers, topic, records)
        self._sent += count

    def make_anew(self) -> None:
        self.broker.delete_topic(TOPIC)
        self.broker.create_topic(TOPIC)

    def run(
        self,
        checkpoint: str,
        where: str = "true",
        start: str = "earliest",
        group: str = "g",
        **arguments: Any,
    ) -> None:
        """Run to the end of the topic."""
        df = self.stream(startingOffsets=start).where(where)
        self.run_frame(df, checkpoint, group, **arguments)

    def stream(self, **options: object) -> "DataFrame":
        return stream(self._spark, self.broker.bootstrap_servers, TOPIC, **options).selectExpr(
            *COLUMNS
        )

    @property
    def source(self) -> "DataStreamReader":
        reader = self._spark.readStream.format("kafka").option("includeHeaders", "true")
        return reader.option("kafka.bootstrap.servers", self.broker.bootstrap_servers)

    def run_frame(
        self, df: "DataFrame", checkpoint: str, group: str = "g", **arguments: Any
    ) -> Statistics:
        with closing(SQLiteLedger(self.database)) as ledger:
            consumer = IdempotentSink(
                ledger,
                group,
                **self._arguments | arguments,
            )
            run(df, self._home / checkpoint, consumer.foreach_batch)
            return consumer.statistics()

    def processed(self) -> list[int]:
        with closing(sqlite3.connect(self.database)) as connection:
            return sorted(
                int(value) for (value,) in connection.execute("SELECT value FROM effects")
            )

    def marks(self) -> dict[PartitionKey, int]:
        ledger = SQLiteLedger(self.database)
        with closing(ledger), ledger.transaction("g") as transaction:
            return transaction.marks()


@pytest.fixture
def query(serve: Serve, spark: "SparkSession", tmp_path: Path) -> Iterator[Query]:
    with serve() as broker:
        yield Query(spark, broker, tmp_path)


def test_topic_recreated_between_runs_is_not_read_from_its_middle(query: Query) -> None:
    query.send(3)
    query.run("checkpoint")
    query.make_anew()
    query.send(5)
    before = query.marks()
    for _ in range(2):
        with pytest.raises(
            StreamingQueryException, match="orders: deleted and recreated since the checkpoint"
        ):
            query.run("checkpoint")
    assert (query.processed(), query.marks()) == ([0, 1, 2], before)
    query.run("new checkpoint")
    assert query.processed() == list(range(8))


def test_new_checkpoint_that_starts_after_the_marks_is_data_loss(query: Query) -> None:
    query.send(3)
    query.run("first")
    query.send(2)
    said = r"(?s)offsets 3 to 4 of orders-0 would be lost: .*new .*startingOffsets=earliest"
    with pytest.raises(StreamingQueryException, match=said):
        query.run("at the end", start="latest")
    query.send(1)
    with pytest.raises(StreamingQueryException, match=said):
        query.run("at the end", start="latest")
    assert query.processed() == [0, 1, 2]
    query.run("third")
    assert query.processed() == list(range(6))


def test_data_loss_can_be_accepted(query: Query) -> None:
    query.send(3)
    query.run("first")
    for count in (2, 1):
        query.send(count)
        query.run("at the end", start="latest", fail_on_data_loss=False)
    assert query.processed() == [0, 1, 2, 5]


def test_new_group_may_start_at_the_end(query: Query) -> None:
    query.send(3)
    for _ in range(2):
        query.run("checkpoint", start="latest")
        query.send(1)
    query.run("checkpoint", start="latest")
    assert query.processed() == [3, 4]


def test_recreated_topic_starts_at_its_first_remaining_record(query: Query) -> None:
    query.send(3)
    query.run("first")
    query.make_anew()
    query.send(5)
    query.delete_records(2)
    with pytest.raises(StreamingQueryException, match="offsets 2 to 4 of orders-0 would be lost"):
        query.run("at the end", start="latest")
    query.run("second")
    assert query.processed() == [0, 1, 2, 5, 6, 7]


def test_filtered_records_do_not_count_as_lost(query: Query) -> None:
    query.send(3)
    query.run("first")
    query.make_anew()
    query.send(3)
    wanted = "CAST(value AS int) >= 7"
    query.run("second", wanted)
    for count in (4, 2):
        query.send(count)
        query.run("second", wanted)
    query.run("third", wanted)
    assert query.processed() == [0, 1, 2, *range(7, 12)]


@pytest.mark.parametrize("fail_on_data_loss", [True, False])
def test_log_that_lost_its_end_is_rejected_because_its_offsets_are_reused(
    serve: Serve, spark: "SparkSession", tmp_path: Path, fail_on_data_loss: bool
) -> None:
    """The broker's data are restored from a copy; later records would count as redelivered."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    with serve(data) as broker:
        query = Query(spark, broker, tmp_path)
        query.send(5)
    shutil.copytree(data, copy)
    with serve(data) as broker:
        query.use_broker(broker)
        query.send(5)
        query.run("first")
    shutil.rmtree(data)
    copy.rename(data)
    with serve(data) as broker:
        query.use_broker(broker)
        query.send(4)
        said = r"(?s)orders-0 ends at offset 9, and all before 10 was processed: .* new group"
        with pytest.raises(StreamingQueryException, match=said):
            query.run("second", fail_on_data_loss=fail_on_data_loss)
        assert query.processed() == list(range(10))
        query.run("third", start=json.dumps({TOPIC: {"0": 5}}), group="new")
        assert query.processed() == list(range(14))


def test_log_that_loses_its_end_while_a_checkpoint_catches_up_is_rejected(query: Query) -> None:
    """After the first batch, log ends are requested only if the batch ends before the mark."""
    query.send(6)
    query.run("first")
    asked: list[list[TopicPartition]] = []

    class Brokers(KafkaBrokers):
        def log_ranges(self, places: Collection[TopicPartition]) -> dict[TopicPartition, Range]:
            asked.append(list(places))
            there = super().log_ranges(places)
            return there if len(asked) == 1 else {at: Range(0, 5) for at in there}

    brokers = Brokers(query.broker.bootstrap_servers)
    df = query.stream(maxOffsetsPerTrigger=2)
    with pytest.raises(StreamingQueryException, match="orders-0 ends at offset 5, and all before"):
        query.run_frame(df, "second", brokers=brokers)
    assert len(asked) == 3, "batch 0, batch 1, and batch 1 once more with the group locked"
    asked.clear()
    query.send(6)
    query.run_frame(df, "second", brokers=brokers, group="g")
    assert len(asked) == 1, "where nothing is read again, when the query starts"
    assert query.processed() == list(range(12))


def test_manual_rows_that_start_after_the_marks_are_data_loss(query: Query) -> None:
    query.send(10)
    query.by_hand(0, 5)
    with pytest.raises(
        DataLossError, match=r"offsets 5 to 7 of orders-0 would be lost: .*Outside of a query"
    ):
        query.by_hand(8, 10)
    assert query.processed() == list(range(5))
    query.by_hand(4, 8)
    assert query.processed() == list(range(8))
    query.by_hand(9, 10, fail_on_data_loss=False)
    assert query.processed() == [*range(8), 9]


def test_manual_rows_after_a_marker_must_start_with_the_record_before_it(query: Query) -> None:
    """A record seems to be skipped; the error explains how to proceed if there is none."""
    producer = Producer(
        {"bootstrap.servers": query.broker.bootstrap_servers, "transactional.id": "t"}
    )
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for value in range(5):
        producer.produce(TOPIC, str(value), partition=0)
    producer.commit_transaction(PATIENCE_S)
    query.by_hand(0, 6)
    producer.begin_transaction()
    producer.produce(TOPIC, "5", partition=0)
    producer.commit_transaction(PATIENCE_S)
    with pytest.raises(
        DataLossError,
        match=r"offsets 5 to 5 of orders-0 .*a transaction's marker .* begin with the last record before them, which",
    ):
        query.by_hand(6, 8)
    assert query.processed() == list(range(5))
    query.by_hand(4, 8)
    assert query.processed() == list(range(6))


def test_manual_rows_of_a_topic_recreated_before_the_read_are_rejected(
    query: Query,
) -> None:
    query.send(3)
    lives = iter([OLD, NEW])
    with pytest.raises(ConsumerError, match="orders: deleted and recreated"):
        query.by_hand(0, 3, brokers=lambda topics: dict.fromkeys(topics, next(lives)))
    assert (query.processed(), query.marks()) == ([], {})


def test_records_deleted_by_retention_are_reported_as_deleted(query: Query) -> None:
    query.send(3)
    query.run("first")
    query.send(3)
    query.delete_records(5)
    said = r"offsets 3 to 4 of orders-0 were deleted, .* No checkpoint brings them back: fail_on"
    for start in ("earliest", "latest"):
        with pytest.raises(
            StreamingQueryException, match=said if start == "earliest" else "3 to 5"
        ):
            query.run(start, start=start)
    query.run("without", fail_on_data_loss=False)
    assert query.processed() == [0, 1, 2, 5]


def test_batch_planned_on_a_recreated_topic_does_not_skip_later_records(
    query: Query,
) -> None:
    """Its offsets would be marked as processed before the new topic has records there."""
    query.send(4)

    def crash(*_: Any) -> None:
        raise RuntimeError("crashed")

    with pytest.raises(StreamingQueryException, match="crashed"):
        query.run("checkpoint", effect=crash)
    query.make_anew()
    query.send(2)
    # Before Spark searches for the lost offsets, which takes two minutes and ends in its own error.
    for fails in ("true", "false"):
        with pytest.raises(
            StreamingQueryException, match=r"orders-0 ends at offset 2, .* up to 4: the topic"
        ):
            query.run_frame(query.stream(failOnDataLoss=fails), "checkpoint")
    query.run("new checkpoint")
    query.send(2)
    query.run("new checkpoint")
    assert query.processed() == [4, 5, 6, 7]


def test_old_checkpoint_with_a_new_ledger_is_rejected(query: Query) -> None:
    query.send(500)
    query.run("checkpoint")
    query.use_database("elsewhere.db")
    query.send(1000)
    said = r"(?s)offsets 0 to 499 of orders-0.*elsewhere\.db.* no marks of group 'g'.*startingOffsets=earliest"
    for _ in range(2):
        with pytest.raises(StreamingQueryException, match=said):
            query.run("checkpoint")
    assert (query.processed(), query.marks()) == ([], {})
    query.run("new checkpoint")
    assert query.processed() == list(range(1500))


def test_old_checkpoint_with_a_restored_ledger_is_rejected(query: Query) -> None:
    query.send(3)
    query.run("checkpoint")
    query.back_up_database("backup.db")
    query.send(2)
    query.run("checkpoint")
    query.use_database("backup.db")
    query.send(4)
    said = r"(?s)offsets 3 to 4 of orders-0.*restored from a backup.*startingOffsets=earliest"
    with pytest.raises(StreamingQueryException, match=said):
        query.run("checkpoint")
    query.run("new checkpoint")
    assert query.processed() == list(range(9))


def test_old_checkpoint_with_a_renamed_group_is_rejected(query: Query) -> None:
    query.send(3)
    query.run("checkpoint")
    query.send(2)
    with pytest.raises(StreamingQueryException, match="no marks of group 'renamed'"):
        query.run("checkpoint", group="renamed")


def test_old_checkpoint_ahead_of_its_ledger_continues_on_request(
    query: Query,
) -> None:
    query.send(3)
    query.run("checkpoint")
    query.use_database("elsewhere.db")
    query.send(2)
    query.run("checkpoint", fail_on_data_loss=False)
    query.send(1)
    query.run("checkpoint")
    assert query.processed() == [3, 4, 5]


def test_marks_advance_to_the_end_of_the_plan_even_if_the_last_rows_are_filtered_out(
    query: Query,
) -> None:
    query.send(5)
    query.run("checkpoint", "CAST(value AS int) < 2")
    assert list(query.marks().values()) == [5]
    query.send(1)
    query.run("checkpoint", "CAST(value AS int) < 2")
    assert (query.processed(), list(query.marks().values())) == ([0, 1], [6])


def test_two_streams_of_a_topic_with_equal_plans_count_every_row_of_both(query: Query) -> None:
    query.send(20)
    df = query.stream(maxOffsetsPerTrigger=5).union(query.stream(maxOffsetsPerTrigger=5))
    statistics = query.run_frame(df, "checkpoint")
    assert query.processed() == sorted([*range(20), *range(20)])
    assert (statistics.processed, statistics.redelivered) == (40, 0)


def test_two_streams_of_a_topic_with_different_plans_are_rejected(query: Query) -> None:
    query.send(20)
    df = query.stream(maxOffsetsPerTrigger=5).union(query.stream(maxOffsetsPerTrigger=10))
    said = r"(?s)two streams .* orders-0.*0 to 4.*0 to 9.*Load .* once"
    with pytest.raises(StreamingQueryException, match=said):
        query.run_frame(df, "checkpoint")
    assert query.processed() == []
    once = query.stream(maxOffsetsPerTrigger=5)
    query.run_frame(once.where("offset < 11").union(once), "loaded once")
    assert query.processed() == sorted([*range(11), *range(20)])


def test_a_pattern_finds_new_topics_and_partitions_and_counts_each_record_once(
    query: Query,
) -> None:
    source = query.source.options(subscribePattern="orders.*", startingOffsets="earliest")
    df = source.load().selectExpr(*COLUMNS)
    query.send(3)
    query.run_frame(df, "checkpoint")
    query.broker.create_topic("orders-of-others", partitions=2)
    query.grow(2)
    query.send(2, partition=1)
    query.send(2, topic="orders-of-others", partition=1)
    query.run_frame(df, "checkpoint")
    query.send(1)
    for checkpoint in ("checkpoint", "new checkpoint"):
        query.run_frame(df, checkpoint)
        assert query.processed() == list(range(8))


def test_rows_that_a_join_held_back_are_rejected(query: Query) -> None:
    query.send(3)
    left = query.stream(maxOffsetsPerTrigger=1)
    right = query.stream(maxOffsetsPerTrigger=1).selectExpr("offset AS after")
    joined = left.join(right, left["offset"] == right["after"] - 1)
    said = r"(?s)orders-0.*holds rows back.* counted rows .* as processed: a new group .*planned offsets"
    with pytest.raises(StreamingQueryException, match=said):
        query.run_frame(joined, "checkpoint")
    query.run("without the join")
    assert query.processed() == [1, 2]
    query.run("with a new group", group="new")
    assert query.processed() == [0, 1, 1, 2, 2]


def test_a_fixed_group_id_is_rejected_because_its_fetched_records_outlive_their_topic(
    query: Query,
) -> None:
    """Executors keep them for minutes. The new topic's records would count as processed unread."""
    options: dict[str, object] = {"maxOffsetsPerTrigger": 5}
    query.send(20)

    def crash(*_: Any) -> None:
        raise RuntimeError("crashed")

    with pytest.raises(StreamingQueryException, match=r"crashed|kafka\.group\.id='fixed'"):
        query.run_frame(query.stream(**options, **{"kafka.group.id": "fixed"}), "c", effect=crash)
    query.make_anew()
    query.send(20)
    with pytest.raises(StreamingQueryException, match=r"kafka\.group\.id='fixed'.* groupIdPrefix"):
        query.run_frame(query.stream(**options, **{"kafka.group.id": "fixed"}), "fixed")
    assert query.processed() == []
    query.run_frame(query.stream(**options, groupIdPrefix="orders"), "prefix")
    assert query.processed() == list(range(20, 40))


def read(marks: dict[PartitionKey, int], ids: dict[str, bytes]) -> Read:
    return Read(group="g", ledger="L", marks=marks, ids=ids, logs={})


def test_marks_of_all_planned_partitions_advance_and_never_go_back() -> None:
    marks = {PartitionKey(NEW, "a", 0): 7, PartitionKey(OLD, "a", 1): 3}
    advanced = read(marks, {"a": NEW}).advanced({("a", 0): 5, ("a", 1): 2, ("a", 2): 0})
    assert advanced == {
        PartitionKey(NEW, "a", 0): 7,
        PartitionKey(NEW, "a", 1): 2,
        PartitionKey(NEW, "a", 2): 0,
    }


def test_topic_id_that_is_known_or_that_starts_at_0_is_accepted() -> None:
    marks = {
        PartitionKey(NEW, "a", 0): 7,
        PartitionKey(OLD, "a", 1): 3,
        PartitionKey(OLD, "b", 0): 3,
    }
    plan = Planned(
        {("a", 0): Range(9, 9), ("a", 1): Range(9, 9), ("b", 0): Range(0, 4), ("c", 0): Range(9, 9)}
    )
    read(marks, {"a": NEW, "b": NEW, "c": NEW}).check_topic_ids(plan, 1)


def test_an_error_names_a_few_partitions_and_counts_the_others() -> None:
    plan = Planned({("a", number): Range(number, 9) for number in range(8)})
    marks = {PartitionKey(NEW, "a", 0): 9}
    with pytest.raises(DataLossError) as refusal:
        read(marks, {"a": NEW}).check_gaps(plan, 3)
    said = str(refusal.value)
    assert said.startswith("offsets 0 to 0 of a-1, offsets 0 to 1 of a-2, ")
    assert "offsets 0 to 4 of a-5 and of 2 more partitions would be lost" in said
