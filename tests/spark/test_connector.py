"""Spark's Kafka connector, unchanged, gets the same rows and errors from our broker and Kafka."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from bench.peers.brokers import ApacheKafka
from tests.spark.cases import CASES
from tests.spark.sides import Side
from tests.support.brokers import Serve

pytestmark = pytest.mark.jvm

RETENTION = {"log.retention.check.interval.ms": "100"}


@pytest.fixture(scope="module")
def sides(
    serve: Serve, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Side]]:
    folder = tmp_path_factory.mktemp("connector")
    config = RETENTION | {"log.initial.task.delay.ms": "0"}
    kafka = ApacheKafka(folder, config)
    try:
        with serve(folder / "ours", durability="os", config=RETENTION) as ours:
            yield [
                Side("ours", ours.bootstrap_servers, spark, folder / "ours-spark"),
                Side("kafka", kafka.bootstrap, spark, folder / "kafka-spark"),
            ]
    finally:
        kafka.stop()


@pytest.mark.parametrize("name", CASES)
def test_spark_reads_the_same_as_from_apache_kafka(sides: list[Side], name: str) -> None:
    ours, kafka = (CASES[name](side) for side in sides)
    assert ours == kafka
