"""A `ControllerChannel` whose requests wait for the test."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pykafka_core.broker.runtime.membership.controller_channel import ControllerApi
    from pykafka_core.protocol.messages import Message


class AskedChannel:
    """Keeps what it is asked.

    Attributes:
        asked: Requests that are under way, with who takes the answer.
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
        """`ControllerChannel.ask`."""
        self.asked.append((request, answered))

    def answer(self, answer: "Message | None") -> None:
        """End the oldest request; None if its time is over."""
        _, answered = self.asked.pop(0)
        answered(answer)
