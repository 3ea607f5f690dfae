"""A pooler in transaction mode, like PgBouncer without support for prepared statements.

Each client has two connections to the server, and its transactions alternate between them: the next
transaction does not have the session of the previous one. PgBouncer behaves in the same way if
clients share its connections. A transaction ends when the server's ReadyForQuery reports idle.
"""

import select
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

SOCKET = ".s.PGSQL.5432"
_READY, _IDLE = b"Z", b"I"
_HEAD = struct.Struct(">ci")
_READ_BYTES = 1 << 16


@contextmanager
def pooled(dsn: str, home: Path) -> Iterator[str]:
    """Run a pooler for the database of ``dsn``, with its socket in ``home``; yield its connection
    string.
    """
    server = f"{conninfo_to_dict(dsn)['host']}/{SOCKET}"
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(home / SOCKET))
        listener.listen()
        thread = threading.Thread(target=_accept, args=(listener, server))
        thread.start()
        try:
            yield make_conninfo(dsn, host=str(home))
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _accept(listener: socket.socket, server: str) -> None:
    with suppress(OSError):
        while True:
            client = listener.accept()[0]
            threading.Thread(target=_serve, args=(client, server), daemon=True).start()


def _serve(client: socket.socket, server: str) -> None:
    with ExitStack() as stack, suppress(OSError):
        stack.enter_context(closing(client))
        startup = client.recv(_READ_BYTES)
        sessions = []
        for _ in range(2):
            sessions.append(Session(server, startup))
            stack.enter_context(closing(sessions[-1]))
        client.sendall(sessions[0].greeting)
        while data := client.recv(_READ_BYTES):
            sessions[0].carry(client, data)
            sessions.reverse()


class Session:
    """A connection to the server. ``greeting``: the server's bytes until it was ready."""

    def __init__(self, server: str, startup: bytes) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(server)
        self._socket.sendall(startup)
        self._received = b""
        self.greeting = b""
        is_idle = False
        while not is_idle:
            data, is_idle = self._next()
            self.greeting += data

    def carry(self, client: socket.socket, data: bytes) -> None:
        """Forward a client's bytes, and then in both directions until the server is idle again."""
        self._socket.sendall(data)
        is_idle = False
        while not is_idle:
            for ready in select.select([client, self._socket], [], [])[0]:
                if ready is client:
                    if not (data := client.recv(_READ_BYTES)):
                        return
                    self._socket.sendall(data)
                else:
                    data, is_idle = self._next()
                    client.sendall(data)

    def close(self) -> None:
        """Close it; the server ends the session."""
        self._socket.close()

    def _next(self) -> tuple[bytes, bool]:
        """Return the complete messages so far, and whether the last one reports an idle server."""
        data = self._socket.recv(_READ_BYTES)
        if not data:
            raise OSError("the server closed the connection")
        self._received += data
        end, is_idle = 0, False
        while end + _HEAD.size <= len(self._received):
            kind, size = _HEAD.unpack_from(self._received, end)
            if end + 1 + size > len(self._received):
                break
            is_idle = kind == _READY and self._received[end + 5 : end + 6] == _IDLE
            end += 1 + size
        whole, self._received = self._received[:end], self._received[end:]
        return whole, is_idle
