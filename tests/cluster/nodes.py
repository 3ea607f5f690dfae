"""Nodes of a cluster of ours, each with a data directory of its own, in this process."""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.peers.brokers import reserve_port
from pykafka_core import Broker
from pykafka_core.broker.storage.format import CONTROLLER_LISTENER, format_directory
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.broker.storage.voters import VoterNode
from pykafka_core.quorum.values import ReplicaKey
from pykafka_core.types import id_text, random_id
from tests.cluster.clients import eventually


class Nodes:
    """Three nodes, brokers and controllers. A node has its ports whenever it runs.

    Attributes:
        up: Those that run, by node id.
    """

    def __init__(self, folder: Path, ports: Mapping[int, tuple[int, int]]) -> None:
        self._folder = folder
        self._ports = ports
        cluster_id = id_text(random_id(os.urandom))
        identities = [Identity(cluster_id, node, random_id(os.urandom)) for node in ports]
        voters = [
            VoterNode(
                ReplicaKey(identity.node_id, identity.directory_id),
                "127.0.0.1",
                ports[identity.node_id][1],
            )
            for identity in identities
        ]
        for identity in identities:
            format_directory(self._data(identity.node_id), identity, voters)
        self.up: dict[int, Broker] = {}

    def _data(self, node_id: int) -> Path:
        return self._folder / str(node_id)

    def config(self, node_id: int) -> dict[str, object]:
        broker, controller = self._ports[node_id]
        return {
            "process.roles": "broker,controller",
            "node.id": node_id,
            "listeners": f"PLAINTEXT://127.0.0.1:{broker},{CONTROLLER_LISTENER}://127.0.0.1:{controller}",
            "controller.listener.names": CONTROLLER_LISTENER,
            "controller.quorum.bootstrap.servers": ",".join(
                f"127.0.0.1:{port}" for _, port in self._ports.values()
            ),
            "inter.broker.listener.name": "PLAINTEXT",
            "broker.session.timeout.ms": 2000,
            "broker.heartbeat.interval.ms": 200,
        }

    def start(self, *node_ids: int) -> None:
        """At once: a node has joined when a majority of the controllers runs."""
        with ThreadPoolExecutor(len(node_ids)) as pool:
            brokers = pool.map(self._start, node_ids)
            self.up.update(zip(node_ids, brokers, strict=True))

    def _start(self, node_id: int) -> Broker:
        return Broker(self._data(node_id), config=self.config(node_id))

    def stop(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.up.pop(node_id).close()

    def logs(self, node_id: int, topic: str) -> dict[str, bytes]:
        """What a node's disk holds of a topic: segments by partition and name."""
        found = sorted(self._data(node_id).glob(f"{topic}-*/*.log"))
        return {f"{file.parent.name}/{file.name}": file.read_bytes() for file in found}

    def controller(self) -> int:
        """The active one."""
        found: list[int] = []

        def is_there() -> bool:
            found[:] = [node for node, broker in self.up.items() if _leads(broker)]
            return bool(found)

        eventually(is_there)
        return found[0]

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{self._ports[node_id][0]}" for node_id in self.up)


def _leads(broker: Broker) -> bool:
    membership = broker._started.control.dispatcher.membership
    return membership is not None and membership.leads


@contextmanager
def nodes(folder: Path, count: int = 3) -> Iterator[Nodes]:
    """Nodes that do not run yet; those that do at the end are stopped."""
    with ExitStack() as stack:

        def port() -> int:
            return int(stack.enter_context(reserve_port()).getsockname()[1])

        made = Nodes(folder, {node: (port(), port()) for node in range(1, count + 1)})
        yield made
        made.stop(*made.up)
