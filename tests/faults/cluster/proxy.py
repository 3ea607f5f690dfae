"""The network between nodes of one machine: a process that carries their connections, and cuts or slows them.

Theory of operation. Each node advertises ports of this process where the others look for it, so whatever nodes say to
each other passes here, and nothing that clients say. A connection's way has two ends: the node it was made for is known
by the port, and the one that made it by its socket (`tests/faults/cluster/sockets.py`). So a link can be cut between
two nodes only, and in one direction only.

A cut holds back what was sent, the end of a connection included, and loses nothing: once it heals, late requests arrive
as they do after TCP's retransmissions. A new connection is accepted, and carried once both directions are open. A slow
link waits before each piece of up to 64 KiB.

Run as ``python -m tests.faults.cluster.proxy COUNT``: prints as many ports, then takes a JSON object a line and prints
``ok`` once it holds: ``routes`` (port to ``[node, port]``), ``pids`` (node to process id, which opens its ports),
``gone`` (nodes whose ports refuse connections), ``links`` (a list of ``[from, to, delay in seconds, or null for a
cut]``; all others are open).
"""

import asyncio
import json
import sys
from contextlib import suppress
from typing import Any

from bench.peers.brokers import reserve_port
from tests.faults.cluster.sockets import holds, inode_of
from tests.support.patience import ATTEMPT_S, POLL_S

PIECE_BYTES = 65536


Way = tuple[int, int]


class Proxy:
    """Routes, nodes and the state of links; changed by lines of standard input."""

    def __init__(self, ports: int) -> None:
        self._routes: dict[int, tuple[int, int]] = {}
        self._pids: dict[int, int] = {}
        self._delays: dict[Way, float | None] = {}
        self._changed = asyncio.Event()
        self._reserved = [reserve_port() for _ in range(ports)]
        self._servers: dict[int, asyncio.Server] = {}
        # asyncio holds a stream's reader weakly: a relay that waits for one would be collected with it.
        self._carried: set[asyncio.Task[None]] = set()

    def ports(self) -> list[int]:
        return [int(reserved.getsockname()[1]) for reserved in self._reserved]

    async def _open(self, node: int) -> None:
        """Accept connections to a node that runs."""
        for port in self._of(node) - set(self._servers):
            self._servers[port] = await asyncio.start_server(self._accepted, "127.0.0.1", port)

    def _close(self, node: int) -> None:
        """Refuse them, as the kernel does once the process is gone."""
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
        """Return the node that made a connection; None if the connection has ended or is a stranger's.

        A node may connect before its process id has arrived here: wait for that up to `ATTEMPT_S`.
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
        """Return when what was sent may arrive."""
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
