"""A connection's process is found while it holds its end, and only by that end."""

import os
import socket
from collections.abc import Iterator

import pytest

from tests.faults.cluster.network.sockets import holds, inode_of


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.mark.parametrize(
    ("family", "host"),
    [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::ffff:127.0.0.1")],
    ids=["IPv4", "IPv4 mapped to IPv6, as Java has it"],
)
def test_each_end_has_its_own_socket(
    server: socket.socket, family: socket.AddressFamily, host: str
) -> None:
    with socket.socket(family) as client:
        client.connect((host, _port(server)))
        with server.accept()[0] as accepted:
            found = [inode_of(_port(one), to) for one, to in _ends(client, server)]
            assert found == [os.fstat(end.fileno()).st_ino for end in (client, accepted)]


def test_process_holds_its_end_of_a_connection(server: socket.socket) -> None:
    with socket.create_connection(server.getsockname()) as client:
        inode = inode_of(_port(client), _port(server))
        assert inode is not None
        assert holds(os.getpid(), inode)
        assert not holds(os.getppid(), inode)


def test_closed_end_has_no_process(server: socket.socket) -> None:
    client = socket.create_connection(server.getsockname())
    port = _port(client)
    with server.accept()[0]:
        client.close()
        assert inode_of(port, _port(server)) is None


def test_unknown_connection_has_no_socket(server: socket.socket) -> None:
    assert inode_of(_port(server), _port(server)) is None


def _port(end: socket.socket) -> int:
    return int(end.getsockname()[1])


def _ends(client: socket.socket, server: socket.socket) -> list[tuple[socket.socket, int]]:
    return [(client, _port(server)), (server, _port(client))]
