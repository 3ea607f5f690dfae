"""A sink's reports of its progress."""

from queue import Queue
from types import SimpleNamespace
from typing import TYPE_CHECKING

from pykafka_core.idempotent import SQLiteLedger
from spark_udfs.sink import IdempotentSink, Statistics
from spark_udfs.sink.statistics import lag_of
from tests.support.brokers import Serve
from tests.support.patience import PATIENCE_S
from tests.support.spark.pipeline import COLUMNS, Sent, run, send, stream

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_a_listener_reports_rates_and_lag_after_each_batch(
    serve: Serve, spark: "SparkSession", tmp_path: "Path"
) -> None:
    reports: Queue[Statistics] = Queue()
    with serve() as broker, SQLiteLedger(tmp_path / "orders.db") as ledger:
        broker.create_topic("orders", partitions=2)
        send(broker.bootstrap_servers, "orders", [Sent(n % 2, f"{n}") for n in range(40)])
        sink = IdempotentSink(ledger, "g", effect=lambda *_: None, brokers=broker.bootstrap_servers)
        listener = sink.listener(reports.put)
        spark.streams.addListener(listener)
        try:
            df = stream(spark, broker.bootstrap_servers, "orders", maxOffsetsPerTrigger=20)
            run(df.selectExpr(*COLUMNS), tmp_path / "c", sink.foreach_batch)
            lags = [dict(reports.get(timeout=PATIENCE_S).lag) for _ in range(2)]
        finally:
            spark.streams.removeListener(listener)
    assert lags[0] == {"orders-0": 10, "orders-1": 10}
    assert lags[-1] == {"orders-0": 0, "orders-1": 0}
    assert sink.statistics().lag == lags[-1]
    assert sink.statistics().records_per_second > 0


def test_a_source_that_is_not_kafka_has_no_lag() -> None:
    texts = [None, "", "5", '{"a": 1}', "not json", '{"orders": {"0": 7}}']
    progress = SimpleNamespace(sources=[SimpleNamespace(latestOffset=text) for text in texts])
    assert lag_of(progress, {("orders", 0): 5, ("orders", 1): 5}) == {"orders-0": 2}
    assert lag_of(progress, {("orders", 0): 9}) == {"orders-0": 0}
    assert lag_of(progress, {}) == {}
