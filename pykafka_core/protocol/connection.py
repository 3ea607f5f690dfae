"""A blocking connection to one broker."""

import itertools
import socket
import struct
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple, Self, TypeVar

from pykafka_core._core import ProtocolError, decode_response, encode_message, is_flexible
from pykafka_core.errors import UnsupportedVersionError, error_of
from pykafka_core.protocol.messages import ApiVersionsRequest, ApiVersionsResponse, Message

T = TypeVar("T", bound=Message)

CLIENT_ID = "pykafka-core"
TIMEOUT_S = 30.0
RESPONSE_BYTES_MAX = 100 << 20
"""The default of Kafka's ``socket.request.max.bytes``."""
API_VERSIONS, API_VERSIONS_VERSION = 18, 3
"""Brokers since Kafka 2.4 have this version."""
_SIZE = struct.Struct(">i")
_BUFFER_BYTES = 1 << 16


def encode_header(api_key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """Return a request header: v2 for flexible versions of an API, else v1."""
    encoded = b"" if client_id is None else client_id.encode()
    size = -1 if client_id is None else len(encoded)
    tags = b"\0" if is_flexible(api_key, version) else b""
    return struct.pack(">hhih", api_key, version, correlation_id, size) + encoded + tags


def encode_frame(
    api_key: int,
    version: int,
    request: Message,
    *,
    correlation_id: int = 1,
    client_id: str | None = CLIENT_ID,
) -> bytes:
    """Return a whole request: size, header and body.

    Raises:
        ProtocolError: The version cannot carry the request.
    """
    head = encode_header(api_key, version, correlation_id, client_id)
    body = encode_message(request, version)
    return _SIZE.pack(len(head) + len(body)) + head + body


class _Pending(NamedTuple):
    """A request without a response."""

    api_key: int
    version: int
    correlation_id: int


class Connection:
    """A TCP connection to one broker, for requests that no client library sends.

    It is for one thread, and it blocks. A broker answers the requests of a connection in their
    order, so several may be sent before the first response is received. After an exception the
    state of the connection is undefined: close it.

    >>> from pykafka_core.protocol import Connection
    >>> from pykafka_core.protocol.messages import DescribeClusterRequest, DescribeClusterResponse
    >>> with Connection(broker.bootstrap_servers) as connection:
    ...     response = connection.ask(60, 1, DescribeClusterRequest(), DescribeClusterResponse)
    >>> len(response.brokers)
    1

    Args:
        address: ``HOST:PORT``. All addresses of a name are tried in turn.
        timeout_s: Limit in seconds for connecting, and for each wait for the broker to read or
            write bytes. A response may take longer if it arrives in parts.
        client_id: Sent with each request; brokers apply quotas by it.
        response_bytes_max: Limit for the size of a response, inclusive.

    Raises:
        OSError: The broker cannot be reached, or not in time (TimeoutError).
    """

    def __init__(
        self,
        address: str,
        *,
        timeout_s: float = TIMEOUT_S,
        client_id: str = CLIENT_ID,
        response_bytes_max: int = RESPONSE_BYTES_MAX,
    ) -> None:
        self.address = address
        self._client_id = client_id
        self._response_bytes_max = response_bytes_max
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host.strip("[]"), int(port)), timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb", buffering=_BUFFER_BYTES)
        self._correlation_ids = itertools.count(1)
        self._pending: deque[_Pending] = deque()
        self._versions: Mapping[int, tuple[int, int]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; requests without a response may still have an effect."""
        self._file.close()
        self._socket.close()

    def ask(self, api_key: int, version: int, request: Message, response_type: type[T]) -> T:
        """Send a request and wait for its response.

        Args:
            version: The version of the API; a broker that does not have it closes the connection.
            response_type: The class of the response.

        Raises:
            OSError: The broker closed the connection (ConnectionError), or was too slow
                (TimeoutError).
            ProtocolError: The version cannot carry the request, or the response is invalid or too
                large.
        """
        self.send(api_key, version, request)
        return self.receive(response_type)

    def ask_newest(
        self, api_key: int, version_max: int, request: Message, response_type: type[T]
    ) -> T:
        """Send a request in the newest version that the broker has, and wait for its response.

        Args:
            version_max: The newest version to use, inclusive.

        Raises:
            UnsupportedVersionError: The broker has no version up to ``version_max`` of the API.
            OSError: See `ask`.
            ProtocolError: See `ask`.
        """
        oldest, newest = self.versions().get(api_key, (0, -1))
        version = min(version_max, newest)
        if version < oldest:
            raise UnsupportedVersionError(
                f"the broker has no version of API {api_key} up to {version_max}"
            )
        return self.ask(api_key, version, request, response_type)

    def versions(self) -> Mapping[int, tuple[int, int]]:
        """Return the first and last version of each API of the broker, both inclusive.

        They are requested once. Brokers before Kafka 2.4 close the connection, or respond with an
        error.

        Raises:
            KafkaError: The broker refuses.
            OSError: See `ask`.
            ProtocolError: See `ask`.
        """
        if self._versions is None:
            request = ApiVersionsRequest(
                client_software_name=CLIENT_ID, client_software_version="1"
            )
            response = self.ask(API_VERSIONS, API_VERSIONS_VERSION, request, ApiVersionsResponse)
            if response.error_code:
                raise error_of(response.error_code)()
            self._versions = {
                one.api_key: (one.min_version, one.max_version) for one in response.api_keys
            }
        return self._versions

    def send(self, api_key: int, version: int, request: Message) -> None:
        """Send a request without waiting for its response; `receive` returns it.

        Do not send a Produce with ``acks=0``, which has no response: use `send_frame`.

        Raises:
            OSError: See `ask`.
            ProtocolError: The version cannot carry the request.
        """
        pending = _Pending(api_key, version, next(self._correlation_ids))
        frame = encode_frame(
            api_key,
            version,
            request,
            correlation_id=pending.correlation_id,
            client_id=self._client_id,
        )
        self.send_frame(frame)
        self._pending.append(pending)

    def receive(self, response_type: type[T]) -> T:
        """Wait for the response to the oldest request of `send` that has none.

        Args:
            response_type: The class of the response.

        Raises:
            OSError: See `ask`.
            ProtocolError: See `ask`.
        """
        pending = self._pending.popleft()
        frame = self.receive_frame()
        if int.from_bytes(frame[:4], "big", signed=True) != pending.correlation_id:
            raise ProtocolError("the response belongs to another request")
        body = frame[_header_bytes(frame, pending) :]
        response = decode_response(pending.api_key, pending.version, body)
        if not isinstance(response, response_type):
            raise TypeError(
                f"the response is a {type(response).__name__}, not {response_type.__name__}"
            )
        return response

    def send_frame(self, frame: bytes) -> None:
        """Send encoded requests, such as those of `encode_frame`, as they are.

        Raises:
            OSError: See `ask`.
        """
        self._socket.sendall(frame)

    def receive_frame(self) -> bytes:
        """Wait for the next response; return its header and body without its size.

        Raises:
            OSError: See `ask`.
            ProtocolError: Its size is negative or above ``response_bytes_max``.
        """
        head = self._file.read(_SIZE.size)
        if len(head) < _SIZE.size:
            raise ConnectionError("the broker closed the connection")
        (size,) = _SIZE.unpack(head)
        if not 0 <= size <= self._response_bytes_max:
            raise ProtocolError(
                f"a response has {size} bytes; the limit is {self._response_bytes_max}"
            )
        frame: bytes = self._file.read(size)
        if len(frame) < size:
            raise ConnectionError("the broker closed the connection")
        return frame


def _header_bytes(frame: bytes, pending: _Pending) -> int:
    """Return the size of a response header; that of ApiVersions is v0 in every version."""
    if pending.api_key == API_VERSIONS or not is_flexible(pending.api_key, pending.version):
        return 4
    if frame[4:5] != b"\0":
        raise ProtocolError("the header of the response has tagged fields")
    return 5
