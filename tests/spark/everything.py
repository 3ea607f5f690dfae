"""All features of `spark_udfs`, once, in a separate driver.

The driver is `python -m tests.spark.everything JSON`, with `Given`. It counts orders in two
databases, once in each, across a restart with a new checkpoint; a checkpoint that would skip some
must be refused. `check` has the expected results, for every master and version of PySpark.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from uuid import uuid4

from tests.idempotent.databases import Database, database_at
from tests.support.patience import PATIENCE_S
from tests.support.spark.pipeline import COLUMNS, ID_HEADER, run, stream
from tests.support.spark.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPIC, GROUP = "orders", "billing"
PARTITIONS, CUSTOMERS = 3, 20
INSTALMENTS = (0, 70), (70, 140)
"""New orders by number; the last 30 of an instalment's 100 records repeat earlier orders."""
FIRST_RUN = {"records": 100, "redelivered": 0, "duplicates": 30, "processed": 70}
SECOND_RUN = {"records": 200, "redelivered": 100, "duplicates": 30, "processed": 70}
EffectOn = Literal["driver", "executors"]
WHERE: tuple[EffectOn, ...] = ("driver", "executors")


class Given(NamedTuple):
    """Parameters: ``sqlite`` and ``postgres`` are addresses, ``folder`` belongs to the driver."""

    master: str
    bootstrap: str
    sqlite: str
    postgres: str
    folder: str


class Record(NamedTuple):
    """A sent record, with its place in the topic."""

    partition: int
    offset: int
    key: str
    value: str


@dataclass
class Counted:
    """Results of one sink: the counts of two runs, and the error of the refused run in between."""

    statistics: list[dict[str, int]] = field(default_factory=list)
    refused: str = ""
    rows: list[list[object]] = field(default_factory=list)
    partitions_of_calls: list[int] = field(default_factory=list)


