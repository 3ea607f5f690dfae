"""The cost of idle clients for a cluster: ``python -m bench.cluster.idle_clients``.

Idle clients use all connections of a partition's leader, and reconnect one second after a
connection is closed. The writer connects first. Then each follower in turn is killed and restarted,
and must connect to the leader. Finally the idle clients disconnect.
"""

import argparse
import resource
import select
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

from bench.client import PRODUCE, Connection, produce
from bench.cluster import failover, requests
from bench.cluster.clusters import NODES, Conditions, Kafka, Nodes, Ours
from bench.peers import raw
from bench.peers.brokers import compile_package
from bench.peers.work import Figures
from pykafka_core.protocol import decode_response
from pykafka_core.protocol.messages import ProduceResponse

TOPIC, MIN_ISR = "orders", 2
SETTLED_S, AWAY_S, BACK_S = 5.0, 2.0, 20.0
BACKOFF_S, LOOK_S, PATIENCE_S = 1.0, 0.1, 120.0
LAG = {"replica.lag.time.max.ms": 3000}
BOUNDS: Mapping[str, tuple[int, Conditions]] = {
    "100 idle, max.connections=100": (100, Conditions({**LAG, "max.connections": 100})),
    "1,500 idle, 1,024 descriptors": (1500, Conditions(LAG, descriptors=1024)),
}
CLUSTERS: Mapping[str, Callable[[Path, Conditions], Nodes]] = {
    "ours": lambda folder, conditions: Ours(folder, "os", conditions),
    "kafka": Kafka,
}


class IdleClients:
    """Connections that send nothing, and are reopened `BACKOFF_S` after they are closed."""

    def __init__(self, address: str, count: int) -> None:
        host, _, port = address.rpartition(":")
        self._at, self._count = (host, int(port)), count
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        opened: dict[int, socket.socket] = {}
        poll, due = select.poll(), [0.0] * self._count
        while not self._ends.is_set():
            while due and due[0] <= time.monotonic():
                due.pop(0)
                one = self._connect()
                opened[one.fileno()] = one
                poll.register(one, select.POLLIN)
            for descriptor, _ in poll.poll(LOOK_S * 1000):
                poll.unregister(descriptor)
                opened.pop(descriptor).close()
                due.append(time.monotonic() + BACKOFF_S)
        for one in opened.values():
            one.close()

    def _connect(self) -> socket.socket:
        """Start a connection, which the server may accept later."""
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(self._at)
        return one

    def leave(self) -> None:
        self._ends.set()
        self._thread.join()


class Writes:
    """Writes one record after another with acks=all, on one connection until it is closed.

    Attributes:
        acknowledged: Time of each acknowledgement, by `time.monotonic`.
    """

    def __init__(self, address: str) -> None:
        self.acknowledged: list[float] = []
        self._address = address
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        frame = produce(TOPIC, 0, raw.batch(1, 100), acks=-1)
        while not self._ends.is_set():
            try:
                with Connection(self._address, PATIENCE_S) as connection:
                    self._write(connection, frame)
            except OSError:
                time.sleep(LOOK_S)

    def _write(self, connection: Connection, frame: bytes) -> None:
        while not self._ends.is_set():
            response = decode_response(*PRODUCE, connection.exchange(frame))
            assert isinstance(response, ProduceResponse)
            if response.responses[0].partition_responses[0].error_code == requests.NO_ERROR:
                self.acknowledged.append(time.monotonic())
            else:
                time.sleep(LOOK_S)

    def end(self) -> None:
        self._ends.set()
        self._thread.join()


class Isr:
    """The size of the ISR over time.

    Attributes:
        asked: The address of a running node that is not the leader.
        seen: Times and sizes.
    """

    def __init__(self, asked: str) -> None:
        self.asked = asked
        self.seen: list[tuple[float, int]] = []
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.wait(LOOK_S):
            try:
                (partition,) = requests.partitions(self.asked, TOPIC, patience_s=1.0)
            except OSError:
                continue
            if partition.isr_nodes:
                self.seen.append((time.monotonic(), len(partition.isr_nodes)))

    def end(self) -> None:
        self._ends.set()
        self._thread.join()

    def seconds_below(self, size: int, since: float) -> float:
        looks = pairwise(self.seen)
        return sum(b[0] - a[0] for a, b in looks if a[0] >= since and a[1] < size)

    def changes(self, since: float) -> int:
        sizes = [size for at, size in self.seen if at >= since]
        return sum(a != b for a, b in pairwise(sizes))

    def course(self, since: float) -> str:
        """Return each size with the second at which it was first seen."""
        said, parts = 0, []
        for at, size in self.seen:
            if at >= since and size != said:
                parts.append(f"{at - since:.0f} s: {size}")
                said = size
        return ", ".join(parts)


def starve(nodes: Nodes, idle_count: int) -> Figures:
    """Run the whole test on three stopped nodes."""
    nodes.start(*NODES)
    leader = failover.another_than(failover.controller_of(nodes))
    failover.create(nodes, TOPIC, leader)
    followers = [node for node in NODES if node != leader]
    writes, isr = Writes(nodes.address(leader)), Isr(nodes.address(followers[1]))
    time.sleep(SETTLED_S)
    begun, idle = time.monotonic(), IdleClients(nodes.address(leader), idle_count)
    time.sleep(SETTLED_S)
    for follower, other in (followers, followers[::-1]):
        isr.asked = nodes.address(other)
        failover.kill(nodes, follower)
        time.sleep(AWAY_S)
        nodes.launch(follower)
        time.sleep(BACK_S)
    ended = time.monotonic()
    is_whole = bool(isr.seen) and isr.seen[-1][1] == len(NODES)
    idle.leave()
    failover.wait_for_isr(nodes, TOPIC)
    whole_after = 0.0 if is_whole else time.monotonic() - ended
    writes.end()
    isr.end()
    print(f"    ISR: {isr.course(begun)}", flush=True)
    within = [begun, *(at for at in writes.acknowledged if begun <= at <= ended), ended]
    return {
        "records accepted": len(within) - 2,
        "longest stall s": max(b - a for a, b in pairwise(within)),
        f"ISR below {MIN_ISR} s": isr.seconds_below(MIN_ISR, begun),
        f"ISR below {len(NODES)} s": isr.seconds_below(len(NODES), begun),
        "changes of the ISR": isr.changes(begun),
        "ISR whole after they left s": whole_after,
    }


def main() -> None:
    """Run each cluster with each limit, with a common listener and with one for brokers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="bounds whose name contains this")
    parser.add_argument("--without", nargs="+", default=[], choices=CLUSTERS)
    options = parser.parse_args()
    compile_package()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for bound, (count, conditions) in BOUNDS.items():
        for has_own_listener in (False, True):
            name = f"{bound}, {'brokers apart' if has_own_listener else 'one listener'}"
            for cluster in CLUSTERS if options.only in name else ():
                if cluster not in options.without:
                    print(f"{name}, {cluster}", flush=True)
                    report(cluster, count, conditions._replace(has_own_listener=has_own_listener))


def report(cluster: str, idle_count: int, conditions: Conditions) -> None:
    """Run the test and print its figures."""
    with tempfile.TemporaryDirectory() as made:
        nodes = CLUSTERS[cluster](Path(made), conditions)
        try:
            figures = starve(nodes, idle_count)
        finally:
            nodes.close()
    print("    " + ", ".join(f"{name}: {value:.5g}" for name, value in figures.items()), flush=True)


if __name__ == "__main__":
    main()
