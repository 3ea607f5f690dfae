"""The whole pipeline on our broker and on Apache Kafka: `python -m bench.spark.pipeline --help`.

A producer sends records with message ids, 30 % of them twice. Spark reads them, computes their
partitions, counts each once in SQLite through the ledger, and writes the counts to a topic. One
session uses both brokers in turn; their order alternates by round. The best of the rounds is
printed: records per second from the first record sent to the last count written, and CPU times,
which are more reliable on a busy machine. Results are checked before they are counted.
"""

import argparse
import sqlite3
import tempfile
import time
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

from bench.peers.brokers import ApacheKafka, Ours, Peer, cpu_seconds
from bench.peers.work import create_topic
from bench.spark_session import jvm_of, quiet_session
from pykafka_core.idempotent import SQLiteLedger
from spark_udfs import (
    IdempotentSink,
    message_header,
    with_kafka_partition,
)

PARTITIONS, BATCHES, KEYS = 6, 4, 1000


class Figures(NamedTuple):
    """Figures of one run, in seconds."""

    wall: float
    jvm_cpu: float
    driver_cpu: float
    broker_cpu: float


def run(spark: SparkSession, jvm: int, peer: Peer, records: int, folder: Path) -> Figures:
    """Run the pipeline once, with new topics, a new checkpoint and a new database."""
    topic = folder.name
    for name in (topic, f"{topic}-counts"):
        create_topic(peer.bootstrap, name, PARTITIONS)

    def now() -> Figures:
        return Figures(
            time.monotonic(), cpu_seconds(jvm), time.process_time(), cpu_seconds(peer.pid)
        )

    before = now()
    sent = send(peer, topic, records)
    count(spark, peer, topic, sent, folder)
    after = now()
    check(folder / "counts.db", records)
    return Figures(*(end - begin for begin, end in zip(before, after, strict=True)))


def send(peer: Peer, topic: str, records: int) -> int:
    """Send the records, and 30 % of them again a little later; return the total number."""
    producer = Producer(
        {
            "bootstrap.servers": peer.bootstrap,
            "partitioner": "murmur2_random",
            "linger.ms": 20,
            "compression.type": "lz4",
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    numbers = list(range(records))
    step = 10_000
    for start in range(0, records, step):
        part = numbers[start : start + step]
        for number in part + part[: len(part) * 3 // 10]:
            key, value = f"key {number % KEYS}", f"{number:0100}"
            producer.produce(topic, value, key, headers=[("message-id", str(number).encode())])
        producer.poll(0)
    if producer.flush(60):
        raise RuntimeError(f"{peer.name} did not confirm all records")
    return records + sum(
        len(numbers[start : start + step]) * 3 // 10 for start in range(0, records, step)
    )


def count(spark: SparkSession, peer: Peer, topic: str, sent: int, folder: Path) -> None:
    """Run the query up to the end of the topic."""
    kafka = {"kafka.bootstrap.servers": peer.bootstrap}
    limit = {"maxOffsetsPerTrigger": str(sent // BATCHES + 2 * PARTITIONS)}
    source = {"subscribe": topic, "startingOffsets": "earliest", "includeHeaders": "true"} | limit
    rows = spark.readStream.format("kafka").options(**kafka, **source).load()
    columns = rows.select(
        "topic", "partition", "offset", "key", message_header("message-id").alias("id")
    )
    placed = with_kafka_partition(columns, "key", num_partitions=PARTITIONS, out="assigned")
    with closing(sqlite3.connect(folder / "counts.db")) as database:
        database.execute("CREATE TABLE counts (key BLOB PRIMARY KEY, records INTEGER)")
    with closing(SQLiteLedger(folder / "counts.db")) as ledger:
        consumer = IdempotentSink(ledger, "bench", "id", effect=add, brokers=peer.bootstrap)

        def batch(df: DataFrame, batch_id: int) -> None:
            consumer.foreach_batch(df, batch_id)

        query = placed.writeStream.foreachBatch(batch).trigger(availableNow=True)
        query.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
    with closing(sqlite3.connect(folder / "counts.db")) as database:
        counts = database.execute("SELECT key, CAST(records AS TEXT) FROM counts").fetchall()
    frame = spark.createDataFrame(counts, "key binary, value string")
    frame.write.format("kafka").options(**kafka, topic=f"{topic}-counts").save()


def add(connection: Any, table: pa.Table) -> None:
    """Add the number of records of each key; this is the effect."""
    if not table["assigned"].equals(table["partition"]):
        raise RuntimeError("a record is not in the partition of its key")
    counts = table.group_by("key").aggregate([("offset", "count")])
    rows = zip(counts["key"].to_pylist(), counts["offset_count"].to_pylist(), strict=True)
    connection.executemany(
        "INSERT INTO counts VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET records = records + excluded.records",
        rows,
    )


def check(path: Path, records: int) -> None:
    """Check that every record was counted once."""
    with closing(sqlite3.connect(path)) as database:
        (found,) = database.execute("SELECT sum(records) FROM counts").fetchone()
    if found != records:
        raise RuntimeError(f"{found:,} records were counted of {records:,}")


def show(results: dict[str, list[Figures]], records: int) -> None:
    """Print the best of the rounds, and the ratio of ours to Kafka's."""
    ours, kafka = (
        Figures(*(min(column) for column in zip(*rounds, strict=True)))
        for rounds in results.values()
    )
    print(f"{'':20}{'ours':>12}{'Kafka':>12}{'ratio':>8}   {records:,} records, best of rounds")
    rates = records / ours.wall, records / kafka.wall
    print(f"{'records/s':20}{rates[0]:12,.0f}{rates[1]:12,.0f}{rates[0] / rates[1]:8.2f}")
    for name, mine, theirs in zip(Figures._fields, ours, kafka, strict=True):
        print(f"{name + ' s':20}{mine:12.2f}{theirs:12.2f}{mine / theirs:8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=4)
    asked = parser.parse_args()
    spark = quiet_session()
    jvm = jvm_of(spark)
    results: dict[str, list[Figures]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peers: list[Peer] = [Ours(folder), ApacheKafka(folder)]
        try:
            for number in range(asked.rounds + 1):
                for index, peer in enumerate(peers if number % 2 == 0 else peers[::-1]):
                    place = folder / f"run-{number}-{index}"
                    place.mkdir()
                    figures = run(spark, jvm, peer, asked.records, place)
                    if number > 0:  # the first round warms up Java
                        results[peer.name].append(figures)
            show({peer.name: results[peer.name] for peer in peers}, asked.records)
        finally:
            for peer in peers:
                peer.stop()
            spark.stop()


if __name__ == "__main__":
    main()
