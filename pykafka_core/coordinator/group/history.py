"""Recent events of a group, which explain to people why it rebalances.

The history is not stored: it is empty after a group is loaded.
"""

from collections import deque
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

EVENTS_MAX = 20
"""Maximum number of events of a group; the oldest is dropped first."""
TEXT_LENGTH_MAX = 400
"""Characters. Clients choose reasons and parts of member ids, and a member id may have thousands of
characters."""
_NO_REASON = ": "
"""The end of a text for which the client gave no reason."""


def members_text(count: int) -> str:
    """Return a number of members as text."""
    return "1 member" if count == 1 else f"{count} members"


class What(StrEnum):
    """Kinds of events."""

    REBALANCE = "rebalance"
    """A rebalance started; the text is its reason."""
    MEMBER = "member"
    """A member joined, changed or left during a rebalance."""
    REMOVED = "removed"
    """A member missed a deadline and was removed."""
    FENCED = "fenced"
    """Another member joined with the same group instance id."""
    GENERATION = "generation"
    """A rebalance completed."""
    ASSIGNED = "assigned"
    """The leader sent the assignment; the group is stable."""


class Event(NamedTuple):
    """An event with its wall-clock time."""

    time_ms: int
    what: What
    text: str


class History:
    """The last `EVENTS_MAX` events of one group, oldest first.

    The storage is allocated with the first event.
    """

    __slots__ = ("_events",)

    def __init__(self) -> None:
        self._events: deque[Event] | None = None

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events or ())

    def __len__(self) -> int:
        return len(self._events or ())

    def note(self, what: What, text: str, now_ms: int) -> None:
        """Add an event."""
        if self._events is None:
            self._events = deque(maxlen=EVENTS_MAX)
        self._events.append(Event(now_ms, what, text[:TEXT_LENGTH_MAX].removesuffix(_NO_REASON)))
