"""Memory that the members of all groups on a node use, and its limit.

Each member of a classic group, each pending member, and each consumer group has a `Share` for its
whole lifetime. A group that is deleted, loaded again or moved to another node releases its share
when the object is freed, so no code has to release it explicitly.
"""

from pykafka_core.errors import CoordinatorNotAvailableError

MEMBERS_BYTES_MAX = 64 * 1024 * 1024
"""A quarter of the default ``memory_max``: enough for 100,000 typical members. Kafka has no limit.
"""
_OF_JOINS = 0.75
"""Fraction of the limit that new members may use. The rest is for assignments of existing members.
"""


class MemberMemory:
    """Counts bytes. Used only by the control thread."""

    __slots__ = ("bytes_max", "held")

    def __init__(self, bytes_max: int = MEMBERS_BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.held = 0

    def check_join(self, growth: int, *, is_new: bool) -> None:
        """Check that there is memory for a member; a member that does not grow is always accepted.

        Raises:
            CoordinatorNotAvailableError: The limit is exceeded. Clients retry later.
                GROUP_MAX_SIZE_REACHED would stop the client's application, although other groups
                may release memory.
        """
        bytes_max = self.bytes_max * _OF_JOINS if is_new else self.bytes_max
        if growth > 0 and self.held + growth > bytes_max:
            raise CoordinatorNotAvailableError

    def has_room(self, growth: int) -> bool:
        """Return whether existing members may use ``growth`` more bytes."""
        return growth <= 0 or self.held + growth <= self.bytes_max


class Share:
    """A part of the count, for the lifetime of this object.

    Only the owner of the counted bytes references it.
    """

    __slots__ = ("memory", "size")

    def __init__(self, memory: MemberMemory) -> None:
        self.memory = memory
        self.size = 0

    def __del__(self) -> None:
        self.memory.held -= self.size

    def grow(self, growth: int) -> None:
        """Add to the count; ``growth`` may be negative."""
        self.size += growth
        self.memory.held += growth
