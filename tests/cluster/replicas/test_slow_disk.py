"""A node hands over its leaderships if its disk is slower than clients wait; no record fails."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.admin import NewTopic

from bench.fairness.disk import Disk
from pykafka_core.cli.client import wire
from pykafka_core.cli.client.describe_quorum import describe_quorum
from pykafka_core.cli.errors import CliError
from pykafka_core.protocol.messages import MetadataResponse
from tests.cluster.clients import consume, create_topic, isr_of, leaders_of
from tests.cluster.nodes import Processes, processes
from tests.support.patience import PATIENCE_MS, PATIENCE_S, POLL_S, eventually, exactly

pytestmark = pytest.mark.cluster

ILL, ALL = 1, [1, 2, 3]
PARTITIONS = 3
SLOW_MS = 10 * PATIENCE_MS
"""Duration of each write and sync: longer than producers have for a record."""
REQUEST_MS = exactly(3000, "a producer sends again what a write that hangs does not answer")


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "disk")


@contextmanager
def three_nodes(folder: Path, disk: Disk, session_ms: int) -> Iterator[Processes]:
    """Three processes, each of which is on the disk if a test names its directory."""
    with processes(folder) as made:
        made.settings = {"broker.session.timeout.ms": session_ms, "min.insync.replicas": 2}
        made.environments = dict.fromkeys(ALL, disk.environment)
        made.start(*ALL)
        yield made


def make_topic(cluster: Processes, leader: int) -> None:
    """All partitions of ``orders`` are led by one node, and all nodes are in sync."""
    replicas = [leader, *others(leader)]
    topic = NewTopic("orders", PARTITIONS, replica_assignment=[replicas] * PARTITIONS)
    create_topic(cluster.bootstrap, topic)
    eventually(lambda: isr_of(cluster.bootstrap, "orders") == [ALL] * PARTITIONS)


def others(node: int) -> list[int]:
    return [other for other in ALL if other != node]


class Seen(NamedTuple):
    """Metadata of one node; a slow one does not learn of changes."""

    partitions: Sequence[MetadataResponse.MetadataResponsePartition]
    unfenced: frozenset[int]

    @classmethod
    def at(cls, node: str) -> "Seen":
        with wire.cluster(node, "see the topic") as found:
            (topic,) = (one for one in found.metadata.topics if one.name == "orders")
            return cls(topic.partitions, frozenset(found.nodes))

    @property
    def leaders(self) -> set[int]:
        return {partition.leader_id for partition in self.partitions}

    @property
    def isrs(self) -> list[list[int]]:
        return [sorted(partition.isr_nodes) for partition in self.partitions]


def controller_at(node: str) -> int:
    """The active controller, by the response of one node; waits for an election."""
    found: list[int] = []

    def is_elected() -> bool:
        with suppress(CliError), wire.cluster(node, "see the quorum") as cluster:
            partition = describe_quorum(cluster.any()).partition
            found[:] = [] if partition is None else [partition.leader_id]
        return bool(found)

    eventually(is_elected)
    return found[0]


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
    tmp_path: Path, disk: Disk
) -> None:
    session_ms = exactly(4000, "no bound: a fenced node leads nothing, too")
    with three_nodes(tmp_path / "data", disk, session_ms) as cluster:
        make_topic(cluster, ILL)
        load = Load(cluster.bootstrap)
        with load.running():
            load.goes_on()
            assert leaders_of(cluster.bootstrap, "orders") == [ILL] * PARTITIONS
            well = cluster.bootstrap_of([2])
            with disk.slow(SLOW_MS, f"/data/{ILL}/"):
                load.goes_on()
                assert Seen.at(well).leaders <= {2, 3}
                assert Seen.at(well).isrs == [[2, 3]] * PARTITIONS
            eventually(lambda: Seen.at(well).isrs == [ALL] * PARTITIONS)
            load.goes_on()
        assert consume(cluster.bootstrap, "orders", len(load.sent)) == sorted(load.sent)


@pytest.mark.parametrize("appends", [False, True], ids=["idle", "appends"])
def test_an_active_controller_on_a_slow_disk_hands_over_within_its_session(
    tmp_path: Path, disk: Disk, appends: bool
) -> None:
    """Its leaderships moved when its session ended: its control thread waited for quorum-state."""
    session_ms = exactly(12_000, "a busy machine delays a heartbeat by less")
    with three_nodes(tmp_path / "data", disk, session_ms) as cluster:
        ill = controller_at(cluster.bootstrap)
        make_topic(cluster, ill)
        well = cluster.bootstrap_of(others(ill)[:1])
        load = Load(cluster.bootstrap)
        with load.running():
            load.goes_on()
            with disk.slow(SLOW_MS, f"/data/{ill}/"):
                if appends:
                    create_topic(well, NewTopic("invoices", 1, 2))
                    assert controller_at(well) != ill
                eventually(lambda: ill not in Seen.at(well).leaders)
                assert Seen.at(well).unfenced == set(ALL)
                load.goes_on()
                assert controller_at(well) != ill
            eventually(lambda: Seen.at(well).isrs == [ALL] * PARTITIONS)
            load.goes_on()
        assert consume(cluster.bootstrap, "orders", len(load.sent)) == sorted(load.sent)
