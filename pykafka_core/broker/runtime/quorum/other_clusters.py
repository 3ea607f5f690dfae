"""What other replicas say of the cluster id: a node that has another one must not wait for them for ever.

Replicas of another cluster answer INCONSISTENT_CLUSTER_ID. One of several may be the odd one out itself. So a node
gives up when more than half of those that it can ask have said so, and none has answered otherwise since it started.
"""

from collections.abc import Callable

from pykafka_core.broker.guarded_log import GuardedLogger
from pykafka_core.quorum.wire.envelope import Endpoint

_log = GuardedLogger(__name__)


class OtherClusters:
    """Takes note of what other replicas said of the cluster id. Belongs to the control thread.

    Args:
        cluster_id: Of this node.
        peers: Where it can ask.
        refused: Called once it is clear that this node is the odd one out, with the reason: it must end.
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
        """A replica has answered as one of this cluster."""
        self._is_known = True

    def is_other(self, at: Endpoint, *, is_begun: bool = False) -> None:
        """A replica has answered that it is of another cluster.

        Args:
            is_begun: This node's own cluster has begun: it is the other one's address that is wrong.
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
