"""Replicas that fetched a partition from the start keep every record.

A copy of a compacted partition has no records between the log start offset and the first one that
compaction left. After `DeleteRecords` the log start offset may be inside a batch.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from pykafka_core import Cluster
from tests.support.patience import PATIENCE_S, eventually

ALL = (0, 1, 2)
TOPIC = "balances"
OVERWRITTEN, KEYS = 200, 20
"""Records of one key, which compaction removes, before records of several."""
TOPIC_CONFIG = {
    "cleanup.policy": "compact,delete",
    "min.cleanable.dirty.ratio": "0.01",
    "internal.segment.bytes": "16384",
    "file.delete.delay.ms": "0",
}
NODE_CONFIG = {"log.cleaner.backoff.ms": "50"}

Values = dict[bytes, bytes]
"""The last value of each key."""

pytestmark = pytest.mark.cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(3, data=tmp_path, config=NODE_CONFIG) as cluster:
        cluster.create_topic(TOPIC, 1, config=TOPIC_CONFIG)
        cluster.wait_isr(TOPIC)
        yield cluster


@pytest.fixture
def written(cluster: Cluster) -> Values:
    """Write a partition whose first record is compacted away; return each key's last value."""
    overwritten = send(cluster, [b"overwritten"] * OVERWRITTEN)
    several = send(cluster, [b"%d" % number for number in range(KEYS)])
    # The cleaner skips the active segment.
    last = send(cluster, [b"last"] * OVERWRITTEN)
    eventually(lambda: all(first_offset(cluster, node) > 0 for node in ALL))
    return overwritten | several | last


def send(cluster: Cluster, keys: list[bytes], batch_records: int = 1) -> Values:
    """Send a record for each key; all replicas have them on return."""
    servers = {"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 1000}
    producer = Producer(servers | {"batch.num.messages": batch_records, "acks": "all"})
    failed: list[object] = []
    values: Values = {}
    for number, key in enumerate(keys):
        values[key] = b"%d " % number * 50
        producer.produce(
            TOPIC,
            values[key],
            key,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    assert producer.flush(PATIENCE_S) == 0
    assert failed == []
    cluster.wait_isr(TOPIC)
    return values


def read_all(cluster: Cluster, log_start: int = 0) -> Values:
    """Read from the log start offset to the end."""
    partition = TopicPartition(TOPIC, 0, OFFSET_BEGINNING)
    servers = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "readers"}
    consumer = Consumer(servers | {"enable.partition.eof": True})
    low, _ = consumer.get_watermark_offsets(partition, PATIENCE_S)
    assert low == log_start
    consumer.assign([partition])
    values: Values = {}
    while (message := consumer.poll(PATIENCE_S)) is not None and message.error() is None:
        values[message.key()] = message.value()
    assert message is not None
    consumer.close()
    return values


def segments(cluster: Cluster, node: int) -> list[Path]:
    data = cluster.brokers[node].data_dir
    assert data is not None
    return sorted((data / f"{TOPIC}-0").glob("*.log"))


def first_offset(cluster: Cluster, node: int) -> int:
    """The base offset of the first batch on disk; 0 while a compaction replaces its segment."""
    first = segments(cluster, node)[0]
    return int.from_bytes(first.read_bytes()[:8]) if first.exists() else 0


def copy_to_each_node(cluster: Cluster) -> None:
    """Replace one disk after the other; each node fetches the partition again."""
    for node in ALL:
        cluster.stop(node)
        cluster.wipe(node)
        cluster.start(node)
        cluster.wait_isr(TOPIC)


def stop_and_start(cluster: Cluster) -> None:
    cluster.stop(*ALL)
    cluster.start(*ALL)


def kill_and_start(cluster: Cluster) -> None:
    cluster.kill(*ALL)
    cluster.start(*ALL)


def restart_each(cluster: Cluster) -> None:
    for node in ALL:
        cluster.kill(node)
        cluster.start(node)
        cluster.wait_isr(TOPIC)


@pytest.mark.parametrize("restart", [stop_and_start, kill_and_start, restart_each])
def test_copies_of_a_compacted_partition_outlive_restarts(
    cluster: Cluster,
    written: Values,
    restart: Callable[[Cluster], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    copy_to_each_node(cluster)
    for _ in range(2):
        restart(cluster)
        cluster.wait_isr(TOPIC)
        assert read_all(cluster) == written
        assert [segments(cluster, node)[0].stem for node in ALL] == [f"{0:020}"] * len(ALL)
    assert "damaged" not in caplog.text
    after = send(cluster, [b"after"])
    assert read_all(cluster) == written | after


@pytest.mark.parametrize("restart", [stop_and_start, kill_and_start])
def test_copies_begin_at_a_log_start_inside_a_batch(
    cluster: Cluster, restart: Callable[[Cluster], None]
) -> None:
    written = send(cluster, [b"%d" % number for number in range(KEYS)], batch_records=KEYS)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    kept = TopicPartition(TOPIC, 0, KEYS // 2)
    (deleted,) = admin.delete_records([kept]).values()
    assert deleted.result(PATIENCE_S).low_watermark == kept.offset
    copy_to_each_node(cluster)
    restart(cluster)
    cluster.wait_isr(TOPIC)
    expected = {b"%d" % number: written[b"%d" % number] for number in range(kept.offset, KEYS)}
    assert read_all(cluster, kept.offset) == expected
    after = send(cluster, [b"after"])
    assert read_all(cluster, kept.offset) == expected | after
