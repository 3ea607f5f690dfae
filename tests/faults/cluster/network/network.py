"""The links between nodes, and the calls by which a test cuts or slows them."""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from itertools import permutations
from types import TracebackType
from typing import Any

Way = tuple[int, int]
"""The sending and the receiving node."""


class Network:
    """The proxy process (`tests/faults/cluster/network/proxy.py`).

    Attributes:
        ports: The ports that it listens on; `route` assigns each to a node's listener.
    """

    def __init__(self, ports: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.cluster.network.proxy", str(ports)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._delays: dict[Way, float | None] = {}
        self.ports = [int(port) for port in self._line().split()]

    def __enter__(self) -> "Network":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def route(self, routes: Mapping[int, tuple[int, int]]) -> None:
        """Map ports of the proxy to a node and a port of that node."""
        self._tell(routes=routes)

    def is_node(self, node: int, pid: int) -> None:
        """Set the process of a running node; connections of other processes are refused."""
        self._tell(pids={node: pid})

    def is_gone(self, *nodes: int) -> None:
        """Refuse connections to nodes from now on, until they run again."""
        self._tell(gone=nodes)

    def cut(self, ways: Iterable[Way]) -> None:
        """Hold back all data on these ways."""
        self._set(self._delays | dict.fromkeys(ways))

    def slow(self, ways: Iterable[Way], delay_s: float) -> None:
        """Delay each piece of data on these ways."""
        self._set(self._delays | dict.fromkeys(ways, delay_s))

    def mend(self, ways: Iterable[Way]) -> None:
        """Open these ways again; the held data arrive."""
        mended = set(ways)
        self._set({way: delay for way, delay in self._delays.items() if way not in mended})

    def heal(self) -> None:
        """Open all ways."""
        self._set({})

    def _set(self, delays: dict[Way, float | None]) -> None:
        self._delays = delays
        self._tell(links=[[*way, delay] for way, delay in delays.items()])

    def _tell(self, **order: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        assert self._line() == "ok"

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def around(node: int, nodes: Iterable[int]) -> list[Way]:
    """Both directions between a node and all others: it is isolated."""
    return [way for way in permutations(nodes, 2) if node in way]


def out_of(node: int, nodes: Iterable[int]) -> list[Way]:
    """The ways from a node to all others."""
    return [(node, other) for other in nodes if other != node]


def into(node: int, nodes: Iterable[int]) -> list[Way]:
    """The ways from all others to a node."""
    return [(other, node) for other in nodes if other != node]


def between(one: int, other: int) -> list[Way]:
    """Both directions between two nodes: of three nodes, the third one connects them."""
    return [(one, other), (other, one)]


def against_the_ring(nodes: Iterable[int]) -> list[Way]:
    """All ways except those from each node to the next one in the ring."""
    ring = list(nodes)
    kept = set(zip(ring, ring[1:] + ring[:1], strict=True))
    return [way for way in permutations(ring, 2) if way not in kept]
