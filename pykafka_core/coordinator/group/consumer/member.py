"""A member of a consumer group, and its partitions."""

from collections.abc import Iterable, Mapping, Set
from enum import Enum, IntEnum
from sys import getsizeof
from typing import NamedTuple

from pykafka_core.coordinator.group.classic.member import Protocols

JOIN_EPOCH = 0
"""A member with this epoch joins, for the first time or again."""
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2
"""A static member leaves temporarily: it keeps its partitions until its session ends."""

Assignment = Mapping[bytes, frozenset[int]]
"""Partitions by topic id; each topic has at least one. Immutable by convention."""

Held = Mapping[bytes, Mapping[int, int]]
"""Partitions by topic id, each with the epoch in which the member got it (KIP-1251)."""

NOTHING: Assignment = {}
HOLDS_NOTHING: Held = {}

_OVERHEAD = 2048
"""Upper bound for the memory of a member without names, in bytes."""
_NAME_OVERHEAD = 64
"""Upper bound for the memory of a name in a set, without its text."""
_PROTOCOL_OVERHEAD = 160
"""Upper bound for the memory of a protocol, without its name and metadata."""


class MemberState(IntEnum):
    """The progress of a member towards its target assignment. The numbers are stored; they are
    those of Kafka's ``MemberState``.
    """

    STABLE = 0
    """The member has the target assignment of its epoch. A newer target ends this state."""
    UNREVOKED_PARTITIONS = 1
    """The member must revoke partitions, and has not confirmed it; until then it keeps its epoch.
    It is removed when its rebalance timeout passes."""
    UNRELEASED_PARTITIONS = 2
    """The member has the epoch of its target, but other members still hold some of its
    partitions."""
    UNKNOWN = 127
    """A later version stored the state: the member must send a heartbeat without partitions."""


class ConsumerGroupState(Enum):
    """The state of a group as clients see it."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """The target assignment is older than the group's epoch."""
    RECONCILING = "Reconciling"
    """At least one member does not have its target assignment yet."""
    STABLE = "Stable"


class ClassicSide(NamedTuple):
    """Additional properties of a member that uses the classic protocol.

    Attributes:
        protocols: Names and metadata, in order of preference.
    """

    session_timeout_ms: int
    protocols: Protocols

    @property
    def protocol_name(self) -> str:
        """Name of the preferred protocol, which its responses have; empty without protocols."""
        return self.protocols[0][0] if self.protocols else ""

    @property
    def protocol_names(self) -> Set[str]:
        """Names of all protocols, each once; a client may repeat one."""
        return dict(self.protocols).keys()

    @property
    def metadata(self) -> bytes:
        """Metadata of the preferred protocol; empty without protocols."""
        return self.protocols[0][1] if self.protocols else b""

    @property
    def size(self) -> int:
        """Upper bound for its memory, in bytes."""
        return sum(
            _PROTOCOL_OVERHEAD + getsizeof(name) + len(metadata)
            for name, metadata in self.protocols
        )


class ConsumerMember(NamedTuple):
    """A member, as its records describe it. Values are replaced, never changed.

    Attributes:
        instance_id: Instance id of a static member.
        topic_names: Topics that it subscribes to by name.
        topic_regex: Regular expression of its subscription; empty or None without one.
        server_assignor: The assignor that it prefers, or None.
        epoch: Epoch of its assignment; `LEAVE_STATIC_EPOCH` while a static member is away.
        previous_epoch: The epoch before; a member that has missed a response still sends it.
        assigned: Partitions that it may read.
        revoking: Partitions that it must revoke.
        classic: Properties of a classic member; None for a member of the consumer protocol.
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
        """Upper bound for the memory of the values that its client sent, in bytes; partitions do
        not count.
        """
        texts = (self.client_id, self.instance_id, self.rack_id, self.topic_regex)
        return (
            _OVERHEAD
            + sum(getsizeof(text) for text in texts)
            + sum(_NAME_OVERHEAD + getsizeof(name) for name in self.topic_names)
            + (0 if self.classic is None else self.classic.size)
        )

    def held(self) -> Iterable[tuple[bytes, int]]:
        """Yield the partitions that no other member may get: those that are assigned to it, and
        those that it has not revoked yet.
        """
        for partitions in (self.assigned, self.revoking):
            for topic_id, numbers in partitions.items():
                for number in numbers:
                    yield topic_id, number

    def got_in(self, topic_id: bytes, partition: int) -> int | None:
        """Return the epoch in which it got a partition; None if it does not hold it."""
        for partitions in (self.assigned, self.revoking):
            epoch = partitions.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


def assignment_of(rows: Iterable[tuple[bytes, Iterable[int]]]) -> Assignment:
    """Return an assignment from topic ids and partitions; a topic may be repeated."""
    found: dict[bytes, Set[int]] = {}
    for topic_id, numbers in rows:
        found[topic_id] = found.get(topic_id, frozenset()) | frozenset(numbers)
    return {topic_id: frozenset(numbers) for topic_id, numbers in found.items() if numbers}


def held_since(epoch: int, partitions: Mapping[bytes, Iterable[int]]) -> Held:
    """Return partitions that a member got in the same epoch."""
    return {topic_id: dict.fromkeys(numbers, epoch) for topic_id, numbers in partitions.items()}


def is_subset(owned: Assignment | None, assigned: Held) -> bool:
    """Return whether all owned partitions are assigned; False if ``owned`` is None."""
    if owned is None:
        return False
    return all(numbers <= assigned.get(topic, {}).keys() for topic, numbers in owned.items())


def overlaps(one: Assignment, other: Held) -> bool:
    """Return whether they have a common partition."""
    return any(not numbers.isdisjoint(other.get(topic, ())) for topic, numbers in one.items())
