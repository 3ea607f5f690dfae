"""A forked child keeps no socket of its parent's broker.

Ports become free, and clients see the end of their connections.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from pykafka_core import Broker, Cluster
from pykafka_core.broker.metrics.server import MetricsServer
from tests.broker.forks.children import exit_code, killed_later, living_child
from tests.support.patience import PATIENCE_S, eventually

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

PARENT = "tests.broker.forks.parent_program"


@contextmanager
def connected(address: str) -> Iterator[socket.socket]:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), PATIENCE_S) as connection:
        yield connection


def sockets_of(process: int) -> dict[str, int]:
    """Return the open sockets of a process, with a descriptor of each."""
    folder = Path(f"/proc/{process}/fd")
    found = {}
    for name in os.listdir(folder):
        with suppress(FileNotFoundError):  # it was the descriptor of the folder
            found[os.readlink(folder / name)] = int(name)
    return {target: number for target, number in found.items() if target.startswith("socket:")}


def name_of(opened: socket.socket) -> str:
    return f"socket:[{os.fstat(opened.fileno()).st_ino}]"


def test_a_broker_restarts_on_its_port_while_a_child_lives() -> None:
    with Broker(listeners="PLAINTEXT://127.0.0.1:0") as broker:
        address = broker.bootstrap_servers
        with living_child():
            broker.close()
            with Broker(listeners=f"PLAINTEXT://{address}") as again:
                assert again.bootstrap_servers == address


def test_client_gets_the_end_of_its_connection_while_a_child_lives() -> None:
    with Broker() as broker, connected(broker.bootstrap_servers) as client:
        eventually(lambda: broker.statistics()["connections_open"] == 1)
        with living_child():
            broker.close()
            assert client.recv(1) == b""


def test_a_closed_broker_ends_sockets_that_have_copies() -> None:
    """A child may have copied a socket when it was accepted; the socket is shut down anyway."""
    before = sockets_of(os.getpid())
    with Broker() as broker, connected(broker.bootstrap_servers) as client:
        eventually(lambda: broker.statistics()["connections_open"] == 1)
        address, now = broker.bootstrap_servers, sockets_of(os.getpid())
        theirs = now.keys() - before.keys() - {name_of(client)}
        copies = [os.dup(now[name]) for name in theirs]
        try:
            assert len(copies) == 2, "the listener and the connection"
            broker.close()
            assert client.recv(1) == b""
            with Broker(listeners=f"PLAINTEXT://{address}") as again:
                assert again.bootstrap_servers == address
        finally:
            for copy in copies:
                os.close(copy)


def test_child_has_no_socket_of_the_broker_of_its_parent() -> None:
    before = sockets_of(os.getpid()).keys()  # other tests may leave a broker
    with (
        socket.socket() as foreign,
        Broker() as broker,
        connected(broker.bootstrap_servers) as client,
    ):
        eventually(lambda: broker.statistics()["connections_open"] == 1)
        with living_child() as child:
            kept = sockets_of(child).keys()
            theirs = sockets_of(os.getpid()).keys() - before - kept
            assert len(theirs) == 2, "the listener and the connection"
            assert {name_of(foreign), name_of(client)} <= kept


def test_child_has_no_socket_of_the_cluster_of_its_parent() -> None:
    before = sockets_of(os.getpid()).keys()
    with Cluster(2) as cluster:
        cluster.create_topic("orders", partitions=1)
        with living_child() as child:
            listeners_and_reserved = 8
            assert len(sockets_of(os.getpid()).keys() - before) > listeners_and_reserved
            kept = sockets_of(child).keys()
        # Nodes connect at any time: a socket that was opened during one fork is registered by the
        # next fork.
        with living_child() as child:
            assert kept & sockets_of(child).keys() <= before


def test_child_has_no_socket_of_the_metrics_of_its_parent() -> None:
    before = sockets_of(os.getpid()).keys()
    with Broker() as broker, closing(MetricsServer(broker, "", 0)) as metrics:
        with living_child() as child:
            assert len(sockets_of(os.getpid()).keys() - before) == 1
            assert sockets_of(child).keys() <= before
        assert exit_code(metrics.close) == 0


def test_a_killed_parent_leaves_its_port_and_directory_free(tmp_path: Path) -> None:
    command = [sys.executable, "-m", PARENT, str(tmp_path / "data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        address = parent.stdout.readline().strip()
        with connected(address) as client, killed_later(int(parent.stdout.readline())):
            parent.send_signal(signal.SIGKILL)
            parent.wait(PATIENCE_S)
            assert client.recv(1) == b""
            with Broker(tmp_path / "data", listeners=f"PLAINTEXT://{address}") as broker:
                assert dict(broker.topics()) == {"orders": 1}
