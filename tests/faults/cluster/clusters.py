"""Three nodes, each broker and controller in its own process, with one interface for both kinds.

The nodes are ours or Apache Kafka's. A fourth one, a broker without a vote, may join and leave
(`Cluster.join`). Clients connect to each node directly. Connections between nodes pass through
`Network`, because nodes advertise its listeners to each other. All nodes listen on 127.0.0.1.
Replication factor 3, ``min.insync.replicas`` 2, no unclean elections; sessions and lags are short,
so that a fault takes seconds.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from bench.peers.brokers import QUICK_TO_START, ApacheKafka
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.broker.storage.format import format_cluster, format_directory
from pykafka_core.broker.storage.identity import Identity, StoredIdentity
from pykafka_core.types import random_id
from tests.faults.cluster.checker import Replica, split
from tests.faults.cluster.clocks import Clocks
from tests.faults.cluster.disks import Disk, memory, unmount
from tests.faults.cluster.network.network import Network
from tests.support.costs import charge
from tests.support.evidence.logs import watch
from tests.support.patience import ATTEMPT_S, PATIENCE_S
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
GUEST = 4
"""The broker that joins temporarily."""
EVER = (*NODES, GUEST)
SESSION_S = 6.0
"""Long enough that a busy machine does not fence live nodes.

While all brokers are fenced, Metadata lists none, and some librdkafka clients never reconnect.
"""
METADATA_LOG = "__cluster_metadata-0"
PARTITION = re.compile(r"[A-Za-z0-9_]+-[0-9]+")
"""Matches a partition's directory, but not one that is deleted or stray."""
SETTINGS: Mapping[str, object] = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "REPLICATION",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,REPLICATION:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "broker.session.timeout.ms": int(SESSION_S * 1000),
    "broker.heartbeat.interval.ms": 500,
    "replica.lag.time.max.ms": 3000,
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
    "unclean.leader.election.enable": "false",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": 3,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.num.partitions": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.session.timeout.ms": 1500,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 100,
}
QUIET: Mapping[str, object] = {
    "log_level": 0,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 500,
    "retry.backoff.max.ms": 500,
}
"""Settings of every client: faults are expected, so they are not logged, and retries are fast."""


class NotBackError(Exception):
    """A node did not join, or ended without a request."""


class Need(Enum):
    """A requirement of a fault that a cluster does not fulfil by default."""

    DISKS = "a disk for each node, which only root can mount"
    CLOCKS = "a clock for each node, which a C compiler makes"


class Ports:
    """Ports of one node's listeners, and the proxy's ports for nodes and controllers."""

    def __init__(self, stack: ExitStack, proxied: tuple[int, int]) -> None:
        own = (port_of(stack.enter_context(reserve_port())) for _ in range(3))
        self.client, self.replication, self.controller = own
        self.replication_proxy, self.controller_proxy = proxied


