"""The network between nodes: a cut holds data back in one direction only; they arrive later."""

import os
import socket
import time
from collections.abc import Iterator

import pytest

from tests.faults.cluster.network.network import (
    Network,
    against_the_ring,
    around,
    between,
    into,
    out_of,
)
from tests.support.patience import PATIENCE_S, exactly

OWN, OTHER = 1, 2
HELD_S = exactly(0.2, "nothing may arrive: a slow machine only hides a fault")


class Line:
    """A connection from node 1, which is this process, to node 2, whose listener is here, too."""

    def __init__(self, network: Network, server: socket.socket) -> None:
        self.client = socket.create_connection(("127.0.0.1", network.ports[0]), PATIENCE_S)
        self.server, _ = server.accept()
        self.server.settimeout(PATIENCE_S)

    def close(self) -> None:
        self.client.close()
        self.server.close()


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE_S)
        yield server


@pytest.fixture
def network(server: socket.socket) -> Iterator[Network]:
    with Network(1) as network:
        network.route({network.ports[0]: (OTHER, server.getsockname()[1])})
        network.is_node(OTHER, 1)
        network.is_node(OWN, os.getpid())
        yield network


@pytest.fixture
def line(network: Network, server: socket.socket) -> Iterator[Line]:
    line = Line(network, server)
    yield line
    line.close()


def is_silent(end: socket.socket) -> bool:
    end.settimeout(HELD_S)
    try:
        end.recv(100)
    except TimeoutError:
        return True
    finally:
        end.settimeout(PATIENCE_S)
    return False


def test_sent_bytes_arrive_in_both_directions(line: Line) -> None:
    line.client.sendall(b"question")
    assert line.server.recv(100) == b"question"
    line.server.sendall(b"answer")
    assert line.client.recv(100) == b"answer"
    line.client.close()
    assert line.server.recv(100) == b""


def test_direction_that_is_cut_is_silent_until_it_is_mended(network: Network, line: Line) -> None:
    network.cut([(OWN, OTHER)])
    line.client.sendall(b"late")
    line.server.sendall(b"in time")
    assert line.client.recv(100) == b"in time"
    line.client.close()
    assert is_silent(line.server)
    network.heal()
    assert line.server.recv(100) == b"late"
    assert line.server.recv(100) == b""


def test_connections_over_a_link_with_one_direction_cut_wait_until_it_is_mended(
    network: Network, server: socket.socket
) -> None:
    network.cut([(OTHER, OWN)])
    with socket.create_connection(("127.0.0.1", network.ports[0]), PATIENCE_S):
        server.settimeout(HELD_S)
        with pytest.raises(TimeoutError):
            server.accept()
        network.mend([(OTHER, OWN)])
        server.settimeout(PATIENCE_S)
        server.accept()[0].close()


def test_other_links_stay_open_while_one_is_cut(network: Network, line: Line) -> None:
    network.cut([(OWN, 3), (3, OTHER)])
    line.client.sendall(b"by")
    assert line.server.recv(100) == b"by"


def test_slow_link_delays_bytes(network: Network, line: Line) -> None:
    network.slow([(OWN, OTHER)], HELD_S)
    sent_at = time.monotonic()
    line.client.sendall(b"slowly")
    assert line.server.recv(100) == b"slowly"
    assert time.monotonic() - sent_at >= HELD_S


def test_stopped_node_refuses_connections(network: Network, line: Line) -> None:
    network.is_gone(OTHER)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", network.ports[0]), PATIENCE_S)
    line.client.sendall(b"its connections end by themselves")
    assert line.server.recv(100) == b"its connections end by themselves"


def test_partitions_have_the_directions_of_their_names() -> None:
    nodes = (1, 2, 3)
    assert set(around(2, nodes)) == {(1, 2), (2, 1), (2, 3), (3, 2)}
    assert out_of(2, nodes) == [(2, 1), (2, 3)]
    assert into(2, nodes) == [(1, 2), (3, 2)]
    assert between(1, 2) == [(1, 2), (2, 1)]
    assert set(against_the_ring(nodes)) == {(1, 3), (2, 1), (3, 2)}
