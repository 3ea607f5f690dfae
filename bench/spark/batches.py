"""Memory and time of one batch of any size: `python -m bench.spark.batches --help`.

A stream without a limit reads a whole topic of records of 10,000 bytes as its first batch, and
commits a row for each part: marks and effects in SQLite on the driver, or in PostgreSQL on the
executors. The driver's JVM has 1 GB. Each run is a separate process, which prints the largest
private memory (``RssAnon``) seen of the driver's Python and its JVM, and a breakdown of the time
until the first commit.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from confluent_kafka import Producer

from pykafka_core import Broker
from pykafka_core.idempotent import PostgresLedger, SQLiteLedger
from tests.support.postgres import postgres_serving

RECORD_BYTES = 10_000
PARTITIONS = 4
FORMS = ("driver", "executors")
EffectOn = Literal["driver", "executors"]
MEGABYTE = 1_000_000


class Peak:
    """The largest private memory of a process so far, in bytes."""

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        self.bytes = 0

    def look(self) -> None:
        fields = dict(line.split(":", 1) for line in self._status.read_text().splitlines())
        self.bytes = max(self.bytes, 1024 * int(fields["RssAnon"].split()[0]))


@contextmanager
def watching(*peaks: Peak) -> Iterator[None]:
    """Sample the processes twenty times a second within the block."""
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(0.05):
            for peak in peaks:
                peak.look()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def note(connection: Any, rows: Any) -> None:
    """Record the number of rows of a part; this is the effect."""
    if type(connection).__module__.startswith("sqlite3"):
        connection.execute("INSERT INTO parts VALUES (?)", (rows.num_rows,))
    else:
        connection.execute("INSERT INTO parts VALUES (%s)", (rows.num_rows,))


def run(form: str, bootstrap: str, topic: str, database: str) -> None:
    """Run the query in this process; print a line of JSON."""
    begun = time.monotonic()
    from bench.spark_session import jvm_of, quiet_session
    from spark_udfs import IdempotentSink

    spark = quiet_session()
    session = time.monotonic()
    python, jvm = Peak(os.getpid()), Peak(jvm_of(spark))
    called: list[float] = []
    effect_on: EffectOn = "driver" if form == "driver" else "executors"
    make = SQLiteLedger if form == "driver" else PostgresLedger
    with tempfile.TemporaryDirectory() as checkpoint, make(database) as ledger:
        sink = IdempotentSink(ledger, "bench", effect=note, brokers=bootstrap, effect_on=effect_on)

        def batch(df: Any, batch_id: int) -> None:
            called.append(time.monotonic())
            sink.foreach_batch(df, batch_id)
            called.append(time.monotonic())

        rows = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
        )
        with watching(python, jvm):
            query = rows.writeStream.foreachBatch(batch).trigger(availableNow=True)
            query.option("checkpointLocation", checkpoint).start().awaitTermination()
        figures = {
            "processed": sink.statistics().processed,
            "python": python.bytes,
            "jvm": jvm.bytes,
            "session": session - begun,
            "plan": called[0] - session,
            "batch": called[1] - called[0],
        }
    print(json.dumps(figures))
    spark.stop()


def send(bootstrap: str, topic: str, records: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.kbytes": 200_000})
    value = os.urandom(RECORD_BYTES)
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(600):
        raise RuntimeError("the broker did not confirm all records")


def measured(form: str, bootstrap: str, topic: str, database: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.spark.batches", "--run", form, bootstrap, topic]
    options = "--driver-memory 1g pyspark-shell"
    done = subprocess.run(
        [*command, database],
        env=os.environ | {"PYSPARK_SUBMIT_ARGS": options},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def create_parts(form: str, folder: str, server: Any) -> str:
    """Create a database with the table of the effects."""
    table = "CREATE TABLE parts (count bigint)"
    if form == "driver":
        import sqlite3
        from contextlib import closing

        path = f"{folder}/ledger.sqlite"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(table)
        return path
    import psycopg

    dsn: str = server.create_schema()
    with psycopg.connect(dsn) as connection:
        connection.execute(table)
    return dsn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--megabytes", type=int, nargs="+", default=[10, 100, 1_000, 5_000], help="of a batch"
    )
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS)
    parser.add_argument("--run", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        run(*asked.run)
        return
    columns = ("MB/s", "Python MB", "JVM MB", "session s", "plan s", "batch s")
    print(f"{'':22}" + "".join(f"{column:>11}" for column in columns))
    with postgres_serving() as server:
        for megabytes in asked.megabytes:
            records = megabytes * MEGABYTE // RECORD_BYTES
            with tempfile.TemporaryDirectory() as data, Broker(data) as broker:
                broker.create_topic("records", partitions=PARTITIONS)
                send(broker.bootstrap_servers, "records", records)
                for form in asked.forms:
                    with tempfile.TemporaryDirectory() as folder:
                        database = create_parts(form, folder, server)
                        found = measured(form, broker.bootstrap_servers, "records", database)
                    if found["processed"] != records:
                        raise RuntimeError(f"{found['processed']:,} of {records:,} records")
                    sizes = "".join(f"{found[of] / MEGABYTE:11,.0f}" for of in ("python", "jvm"))
                    times = "".join(f"{found[of]:11.1f}" for of in ("session", "plan", "batch"))
                    rate = megabytes / found["batch"]
                    print(f"{form:10}{megabytes:9,} MB{rate:11,.0f}{sizes}{times}", flush=True)


if __name__ == "__main__":
    main()
