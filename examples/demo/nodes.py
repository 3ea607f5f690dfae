"""Three brokers as processes that the demo can kill."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.broker.storage.format import CONTROLLER_LISTENER, format_cluster, format_directory
from pykafka_core.broker.storage.identity import Identity
from pykafka_core.cli.errors import CliError
from pykafka_core.types import random_id

NODES = (1, 2, 3)
STOP_S = 30
_HOST = "127.0.0.1"


class Nodes:
    """Nodes that are brokers and controllers, one process and one directory each.

    Args:
        folder: It contains the directory of each node, named by its id.
        ports: The ports of each node's broker and controller.
    """

    def __init__(self, folder: Path, ports: dict[int, tuple[int, int]]) -> None:
        self._folder = folder
        self._ports = ports
        self._observers: set[int] = set()
        self._up: dict[int, subprocess.Popen[str]] = {}
        format_cluster(
            folder, {node: (_HOST, controller) for node, (_, controller) in ports.items()}
        )

    @property
    def bootstrap(self) -> str:
        """The addresses of all nodes, whether they run or not."""
        return ",".join(f"{_HOST}:{broker}" for broker, _ in self._ports.values())

    @property
    def up(self) -> list[int]:
        """The nodes that run."""
        return sorted(self._up)

    def data(self, node: int) -> Path:
        """The directory of a node."""
        return self._folder / str(node)

    def start(self, nodes: Iterable[int]) -> None:
        """Start nodes, and return when each accepts clients.

        Raises:
            CliError: A node ended; its output is above.
        """
        begun = {node: self._begin(node) for node in nodes}
        for node, process in begun.items():
            assert process.stdout is not None, "it is a pipe"
            if not process.stdout.readline().startswith("ready "):
                raise CliError(f"node {node} did not start; its output is above")

    def kill(self, node: int) -> None:
        """Kill a node with SIGKILL."""
        process = self._up.pop(node)
        process.kill()
        process.communicate()

    def lose_disk(self, node: int) -> None:
        """Give a stopped node a new disk.

        To the metadata quorum the new disk is another replica and not a voter, because the votes of
        the old disk are not on it.
        """
        known = DataDirectory(self.data(node)).identity()
        assert known is not None, "it was formatted"
        shutil.rmtree(self.data(node))
        format_directory(self.data(node), Identity(known.cluster_id, node, random_id(os.urandom)))
        self._observers.add(node)

    def stop(self) -> None:
        """End all running nodes: cleanly, or with SIGKILL after a time."""
        ended = list(self._up.values())
        self._up.clear()
        for process in ended:
            process.terminate()
        for process in ended:
            try:
                process.communicate(timeout=STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()

    def _begin(self, node: int) -> "subprocess.Popen[str]":
        config = self._folder / f"{node}.properties"
        settings = self._settings(node).items()
        config.write_text("".join(f"{name}={value}\n" for name, value in settings))
        command = [sys.executable, "-m", "pykafka_core.cli", "serve", "--log-level", "error"]
        self._up[node] = subprocess.Popen(
            [*command, "--config", str(config), "--data", str(self.data(node))],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the demo, which ends its nodes
        )
        return self._up[node]

    def _settings(self, node: int) -> dict[str, str]:
        broker, controller = self._ports[node]
        listener = f"PLAINTEXT://{_HOST}:{broker}"
        settings = {
            "node.id": str(node),
            "controller.listener.names": CONTROLLER_LISTENER,
            "inter.broker.listener.name": "PLAINTEXT",
            "broker.heartbeat.interval.ms": "200",
            "broker.session.timeout.ms": "3000",
            "default.replication.factor": "3",
            "min.insync.replicas": "2",
            "offsets.topic.num.partitions": "6",
        }
        if node not in self._observers:
            listeners = f"{listener},{CONTROLLER_LISTENER}://{_HOST}:{controller}"
            return {**settings, "process.roles": "broker,controller", "listeners": listeners}
        voters = ",".join(
            f"{other}@{_HOST}:{port}" for other, (_, port) in self._ports.items() if other != node
        )
        return {
            **settings,
            "process.roles": "broker",
            "listeners": listener,
            "controller.quorum.voters": voters,
        }


@contextmanager
def nodes(folder: Path) -> Iterator[Nodes]:
    """Nodes that do not run yet; at the end, all running ones are stopped."""
    with ExitStack() as reserved:

        def port() -> int:
            """Return a port that no other process gets: a socket is bound to it without listen."""
            holder = reserved.enter_context(socket.socket())
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.bind((_HOST, 0))
            return int(holder.getsockname()[1])

        made = Nodes(folder, {node: (port(), port()) for node in NODES})
        try:
            yield made
        finally:
            made.stop()
