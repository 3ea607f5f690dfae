"""Who reaches whom in a cluster in one process: what each node's core has to be cut off from."""

from collections.abc import Iterable
from typing import NamedTuple

from pykafka_core.broker.cluster.places import Places


class Cut(NamedTuple):
    """What a core carries nothing to; see `pykafka_core._core.Core.cut_off`."""

    accepted: bool
    peers: list[tuple[str, int]] | None


class Network:
    """Nodes that are paused or isolated. A value of the test's: it does not know who is up.

    Args:
        places: Where each node is reached.
        count: Nodes.
    """

    def __init__(self, places: Places, count: int) -> None:
        self._places = places
        self._nodes = range(count)
        self.paused: set[int] = set()
        self.isolated: dict[int, bool] = {}
        """Node → whether clients do not reach it either."""

    @property
    def unreachable(self) -> set[int]:
        """Nodes whose metadata may be old, as they hear nothing."""
        return self.paused | set(self.isolated)

    def cut(self, node_id: int) -> Cut:
        """What a node is cut off from: both ends of a connection between two nodes are looked at."""
        if node_id in self.paused:
            return Cut(True, None)
        if node_id in self.isolated:
            return Cut(self.isolated[node_id], self._peers(set(self._nodes) - {node_id}))
        return Cut(False, self._peers(self.isolated))

    def _peers(self, nodes: Iterable[int]) -> list[tuple[str, int]]:
        return [peer for node in sorted(nodes) for peer in self._places.peers(node)]
