"""A cluster whose quorum grows from one node."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pykafka_core import Broker
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.broker.storage.format import CONTROLLER_LISTENER, format_directory
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.broker.storage.voters import VoterNode
from pykafka_core.cli.client import wire
from pykafka_core.cli.cluster import quorum
from pykafka_core.cli.errors import CliError
from pykafka_core.quorum.values import ReplicaKey
from pykafka_core.types import id_text, random_id
from tests.cluster.nodes import Nodes, Ports, ports_of
from tests.support.patience import eventually


class Growing(Nodes):
    """Nodes of which the first one starts a cluster; the others can be added."""

    def __init__(self, folder: Path, ports: Ports) -> None:
        self.settings: dict[str, object] = {"controller.quorum.fetch.timeout.ms": 1000}
        self.up: dict[int, Broker] = {}
        self._folder = folder
        self._ports = ports

    def format(self, *node_ids: int, cluster_id: str | None = None) -> None:
        """Format nodes as controllers without a vote, with new directory ids each time."""
        found = DataDirectory(self.data(1)).identity()
        known = cluster_id or (found.cluster_id if found is not None else "")
        for node_id in node_ids:
            identity = Identity(known, node_id, random_id(os.urandom))
            format_directory(self.data(node_id), identity)

    def controller_port(self, node_id: int) -> int:
        return self._ports[node_id][1]

    def move_controller(self, node_id: int, port: int) -> None:
        """Give a node another controller port, from its next start on."""
        self._ports = {**self._ports, node_id: (self._ports[node_id][0], port)}

    def config(self, node_id: int) -> dict[str, object]:
        """Return the settings; the first node does not list other controllers."""
        alone = {"controller.quorum.bootstrap.servers": ""} if node_id == 1 else {}
        return super().config(node_id) | alone

    def begin(self) -> None:
        """Start the first node as the only voter."""
        if DataDirectory(self.data(1)).identity() is None:
            first = Identity(id_text(random_id(os.urandom)), 1, random_id(os.urandom))
            key = ReplicaKey(1, first.directory_id)
            at = VoterNode(key, "127.0.0.1", self.controller_port(1))
            format_directory(self.data(1), first, [at])
        self.start(1)
        self.controller()

    def add(self, node_id: int, at: str | None = None) -> None:
        """Add a voter once it has caught up and no other change is in progress."""
        voter = f"{node_id}@127.0.0.1:{self.controller_port(node_id)}"
        eventually(
            lambda: _is_done(
                lambda: quorum.add(
                    at or self.bootstrap,
                    voter,
                    listener=CONTROLLER_LISTENER,
                    as_json=True,
                    dry_run=False,
                )
            )
        )

    def remove(self, node_id: int) -> None:
        eventually(
            lambda: _is_done(
                lambda: quorum.remove(self.bootstrap, str(node_id), as_json=True, dry_run=False)
            )
        )

    def quorum(self) -> quorum.Quorum:
        with wire.cluster(self.bootstrap, "cannot ask") as cluster:
            return quorum.look(cluster.any())

    def voters(self) -> list[int]:
        return [one.node for one in self.quorum().voters]


def _is_done(change: Callable[[], object]) -> bool:
    """Return whether the change was made; the leader defers it by REQUEST_TIMED_OUT."""
    try:
        change()
    except CliError as error:
        if any(
            one in str(error) for one in ("REQUEST_TIMED_OUT", "is not known; the observers are")
        ):
            return False
        raise
    return True


@contextmanager
def growing(folder: Path, count: int = 3) -> Iterator[Growing]:
    with ports_of(count) as ports:
        made = Growing(folder, ports)
        yield made
        made.stop(*made.up)
