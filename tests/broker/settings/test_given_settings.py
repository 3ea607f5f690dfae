"""Given settings that Apache Kafka accepts: the broker starts, and they have the same meaning.

``log.retention.hours=-1``, which means "forever", prevented the start.
"""

import os
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource

from pykafka_core import Broker
from tests.support.patience import PATIENCE_S

FOREVER = "-1"


@pytest.mark.parametrize(
    ("given", "topic_setting", "effective"),
    [
        ({"log.retention.hours": "-1"}, "retention.ms", FOREVER),
        ({"log.retention.minutes": "-7"}, "retention.ms", FOREVER),
        ({"log.retention.ms": "-2"}, "retention.ms", FOREVER),
        ({"log.retention.bytes": "-2"}, "retention.bytes", "-2"),
        ({"log.local.retention.ms": "-2"}, "local.retention.ms", "-2"),
        ({"log.retention.hours": "2147483647"}, "retention.ms", "7730941129200000"),
        ({"broker.id": "-1"}, "retention.ms", "604800000"),
        ({"replica.lag.time.max.ms": "9223372036854775807"}, "retention.ms", "604800000"),
    ],
)
def test_number_accepted_by_kafka_starts_a_broker(
    given: dict[str, str], topic_setting: str, effective: str
) -> None:
    with Broker(config=given) as broker:
        broker.create_topic("t")
        assert broker.settings.topic_value(topic_setting, {}) == effective


DELAY = "group.initial.rebalance.delay.ms"
INTERVAL = "group.consumer.heartbeat.interval.ms"
INTERVAL_MIN = "group.consumer.min.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL = "group.consumer.assignment.interval.ms"


@pytest.mark.parametrize(
    ("given", "effective"),
    [
        ({}, (0, 50, 50, 0)),
        ({DELAY: 3000}, (3000, 50, 50, 0)),
        ({INTERVAL: 5000}, (0, 5000, 5000, 0)),
        ({INTERVAL_MIN: 2000}, (0, 2000, 5000, 0)),
        ({INTERVAL_MIN: 20, INTERVAL: 20}, (0, 20, 20, 0)),
        ({ASSIGNMENT_INTERVAL: 500}, (0, 50, 50, 500)),
    ],
)
def test_embedded_broker_has_fast_defaults(
    given: dict[str, int], effective: tuple[int, int, int, int]
) -> None:
    with Broker(config=given) as broker:
        settings = broker.settings
        names = (DELAY, INTERVAL_MIN, INTERVAL, ASSIGNMENT_INTERVAL)
        assert tuple(map(settings.int, names)) == effective


def described(broker: Broker, kind: object, name: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(kind, name)
    client = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    found: dict[str, ConfigEntry] = client.describe_configs([resource])[resource].result(PATIENCE_S)
    return found


def test_a_broker_reports_its_identity_and_the_replicas_that_its_topics_get(tmp_path: Path) -> None:
    with Broker(tmp_path / "data", listeners="127.0.0.1:0") as broker:
        found = described(broker, ConfigResource.Type.BROKER, "1")
        expected = {
            "node.id": "1",
            "broker.id": "1",
            "process.roles": "broker,controller",
            "log.dirs": os.fspath(tmp_path / "data"),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "share.coordinator.state.topic.replication.factor": "1",
        }
        assert {name: found[name].value for name in expected} == expected


def test_used_directory_is_reported(tmp_path: Path) -> None:
    with Broker(tmp_path, config={"log.dirs": "elsewhere"}) as broker:
        found = described(broker, ConfigResource.Type.BROKER, "1")
        assert found["log.dirs"].value == os.fspath(tmp_path)


def test_durability_does_not_override_settings_of_topics(tmp_path: Path) -> None:
    """Tools that copy a topic's overrides to another cluster also copied ``flush.messages=1``."""
    with Broker(tmp_path, durability="fsync") as broker:
        broker.create_topic("orders", config={"retention.ms": 5000})
        found = described(broker, ConfigResource.Type.TOPIC, "orders")
        assert found["flush.messages"].value == "1"
        altered = {name for name, one in found.items() if not one.is_default}
        assert altered == {"retention.ms", "min.insync.replicas"}  # Kafka stores the second one
