"""A cluster of both kinds under load, and what a scenario does to it."""

import time
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from pykafka_core.protocol import messages as m
from tests.cluster.beside.mixed import Mixed
from tests.faults.cluster.clusters import NODES
from tests.faults.cluster.scenarios import wait_until_whole
from tests.faults.cluster.views import partitions
from tests.faults.cluster.workload import Workload
from tests.faults.history import Anomaly
from tests.support.patience import PATIENCE_S
from tests.support.wire import Connection

DESCRIBE_QUORUM = 55
GOES_ON = 20
"""Records that are written, and read, by a workload that goes on."""


class AmissError(Exception):
    """The cluster did not do what a step waits for."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(kind, detail)
        self.anomaly = Anomaly(kind, detail)


class Stage(NamedTuple):
    """The cluster and its clients."""

    nodes: Mixed
    workloads: Sequence[Workload]
    choice: Random

    def whole(self) -> None:
        """Return when every node says that all replicas of all partitions are in sync.

        Raises:
            AmissError: They are not within `PATIENCE_S`.
        """
        if amiss := wait_until_whole(self.nodes, None, PATIENCE_S):
            raise AmissError("not whole again", amiss)

    def going_on(self) -> None:
        """Return when every workload has written and read some more.

        Raises:
            AmissError: It has not within `PATIENCE_S`.
        """
        wanted = [(one.progress + GOES_ON, one.seen_count + GOES_ON) for one in self.workloads]
        for workload, (written, read) in zip(self.workloads, wanted, strict=True):
            until(
                f"{workload.topic} goes on",
                lambda of=workload, w=written, r=read: of.progress >= w and of.seen_count >= r,  # type: ignore[misc]
            )

    def led_by(self, node: int, topic: str) -> bool:
        """Whether every node says that a node leads all partitions of a topic."""
        return all(leaders_of(self.nodes, other, topic) == {node} for other in NODES)

    def controller(self) -> int:
        """The active one, once a broker that runs knows it."""
        found: list[int] = []
        until("a controller is active", lambda: bool(self._note_controller(found)))
        return found[-1]

    def _note_controller(self, found: list[int]) -> bool:
        for node in sorted(set(NODES) & set(self.nodes.up)):
            if (known := active_controller(self.nodes.address(node))) in self.nodes.up:
                found.append(known)
                return True
        return False


def until(what: str, condition: Callable[[], bool]) -> None:
    """Wait for a condition.

    Raises:
        AmissError: It does not come to hold within `PATIENCE_S`.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise AmissError("no progress", f"not within {PATIENCE_S:.0f} s: {what}")
        time.sleep(0.02)


def leaders_of(nodes: Mixed, node: int, topic: str) -> set[int]:
    """Of a topic's partitions, as one node says; none where it does not answer."""
    try:
        return {row.leader for row in partitions(nodes.address(node), [topic])}
    except OSError:
        return set()


def active_controller(address: str) -> int:
    """Who leads the metadata quorum, as a broker says; -1 if it does not know, or does not answer."""
    of = m.DescribeQuorumRequest
    topic = of.TopicData(
        topic_name="__cluster_metadata", partitions=[of.PartitionData(partition_index=0)]
    )
    try:
        with Connection(address, 10) as connection:
            answer = connection.ask(DESCRIBE_QUORUM, 1, of(topics=[topic]))
    except OSError:
        return -1
    return int(answer.topics[0].partitions[0].leader_id) if answer.topics else -1
