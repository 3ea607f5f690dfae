"""Time without successful writes when a node leaves: seconds, by kind of failure."""

import signal
import threading
import time
from collections.abc import Callable

from bench.cluster import requests
from bench.cluster.clusters import NODES, Nodes
from bench.peers.work import Figures

MANY_PARTITIONS = 5000
SETTLED_S = 1.0
"""How long writes continue before a node leaves, and after the others have recovered."""
PATIENCE_S = 300.0

Act = Callable[[Nodes, int], None]


def create(nodes: Nodes, topic: str, leader: int, partitions: int = 1) -> None:
    """Create a topic led by one node; wait until every node has the full ISRs in its metadata."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": nodes.bootstrap, "log_level": 0})
    replicas = [leader, *(node for node in NODES if node != leader)]
    new = NewTopic(topic, partitions, replica_assignment=[replicas] * partitions)
    admin.create_topics([new], operation_timeout=60, request_timeout=60)[topic].result(PATIENCE_S)
    wait_for_isr(nodes, topic, partitions)


def delete(nodes: Nodes, topic: str) -> None:
    """Delete a topic."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": nodes.bootstrap, "log_level": 0})
    admin.delete_topics([topic], operation_timeout=60)[topic].result(PATIENCE_S)


def wait_for_isr(nodes: Nodes, topic: str, partitions: int = 1) -> None:
    """Return once every node has the full ISRs of a topic in its metadata."""

    def is_whole() -> bool:
        known = [requests.partitions(nodes.address(node), topic) for node in nodes.up]
        return all(
            len(found) == partitions and all(len(p.isr_nodes) == len(NODES) for p in found)
            for found in known
        )

    wait_until(is_whole)


def wait_until(condition: Callable[[], bool], every_s: float = 0.005) -> None:
    """Poll a condition.

    Raises:
        RuntimeError: It is still false after `PATIENCE_S`.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"this did not become so within {PATIENCE_S} s")
        time.sleep(every_s)


class Gap:
    """The longest time between two acknowledgements of a continuous writer."""

    def __init__(self, writer: requests.Writer) -> None:
        self._writer, self._last, self._longest = writer, writer.write(), 0.0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.is_set():
            acknowledged = self._writer.write()
            self._longest = max(self._longest, acknowledged - self._last)
            self._last = acknowledged

    def end(self) -> float:
        """Stop writing; return the gap in seconds."""
        self._ends.set()
        self._thread.join()
        self._writer.close()
        return self._longest


def kill(nodes: Nodes, node: int) -> None:
    """Kill a process with SIGKILL."""
    nodes.signal(node, signal.SIGKILL)
    nodes.reap(node)


def stop(nodes: Nodes, node: int) -> None:
    """Stop a process with SIGTERM, and wait for its end."""
    nodes.signal(node, signal.SIGTERM)
    nodes.reap(node)


def pause(nodes: Nodes, node: int) -> None:
    """Pause a process with SIGSTOP."""
    nodes.signal(node, signal.SIGSTOP)


def restart(nodes: Nodes, node: int) -> None:
    """Start a process that has ended."""
    nodes.start(node)


def wake(nodes: Nodes, node: int) -> None:
    """Continue a process with SIGCONT."""
    nodes.signal(node, signal.SIGCONT)


def longest_gap(nodes: Nodes, victim: int, leader: int, leave: Act, come_back: Act) -> Figures:
    """Return the longest gap of writes to one partition while a node leaves."""
    topic = f"failover-{time.time_ns()}"
    create(nodes, topic, leader)
    gap = Gap(requests.Writer([nodes.address(node) for node in NODES], topic))
    time.sleep(SETTLED_S)
    leave(nodes, victim)
    wait_until(lambda: is_replaced(nodes, victim, topic))
    time.sleep(SETTLED_S)
    seconds = gap.end()
    come_back(nodes, victim)
    wait_for_isr(nodes, topic)
    delete(nodes, topic)
    return {"longest wait for an acknowledgement s": seconds}


def is_replaced(nodes: Nodes, gone: int, topic: str) -> bool:
    """Return whether all others know a controller and leaders other than the gone node."""
    others = [nodes.address(node) for node in NODES if node != gone]
    leaders = {p.leader_id for at in others for p in requests.partitions(at, topic)}
    leaders |= {requests.controller(at) for at in others}
    return not leaders & {gone, requests.NOBODY}


def controller_of(nodes: Nodes) -> int:
    """Return the active controller."""
    return requests.controller(nodes.address(NODES[0]))


def another_than(node: int) -> int:
    """Return another node than this one."""
    return next(other for other in NODES if other != node)


def stop_leader(nodes: Nodes) -> Figures:
    """Stop a leader that is not the active controller."""
    leader = another_than(controller_of(nodes))
    return longest_gap(nodes, leader, leader, stop, restart)


def kill_leader(nodes: Nodes) -> Figures:
    """Kill a leader that is not the active controller."""
    leader = another_than(controller_of(nodes))
    return longest_gap(nodes, leader, leader, kill, restart)


def pause_leader(nodes: Nodes) -> Figures:
    """Pause a leader that is not the active controller, until another one leads."""
    leader = another_than(controller_of(nodes))
    return longest_gap(nodes, leader, leader, pause, wake)


def kill_both(nodes: Nodes) -> Figures:
    """Kill a leader that is the active controller."""
    leader = controller_of(nodes)
    return longest_gap(nodes, leader, leader, kill, restart)


def kill_controller(nodes: Nodes) -> Figures:
    """Kill the active controller, which is a follower of the partition."""
    controller = controller_of(nodes)
    return longest_gap(nodes, controller, another_than(controller), kill, restart)


def kill_leader_of_many(nodes: Nodes) -> Figures:
    """Kill a leader of 5,000 partitions; wait until all others know new leaders for them."""
    topic, victim = f"many-{time.time_ns()}", another_than(controller_of(nodes))
    create(nodes, topic, victim, MANY_PARTITIONS)
    begun = time.monotonic()
    kill(nodes, victim)
    wait_until(lambda: is_replaced(nodes, victim, topic))
    seconds = time.monotonic() - begun
    restart(nodes, victim)
    wait_for_isr(nodes, topic, MANY_PARTITIONS)
    delete(nodes, topic)
    return {"until all are led again s": seconds}


def from_nothing(nodes: Nodes) -> Figures:
    """Start three formatted nodes, until a first record is acknowledged."""
    begun = time.monotonic()
    nodes.start(*NODES)
    create(nodes, "first", NODES[0])
    writer = requests.Writer([nodes.address(node) for node in NODES], "first")
    seconds = writer.write() - begun
    writer.close()
    return {"until a first record s": seconds}
