"""Ports for programs that must be told theirs: `cluster up` takes no port 0."""

import random
import socket
from contextlib import ExitStack

BELOW_EPHEMERAL = range(10_000, 22_000, 10)
"""Where no connection of another test takes a port by chance, nor one 10,000 higher."""


def free_ports() -> int:
    """The first of three that are free, and whose controllers' are."""
    for first in random.sample(BELOW_EPHEMERAL, len(BELOW_EPHEMERAL)):
        ports = [first + node + behind for node in range(3) for behind in (0, 10_000)]
        with ExitStack() as stack:
            try:
                for port in ports:
                    stack.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            return first
    raise AssertionError("no ports are free")
