"""A node hands over its leaderships if its disk is slower than clients wait; no record fails."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.fairness.disk import Disk
from pykafka_core.cli.client import wire
from pykafka_core.protocol.messages import MetadataResponse
from tests.cluster.clients import consume, isr_of, leaders_of
from tests.cluster.nodes import Processes, processes
from tests.support.patience import PATIENCE_MS, PATIENCE_S, POLL_S, eventually, exactly

pytestmark = pytest.mark.cluster

ILL, ALL = 1, [1, 2, 3]
PARTITIONS = 3
SLOW_MS = 10 * PATIENCE_MS
"""Duration of each write and sync: longer than producers have for a record."""
REQUEST_MS = exactly(3000, "a producer sends again what a write that hangs does not answer")
SESSION = {"broker.session.timeout.ms": exactly(4000, "no bound: a fenced node leads nothing, too")}


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "disk")


@pytest.fixture
def cluster(tmp_path: Path, disk: Disk) -> Iterator[Processes]:
    """Three processes, of which the first leads all partitions of ``orders``."""
    with processes(tmp_path / "data") as made:
        made.settings = {**SESSION, "min.insync.replicas": 2}
        made.environments[ILL] = disk.environment
        made.start(*ALL)
        admin = AdminClient({"bootstrap.servers": made.bootstrap})
        topic = NewTopic("orders", PARTITIONS, replica_assignment=[ALL] * PARTITIONS)
        admin.create_topics([topic])["orders"].result(PATIENCE_S)
        eventually(lambda: isr_of(made.bootstrap, "orders") == [ALL] * PARTITIONS)
        yield made


def partitions_at(node: str) -> Sequence[MetadataResponse.MetadataResponsePartition]:
    """Metadata of one node; the slow one does not learn of changes."""
    with wire.cluster(node, "see the topic") as found:
        (topic,) = (one for one in found.metadata.topics if one.name == "orders")
    return topic.partitions


class Load:
    """A producer that sends to all partitions in turn."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": 2 * PATIENCE_MS,
                "socket.timeout.ms": REQUEST_MS,
                "log_level": 0,
            }
        )
        self.sent: list[str] = []
        self.errors: list[str] = []
        self.acknowledged = [0] * PARTITIONS
        self._ends = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._ends.set()
            thread.join()
        assert self._producer.flush(2 * PATIENCE_S) == 0
        assert self.errors == []

    def goes_on(self) -> None:
        """Return when more records of each partition are acknowledged."""
        before = list(self.acknowledged)
        eventually(
            lambda: all(
                now > then + 20 for now, then in zip(self.acknowledged, before, strict=True)
            )
        )

    def _run(self) -> None:
        while not self._ends.is_set():
            if len(self._producer) < 5 * PARTITIONS:
                partition = len(self.sent) % PARTITIONS
                self.sent.append(f"order {len(self.sent):06}")
                self._producer.produce(
                    "orders", self.sent[-1], partition=partition, on_delivery=self._delivered
                )
            self._producer.poll(POLL_S / 50)

    def _delivered(self, error: object, message: Message) -> None:
        if error is None:
            self.acknowledged[message.partition()] += 1
        else:
            self.errors.append(str(error))


def test_a_slow_disk_is_left_by_its_leaderships_until_it_is_fast(
    cluster: Processes, disk: Disk
) -> None:
    load = Load(cluster.bootstrap)
    with load.running():
        load.goes_on()
        assert leaders_of(cluster.bootstrap, "orders") == [ILL] * PARTITIONS
        with disk.slow(SLOW_MS, f"/data/{ILL}/"):
            load.goes_on()
            for partition in partitions_at(cluster.bootstrap_of([2])):
                assert partition.leader_id in (2, 3)
                assert sorted(partition.isr_nodes) == [2, 3]
        eventually(lambda: isr_of(cluster.bootstrap, "orders") == [ALL] * PARTITIONS)
        load.goes_on()
    assert consume(cluster.bootstrap, "orders", len(load.sent)) == sorted(load.sent)
