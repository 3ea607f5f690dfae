"""Connectivity of the nodes of a cluster in one process: the traffic that each core must drop."""

from collections.abc import Iterable
from typing import NamedTuple

from pykafka_core.broker.cluster.places import Places


class Cut(NamedTuple):
    """The connections whose traffic a core drops; see `pykafka_core._core.Core.cut_off`."""

    accepted: bool
    peers: list[tuple[str, int]] | None


class Network:
    """Paused and isolated nodes. Controlled by the test; it does not track which nodes are up.

    Args:
        places: Addresses of the nodes.
        count: Number of nodes.
    """

    def __init__(self, places: Places, count: int) -> None:
        self._places = places
        self._nodes = range(count)
        self.paused: set[int] = set()
        self.isolated: dict[int, bool] = {}
        """Node → whether clients are also cut off."""

    @property
    def unreachable(self) -> set[int]:
        """Nodes whose metadata may be outdated, because they receive no traffic."""
        return self.paused | set(self.isolated)

    def cut(self, node_id: int) -> Cut:
        """Return the connections that a node must drop; both ends of a connection drop its
        traffic.
        """
        if node_id in self.paused:
            return Cut(True, None)
        if node_id in self.isolated:
            return Cut(self.isolated[node_id], self._peers(set(self._nodes) - {node_id}))
        return Cut(False, self._peers(self.isolated))

    def _peers(self, nodes: Iterable[int]) -> list[tuple[str, int]]:
        return [peer for node in sorted(nodes) for peer in self._places.peers(node)]
