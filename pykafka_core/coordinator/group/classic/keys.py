"""The keys of a classic group's deadlines."""

from enum import Enum
from typing import NamedTuple


class Due(Enum):
    """Kinds of deadlines.

    The values are not ints, so that a key never equals a key of a consumer group.
    """

    SESSION = 0
    """The session of a member or of a pending member ended."""
    JOIN = 1
    """The time to join again has passed, or the initial delay is over."""
    SYNC = 2
    """Members that have not synced are removed."""

    # Hash by identity: the hash of `Enum` is a Python call, and each change of a deadline needs a
    # hash.
    __hash__ = object.__hash__


class DueInGroup(NamedTuple):
    """Key of a group's deadline. `Due.JOIN` and `Due.SYNC` have no member."""

    what: Due
    group_id: str
    member_id: str = ""
