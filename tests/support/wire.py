"""Requests and responses over a socket with our own codec, for requests that no client library
supports.
"""

import socket
import struct
from types import TracebackType
from typing import Any

from pykafka_core.protocol import decode_response, encode_request, is_flexible
from pykafka_core.protocol.messages import (
    EnvelopeRequest,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    Message,
)
from tests.support.evidence.exchanges import BODY_BYTES_MAX, note
from tests.support.patience import PATIENCE_S

ALTER = 44


def alteration(kind: int, of: str, name: str, value: str) -> IncrementalAlterConfigsRequest:
    """Return a request that sets one setting of one resource."""
    change = IncrementalAlterConfigsRequest.AlterableConfig(
        name=name, config_operation=0, value=value
    )
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind, resource_name=of, configs=[change]
    )
    return IncrementalAlterConfigsRequest(resources=[resource])


def enveloped(api_key: int, version: int, request: Message) -> EnvelopeRequest:
    """Return a client's request in an envelope, as its broker forwards it to the controller
    (KIP-590).
    """
    tagged = b"\0" if is_flexible(api_key, version) else b""
    header = struct.pack(">hhih", api_key, version, 7, -1) + tagged
    return EnvelopeRequest(
        request_data=header + bytes(encode_request(request, version)),
        request_principal=b"",
        client_host_address=socket.inet_aton("127.0.0.1"),
    )


class Connection:
    """A connection for flexible versions of an API (header v2, response header v1)."""

    def __init__(self, address: str, timeout_s: float = PATIENCE_S) -> None:
        self._address = address
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout_s)

    def __enter__(self) -> "Connection":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def ask(self, api_key: int, version: int, request: Any) -> Any:
        """Send a request, and wait for the response."""
        self.send(api_key, version, request)
        return self.answer(api_key, version)

    def answer(self, api_key: int, version: int) -> Any:
        """Wait for the response to the oldest pending request."""
        (size,) = struct.unpack(">i", self._read(4))
        answer = self._read(size)
        assert answer[:5] == struct.pack(">ib", 7, 0)
        response = decode_response(api_key, version, answer[5:])
        self._note("←", version, response, size)
        return response

    def send(self, api_key: int, version: int, request: Any) -> None:
        """Send a request without waiting for the response."""
        head = struct.pack(">hhih4sb", api_key, version, 7, 4, b"test", 0)
        body = head + encode_request(request, version)
        self._note("→", version, request, len(body))
        self._socket.sendall(struct.pack(">i", len(body)) + body)

    def _note(self, direction: str, version: int, message: Message, size: int) -> None:
        what = f"{direction} {type(message).__name__} v{version}, {size} bytes"
        note(self._address, what, message if size <= BODY_BYTES_MAX else "…")

    def close(self) -> None:
        """Close the connection, even with pending requests."""
        self._socket.close()

    def alter(self, kind: int, of: str, name: str, value: str) -> int:
        """Set one setting of one resource; return the error code."""
        answer = self.ask(ALTER, 1, alteration(kind, of, name, value))
        assert isinstance(answer, IncrementalAlterConfigsResponse)
        return int(answer.responses[0].error_code)

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts += part
        return bytes(parts)
