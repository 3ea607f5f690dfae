"""Common parts of the tests of the Spark pipeline: records with message ids in a topic, and a query
that counts them.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.support.patience import PATIENCE_S, seconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ID_HEADER = "message-id"
COLUMNS = ["topic", "partition", "offset", "CAST(value AS STRING) AS value", "headers"]


class Sent(NamedTuple):
    """A record; without a header if `id` is None."""

    partition: int
    value: str
    id: str | None = None


def send(bootstrap: str, topic: str, records: Iterable[Sent]) -> None:
    """Write records in this order; return once all are confirmed."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    failed: list[object] = []
    for record in records:
        producer.produce(
            topic,
            record.value,
            partition=record.partition,
            headers=[] if record.id is None else [(ID_HEADER, record.id.encode())],
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    assert not failed, failed[:3]


def stream(spark: "SparkSession", bootstrap: str, topic: str, **options: object) -> "DataFrame":
    """Return a stream of the topic from its start, with `COLUMNS`."""
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
    )
    return reader.options(**{name: str(value) for name, value in options.items()}).load()


def start(
    df: "DataFrame", checkpoint: Path, batch: Callable[["DataFrame", int], None]
) -> "StreamingQuery":
    """Start a query that processes all present records, in several batches if the source has a
    limit.
    """
    writer = df.writeStream.foreachBatch(batch).trigger(availableNow=True)
    return writer.option("checkpointLocation", str(checkpoint)).start()


def run(df: "DataFrame", checkpoint: Path, batch: Callable[["DataFrame", int], None]) -> None:
    """Call `start`, and wait for the end.

    Raises:
        StreamingQueryException: The query failed.
    """
    query = start(df, checkpoint, batch)
    try:
        assert query.awaitTermination(round(seconds(240))), "the query does not end"
    finally:
        query.stop()


def insert_values(placeholder: str) -> Callable[[Any, Any], None]:
    """Return an effect that inserts a row into `effects` for each record; duplicates remain
    visible.
    """

    def effect(connection: Any, table: Any) -> None:
        cursor = connection.cursor()
        cursor.executemany(
            f"INSERT INTO effects VALUES ({placeholder})",
            [(value,) for value in table["value"].to_pylist()],
        )

    return effect
