"""A query that would begin after what the ledger has is refused; nothing is passed over in silence."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import StreamingQueryException

from pykafka_core import Broker
from pykafka_core.idempotent import PartitionKey, SQLiteLedger
from spark_udfs.idempotent import IdempotentConsumer
from spark_udfs.starts import Planned, Read
from tests.support.pipeline import COLUMNS, Sent, insert_values, run, send, stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "orders"
OLD, NEW = b"o" * 16, b"n" * 16


class Query:
    """One group and one database; each run is a query of its own, with a consumer of its own."""

    def __init__(self, spark: "SparkSession", broker: Broker, home: Path) -> None:
        self._spark, self.broker, self._home = spark, broker, home
        self._sent = 0
        with closing(sqlite3.connect(home / "orders.db")) as connection, connection:
            connection.execute("CREATE TABLE effects (value TEXT)")
        broker.create_topic(TOPIC)

    def send(self, count: int) -> None:
        """Records "0", "1" and so on, over all lives of the topic."""
        values = range(self._sent, self._sent + count)
        send(self.broker.bootstrap_servers, TOPIC, [Sent(0, str(value)) for value in values])
        self._sent += count

    def make_anew(self) -> None:
        self.broker.delete_topic(TOPIC)
        self.broker.create_topic(TOPIC)

    def run(
        self, checkpoint: str, where: str = "true", start: str = "earliest", **arguments: Any
    ) -> None:
        """Up to the end of the topic."""
        address = self.broker.bootstrap_servers
        with closing(SQLiteLedger(self._home / "orders.db")) as ledger:
            consumer = IdempotentConsumer(
                ledger, "g", effect=insert_values("?"), **({"topic_ids": address} | arguments)
            )
            df = stream(self._spark, address, TOPIC, startingOffsets=start).selectExpr(*COLUMNS)
            run(df.where(where), self._home / checkpoint, consumer.foreach_batch)

    def processed(self) -> list[int]:
        with closing(sqlite3.connect(self._home / "orders.db")) as connection:
            return sorted(
                int(value) for (value,) in connection.execute("SELECT value FROM effects")
            )

    def marks(self) -> dict[PartitionKey, int]:
        ledger = SQLiteLedger(self._home / "orders.db")
        with closing(ledger), ledger.transaction("g") as transaction:
            return transaction.marks()


@pytest.fixture
def query(spark: "SparkSession", tmp_path: Path) -> Iterator[Query]:
    with Broker() as broker:
        yield Query(spark, broker, tmp_path)


def test_a_topic_made_anew_while_no_query_ran_is_not_read_from_its_middle(query: Query) -> None:
    query.send(3)
    query.run("checkpoint")
    query.make_anew()
    query.send(5)
    before = query.marks()
    for _ in range(2):
        with pytest.raises(
            StreamingQueryException, match="orders: deleted and made anew since the checkpoint"
        ):
            query.run("checkpoint")
    assert (query.processed(), query.marks()) == ([0, 1, 2], before)
    query.run("new checkpoint")
    assert query.processed() == list(range(8))


def test_a_new_checkpoint_that_begins_after_the_marks_is_data_loss(query: Query) -> None:
    query.send(3)
    query.run("first")
    query.send(2)
    said = r"(?s)orders-0: .*begins at offset 5, .*before 3: .*startingOffsets=earliest"
    with pytest.raises(StreamingQueryException, match=said):
        query.run("at the end", start="latest")
    query.send(1)
    with pytest.raises(StreamingQueryException, match=said):
        query.run("at the end", start="latest")
    assert query.processed() == [0, 1, 2]
    query.run("third")
    assert query.processed() == list(range(6))


def test_data_loss_can_be_asked_for(query: Query) -> None:
    query.send(3)
    query.run("first")
    for count in (2, 1):
        query.send(count)
        query.run("at the end", start="latest", fail_on_data_loss=False)
    assert query.processed() == [0, 1, 2, 5]


def test_a_new_group_may_begin_at_the_end(query: Query) -> None:
    query.send(3)
    for _ in range(2):
        query.run("checkpoint", start="latest")
        query.send(1)
    query.run("checkpoint", start="latest")
    assert query.processed() == [3, 4]


def test_a_topic_made_anew_begins_at_the_first_record_it_still_has(query: Query) -> None:
    query.send(3)
    query.run("first")
    query.make_anew()
    query.send(5)
    admin = AdminClient({"bootstrap.servers": query.broker.bootstrap_servers})
    for done in admin.delete_records([TopicPartition(TOPIC, 0, 2)]).values():
        done.result(60)
    with pytest.raises(StreamingQueryException, match=r"begins at offset 5, .* before 2"):
        query.run("at the end", start="latest")
    query.run("second")
    assert query.processed() == [0, 1, 2, 5, 6, 7]


def test_records_that_were_filtered_out_are_not_missed(query: Query) -> None:
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


def asked(firsts: dict[tuple[str, int], int]) -> Callable[[Any], dict[tuple[str, int], int]]:
    return lambda places: {place: firsts[place] for place in places}


def test_planned_partitions_without_a_mark_are_noted() -> None:
    marks = {PartitionKey(NEW, "a", 0): 7, PartitionKey(OLD, "a", 1): 3}
    read = Read(marks=marks, ids={"a": NEW}, log_starts=asked({}))
    plan = Planned({("a", 0): 9, ("a", 1): 2})
    assert read.unnoted(plan) == {PartitionKey(NEW, "a", 1): 2}


def test_a_life_that_the_group_has_read_or_that_begins_at_its_beginning_goes_on() -> None:
    marks = {
        PartitionKey(NEW, "a", 0): 7,
        PartitionKey(OLD, "a", 1): 3,
        PartitionKey(OLD, "b", 0): 3,
    }
    read = Read(marks=marks, ids={"a": NEW, "b": NEW, "c": NEW}, log_starts=asked({}))
    read.check_lives(Planned({("a", 0): 9, ("a", 1): 9, ("b", 0): 0, ("c", 0): 9}))
