"""``cluster up``: run the nodes of a cluster on this machine, one process each, until Ctrl-C."""

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pykafka_core.broker.cluster.places import replication_settings
from pykafka_core.broker.storage.format import CONTROLLER_LISTENER, format_cluster, is_formatted
from pykafka_core.cli.client import wire
from pykafka_core.cli.cluster.supervisor import Signals, Supervisor
from pykafka_core.cli.doctor.processes import lock_holder
from pykafka_core.cli.errors import USAGE, CliError
from pykafka_core.errors import StorageError

NODES_MAX = 7
CONTROLLER_PORTS_BEHIND = 10_000
"""The distance between the port of a node's broker and the port of its controller."""
KNOWN_S = 30
BETWEEN_LOOKS_S = 0.01


def up(count: int, folder: Path, port: int) -> None:
    """Run nodes until a signal comes. A node that ends starts again, after a growing delay.

    Args:
        count: The number of nodes, 1 to 7; each is broker and controller.
        folder: It holds a directory and a settings file for each node; the first run creates it.
        port: The port of the first broker; the other brokers have the ports after it.

    Raises:
        CliError: The folder is in use or for another number of nodes, or a node did not start.
    """
    nodes = range(1, count + 1)
    if not 1 <= count <= NODES_MAX or port + count - 1 + CONTROLLER_PORTS_BEHIND > 65535:
        text = f"{count} nodes from port {port} on"
        raise CliError(
            text, f"take 1 to {NODES_MAX} nodes, and a port below 55000", exit_code=USAGE
        )
    _check_unused(nodes, folder)
    try:
        _format(nodes, folder, port)
    except StorageError as error:
        raise CliError(str(error)) from error
    with Supervisor(nodes, folder) as supervisor:
        addresses = [f"127.0.0.1:{port + node - 1}" for node in nodes]
        _wait_until_all_are_known(nodes, addresses)
        brokers = ",".join(addresses)
        # This comes before the line: its reader may stop the nodes at once.
        signals = Signals()
        print(f"ready {brokers} data={folder} nodes={count}", flush=True)
        supervisor.run(signals, lambda text: print(text, file=sys.stderr, flush=True))


def _check_unused(nodes: Sequence[int], folder: Path) -> None:
    """Raise an error that names the running nodes; they outlive a command that is killed."""
    found = {node: lock_holder(folder / str(node)) for node in nodes}
    holders = {node: holder for node, holder in found.items() if holder is not None}
    if holders:
        named = ", ".join(f"node {node} runs as {holder}" for node, holder in holders.items())
        processes = [str(one.process) for one in holders.values() if one.process is not None]
        if len(processes) < len(holders):
            advice = "stop that `cluster up` as its user or in its container"
        else:
            advice = "stop that `cluster up`; if it was killed, stop its nodes: kill "
            advice += " ".join(processes)
        raise CliError(f"{folder} is in use: {named}", advice)


def _format(nodes: Sequence[int], folder: Path, port: int) -> None:
    settings = {node: _settings(node, len(nodes), port) for node in nodes}
    if not is_formatted(folder, nodes):
        first = port - 1 + CONTROLLER_PORTS_BEHIND
        format_cluster(folder, {node: ("127.0.0.1", first + node) for node in nodes})
    for node, lines in settings.items():
        text = "".join(f"{name}={value}\n" for name, value in lines.items())
        (folder / f"{node}.properties").write_text(text)


def _settings(node: int, count: int, port: int) -> Mapping[str, str]:
    broker = port + node - 1
    controller = broker + CONTROLLER_PORTS_BEHIND
    controllers = (port + other + CONTROLLER_PORTS_BEHIND for other in range(count))
    replication = {name: str(value) for name, value in replication_settings(count).items()}
    return {
        "process.roles": "broker,controller",
        "node.id": str(node),
        "listeners": f"PLAINTEXT://127.0.0.1:{broker},{CONTROLLER_LISTENER}://127.0.0.1:{controller}",
        "controller.listener.names": CONTROLLER_LISTENER,
        "controller.quorum.bootstrap.servers": ",".join(f"127.0.0.1:{at}" for at in controllers),
        "inter.broker.listener.name": "PLAINTEXT",
        **replication,
    }


def _wait_until_all_are_known(nodes: Sequence[int], addresses: Sequence[str]) -> None:
    """Wait until the metadata of each broker contains all nodes.

    A ready node is in its own metadata; the metadata of the others may not contain it yet.
    """
    deadline = time.monotonic() + KNOWN_S
    for address in addresses:
        while True:
            with wire.cluster(address, "the nodes do not answer") as found:
                missing = set(nodes) - found.nodes.keys()
            if not missing:
                break
            if time.monotonic() > deadline:
                raise CliError(f"{address} does not list node {min(missing)} after {KNOWN_S} s")
            time.sleep(BETWEEN_LOOKS_S)
