"""The disk of one node is full for a while, under load: `python -m bench.cluster.full_disk --help`.

Only root can run it, because each node's data are on a separate tmpfs. Two partitions have one
writer each, an idempotent producer of librdkafka; initially the node with the full disk leads one,
another node the other. Apache Kafka's node exits; it is restarted once there is space.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

from confluent_kafka import Producer

from bench.cluster import failover, requests
from bench.cluster.clusters import NODES, Kafka, Nodes, Ours

TOPIC = "load"
VALUE = b"x" * 10_000
EVERY_S = 0.02
"""Interval between two records of a writer."""
IN_FLIGHT_MAX = 50
SETTLED_S = 5.0
INSIDE = "BENCH_OWN_MOUNTS"
CLUSTERS: dict[str, Callable[[Path], Nodes]] = {
    "ours": lambda folder: Ours(folder, "os"),
    "kafka": Kafka,
}


class Writer:
    """Sends to one partition until it is closed, and records the acknowledgements.

    Attributes:
        acknowledged: Monotonic times of acknowledgements.
        failed: Errors of records that were not delivered.
    """

    def __init__(self, bootstrap: str, partition: int) -> None:
        settings = {"enable.idempotence": True, "linger.ms": 0, "log_level": 0}
        self._producer = Producer({"bootstrap.servers": bootstrap, **settings})
        self._partition = partition
        self._ends = threading.Event()
        self.acknowledged: list[float] = []
        self.failed: list[str] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        """Stop once all records are acknowledged or failed."""
        self._ends.set()
        self._thread.join()
        self._producer.flush(failover.PATIENCE_S)

    def between(self, begin: float, end: float) -> tuple[int, float]:
        """Return the acknowledged records in this time, and the longest gap."""
        times = [at for at in self.acknowledged if begin <= at < end]
        marks = [begin, *times, end]
        return len(times), max(later - at for at, later in pairwise(marks))

    def _run(self) -> None:
        while not self._ends.is_set():
            if len(self._producer) < IN_FLIGHT_MAX:
                # A producer that failed permanently raises; `failed` has the errors.
                with suppress(Exception):
                    self._producer.produce(
                        TOPIC, VALUE, partition=self._partition, on_delivery=self._told
                    )
            self._producer.poll(0)
            self._ends.wait(EVERY_S)

    def _told(self, error: object, _: object) -> None:
        if error is None:
            self.acknowledged.append(time.monotonic())
        else:
            self.failed.append(str(error))


@contextmanager
def small_disks(nodes: Nodes, size: str) -> Iterator[None]:
    """Mount a separate tmpfs for each node's data."""
    for node in NODES:
        data, aside = nodes.data(node), nodes.folder / f"{node}.aside"
        data.mkdir(exist_ok=True)
        data.rename(aside)
        data.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "bench", data], check=True)
        shutil.copytree(aside, data, dirs_exist_ok=True)
    try:
        yield
    finally:
        for process in nodes.up.values():
            process.kill()
            process.wait()
        for node in NODES:
            subprocess.run(["umount", nodes.data(node)], check=True)


def fill(data: Path) -> Path:
    """Fill the disk completely."""
    filler = data / "filler"
    with filler.open("ab", buffering=0) as file:
        for size in (1 << 20, 4096):
            with suppress(OSError):
                while True:
                    os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), size)
    return filler


def measure(nodes: Nodes, full_s: float) -> None:
    """Print the writers' figures, and the ISRs over time."""
    nodes.start(*NODES)
    victim = failover.another_than(failover.controller_of(nodes))
    other = next(node for node in NODES if node not in (victim, failover.controller_of(nodes)))
    create(nodes, victim, other)
    writers = [Writer(nodes.bootstrap, partition) for partition in (0, 1)]
    time.sleep(SETTLED_S)
    begin = time.monotonic()
    filler = fill(nodes.data(victim))
    changes = watch(nodes, other, begin, begin + full_s)
    filler.unlink()
    freed = time.monotonic()
    if nodes.up[victim].poll() is not None:
        nodes.up.pop(victim)
        nodes.launch(victim)
    changes += watch(nodes, other, begin, freed + full_s, until_whole=True)
    end = time.monotonic()
    for writer in writers:
        writer.close()
    print(f"{nodes.name}: the disk of node {victim} is full for {freed - begin:.0f} s")
    for name, writer in zip(("led by it", "led by another"), writers, strict=True):
        records, stall_s = writer.between(begin, freed)
        later, later_stall_s = writer.between(freed, end)
        print(
            f"  partition {name}: {records} records, longest stall {stall_s:.2f} s; then {later} in"
            f" {end - freed:.1f} s, {later_stall_s:.2f} s; given up {len(writer.failed)} {writer.failed[:1]}"
        )
    for at, partition, leader, isr in changes:
        print(f"  {at:7.2f} s  partition {partition}  leader {leader}  ISR {isr}")


def create(nodes: Nodes, *leaders: int) -> None:
    """Create a partition for each of these leaders, with replicas on all nodes."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": nodes.bootstrap, "log_level": 0})
    replicas = [[leader, *(node for node in NODES if node != leader)] for leader in leaders]
    new = NewTopic(TOPIC, len(replicas), replica_assignment=replicas)
    admin.create_topics([new], operation_timeout=60)[TOPIC].result(failover.PATIENCE_S)
    failover.wait_for_isr(nodes, TOPIC, len(replicas))


Change = tuple[float, int, int, list[int]]


def watch(
    nodes: Nodes, at: int, begin: float, end: float, *, until_whole: bool = False
) -> list[Change]:
    """Return each change of leaders and ISRs in the metadata of one node."""
    changes: list[Change] = []
    known: dict[int, tuple[int, list[int]]] = {}
    while time.monotonic() < end:
        found = {
            p.partition_index: (p.leader_id, sorted(p.isr_nodes))
            for p in requests.partitions(nodes.address(at), TOPIC)
        }
        for index in sorted(found):
            if known.get(index) != found[index]:
                changes.append((time.monotonic() - begin, index, *found[index]))
        known = found
        if until_whole and all(isr == list(NODES) for _, isr in found.values()):
            return changes
        time.sleep(0.05)
    return changes


def main() -> None:
    """Run the clusters one after another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="the disk is full")
    parser.add_argument("--size", default="256m", help="of each node's disk")
    parser.add_argument("--clusters", nargs="+", default=list(CLUSTERS), choices=CLUSTERS)
    options = parser.parse_args()
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        module = [sys.executable, "-m", "bench.cluster.full_disk", *sys.argv[1:]]
        os.execvp("unshare", ["unshare", "-m", *module])
    with tempfile.TemporaryDirectory() as made:
        for name in options.clusters:
            nodes = CLUSTERS[name](Path(made))
            with small_disks(nodes, options.size):
                measure(nodes, options.seconds)
            nodes.up.clear()
            nodes.close()


if __name__ == "__main__":
    main()
