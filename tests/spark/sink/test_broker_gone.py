"""If the broker ends under a running query, the query fails in time, and continues later."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from pykafka_core.idempotent import SQLiteLedger
from spark_udfs.sink.sink import IdempotentSink
from tests.support.brokers import Serve
from tests.support.patience import seconds
from tests.support.spark.pipeline import COLUMNS, Sent, insert_values, run, send, stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "orders"
SOON = {
    "kafka.default.api.timeout.ms": 12_000,
    "kafka.request.timeout.ms": 6000,
    "fetchOffset.numRetries": 1,
}
"""Timeouts of the query. A busy machine must not exceed them while the broker serves."""


def test_query_whose_broker_stopped_ends_and_loses_nothing(
    serve: Serve, spark: "SparkSession", tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "orders.db")) as connection, connection:
        connection.execute("CREATE TABLE effects (value TEXT)")
    with closing(SQLiteLedger(tmp_path / "orders.db")) as ledger:
        for life in range(2):
            with serve(tmp_path / "data") as broker:
                address = broker.bootstrap_servers
                consumer = IdempotentSink(ledger, "g", effect=insert_values("?"), brokers=address)
                df = stream(spark, address, TOPIC, **(SOON if life == 0 else {})).selectExpr(
                    *COLUMNS
                )
                send(address, TOPIC, [Sent(0, f"{life} {n}") for n in range(3)])
                if life == 0:
                    writer = df.writeStream.foreachBatch(consumer.foreach_batch)
                    query = writer.option(
                        "checkpointLocation", str(tmp_path / "checkpoint")
                    ).start()
                    query.processAllAvailable()
                else:
                    run(df, tmp_path / "checkpoint", consumer.foreach_batch)
            if life == 0:
                with pytest.raises(StreamingQueryException, match="TimeoutException"):
                    query.awaitTermination(round(seconds(240)))
    with closing(sqlite3.connect(tmp_path / "orders.db")) as connection:
        found = [value for (value,) in connection.execute("SELECT value FROM effects")]
    assert found == [f"{life} {n}" for life in range(2) for n in range(3)]
