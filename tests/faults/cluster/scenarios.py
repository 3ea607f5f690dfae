"""Faults, and plans of them: one seed is one plan.

A step has one fault or two. The second one begins while the first holds, at another node, and both are healed in
either order; then the cluster has to become whole. Which node is meant is said by what it does at that moment: a role
is resolved when the fault begins, so a seed gives the same plan and not the same history.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from random import Random
from typing import NamedTuple

from pykafka_core.protocol import messages as m
from tests.faults.cluster.administration import elect_preferred, reassign
from tests.faults.cluster.clusters import NODES, SESSION_S, Cluster
from tests.faults.cluster.network import Way, against_the_ring, around, between, into, out_of
from tests.faults.cluster.views import partitions
from tests.support.wire import Connection

SLOW_S = 0.05
DESCRIBE_QUORUM = 55
Act = Callable[[Cluster, int], None]


class Fault(NamedTuple):
    """What is done to a node, and what undoes it."""

    inject: Act
    heal: Act


def _kill(cluster: Cluster, node: int) -> None:
    cluster.kill(node)


def _kill_all(cluster: Cluster, _: int) -> None:
    cluster.kill(*cluster.up)


def _launch(cluster: Cluster, node: int) -> None:
    cluster.launch(node)


def _launch_all(cluster: Cluster, _: int) -> None:
    cluster.launch(*(node for node in NODES if node not in cluster.up))


def _wipe(cluster: Cluster, node: int) -> None:
    cluster.kill(node)
    cluster.wipe(node)


def _roll(cluster: Cluster, first: int) -> None:
    """Each node in turn is stopped and started, and the next one once all replicas are in sync again."""
    for node in _in_turn(first):
        cluster.stop(node)
        cluster.start(node)
        wait_until_whole(cluster, None, ROLL_S)


def _rush(cluster: Cluster, first: int) -> None:
    """The same without waiting: a node may be the only one of an ISR when it stops."""
    for node in _in_turn(first):
        cluster.stop(node)
        cluster.start(node)


def _in_turn(first: int) -> list[int]:
    return [*NODES[first - 1 :], *NODES[: first - 1]]


def _take_replicas(cluster: Cluster, node: int) -> None:
    """A node has no partition any more; the first of the others is every partition's preferred leader."""
    reassign(cluster, [other for other in NODES if other != node])


def _give_replicas(cluster: Cluster, node: int) -> None:
    """It fetches all of them again, and leads them as soon as it can."""
    reassign(cluster, [node, *(other for other in NODES if other != node)])


def _elect(cluster: Cluster, _: int) -> None:
    elect_preferred(cluster)


def _nothing(_: Cluster, __: int) -> None:
    """It healed itself."""


def _links(ways: Callable[[int], Sequence[Way]]) -> Fault:
    """What is sent on these ways of a node is held back."""
    return Fault(
        lambda cluster, node: cluster.network.cut(ways(node)),
        lambda cluster, node: cluster.network.mend(ways(node)),
    )


def _next(node: int) -> int:
    return NODES[node % len(NODES)]


ROLL_S = 60.0
FAULTS: Mapping[str, Fault] = {
    "kill": Fault(_kill, _launch),
    "kill-all": Fault(_kill_all, _launch_all),
    "pause": Fault(Cluster.pause, Cluster.resume),
    "restart": Fault(Cluster.stop, _launch),
    "rolling": Fault(_roll, _nothing),
    "rush": Fault(_rush, _nothing),
    "wipe": Fault(_wipe, _launch),
    "reassign": Fault(_take_replicas, _give_replicas),
    "elect": Fault(_elect, _nothing),
    "alone": _links(lambda node: around(node, NODES)),
    "mute": _links(lambda node: out_of(node, NODES)),
    "deaf": _links(lambda node: into(node, NODES)),
    "bridge": _links(lambda node: between(node, _next(node))),
    "ring": _links(lambda _: against_the_ring(NODES)),
    "slow": Fault(
        lambda cluster, node: cluster.network.slow(around(node, NODES), SLOW_S),
        lambda cluster, node: cluster.network.mend(around(node, NODES)),
    ),
}
ALONE = frozenset(("kill-all", "rolling", "rush", "reassign", "elect"))
"""Not one of two: they touch all nodes, or have to be answered."""
ONE_DISK = frozenset(("wipe", "kill"))
"""Not together: a lost disk and the death of another replica may be the loss of both that had a record (min ISR 2)."""
ROLES = ("leader", "leader", "controller", "coordinator", "any")
PAIRS = [
    pair
    for pair in combinations([name for name in FAULTS if name not in ALONE], 2)
    if set(pair) != ONE_DISK
]


