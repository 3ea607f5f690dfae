"""Effects in PostgreSQL, on the driver and on executors: `python -m bench.spark.effects --help`.

A topic of a few partitions is read in batches. Each row is inserted once, by marks alone or also by
message ids: by a SQL statement, or by a function that uses COPY. The forms alternate, round after
round, each with a new group and a new checkpoint. The best of the rounds is printed: records per
second of the time in ``foreach_batch`` (which includes Spark's reads from Kafka), and CPU time per
record of Spark's JVM, its Python workers, the driver's Python and the database, all on one machine.
The last batch is not timed, because Spark's consumers wait half a second each for the end of the
log. The server does not sync to disk. The first row of each kind is the minimum work: read the rows
and pass them to Python.
"""

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import psycopg
import pyarrow as pa
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

from bench.spark_session import cpu_seconds, jvm_of, quiet_session
from pykafka_core import Broker
from pykafka_core.idempotent import PostgresLedger
from spark_udfs import IdempotentSink, message_header
from tests.support.postgres import PostgresServer, postgres_serving

BATCHES = 4
EffectOn = Literal["driver", "executors"]


class Form(NamedTuple):
    """A form of effects; without a place for effects the rows are only read."""

    effect_on: EffectOn | None
    by_ids: bool
    partitions: int

    def __str__(self) -> str:
        return f"{self.effect_on or 'only read'}, {'ids' if self.by_ids else 'marks'}, {self.partitions} parts"


class Figures(NamedTuple):
    """Seconds per record of one run: wall time, and CPU time by process."""

    wall: float
    jvm: float
    workers: float
    driver: float
    database: float


def copy(connection: Any, rows: pa.Table) -> None:
    """Copy a row for each record; this is the effect."""
    columns = [rows[name].to_pylist() for name in ("partition", "offset", "value")]
    with connection.cursor().copy("COPY effects FROM STDIN (FORMAT binary)") as target:
        target.set_types(["int4", "int8", "text"])
        for row in zip(*columns, strict=True):
            target.write_row(row)


EFFECTS: Mapping[str, str | Callable[[Any, pa.Table], object]] = {
    "statement": 'INSERT INTO effects SELECT partition, "offset", value FROM staged',
    "function": copy,
}


def run(
    spark: SparkSession,
    broker: Broker,
    server: PostgresServer,
    form: Form,
    records: int,
    effect: str,
) -> Figures:
    """Process all records of a topic into a new schema."""
    dsn = server.create_schema()
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE effects (partition int, place bigint, value text)")
    limit = records // BATCHES + form.partitions
    rows = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap_servers)
        .option("subscribe", topic_of(form.partitions))
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .option("maxOffsetsPerTrigger", str(limit))
        .load()
        .selectExpr("topic", "partition", "offset", "CAST(value AS STRING) AS value", "headers")
    )
    ids = message_header("message-id") if form.by_ids else None
    if not form.by_ids:
        rows = rows.drop("headers")
    with tempfile.TemporaryDirectory() as checkpoint, PostgresLedger(dsn) as ledger:
        process: Callable[[DataFrame, int], object] = pass_through_python
        if form.effect_on is not None:
            process = IdempotentSink(
                ledger,
                "bench",
                ids,
                effect=EFFECTS[effect],
                brokers=broker.bootstrap_servers,
                effect_on=form.effect_on,
            ).foreach_batch

        def cpu() -> tuple[float, ...]:
            database = sum(cpu_seconds(server.pid))
            return *cpu_seconds(jvm_of(spark)), time.process_time(), database

        before = cpu()
        seconds = timed_query(rows, process, checkpoint)
        cpus = [(end - begin) / records for begin, end in zip(before, cpu(), strict=True)]
    with psycopg.connect(dsn) as connection:
        found = connection.execute("SELECT count(*) FROM effects").fetchall()
        connection.execute("DROP TABLE IF EXISTS effects, pykafka_ids")
    if found != [(records if form.effect_on else 0,)]:
        raise RuntimeError(f"{found} effects of {records:,} records")
    return Figures(sum(seconds[:-1]) / (limit * (len(seconds) - 1)), *cpus)


def timed_query(
    rows: DataFrame, process: Callable[[DataFrame, int], object], checkpoint: str
) -> list[float]:
    """Return the seconds of each batch."""
    seconds = []

    def batch(df: DataFrame, batch_id: int) -> None:
        begun = time.monotonic()
        process(df, batch_id)
        seconds.append(time.monotonic() - begun)

    query = rows.writeStream.foreachBatch(batch).trigger(availableNow=True)
    query.option("checkpointLocation", checkpoint).start().awaitTermination()
    return seconds


def pass_through_python(df: DataFrame, _: int) -> None:
    """Do the minimum work of every form: read the rows and pass them to a Python worker."""
    handed = df.mapInArrow(lambda batches: (batch.slice(0, 1) for batch in batches), df.schema)
    handed.write.format("noop").mode("overwrite").save()


def topic_of(partitions: int) -> str:
    return f"records-{partitions}"


def send(broker: Broker, partitions: int, records: int) -> None:
    """Send records of 100 bytes with ids of 16."""
    broker.create_topic(topic_of(partitions), partitions=partitions)
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "linger.ms": 20,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    for number in range(records):
        producer.produce(
            topic_of(partitions),
            f"{number:0100}",
            partition=number % partitions,
            headers=[("message-id", f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}".encode())],
        )
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(60):
        raise RuntimeError("the broker did not confirm all records")


def show(results: dict[Form, list[Figures]]) -> None:
    """Print the best of the rounds."""
    columns = ("records/s", "JVM µs", "workers µs", "driver µs", "database µs")
    print(f"{'':28}" + "".join(f"{column:>13}" for column in columns))
    for form, rounds in results.items():
        best = Figures(*(min(column) for column in zip(*rounds, strict=True)))
        cpus = "".join(f"{1e6 * seconds:13.2f}" for seconds in best[1:])
        print(f"{form!s:28}{1 / best.wall:13,.0f}{cpus}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=800_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--effect", choices=EFFECTS, default="statement")
    asked = parser.parse_args()
    forms = [
        Form(effect_on, by_ids, partitions)
        for partitions in asked.partitions
        for by_ids in (False, True)
        for effect_on in (None, "driver", "executors")
    ]
    spark = quiet_session()
    results: dict[Form, list[Figures]] = defaultdict(list)
    try:
        with (
            tempfile.TemporaryDirectory() as data,
            Broker(data) as broker,
            postgres_serving() as server,
        ):
            for partitions in asked.partitions:
                send(broker, partitions, asked.records)
            run(spark, broker, server, forms[1], asked.records, asked.effect)  # warms Java up
            for number in range(asked.rounds):
                for form in forms if number % 2 == 0 else forms[::-1]:
                    figures = run(spark, broker, server, form, asked.records, asked.effect)
                    results[form].append(figures)
        show({form: results[form] for form in forms})
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
