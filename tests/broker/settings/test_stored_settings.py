"""Committed settings that cannot be used: the directory still opens, with a warning.

``log.roll.ms=0`` of a client was committed, and ``core.apply`` raised: the control thread ended,
and no start could open the directory again.
"""

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.broker.storage.data_directory import BOOTSTRAP
from pykafka_core.metadata.image.features import METADATA_VERSION
from pykafka_core.metadata.records.snapshot import encode_snapshot
from pykafka_core.protocol.messages import (
    ConfigRecord,
    FeatureLevelRecord,
    Message,
    PartitionRecord,
    TopicRecord,
)
from pykafka_core.types import RESOURCE_BROKER, RESOURCE_TOPIC
from tests.support.wire import Connection

ID = bytes(15) + b"\7"
UNUSABLE = [
    (RESOURCE_BROKER, "", "log.roll.ms", "0"),
    (RESOURCE_BROKER, "1", "log.roll.jitter.ms", "-1"),
    (RESOURCE_BROKER, "", "log.retention.ms", "0"),
    (RESOURCE_BROKER, "", "log.retention.ms", "soon"),
    (RESOURCE_BROKER, "", "max.connections", "0"),
    (RESOURCE_BROKER, "", "max.connections.per.ip", "0"),
    (RESOURCE_BROKER, "", "max.connections.per.ip.overrides", "127.0.0.1:0"),
    (RESOURCE_BROKER, "", "max.connections.per.ip.overrides", "127.0.0.1:9, [::1]:00"),
    (RESOURCE_BROKER, "", "log.cleaner.threads", "0"),
    (RESOURCE_BROKER, "1", "socket.request.max.bytes", "5"),
    (RESOURCE_BROKER, "1", "listeners", "SSL://:1"),
    (RESOURCE_TOPIC, "t", "retention.ms", "soon"),
    (RESOURCE_TOPIC, "t", "segment.bytes", "0"),
    (RESOURCE_TOPIC, "t", "min.compaction.lag.ms", "soon"),
    (RESOURCE_TOPIC, "t", "cleanup.policy", "sometimes"),
]
BELOW_THE_LOWEST = [
    (RESOURCE_BROKER, "", "log.flush.interval.ms", "-1"),
    (RESOURCE_BROKER, "", "log.retention.ms", "-2"),
    (RESOURCE_TOPIC, "t", "internal.segment.bytes", "0"),
]


def formatted(data: Path, *settings: tuple[int, str, str, str]) -> None:
    """Create a directory whose first records create topic ``t`` and alter ``settings``."""
    data.mkdir()
    records: list[Message] = [
        FeatureLevelRecord(name=METADATA_VERSION, feature_level=29),
        TopicRecord(name="t", topic_id=ID),
        PartitionRecord(topic_id=ID, partition_id=0, replicas=[1], isr=[1], leader=1),
    ]
    records += [
        ConfigRecord(resource_type=kind, resource_name=of, name=name, value=value)
        for kind, of, name, value in settings
    ]
    (data / BOOTSTRAP).write_bytes(encode_snapshot(records, 0, 1000))


def alter(broker: Broker, kind: int, of: str, name: str, value: str) -> int:
    with Connection(broker.bootstrap_servers) as connection:
        return connection.alter(kind, of, name, value)


@pytest.mark.parametrize(("kind", "of", "name", "value"), UNUSABLE)
def test_invalid_stored_value_is_reported_and_the_broker_serves(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: int, of: str, name: str, value: str
) -> None:
    formatted(tmp_path / "data", (kind, of, name, value))
    for _ in range(2):
        caplog.clear()
        with caplog.at_level(logging.WARNING), Broker(tmp_path / "data") as broker:
            broker.bootstrap_servers  # noqa: B018  (binds the listener)
            assert name in caplog.text
            assert alter(broker, RESOURCE_TOPIC, "t", "segment.ms", "60000") == 0


@pytest.mark.parametrize(("kind", "of", "name", "value"), UNUSABLE)
def test_invalid_value_is_rejected_over_the_wire(kind: int, of: str, name: str, value: str) -> None:
    with Broker() as broker:
        broker.create_topic("t")
        assert alter(broker, kind, of, name, value) in (40, 42)
        broker.create_topic("u")


@pytest.mark.parametrize(("kind", "of", "name", "value"), BELOW_THE_LOWEST)
def test_value_below_the_minimum_that_kafka_accepts_survives_a_restart(
    tmp_path: Path, kind: int, of: str, name: str, value: str
) -> None:
    for start in range(2):
        with Broker(tmp_path / "data") as broker:
            if start == 0:
                broker.create_topic("t")
                assert alter(broker, kind, of, name, value) == 0
            broker.create_topic(f"u-{start}")


def test_alterations_are_undone_only_on_the_broker_and_the_cluster(tmp_path: Path) -> None:
    formatted(
        tmp_path / "data",
        (RESOURCE_BROKER, "1", "log.retention.ms", "5"),
        (RESOURCE_BROKER, "", "log.retention.ms", "6"),
        (RESOURCE_BROKER, "", "log.roll.ms", "7"),
        (RESOURCE_BROKER, "2", "log.retention.ms", "8"),
    )
    with Broker(tmp_path / "data") as broker:
        broker.undo_alterations(["log.retention.hours", "listeners", "no.such.setting"])
        with pytest.raises(TypeError, match="several"):
            broker.undo_alterations("log.roll.ms")
    with Broker(tmp_path / "data") as broker:
        configs = broker._image().configs
        assert configs.names(RESOURCE_BROKER) == ["", "2"]
        assert "log.retention.ms" not in configs.of(RESOURCE_BROKER, "")
        assert configs.of(RESOURCE_BROKER, "")["log.roll.ms"] == "7"


def test_new_cluster_stores_the_given_min_insync_replicas() -> None:
    """It stored 1, which overrides the given value: ``acks=all`` waited for no other replica."""
    with Broker(config={"min.insync.replicas": "2"}) as broker:
        assert broker._image().configs.of(RESOURCE_BROKER, "")["min.insync.replicas"] == "2"


def test_stored_min_insync_replicas_follows_the_given_value(tmp_path: Path) -> None:
    """It exists from the first start on and must not be deleted (KIP-966)."""
    for given in (None, "2", "2", None):
        config = {} if given is None else {"min.insync.replicas": given}
        with Broker(tmp_path / "data", config=config) as broker:
            broker.undo_alterations(["min.insync.replicas"])
            stored = broker._image().configs.of(RESOURCE_BROKER, "")
            assert stored["min.insync.replicas"] == (given or "1")


def test_metadata_log_accepts_changes_independent_of_topic_limits() -> None:
    """`message.max.bytes=5` also applied to it, so metadata could no longer be changed."""
    with Broker() as broker:
        assert alter(broker, RESOURCE_BROKER, "", "message.max.bytes", "5") == 0
        broker.create_topic("t")
        assert alter(broker, RESOURCE_BROKER, "", "message.max.bytes", "1000000") == 0


def test_large_concurrent_creations_all_succeed() -> None:
    """Their common batch was larger than the metadata log accepts, so all of them failed."""
    with Broker() as broker, ThreadPoolExecutor(5) as threads:
        made = [threads.submit(broker.create_topic, f"t-{i}", 9000) for i in range(5)]
        for future in made:
            future.result()
        assert [*broker.topics().values()] == [9000] * 5
