"""Answers of shards on their way to those who wait: a rebalance may answer all members of a group at once."""

from collections import deque
from typing import Protocol

from pykafka_core._core import Core
from pykafka_core.handlers.outcome import Coordinated

AT_ONCE = 256
"""Results of one turn that are told without delay: as many as a batch of events."""


class Waits(Protocol):
    """Who gets the result of one operation."""

    def settle(self, result: Coordinated) -> None:
        """Take in the result, once."""


class Settling:
    """Tells results: the first of a turn at once, the others in their order, as many in each later turn."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._left: deque[tuple[Waits, Coordinated]] = deque()
        self._told = 0

    @property
    def is_busy(self) -> bool:
        """Whether some are left to be told."""
        return bool(self._left)

    def settle(self, waits: Waits, result: Coordinated) -> None:
        """Tell a result, now or in a later turn. It is committed: nothing takes it back."""
        if self._left or self._told >= AT_ONCE:
            self._left.append((waits, result))
        else:
            self._told += 1
            waits.settle(result)

    def advance(self, deadline_ns: int) -> None:
        """A turn is over: tell what is left, at least one of them, and up to `AT_ONCE` until the deadline."""
        self._told = 0
        for _ in range(min(len(self._left), AT_ONCE)):
            waits, result = self._left.popleft()
            waits.settle(result)
            if self._core.now_ns() >= deadline_ns:
                return

    def drop_all(self) -> None:
        """The broker stops: whoever waited has been told."""
        self._left.clear()
