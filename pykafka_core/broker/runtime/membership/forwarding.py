"""Forwards requests to the active controller in an Envelope (KIP-590), as a Kafka broker does.

The envelope contains the request as the client sent it, with the client's principal and address;
its response contains the client's response. A request of this process is sent without an envelope.
"""

import struct
from collections.abc import Callable, Collection
from functools import partial
from typing import cast

from pykafka_core.broker.runtime.membership.controller_channel import (
    TIMEOUT_MS,
    ControllerApi,
    ControllerChannel,
)
from pykafka_core.broker.runtime.membership.envelope_request import EnvelopedRequest
from pykafka_core.broker.runtime.requests.open_requests import OpenRequests
from pykafka_core.broker.runtime.requests.pending_request import (
    LocalRequest,
    PendingRequest,
    RemoteRequest,
)
from pykafka_core.errors import NotControllerError, RequestTimedOutError, UnknownServerError
from pykafka_core.protocol import encode_message, is_flexible
from pykafka_core.protocol.messages import (
    DefaultPrincipalData,
    EnvelopeRequest,
    EnvelopeResponse,
    Message,
)

ENVELOPE = ControllerApi(58, (0, 0))
CORRELATION = 0
PRINCIPAL_VERSION = 0


class Forwarding:
    """Forwards requests.

    Args:
        channel: Sends to the active controller.
        requests: The open requests, which get the responses.
        controller_listeners: Names of this node's controller listeners.
    """

    def __init__(
        self,
        channel: ControllerChannel,
        requests: OpenRequests,
        controller_listeners: Collection[str] = (),
    ) -> None:
        self._channel = channel
        self._requests = requests
        self._controller_listeners = controller_listeners

    def take(self, request: PendingRequest) -> None:
        """Forward a request that is in the table of open requests."""
        request.unreserve()
        if isinstance(request, RemoteRequest):
            envelope = EnvelopeRequest(
                request_data=_frame(request),
                request_principal=_principal(request.principal),
                client_host_address=_address(request.caller.client_host),
            )
            self._ask(request, ENVELOPE, envelope, partial(self._on_enveloped, request))
        elif isinstance(request, LocalRequest) and request.sent_as is not None:
            api_key, message = request.sent_as
            version = request.caller.api_version
            api = ControllerApi(api_key, (version, version))
            self._ask(request, api, message, partial(self._on_response, request))
        else:
            self._requests.abandon(request, UnknownServerError.code)

    def pass_on(self, request: PendingRequest) -> bool:
        """Forward a request to the next controller after the one of this node has resigned.

        Returns False for a request that was sent directly to a controller: its client finds the
        next controller itself. The client of a broker never gets NOT_CONTROLLER: an envelope is
        answered with it, and the broker that sent the envelope sends it again.
        """
        if isinstance(request, EnvelopedRequest):
            self._requests.abandon(request, NotControllerError.code)
        elif (
            isinstance(request, RemoteRequest)
            and request.caller.listener not in self._controller_listeners
        ):
            self.take(request)
        else:
            return False
        return True

    def _ask(
        self,
        request: PendingRequest,
        api: ControllerApi,
        message: Message,
        on_response: Callable[[Message | None], object],
    ) -> None:
        """Send a request while its client is connected; then its memory is released."""
        is_wanted = partial(self._requests.is_open, request)
        self._channel.ask(api, message, TIMEOUT_MS, on_response, is_wanted=is_wanted)

    def _on_enveloped(self, request: RemoteRequest, response: Message | None) -> None:
        response = cast("EnvelopeResponse | None", response)
        if response is None:
            self._requests.abandon(request, RequestTimedOutError.code)
        elif response.error_code or response.response_data is None:
            self._requests.abandon(request, response.error_code or UnknownServerError.code)
        else:
            self._requests.respond_encoded(request, _body(request, response.response_data))

    def _on_response(self, request: LocalRequest, response: Message | None) -> None:
        if response is None:
            self._requests.abandon(request, RequestTimedOutError.code)
        else:
            self._requests.respond_at_once(request, response)


def _frame(request: RemoteRequest) -> bytes:
    """Encode the request with its header, as the client sent it except for the correlation id."""
    client_id = request.caller.client_id.encode()
    header = struct.pack(
        ">hhih", request.api_key, request.caller.api_version, CORRELATION, len(client_id)
    )
    tagged = b"\0" if is_flexible(request.api_key, request.caller.api_version) else b""
    return header + client_id + tagged + request.body


def _body(request: RemoteRequest, response: bytes) -> bytes:
    """The response without its header: a correlation id, and tagged fields in flexible versions."""
    is_tagged = is_flexible(request.api_key, request.caller.api_version)
    return response[5 if is_tagged else 4 :]


def _principal(text: str) -> bytes:
    kind, _, name = text.partition(":")
    data = DefaultPrincipalData(type=kind, name=name)
    return struct.pack(">h", PRINCIPAL_VERSION) + bytes(encode_message(data, PRINCIPAL_VERSION))


def _address(host: str) -> bytes:
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.inet_pton(family, host)
