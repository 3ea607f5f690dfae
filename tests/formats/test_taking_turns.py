"""Apache Kafka and we open one data directory in turn: neither loses what the other wrote, or refuses it."""

import os
from pathlib import Path

import pytest

from bench.peers.brokers import QUICK_TO_START, ApacheKafka
from pykafka_core import Broker
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.jvm

TURNS = int(os.environ.get("PYKAFKA_TURNS", "3"))
"""Each starts Apache Kafka once, which takes seconds; `make turns` takes ten."""
SNAPSHOT_OFTEN = {
    "metadata.log.max.record.bytes.between.snapshots": "1",
    "metadata.max.retention.bytes": "1",
}
"""Each commit makes a snapshot, and the one before goes: the quorum's records with it, if ours had none."""


def topics_of(bootstrap: str) -> set[str]:
    from confluent_kafka.admin import AdminClient

    return set(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=PATIENCE_S).topics)


def create(bootstrap: str, name: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(PATIENCE_S)


def use(bootstrap: str, name: str, expected: set[str]) -> None:
    """Find what was there, and leave a topic behind."""
    assert topics_of(bootstrap) >= expected
    create(bootstrap, name)
    expected.add(name)


def test_kafka_and_we_open_one_directory_in_turn(tmp_path: Path) -> None:
    kafka = ApacheKafka(tmp_path, jvm=QUICK_TO_START)
    expected: set[str] = set()
    try:
        for turn in range(TURNS):
            use(kafka.bootstrap, f"theirs-{turn}", expected)
            kafka.halt()
            for step in range(2):  # the second start has our own snapshot alone
                with Broker(kafka.data, config=SNAPSHOT_OFTEN) as broker:
                    use(broker.bootstrap_servers, f"ours-{turn}-{step}", expected)
            kafka.start()
        assert topics_of(kafka.bootstrap) >= expected
    finally:
        kafka.stop()
