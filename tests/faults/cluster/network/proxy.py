"""The network between nodes of one machine: a process that relays, cuts and slows connections.

Theory of operation. Each node advertises ports of this process to the other nodes, so all traffic
between nodes passes here, and no traffic of clients. The destination of a connection is known from
the port, and its source from the socket (`tests/faults/cluster/network/sockets.py`). So a link
can be cut between two nodes only, and in one direction only.

A cut holds back all data, including the end of a connection, and loses nothing: after it heals,
late requests arrive as they do after TCP retransmissions. A new connection is accepted, and relayed
once both directions are open. A slow link waits before each piece of up to 64 KiB.

``python -m tests.faults.cluster.network.proxy COUNT`` prints COUNT ports. Then it reads one JSON
object per line and prints ``ok`` once it applies: ``routes`` (port to ``[node, port]``), ``pids``
(node to process id, which opens its ports), ``gone`` (nodes whose ports refuse connections),
``links`` (a list of ``[from, to, delay in seconds, or null for a cut]``; all others are open).
"""

import asyncio
import json
import sys
from contextlib import suppress
from typing import Any

from tests.faults.cluster.network.sockets import holds, inode_of
from tests.support.patience import ATTEMPT_S, POLL_S
from tests.support.processes.nodes import reserve_port

PIECE_BYTES = 65536


Way = tuple[int, int]


class Proxy:
    """Routes, nodes and the state of links; lines of standard input change them."""

    def __init__(self, ports: int) -> None:
        self._routes: dict[int, tuple[int, int]] = {}
        self._pids: dict[int, int] = {}
        self._delays: dict[Way, float | None] = {}
        self._changed = asyncio.Event()
        self._reserved = [reserve_port() for _ in range(ports)]
        self._servers: dict[int, asyncio.Server] = {}
        # asyncio references a stream's reader weakly: a waiting relay would be garbage collected.
        self._carried: set[asyncio.Task[None]] = set()

    def ports(self) -> list[int]:
        return [int(reserved.getsockname()[1]) for reserved in self._reserved]

    async def _open(self, node: int) -> None:
        """Accept connections to a running node."""
        for port in self._of(node) - set(self._servers):
            self._servers[port] = await asyncio.start_server(self._accepted, "127.0.0.1", port)

    def _close(self, node: int) -> None:
        """Refuse connections to a node, as the kernel does once the process has ended."""
        for port in self._of(node) & set(self._servers):
            self._servers.pop(port).close()

    def _of(self, node: int) -> set[int]:
        return {port for port, (of, _) in self._routes.items() if of == node}

    async def told(self, order: dict[str, Any]) -> None:
        for port, (node, target) in order.get("routes", {}).items():
            self._routes[int(port)] = (node, target)
        for node, pid in order.get("pids", {}).items():
            self._pids[int(node)] = pid
            await self._open(int(node))
        for node in order.get("gone", ()):
            self._close(node)
        if "links" in order:
            self._delays = {(source, node): delay for source, node, delay in order["links"]}
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        carried = asyncio.create_task(self._carry(reader, writer))
        self._carried.add(carried)
        carried.add_done_callback(self._carried.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer, own = writer.get_extra_info("peername")[1], writer.get_extra_info("sockname")[1]
        node, port = self._routes[own]
        source = await self._source(peer, own)
        if source is None:
            writer.transport.abort()
            return
        await self._passing((source, node))
        await self._passing((node, source))
        try:
            other_reader, other_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(
            self._relay(reader, other_writer, (source, node)),
            self._relay(other_reader, writer, (node, source)),
        )
        for end in (writer, other_writer):
            end.transport.abort()

    async def _source(self, peer_port: int, own_port: int) -> int | None:
        """Return the node that opened a connection; None if it ended or is not a node's.

        A node may connect before its process id arrives here: wait for that up to `ATTEMPT_S`.
        """
        deadline = asyncio.get_running_loop().time() + ATTEMPT_S
        while asyncio.get_running_loop().time() < deadline:
            inode = inode_of(peer_port, own_port)
            if inode is None:
                return None
            for node, pid in self._pids.items():
                if holds(pid, inode):
                    return node
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), POLL_S)
        return None

    async def _passing(self, way: Way) -> None:
        """Return when held data may arrive."""
        while (delay := self._delays.get(way, 0.0)) is None:
            await self._changed.wait()
        if delay:
            await asyncio.sleep(delay)

    async def _relay(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Way
    ) -> None:
        try:
            while data := await _read(reader):
                await self._passing(way)
                writer.write(data)
                await writer.drain()
            await self._passing(way)
            writer.write_eof()
        except OSError:
            writer.transport.abort()


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(PIECE_BYTES)
    except OSError:
        return b""


async def main(count: int) -> None:
    proxy = Proxy(count)
    print(*proxy.ports(), flush=True)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while line := await reader.readline():
        await proxy.told(json.loads(line))
        print("ok", flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
