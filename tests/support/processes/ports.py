"""Ports for programs that need a fixed port: `cluster up` does not support port 0."""

import random
import socket
from contextlib import ExitStack

BELOW_EPHEMERAL = range(10_000, 22_000, 10)
"""Ports that connections of other tests never get, and neither those 10,000 higher."""


def free_ports() -> int:
    """Return the first of three free ports whose controllers' ports are free, too."""
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
