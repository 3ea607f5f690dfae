"""Clusters of static voters: ``controller.quorum.voters`` names them, and no directory does."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pykafka_core.broker.storage.format import format_directory
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.cli.cluster import quorum
from pykafka_core.types import id_text, random_id
from tests.cluster.nodes import Ports, Processes, killed_at_the_end, ports_of
from tests.cluster.roles import quorum_of


class StaticVoters(Processes):
    """Nodes that are brokers and controllers."""

    def __init__(self, folder: Path, ports: Ports) -> None:
        self.settings = {"controller.quorum.bootstrap.servers": ""}
        self.up = {}
        self.environments = {}
        self._folder = folder
        self._ports = ports
        self._voters = {node_id: self.controller_address(node_id) for node_id in ports}
        cluster_id = id_text(random_id(os.urandom))
        for node_id in ports:
            format_directory(
                self.data(node_id), Identity(cluster_id, node_id, random_id(os.urandom))
            )

    def use_voters(self, ports: Mapping[int, int]) -> None:
        """Set other voters than all of its nodes: node ids and ports."""
        self._voters = {node_id: f"127.0.0.1:{port}" for node_id, port in ports.items()}

    def controller_port(self, node_id: int) -> int:
        return self._ports[node_id][1]

    def quorum(self) -> quorum.Quorum:
        return quorum_of(self.bootstrap)

    def config(self, node_id: int) -> dict[str, object]:
        """Return a node's settings, with the voters."""
        voters = ",".join(f"{node}@{address}" for node, address in self._voters.items())
        return super().config(node_id) | {"controller.quorum.voters": voters}


@contextmanager
def static_voters(folder: Path, count: int = 3) -> Iterator[StaticVoters]:
    """Yield processes that do not run yet; kill the running ones at the end."""
    with ports_of(count) as ports, killed_at_the_end(StaticVoters(folder, ports)) as made:
        yield made
