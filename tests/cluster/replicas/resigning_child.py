"""The scenarios of `test_resigned`: ``resigning_child SCENARIO DIRECTORY DISK``.

Each node's data are on a separate small tmpfs. ``DISK`` is the folder of a disk of
`bench.fairness.disk`, which delays writes of the process or makes them fail.
"""

import logging
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from bench.fairness.disk import Disk
from pykafka_core import Cluster
from pykafka_core.metadata.health import State
from pykafka_core.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from pykafka_core.types import Durability
from tests.cluster.clients import consume, create_placed, produce
from tests.support.patience import PATIENCE_S, POLL_S, eventually, exactly
from tests.support.wire import Connection

ALL = (0, 1, 2)
NODE_BYTES = 64 << 20
TOPIC = "orders"
PARTITIONS = 3
VALUE_BYTES = 4_000
PACE_S = exactly(0.005, "a slower machine sends less; the other disks have space for minutes of it")
STALL_MS = 15_000
"""Seven sessions of a cluster with quick settings."""
WRITTEN = 200
"""Records that are acknowledged before the disks are full."""


class Load:
    """An idempotent producer that sends to all partitions in turn until it is closed."""

    def __init__(self, cluster: Cluster) -> None:
        settings = {"enable.idempotence": True, "linger.ms": 5, "log_level": 0}
        self._producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, **settings})
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.sent: list[str] = []
        self.acknowledged = [0] * PARTITIONS
        self.errors: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE_S) == 0
        assert not self.errors, self.errors[:3]

    def goes_on(self, records: int = 20) -> None:
        """Return when so many more records of each partition are acknowledged."""
        before = list(self.acknowledged)
        eventually(
            lambda: all(
                now >= then + records for now, then in zip(self.acknowledged, before, strict=True)
            ),
            f"{records} records more than {before}",
        )

    def _run(self) -> None:
        while not self._ends.is_set() and not self.errors:
            if len(self._producer) < 5 * PARTITIONS:
                self._send(len(self.sent) % PARTITIONS)
            self._producer.poll(PACE_S)

    def _send(self, partition: int) -> None:
        def on_delivery(error: object, _: object) -> None:
            if error is None:
                self.acknowledged[partition] += 1
            else:
                self.errors.append(str(error))

        value = str(len(self.sent)).ljust(VALUE_BYTES, "x")
        self.sent.append(value)
        self._producer.produce(TOPIC, value, partition=partition, on_delivery=on_delivery)


class Scenario:
    """Three nodes; one of them leads a topic that all have, and has the only replicas of another.

    Attributes:
        ill: That node.
        failed_count: How often a node has detected a failing disk.
    """

    def __init__(self, folder: Path, durability: Durability = "os") -> None:
        self.folder = folder
        self.failed_count = 0
        logging.getLogger("pykafka_core").addHandler(_Handler(self._logged))
        self.cluster = Cluster(
            3,
            data=folder,
            durability=durability,
            config={"min.insync.replicas": "2"},
        )
        self.ill = 1
        order = [self.ill, *(node for node in ALL if node != self.ill)]
        create_placed(self.cluster, TOPIC, *[order] * PARTITIONS)
        create_placed(self.cluster, "alone", [self.ill])
        self.cluster.wait_isr(TOPIC)
        assert self.leaders() == {self.ill}

    def _logged(self, line: str) -> None:
        self.failed_count += "the disk fails" in line

    def leaders(self) -> set[int | None]:
        return {self.cluster.leader(TOPIC, partition) for partition in range(PARTITIONS)}

    def wait_resigned(self, partitions: tuple[int, ...] = tuple(range(PARTITIONS))) -> None:
        """Wait until others lead these partitions, and the node is in no ISR of them."""
        cluster = self.cluster
        eventually(
            lambda: (
                not {cluster.leader(TOPIC, at) for at in partitions} & {self.ill, None}
                and all(self.ill not in cluster.isr(TOPIC, at) for at in partitions)
            )
        )

    def isrs(self) -> list[tuple[int, ...]]:
        return [self.cluster.isr(TOPIC, partition) for partition in range(PARTITIONS)]

    def wait_back(self) -> None:
        """Wait until every replica is in sync again."""
        eventually(lambda: all(set(isr) == set(ALL) for isr in self.isrs()))

    def check(self, load: Load) -> None:
        """Check that each record exists once, and that the cluster ends cleanly."""
        values = consume(self.cluster.bootstrap_servers, TOPIC, len(load.sent))
        assert values == sorted(load.sent)
        self.cluster.close()


def read_without_group(bootstrap: str, count: int) -> list[str]:
    """Return the first values of all partitions, without writing an offset."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "-", "log_level": 0}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, at, OFFSET_BEGINNING) for at in range(PARTITIONS)])
    values: list[str] = []

    def has_all() -> bool:
        messages = consumer.consume(count, POLL_S)
        values.extend(m.value().decode() for m in messages if m.error() is None)
        return len(values) >= count

    eventually(has_all, f"{count} values")
    consumer.close()
    return values


class _Handler(logging.Handler):
    """Passes each log line to a function."""

    def __init__(self, take: Callable[[str], None]) -> None:
        super().__init__()
        self._take = take

    def emit(self, record: logging.LogRecord) -> None:
        self._take(record.getMessage())


def fill(node: Path) -> Path:
    """Fill the node's disk to the last byte."""
    filler = node / "filler"
    with filler.open("ab", buffering=0) as file:
        for size in (1 << 20, 4096):
            with suppress(OSError):
                while True:
                    os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), size)
    return filler


