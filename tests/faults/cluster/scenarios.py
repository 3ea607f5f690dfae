"""Faults, and plans of them: one seed is one plan.

A step has one or two faults. The second one starts while the first is active, at another node. Both
are healed in either order, unless they restrict it (`Place`); then the cluster has to recover. The
node is given by its role at that moment: a role is resolved when the fault starts, so a seed gives
the same plan, but not the same history.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from itertools import combinations
from random import Random
from typing import NamedTuple

from pykafka_core.protocol import messages as m
from tests.faults.cluster.administration import elect_preferred, reassign, unregister
from tests.faults.cluster.clocks import JUMP_S
from tests.faults.cluster.clusters import GUEST, NODES, SESSION_S, Cluster, Need
from tests.faults.cluster.network.network import (
    Way,
    against_the_ring,
    around,
    between,
    into,
    out_of,
)
from tests.faults.cluster.views import Partition, partitions
from tests.support.wire import Connection

SLOW_S = 0.05
DESCRIBE_QUORUM = 55
Act = Callable[[Cluster, int], None]


class Place(Enum):
    """The position of a fault in a step of two."""

    ANY = "first or second, and healed in either order"
    FIRST = "healed last: an administrator has to be answered, and the cluster to be whole before a disk goes"
    SECOND = "healed first: meanwhile no administrator is answered"
    LAST = "the same, and also behind those: no node answers at all"


class Fault(NamedTuple):
    """An action on a node, and the action that undoes it.

    Attributes:
        place: Position in a step of two; two faults with equal positions may have either order.
        needs: Requirement of the cluster.
    """

    inject: Act
    heal: Act
    place: Place = Place.ANY
    needs: Need | None = None


def _kill(cluster: Cluster, node: int) -> None:
    cluster.kill(node)


def _kill_all(cluster: Cluster, _: int) -> None:
    cluster.kill(*cluster.up)


def _launch(cluster: Cluster, node: int) -> None:
    cluster.launch_missing(node)


def _launch_all(cluster: Cluster, _: int) -> None:
    cluster.launch_missing(*cluster.members)


def _lose_power(cluster: Cluster, node: int) -> None:
    cluster.lose_power(node)


def _lose_all_power(cluster: Cluster, _: int) -> None:
    cluster.lose_power(*cluster.up)


def _wipe(cluster: Cluster, node: int) -> None:
    cluster.kill(node)
    cluster.wipe(node)


def _roll(cluster: Cluster, first: int) -> None:
    """Restart one node after the other, the next one when all replicas are in sync again."""
    for node in _in_turn(first):
        cluster.stop(node)
        cluster.start(node)
        wait_while_any(_is_out_of_sync, cluster, None, ROLL_S)


def _rush(cluster: Cluster, first: int) -> None:
    """Restart all nodes without waiting: a node may be the only one of an ISR when it stops."""
    for node in _in_turn(first):
        cluster.stop(node)
        cluster.start(node)


def _in_turn(first: int) -> list[int]:
    return [*NODES[first - 1 :], *NODES[: first - 1]]


def _jump(seconds: float) -> Fault:
    """Return a fault that shifts a wall clock, and then shifts it back."""
    return Fault(
        lambda cluster, node: cluster.shift_clock(node, seconds),
        lambda cluster, node: cluster.shift_clock(node, 0),
        needs=Need.CLOCKS,
    )


def _take_replicas(cluster: Cluster, node: int) -> None:
    """Move all partitions away from a node, to the others; the first one is preferred."""
    reassign(cluster, [other for other in NODES if other != node])


def _give_replicas(cluster: Cluster, node: int) -> None:
    """Move the partitions back: the node fetches them again, and leads as soon as it can."""
    reassign(cluster, [node, *(other for other in NODES if other != node)])


def _invite(cluster: Cluster, node: int) -> None:
    """Add a broker and move another one's replicas to it, as preferred leader."""
    cluster.join()
    reassign(cluster, [GUEST, *(other for other in NODES if other != node)])


def _dismiss(cluster: Cluster, _: int) -> None:
    """Move its replicas back, stop it permanently and unregister it."""
    reassign(cluster, NODES)
    wait_until_whole(cluster, None, ROLL_S)
    cluster.leave()
    unregister(cluster, GUEST)


def _elect(cluster: Cluster, _: int) -> None:
    elect_preferred(cluster)


def _nothing(_: Cluster, __: int) -> None:
    """Do nothing, because the fault healed itself."""


def _links(ways: Callable[[int], Sequence[Way]]) -> Fault:
    """Return a fault that holds back data on these ways of a node."""
    return Fault(
        lambda cluster, node: cluster.network.cut(ways(node)),
        lambda cluster, node: cluster.network.mend(ways(node)),
    )


