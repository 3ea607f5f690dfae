"""The keys of a consumer group's deadlines."""

from enum import Enum
from typing import NamedTuple


class ConsumerDue(Enum):
    """The kinds of deadlines. Not an `IntEnum`: a key would equal that of a classic group."""

    SESSION = 0
    """The session of a member has ended."""
    REBALANCE = 1
    """A member has not revoked its partitions in time."""
    JOIN = 2
    """A classic member has not rejoined in a rebalance."""
    SYNC = 3
    """A classic member has joined, but has not synced."""

    # Hashed by identity: the hash of `Enum` is a Python function, and each change of a deadline
    # calls it.
    __hash__ = object.__hash__


class DueInConsumerGroup(NamedTuple):
    """The key of a member's deadline."""

    consumer_due: ConsumerDue
    group_id: str
    member_id: str
