"""Three brokers of two kinds in one cluster, ours and Apache Kafka's; the controllers likewise.

It is a cluster of `tests/faults/cluster`, with the same workloads, faults, network and checker. A
layout lists the nodes that are ours and those that vote. If no broker votes, the controller is a
separate process, `CONTROLLER`.
"""

import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from bench.peers.brokers import QUICK_TO_START, ApacheKafka
from pykafka_core.broker.storage.format import format_directory
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.broker.storage.voters import VoterNode
from pykafka_core.quorum.values import ReplicaKey
from pykafka_core.types import id_text, random_id
from tests.faults.cluster.clusters import NODES, SETTINGS, Cluster, NotBackError
from tests.faults.cluster.network.network import Network
from tests.support.patience import PATIENCE_S
from tests.support.processes.nodes import NOT_BUILT, format_kafka, kafka_command, serve_command

CONTROLLER = 4
"""The node that is only a controller, in layouts that have one."""
JAVA = ("java", *QUICK_TO_START, "-Xmx512m", "-Dlog4j2.level=WARN")


class Layout(NamedTuple):
    """The kinds and roles of the nodes.

    Attributes:
        ours: Our nodes; the others are Apache Kafka's.
        voters: Nodes that are controllers; all of `NODES` are brokers.
    """

    ours: frozenset[int]
    voters: tuple[int, ...]

    @property
    def nodes(self) -> tuple[int, ...]:
        """All processes, brokers first."""
        return tuple(sorted({*NODES, *self.voters}))

    def roles(self, node: int) -> str:
        """Return the node's ``process.roles``."""
        found = [("broker", node in NODES), ("controller", node in self.voters)]
        return ",".join(role for role, has in found if has)


LAYOUTS: Mapping[str, Layout] = {
    "broker": Layout(frozenset({1}), (CONTROLLER,)),
    "brokers": Layout(frozenset({1, 2}), (CONTROLLER,)),
    "controller": Layout(frozenset({1}), (1,)),
    "controller-only": Layout(frozenset({CONTROLLER}), (CONTROLLER,)),
    "voter": Layout(frozenset({1}), NODES),
    "voters": Layout(frozenset({1, 2}), NODES),
}
"""Our nodes: one or two brokers; the only controller, broker or not; one or two of three voters."""


class Direct(Network):
    """No proxy: nodes connect to each other directly, and links cannot be cut.

    This saves CPU time on a machine on which three Java processes start.
    """

    def __init__(self, ports: int) -> None:
        self.ports = [0] * ports

    def __exit__(self, *_: object) -> None:
        """Do nothing, because there is no process to end."""

    def _tell(self, **order: Any) -> None:
        if "links" in order:
            raise NotImplementedError("nodes that connect directly cannot be cut off")


