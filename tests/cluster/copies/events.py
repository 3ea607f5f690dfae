"""Events between two writes of a history: reassignments, wiped disks, stops and kills."""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from tests.cluster.beside.stage import AmissError, until
from tests.cluster.copies.histories import History, stored_log_start
from tests.faults.cluster.administration import elect_preferred, reassign_each
from tests.faults.cluster.clusters import NODES, Cluster
from tests.faults.cluster.scenarios import wait_while_any
from tests.faults.cluster.views import Partition
from tests.support.patience import PATIENCE_S

Event = Callable[[Cluster, Sequence[History], Random], None]


def wait_until_in_sync(nodes: Cluster, histories: Sequence[History]) -> None:
    """Return when every node reports the replicas of each history, all of them in sync.

    Raises:
        AmissError: They are not in sync within `PATIENCE_S`.
    """
    wanted = {one.name: tuple(sorted(one.replicas)) for one in histories}

    def lacks(row: Partition) -> bool:
        return row.leader == -1 or not row.isr == row.replicas == wanted[row.name]

    if amiss := wait_while_any(lacks, nodes, [histories[0].topic], PATIENCE_S):
        raise AmissError("not in sync", amiss)


def wait_until_stored(nodes: Cluster, histories: Sequence[History]) -> None:
    """Return when the log start offsets are on the disks of all replicas.

    Apache Kafka writes them after `log.flush.start.offset.checkpoint.interval.ms`; a kill before
    that moves them back.

    Raises:
        AmissError: They are not stored within `PATIENCE_S`.
    """
    until(
        "the log start offsets are stored",
        lambda: all(
            stored_log_start(nodes.data(node), one.name) >= one.log_start
            for one in histories
            for node in one.replicas
        ),
    )


def _reassign(nodes: Cluster, histories: Sequence[History], _: Random) -> None:
    """Assign other replicas to each partition."""
    for one in histories:
        one.replicas = one.some_replicas()
    reassign_each(nodes, {one.name: one.replicas for one in histories})


def _there_and_back(nodes: Cluster, histories: Sequence[History], choice: Random) -> None:
    """Move each partition away from its replicas, and back."""
    before = [one.replicas for one in histories]
    _reassign(nodes, histories, choice)
    wait_until_in_sync(nodes, histories)
    for one, replicas in zip(histories, before, strict=True):
        one.replicas = replicas
    reassign_each(nodes, {one.name: one.replicas for one in histories})


def _elect(nodes: Cluster, _: Sequence[History], __: Random) -> None:
    elect_preferred(nodes)


def _wipe(nodes: Cluster, _: Sequence[History], choice: Random) -> None:
    node = choice.choice(NODES)
    nodes.stop(node)
    nodes.wipe(node)
    nodes.start(node)


def _restart(nodes: Cluster, _: Sequence[History], choice: Random) -> None:
    node = choice.choice(NODES)
    nodes.stop(node)
    nodes.start(node)


def _kill(nodes: Cluster, _: Sequence[History], choice: Random) -> None:
    node = choice.choice(NODES)
    nodes.kill(node)
    nodes.start(node)


def stop_all(nodes: Cluster) -> None:
    for node in NODES:
        nodes.stop(node)


def _restart_all(nodes: Cluster, _: Sequence[History], __: Random) -> None:
    stop_all(nodes)
    nodes.start(*NODES)


def _kill_all(nodes: Cluster, _: Sequence[History], __: Random) -> None:
    nodes.kill(*NODES)
    nodes.start(*NODES)


EVENTS: Mapping[str, Event] = {
    "reassign": _reassign,
    "reassign there and back": _there_and_back,
    "elect": _elect,
    "wipe": _wipe,
    "restart": _restart,
    "kill": _kill,
    "restart all": _restart_all,
    "kill all": _kill_all,
}
