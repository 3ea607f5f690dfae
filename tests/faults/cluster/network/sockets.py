"""The process that opened a loopback connection of this machine.

The socket of its end is looked up by both ports, as ``ss`` does (netlink's ``sock_diag(7)``), which
takes some microseconds. ``/proc/net/tcp`` takes ten milliseconds of the kernel's time on a machine
with some thousand sockets, because it lists all of them. Links in ``/proc/PID/fd`` of the process
contain the socket's inode.
"""

import os
import socket
import struct

SOCK_DIAG = 4
"""The netlink protocol."""
BY_FAMILY = 20
REQUEST = 1
ERROR = 2
HEADER = struct.Struct("=IHHII")
QUESTION = struct.Struct("=BBBBI")
PORTS = struct.Struct("!HH")
REST = struct.Struct("=III")
ANY_STATE = ANY_COOKIE = 0xFFFFFFFF
FOUND = struct.Struct("!4xHH60x")
INODE = struct.Struct("=I")
"""Together the kernel's ``inet_diag_msg``: its ports, and its last field."""
RESPONSE_BYTES = 4096
LOOPBACK = socket.inet_aton("127.0.0.1") + bytes(12)


def inode_of(port: int, remote_port: int) -> int | None:
    """Return the inode of the socket at one end of a TCP connection on 127.0.0.1, also IPv4-mapped.

    Returns:
        None if there is no such socket, or no process holds it any more: it is closed, although its
        other end may be open.
    """
    ends = PORTS.pack(port, remote_port) + LOOPBACK + LOOPBACK
    asked = QUESTION.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, ANY_STATE)
    asked += ends + REST.pack(0, ANY_COOKIE, ANY_COOKIE)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, SOCK_DIAG) as kernel:
        kernel.send(HEADER.pack(HEADER.size + len(asked), BY_FAMILY, REQUEST, 0, 0) + asked)
        response = kernel.recv(RESPONSE_BYTES)
    _, kind, *_ = HEADER.unpack_from(response)
    # Without such a connection, the kernel returns the socket that listens on the port.
    if kind == ERROR or FOUND.unpack_from(response, HEADER.size) != (port, remote_port):
        return None
    (inode,) = INODE.unpack_from(response, HEADER.size + FOUND.size)
    return inode or None


def holds(pid: int, inode: int) -> bool:
    """Return whether a process has a socket among its files."""
    folder = f"/proc/{pid}/fd"
    try:
        return any(
            _target(f"{folder}/{name}") == f"socket:[{inode}]" for name in os.listdir(folder)
        )
    except OSError:
        return False


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""
