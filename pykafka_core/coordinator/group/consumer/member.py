"""A member of a consumer group, and the partitions that it may read."""

from collections.abc import Iterable, Mapping, Set
from enum import Enum, IntEnum
from sys import getsizeof
from typing import NamedTuple

from pykafka_core.coordinator.group.classic.member import Protocols

JOIN_EPOCH = 0
"""A member with this epoch joins, for the first time or again."""
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2
"""A static member leaves for a while: its partitions stay its own until its session ends."""

Assignment = Mapping[bytes, frozenset[int]]
"""Partitions by topic id; no topic is without partitions. Never changed."""

Held = Mapping[bytes, Mapping[int, int]]
"""Partitions by topic id, each with the epoch in which the member got it (KIP-1251)."""

NOTHING: Assignment = {}
HOLDS_NOTHING: Held = {}

_OVERHEAD = 2048
"""What Python takes for a member without names, and more."""
_NAME_OVERHEAD = 64
"""Likewise of a name in a set."""
_PROTOCOL_OVERHEAD = 160
"""Likewise of a protocol."""


class MemberState(IntEnum):
    """Where a member is on its way to its target assignment; the numbers are stored (``MemberState`` of Kafka)."""

    STABLE = 0
    """It has what its epoch's target gives it. A newer target leads out of it."""
    UNREVOKED_PARTITIONS = 1
    """It was told to give partitions up, and has not said that it has; until then it keeps its epoch. The end of its
    rebalance timeout removes it."""
    UNRELEASED_PARTITIONS = 2
    """It has its target's epoch, and some of its partitions are not given up by other members yet."""
    UNKNOWN = 127
    """Stored by a later version: the member has to come again without partitions."""


class ConsumerGroupState(Enum):
    """What clients see of a group."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """The target assignment is older than the group's epoch."""
    RECONCILING = "Reconciling"
    """Some member does not have its target assignment yet."""
    STABLE = "Stable"


class ClassicSide(NamedTuple):
    """What a member of the classic protocol is beside what all are.

    Attributes:
        protocols: Names and metadata, the one that it likes best first.
    """

    session_timeout_ms: int
    protocols: Protocols

    @property
    def protocol_name(self) -> str:
        """The protocol that it is told."""
        return self.protocols[0][0] if self.protocols else ""

    @property
    def protocol_names(self) -> Set[str]:
        """All that it supports, each once: a client may repeat one."""
        return dict(self.protocols).keys()

    @property
    def metadata(self) -> bytes:
        """What it says for that."""
        return self.protocols[0][1] if self.protocols else b""

    @property
    def size(self) -> int:
        """Bytes that it takes in memory, and more."""
        return sum(
            _PROTOCOL_OVERHEAD + getsizeof(name) + len(metadata)
            for name, metadata in self.protocols
        )


class ConsumerMember(NamedTuple):
    """A member as its records say. Values are replaced, never changed.

    Attributes:
        instance_id: A static member's.
        topic_names: What it subscribes to by name.
        topic_regex: What it subscribes to by pattern; empty or None without one.
        server_assignor: The assignor that it would like, or None.
        epoch: Of the assignment that it has; `LEAVE_STATIC_EPOCH` while a static member is away.
        previous_epoch: The one before; a member whose answer was lost still sends it.
        assigned: What it may read.
        revoking: What it was told to give up.
        classic: Of a member that uses the classic protocol; None for one of the consumer protocol.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str | None = None
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    epoch: int = JOIN_EPOCH
    previous_epoch: int = LEAVE_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Held = HOLDS_NOTHING
    revoking: Held = HOLDS_NOTHING
    classic: ClassicSide | None = None

    @property
    def size(self) -> int:
        """Bytes that it takes in memory by what its client sent, and more; partitions are not the client's."""
        texts = (self.client_id, self.instance_id, self.rack_id, self.topic_regex)
        return (
            _OVERHEAD
            + sum(getsizeof(text) for text in texts)
            + sum(_NAME_OVERHEAD + getsizeof(name) for name in self.topic_names)
            + (0 if self.classic is None else self.classic.size)
        )

    def held(self) -> Iterable[tuple[bytes, int]]:
        """Partitions that nobody else may have: those it may read, and those it has not given up."""
        for partitions in (self.assigned, self.revoking):
            for topic_id, numbers in partitions.items():
                for number in numbers:
                    yield topic_id, number

    def got_in(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch in which it got a partition that it holds."""
        for partitions in (self.assigned, self.revoking):
            epoch = partitions.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


def assignment_of(rows: Iterable[tuple[bytes, Iterable[int]]]) -> Assignment:
    """Make one of topic ids and partitions; a topic may come more than once."""
    found: dict[bytes, Set[int]] = {}
    for topic_id, numbers in rows:
        found[topic_id] = found.get(topic_id, frozenset()) | frozenset(numbers)
    return {topic_id: frozenset(numbers) for topic_id, numbers in found.items() if numbers}


def held_since(epoch: int, partitions: Mapping[bytes, Iterable[int]]) -> Held:
    """Partitions that a member got in one epoch."""
    return {topic_id: dict.fromkeys(numbers, epoch) for topic_id, numbers in partitions.items()}


def is_subset(owned: Assignment | None, assigned: Held) -> bool:
    """Whether all that a member says it owns is assigned to it; it is not if it does not say."""
    if owned is None:
        return False
    return all(numbers <= assigned.get(topic, {}).keys() for topic, numbers in owned.items())


def overlaps(one: Assignment, other: Held) -> bool:
    """Whether there is a partition in both."""
    return any(not numbers.isdisjoint(other.get(topic, ())) for topic, numbers in one.items())
