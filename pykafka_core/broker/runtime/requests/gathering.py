"""A request that others work on: one result for each part, then one answer."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from pykafka_core.broker.runtime.requests.requests import Asked
from pykafka_core.handlers.outcome import Reply

R = TypeVar("R")

Answer = Callable[[Asked, Callable[[], Reply]], object]
"""How an answer is made and sent: `Jobs.answer`."""


class Gathering(Generic[R]):
    """What came of each part of a request so far, by their places.

    Args:
        asked: The request.
        count: Of its parts.
        reply: Makes the answer of all results, in order.
        answer: Sends it.
    """

    __slots__ = "_answer", "_asked", "_count", "_reply", "_results"

    def __init__(
        self,
        asked: Asked,
        count: int,
        reply: Callable[[Sequence[R]], Reply],
        answer: Answer,
    ) -> None:
        self._asked: Asked | None = asked
        self._count = count
        self._reply = reply
        self._answer = answer
        self._results: dict[int, R] = {}

    def add(self, slot: int, result: R) -> None:
        """Take in what came of a part, unless that is known already; the last one lets the answer be made."""
        if self._asked is not None:
            self._results.setdefault(slot, result)
            self.answer_if_complete()

    @property
    def is_over(self) -> bool:
        """Whether the answer is being made, or not needed any more."""
        return self._asked is None

    def answer_if_complete(self) -> None:
        """To be called by itself only where there may be no parts."""
        asked = self._asked
        if asked is None or len(self._results) < self._count:
            return
        self._asked = None
        results = [self._results[slot] for slot in range(self._count)]
        self._answer(asked, lambda: self._reply(results))

    def drop(self) -> None:
        """Nobody waits for the answer any more: keep nothing of the request."""
        self._asked = None
        self._results.clear()
