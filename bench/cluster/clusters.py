"""Three nodes (broker and controller) in separate processes on 127.0.0.1: ours and Kafka's."""

import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from bench.cluster import requests
from bench.peers.brokers import (
    AS_ITS_SCRIPTS,
    ApacheKafka,
    cpu_seconds,
    resident_bytes,
)
from pykafka_core.broker.storage.format import format_cluster
from tests.support.processes.nodes import (
    first_voters,
    format_kafka,
    kafka_command,
    kill_all,
    port_of,
    reserve_port,
    serve_command,
    write_properties,
)

NODES = (1, 2, 3)
PATIENCE_S = 300
SETTINGS: Mapping[str, object] = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
    "offsets.topic.replication.factor": 3,
    "group.initial.rebalance.delay.ms": 0,
    "auto.create.topics.enable": "false",
    "log.segment.delete.delay.ms": 0,
}
"""Equal for both; all other settings have their defaults."""
OWN_LISTENER: Mapping[str, object] = {
    "inter.broker.listener.name": "BROKERS",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,BROKERS:PLAINTEXT",
}


class Addresses(NamedTuple):
    """Ports of one node."""

    client: int
    controller: int
    broker: int


class Conditions(NamedTuple):
    """The conditions of a run.

    Attributes:
        settings: Settings in addition to `SETTINGS`.
        has_own_listener: Whether brokers have a listener that clients do not use.
        descriptors: The limit of descriptors of a node; None leaves it as it is.
    """

    settings: Mapping[str, object] = MappingProxyType({})
    has_own_listener: bool = False
    descriptors: int | None = None


USUAL = Conditions()


