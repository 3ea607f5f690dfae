"""Delays before a shard is loaded again after a failed append."""

FIRST_NS = 50_000_000
LONGEST_NS = 2_000_000_000
CALM_NS = 5_000_000_000
"""After this time without a failure, the next one counts as the first."""


class Reloads:
    """No delay after the first failure, then a delay that doubles.

    A loaded shard may need to store records itself, for example for a prepared transaction whose
    markers are written, or an open one that timed out. If its log rejects all records, each load
    ends in the next failure.
    """

    __slots__ = "_failed_ns", "_pause_ns"

    def __init__(self) -> None:
        self._failed_ns: int | None = None
        self._pause_ns = 0

    def pause_ns(self, now_ns: int) -> int:
        """Record a failure; return the delay."""
        is_first = self._failed_ns is None or now_ns - self._failed_ns > CALM_NS
        self._pause_ns = 0 if is_first else min(max(2 * self._pause_ns, FIRST_NS), LONGEST_NS)
        self._failed_ns = now_ns
        return self._pause_ns
