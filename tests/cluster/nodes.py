"""Nodes of a cluster, each with its own data directory, in this process or in separate ones."""

import os
import socket
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from pykafka_core import Broker
from pykafka_core.broker.storage.format import CONTROLLER_LISTENER, format_cluster
from tests.cluster.clients import isr_of
from tests.support.costs import charge
from tests.support.evidence.logs import new_log
from tests.support.patience import PATIENCE_MS, eventually
from tests.support.processes.nodes import (
    kill_all,
    port_of,
    reserve_port,
    serve_command,
    wait_until_ready,
    write_properties,
)

SESSION = {
    "broker.session.timeout.ms": PATIENCE_MS // 6,
    "broker.heartbeat.interval.ms": 200,
}
"""A live broker is not fenced on a busy machine.

A dead broker is fenced as soon as its port refuses connections.
"""

P = TypeVar("P", bound="Processes")


class Formatted:
    """Data directories and listeners of nodes that are brokers and controllers.

    Attributes:
        settings: Additional settings of nodes that start.
    """

    def __init__(self, folder: Path, ports: Mapping[int, tuple[int, int]]) -> None:
        self.settings: dict[str, object] = {}
        self._folder = folder
        self._ports = ports
        format_cluster(
            folder, {node: ("127.0.0.1", controller) for node, (_, controller) in ports.items()}
        )

    def data(self, node_id: int) -> Path:
        return self._folder / str(node_id)

    def bootstrap_of(self, node_ids: Iterable[int]) -> str:
        return ",".join(f"127.0.0.1:{self._ports[node_id][0]}" for node_id in node_ids)

    def controller_address(self, node_id: int) -> str:
        """Return the node's address for other controllers."""
        return f"127.0.0.1:{self._ports[node_id][1]}"

    def is_listening(self, node_id: int) -> bool:
        """Return whether a node accepts connections of other controllers."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._ports[node_id][1])) == 0

    def logs(self, node_id: int, topic: str) -> dict[str, bytes]:
        """Return the segments of a topic on a node's disk, by partition and name."""
        found = sorted(self.data(node_id).glob(f"{topic}-*/*.log"))
        return {f"{file.parent.name}/{file.name}": batches(file.read_bytes()) for file in found}

    def config(self, node_id: int) -> dict[str, object]:
        broker, controller = self._ports[node_id]
        return {
            "process.roles": "broker,controller",
            "node.id": node_id,
            "broker.rack": f"rack{node_id}",
            "listeners": f"PLAINTEXT://127.0.0.1:{broker},{CONTROLLER_LISTENER}://127.0.0.1:{controller}",
            "controller.listener.names": CONTROLLER_LISTENER,
            "controller.quorum.bootstrap.servers": ",".join(
                f"127.0.0.1:{port}" for _, port in self._ports.values()
            ),
            "inter.broker.listener.name": "PLAINTEXT",
            **SESSION,
            **self.settings,
        }


def batches(segment: bytes) -> bytes:
    """Return a segment without the preallocated zeros after its last batch."""
    end = 0
    while size := int.from_bytes(segment[end + 8 : end + 12], "big"):
        end += 12 + size
    return segment[:end]


class Nodes(Formatted):
    """Nodes in this process.

    Attributes:
        up: The running ones, by node id.
    """

    def __init__(self, folder: Path, ports: Mapping[int, tuple[int, int]]) -> None:
        super().__init__(folder, ports)
        self.up: dict[int, Broker] = {}

    def start(self, *node_ids: int) -> None:
        """Start nodes concurrently: a node joins only if a majority of the controllers runs."""
        with ThreadPoolExecutor(len(node_ids)) as pool:
            brokers = pool.map(self._start, node_ids)
            self.up.update(zip(node_ids, brokers, strict=True))

    def _start(self, node_id: int) -> Broker:
        return Broker(self.data(node_id), config=self.config(node_id))

    def stop(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.up.pop(node_id).close()

    def controller(self) -> int:
        """Return the active controller."""
        found: list[int] = []

        def is_there() -> bool:
            found[:] = [node for node, broker in self.up.items() if _leads(broker)]
            return bool(found)

        eventually(is_there)
        return found[0]

    @property
    def bootstrap(self) -> str:
        return self.bootstrap_of(self.up)


def _leads(broker: Broker) -> bool:
    membership = broker._started.control.dispatcher.membership
    return membership is not None and membership.leads


class Processes(Formatted):
    """Nodes in separate processes, which may be killed.

    Attributes:
        up: The running ones, by node id.
        environments: Additional environment variables of each node that starts.
    """

    def __init__(self, folder: Path, ports: Mapping[int, tuple[int, int]]) -> None:
        super().__init__(folder, ports)
        self.up: dict[int, subprocess.Popen[str]] = {}
        self.environments: dict[int, Mapping[str, str]] = {}

    def start(self, *node_ids: int) -> None:
        """Start nodes and return when each has joined."""
        if len(self.up.keys() | set(node_ids)) > 1:
            charge("cluster")
        for node_id in node_ids:
            properties = self.properties(node_id)
            with new_log(f"node {node_id}") as log:
                self.up[node_id] = subprocess.Popen(
                    serve_command(properties, self.data(node_id)),
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    env={**os.environ, **self.environments.get(node_id, {})},
                )
        for node_id in node_ids:
            wait_until_ready(self.up[node_id], f"node {node_id}")

    def properties(self, node_id: int) -> Path:
        """Write a node's settings to a file, and return it."""
        file = self.data(node_id).with_suffix(".properties")
        write_properties(file, self.config(node_id))
        return file

    def kill(self, *node_ids: int) -> None:
        """Send SIGKILL to all of them, then wait for their ends."""
        kill_all([self.up.pop(node_id) for node_id in node_ids])

    @property
    def bootstrap(self) -> str:
        return self.bootstrap_of(self.up)


Ports = Mapping[int, tuple[int, int]]


def has_isr(cluster: Nodes | Processes, expected: list[int]) -> bool:
    """Return whether all three partitions of ``orders`` have this ISR."""
    return isr_of(cluster.bootstrap, "orders") == [expected] * 3


@contextmanager
def ports_of(count: int) -> Iterator[Ports]:
    with ExitStack() as stack:

        def port() -> int:
            return port_of(stack.enter_context(reserve_port()))

        yield {node: (port(), port()) for node in range(1, count + 1)}


@contextmanager
def nodes(folder: Path, count: int = 3) -> Iterator[Nodes]:
    """Yield nodes that do not run yet; stop the running ones at the end."""
    with ports_of(count) as ports:
        made = Nodes(folder, ports)
        yield made
        made.stop(*made.up)


@contextmanager
def processes(
    folder: Path, count: int = 3, kind: type[Processes] = Processes
) -> Iterator[Processes]:
    """Yield processes that do not run yet; kill the running ones at the end."""
    with ports_of(count) as ports, killed_at_the_end(kind(folder, ports)) as made:
        yield made


@contextmanager
def killed_at_the_end(made: P) -> Iterator[P]:
    """Yield processes that do not run yet; kill the running ones at the end."""
    try:
        yield made
    finally:
        made.kill(*made.up)
