"""The keys of a consumer group's deadlines."""

from enum import Enum
from typing import NamedTuple


class ConsumerDue(Enum):
    """What there is to do. Not numbers: a key would equal that of a classic group."""

    SESSION = 0
    """A member was silent for too long."""
    REBALANCE = 1
    """A member has not given up the partitions that it was told to."""
    JOIN = 2
    """A classic member has not joined again, as it was told to."""
    SYNC = 3
    """A classic member has joined, and has not synced."""

    # By identity: a hash of `Enum` is a call of Python, and each set and cancel of a deadline takes one.
    __hash__ = object.__hash__


class DueInConsumerGroup(NamedTuple):
    """Something to do with a member at a time."""

    consumer_due: ConsumerDue
    group_id: str
    member_id: str