class Mixed(Cluster):
    """Nodes of both kinds.

    Attributes:
        layout: The kinds and roles of the nodes.
    """

    name = "mixed"
    has_transactions = True

    def __init__(
        self,
        folder: Path,
        layout: Layout,
        network: Network,
        stack: ExitStack,
        settings: Mapping[str, object],
    ) -> None:
        self.layout, self.processes = layout, layout.nodes
        self._own_settings = settings
        self._cluster_id = id_text(random_id(os.urandom))
        self._directories = {node: random_id(os.urandom) for node in layout.nodes}
        super().__init__(folder, network, stack)

    def start_all(self) -> None:
        """Start every node and return when each serves."""
        self.start(*self.layout.nodes)

    def wait_until_serving(self, node: int) -> None:
        """Wait like `Cluster`; if the node is only a controller, until it accepts connections."""
        if node in NODES:
            super().wait_until_serving(node)
            return
        deadline = time.monotonic() + PATIENCE_S
        while not self._is_listening(node):
            if time.monotonic() > deadline:
                raise NotBackError(f"node {node} does not listen: {self.log_of(node)}")
            time.sleep(0.05)

    def _is_listening(self, node: int) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._ports[node].controller)) == 0

    def data(self, node: int) -> Path:
        return self._folder / str(node)

    def is_ours(self, node: int) -> bool:
        return node in self.layout.ours

    def named(self, node: int) -> str:
        """Return a node's id with its kind."""
        return f"{node} ({'ours' if self.is_ours(node) else 'theirs'})"

    def _settings(self, node: int) -> dict[str, object]:
        listeners = self._listeners(node)
        given = {
            "process.roles": self.layout.roles(node),
            "node.id": node,
            "listeners": _listed({name: at for name, (at, _) in listeners.items()}),
            "advertised.listeners": _listed({name: at for name, (_, at) in listeners.items()}),
            "controller.quorum.bootstrap.servers": ",".join(self._controllers.values()),
            # Apache Kafka's nodes exit after this timeout, which a busy machine must not cause.
            "initial.broker.registration.timeout.ms": 600_000,
        }
        settings = {**SETTINGS, **self._own_settings, **given}
        if node not in NODES:
            del settings["inter.broker.listener.name"]
        if not self.is_ours(node):
            return {**settings, "log.dirs": self.data(node)}
        if node not in self.layout.voters:
            voters = (f"{voter}@{address}" for voter, address in self._controllers.items())
            settings["controller.quorum.voters"] = ",".join(voters)
        return settings

    def _listeners(self, node: int) -> dict[str, tuple[int, int]]:
        """Return each listener's own port and its advertised one."""
        port = self._ports[node]
        of_broker = {
            "PLAINTEXT": (port.client, port.client),
            "REPLICATION": (port.replication, port.replication_proxy or port.replication),
        }
        of_controller = {"CONTROLLER": (port.controller, self._controller_port(node))}
        return (of_broker if node in NODES else {}) | (
            of_controller if node in self.layout.voters else {}
        )

    @property
    def _controllers(self) -> dict[int, str]:
        """The addresses of the controllers."""
        return {node: f"127.0.0.1:{self._controller_port(node)}" for node in self.layout.voters}

    def _controller_port(self, node: int) -> int:
        return self._ports[node].controller_proxy or self._ports[node].controller

    def _format(self) -> None:
        for node in self.processes:
            if self.is_ours(node):
                self._format_ours(node)
            else:
                self._format_theirs(node)

    def _format_guest(self) -> None:
        raise NotImplementedError("no other node joins these clusters")

    def _format_ours(self, node: int) -> None:
        voters = [
            VoterNode(
                ReplicaKey(voter, self._directories[voter]),
                "127.0.0.1",
                self._controller_port(voter),
            )
            for voter in self.layout.voters
        ]
        identity = Identity(self._cluster_id, node, self._directories[node])
        format_directory(self.data(node), identity, voters if node in self.layout.voters else ())

    def _format_theirs(self, node: int) -> None:
        voters = ",".join(
            f"{voter}@{address}:{id_text(self._directories[voter])}"
            for voter, address in self._controllers.items()
        )
        first = ("--initial-controllers", voters, *NOT_BUILT)
        quorum = first if node in self.layout.voters else ()
        format_kafka(self._java, self._properties(node), "-t", self._cluster_id, *quorum)

    def _command(self, node: int) -> list[str]:
        if self.is_ours(node):
            return serve_command(self._properties(node), self.data(node))
        return kafka_command(self._java, self._properties(node))

    @property
    def _java(self) -> list[str]:
        return [*JAVA, "-cp", ApacheKafka.classpath()]


def _listed(listeners: Mapping[str, int]) -> str:
    return ",".join(f"{name}://127.0.0.1:{port}" for name, port in listeners.items())


@contextmanager
def mixed(
    layout: str,
    folder: Path,
    network: type[Network] = Direct,
    settings: Mapping[str, object] = MappingProxyType({}),
) -> Iterator[Mixed]:
    """Yield a formatted cluster that is not started; kill the running nodes at the end."""
    with ExitStack() as stack:
        chosen = LAYOUTS[layout]
        network_of_all = stack.enter_context(network(2 * len(chosen.nodes)))
        made = Mixed(folder, chosen, network_of_all, stack, settings)
        try:
            yield made
        finally:
            made.kill(*made.up)
