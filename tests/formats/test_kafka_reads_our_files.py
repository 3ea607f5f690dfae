"""Apache Kafka finds no fault in our files, and serves them (contract/kafka.md#section-3)."""

import random
import shutil
from pathlib import Path

import pytest

from bench.peers.brokers import QUICK_TO_START, ApacheKafka
from pykafka_core import Broker
from tests.support.java import java
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.jvm

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SMALL = {"internal.segment.bytes": "20000", "index.interval.bytes": "500"}
Rows = list[tuple[int, bytes | None, bytes]]


def send(bootstrap: str, topic: str, codec: str, count: int, *, idempotent: bool) -> None:
    """Send `count` records in small batches of one codec.

    A flush after each tenth record makes batches of several sizes.
    """
    from confluent_kafka import Producer

    settings: dict[str, object] = {"bootstrap.servers": bootstrap, "compression.type": codec}
    producer = Producer(settings | {"linger.ms": 0, "enable.idempotence": idempotent})
    dice = random.Random(codec)
    failed: list[object] = []
    for n in range(count):
        producer.produce(
            topic,
            codec.encode() * dice.randint(0, 60),
            key=None if n % 3 else f"key {n}".encode(),
            partition=0,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
        if n % 10 == 0:
            producer.flush(PATIENCE_S)
    assert producer.flush(PATIENCE_S) == 0
    assert not failed


def read(bootstrap: str, topic: str) -> Rows:
    """Return every record of partition 0, as librdkafka reads it."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,  # otherwise its close waits for a coordinator
            "auto.offset.reset": "earliest",  # if retention deletes the records before the fetch
        }
    )
    place = TopicPartition(topic, 0, OFFSET_BEGINNING)
    end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=PATIENCE_S)[1]
    consumer.assign([place])
    rows: Rows = []
    while not rows or rows[-1][0] < end - 1:
        record = consumer.poll(PATIENCE_S)
        assert record is not None, "no record within a minute"
        assert record.error() is None, record.error()
        rows.append((record.offset(), record.key(), record.value()))
    consumer.close()
    return rows


def mixed_load(data: Path) -> tuple[Rows, Rows]:
    """Write with all codecs and idempotent producers; return the remaining rows of both topics.

    The load includes rolled segments, retention and a restart.
    """
    with Broker(data, durability="os", config={"log.retention.check.interval.ms": "100"}) as broker:
        broker.create_topic("kept", partitions=1, config=SMALL)
        broker.create_topic("shortened", partitions=1, config=SMALL | {"retention.bytes": "50000"})
        for codec in CODECS:
            send(broker.bootstrap_servers, "kept", codec, 150, idempotent=codec in {"none", "lz4"})
    with Broker(data, durability="os", config={"log.retention.check.interval.ms": "100"}) as broker:
        for codec in CODECS:
            send(broker.bootstrap_servers, "kept", codec, 50, idempotent=codec == "zstd")
            send(broker.bootstrap_servers, "shortened", codec, 800, idempotent=False)
        rows = read(broker.bootstrap_servers, "shortened")
        while rows[0][0] == 0:  # retention has not deleted the first segment yet
            rows = read(broker.bootstrap_servers, "shortened")
        return read(broker.bootstrap_servers, "kept"), rows


def dump(files: list[Path], *options: str) -> str:
    names = ",".join(str(path) for path in sorted(files))
    return java("kafka.tools.DumpLogSegments", *options, "--files", names)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Rows, Rows]:
    data = tmp_path_factory.mktemp("loaded") / "data"
    return data, *mixed_load(data)


def test_dump_log_segments_finds_no_fault_in_any_file(loaded: tuple[Path, Rows, Rows]) -> None:
    data, kept, shortened = loaded
    assert len(kept) == 1000
    assert shortened[0][0] > 0
    logs = [*data.glob("kept-0/*.log"), *data.glob("shortened-0/*.log")]
    assert len(logs) > 5
    printed = dump(logs, "--deep-iteration", "--print-data-log")
    assert printed.count("isvalid: true") > 200
    assert "isvalid: false" not in printed
    indexes = [*data.glob("*-0/*.index"), *data.glob("*-0/*.timeindex")]
    for option in ("--index-sanity-check", "--verify-index-only"):
        printed = dump(indexes, option)
        assert "ismatch" not in printed, printed
        assert "orrupt" not in printed, printed
    snapshots = list(data.glob("*-0/*.snapshot"))
    assert snapshots
    assert "producerId" in dump(snapshots)
    metadata = dump(list(data.glob("__cluster_metadata-0/*.log")), "--cluster-metadata-decoder")
    assert '"name":"kept"' in metadata


def test_apache_kafka_serves_our_partition_directory(
    loaded: tuple[Path, Rows, Rows], tmp_path: Path
) -> None:
    data, kept, _ = loaded
    kafka = ApacheKafka(tmp_path, jvm=QUICK_TO_START)
    try:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result(PATIENCE_S)
        kafka.halt()
        theirs = kafka.data / "kept-0"
        identity = (theirs / "partition.metadata").read_bytes()
        shutil.rmtree(theirs)
        shutil.copytree(data / "kept-0", theirs)
        (theirs / "partition.metadata").write_bytes(identity)
        kafka.start()
        assert read(kafka.bootstrap, "kept") == kept
    finally:
        kafka.stop()
