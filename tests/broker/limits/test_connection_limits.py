"""`max.connections` and related settings, as in Kafka.

A connection above the limit of its address is closed; one above the rate or the total limit waits.
None of the limits affects nodes: a node is accepted at once on the inter-broker listener, and the
client that has been idle longest is closed instead. Before, clients could make nodes wait.
"""

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from pykafka_core import Broker
from pykafka_core.protocol.messages import DescribeClusterRequest
from tests.support.patience import PATIENCE_S, eventually
from tests.support.processes.nodes import reserve_port
from tests.support.processes.server import serving
from tests.support.wire import Connection

APART = {
    "listeners": "PLAINTEXT://127.0.0.1:0,BROKERS://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
}
"""Brokers have a separate listener."""
CONNECTIONS_MAX, DESCRIPTORS, NODES = 3, 128, 20


def is_served(address: str, stack: ExitStack) -> bool:
    """Return whether a new connection, which stays open, gets a response."""
    try:
        connection = stack.enter_context(Connection(address))
        connection.ask(60, 1, DescribeClusterRequest())
    except (AssertionError, ConnectionError):
        return False
    return True


@pytest.mark.parametrize(
    "config",
    [
        {"max.connections.per.ip": "2"},
        {
            "max.connections.per.ip": "1",
            "max.connections.per.ip.overrides": "10.0.0.1:9, 127.0.0.1:2",
        },
    ],
)
def test_connections_of_an_address_are_limited(
    config: dict[str, str],
) -> None:
    with Broker(config=config) as broker, ExitStack() as stack:
        address = broker.bootstrap_servers
        first = ExitStack()
        assert is_served(address, first)
        assert is_served(address, stack)
        assert not is_served(address, stack)
        assert broker.statistics()["connections_refused"] == 1
        first.close()
        eventually(lambda: is_served(address, stack))


@pytest.mark.interval
def test_connection_rate_is_limited() -> None:
    with Broker(config={"max.connection.creation.rate": "5"}) as broker, ExitStack() as stack:
        address = broker.bootstrap_servers
        began = time.monotonic()
        # Five connections for the past second, and the others at the rate. A slow client needs more
        # of them before one is delayed.
        served = 0
        while served < 10 or broker.statistics()["connections_delayed"] < 4:
            assert is_served(address, stack)
            served += 1
            waited = time.monotonic() - began
            assert served <= 5 + 5 * (waited + 0.1)
            assert waited < PATIENCE_S, "no connection was delayed"


def is_open(connection: Connection) -> bool:
    try:
        connection.ask(60, 1, DescribeClusterRequest())
    except (AssertionError, ConnectionError):
        return False
    return True


def test_the_client_that_is_idle_longest_is_closed_for_a_node_beyond_the_maximum() -> None:
    config = APART | {"max.connections": str(CONNECTIONS_MAX)}
    with Broker(config=config) as broker, ExitStack() as stack:
        clients = []
        for count in range(1, CONNECTIONS_MAX + 1):
            clients.append(stack.enter_context(Connection(broker.listeners["PLAINTEXT"])))
            assert is_open(clients[-1])
            assert broker.statistics()["connections_open"] == count
        # The first client sends the latest request.
        assert is_open(clients[0])
        assert is_served(broker.listeners["BROKERS"], stack)
        eventually(lambda: broker.statistics()["connections_open"] == CONNECTIONS_MAX)
        assert [is_open(client) for client in clients] == [True, False, True]
        assert broker.statistics()["connections_displaced"] == 1


@pytest.mark.parametrize(
    "limit",
    [
        {"max.connections": "1"},
        {"max.connections.per.ip": "1"},
        {"max.connection.creation.rate": "1"},
    ],
    ids=lambda limit: next(iter(limit)),
)
def test_connections_of_nodes_are_not_delayed_by_the_limits_of_clients(
    limit: dict[str, str],
) -> None:
    with Broker(config=APART | limit) as broker, ExitStack() as stack:
        assert is_served(broker.listeners["PLAINTEXT"], stack)
        delayed = broker.statistics()["connections_delayed"]
        for _ in range(3):
            assert is_served(broker.listeners["BROKERS"], stack)
        statistics = broker.statistics()
        assert statistics["connections_delayed"] == delayed
        assert statistics["connections_refused"] == 0


def test_nodes_connect_while_idle_clients_hold_all_descriptors(tmp_path: Path) -> None:
    with ExitStack() as stack:
        ports = (stack.enter_context(reserve_port()).getsockname()[1] for _ in range(2))
        clients, brokers = (f"127.0.0.1:{port}" for port in ports)
        config = APART | {"listeners": f"PLAINTEXT://{clients},BROKERS://{brokers}"}
        options = [f"--set={name}={value}" for name, value in config.items()]
        options.append(f"--listen={config['listeners']}")
        stack.enter_context(serving(tmp_path, *options, descriptors=DESCRIPTORS))
        for _ in range(2 * DESCRIPTORS):
            stack.enter_context(Connection(clients))
        for _ in range(NODES):
            assert is_served(brokers, stack)
