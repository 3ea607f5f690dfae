"""An operator changes voters, and keeps a majority of existing disks in every voter set."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pykafka_core.quorum.roles import Leader, VoterSetRequest
from pykafka_core.quorum.rpc import AddVoter, RemoveVoter, VoterRequest
from pykafka_core.quorum.values import ReplicaKey, Voter
from tests.simulation.quorum.node import Asked, Node

if TYPE_CHECKING:
    from tests.simulation.quorum.world import World

CLIENT = 0
"""The client's value in place of a node's id."""
JOIN_MS = 3_000
"""After this, a node's request to become a voter has arrived or is lost."""


class Operator:
    """Changes a world's voters, at the rate of its `Faults`."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.joining: dict[ReplicaKey, int] = {}
        """Replicas that requested to become voters, with the time."""

    def begin(self) -> None:
        """Start the schedule."""
        mean_ms = self._world.faults.change_ms_mean
        if mean_ms:
            self._world.at(int(self._world.random.expovariate(1 / mean_ms)) + 1, self._go_on)

    def may_wipe(self, node: Node) -> bool:
        """Return whether every stored voter set has a majority without this node's disk.

        Also return False while the node is being added.
        """
        others = {other.key for other in self._world.nodes} - {node.key}
        asked_ms = self.joining.get(node.key, -JOIN_MS)
        if asked_ms + JOIN_MS > self._world.now_ms or self._is_being_added(node.key):
            return False
        return all(_is_live(keys, others) for keys in self._known_sets())

    def _is_being_added(self, key: ReplicaKey) -> bool:
        added = (change.added for change in self._changes())
        return any(voter is not None and voter.key == key for voter in added)

    def _changes(self) -> Iterable[VoterSetRequest]:
        for node in self._world.nodes:
            role = None if node.replica is None else node.replica.role
            if isinstance(role, Leader) and role.change is not None:
                yield role.change

    def _known_sets(self) -> Iterable[tuple[ReplicaKey, ...]]:
        for node in self._world.nodes:
            for known in node.disk.voter_sets(node.disk.batches):
                yield known.keys
            if node.replica is not None:
                yield from (known.keys for known in node.replica.log.voter_sets)
        for change in self._changes():
            yield tuple(voter.key for voter in change.voters or ())

    def _go_on(self) -> None:
        leaders = [
            node
            for node in self._world.nodes
            if node.replica is not None
            and isinstance(node.replica.role, Leader)
            and self._world.now_ms >= node.paused_until_ms
        ]
        if leaders:
            leader = self._world.random.choice(leaders)
            asked = self._request(leader)
            if asked is not None:
                self._world.ask(leader, Asked(CLIENT, 0, 0, asked))
        self.begin()

    def _request(self, leader: Node) -> VoterRequest | None:
        assert leader.replica is not None
        world, voters = self._world, leader.replica.voters
        if world.chance(0.5):
            ids = [voter.node_id for voter in voters]
            others = [node.key for node in world.nodes if node.node_id not in ids]
            if not others:
                return None
            added = Voter(world.random.choice(others))
            return AddVoter(added, 600, world.chance(0.5))
        removed = world.random.choice((*voters, leader.key))
        left = [voter for voter in voters if voter != removed]
        present = {node.key for node in world.nodes}
        return RemoveVoter(removed) if left and _is_live(left, present) else None


def _is_live(voters: Iterable[ReplicaKey], present: set[ReplicaKey]) -> bool:
    keys = set(voters)
    return not keys or len(keys & present) > len(keys) // 2
