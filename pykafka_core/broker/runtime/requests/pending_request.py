"""The sources of requests and the destinations of their responses: a client's connection, or this
process.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pykafka_core._core import Core, EncodedMessage
from pykafka_core.broker import native
from pykafka_core.broker.runtime.requests.lanes import NO_LANE, Lane, lane_of
from pykafka_core.coordinator.budget import UNRESERVED_BYTES_MAX
from pykafka_core.errors import error_of
from pykafka_core.handlers.context import Caller, Context
from pykafka_core.handlers.outcome import OUTCOMES, HandlerWork, Outcome, Reserve, Work
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


_DECODED_WHOLE_BYTES_MAX = 4096
"""A request up to this size is decoded at once: it has fewer fields than are decoded between two
yields."""
Replies = list[tuple[int, EncodedMessage | bytes]]
"""(request id, encoded response) of clients' requests."""


class Call(NamedTuple):
    """This process as `handlers.context.Caller`."""

    api_version: int = 0
    client_host: str = ""
    client_id: str = ""
    listener: str = ""
    received_ns: int = 0
    correlation_id: int = 0


class PendingRequest(Protocol):
    """A request. Exactly one of `respond`, `refuse` and `abandon` is called."""

    @property
    def name(self) -> str:
        """Name of the request, for reports."""

    @property
    def api_key(self) -> int | None:
        """API of a request of another process; None for a request of this process."""

    @property
    def owner(self) -> Owner:
        """The component that handles it."""

    @property
    def caller(self) -> Caller:
        """Information about the client."""

    @property
    def key(self) -> Hashable:
        """Key in the table of open requests: the id in `Cancelled`, or a unique object."""

    @property
    def lane(self) -> Lane:
        """The lane in which it waits for its turn."""

    def decide(self, context: Context) -> Outcome | HandlerWork:
        """Call the handler.

        Raises:
            ValueError: The request cannot be decoded.
        """

    def respond(self, message: Message) -> Work[Reserve | None] | None:
        """Send the response: immediately, or at the end of the returned steps. If they return a
        `Reserve`, it is not sent: it needs memory first.
        """

    def refuse(self, reason: str) -> None:
        """End an invalid request without a response."""

    def abandon(self, error_code: int) -> None:
        """End a request that the broker cannot complete: it stops, or has a bug."""

    def admit(self) -> bool:
        """Reserve memory before the request is decoded; False if other requests, which run, must
        release memory first.
        """

    def reserve(self, token: int, size: int) -> bool:
        """Reserve memory for the response. Return whether it must wait: then ``token`` is completed
        when the memory is reserved.
        """

    def unreserve(self) -> None:
        """Keep only the memory of the undecoded request, while it waits."""

    def park(self) -> None:
        """Release the body and all memory except the memory that `reserve` has reserved for the
        response: the request has run, and waits for others.
        """

    def release(self) -> None:
        """Release the memory that is counted for this request; other components may still reference
        it.
        """