def full(folder: Path, _: Disk) -> None:
    """The disk is full temporarily."""
    scenario = Scenario(folder)
    cluster = scenario.cluster
    with Load(cluster) as load:
        load.goes_on()
        filler = fill(folder / str(scenario.ill))
        scenario.wait_resigned()
        load.goes_on()
        assert cluster.leader("alone") == scenario.ill
        filler.unlink()
        scenario.wait_back()
        load.goes_on()
    scenario.check(load)


def all_full(folder: Path, _: Disk) -> None:
    """All disks are full: two members stay in sync, one leads, and no record is lost at its end."""
    scenario = Scenario(folder)
    cluster = scenario.cluster
    written = [f"number {number}" for number in range(WRITTEN)]
    produce(cluster.bootstrap_servers, TOPIC, written)
    fillers = [fill(folder / str(node)) for node in ALL]
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
    producer = Producer({**settings, "message.timeout.ms": exactly(1000, "each fails")})

    def is_refused() -> bool:
        for partition in range(PARTITIONS):
            producer.produce(TOPIC, "x" * VALUE_BYTES, partition=partition)
        producer.flush(PATIENCE_S)
        return scenario.failed_count >= 2

    eventually(is_refused, "a second leader finds its disk full")
    assert all(len(cluster.isr(TOPIC, at)) == 2 for at in range(PARTITIONS))
    leader = cluster.wait_leader(TOPIC)
    cluster.kill(leader)
    eventually(lambda: not scenario.leaders() & {leader, None})
    assert set(written) <= set(read_without_group(cluster.bootstrap_servers, WRITTEN))
    for filler in fillers:
        filler.unlink()
    cluster.start(leader)
    scenario.wait_back()
    cluster.close()


def hanging(folder: Path, disk: Disk) -> None:
    """One write to one file takes longer than a session."""
    scenario = Scenario(folder, "fsync")
    cluster, others = scenario.cluster, (1, 2)
    with Load(cluster) as load:
        load.goes_on()
        disk.stall(f"/{scenario.ill}/{TOPIC}-0/", STALL_MS)
        scenario.wait_resigned((0,))
        load.goes_on()
        assert {cluster.leader(TOPIC, at) for at in others} == {scenario.ill}
        assert all(set(cluster.isr(TOPIC, at)) == set(ALL) for at in others)
        scenario.wait_back()
        load.goes_on()
    assert scenario.failed_count == 0
    scenario.check(load)


def failing(folder: Path, disk: Disk) -> None:
    """Files of one partition cannot be written until the node is restarted."""
    scenario = Scenario(folder, "fsync")
    cluster = scenario.cluster
    with Load(cluster) as load:
        load.goes_on()
        disk.fail(f"/{scenario.ill}/{TOPIC}-0/")
        scenario.wait_resigned((0,))
        load.goes_on()
        assert {cluster.leader(TOPIC, index) for index in (1, 2)} == {scenario.ill}
        disk.heal()
        cluster.kill(scenario.ill)
        cluster.start(scenario.ill)
        scenario.wait_back()
    scenario.check(load)


def single(folder: Path, _: Disk) -> None:
    """The only node's disk is full: it still leads, refuses records, and later accepts them."""
    with Cluster(1, data=folder) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        (node,) = cluster.brokers
        produce(cluster.bootstrap_servers, TOPIC, ["before"] * PARTITIONS)
        filler = fill(folder / "0")
        settings = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
        producer = Producer({**settings, "message.timeout.ms": exactly(1000, "each fails")})

        def is_full() -> bool:
            producer.produce(TOPIC, "x" * VALUE_BYTES, partition=0)
            producer.flush(PATIENCE_S)
            return bool(node.health()[State.FULL_DIRECTORY])

        eventually(is_full)
        assert {cluster.leader(TOPIC, at) for at in range(PARTITIONS)} == {0}
        assert read_without_group(cluster.bootstrap_servers, PARTITIONS) == ["before"] * PARTITIONS
        filler.unlink()
        produce(cluster.bootstrap_servers, TOPIC, ["after"] * PARTITIONS)
        eventually(lambda: not any(node.health().values()))


def reassigned(folder: Path, _: Disk) -> None:
    """Replicas move away from a node with a full disk, and back before there is space."""
    scenario = Scenario(folder)
    cluster, ill = scenario.cluster, scenario.ill
    others = [node for node in ALL if node != ill]
    with Load(cluster) as load:
        load.goes_on()
        filler = fill(folder / str(ill))
        scenario.wait_resigned()
        reassign(cluster, others)
        eventually(lambda: all(set(isr) == set(others) for isr in scenario.isrs()))
        load.goes_on()
        reassign(cluster, [*others, ill])
        load.goes_on()
        assert not scenario.leaders() & {ill, None}
        filler.unlink()
        scenario.wait_back()
        load.goes_on()
        reassign(cluster, [ill, *others])
        filler = fill(folder / str(ill))
        load.goes_on()
        filler.unlink()
        scenario.wait_back()
    scenario.check(load)


def reassign(cluster: Cluster, to: list[int]) -> None:
    """Start to move all partitions; the first node is their preferred leader."""
    of = AlterPartitionReassignmentsRequest
    partitions = [
        of.ReassignablePartition(partition_index=at, replicas=to) for at in range(PARTITIONS)
    ]
    request = of(
        timeout_ms=30_000, topics=[of.ReassignableTopic(name=TOPIC, partitions=partitions)]
    )
    with Connection(cluster.bootstrap_servers.split(",")[0]) as connection:
        response = connection.ask(45, 0, request, AlterPartitionReassignmentsResponse)
    assert {one.error_code for one in response.responses[0].partitions} == {0}


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (full, all_full, hanging, failing, single, reassigned)
}

if __name__ == "__main__":
    SCENARIOS[sys.argv[1]](Path(sys.argv[2]), Disk(Path(sys.argv[3])))