def _next(node: int) -> int:
    return NODES[node % len(NODES)]


ROLL_S = 60.0
FAULTS: Mapping[str, Fault] = {
    "kill": Fault(_kill, _launch),
    "kill-all": Fault(_kill_all, _launch_all, Place.LAST),
    "pause": Fault(Cluster.pause, Cluster.resume),
    "restart": Fault(Cluster.stop, _launch),
    "rolling": Fault(_roll, _nothing),
    "rush": Fault(_rush, _nothing),
    "wipe": Fault(_wipe, _launch),
    "power-cut": Fault(_lose_power, _launch, needs=Need.DISKS),
    "power-cut-all": Fault(_lose_all_power, _launch_all, Place.LAST, Need.DISKS),
    "disk-full": Fault(Cluster.fill_disk, Cluster.free_disk, needs=Need.DISKS),
    "clock-ahead": _jump(JUMP_S),
    "clock-behind": _jump(-JUMP_S),
    "reassign": Fault(_take_replicas, _give_replicas, Place.FIRST),
    "member": Fault(_invite, _dismiss, Place.FIRST),
    "elect": Fault(_elect, _nothing),
    "alone": _links(lambda node: around(node, NODES)),
    "mute": _links(lambda node: out_of(node, NODES)),
    "deaf": _links(lambda node: into(node, NODES)),
    "bridge": _links(lambda node: between(node, _next(node))),
    "ring": _links(lambda _: against_the_ring(NODES))._replace(place=Place.SECOND),
    "slow": Fault(
        lambda cluster, node: cluster.network.slow(around(node, NODES), SLOW_S),
        lambda cluster, node: cluster.network.mend(around(node, NODES)),
    ),
}
ORDER = (Place.FIRST, Place.ANY, Place.SECOND, Place.LAST)
ENDS = frozenset(("kill", "restart", "power-cut", "kill-all", "power-cut-all"))
"""Faults that end processes."""
STOPS_NODES_IN_TURN = frozenset(("rolling", "rush"))
LEAVES_A_MAJORITY = frozenset(
    ("slow", "clock-ahead", "clock-behind", "reassign", "member", "elect")
)
"""Faults during which nodes can be stopped one by one.

With another kind of fault they would wait for a majority, and so would a clean stop.
"""
TOUCHES_ALL = frozenset(("kill-all", "power-cut-all"))
ROLES = ("leader", "leader", "controller", "coordinator", "any")


def _is_pair(one: str, other: str) -> bool:
    """Return whether two faults can be combined without the loss of acknowledged records.

    A lost disk and the death of another replica may lose both copies of a record (min ISR 2).
    """
    both = {one, other}
    if "wipe" in both and both & ENDS - {"restart"}:
        return False
    if both & STOPS_NODES_IN_TURN:
        return bool(both & LEAVES_A_MAJORITY)
    return not both <= TOUCHES_ALL


PAIRS = [pair for pair in combinations(FAULTS, 2) if _is_pair(*pair)]


class Step(NamedTuple):
    """One or two faults, each with the role of its node.

    Attributes:
        gap_s: From the first fault to the second.
        hold_s: From the last fault to the first healing; shorter or longer than a session.
        first_is_healed_last: Only for two faults.
    """

    faults: tuple[tuple[str, str], ...]
    gap_s: float
    hold_s: float
    first_is_healed_last: bool

    @property
    def needs(self) -> set[Need]:
        """Return the requirements of the cluster."""
        found = (FAULTS[name].needs for name, _ in self.faults)
        return {need for need in found if need is not None}

    def __str__(self) -> str:
        return (
            " + ".join(f"{name} of {role}" for name, role in self.faults)
            + f" for {self.hold_s:.1f} s"
        )


def plan(seed: int, steps: int, names: Sequence[str] = (), *, in_pairs: bool = False) -> list[Step]:
    """Return the steps of a seed.

    Args:
        names: Faults to choose from; all if empty.
        in_pairs: Whether steps have two faults: each pair once before any is repeated.
    """
    choice = Random(seed)
    singles = [(name,) for name in names or FAULTS]
    pairs = [pair for pair in PAIRS if not names or set(pair) <= set(names)]
    chosen: Sequence[tuple[str, ...]] = pairs if in_pairs else singles
    order = [step for _ in range(steps) for step in choice.sample(chosen, len(chosen))]
    return [_step(choice, faults) for faults in order[:steps]]


