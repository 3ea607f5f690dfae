"""``consume`` without a group changes nothing, even on a broker of Apache Kafka."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from bench.peers.brokers import QUICK_TO_START, ApacheKafka
from pykafka_core.types import GROUP_TOPIC
from tests.support.cli import run
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.jvm

Capture = pytest.CaptureFixture[str]
VALUES = [f"order {number}" for number in range(6)]


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[ApacheKafka]:
    """A broker whose topic ``orders`` has three partitions of two records."""
    kafka = ApacheKafka(tmp_path, {"num.partitions": "3"}, jvm=QUICK_TO_START)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number, value in enumerate(VALUES):
        producer.produce("orders", value, partition=number % 3)
    assert producer.flush(PATIENCE_S) == 0
    yield kafka
    kafka.stop()


def partitions(kafka: ApacheKafka) -> set[str]:
    return {entry.name for entry in os.scandir(kafka.data) if entry.is_dir()}


def test_consume_without_a_group_creates_no_topic(kafka: ApacheKafka, capsys: Capture) -> None:
    orders = {f"orders-{index}" for index in range(3)}
    before = partitions(kafka)
    assert orders == {name for name in before if not name.startswith("__cluster_metadata")}
    for options, count in (
        (("--from", "beginning"), 6),
        (("--from", "beginning", "--json"), 6),
        (("--from", "beginning", "--max", "1"), 1),
        (("--from", "1", "--partition", "2"), 1),
        (("--from", "@0"), 6),
        (("--from", "end"), 0),
    ):
        assert run("consume", "orders", *options, "--bootstrap-server", kafka.bootstrap) == 0
        assert len(capsys.readouterr().out.splitlines()) == count, options
    assert run("consume", "absent", "--bootstrap-server", kafka.bootstrap) == 1
    assert partitions(kafka) == before
    group = "--group", "shipping", "--max", "1", "--bootstrap-server", kafka.bootstrap
    assert run("consume", "orders", *group) == 0
    created = {name.rpartition("-")[0] for name in partitions(kafka) - before}
    assert created == {GROUP_TOPIC}, "a group creates it, and this test sees it"
