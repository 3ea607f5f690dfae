"""Parts of all launchers of broker processes, ours and Apache Kafka's."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pykafka_core.types import id_text, random_id

SERVE = (sys.executable, "-m", "pykafka_core.cli", "serve")
"""The command that runs a broker of this project."""
NOT_BUILT = ("--feature", "share.version=0", "--feature", "streams.version=0")
"""Features that our brokers lack: a cluster with them must not use their coordinators."""


def reserve_port() -> socket.socket:
    """Return a socket with a port of 127.0.0.1 that no other one gets by chance until it is closed.

    A server with SO_REUSEADDR may listen there, and again after it died, because this socket never
    does.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


def port_of(reserved: socket.socket) -> int:
    """Return the port of `reserve_port`."""
    return int(reserved.getsockname()[1])


def write_properties(file: Path, settings: Mapping[str, object]) -> None:
    """Write settings as both kinds of brokers read them."""
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))


def serve_command(properties: Path, data: Path, *options: str) -> list[str]:
    """Return the command of a node with its settings in a file."""
    return [*SERVE, "--config", str(properties), "--data", str(data), *options]


def wait_until_ready(process: "subprocess.Popen[str]", name: str) -> str:
    """Wait for the line ``ready ADDRESS`` of `SERVE`, whose stdout is a pipe; return the address.

    Raises:
        AssertionError: The process ended.
    """
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("ready "), f"{name} did not start: {line}"
    return line.split()[1]


def kill_all(processes: "Iterable[subprocess.Popen[bytes] | subprocess.Popen[str]]") -> None:
    """Send SIGKILL to all processes, then wait for their ends."""
    killed = list(processes)
    for process in killed:
        process.kill()
    for process in killed:
        process.communicate()


def format_kafka(java: Sequence[str], properties: Path, *quorum: str) -> None:
    """Format the directory of a node of Apache Kafka.

    Args:
        java: The Java command with its options and class path.
        quorum: Cluster id and voters, as arguments of the storage tool.
    """
    tool = [*java, "kafka.tools.StorageTool", "format", *quorum, "-c", str(properties)]
    subprocess.run(tool, check=True, stdout=subprocess.DEVNULL)


def kafka_command(java: Sequence[str], properties: Path) -> list[str]:
    """Return the command of a node of Apache Kafka; see `format_kafka`."""
    return [*java, "kafka.Kafka", str(properties)]


def first_voters(controllers: Mapping[int, int]) -> tuple[str, ...]:
    """Return the arguments of the storage tool for the voters of a new cluster.

    Args:
        controllers: The ports of the controllers by node id.
    """
    voters = ",".join(
        f"{node}@127.0.0.1:{port}:{id_text(random_id(os.urandom))}"
        for node, port in controllers.items()
    )
    return "-t", id_text(random_id(os.urandom)), "--initial-controllers", voters
