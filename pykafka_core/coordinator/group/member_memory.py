"""What the members of all groups on a node hold in memory, and the bound of it.

A classic group's member, who is to become one, and a consumer group, has a `Share` from its first moment to its last:
a group that is deleted, loaded again or led by another node gives it back by being forgotten, so no code has to
remember to do it.
"""

from pykafka_core.errors import CoordinatorNotAvailableError

MEMBERS_BYTES_MAX = 64 * 1024 * 1024
"""A quarter of the default ``memory_max``: room for 100,000 members as clients make them. Kafka has no bound."""
_OF_JOINS = 0.75
"""Part of the bound that new members may use. The rest is for the assignments of those that there are."""


class MemberMemory:
    """Counts bytes. Belongs to the control thread."""

    __slots__ = ("bytes_max", "held")

    def __init__(self, bytes_max: int = MEMBERS_BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.held = 0

    def check_join(self, growth: int, *, is_new: bool) -> None:
        """Refuse a member for which there is no room; one that does not grow always has it.

        Raises:
            CoordinatorNotAvailableError: Clients come again after a time. GROUP_MAX_SIZE_REACHED would end their
                application, for what other groups hold and may give back.
        """
        bytes_max = self.bytes_max * _OF_JOINS if is_new else self.bytes_max
        if growth > 0 and self.held + growth > bytes_max:
            raise CoordinatorNotAvailableError

    def has_room(self, growth: int) -> bool:
        """Whether members that there are may take that much more."""
        return growth <= 0 or self.held + growth <= self.bytes_max


class Share:
    """A part of the count, for as long as this object lives. Whose bytes they are holds it, and nobody else."""

    __slots__ = ("memory", "size")

    def __init__(self, memory: MemberMemory) -> None:
        self.memory = memory
        self.size = 0

    def __del__(self) -> None:
        self.memory.held -= self.size

    def grow(self, growth: int) -> None:
        """Count more bytes, or fewer."""
        self.size += growth
        self.memory.held += growth
