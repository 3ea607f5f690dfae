"""Connections of tests, for requests that no client library sends."""

import socket
from typing import Any

from pykafka_core import protocol
from pykafka_core.protocol.connection import encode_frame
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
    return EnvelopeRequest(
        request_data=encode_frame(api_key, version, request, client_id=None)[4:],
        request_principal=b"",
        client_host_address=socket.inet_aton("127.0.0.1"),
    )


class Connection(protocol.Connection):
    """A connection whose messages are evidence if the test fails."""

    def __init__(self, address: str, timeout_s: float = PATIENCE_S) -> None:
        super().__init__(address, timeout_s=timeout_s, client_id="test")
        self._size = 0

    def ask(
        self, api_key: int, version: int, request: Message, response_type: type[Any] = Message
    ) -> Any:
        return super().ask(api_key, version, request, response_type)

    def send(self, api_key: int, version: int, request: Message) -> None:
        super().send(api_key, version, request)
        self._note("→", version, request)

    def receive(self, response_type: type[Any] = Message) -> Any:
        version = self._pending[0].version
        response = super().receive(response_type)
        self._note("←", version, response)
        return response

    def send_frame(self, frame: bytes) -> None:
        self._size = len(frame)
        super().send_frame(frame)

    def receive_frame(self) -> bytes:
        frame = super().receive_frame()
        self._size = len(frame)
        return frame

    def _note(self, direction: str, version: int, message: Message) -> None:
        what = f"{direction} {type(message).__name__} v{version}, {self._size} bytes"
        note(self.address, what, message if self._size <= BODY_BYTES_MAX else "…")

    def alter(self, kind: int, of: str, name: str, value: str) -> int:
        """Set one setting of one resource; return the error code."""
        response = self.ask(ALTER, 1, alteration(kind, of, name, value))
        assert isinstance(response, IncrementalAlterConfigsResponse)
        return int(response.responses[0].error_code)
