"""The keys of a consumer group's deadlines."""

from enum import IntEnum
from typing import NamedTuple


class ConsumerDue(IntEnum):
    """What there is to do."""

    SESSION = 0
    """A member was silent for too long."""
    REBALANCE = 1
    """A member has not given up the partitions that it was told to."""


class DueInConsumerGroup(NamedTuple):
    """Something to do with a member at a time."""

    consumer_due: ConsumerDue
    group_id: str
    member_id: str
