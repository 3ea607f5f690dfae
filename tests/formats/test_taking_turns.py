"""Apache Kafka and our broker open one data directory in turn, and read each other's topics."""

import os
import shutil
from pathlib import Path

import pytest

from bench.peers.brokers import QUICK_TO_START, ApacheKafka
from pykafka_core import Broker
from pykafka_core.errors import StorageLockedError
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.jvm

TURNS = int(os.environ.get("PYKAFKA_TURNS", "3"))
"""Each turn starts Apache Kafka once, which takes seconds; `make turns` runs ten turns."""
SNAPSHOT_OFTEN = {
    "metadata.log.max.record.bytes.between.snapshots": "1",
    "metadata.max.retention.bytes": "1",
}
"""Each commit writes a snapshot and deletes the previous one.

The quorum's records would be deleted, too, if our snapshots did not contain them.
"""


def topics_of(bootstrap: str) -> set[str]:
    from confluent_kafka.admin import AdminClient

    return set(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=PATIENCE_S).topics)


def create(bootstrap: str, name: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(PATIENCE_S)


def use(bootstrap: str, name: str, expected: set[str]) -> None:
    """Check that the expected topics exist, and create another one."""
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
            for step in range(2):  # the second start finds only our own snapshot
                with Broker(kafka.data, config=SNAPSHOT_OFTEN) as broker:
                    use(broker.bootstrap_servers, f"ours-{turn}-{step}", expected)
            kafka.start()
        assert topics_of(kafka.bootstrap) >= expected
    finally:
        kafka.stop()


def test_kafka_and_we_do_not_open_one_directory_at_once(tmp_path: Path) -> None:
    kafka = ApacheKafka(tmp_path, jvm=QUICK_TO_START)
    try:
        with pytest.raises(StorageLockedError):
            Broker(kafka.data)
        kafka.halt()
        with Broker(kafka.data) as broker:
            create(broker.bootstrap_servers, "ours")
            shutil.copytree(kafka.data, tmp_path / "copy")
            with pytest.raises(RuntimeError, match="ended with"):
                kafka.start()
            create(broker.bootstrap_servers, "more")
        kafka.start()
        assert topics_of(kafka.bootstrap) >= {"ours", "more"}
    finally:
        kafka.stop()
