"""Requests to the active controller: sent again until it responds or the time is over.

As in Apache Kafka, a request whose connection ended is sent again, although the controller may have
executed it. A request that must not be executed twice carries an epoch (of a broker or a
partition), or the second response is an error such as TOPIC_ALREADY_EXISTS.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from pykafka_core.broker.runtime.completions import Completed
from pykafka_core.broker.runtime.interbroker.broker_channel import lower_version
from pykafka_core.broker.runtime.services import Services
from pykafka_core.errors import NotControllerError
from pykafka_core.protocol import ProtocolError, decode_response, encode_message
from pykafka_core.protocol.messages import Message
from pykafka_core.quorum.wire.envelope import Endpoint
from pykafka_core.types import NS_PER_MS

if TYPE_CHECKING:
    from pykafka_core._core import Replied

TIMEOUT_MS = 60_000
"""Time limit of requests without their own, as for those that Kafka's ``BrokerServer`` forwards."""
RETRY_NS = 50_000_000
"""Pause between two attempts, as in Kafka's ``NodeToControllerRequestThread``."""


class ControllerApi(NamedTuple):
    """An API that controllers serve, and the versions that this node sends."""

    key: int
    versions: tuple[int, int]


class _Ask(NamedTuple):
    api: ControllerApi
    request: Message
    purpose: str
    deadline_ns: int
    on_response: Callable[[Message | None], object]
    is_wanted: Callable[[], bool]


def _always() -> bool:
    return True


class ControllerChannel:
    """Sends requests to the leader of the metadata quorum.

    Args:
        services: Has the core that sends, the clock, and the timers of further attempts.
        leader: Returns the endpoint of the leader; None if the leader is unknown.
        attempt_ms: How long one attempt waits for its response (``controller.socket.timeout.ms``).
    """

    def __init__(
        self, services: Services, leader: Callable[[], Endpoint | None], attempt_ms: int
    ) -> None:
        self._core = services.core
        self._completions = services.completions
        self._timers = services.timers
        self._leader = leader
        self._attempt_ms = max(1, attempt_ms)

    def ask(
        self,
        api: ControllerApi,
        request: Message,
        timeout_ms: int,
        on_response: Callable[[Message | None], object],
        purpose: str = "controller",
        is_wanted: Callable[[], bool] = _always,
    ) -> None:
        """Send a request; ``on_response`` is called once, with None after the timeout.

        Args:
            purpose: Requests of one purpose share a connection, one at a time.
            is_wanted: Called before each attempt. If it returns False, the request is dropped
                without a call of ``on_response``.
        """
        deadline_ns = self._core.now_ns() + timeout_ms * NS_PER_MS
        ask = _Ask(api, request, purpose, deadline_ns, on_response, is_wanted)
        self._try(ask, api.versions[1])

    def _try(self, ask: _Ask, version: int) -> None:
        if not ask.is_wanted():
            return
        left_ms = (ask.deadline_ns - self._core.now_ns()) // NS_PER_MS
        if left_ms <= 0:
            ask.on_response(None)
            return
        at = self._leader()
        if at is None:
            self._try_later(ask)
            return
        body = encode_message(ask.request, version)
        token = self._completions.open(partial(self._on_replied, ask, version))
        peer = ask.purpose, at.host, at.port
        self._core.send(token, peer, ask.api.key, version, body, min(left_ms, self._attempt_ms))

    def _try_later(self, ask: _Ask) -> None:
        due_ns = self._core.now_ns() + RETRY_NS
        again = partial(self._try, ask, ask.api.versions[1])
        self._timers.once("a request to the controller", due_ns, again)

    def _on_replied(self, ask: _Ask, version: int, completed: Completed) -> None:
        replied = cast("Replied", completed.value)
        if completed.error_code:
            lower = lower_version(ask.api.versions, version, replied)
            if lower is None:
                self._try_later(ask)
            else:
                self._try(ask, lower)
            return
        try:
            response = decode_response(ask.api.key, version, replied.body)
        except ProtocolError:
            self._try_later(ask)
            return
        if getattr(response, "error_code", 0) == NotControllerError.code:
            self._try_later(ask)
        else:
            ask.on_response(response)
