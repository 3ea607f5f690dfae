"""Clusters with separate roles: nodes 1 to 3 are controllers, the others are brokers."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pykafka_core.broker.storage.format import CONTROLLER_LISTENER, format_directory
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.cli.client import wire
from pykafka_core.cli.cluster import quorum
from pykafka_core.types import random_id
from tests.cluster.nodes import Formatted, Nodes, Ports, Processes, killed_at_the_end, ports_of

CONTROLLERS, BROKERS = (1, 2, 3), (4, 5)


def config_of(node_id: int, given: Mapping[str, object], ports: Ports) -> dict[str, object]:
    """Return the settings of a node with one role."""
    broker, controller = ports[node_id]
    is_controller = node_id in CONTROLLERS
    listener = (
        f"{CONTROLLER_LISTENER}://127.0.0.1:{controller}"
        if is_controller
        else f"PLAINTEXT://127.0.0.1:{broker}"
    )
    return {
        **given,
        "offsets.topic.replication.factor": len(BROKERS),
        "transaction.state.log.replication.factor": len(BROKERS),
        "process.roles": "controller" if is_controller else "broker",
        "listeners": listener,
        "controller.quorum.bootstrap.servers": ",".join(
            f"127.0.0.1:{ports[controller][1]}" for controller in CONTROLLERS
        ),
    }


def format_roles(folder: Path, ports: Ports) -> None:
    """Format the brokers' directories; those of the controllers are formatted already."""
    text = (folder / "1" / "meta.properties").read_text()
    cluster_id = text.partition("cluster.id=")[2].partition("\n")[0]
    for node_id in set(ports) - set(CONTROLLERS):
        identity = Identity(cluster_id, node_id, random_id(os.urandom))
        format_directory(folder / str(node_id), identity)


class Roles(Formatted):
    """Nodes with one role each."""

    def __init__(self, folder: Path, ports: Ports) -> None:
        super().__init__(folder, {node: ports[node] for node in CONTROLLERS})
        self._ports = ports
        format_roles(folder, ports)

    def config(self, node_id: int) -> dict[str, object]:
        """Return a node's settings, with one role."""
        return config_of(node_id, super().config(node_id), self._ports)

    def bootstrap_of(self, node_ids: Iterable[int]) -> str:
        """Return the bootstrap servers of the brokers among some nodes."""
        return super().bootstrap_of(node for node in node_ids if node in BROKERS)


class RoleNodes(Roles, Nodes):
    """Such nodes in this process."""

    @property
    def controllers(self) -> str:
        """``bootstrap.controllers`` of all running controllers."""
        up = sorted(set(self.up) & set(CONTROLLERS))
        return ",".join(self.up[node].bootstrap_controllers for node in up)


class RoleProcesses(Roles, Processes):
    """Such nodes in separate processes."""


def quorum_of(bootstrap: str) -> quorum.Quorum:
    """Return the metadata quorum according to a broker."""
    with wire.cluster(bootstrap, "cannot ask") as cluster:
        return quorum.look(cluster.any())


@contextmanager
def role_nodes(folder: Path) -> Iterator[RoleNodes]:
    """Yield nodes that do not run yet; stop the running ones at the end, brokers first."""
    with ports_of(len(CONTROLLERS) + len(BROKERS)) as ports:
        made = RoleNodes(folder, ports)
        yield made
        made.stop(*sorted(made.up, reverse=True))


@contextmanager
def role_processes(folder: Path) -> Iterator[RoleProcesses]:
    """Yield processes that do not run yet; kill the running ones at the end."""
    count = len(CONTROLLERS) + len(BROKERS)
    with ports_of(count) as ports, killed_at_the_end(RoleProcesses(folder, ports)) as made:
        yield made
