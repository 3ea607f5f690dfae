"""A cluster of both kinds under load, and the checks that scenarios use."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import NamedTuple

from pykafka_core.protocol import messages as m
from tests.cluster.beside.mixed import Mixed
from tests.faults.cluster.clusters import NODES
from tests.faults.cluster.scenarios import wait_until_whole
from tests.faults.cluster.views import partitions
from tests.faults.cluster.workloads.workload import Workload
from tests.faults.history import Anomaly
from tests.support.patience import PATIENCE_S
from tests.support.wire import Connection

DESCRIBE_QUORUM = 55
GOES_ON = 20
"""Records that a working workload must write, and read."""


class AmissError(Exception):
    """The cluster did not reach a state that a step waits for."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(kind, detail)
        self.anomaly = Anomaly(kind, detail)


class Stage(NamedTuple):
    """The cluster and its clients."""

    nodes: Mixed
    workloads: Sequence[Workload]
    choice: Random

    def whole(self) -> None:
        """Return when every node reports that all replicas of all partitions are in sync.

        Raises:
            AmissError: They are not in sync within `PATIENCE_S`.
        """
        if amiss := wait_until_whole(self.nodes, None, PATIENCE_S):
            raise AmissError("not whole again", amiss)

    def going_on(self) -> None:
        """Return when every workload has written and read some more.

        Raises:
            AmissError: One has not within `PATIENCE_S`.
        """
        wanted = [(one.progress + GOES_ON, one.seen_count + GOES_ON) for one in self.workloads]
        for workload, (written, read) in zip(self.workloads, wanted, strict=True):
            until(
                f"{workload.topic} goes on",
                partial(_has_progressed, workload, written, read),
            )

    def led_by(self, node: int, topic: str) -> bool:
        """Return whether every node reports this leader for all partitions of a topic."""
        return all(leaders_of(self.nodes, other, topic) == {node} for other in NODES)

    def controller(self) -> int:
        """Return the active controller, once a running broker has one."""
        found: list[int] = []
        until("a controller is active", lambda: bool(self._note_controller(found)))
        return found[-1]

    def _note_controller(self, found: list[int]) -> bool:
        for node in sorted(set(NODES) & set(self.nodes.up)):
            if (known := active_controller(self.nodes.address(node))) in self.nodes.up:
                found.append(known)
                return True
        return False


def _has_progressed(workload: Workload, written: int, read: int) -> bool:
    return workload.progress >= written and workload.seen_count >= read


def until(what: str, condition: Callable[[], bool]) -> None:
    """Wait for a condition.

    Raises:
        AmissError: It is false for `PATIENCE_S`.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise AmissError("no progress", f"not within {PATIENCE_S:.0f} s: {what}")
        time.sleep(0.02)


def leaders_of(nodes: Mixed, node: int, topic: str) -> set[int]:
    """Return the leaders of a topic's partitions on one node; empty if it does not respond."""
    try:
        return {row.leader for row in partitions(nodes.address(node), [topic])}
    except OSError:
        return set()


def active_controller(address: str) -> int:
    """Return the leader of the metadata quorum, from a broker; -1 if unknown or no response."""
    of = m.DescribeQuorumRequest
    topic = of.TopicData(
        topic_name="__cluster_metadata", partitions=[of.PartitionData(partition_index=0)]
    )
    try:
        with Connection(address, 10) as connection:
            response = connection.ask(DESCRIBE_QUORUM, 1, of(topics=[topic]))
    except OSError:
        return -1
    return int(response.topics[0].partitions[0].leader_id) if response.topics else -1
