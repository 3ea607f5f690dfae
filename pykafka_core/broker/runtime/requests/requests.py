"""Where a request comes from and where its answer goes: a client's connection, or this process."""

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pykafka_core._core import Core, EncodedMessage
from pykafka_core.broker import native
from pykafka_core.errors import error_of
from pykafka_core.handlers.context import Caller, Context
from pykafka_core.handlers.outcome import OUTCOMES, Outcome, Slices, Steps
from pykafka_core.handlers.registry import Owner, Row, handler_of
from pykafka_core.protocol import (
    FIELDS_MAX,
    MessageEncoder,
    decode_request,
    decode_request_in_parts,
)
from pykafka_core.protocol.messages import Message

if TYPE_CHECKING:
    from pykafka_core import _core


SMALL_BYTES_MAX = 4096
"""A request up to this size is decoded at once: it has fewer fields than are decoded between two yields."""

Replies = list[tuple[int, EncodedMessage | bytes]]
"""(request id, encoded answer) of clients' requests."""


class Call(NamedTuple):
    """This process as `handlers.context.Caller`."""

    api_version: int = 0
    client_host: str = ""
    client_id: str = ""
    listener: str = ""
    received_ns: int = 0
    correlation_id: int = 0


class Asked(Protocol):
    """A request. It gets exactly one of `answer`, `refuse` and `abandon`."""

    @property
    def name(self) -> str:
        """What is asked, for reports."""

    @property
    def api_key(self) -> int | None:
        """The API by which another process asks; None for a request of this one."""

    @property
    def owner(self) -> Owner:
        """Who decides it."""

    @property
    def caller(self) -> Caller:
        """Who asks, how."""

    @property
    def key(self) -> Hashable:
        """What the table of open requests knows it by: the id that `Cancelled` names, or an object of its own."""

    def decide(self, context: Context) -> Outcome | Steps:
        """What is to be done.

        Raises:
            ValueError: The request cannot be decoded.
        """

    def answer(self, message: Message) -> Slices[None] | None:
        """Send the answer: it is sent when this is at its end, or was at once."""

    def refuse(self, reason: str) -> None:
        """There is no answer to such a request."""

    def abandon(self, error_code: int) -> None:
        """The broker cannot answer: it stops, or met a bug of its own."""

    def release(self) -> None:
        """Give back the memory that is counted for it: it is over, whoever still holds it."""


class RemoteRequest:
    """A client's request. Its answer joins ``replies``, which leave with the event batch."""

    def __init__(self, event: "_core.Request", row: Row, core: Core, replies: Replies) -> None:
        self._event = event
        self._row = row
        self._core = core
        self._replies = replies
        self.key: Hashable = event.id
        self.name = row.module
        self.owner = row.owner
        self.caller: Caller = event

    @property
    def api_key(self) -> int:
        """What is asked."""
        return self._event.api_key

    @property
    def principal(self) -> str:
        """Who asks, as ``TYPE:NAME``."""
        return self._event.principal

    @property
    def body(self) -> bytes:
        """The request without its header, as it came."""
        return self._event.body

    def decode(self) -> Message:
        """What is asked, of a request whose size is bounded.

        Raises:
            ProtocolError: It cannot be decoded.
        """
        return decode_request(self._event.api_key, self._event.api_version, self._event.body)

    def decide(self, context: Context) -> Outcome | Steps:
        """Decode the request, now that it is its turn, and ask its handler."""
        event = self._event
        key, version, body = event.api_key, event.api_version, event.body
        if len(body) <= SMALL_BYTES_MAX:
            return handler_of(key)(context, decode_request(key, version, body))
        return self._decide_in_parts(context, key, version, body)

    def _decide_in_parts(self, context: Context, key: int, version: int, body: bytes) -> Steps:
        request = yield from decode_request_in_parts(key, version, body)
        begun = handler_of(key)(context, request)
        return begun if isinstance(begun, OUTCOMES) else (yield from begun)

    def answer(self, message: Message) -> Slices[None] | None:
        """Encode and queue the answer."""
        encoder = MessageEncoder(message, self._event.api_version)
        body = encoder.write(FIELDS_MAX)
        if body is None:
            return self._answer_in_parts(encoder)
        self._replies.append((self._event.id, body))
        return None

    def _answer_in_parts(self, encoder: MessageEncoder) -> Slices[None]:
        while (body := encoder.write(FIELDS_MAX)) is None:
            yield
        self._replies.append((self._event.id, body))

    def answer_encoded(self, body: bytes) -> None:
        """Queue an answer that another node has made."""
        self._replies.append((self._event.id, body))

    def refuse(self, reason: str) -> None:
        """Close the connection, as Kafka does with what it cannot parse."""
        self._core.close_connection(self._event.connection, reason)

    def abandon(self, error_code: int) -> None:
        """Close the connection: the client asks another broker, or again."""
        self._core.close_connection(self._event.connection, error_of(error_code).text)

    def release(self) -> None:
        """Give back its room among the parked requests."""
        self._event.release()


def admitted(
    event: "_core.Request", rows: Mapping[int, Row], core: Core, replies: Replies
) -> RemoteRequest | None:
    """The request, if ``rows`` have its API in that version; else its connection is closed."""
    row = rows.get(event.api_key)
    if row is None or not row.versions[0] <= event.api_version <= row.versions[1]:
        reason = f"API {event.api_key} version {event.api_version} is not answered here"
        core.close_connection(event.connection, reason)
        return None
    return RemoteRequest(event, row, core, replies)


class LocalRequest:
    """A request of this process that writes; any thread may wait for its answer.

    Args:
        decide: What a handler would do.
        api_version: The newest of the API, for handlers that look at it.
        answered: Called with the answer, on the control thread; for requests nobody waits for.
        sent_as: API and message by which another node decides it; None where only this one can.
    """

    name = "a request of this process"
    api_key: int | None = None
    owner = Owner.CONTROLLER

    def __init__(
        self,
        decide: Callable[[Context], Outcome | Steps],
        api_version: int = 0,
        answered: Callable[[Message], None] | None = None,
        sent_as: tuple[int, Message] | None = None,
    ) -> None:
        self.key: Hashable = object()  # not itself: a cycle would keep its answer for the collector
        self.caller: Caller = Call(api_version)
        self._decide = decide
        self._answered = answered
        self.sent_as = sent_as
        self._done = native.Event()
        self._answer: Message | None = None
        self._error: Exception | None = None

    def decide(self, context: Context) -> Outcome | Steps:
        """What is to be done."""
        return self._decide(context)

    def answer(self, message: Message) -> None:
        """Wake who waits."""
        self._answer = message
        self._done.set()
        if self._answered is not None:
            self._answered(message)

    def refuse(self, reason: str) -> None:
        """Wake who waits, with the error."""
        self._fail(ValueError(reason))

    def abandon(self, error_code: int) -> None:
        """Wake who waits, with the error."""
        self._fail(error_of(error_code)())

    def release(self) -> None:
        """Nothing is counted for it: no client sent it."""

    def wait(self) -> Message:
        """Block until the answer.

        Raises:
            KafkaError: The broker stopped meanwhile, or met a bug of its own.
        """
        self._done.wait()
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback holds this frame
        assert self._answer is not None, "done means answered or failed"
        return self._answer

    def _fail(self, error: Exception) -> None:
        self._error = error
        self._done.set()
