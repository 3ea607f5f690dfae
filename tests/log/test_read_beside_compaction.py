"""A log that is read while its broker compacts it: each read returns the complete log."""

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from pykafka_core import Broker
from pykafka_core.log import Log
from tests.support.patience import PATIENCE_S, eventually

KEYS = 50
EXPECTED = {b"key %d" % key for key in range(KEYS)}
READS = 300
TOPIC = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0",
    "segment.ms": "20",
    "file.delete.delay.ms": "0",
}
BROKER = {"log.cleaner.backoff.ms": "1", "log.message.timestamp.type": "CreateTime"}


def names(partition: Path) -> frozenset[str]:
    return frozenset(path.name for path in partition.glob("*.log"))


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Path]:
    """A partition with 50 keys, which are continuously overwritten and compacted."""
    data = tmp_path / "data"
    is_over = threading.Event()
    with Broker(data, listeners="127.0.0.1:0", durability="os", config=BROKER) as broker:
        broker.create_topic("state", 1, config=TOPIC)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0})

        def overwrite() -> None:
            for number in itertools.count():
                producer.produce("state", b"%d" % number, b"key %d" % (number % KEYS))
                if number % KEYS == KEYS - 1:
                    producer.flush(PATIENCE_S)
                    if is_over.is_set():
                        return

        writer = threading.Thread(target=overwrite)
        writer.start()
        eventually(lambda: len(list((data / "state-0").glob("*.log"))) > 1, "segments are rolled")
        try:
            yield data / "state-0"
        finally:
            is_over.set()
            writer.join()


@pytest.mark.load
@pytest.mark.parametrize("reader", ["records", "arrow"])
def test_a_log_that_was_opened_before_a_compaction_has_every_key(
    partition: Path, reader: str
) -> None:
    for _ in range(5):
        with Log.open(partition, read_only=True) as log:
            segments = names(partition)

            def is_compacted(segments: frozenset[str] = segments) -> bool:
                return segments.isdisjoint(names(partition))

            eventually(is_compacted, "the segments are compacted")
            if reader == "records":
                assert {record.key for record in log} == EXPECTED
            else:
                assert set(pa.table(log.to_arrow())["key"].to_pylist()) == EXPECTED


@pytest.mark.load
def test_no_key_is_missing(partition: Path) -> None:
    newest = 0
    for number in range(READS):
        with Log.open(partition, read_only=True) as log:
            if number % 2:
                assert set(pa.table(log.to_arrow())["key"].to_pylist()) == EXPECTED
                continue
            records = list(log)
        assert {record.key for record in records} == EXPECTED
        last = int(records[-1].value or b"")
        assert last >= newest
        newest = last
