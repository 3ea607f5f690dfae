"""Requests to other brokers by node id: the committed image has the address, and versions are
negotiated.

Requests are not retried: only the caller can decide whether a retry is safe, and to which node.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from pykafka_core._core import Core
from pykafka_core.broker.runtime.completions import Completed, Completions
from pykafka_core.broker.runtime.metadata.publisher import Publisher
from pykafka_core.errors import BrokerNotAvailableError, CorruptMessageError
from pykafka_core.handlers.inter_broker import endpoint_of
from pykafka_core.protocol import ProtocolError, decode_response, encode_message
from pykafka_core.protocol.messages import Message

if TYPE_CHECKING:
    from pykafka_core._core import Replied


class BrokerApi(NamedTuple):
    """An API between brokers, our versions of it, and the purpose of its connections."""

    key: int
    versions: tuple[int, int]
    purpose: str


class BrokerResponse(NamedTuple):
    """The response of a broker, or the error code of the failed request, as in `_core.Replied`.

    The code is BROKER_NOT_AVAILABLE if the broker's address is unknown, and CORRUPT_MESSAGE for an
    unreadable response.
    """

    error_code: int
    message: Message | None


class _Ask(NamedTuple):
    api: BrokerApi
    node_id: int
    request: Message
    on_response: Callable[[BrokerResponse], object]


class BrokerChannel:
    """Sends requests to other brokers. Used only by the control thread.

    Args:
        core: Sends the requests.
        completions: Pending requests.
        publisher: Has the committed image with the addresses of brokers.
    """

    def __init__(self, core: Core, completions: Completions, publisher: Publisher) -> None:
        self._core = core
        self._completions = completions
        self._publisher = publisher

    def ask(
        self,
        api: BrokerApi,
        node_id: int,
        request: Message,
        on_response: Callable[[BrokerResponse], object],
    ) -> None:
        """Send a request; ``on_response`` is called once, in this turn or a later one, unless the
        broker stops.
        """
        self._try(_Ask(api, node_id, request, on_response), api.versions[1])

    def _try(self, ask: _Ask, version: int) -> None:
        image, settings = self._publisher.image, self._publisher.settings
        at = endpoint_of(image, settings, ask.node_id)
        if at is None:
            ask.on_response(BrokerResponse(BrokerNotAvailableError.code, None))
            return
        body = encode_message(ask.request, version)
        token = self._completions.open(partial(self._on_replied, ask, version))
        peer = ask.api.purpose, at.host, at.port
        timeout_ms = max(1, settings.int("request.timeout.ms"))
        self._core.send(token, peer, ask.api.key, version, body, timeout_ms)

    def _on_replied(self, ask: _Ask, version: int, completed: Completed) -> None:
        replied = cast("Replied", completed.value)
        if not completed.error_code:
            ask.on_response(_decoded(ask.api.key, version, replied.body))
            return
        lower = lower_version(ask.api.versions, version, replied)
        if lower is None:
            ask.on_response(BrokerResponse(completed.error_code, None))
        else:
            self._try(ask, lower)


def lower_version(ours: tuple[int, int], sent: int, replied: "Replied") -> int | None:
    """Return the highest common version below the rejected one; None if there is none."""
    if replied.versions is None:
        return None
    common = min(replied.versions[1], ours[1])
    return common if ours[0] <= common < sent else None


def _decoded(api_key: int, version: int, body: bytes) -> BrokerResponse:
    try:
        return BrokerResponse(0, decode_response(api_key, version, body))
    except ProtocolError:
        return BrokerResponse(CorruptMessageError.code, None)
