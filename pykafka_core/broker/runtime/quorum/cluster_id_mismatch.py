"""Detects that this node has the wrong cluster id, so that it does not wait for the other replicas
forever.

Replicas of another cluster respond with INCONSISTENT_CLUSTER_ID. A single such replica may itself
be the one with the wrong id. So a node stops when more than half of the replicas with known
addresses have responded so, and none has responded otherwise since the start.
"""

from collections.abc import Callable

from pykafka_core.broker.safe_logging import GuardedLogger
from pykafka_core.quorum.wire.envelope import Endpoint

_log = GuardedLogger(__name__)


class OtherClusters:
    """Records the responses of other replicas about the cluster id.

    Used only by the control thread.

    Args:
        cluster_id: The cluster id of this node.
        peers: Returns the addresses of other replicas.
        refused: Called with the reason once this node is known to be the one with the wrong id: it
            must stop.
    """

    def __init__(
        self,
        cluster_id: str,
        peers: Callable[[], set[Endpoint]],
        refused: Callable[[str], object],
    ) -> None:
        self._cluster_id = cluster_id
        self._peers = peers
        self._refused = refused
        self._foreign: set[Endpoint] = set()
        self._is_known = False

    def is_own(self) -> None:
        """Note that a replica of the same cluster has responded."""
        self._is_known = True

    def is_other(self, at: Endpoint, *, is_begun: bool = False) -> None:
        """Note that a replica of another cluster has responded.

        Args:
            at: Address of the replica.
            is_begun: This node's own cluster has started, so that the replica's address is wrong.
        """
        place = f"{at.host}:{at.port}"
        if at not in self._foreign:
            self._foreign.add(at)
            _log.warning(
                "the controller at %s is not of this node's cluster %s", place, self._cluster_id
            )
        peers = self._peers()
        if not is_begun and not self._is_known and 2 * len(self._foreign & peers) > len(peers):
            places = ", ".join(sorted(f"{one.host}:{one.port}" for one in self._foreign))
            self._refused(
                f"INCONSISTENT_CLUSTER_ID: this node's data directory is of cluster {self._cluster_id}, and the "
                f"controllers at {places} are of another one: name the controllers of its cluster, or format an "
                "empty directory with the cluster.id of theirs"
            )
