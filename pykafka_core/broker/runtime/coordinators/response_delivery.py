"""Delivers results of shards in slices: a rebalance may complete the requests of all members of a
group at once.
"""

from collections.abc import Hashable
from typing import Protocol

from pykafka_core._core import Core
from pykafka_core.broker.runtime.requests.lanes import Lane, Lanes
from pykafka_core.handlers.outcome import ShardResult

AT_ONCE = 256
"""Number of results that are delivered immediately in one turn: as many as a batch of events
has."""


class Waits(Hashable, Protocol):
    """The receiver of the result of one operation."""

    @property
    def lane(self) -> Lane:
        """The lane of the request."""

    def settle(self, result: ShardResult) -> None:
        """Accept the result. Called once."""


class ResponseDelivery:
    """Delivers the first results of a turn at once, and the others from their lanes in later
    turns.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._left = Lanes[tuple[Waits, ShardResult]]()
        self._told = 0

    @property
    def is_busy(self) -> bool:
        """Whether results wait for their delivery."""
        return bool(self._left.arrived)

    def settle(self, waits: Waits, result: ShardResult) -> None:
        """Deliver a result, now or in a later turn. It is committed, so it never changes."""
        if self._left.arrived or self._told >= AT_ONCE:
            self._left.push(waits.lane, waits, (waits, result))
        else:
            self._told += 1
            waits.settle(result)

    def advance(self, deadline_ns: int) -> None:
        """End a turn: deliver waiting results until the deadline, at least one and at most
        `AT_ONCE`.
        """
        self._told = 0
        for _ in range(AT_ONCE):
            if not self._left.arrived:
                return
            waits, result = self._left.pop()
            waits.settle(result)
            if self._core.now_ns() >= deadline_ns:
                return

    def drop_all(self) -> None:
        """Drop all results when the broker stops; all requests already have responses."""
        self._left.clear()
