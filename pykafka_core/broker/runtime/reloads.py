"""How soon a shard whose append failed is loaded again."""

FIRST_NS = 50_000_000
LONGEST_NS = 2_000_000_000
CALM_NS = 5_000_000_000
"""Without a failure for so long, the next one is the first again."""


class Reloads:
    """At once after the first failure, then after a pause that doubles.

    A shard that is loaded may have something to store by itself: a decided transaction whose markers are written, an
    open one whose time is over. If its log takes nothing, each load ends in the next failure.
    """

    __slots__ = "_failed_ns", "_pause_ns"

    def __init__(self) -> None:
        self._failed_ns: int | None = None
        self._pause_ns = 0

    def pause_ns(self, now_ns: int) -> int:
        """Note a failure; how long to wait."""
        is_first = self._failed_ns is None or now_ns - self._failed_ns > CALM_NS
        self._pause_ns = 0 if is_first else min(max(2 * self._pause_ns, FIRST_NS), LONGEST_NS)
        self._failed_ns = now_ns
        return self._pause_ns
