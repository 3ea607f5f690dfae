"""Scenarios for a cluster of both kinds: each is a list of steps, drawn from a seed.

``kills``: kill -9 of every node in turn, of all nodes, then of the active controller.
``leadership``: all partitions are led by one kind and then by the other, in each way in which Kafka
moves leadership. ``zombies``: a leader of each kind is paused or isolated, and still accepts
records while another one leads. Scenarios whose only controllers are Apache Kafka's are
``of-theirs``.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from random import Random
from typing import NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster.beside.mixed import Direct, Mixed
from tests.cluster.beside.stage import AmissError, Stage, leaders_of, until
from tests.cluster.beside.stale import ALL_IN_SYNC, LEADER_ALONE, STALE, StaleWriter
from tests.faults.cluster.administration import elect_preferred, reassign
from tests.faults.cluster.clusters import NODES, QUIET
from tests.faults.cluster.network.network import Network, around
from tests.faults.cluster.workloads.workload import read_all
from tests.support.java import java
from tests.support.patience import PATIENCE_S

Act = Callable[[Stage], None]
MOVES, CONTROLLERS, ABSENCES_OF_EACH = 20, 3, 2
TOPIC = "list"
"""The topic whose leaders are checked; all others move with it."""


class Step(NamedTuple):
    """An action; after it the cluster has to recover and its clients to continue."""

    name: str
    act: Act


def kills(nodes: Mixed, choice: Random) -> Iterator[Step]:
    """Kill every node, then all at once, then `CONTROLLERS` times the active controller."""
    every = nodes.layout.nodes
    for node in choice.sample(every, len(every)):
        yield Step(f"kill -9 of node {nodes.named(node)}", partial(_kill, node=node))
    yield Step("kill -9 of all nodes", _kill_all)
    if len(nodes.layout.voters) > 1:
        for _ in range(CONTROLLERS):
            yield Step("kill -9 of the active controller", _kill_controller)


def sample(nodes: Mixed, _: Random) -> Iterator[Step]:
    """Kill a node of ours; no Java process has to restart."""
    yield Step(f"kill -9 of node {nodes.named(1)}", partial(_kill, node=1))


def _kill(stage: Stage, node: int) -> None:
    stage.nodes.kill(node)
    if _goes_on_without(stage.nodes, node):
        stage.going_on()
    stage.nodes.start(node)


def _goes_on_without(nodes: Mixed, node: int) -> bool:
    """Return whether the cluster works without a node: no election is needed, or it is possible."""
    return node not in nodes.layout.voters or node not in NODES or len(nodes.layout.voters) > 1


def _kill_all(stage: Stage) -> None:
    stage.nodes.kill(*stage.nodes.up)
    stage.nodes.start(*stage.nodes.layout.nodes)


def _kill_controller(stage: Stage) -> None:
    node = stage.controller()
    stage.nodes.kill(node)
    successor = stage.controller()
    names = stage.nodes.named(node), stage.nodes.named(successor)
    print("    {} was active, then {}".format(*names), flush=True)
    stage.going_on()
    stage.nodes.start(node)


def leadership(nodes: Mixed, choice: Random) -> Iterator[Step]:
    """Move leadership `MOVES` times from one kind to the other."""
    kinds = [[node for node in NODES if nodes.is_ours(node) is ours] for ours in (True, False)]
    for number in range(MOVES):
        node, way = choice.choice(kinds[number % 2]), choice.choice(sorted(WAYS))
        yield Step(f"{way} to node {nodes.named(node)}", partial(_move, node=node, way=way))


def _move(stage: Stage, node: int, way: str) -> None:
    WAYS[way](stage, node)
    until(f"node {node} leads", lambda: stage.led_by(node, TOPIC))


def _prefer(stage: Stage, node: int) -> None:
    """Make a node the preferred leader of all partitions, if it is not."""
    reassign(stage.nodes, [node, *(other for other in NODES if other != node)])
    stage.whole()


def _elect(stage: Stage, node: int) -> None:
    _prefer(stage, node)
    elect_preferred(stage.nodes)


def _elect_by_tool(stage: Stage, node: int) -> None:
    _prefer(stage, node)
    which = ("--election-type", "preferred", "--all-topic-partitions")
    java(
        "org.apache.kafka.tools.LeaderElectionCommand",
        "--bootstrap-server",
        stage.nodes.address(stage.choice.choice(NODES)),
        *which,
    )


def _take(stage: Stage, node: int) -> None:
    """Remove the leader's replica temporarily, so that it copies everything again."""
    (led, *_) = leaders_of(stage.nodes, node, TOPIC)
    if led != node:
        reassign(stage.nodes, [node, *(other for other in NODES if other not in (led, node))])
        until(f"node {led} does not lead", lambda: led not in leaders_of(stage.nodes, node, TOPIC))
    _prefer(stage, node)
    elect_preferred(stage.nodes)


WAYS: Mapping[str, Callable[[Stage, int], None]] = {
    "election": _elect,
    "kafka-leader-election": _elect_by_tool,
    "reassignment": _take,
}


def zombies(nodes: Mixed, choice: Random, *, way: str) -> Iterator[Step]:
    """Disturb a leader of each kind `ABSENCES_OF_EACH` times."""
    for _ in range(ABSENCES_OF_EACH):
        for node in choice.sample((1, 3), 2):
            act = partial(_replace, node=node, way=way)
            yield Step(f"{way} of leader {nodes.named(node)}", act)