class Cluster(ABC):
    """The processes and directories; all nodes are formatted, and none runs at first.

    Attributes:
        name: The kind of the nodes.
        processes: All possible nodes; those not in `NODES` may not be brokers.
        network: The links between nodes.
        up: The running processes, by node, including paused ones.
        members: The nodes that belong to the cluster now, whether they run or not.
        ends_on_full_disk: Whether a node that cannot write ends its process.
    """

    name: str
    ends_on_full_disk = False
    processes: Sequence[int] = EVER

    def __init__(
        self, folder: Path, network: Network, stack: ExitStack, needs: Collection[Need] = ()
    ) -> None:
        self.network = network
        self.up: dict[int, subprocess.Popen[bytes]] = {}
        self.members: tuple[int, ...] = NODES
        self._folder = folder
        self._disks = self._mounted(stack) if Need.DISKS in needs else {}
        self._clocks = Clocks(folder, EVER) if Need.CLOCKS in needs else None
        proxied = iter(network.ports)
        self._ports = {
            node: Ports(stack, (next(proxied), next(proxied))) for node in self.processes
        }
        network.route(
            {
                at: (node, to)
                for node, port in self._ports.items()
                for at, to in (
                    (port.replication_proxy, port.replication),
                    (port.controller_proxy, port.controller),
                )
            }
        )
        for node in self.processes:
            write_properties(self._properties(node), self._settings(node))
        self._format()

    def _mounted(self, stack: ExitStack) -> dict[int, Disk]:
        images = self._folder / "images"
        memory(images)
        stack.callback(unmount, images)
        disks = {node: Disk(images / str(node), self.data(node)) for node in NODES}
        for disk in disks.values():
            stack.callback(disk.remove)
        return disks

    def keep_disks(self) -> None:
        """Copy the contents of separate disks to the folder, before they are deleted."""
        for node in self._disks:
            shutil.copytree(self.data(node), self._folder / "disks" / str(node))

    @abstractmethod
    def is_ours(self, node: int) -> bool:
        """Return whether it is a node of this project; otherwise it is one of Apache Kafka's."""

    @property
    def bootstrap(self) -> str:
        """The addresses of all nodes, whether they run or not."""
        return ",".join(self.address(node) for node in NODES)

    def address(self, node: int) -> str:
        return f"127.0.0.1:{self._ports[node].client}"

    def start(self, *nodes: int) -> None:
        """Start nodes concurrently and return when each serves.

        Raises:
            NotBackError: As for `wait_until_serving`.
        """
        self.launch(*nodes)
        for node in nodes:
            self.wait_until_serving(node)

    def launch(self, *nodes: int) -> None:
        """Start nodes without waiting: they serve only once a majority is connected."""
        charge("cluster")
        for node in nodes:
            watch(f"node {node} ({self.name})", self._folder / f"{node}.log")
            with open(self._folder / f"{node}.log", "ab") as log:
                self.up[node] = subprocess.Popen(
                    self._command(node), stdout=log, stderr=log, env=self._environment(node)
                )
            self.network.is_node(node, self.up[node].pid)

    def wait_until_serving(self, node: int) -> None:
        """Return when a node responds to clients.

        Raises:
            NotBackError: It ended, or has not joined within `PATIENCE_S`.
        """
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if (code := self.up[node].poll()) is not None:
                raise NotBackError(f"node {node} ended with {code}: {self.log_of(node)}")
            try:
                admin = AdminClient({"bootstrap.servers": self.address(node), **QUIET})
                admin.list_topics(timeout=ATTEMPT_S)
                return
            except KafkaException:
                continue
        raise NotBackError(
            f"node {node} did not join within {PATIENCE_S:.0f} s: {self.log_of(node)}"
        )

    def kill(self, *nodes: int) -> None:
        """Send SIGKILL to all of them, then wait for their ends."""
        # First, because a kernel refuses connections no later than the end of the process.
        self.network.is_gone(*nodes)
        kill_all([self.up.pop(node) for node in nodes])

    def pause(self, node: int) -> None:
        """Send SIGSTOP."""
        self.up[node].send_signal(signal.SIGSTOP)

    def resume(self, node: int) -> None:
        """Send SIGCONT, unless the node was killed since."""
        if node in self.up:
            self.up[node].send_signal(signal.SIGCONT)

    def launch_missing(self, *nodes: int) -> None:
        """Launch those of these nodes that are not running."""
        ended = self.ended()
        self.launch(*(node for node in nodes if node not in self.up or node in ended))

    def lose_power(self, *nodes: int) -> None:
        """End nodes like a power cut: data that was not synced is lost."""
        self.kill(*nodes)
        for node in nodes:
            if node in self._disks:
                self._disks[node].lose_power()

    def fill_disk(self, node: int) -> None:
        """Fill the node's disk to the last byte."""
        self._disks[node].fill()

    def free_disk(self, node: int) -> None:
        """Free the space again, and restart the node if its kind ends on a full disk."""
        self._disks[node].free()
        if self.ends_on_full_disk:
            self.launch_missing(node)

    def shift_clock(self, node: int, seconds: float) -> None:
        """Shift a node's wall clock by this from now on."""
        assert self._clocks is not None, "Need.CLOCKS"
        self._clocks.shift(node, seconds)

    def join(self) -> None:
        """Format and start `GUEST`.

        Raises:
            NotBackError: As for `start`.
        """
        self._format_guest()
        self.members = EVER
        self.start(GUEST)

    def leave(self) -> None:
        """Stop `GUEST` permanently and remove its data; it stays registered."""
        if GUEST in self.up:
            self.stop(GUEST)
        self.members = NODES
        shutil.rmtree(self.data(GUEST))

    def stop(self, node: int) -> None:
        """Send SIGTERM, which starts a controlled shutdown, and wait for the end.

        Raises:
            NotBackError: It does not end within `PATIENCE_S`.
        """
        process = self.up.pop(node)
        process.terminate()
        try:
            process.wait(PATIENCE_S)
            self.network.is_gone(node)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise NotBackError(f"node {node} did not stop within {PATIENCE_S:.0f} s") from None

    def wipe(self, node: int) -> None:
        """Remove the partitions of a stopped node, as if its disk were lost.

        Its metadata log stays: a voter that forgets its votes would be a different fault.
        """
        for entry in self.data(node).iterdir():
            if entry.name in ("meta.properties", METADATA_LOG, "bootstrap.checkpoint"):
                continue
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def ended(self) -> list[int]:
        """Return the nodes whose processes have ended without a request."""
        return [node for node, process in self.up.items() if process.poll() is not None]

    def replicas(self) -> list[Replica]:
        """Return the batches on each node's disk of every partition that any node has."""
        names = {
            folder.name
            for node in NODES
            for folder in self.data(node).iterdir()
            if PARTITION.fullmatch(folder.name) and folder.name != METADATA_LOG
        }
        return [self._replica(node, name) for name in sorted(names) for node in NODES]

    def _replica(self, node: int, partition: str) -> Replica:
        segments = sorted((self.data(node) / partition).glob("*.log"))
        batches = b"".join(batch for file in segments for batch in split(file.read_bytes()))
        return Replica(node, partition, batches)

    def _environment(self, node: int) -> dict[str, str]:
        own = {} if self._clocks is None else self._clocks.environment(node)
        return {**os.environ, **own}

    def log_of(self, node: int) -> str:
        """Return the end of the node's log."""
        return (self._folder / f"{node}.log").read_text(errors="replace")[-2000:]

    def _properties(self, node: int) -> Path:
        return self._folder / f"{node}.properties"

    def _settings(self, node: int) -> dict[str, object]:
        port = self._ports[node]
        listeners = (
            f"PLAINTEXT://127.0.0.1:{port.client},REPLICATION://127.0.0.1:{port.replication}"
        )
        own = (
            {"process.roles": "broker"}
            if node == GUEST
            else {"listeners": f"{listeners},CONTROLLER://127.0.0.1:{port.controller}"}
        )
        # Voters advertise the proxies to each other; otherwise the harness could not cut the links.
        controller = "" if node == GUEST else f",CONTROLLER://127.0.0.1:{port.controller_proxy}"
        return {
            **SETTINGS,
            "node.id": node,
            "listeners": listeners,
            **own,
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port.client},"
            f"REPLICATION://127.0.0.1:{port.replication_proxy}{controller}",
            "controller.quorum.bootstrap.servers": ",".join(
                f"127.0.0.1:{self._ports[other].controller_proxy}" for other in NODES
            ),
        }

    def data(self, node: int) -> Path:
        """Return the node's data directory."""
        return self._folder / str(node)

    def _identity(self) -> StoredIdentity:
        """Return the identity of the first node, which contains the cluster id."""
        identity = DataDirectory(self.data(NODES[0])).identity()
        assert identity is not None, "all nodes are formatted"
        return identity

    @abstractmethod
    def _format(self) -> None: ...

    @abstractmethod
    def _format_guest(self) -> None: ...

    @abstractmethod
    def _command(self, node: int) -> list[str]: ...


