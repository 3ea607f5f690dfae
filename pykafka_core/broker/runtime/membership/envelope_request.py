"""A request that a broker forwarded to the controller in an envelope (KIP-590)."""

import socket
import struct
from collections.abc import Hashable, Mapping
from typing import NamedTuple

from pykafka_core.broker.runtime.requests.pending_request import Call, RemoteRequest
from pykafka_core.errors import InvalidRequestError
from pykafka_core.handlers.context import Caller, Context
from pykafka_core.handlers.outcome import HandlerWork, Outcome, Reserve, Work, run_to_end
from pykafka_core.handlers.registry import Row, handler_of
from pykafka_core.protocol import MessageEncoder, ProtocolError, decode_request, is_flexible
from pykafka_core.protocol.messages import EnvelopeRequest, EnvelopeResponse, Message

_HEADER = struct.Struct(">hhih")
NO_CLIENT_ID = -1


class _Frame(NamedTuple):
    """A request with its header."""

    api_key: int
    api_version: int
    correlation: int
    client_id: str
    body: bytes


class EnvelopedRequest:
    """A client's request at the active controller; its response is sent inside the envelope's.

    Raises:
        ProtocolError: The envelope contains no request of an API that brokers forward.
    """

    def __init__(
        self, outer: RemoteRequest, envelope: EnvelopeRequest, rows: Mapping[int, Row]
    ) -> None:
        self._outer = outer
        frame = self._frame = _parse(envelope.request_data)
        row = rows.get(frame.api_key)
        if row is None or not row.versions[0] <= frame.api_version <= row.versions[1]:
            raise ProtocolError(f"API {frame.api_key} does not go in an envelope")
        self.key: Hashable = outer.key
        self.name = row.name
        self.owner = row.owner
        self.lane = outer.lane
        self.caller: Caller = Call(
            frame.api_version,
            _host(envelope.client_host_address),
            frame.client_id,
            outer.caller.listener,
            outer.caller.received_ns,
        )

    @property
    def api_key(self) -> int:
        """The API key of the inner request."""
        return self._frame.api_key

    def decode(self) -> Message:
        """Decode the inner request.

        Raises:
            ProtocolError: It cannot be decoded.
        """
        frame = self._frame
        return decode_request(frame.api_key, frame.api_version, frame.body)

    def decide(self, context: Context) -> Outcome | HandlerWork:
        """Decode the request and call its handler."""
        return handler_of(self._frame.api_key)(context._replace(is_forwarded=True), self.decode())

    def respond(self, message: Message) -> Work[Reserve | None]:
        """Send the response in its envelope, or an envelope that has its memory now."""
        is_wrapped = isinstance(message, EnvelopeResponse)
        envelope = message if is_wrapped else (yield from self._wrapped(message))
        work = self._outer.respond(envelope)
        return None if work is None else (yield from work)

    def _wrapped(self, message: Message) -> Work[EnvelopeResponse]:
        frame = self._frame
        encoder = MessageEncoder(message, frame.api_version)
        while (body := encoder.write(FIELDS_AT_ONCE)) is None:
            yield
        tagged = b"\0" if is_flexible(frame.api_key, frame.api_version) else b""
        data = frame.correlation.to_bytes(4, "big", signed=True) + tagged + bytes(body)
        return EnvelopeResponse(response_data=data)

    def refuse(self, reason: str) -> None:
        """Respond that the request cannot be decoded."""
        self.abandon(InvalidRequestError.code)

    def abandon(self, error_code: int) -> None:
        """Send the broker an error without a response for the client."""
        run_to_end(self._outer.respond(EnvelopeResponse(response_data=None, error_code=error_code)))

    def admit(self) -> bool:
        """Reserve memory for the decoded envelope."""
        return self._outer.admit()

    def reserve(self, token: int, size: int) -> bool:
        """Reserve memory for the envelope of the response."""
        return self._outer.reserve(token, size)

    def unreserve(self) -> None:
        """Keep only the memory of the envelope."""
        self._outer.unreserve()

    def park(self) -> None:
        """Release all memory except for the response, if that is reserved."""
        self._outer.park()

    def release(self) -> None:
        """Release the memory of the envelope."""
        self._outer.release()


FIELDS_AT_ONCE = 1024


def _parse(data: bytes) -> _Frame:
    if len(data) < _HEADER.size:
        raise ProtocolError("an envelope holds no request")
    api_key, api_version, correlation, size = _HEADER.unpack_from(data)
    begin = _HEADER.size + max(size, 0)
    if size < NO_CLIENT_ID or begin > len(data):
        raise ProtocolError("the client id of an enveloped request ends outside of it")
    client_id = data[_HEADER.size : begin].decode(errors="replace")
    if _is_tagged(api_key, api_version):
        if data[begin : begin + 1] != b"\0":
            raise ProtocolError("an enveloped request has tagged fields in its header")
        begin += 1
    return _Frame(api_key, api_version, correlation, client_id, data[begin:])


def _is_tagged(api_key: int, api_version: int) -> bool:
    try:
        return is_flexible(api_key, api_version)
    except ValueError as error:
        raise ProtocolError(f"an envelope holds API {api_key} version {api_version}") from error


def _host(address: bytes) -> str:
    families = {4: socket.AF_INET, 16: socket.AF_INET6}
    family = families.get(len(address))
    if family is None:
        raise ProtocolError(f"{len(address)} bytes are not an IP address")
    return socket.inet_ntop(family, address)