def _replace(stage: Stage, node: int, way: str) -> None:
    """Replace a leader that still accepts records.

    Records that only the old leader accepted may be lost. Records that the new one acknowledged may
    not, even at the same offsets.
    """
    create_stale(stage.nodes)
    until("every node knows the topic", lambda: is_known(stage.nodes, STALE))
    _prefer(stage, node)
    until(f"node {node} leads", lambda: _is_elected(stage, node))
    witness = next(other for other in NODES if other != node)
    absence, name = ABSENCES[way], f"{way}-{node}-{stage.choice.getrandbits(64):x}"
    with StaleWriter(stage.nodes.address(node), f"{name}-old", LEADER_ALONE) as old:
        absence.begin(stage.nodes, node)
        old.send()
        until("another one leads", lambda: node not in _leaders(stage, witness))
        taken = _taken_by_successor(stage, witness, f"{name}-new")
        if absence.clients_notice:
            stage.going_on()
        absence.end(stage.nodes, node)
        old.answers()
    stage.whole()
    _judge(stage.nodes, old, taken)


def _is_elected(stage: Stage, node: int) -> bool:
    """Return whether it leads; if not, elect again, because a busy machine may have fenced it."""
    leads = stage.led_by(node, TOPIC) and stage.led_by(node, STALE)
    if not leads:
        elect_preferred(stage.nodes)
    return leads


def _taken_by_successor(stage: Stage, witness: int, name: str) -> list[str]:
    """Return the records that a new leader acknowledges; it may learn late that it leads."""
    taken: list[str] = []
    attempts = count()

    def attempt() -> bool:
        for leader in leaders_of(stage.nodes, witness, STALE) - {-1}:
            with StaleWriter(
                stage.nodes.address(leader), f"{name}-{next(attempts)}", ALL_IN_SYNC
            ) as new:
                new.send()
                new.answers()
                taken.extend(new.acknowledged)
        return bool(taken)

    until("its successor takes records", attempt)
    return taken


def _judge(nodes: Mixed, old: StaleWriter, taken: list[str]) -> None:
    found = [read.value for read in read_all(nodes.bootstrap, STALE, 1)]
    if set(taken) - set(found) or len(found) > len(set(found)):
        raise AmissError("lost write", f"{len(found)} records, of which {len(set(found))} differ")
    gone = set(old.acknowledged) - set(found)
    print(
        f"    of {len(old.acknowledged)} that it took {len(gone)} are gone, {len(old.refused)} requests were refused;"
        f" {len(taken)} of its successor are there",
        flush=True,
    )


def create_stale(nodes: Mixed) -> None:
    """Create the topic of `StaleWriter`, if it does not exist."""
    admin = AdminClient({"bootstrap.servers": nodes.bootstrap, **QUIET})
    if STALE not in admin.list_topics(timeout=PATIENCE_S).topics:
        admin.create_topics([NewTopic(STALE, 1, len(NODES))])[STALE].result(PATIENCE_S)


def is_known(nodes: Mixed, topic: str) -> bool:
    """Return whether every node has a leader for a topic; otherwise it would not reassign it."""
    return all(leaders_of(nodes, node, topic) - {-1} for node in NODES)


def _leaders(stage: Stage, witness: int) -> set[int]:
    """Return a node's view of the leaders, or all nodes if it lacks a leader or a response."""
    found = {
        leader for topic in (TOPIC, STALE) for leader in leaders_of(stage.nodes, witness, topic)
    }
    return set(NODES) if not found or -1 in found else found


class Absence(NamedTuple):
    """A way to make a node unreachable without its knowledge.

    Attributes:
        clients_notice: Whether clients cannot reach it either. Otherwise librdkafka may stay with
            it, because its Metadata responses name it as the leader.
    """

    begin: Callable[[Mixed, int], None]
    end: Callable[[Mixed, int], None]
    clients_notice: bool


ABSENCES: Mapping[str, Absence] = {
    "SIGSTOP": Absence(Mixed.pause, Mixed.resume, clients_notice=True),
    "isolation": Absence(
        lambda nodes, node: nodes.network.cut(around(node, nodes.layout.nodes)),
        lambda nodes, node: nodes.network.mend(around(node, nodes.layout.nodes)),
        clients_notice=False,
    ),
}


class Scenario(NamedTuple):
    """The parts of one run.

    Attributes:
        layout: Name of the layout.
        network: Kind of the network between nodes.
        asks_tools: Whether to run Kafka's tools at the end, each of which is a Java process.
    """

    layout: str
    steps: Callable[[Mixed, Random], Iterator[Step]]
    network: type[Network] = Direct
    asks_tools: bool = True


SCENARIOS: Mapping[str, Scenario] = {
    "sample": Scenario("voters", sample, asks_tools=False),
    "broker": Scenario("broker", kills),
    "controller": Scenario("controller", kills),
    "controller-only": Scenario("controller-only", kills),
    "voter": Scenario("voter", kills),
    "voters": Scenario("voters", kills),
    "leadership": Scenario("voter", leadership),
    "leadership-of-theirs": Scenario("broker", leadership),
    "zombies": Scenario("voters", partial(zombies, way="SIGSTOP")),
    "zombies-of-theirs": Scenario("broker", partial(zombies, way="SIGSTOP")),
    "isolation": Scenario("voters", partial(zombies, way="isolation"), Network),
    "isolation-of-theirs": Scenario("broker", partial(zombies, way="isolation"), Network),
}