def _step(choice: Random, faults: tuple[str, ...]) -> Step:
    is_short = choice.random() < 0.3
    order = sorted(choice.sample(faults, len(faults)), key=_place)
    is_nested = _place(order[0]) != _place(order[-1])
    return Step(
        tuple((name, choice.choice(ROLES)) for name in order),
        choice.uniform(0.0, 1.2 * SESSION_S),
        choice.uniform(0.3, 2.0) if is_short else choice.uniform(1.1, 1.8) * SESSION_S,
        is_nested or choice.random() < 0.5,
    )


def _place(name: str) -> int:
    return ORDER.index(FAULTS[name].place)


def carry_out(cluster: Cluster, step: Step, topic: str, choice: Random) -> str:
    """Inject and heal the faults of a step; return the affected nodes.

    Raises:
        NotBackError: A node did not stop or restart.
    """
    met: list[tuple[str, int]] = []
    for place, (name, role) in enumerate(step.faults):
        if place:
            time.sleep(step.gap_s)
        node = node_of(cluster, role, topic, choice, {node for _, node in met})
        met.append((name, node))
        FAULTS[name].inject(cluster, node)
    time.sleep(step.hold_s)
    for name, node in reversed(met) if step.first_is_healed_last else met:
        FAULTS[name].heal(cluster, node)
    for node in NODES:
        cluster.wait_until_serving(node)
    return ", ".join(f"{name} {node}" for name, node in met)


def node_of(cluster: Cluster, role: str, topic: str, choice: Random, taken: set[int]) -> int:
    """Return an unused node with this role now, or any other if no node has the role."""
    left = [node for node in NODES if node not in taken]
    asked = next(node for node in left if node in cluster.up)
    if role == "leader":
        found = _leaders(cluster.address(asked), topic)
    elif role == "coordinator":
        found = _leaders(cluster.address(asked), "__consumer_offsets", "__transaction_state")
    elif role == "controller":
        found = {_controller(cluster.address(asked))}
    else:
        found = set(NODES)
    return choice.choice(sorted(found & set(left)) or left)


def _leaders(address: str, *topics: str) -> set[int]:
    return {row.leader for row in partitions(address, topics)}


def _controller(address: str) -> int:
    """Return the leader of the metadata quorum, from a broker; -1 if unknown."""
    of = m.DescribeQuorumRequest
    topic = of.TopicData(
        topic_name="__cluster_metadata", partitions=[of.PartitionData(partition_index=0)]
    )
    try:
        with Connection(address) as connection:
            response = connection.ask(DESCRIBE_QUORUM, 1, of(topics=[topic]))
    except OSError:
        return -1
    return int(response.topics[0].partitions[0].leader_id) if response.topics else -1


def wait_until_whole(cluster: Cluster, topics: Sequence[str] | None, patience_s: float) -> str:
    """Wait until each node reports leaders and full ISRs everywhere; return the fault, or ''."""
    return wait_while_any(_is_not_everywhere, cluster, topics, patience_s)


def wait_while_any(
    lacks: Callable[[Partition], bool],
    cluster: Cluster,
    topics: Sequence[str] | None,
    patience_s: float,
) -> str:
    """Wait until no node reports a partition with a fault; return the fault, or ''."""
    return _wait_while(lambda: _amiss(cluster, topics, lacks), patience_s)


def _wait_while(amiss: Callable[[], str], patience_s: float) -> str:
    """Wait until there is no fault; return the fault at the deadline, or ''."""
    deadline = time.monotonic() + patience_s
    while found := amiss():
        if time.monotonic() > deadline:
            return found
        time.sleep(0.1)
    return ""


def _is_not_everywhere(row: Partition) -> bool:
    return row.leader == -1 or row.isr != NODES


def _is_out_of_sync(row: Partition) -> bool:
    """Return whether a replica is out of sync, wherever it was assigned."""
    return row.leader == -1 or row.isr != row.replicas


def _amiss(
    cluster: Cluster, topics: Sequence[str] | None, lacks: Callable[[Partition], bool]
) -> str:
    views = []
    for node in NODES:
        if node in cluster.ended():
            return f"node {node} ended by itself"
        try:
            views.append(partitions(cluster.address(node), topics))
        except OSError as error:
            return f"node {node} does not answer: {error!r}"
    for node, view in zip(NODES, views, strict=True):
        if unknown := set(topics or ()) - {row.name.rpartition("-")[0] for row in view}:
            return f"node {node} does not know {unknown}"
    lacking = {
        node: rows
        for node, view in zip(NODES, views, strict=True)
        if (rows := [row for row in view if lacks(row)])
    }
    if lacking:
        return f"partitions by the node that reports them: {lacking}"
    return "" if views[0] == views[1] == views[2] else f"nodes disagree: {views}"
