"""Data directories, addresses and initial settings of the nodes of a cluster in one process."""

import socket
import tempfile
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pykafka_core.broker.forks import OwnProcess, close_in_children
from pykafka_core.broker.storage.data_directory import DataDirectory
from pykafka_core.broker.storage.format import CONTROLLER_LISTENER, format_cluster, is_formatted
from pykafka_core.broker.storage.voters import voters_of
from pykafka_core.errors import StorageError
from pykafka_core.metadata.records.quorum_records import QuorumRecords

LOOPBACK = "127.0.0.1"
LISTENER = "PLAINTEXT"

QUICK: Mapping[str, object] = {
    "broker.session.timeout.ms": 2000,
    "broker.heartbeat.interval.ms": 200,
    "replica.lag.time.max.ms": 2000,
    "controller.quorum.election.timeout.ms": 500,
    "controller.quorum.election.backoff.max.ms": 200,
    "controller.quorum.fetch.timeout.ms": 1000,
    "controller.quorum.request.timeout.ms": 1000,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
}
"""Shorter than Kafka's defaults, so that a failover test takes a second or two; with fewer internal
partitions."""


def replication_settings(nodes: int) -> dict[str, object]:
    """Return the replication settings of a cluster of that size: 3 replicas, or as many as nodes.

    A node that others can join has Kafka's defaults, and with fewer than 3 brokers those allow
    neither groups nor transactions.
    """
    replicas, min_isr = min(3, nodes), min(2, nodes)
    return {
        "default.replication.factor": replicas,
        "min.insync.replicas": min_isr,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": min_isr,
    }


class Places:
    """Directories and ports, which a node keeps while it is down.

    Args:
        count: Number of nodes; their ids start at 0.
        data: Contains a directory for each node, named by its id, created the first time; None for
            a temporary directory.

    Raises:
        StorageError: The directory belongs to another number of nodes, or cannot be used.
        OSError: A port of an existing directory is used by another program.
    """

    def __init__(self, count: int, data: Path | None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pykafka-")) if data is None else data
        self.is_temporary = data is None
        self._remove = weakref.finalize(self, _wipe_own, self.folder, OwnProcess())
        if not self.is_temporary:
            self._remove.detach()
        self._reserved: list[socket.socket] = []
        try:
            self._controllers = self._known(count) or self._made(count)
            self._brokers = [self._reserve() for _ in range(count)]
        except BaseException:
            self.close()
            raise

    def directory(self, node_id: int) -> Path:
        """Return the directory of a node."""
        return self.folder / str(node_id)

    def peers(self, node_id: int) -> list[tuple[str, int]]:
        """Return the addresses at which other nodes connect to a node."""
        return [(LOOPBACK, self._brokers[node_id]), (LOOPBACK, self._controllers[node_id])]

    def bootstrap(self, node_id: int) -> str:
        """Return the address of a node for clients, whether it is up or not."""
        return f"{LOOPBACK}:{self._brokers[node_id]}"

    def settings(self, node_id: int) -> dict[str, object]:
        """Return the settings of a node; the caller may override them."""
        count = len(self._brokers)
        broker, controller = self._brokers[node_id], self._controllers[node_id]
        return {
            **QUICK,
            "process.roles": "broker,controller",
            "node.id": node_id,
            "listeners": f"{LISTENER}://{LOOPBACK}:{broker},{CONTROLLER_LISTENER}://{LOOPBACK}:{controller}",
            "controller.listener.names": CONTROLLER_LISTENER,
            "controller.quorum.bootstrap.servers": ",".join(
                f"{LOOPBACK}:{port}" for port in self._controllers
            ),
            "inter.broker.listener.name": LISTENER,
            **replication_settings(count),
        }

    def close(self) -> None:
        """Release the ports, and remove a temporary directory."""
        for reserved in self._reserved:
            reserved.close()
        self._remove()

    def _known(self, count: int) -> list[int] | None:
        """Return the controller ports in existing directories; None for new directories."""
        if not is_formatted(self.folder, range(count)):
            return None
        snapshot = DataDirectory(self.directory(0)).latest_snapshot_head()
        records = QuorumRecords() if snapshot is None else QuorumRecords().after(snapshot.bytes)
        ports = {
            voter.key.node_id: voter.port for voter in voters_of(records, [CONTROLLER_LISTENER])
        }
        if set(ports) != set(range(count)):
            raise StorageError(f"{self.folder} was not made by a Cluster of {count} nodes")
        for port in ports.values():
            self._reserve(port)
        return [ports[node] for node in range(count)]

    def _made(self, count: int) -> list[int]:
        ports = [self._reserve() for _ in range(count)]
        format_cluster(self.folder, {node: (LOOPBACK, port) for node, port in enumerate(ports)})
        return ports

    def _reserve(self, port: int = 0) -> int:
        """Reserve a port by keeping it bound.

        A node can still listen on it, because this socket never does.
        """
        reserved = socket.socket()
        self._reserved.append(reserved)
        close_in_children(reserved)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind((LOOPBACK, port))
        return int(reserved.getsockname()[1])


def _wipe_own(directory: Path, process: OwnProcess) -> None:
    """Remove the directory, but not in a forked child."""
    if process.is_current:
        wipe(directory)


def wipe(directory: Path) -> None:
    """Remove a directory with its contents, if it exists."""
    import shutil

    with suppress(FileNotFoundError):
        shutil.rmtree(directory)