class Ours(Cluster):
    """Nodes of `pykafka-core serve`."""

    name = "ours"

    def is_ours(self, node: int) -> bool:
        return True

    def _format(self) -> None:
        format_cluster(
            self._folder,
            {node: ("127.0.0.1", self._ports[node].controller_proxy) for node in NODES},
        )

    def _format_guest(self) -> None:
        cluster_id = self._identity().cluster_id
        format_directory(self.data(GUEST), Identity(cluster_id, GUEST, random_id(os.urandom)))

    def _settings(self, node: int) -> dict[str, object]:
        settings = super()._settings(node)
        if node != GUEST:
            return settings
        voters = (f"{other}@127.0.0.1:{self._ports[other].controller_proxy}" for other in NODES)
        return settings | {"controller.quorum.voters": ",".join(voters)}

    def _command(self, node: int) -> list[str]:
        return serve_command(self._properties(node), self.data(node))


class Kafka(Cluster):
    """Apache Kafka of `bench/peers/java/pom.xml`. Each append is synced, which is our default."""

    name = "kafka"
    ends_on_full_disk = True

    def is_ours(self, node: int) -> bool:
        return False

    def _settings(self, node: int) -> dict[str, object]:
        return super()._settings(node) | {
            "log.dirs": self.data(node),
            "log.flush.interval.messages": 1,
        }

    def _format(self) -> None:
        quorum = first_voters({node: self._ports[node].controller_proxy for node in NODES})
        for node in NODES:
            self._format_one(node, *quorum)

    def _format_guest(self) -> None:
        self._format_one(GUEST, "-t", self._identity().cluster_id, "--no-initial-controllers")

    def _format_one(self, node: int, *quorum: str) -> None:
        format_kafka(self._java, self._properties(node), *quorum)
        # The tool does not sync, and a node with an empty bootstrap.checkpoint does not start.
        os.sync()

    def _command(self, node: int) -> list[str]:
        return kafka_command(self._java, self._properties(node))

    @property
    def _java(self) -> list[str]:
        return [
            "java",
            *QUICK_TO_START,
            "-Xmx512m",
            "-Dlog4j2.level=WARN",
            "-cp",
            ApacheKafka.classpath(),
        ]


KINDS: Mapping[str, type[Cluster]] = {"ours": Ours, "kafka": Kafka}


@contextmanager
def cluster(kind: str, folder: Path, needs: Collection[Need] = ()) -> Iterator[Cluster]:
    """Yield a formatted cluster that does not run yet; kill the running nodes at the end.

    Args:
        needs: Requirements of its faults.
    """
    with ExitStack() as stack:
        network = stack.enter_context(Network(2 * len(EVER)))
        made = KINDS[kind](folder, network, stack, needs)
        try:
            yield made
        finally:
            made.kill(*made.up)
