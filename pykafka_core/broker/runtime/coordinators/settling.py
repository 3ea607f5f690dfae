"""Answers of shards on their way to those who wait: a rebalance may answer all members of a group at once."""

from collections.abc import Hashable
from typing import Protocol

from pykafka_core._core import Core
from pykafka_core.broker.runtime.requests.lanes import Lane, Lanes
from pykafka_core.handlers.outcome import Coordinated

AT_ONCE = 256
"""Results of one turn that are told without delay: as many as a batch of events."""


class Waits(Hashable, Protocol):
    """Who gets the result of one operation."""

    @property
    def lane(self) -> Lane:
        """The one of the request."""

    def settle(self, result: Coordinated) -> None:
        """Take in the result, once."""


class Settling:
    """Delivers results: the first of a turn at once, the others from their lanes in later turns."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._left = Lanes[tuple[Waits, Coordinated]]()
        self._told = 0

    @property
    def is_busy(self) -> bool:
        """Whether some are left to be told."""
        return bool(self._left.arrived)

    def settle(self, waits: Waits, result: Coordinated) -> None:
        """Tell a result, now or in a later turn. It is committed: nothing takes it back."""
        if self._left.arrived or self._told >= AT_ONCE:
            self._left.push(waits.lane, waits, (waits, result))
        else:
            self._told += 1
            waits.settle(result)

    def advance(self, deadline_ns: int) -> None:
        """A turn is over: tell what is left, at least one of them, and up to `AT_ONCE` until the deadline."""
        self._told = 0
        for _ in range(AT_ONCE):
            if not self._left.arrived:
                return
            waits, result = self._left.pop()
            waits.settle(result)
            if self._core.now_ns() >= deadline_ns:
                return

    def drop_all(self) -> None:
        """The broker stops: whoever waited has been told."""
        self._left.clear()