class Step(NamedTuple):
    """One or two faults, each with the role of its node.

    Attributes:
        gap_s: From the first fault to the second.
        hold_s: From the last fault to the first healing; shorter or longer than a session.
        first_is_healed_last: Of two.
    """

    faults: tuple[tuple[str, str], ...]
    gap_s: float
    hold_s: float
    first_is_healed_last: bool

    def __str__(self) -> str:
        return (
            " + ".join(f"{name} of {role}" for name, role in self.faults)
            + f" for {self.hold_s:.1f} s"
        )


def plan(seed: int, steps: int, names: Sequence[str] = (), *, in_pairs: bool = False) -> list[Step]:
    """The steps of a seed.

    Args:
        names: Faults to choose from; all without.
        in_pairs: Whether steps have two faults.
    """
    choice = Random(seed)
    singles = [(name,) for name in names or FAULTS]
    pairs = [pair for pair in PAIRS if not names or set(pair) <= set(names)]
    chosen: Sequence[tuple[str, ...]] = pairs if in_pairs else singles
    order = [step for _ in range(steps) for step in choice.sample(chosen, len(chosen))]
    return [_step(choice, faults) for faults in order[:steps]]


def _step(choice: Random, faults: tuple[str, ...]) -> Step:
    is_short = choice.random() < 0.3
    return Step(
        tuple((name, choice.choice(ROLES)) for name in choice.sample(faults, len(faults))),
        choice.uniform(0.0, 1.2 * SESSION_S),
        choice.uniform(0.3, 2.0) if is_short else choice.uniform(1.1, 1.8) * SESSION_S,
        choice.random() < 0.5,
    )


def carry_out(cluster: Cluster, step: Step, topic: str, choice: Random) -> str:
    """Inject and heal what a step says; return which nodes it met.

    Raises:
        NotBackError: A node did not stop or come back.
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
    """A node that has a role now and was not chosen yet; any other where nobody has it."""
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
    """Who leads the metadata quorum, by a broker; -1 if that is not known."""
    of = m.DescribeQuorumRequest
    topic = of.TopicData(
        topic_name="__cluster_metadata", partitions=[of.PartitionData(partition_index=0)]
    )
    with Connection(address) as connection:
        answer = connection.ask(DESCRIBE_QUORUM, 1, of(topics=[topic]))
    return int(answer.topics[0].partitions[0].leader_id) if answer.topics else -1


def wait_until_whole(cluster: Cluster, topics: Sequence[str] | None, patience_s: float) -> str:
    """Return nothing once each node says that all partitions are led and all replicas in sync; else what was amiss."""
    deadline = time.monotonic() + patience_s
    while amiss := _amiss(cluster, topics):
        if time.monotonic() > deadline:
            return amiss
        time.sleep(0.1)
    return ""


def _amiss(cluster: Cluster, topics: Sequence[str] | None) -> str:
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
        lacking = [row for row in view if row.leader == -1 or row.isr != NODES]
        if lacking:
            return f"node {node} says {lacking}"
    return "" if views[0] == views[1] == views[2] else f"nodes disagree: {views}"
