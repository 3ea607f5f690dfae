"""What happened in a group lately, for people who ask why it rebalances.

Not stored: a group that is loaded begins a new history.
"""

from collections import deque
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

EVENTS_MAX = 20
"""Of one group: the oldest goes first."""
TEXT_LENGTH_MAX = 400
"""Characters. Member ids and reasons are the client's, and a member id may have thousands of them."""
_NO_REASON = ": "
"""The end of a text whose client gave no reason."""


class What(StrEnum):
    """Kinds of events."""

    REBALANCE = "rebalance"
    """A rebalance began; the text is its reason."""
    MEMBER = "member"
    """A member came, changed or went while a rebalance was on already."""
    REMOVED = "removed"
    """A member did not do in time what it had to."""
    FENCED = "fenced"
    """Another member came with the same group instance id."""
    GENERATION = "generation"
    """A rebalance completed."""
    ASSIGNED = "assigned"
    """The leader brought the assignment: the group is stable."""


class Event(NamedTuple):
    """Something that happened, by the wall clock."""

    time_ms: int
    what: What
    text: str


class History:
    """The last `EVENTS_MAX` events of one group, oldest first. Takes no room before the first."""

    __slots__ = ("_events",)

    def __init__(self) -> None:
        self._events: deque[Event] | None = None

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events or ())

    def __len__(self) -> int:
        return len(self._events or ())

    def note(self, what: What, text: str, now_ms: int) -> None:
        """Take note of an event."""
        if self._events is None:
            self._events = deque(maxlen=EVENTS_MAX)
        self._events.append(Event(now_ms, what, text[:TEXT_LENGTH_MAX].removesuffix(_NO_REASON)))
