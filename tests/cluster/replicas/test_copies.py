"""Replicas of a compacted partition that were copied after the compaction keep every record.

A copy has no records between the log start offset and the first one that compaction left.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from pykafka_core import Cluster
from tests.support.patience import PATIENCE_S, eventually

ALL = (0, 1, 2)
TOPIC = "balances"
OVERWRITTEN, KEYS = 200, 20
"""Records of one key, which compaction removes, before records of several."""
TOPIC_CONFIG = {
    "cleanup.policy": "compact",
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
    """The last value of each key, in a partition whose first record is gone on each replica."""
    overwritten = send(cluster, [b"overwritten"] * OVERWRITTEN)
    several = send(cluster, [b"%d" % number for number in range(KEYS)])
    # The cleaner skips the active segment.
    last = send(cluster, [b"last"] * OVERWRITTEN)
    eventually(lambda: all(first_offset(cluster, node) > 0 for node in ALL))
    return overwritten | several | last


def send(cluster: Cluster, keys: list[bytes]) -> Values:
    """Send one batch for each key; all replicas have them on return."""
    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    producer = Producer(servers | {"batch.num.messages": 1, "acks": "all"})
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


def read_all(cluster: Cluster) -> Values:
    """Read from the log start offset, which is 0, to the end."""
    partition = TopicPartition(TOPIC, 0, OFFSET_BEGINNING)
    servers = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "readers"}
    consumer = Consumer(servers | {"enable.partition.eof": True})
    low, _ = consumer.get_watermark_offsets(partition, PATIENCE_S)
    assert low == 0
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
    """The base offset of the first batch on disk."""
    with segments(cluster, node)[0].open("rb") as file:
        return int.from_bytes(file.read(8))


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