def orders(first: int, end: int) -> Iterator[tuple[str, str]]:
    """Yield an instalment's records: customer and order."""
    repeated = [n * 11 % end for n in range((end - first) * 3 // 7)]
    for number in [*range(first, end), *repeated]:
        yield f"customer {number % CUSTOMERS}", f"order {number}"


def send(bootstrap: str, instalment: tuple[int, int]) -> list[Record]:
    """Send it, with each customer's orders in the partition that Java's producer would choose."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    sent, failed = [], []

    def note(error: Any, message: Any) -> None:
        failed.extend([error] if error else [])
        key, value = message.key().decode(), message.value().decode()
        sent.append(Record(message.partition(), message.offset(), key, value))

    for key, value in orders(*instalment):
        headers = [(ID_HEADER, value.encode())]
        producer.produce(TOPIC, value, key, headers=headers, on_delivery=note)
    assert producer.flush(PATIENCE_S) == 0
    assert not failed, failed[:3]
    return sent


class Everything:
    """A topic and a session, and the operations on them."""

    def __init__(self, spark: "SparkSession", given: Given) -> None:
        self._spark, self._given, self._home = spark, given, Path(given.folder)
        self._kept: list[str] = []
        self._counted = {where: Counted() for where in WHERE}
        for where in WHERE:
            self._database(where).run(
                "CREATE TABLE counted (place int, at bigint, value text, call text)"
            )

    def run(self) -> dict[str, object]:
        """Run everything; return the results."""
        first, second = INSTALMENTS
        sent = send(self._given.bootstrap, first)
        for where in WHERE:
            self._count(where, "first")
        self._keep_new()
        sent += send(self._given.bootstrap, second)
        for where in WHERE:
            self._counted[where].refused = self._refusal(where)
            self._count(where, "second")
            self._look_at(where)
        self._keep_new()
        return {
            "application": self._spark.sparkContext.applicationId,
            "spark": self._spark.version,
            "workers": self._versions_of_workers(),
            "processes": self._executor_processes(),
            "is_configured": self._is_configured(),
            "sent": sorted(sent),
            "assigned": self._assigned(),
            "first_of_each": self._first_of_each(),
            "kept": sorted(self._kept),
            **{where: vars(counted) for where, counted in self._counted.items()},
        }

    def _database(self, where: EffectOn) -> Database:
        return database_at(self._given.sqlite if where == "driver" else self._given.postgres)

    def _stream(self, **options: object) -> "DataFrame":
        df = stream(self._spark, self._given.bootstrap, TOPIC, **options)
        return df.selectExpr(*COLUMNS)

    def _count(self, where: EffectOn, checkpoint: str, start: str = "earliest") -> None:
        """Count the records in one database, in several batches."""
        from spark_udfs import IdempotentSink, message_header

        df = self._stream(startingOffsets=start, maxOffsetsPerTrigger=120)
        database = self._database(where)
        with closing(database.ledger()) as ledger:
            sink = IdempotentSink(
                ledger,
                GROUP,
                message_header(ID_HEADER),
                effect=inserting(database.placeholder),
                brokers=self._given.bootstrap,
                effect_on=where,
            )
            run(df, self._home / where / checkpoint, sink.foreach_batch)
        found = sink.statistics()
        self._counted[where].statistics.append({name: getattr(found, name) for name in FIRST_RUN})

    def _refusal(self, where: EffectOn) -> str:
        """Return the error of a query that would start after orders that are not counted yet."""
        from pyspark.errors import StreamingQueryException

        try:
            self._count(where, "at the end", "latest")
        except StreamingQueryException as error:
            return "\n".join(re.findall(r"DataLossError: .*", str(error)))
        return ""

    def _look_at(self, where: EffectOn) -> None:
        counted, database = self._counted[where], self._database(where)
        rows = database.run("SELECT place, at, value FROM counted ORDER BY place, at")
        counted.rows = [list(row) for row in rows]
        calls = database.run("SELECT count(DISTINCT place) FROM counted GROUP BY call")
        counted.partitions_of_calls = sorted({number for (number,) in calls})

    def _keep_new(self) -> None:
        """Continue with a query that keeps one row of each order."""
        from spark_udfs import dedup_stream, message_header

        def collect(df: "DataFrame", _: int) -> None:
            self._kept.extend(row["value"] for row in df.collect())

        df = self._stream().withColumn("id", message_header(ID_HEADER))
        new = dedup_stream(df, "id", store=self._home / "store")
        run(new, self._home / "dedup", collect)

    def _table(self) -> "DataFrame":
        reader = self._spark.read.format("kafka").option("subscribe", TOPIC)
        df = reader.option("kafka.bootstrap.servers", self._given.bootstrap).load()
        return df.selectExpr("partition", "offset", "CAST(key AS STRING)", "CAST(value AS STRING)")

    def _assigned(self) -> list[list[int]]:
        """Return each record's partition, as stored and according to two functions."""
        from spark_udfs import kafka_partition, with_kafka_partition

        df = with_kafka_partition(self._table(), num_partitions=PARTITIONS, out="added")
        df = df.select("partition", "added", kafka_partition("key", PARTITIONS).alias("computed"))
        return sorted(list(row) for row in df.collect())

    def _first_of_each(self) -> list[list[object]]:
        from spark_udfs import dedup_batch

        firsts = dedup_batch(self._table(), "value", keep="first", order_by="offset")
        return sorted(list(row) for row in firsts.collect())

    def _versions_of_workers(self) -> list[str]:
        from pyspark.sql import functions as F

        @F.udf("string")
        def version(_: int) -> str:
            import pyspark

            return str(pyspark.__version__)

        rows = self._spark.range(4).select(version("id").alias("version")).distinct().collect()
        return [row["version"] for row in rows]

    def _executor_processes(self) -> int:
        """Return the number of executors; the status also lists the driver's block manager."""
        context: Any = self._spark.sparkContext
        return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1

    def _is_configured(self) -> bool:
        """Return whether a running session is checked for the connector, and used."""
        from pyspark.sql import SparkSession

        from spark_udfs import configure_spark

        return configure_spark(SparkSession.builder, kafka=True).getOrCreate() is self._spark


def inserting(placeholder: str) -> Callable[[Any, Any], None]:
    """Return the effect: a row for each record, with the number of the call."""
    insert = f"INSERT INTO counted VALUES ({', '.join([placeholder] * 4)})"

    def effect(connection: Any, rows: Any) -> None:
        call = uuid4().hex
        columns = [rows[name].to_pylist() for name in ("partition", "offset", "value")]
        values = [(*row, call) for row in zip(*columns, strict=True)]
        connection.cursor().executemany(insert, values)

    return effect


def check(found: dict[str, Any]) -> None:
    """Check that each order is there once, in its customer's partition, and nothing is skipped."""
    sent = [Record(*record) for record in found["sent"]]
    produced = sorted(one for instalment in INSTALMENTS for one in orders(*instalment))
    assert sorted((one.key, one.value) for one in sent) == produced
    # A customer's orders are in one partition, so the first of equal ones has the lowest offset.
    firsts = {one.value: one for one in sorted(sent, reverse=True)}
    assert found["is_configured"]
    assert len(found["assigned"]) == len(sent)
    assert all(len(set(places)) == 1 for places in found["assigned"])
    assert found["first_of_each"] == sorted(map(list, firsts.values()))
    assert found["kept"] == sorted(firsts)
    rows = sorted([one.partition, one.offset, one.value] for one in firsts.values())
    for where in WHERE:
        counted = Counted(**found[where])
        assert "offsets" in counted.refused
        assert counted.rows == rows
        assert counted.statistics == [FIRST_RUN, SECOND_RUN]
    # Three tasks, because Spark reads three partitions: after a shuffle there would be two.
    assert Counted(**found["executors"]).partitions_of_calls == [1]


def main(given: Given) -> None:
    """Print the outcome."""
    spark = start_session(Path(given.folder), given.master)
    outcome = Everything(spark, given).run()
    spark.stop()
    print(json.dumps(outcome))


if __name__ == "__main__":
    main(Given(**json.loads(sys.argv[1])))
