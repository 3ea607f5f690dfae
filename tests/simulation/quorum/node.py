"""A node: its disk, its clock, and its replica."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pykafka_core.protocol.messages import Message
from pykafka_core.quorum.quorum import Proposal
from pykafka_core.quorum.replica import Replica
from pykafka_core.quorum.rpc import Body
from pykafka_core.quorum.values import ReplicaKey, VoterSet
from tests.simulation.quorum.disk import Disk


class Promises:
    """Statements of a replica to others, which must survive a crash."""

    def __init__(self) -> None:
        self.epoch = 0
        self.votes: dict[int, ReplicaKey] = {}
        """By epoch."""


class Asked(NamedTuple):
    """A request to a node: its sender, the sender's life, and its correlation id."""

    node_id: int
    life: int
    correlation: int
    body: Body


class Node:
    """A node of the cluster.

    Attributes:
        life: Number of its starts; events of an earlier life are dropped.
        replica: None while the node is down.
        clock_ms: Offset of its monotonic clock from the world's, in addition to its rate.
    """

    def __init__(self, key: ReplicaKey, formatted: VoterSet) -> None:
        self.be(key, formatted)
        self.life = 0
        self.replica: Replica | None = None
        self.rate = 1.0
        self.clock_ms = 0
        self.paused_until_ms = 0
        self.hangs_until_ms = 0
        """Nothing is synced before."""
        self.hung_syncs_until_ms = 0
        """End of the last sync that began while nothing was synced; faults may end before."""
        self.delays_reads = False
        """Whether reads of the log wait for the writes before them."""
        self.waiting_reads: list[Callable[[], None]] = []
        self.slow_until_ms = 0
        self.slow_ms = 0
        """Additional duration of each sync until then."""
        self.waits_for_wake: list[Callable[[], None]] = []
        """Events that arrived while it was paused."""
        self.tick_ms: int | None = None
        """Time of its next tick."""
        self.open: dict[int, Asked] = {}
        self.waited_for: set[int] = set()
        """Correlation ids of requests that have not ended."""
        self.proposal: Proposal | None = None

    def be(self, key: ReplicaKey, formatted: VoterSet) -> None:
        """Give the node a new key and an empty disk."""
        self.key = key
        self.promises = Promises()
        self.disk = Disk(formatted)

    def hang(self, until_ms: int, *, delays_reads: bool) -> None:
        """Sync nothing before a time."""
        self.hangs_until_ms, self.delays_reads = until_ms, delays_reads

    def slow_down(self, until_ms: int, by_ms: int, *, delays_reads: bool) -> None:
        """Sync more slowly before a time."""
        self.slow_until_ms, self.slow_ms, self.delays_reads = until_ms, by_ms, delays_reads

    @property
    def node_id(self) -> int:
        return self.key.node_id

    def now_ms(self, world_ms: int) -> int:
        """Return the time of the node's clock."""
        return int(world_ms * self.rate) + self.clock_ms

    def when(self, own_ms: int) -> int:
        """Return the world's time at which its clock has reached ``own_ms``."""
        return int((own_ms - self.clock_ms) / self.rate) + 1


def proposed(number: int, records: Sequence[Message]) -> Proposal:
    """Return a proposal whose records have unique bytes."""
    return Proposal(records, [b"%d.%d" % (number, place) for place in range(len(records))])
