"""Fan-in of a request: one result for each part, then one response."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from pykafka_core.broker.runtime.requests.lanes import NO_LANE, Lane
from pykafka_core.broker.runtime.requests.pending_request import PendingRequest
from pykafka_core.handlers.outcome import Reply

R = TypeVar("R")

Respond = Callable[[PendingRequest, Callable[[], Reply]], object]
"""Creates and sends a response: `Jobs.respond`."""


class FanIn(Generic[R]):
    """The results of a request's parts so far, by index.

    Args:
        request: The request.
        count: Number of its parts.
        reply: Creates the response from all results, in order.
        respond: Sends the response.
    """

    __slots__ = "_count", "_reply", "_request", "_respond", "_results"

    def __init__(
        self,
        request: PendingRequest,
        count: int,
        reply: Callable[[Sequence[R]], Reply],
        respond: Respond,
    ) -> None:
        self._request: PendingRequest | None = request
        self._count = count
        self._reply = reply
        self._respond = respond
        self._results: dict[int, R] = {}

    def add(self, slot: int, result: R) -> None:
        """Add the result of a part, unless it already has one; after the last one, the response is
        created.
        """
        if self._request is not None:
            self._results.setdefault(slot, result)
            self.respond_if_complete()

    def complete(self, result: R) -> None:
        """Give all parts without a result this one, and create the response."""
        for slot in range(self._count):
            self.add(slot, result)

    @property
    def lane(self) -> Lane:
        """The lane of the request, until its response is being created or is dropped; then
        `NO_LANE`.
        """
        return NO_LANE if self._request is None else self._request.lane

    @property
    def is_over(self) -> bool:
        """Whether the response is being created, or is no longer needed."""
        return self._request is None

    def respond_if_complete(self) -> None:
        """Respond if all results are there. Callers need this only if there may be no parts."""
        request = self._request
        if request is None or len(self._results) < self._count:
            return
        self._request = None
        results = [self._results[slot] for slot in range(self._count)]
        self._respond(request, lambda: self._reply(results))

    def drop(self) -> None:
        """Forget the request, because its response is no longer needed."""
        self._request = None
        self._results.clear()
