"""A control plane on a `FakeCore`: it handles requests without threads and sockets."""

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, cast

from pykafka_core.broker.start.startup import start
from pykafka_core.broker.start.startup_config import plan
from pykafka_core.config import BrokerConfigs
from pykafka_core.handlers.registry import ROWS
from pykafka_core.metadata.image.image import MetadataImage
from pykafka_core.protocol import decode_response, encode_request
from pykafka_core.protocol.messages import Message
from tests.support.simulated import fake_core
from tests.support.simulated.fake_core import FakeCore

if TYPE_CHECKING:
    from pykafka_core._core import Core
    from pykafka_core.broker.core_bridge.core_types import CoreTypes

FIRST_ID = 1000

_ROWS = {f"{row.name.title().replace('_', '')}Request": row for row in ROWS}


class SimulatedBroker:
    """One node whose time, disk and clients are controlled by the test.

    Args:
        config: Broker settings by Kafka name.
        core: Its data plane; with the logs of an earlier broker, this is a restart.
        ids: Source of the ids that are random in a real broker; they count up.
    """

    def __init__(
        self,
        config: Mapping[str, str] | None = None,
        core: FakeCore | None = None,
        ids: "count[int] | None" = None,
    ) -> None:
        self.core = core or FakeCore()
        self.ids = ids or count(FIRST_ID)
        self._requests = count(1)
        self._sent: dict[int, tuple[int, int]] = {}
        given = {"listeners": "PLAINTEXT://127.0.0.1:9092", **(config or {})}
        planned = plan(BrokerConfigs(given), None, lambda: next(self.ids).to_bytes(16, "big"))
        self.identity = planned.identity
        # The core's classes are final, so the fake's classes cannot inherit from them; the
        # conformance suite checks instead that both behave the same.
        core_types = cast("CoreTypes", fake_core)
        self.control = start(cast("Core", self.core), core_types, planned).control
        self.dispatcher = self.control.dispatcher

    @property
    def image(self) -> MetadataImage:
        """The committed image."""
        return self.control.publisher.image

    def send(self, request: Message, version: int | None = None) -> int:
        """Queue a request and return its id; the dispatcher handles it in the next `run`."""
        row = _ROWS[type(request).__name__]
        version = row.versions[1] if version is None else version
        request_id = next(self._requests)
        self.core.push(
            fake_core.request(
                id=request_id,
                connection=request_id,
                api_key=row.api_key,
                api_version=version,
                body=encode_request(request, version),
                received_ns=self.core.clock_ns,
            )
        )
        self._sent[request_id] = (row.api_key, version)
        return request_id

    def run(self) -> None:
        """Handle events until none is left; held appends stay held."""
        busy = True
        while (events := self.core.wait(self.core.clock_ns)) or busy:
            for event in events:
                self.dispatcher.take(event)
            busy = self.dispatcher.advance()

    def response(self, request_id: int) -> Message | None:
        """Return the decoded response; None if there is none yet."""
        body = self.core.replies.get(request_id)
        return None if body is None else decode_response(*self._sent[request_id], body)

    def ask(self, request: Message, version: int | None = None) -> Message:
        """Send a request, run, and return the response."""
        request_id = self.send(request, version)
        self.run()
        response = self.response(request_id)
        assert response is not None, "the request was answered"
        return response
