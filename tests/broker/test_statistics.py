"""The counters of the data path in `Broker.statistics`, and the log lines of a recovery."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import Producer

from pykafka_core import Broker
from pykafka_core.log import Log
from tests.support.patience import PATIENCE_S


def produce(broker: Broker, count: int, codec: str = "none", size: int = 1_000) -> None:
    client = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "compression.type": codec,
            "enable.idempotence": True,
        }
    )
    for number in range(count):
        client.produce("orders", b"v" * size, partition=number % 2)
    assert client.flush(PATIENCE_S) == 0


def appended(broker: Broker) -> Mapping[str, int]:
    counted = broker.statistics()
    return {name: value for name, value in counted.items() if "appended" in name}


def test_statistics_count_the_appends_of_clients(tmp_path: Path) -> None:
    with Broker(tmp_path, durability="os") as broker:
        broker.create_topic("orders", partitions=2)
        assert set(appended(broker).values()) == {0}, "the broker's own log does not count"
        produce(broker, 1_000)
        first = appended(broker)
        assert first["records_appended"] == 1_000
        assert 2 <= first["batches_appended"] <= 1_000
        assert first["bytes_appended"] == first["bytes_appended_uncompressed"] > 1_000_000
        produce(broker, 500, "lz4")
        second = appended(broker)
        stored, uncompressed = (
            second[name] - first[name] for name in ("bytes_appended", "bytes_appended_uncompressed")
        )
        assert second["records_appended"] == 1_500
        assert stored * 5 < 500_000 < uncompressed
    sizes = []
    for name in ("orders-0", "orders-1"):
        with Log.open(tmp_path / name, read_only=True) as log:
            sizes.append(log.statistics().size_bytes)
    assert sum(sizes) == second["bytes_appended"]


def test_torn_tail_removed_by_recovery_is_a_warning_with_bytes_and_offset(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Broker(tmp_path, durability="os") as broker:
        broker.create_topic("orders", partitions=2)
        produce(broker, 4)
    segment = tmp_path / "orders-1" / f"{0:020}.log"
    with segment.open("ab") as file:
        file.write(b"\x01" * 77)
    # The state after a crash before any sync.
    (tmp_path / ".kafka_cleanshutdown").unlink()
    for checkpoint in tmp_path.glob("*-checkpoint"):
        os.unlink(checkpoint)
    with caplog.at_level(logging.WARNING), Broker(tmp_path, durability="os") as broker:
        produce(broker, 4)
    told = [record.getMessage() for record in caplog.records if "recovery" in record.getMessage()]
    assert told == ["orders-1: recovery cut a torn tail of 77 bytes: the log ends at offset 2"]
