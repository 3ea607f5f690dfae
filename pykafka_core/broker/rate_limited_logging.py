"""Limits repeated reports, which clients and faults can cause without end, to one a minute for each
kind.
"""

from collections.abc import Callable

INTERVAL_NS = 60 * 10**9
KINDS_MAX = 256
"""Clients can create new kinds; above this limit the kind that was reported first is forgotten."""


class Notices:
    """Decides which reports are made. Used only by the control thread.

    Args:
        now_ns: The monotonic clock.
    """

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._kinds: dict[object, tuple[int, int]] = {}
        """Kind → the time from which it may be reported again, and the number of reports omitted
        since the last one."""

    def admit(self, kind: object) -> int | None:
        """Return the number of omitted reports of a kind; None if this report must be omitted
        too.
        """
        now_ns = self._now_ns()
        not_before_ns, left_out = self._kinds.get(kind, (now_ns, 0))
        if now_ns < not_before_ns:
            self._kinds[kind] = not_before_ns, left_out + 1
            return None
        self._kinds.pop(kind, None)
        if len(self._kinds) >= KINDS_MAX:
            del self._kinds[next(iter(self._kinds))]
        self._kinds[kind] = now_ns + INTERVAL_NS, 0
        return left_out
