"""A node: its disk, its clock, and the replica that runs on it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pykafka_core.protocol.messages import Message
from pykafka_core.quorum.quorum import Proposal
from pykafka_core.quorum.replica import Replica
from pykafka_core.quorum.rpc import Body
from pykafka_core.quorum.values import ReplicaKey, VoterSet
from tests.simulation.quorum.disk import Disk


class Promises:
    """What a replica has said to others; a crash must not make it forget."""

    def __init__(self) -> None:
        self.epoch = 0
        self.votes: dict[int, ReplicaKey] = {}
        """By epoch."""


class Asked(NamedTuple):
    """A request that a node has to answer: who sent it in which of its lives, as what."""

    node_id: int
    life: int
    correlation: int
    body: Body


class Node:
    """One of the cluster's.

    Attributes:
        life: Counts its starts; what belongs to an earlier one is dropped.
        replica: None while the node is down.
        clock_ms: What its monotonic clock is ahead of the world's, beside its rate.
    """

    def __init__(self, key: ReplicaKey, formatted: VoterSet) -> None:
        self.be(key, formatted)
        self.life = 0
        self.replica: Replica | None = None
        self.rate = 1.0
        self.clock_ms = 0
        self.paused_until_ms = 0
        self.waits_for_wake: list[Callable[[], None]] = []
        """What came while it was paused."""
        self.tick_ms: int | None = None
        """When its next tick comes."""
        self.open: dict[int, Asked] = {}
        self.waited_for: set[int] = set()
        """Correlations of requests that have not ended."""
        self.proposal: Proposal | None = None

    def be(self, key: ReplicaKey, formatted: VoterSet) -> None:
        """With a new disk."""
        self.key = key
        self.promises = Promises()
        self.disk = Disk(formatted)

    @property
    def node_id(self) -> int:
        return self.key.node_id

    def now_ms(self, world_ms: int) -> int:
        """Its own clock."""
        return int(world_ms * self.rate) + self.clock_ms

    def when(self, own_ms: int) -> int:
        """The world's time when its clock will show ``own_ms`` at the latest."""
        return int((own_ms - self.clock_ms) / self.rate) + 1


def proposed(number: int, records: Sequence[Message]) -> Proposal:
    """Records whose bytes no other proposal has."""
    return Proposal(records, [b"%d.%d" % (number, place) for place in range(len(records))])
