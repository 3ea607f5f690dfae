"""A broker's HTTP port for metrics, health and groups. It only reads, and only supports GET.

Each connection has one request and one thread, at most `CONNECTIONS_MAX`; idle connections are
closed after `TIMEOUT_S`. The result of ``/metrics`` is reused for `FRESH_S`, so that many scrapers
cost no more than one.
"""

import json
import logging
import socket
import threading
import time
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from socketserver import TCPServer, ThreadingMixIn
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from pykafka_core.broker.broker import Broker
from pykafka_core.broker.forks import OwnProcess, close_in_children
from pykafka_core.broker.safe_logging import GuardedLogger
from pykafka_core.errors import KafkaError, LocalError, RequestTimedOutError
from pykafka_core.metadata.health import problems

from .exposition import CONTENT_TYPE

CONNECTIONS_MAX = 8
TIMEOUT_S = 10.0
FRESH_S = 1.0
LOOPBACK = "127.0.0.1"
_TEXT = "text/plain; charset=utf-8"
_JSON = "application/json"
_GROUPS = "/groups/"

_log = GuardedLogger(__name__)


class _Response(NamedTuple):
    status: HTTPStatus
    content_type: str
    body: str


class MetricsServer:
    """Serves one broker's metrics from construction until `close`.

    Args:
        broker: The broker; it may stop before this server does.
        host: An address of this machine; empty for the loopback address.
        port: 0 selects a free port.

    Raises:
        OSError: The address cannot be used.
    """

    def __init__(self, broker: Broker, host: str, port: int) -> None:
        self._server = _Server((host or LOOPBACK, port), _Pages(broker))
        close_in_children(self._server.socket)
        self._process = OwnProcess()
        self._thread = threading.Thread(
            target=partial(self._server.serve_forever, poll_interval=0.1),
            name="pykafka-core-metrics",
            daemon=True,
        )
        self._thread.start()
        if not _is_loopback(self._server.server_address[0]):
            text = "metrics are open to the network without encryption and authentication at %s"
            _log.warning(text, self.address)

    @property
    def address(self) -> str:
        """The bound address, ``HOST:PORT``."""
        host, port = self._server.server_address[:2]
        name = host if isinstance(host, str) else bytes(host).decode()
        return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"

    def close(self) -> None:
        """Stop listening. Idempotent; requests in progress are not awaited."""
        if not self._process.is_current:
            return  # a forked child does not have the thread
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _is_loopback(host: object) -> bool:
    return isinstance(host, str) and ip_address(host.partition("%")[0]).is_loopback


class _Pages:
    """The pages by path."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._lock = threading.Lock()
        self._metrics = ""
        self._read_at = -FRESH_S

    def respond(self, target: str) -> _Response:
        """Return a page; errors of the broker also become a page."""
        path = urlsplit(target).path
        try:
            if path == "/metrics":
                return _Response(HTTPStatus.OK, CONTENT_TYPE, self._fresh_metrics())
            if path == "/healthz":
                return self._health()
            if path == "/readyz":
                return self._strict_health()
            if path.startswith(_GROUPS):
                return self._group(unquote(path.removeprefix(_GROUPS)))
        except (KafkaError, LocalError) as error:
            text = str(error) or type(error).__name__
            return _Response(HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, f"{text}\n")
        text = "there are /metrics, /healthz, /readyz and /groups/GROUP\n"
        return _Response(HTTPStatus.NOT_FOUND, _TEXT, text)

    def _fresh_metrics(self) -> str:
        """Read the metrics once for concurrent requests, which wait for the lock."""
        if not self._lock.acquire(timeout=TIMEOUT_S):
            raise RequestTimedOutError("others have waited for the same metrics for long")
        try:
            if time.monotonic() - self._read_at >= FRESH_S:
                self._metrics = self._broker.metrics()
                self._read_at = time.monotonic()
            return self._metrics
        finally:
            self._lock.release()

    def _health(self) -> _Response:
        if self._broker.healthy:
            return _Response(HTTPStatus.OK, _TEXT, "ok\n")
        return _Response(HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, "the broker has stopped\n")

    def _strict_health(self) -> _Response:
        found = list(problems(self._broker.health()))
        if not found:
            return _Response(HTTPStatus.OK, _TEXT, "ok\n")
        return _Response(HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, "\n".join([*found, ""]))

    def _group(self, group_id: str) -> _Response:
        found = self._broker.explain_group(group_id)
        if found is None:
            return _Response(HTTPStatus.NOT_FOUND, _TEXT, f"there is no group {group_id!r}\n")
        return _Response(HTTPStatus.OK, _JSON, json.dumps(found) + "\n")


class _Server(ThreadingMixIn, TCPServer):
    """Not an `HTTPServer`, which looks up its own name in DNS."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], pages: _Pages) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self.pages = pages
        self._free = threading.BoundedSemaphore(CONNECTIONS_MAX)
        super().__init__(address, _Handler)

    def process_request(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Start a thread, or close the connection if all are in use."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Handle a request on its own thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Peer disconnects are not worth a traceback on stderr."""
        _log.log(logging.DEBUG, "a request of %s failed", client_address)


class _Handler(BaseHTTPRequestHandler):
    timeout = TIMEOUT_S
    server_version = "pykafka-core"
    sys_version = ""

    def do_GET(self) -> None:
        """Handle one request; the connection is closed afterwards."""
        assert isinstance(self.server, _Server), "it belongs to that server"
        response = self.server.pages.respond(self.path)
        body = response.body.encode()
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log with level DEBUG, because scrapers connect every few seconds."""
        _log.log(logging.DEBUG, format, *arguments)
