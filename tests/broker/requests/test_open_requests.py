"""Responses of components without jobs, such as the metadata quorum."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from pykafka_core._core import Core
from pykafka_core.broker.runtime.completions import Completed, Completions
from pykafka_core.broker.runtime.faults import Faults
from pykafka_core.broker.runtime.requests.open_requests import OpenRequests
from pykafka_core.errors import ClosedError, UnknownServerError
from pykafka_core.handlers.outcome import Reserve, Work
from pykafka_core.protocol.messages import FetchSnapshotResponse, Message

RESPONSE = FetchSnapshotResponse(throttle_time_ms=1, error_code=0, topics=[])


class LargeResponse:
    """A request whose response is sent only with reserved memory.

    Attributes:
        is_scarce: Whether a reservation waits for others.
        token: The token of a waiting reservation.
        ended_with: The error for which its connection was closed.
    """

    key = 1
    name = "FetchSnapshot"

    def __init__(self, *, is_scarce: bool) -> None:
        self.is_scarce = is_scarce
        self.sent: list[Message] = []
        self.token: int | None = None
        self.ended_with: int | None = None
        self._has_memory = False

    def respond(self, message: Message) -> Work[Reserve | None]:
        yield
        if not self._has_memory:
            return Reserve(1_000_000, lambda: message)
        self.sent.append(message)
        return None

    def reserve(self, token: int, size: int) -> bool:
        assert size == 1_000_000
        self._has_memory = True
        self.token = token if self.is_scarce else None
        return self.is_scarce

    def abandon(self, error_code: int) -> None:
        """Close the connection."""
        self.ended_with = error_code

    def unreserve(self) -> None:
        """Release the memory of a closed connection."""

    def release(self) -> None:
        """Release the memory of a request that has ended."""


class FailingReservation(LargeResponse):
    """A request whose memory cannot be reserved, because the core raises an exception."""

    def reserve(self, token: int, size: int) -> bool:
        raise ClosedError(f"no memory for token {token} of {size} bytes")


class World:
    """A table with one open request."""

    def __init__(
        self, *, is_scarce: bool, response: Callable[..., LargeResponse] = LargeResponse
    ) -> None:
        self.completions = Completions()
        core = cast("Core", None)
        self.faults = Faults(lambda: 0)
        self.requests = OpenRequests(core, self.faults, self.completions, [])
        self.asked = response(is_scarce=is_scarce)
        self.requests.begin(cast("Any", self.asked))
        self.requests.respond_at_once(cast("Any", self.asked), RESPONSE)


@pytest.mark.parametrize("is_scarce", [False, True])
def test_large_response_is_sent_once_its_memory_is_reserved(is_scarce: bool) -> None:
    world = World(is_scarce=is_scarce)
    if is_scarce:
        assert not world.asked.sent
        assert world.asked.token is not None
        world.completions.complete(world.asked.token, Completed(0, -1))
    assert world.asked.sent == [RESPONSE]
    assert len(world.requests) == len(world.completions) == 0


def test_reservation_of_a_closed_connection_sends_nothing() -> None:
    world = World(is_scarce=True)
    world.requests.cancel(world.asked.key)
    assert not world.asked.sent
    assert len(world.requests) == len(world.completions) == 0


def test_fault_of_a_reservation_ends_only_its_request() -> None:
    """Regression: the fault ended the control thread, and so the broker."""
    world = World(is_scarce=False, response=FailingReservation)
    assert world.asked.ended_with == UnknownServerError.code
    assert world.faults.count == 1
    assert len(world.requests) == len(world.completions) == 0