class Nodes(ABC):
    """Formatted nodes; initially none runs.

    Attributes:
        name: Name of the implementation.
        folder: Folder for all files of the nodes.
        up: The running processes, by node id.
    """

    name: str

    def __init__(self, folder: Path, conditions: Conditions) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True)
        self._conditions = conditions
        self._reserved = {node: [reserve_port() for _ in Addresses._fields] for node in NODES}
        self.up: dict[int, subprocess.Popen[bytes]] = {}
        for node in NODES:
            write_properties(self._properties(node), self._settings(node))
        self._format()

    @property
    def bootstrap(self) -> str:
        """The addresses of all nodes, running or not."""
        return ",".join(self.address(node) for node in NODES)

    def address(self, node: int) -> str:
        return f"127.0.0.1:{self._ports(node).client}"

    def start(self, *nodes: int) -> None:
        """Start nodes; return once each responds to Metadata with all running nodes."""
        self.launch(*nodes)
        for node in nodes:
            self._wait_until_serving(node)

    def launch(self, *nodes: int) -> None:
        """Start nodes without waiting."""
        for node in nodes:
            with open(self.folder / f"{node}.log", "ab") as log:
                command = self._within_limits(self._command(node))
                self.up[node] = subprocess.Popen(command, stdout=log, stderr=log)

    def _wait_until_serving(self, node: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if (code := self.up[node].poll()) is not None:
                raise RuntimeError(f"node {node} of {self.name} ended with {code}")
            try:
                known = requests.metadata(self.address(node)).brokers
            except OSError:
                known = []
            if {broker.node_id for broker in known} >= set(self.up):
                return
            time.sleep(0.005)
        raise RuntimeError(f"node {node} of {self.name} did not join within {PATIENCE_S} s")

    def signal(self, node: int, number: signal.Signals) -> None:
        """Send a signal without waiting."""
        self.up[node].send_signal(number)

    def reap(self, node: int) -> None:
        """Wait for the end of a process that was signalled to end."""
        self.up.pop(node).wait(PATIENCE_S)

    def cpu_seconds(self) -> float:
        """Return user and system time of all running processes."""
        return sum(cpu_seconds(process.pid) for process in self.up.values())

    def resident_bytes(self) -> int:
        """Return the resident memory of all running processes; shared pages count repeatedly."""
        return sum(resident_bytes(process.pid) for process in self.up.values())

    def close(self) -> None:
        """End all processes and remove their data."""
        kill_all(self.up.values())
        for reserved in self._reserved.values():
            for port in reserved:
                port.close()
        shutil.rmtree(self.folder)

    def _within_limits(self, command: Sequence[str]) -> Sequence[str]:
        count = self._conditions.descriptors
        return command if count is None else ["prlimit", f"--nofile={count}:{count}", *command]

    def _ports(self, node: int) -> Addresses:
        return Addresses(*map(port_of, self._reserved[node]))

    def _properties(self, node: int) -> Path:
        return self.folder / f"{node}.properties"

    def _settings(self, node: int) -> dict[str, object]:
        own = self._ports(node)
        controllers = (f"127.0.0.1:{self._ports(other).controller}" for other in NODES)
        listeners = [
            f"PLAINTEXT://127.0.0.1:{own.client}",
            f"CONTROLLER://127.0.0.1:{own.controller}",
        ]
        if self._conditions.has_own_listener:
            listeners.append(f"BROKERS://127.0.0.1:{own.broker}")
        return {
            **SETTINGS,
            **(OWN_LISTENER if self._conditions.has_own_listener else {}),
            **self._conditions.settings,
            "node.id": node,
            "listeners": ",".join(listeners),
            "controller.quorum.bootstrap.servers": ",".join(controllers),
        }

    def data(self, node: int) -> Path:
        """Return the folder of a node's partitions."""
        return self.folder / str(node)

    def file_bytes(self, node: int, topic: str) -> int:
        """Return the disk space of a node's replica of partition 0, written or reserved."""
        segments = (self.data(node) / f"{topic}-0").glob("*.log")
        return sum(file.stat().st_blocks * 512 for file in segments)

    @abstractmethod
    def replica_bytes(self, node: int, topic: str) -> int:
        """Return the size of a node's replica of partition 0; 0 if it is not available."""

    @abstractmethod
    def _format(self) -> None: ...

    @abstractmethod
    def _command(self, node: int) -> Sequence[str]: ...


class Ours(Nodes):
    """`pykafka-core serve`.

    Args:
        durability: Option of `serve`.
    """

    def __init__(self, folder: Path, durability: str, conditions: Conditions = USUAL) -> None:
        self.name = f"pykafka_core {durability}"
        self._durability = durability
        super().__init__(folder / durability, conditions)

    def replica_bytes(self, node: int, topic: str) -> int:
        """Return the size in its response: its files include reserved space."""
        try:
            return requests.replica_bytes(self.address(node), topic)
        except OSError:
            return 0

    def _format(self) -> None:
        at = {node: ("127.0.0.1", self._ports(node).controller) for node in NODES}
        format_cluster(self.folder, at)

    def _command(self, node: int) -> Sequence[str]:
        files = self._properties(node), self.data(node)
        return serve_command(*files, "--durability", self._durability)


class Kafka(Nodes):
    """Apache Kafka of `bench/peers/java/pom.xml`, as its scripts start it."""

    name = "Apache Kafka"

    def __init__(self, folder: Path, conditions: Conditions = USUAL) -> None:
        self._java = [
            "java",
            *AS_ITS_SCRIPTS,
            "-Dlog4j2.level=WARN",
            "-cp",
            ApacheKafka.classpath(),
        ]
        super().__init__(folder / "kafka", conditions)

    def replica_bytes(self, node: int, topic: str) -> int:
        """Return the size of its files, which have no reserved space; it may not respond yet."""
        return self.file_bytes(node, topic)

    def _settings(self, node: int) -> dict[str, object]:
        return super()._settings(node) | {"log.dirs": self.data(node)}

    def _format(self) -> None:
        quorum = first_voters({node: self._ports(node).controller for node in NODES})
        for node in NODES:
            format_kafka(self._java, self._properties(node), *quorum)

    def _command(self, node: int) -> Sequence[str]:
        return kafka_command(self._java, self._properties(node))
