"""The demo's Spark query, in a separate process that the demo can kill.

Run it as `python -m examples.demo.driver JOB`. It reports each batch on stdout, as one JSON
object per line, and waits for a line on stdin before it continues. At that moment the ledger has
committed the batch, but Spark has not: if the process is killed then, Spark repeats the batch.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pykafka_core.idempotent import SQLiteLedger
from spark_udfs import (
    IdempotentSink,
    configure_spark,
    message_header,
    with_kafka_partition,
)

from .retries import ID_HEADER
from .totals import DATABASE, add_delays, open_totals, read_delays

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Job(NamedTuple):
    """The driver's job; `folder` contains its database and Spark's checkpoint."""

    bootstrap: str
    topic: str
    partitions: int
    output_topic: str
    folder: str
    batch_records: int

    @property
    def database(self) -> Path:
        """The SQLite file with the totals and the ledger."""
        return Path(self.folder) / DATABASE


def main(job: Job) -> None:
    """Count the records of the topic, and write the totals back to the broker."""
    open_totals(job.database)
    ledger = SQLiteLedger(job.database)
    consumer = IdempotentSink(ledger, "demo", "id", effect=_count, brokers=job.bootstrap)

    def batch(df: "DataFrame", batch_id: int) -> None:
        before, started = consumer.statistics(), time.monotonic()
        consumer.foreach_batch(df, batch_id)
        after = consumer.statistics()
        _tell(
            batch=batch_id,
            seconds=time.monotonic() - started,
            records=after.records - before.records,
            redelivered=after.redelivered - before.redelivered,
            duplicates=after.duplicates - before.duplicates,
        )
        sys.stdin.readline()

    spark = _session(job)
    query = (
        _flights(spark, job)
        .writeStream.foreachBatch(batch)
        .option("checkpointLocation", f"{job.folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    _write_back(spark, job)
    spark.stop()
    ledger.close()


def _session(job: Job) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").appName("pykafka_core demo")
    quiet: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # Two drivers of a minute each are too short for C2 to pay off.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.local.dir": f"{job.folder}/spark",
    }
    return configure_spark(builder.config(map=quiet), kafka=True).getOrCreate()


def _flights(spark: SparkSession, job: Job) -> "DataFrame":
    """The topic's records with their message ids, and with the partitions of their keys."""
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", job.bootstrap)
        .option("subscribe", job.topic)
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .option("maxOffsetsPerTrigger", job.batch_records)
        .load()
    )
    columns = records.select(
        "topic",
        "partition",
        "offset",
        "key",
        message_header(ID_HEADER).alias("id"),
        F.json_tuple(F.col("value").cast("string"), "time_hour", "arr_delay").alias(
            "hour", "minutes"
        ),
    )
    return with_kafka_partition(columns, "key", num_partitions=job.partitions, out="assigned")


def _count(connection: Any, table: pa.Table) -> None:
    """Add the delays of a batch to the totals; this is the effect of the sink."""
    wrong = pc.sum(pc.not_equal(table["assigned"], table["partition"])).as_py()
    if wrong:
        raise ValueError(f"{wrong} records are in another partition than their key's")
    rows = table.set_column(
        table.column_names.index("minutes"), "minutes", pc.cast(table["minutes"], pa.int64())
    ).append_column("carrier", pc.cast(table["key"], pa.string()))
    sums = rows.group_by(["carrier", "hour"]).aggregate(
        [("offset", "count"), ("minutes", "count"), ("minutes", "sum")]
    )
    columns = ("carrier", "hour", "offset_count", "minutes_count", "minutes_sum")
    add_delays(connection, zip(*(sums[name].to_pylist() for name in columns), strict=True))


def _write_back(spark: SparkSession, job: Job) -> None:
    """Write the totals as records: the key is "carrier hour", the value is JSON."""
    rows = [(*place, *total) for place, total in read_delays(job.database).items()]
    totals = spark.createDataFrame(
        rows, "carrier string, hour string, flights bigint, landed bigint, minutes bigint"
    )
    totals.selectExpr(
        "concat_ws(' ', carrier, hour) AS key", "to_json(struct(*)) AS value"
    ).write.format("kafka").option("kafka.bootstrap.servers", job.bootstrap).option(
        "topic", job.output_topic
    ).save()
    _tell(written=len(rows))


def _tell(**event: object) -> None:
    os.write(1, json.dumps(event).encode() + b"\n")


if __name__ == "__main__":
    main(Job(**json.loads(sys.argv[1])))
