"""A full disk: producers get KAFKA_STORAGE_ERROR, everything else goes on, and so do they when space returns.

On a small tmpfs where the system lets us mount one, and always on a broker whose logs have little memory.
"""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_core import Broker

SIZE = 24 << 20
STORAGE_ERROR = 56
# Compression must not make more room than the test wants to use up.
VALUE_BYTES = 100_000
PATIENCE_S = 40


@pytest.fixture(params=["memory", "tmpfs"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    """A broker with `SIZE` bytes of space; where no tmpfs can be mounted, it is memory both times."""
    mounted = request.param == "tmpfs" and mount(tmp_path)
    try:
        if mounted:
            with Broker(tmp_path / "data", durability="os", listeners="127.0.0.1:0") as broker:
                yield broker
        else:
            with Broker(listeners="127.0.0.1:0", memory_max=SIZE) as broker:
                yield broker
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def mount(path: Path) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(path)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


class Sender:
    """Sends one record at a time, without retries, and keeps what was acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        from confluent_kafka import Producer

        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "retries": 0, "linger.ms": 0, "log_level": 0}
        )
        self.acknowledged: dict[str, list[bytes]] = {}

    def send(self, topic: str, value: bytes) -> int:
        """The record's error code, 0 for none."""
        codes: list[int] = []
        self._producer.produce(
            topic,
            value,
            partition=0,
            on_delivery=lambda error, _: codes.append(error.code() if error else 0),
        )
        assert self._producer.flush(30) == 0
        if codes == [0]:
            self.acknowledged.setdefault(topic, []).append(value)
        return codes[0]

    def send_until_full(self, topic: str) -> int:
        """The code that ended it."""
        for number in range(2 * SIZE // VALUE_BYTES):
            code = self.send(topic, f"{number:06}".encode() + bytes(VALUE_BYTES))
            if code != 0:
                return code
        raise AssertionError("the disk never was full")

    def send_until_accepted(self, topic: str, value: bytes) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while (code := self.send(topic, value)) != 0:
            assert code == STORAGE_ERROR
            assert time.monotonic() < deadline, "space never returned"


def read(bootstrap: str, topic: str) -> list[bytes]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
    )
    end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)[1]
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(values) < end:
        assert time.monotonic() < deadline
        values += [record.value() for record in consumer.consume(1000, timeout=0.1)]
    consumer.close()
    return values


@pytest.mark.timeout(120)
def test_full_disk_is_a_typed_error_and_passes_when_space_returns(broker: Broker) -> None:
    config = {"file.delete.delay.ms": "0"}
    for topic in ("ballast", "load", "other"):
        broker.create_topic(topic, config=config)
    sender = Sender(broker.bootstrap_servers)
    for topic in ("other", "load"):
        assert sender.send(topic, b"first") == 0
    assert sender.send_until_full("ballast") == STORAGE_ERROR
    assert sender.send_until_full("load") == STORAGE_ERROR

    # Reading, metadata, and what has its space reserved already go on.
    for topic in ("other", "load", "ballast"):
        assert read(broker.bootstrap_servers, topic) == sender.acknowledged[topic]
    assert sender.send("other", b"small") in (0, STORAGE_ERROR)
    assert set(broker.topics()) >= {"ballast", "load", "other"}

    broker.delete_topic("ballast")
    sender.send_until_accepted("load", b"after")
    assert sender.send("other", b"after") == 0
    for topic in ("other", "load"):
        assert read(broker.bootstrap_servers, topic) == sender.acknowledged[topic]
