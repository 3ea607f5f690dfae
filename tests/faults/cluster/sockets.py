"""Which process made a connection on this machine's loopback.

The socket of its end is looked up by both ports, as ``ss`` does (netlink's ``sock_diag(7)``), which takes some
microseconds; ``/proc/net/tcp`` takes ten milliseconds of the kernel's time on a machine of some thousand sockets, as it
lists all of them. The socket's inode is what ``/proc/PID/fd`` of the process links to.
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
"""Both make the kernel's ``inet_diag_msg``: its ports, and what is at its end."""
ANSWER_BYTES = 4096
LOOPBACK = socket.inet_aton("127.0.0.1") + bytes(12)


def inode_of(port: int, remote_port: int) -> int | None:
    """The inode of the socket at one end of a TCP connection on 127.0.0.1, of IPv4 or mapped to IPv6.

    Returns:
        None where there is no such socket, and where no process holds it any more: it is closed, though its other end
        may not be.
    """
    ends = PORTS.pack(port, remote_port) + LOOPBACK + LOOPBACK
    asked = QUESTION.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, ANY_STATE)
    asked += ends + REST.pack(0, ANY_COOKIE, ANY_COOKIE)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, SOCK_DIAG) as kernel:
        kernel.send(HEADER.pack(HEADER.size + len(asked), BY_FAMILY, REQUEST, 0, 0) + asked)
        answer = kernel.recv(ANSWER_BYTES)
    _, kind, *_ = HEADER.unpack_from(answer)
    # Where there is no connection, the kernel answers with who listens at the port.
    if kind == ERROR or FOUND.unpack_from(answer, HEADER.size) != (port, remote_port):
        return None
    (inode,) = INODE.unpack_from(answer, HEADER.size + FOUND.size)
    return inode or None


def holds(pid: int, inode: int) -> bool:
    """Whether a process has a socket among its files."""
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
