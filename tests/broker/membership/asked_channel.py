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
        answered: "Callable[[Message | None], object]",
        _purpose: str,
    ) -> None:
        """Record a request; see `ControllerChannel.ask`."""
        self.asked.append((request, answered))

    def answer(self, answer: "Message | None") -> None:
        """Complete the oldest request; None if it timed out."""
        _, answered = self.asked.pop(0)
        answered(answer)
