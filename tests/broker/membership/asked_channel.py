"""A `ControllerChannel` whose requests are completed by the test."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pykafka_core.broker.runtime.membership.controller_channel import ControllerApi
    from pykafka_core.protocol.messages import Message


class AskedChannel:
    """Records the requests.

    Attributes:
        asked: Requests in flight, with the receivers of their responses.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[Message, Callable[[Message | None], object]]] = []

    def ask(
        self,
        _api: "ControllerApi",
        request: "Message",
        _timeout_ms: int,
        on_response: "Callable[[Message | None], object]",
        _purpose: str,
    ) -> None:
        """Record a request; see `ControllerChannel.ask`."""
        self.asked.append((request, on_response))

    def respond(self, response: "Message | None") -> None:
        """Complete the oldest request; None if it timed out."""
        _, on_response = self.asked.pop(0)
        on_response(response)