class RemoteRequest:
    """A client's request.

    Its response is added to ``replies``, which are sent at the end of the event batch.
    """

    __slots__ = (
        "_core",
        "_event",
        "_replies",
        "_reserved",
        "_row",
        "caller",
        "key",
        "lane",
        "name",
        "owner",
    )

    def __init__(self, event: "_core.Request", row: Row, core: Core, replies: Replies) -> None:
        self._event = event
        self._row = row
        self._core = core
        self._replies = replies
        self._reserved = 0
        self.key: Hashable = event.id
        self.name = row.module
        self.owner = row.owner
        self.caller: Caller = event
        self.lane = lane_of(event.api_key, event.api_version, event.body)

    @property
    def api_key(self) -> int:
        """The API of the request."""
        return self._event.api_key

    @property
    def principal(self) -> str:
        """The client's principal, ``TYPE:NAME``."""
        return self._event.principal

    @property
    def body(self) -> bytes:
        """The request without its header, undecoded."""
        return self._event.body

    def decode(self) -> Message:
        """Decode a request of bounded size.

        Raises:
            ProtocolError: It cannot be decoded.
        """
        return decode_request(self._event.api_key, self._event.api_version, self._event.body)

    def decide(self, context: Context) -> Outcome | HandlerWork:
        """Decode the request in its turn, and call its handler."""
        event = self._event
        key, version, body = event.api_key, event.api_version, event.body
        if len(body) <= _DECODED_WHOLE_BYTES_MAX:
            return handler_of(key)(context, decode_request(key, version, body))
        return self._decide_in_parts(context, key, version, body)

    def _decide_in_parts(
        self, context: Context, key: int, version: int, body: bytes
    ) -> HandlerWork:
        request = yield from decode_request_in_parts(key, version, body)
        begun = handler_of(key)(context, request)
        return begun if isinstance(begun, OUTCOMES) else (yield from begun)

    def respond(self, message: Message) -> Work[Reserve | None] | None:
        """Encode and queue the response, if memory is reserved for it."""
        encoder = MessageEncoder(message, self._event.api_version)
        body = encoder.write(FIELDS_MAX)
        if body is None:
            return self._respond_in_parts(message, encoder)
        self._replies.append((self._event.id, body))
        return None

    def _respond_in_parts(self, message: Message, encoder: MessageEncoder) -> Work[Reserve | None]:
        body = None
        while body is None:
            if not self._covers(encoder.written):
                return Reserve((yield from self._measured(message)), lambda: message)
            yield
            body = encoder.write(FIELDS_MAX)
        self._replies.append((self._event.id, body))
        return None

    def _measured(self, message: Message) -> Work[int]:
        encoder = MessageEncoder(message, self._event.api_version)
        while (size := encoder.measure(FIELDS_MAX)) is None:
            yield
        return size

    def _covers(self, size: int) -> bool:
        """Return whether a response of this size needs no further reservation."""
        is_covered = size <= UNRESERVED_BYTES_MAX or size <= self._reserved
        return is_covered or size <= self._event.reserved

    def respond_encoded(self, body: bytes) -> None:
        """Queue a response that another node has created."""
        self._replies.append((self._event.id, body))

    def refuse(self, reason: str) -> None:
        """Close the connection, as Kafka does after a malformed request."""
        self.unreserve()
        self._core.close_connection(self._event.connection, reason)

    def abandon(self, error_code: int) -> None:
        """Close the connection, so that the client retries, here or at another broker."""
        self.unreserve()
        self._core.close_connection(self._event.connection, error_of(error_code).text)

    def admit(self) -> bool:
        """Reserve memory for the decoded request."""
        return self._event.admit()

    def reserve(self, token: int, size: int) -> bool:
        """Reserve memory for the response; all memory of the request is released first."""
        if self._covers(size):
            if size > UNRESERVED_BYTES_MAX:
                self._reserved = max(self._reserved, size)
            return False
        self.unreserve()
        self._event.release()
        self._reserved = size
        self._core.reserve_response(token, self._event.id, size)
        return True

    def unreserve(self) -> None:
        """Release the memory for the decoded request and for the response."""
        self._reserved = 0
        self._event.unreserve()

    def park(self) -> None:
        """Release all memory except the memory that `reserve` has reserved, and the body."""
        if not self._reserved:
            self._event.unreserve()
        self._event.release()

    def release(self) -> None:
        """Release the memory of the request, and the body."""
        self._event.release()


def remote_request(
    event: "_core.Request", rows: Mapping[int, Row], core: Core, replies: Replies
) -> RemoteRequest | None:
    """Return the request if ``rows`` have its API and version; else close its connection."""
    row = rows.get(event.api_key)
    if row is None or not row.versions[0] <= event.api_version <= row.versions[1]:
        reason = f"API {event.api_key} version {event.api_version} is not served here"
        core.close_connection(event.connection, reason)
        return None
    return RemoteRequest(event, row, core, replies)


class LocalRequest:
    """A request of this process that writes; any thread may wait for its response.

    Args:
        decide: The handler.
        api_version: The latest version of the API, for handlers that depend on it.
        on_response: Called with the response, on the control thread, if no thread waits.
        sent_as: API and message for a controller on another node; None if only this node can handle
            it.
    """

    name = "a request of this process"
    api_key: int | None = None
    owner = Owner.CONTROLLER
    lane = NO_LANE

    def __init__(
        self,
        decide: Callable[[Context], Outcome | HandlerWork],
        api_version: int = 0,
        on_response: Callable[[Message], None] | None = None,
        sent_as: tuple[int, Message] | None = None,
    ) -> None:
        self.key: Hashable = object()  # not self: a cycle would delay the release of its response
        self.caller: Caller = Call(api_version)
        self._decide = decide
        self._on_response = on_response
        self.sent_as = sent_as
        self._done = native.Event()
        self._response: Message | None = None
        self._error: Exception | None = None

    def decide(self, context: Context) -> Outcome | HandlerWork:
        """Call the handler."""
        return self._decide(context)

    def respond(self, message: Message) -> None:
        """Wake the waiting thread."""
        self._response = message
        self._done.set()
        if self._on_response is not None:
            self._on_response(message)

    def refuse(self, reason: str) -> None:
        """Wake the waiting thread with the error."""
        self._fail(ValueError(reason))

    def abandon(self, error_code: int) -> None:
        """Wake the waiting thread with the error."""
        self._fail(error_of(error_code)())

    def admit(self) -> bool:
        """Return True: no memory is counted for a local request."""
        return True

    def reserve(self, token: int, size: int) -> bool:
        """Return False: no memory is counted for a local request."""
        del token, size
        return False

    def unreserve(self) -> None:
        """Do nothing."""

    def park(self) -> None:
        """Do nothing."""

    def release(self) -> None:
        """Do nothing."""

    def wait(self) -> Message:
        """Block until the response.

        Raises:
            KafkaError: The request failed, the broker stopped, or it has a bug.
        """
        self._done.wait()
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback holds this frame
        assert self._response is not None, "done means a response or an error"
        return self._response

    def _fail(self, error: Exception) -> None:
        self._error = error
        self._done.set()
