"""The checks of a port for a broker's listener."""

import errno
import os
import socket
from collections.abc import Iterator

from .finding import Finding, ok, problem, warning
from .processes import command_of, listening, socket_holder

LOOPBACK = "127.0.0.1"


def check_port(port: int) -> Iterator[Finding]:
    """Yield whether a broker can listen at the port, and the process that listens there now."""
    found = listening(port)
    for one in found:
        if not one.is_loopback:
            text = (
                f"other machines can reach the process that listens on {_address(one.host, port)}"
            )
            advice = (
                "a broker there gives every client full access; "
                f"let it listen on {LOOPBACK}, or protect it with a firewall"
            )
            yield warning("network", text, advice)
    error = _refusal(port)
    if error is None:
        yield ok("port", f"{LOOPBACK}:{port} is free")
    elif error.errno == errno.EADDRINUSE:
        holder = socket_holder(found[0].inode) if found else None
        who = "another process" if holder is None else f"process {holder} ({command_of(holder)})"
        advice = "stop it, or choose another port for the broker with --listen"
        yield problem("port", f"{LOOPBACK}:{port} is in use by {who}", advice)
    elif error.errno == errno.EACCES:
        advice = "choose a port above 1023 with --listen"
        yield problem("port", f"port {port} needs privileges", advice)
    else:
        text = f"{LOOPBACK}:{port} cannot be used: {os.strerror(error.errno or 0)}"
        yield problem("port", text, "see whether the loopback interface is up: ip addr show lo")


def _refusal(port: int) -> OSError | None:
    """Return the system's error when a socket listens there as a broker does."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen()
        except OSError as error:
            return error
    return None


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
