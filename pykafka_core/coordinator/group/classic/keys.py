"""The keys of a classic group's deadlines."""

from enum import Enum
from typing import NamedTuple


class Due(Enum):
    """What there is to do. Not numbers: a key would equal that of a consumer group."""

    SESSION = 0
    """A member, or one that is to come back with its member id, was silent for too long."""
    JOIN = 1
    """Members that have not joined again are not waited for any longer; or the initial delay is over."""
    SYNC = 2
    """Members that have not synced are removed."""

    # By identity: a hash of `Enum` is a call of Python, and each set and cancel of a deadline takes one.
    __hash__ = object.__hash__


class DueInGroup(NamedTuple):
    """Something to do in a group at a time. `Due.JOIN` and `Due.SYNC` are without a member."""

    what: Due
    group_id: str
    member_id: str = ""
