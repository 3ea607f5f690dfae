"""The requests that a broker forwards to the active controller, and their timeouts."""

from typing import TYPE_CHECKING, cast

import pytest

from pykafka_core.broker.runtime.membership.controller_channel import (
    TIMEOUT_MS,
    ControllerChannel,
)
from pykafka_core.broker.runtime.membership.forwarding import Forwarding
from pykafka_core.broker.runtime.requests.pending_request import RemoteRequest, remote_request
from pykafka_core.broker.runtime.services import Services, create_services
from pykafka_core.errors import RequestTimedOutError
from pykafka_core.handlers.registry import BY_KEY
from pykafka_core.quorum.wire.envelope import Endpoint
from pykafka_core.types import NS_PER_MS
from tests.support.simulated.fake_core import FakeCore, request

if TYPE_CHECKING:
    from pykafka_core._core import Core

ATTEMPT_MS = 30_000
CREATE_TOPICS = 19


def _forwarded(
    attempt_ms: int = ATTEMPT_MS, leader: Endpoint | None = None
) -> tuple[FakeCore, Services, RemoteRequest]:
    """Send a client's request to a node without a known controller, or whose controller does not
    respond.
    """
    core = FakeCore()
    core.peers.add(("controller", "host", 9093))
    services = create_services(cast("Core", core))
    event = request(id=7, api_key=CREATE_TOPICS, api_version=7, body=b"as the client sent it")
    asked = remote_request(event, BY_KEY, services.core, services.replies)
    assert asked is not None
    services.requests.begin(asked)
    channel = ControllerChannel(services, lambda: leader, attempt_ms)
    Forwarding(channel, services.requests).take(asked)
    return core, services, asked


def _pass_ms(core: FakeCore, services: Services, ms: int) -> None:
    core.clock_ns += ms * NS_PER_MS
    services.timers.run(core.clock_ns)


def test_request_of_a_closed_connection_is_not_retried() -> None:
    core, services, _ = _forwarded()
    _pass_ms(core, services, 100)
    assert len(services.timers) == 1
    services.requests.cancel(7)
    _pass_ms(core, services, 100)
    assert len(services.timers) == 0


def test_request_without_a_controller_closes_its_connection_at_its_timeout() -> None:
    core, services, asked = _forwarded()
    for _ in range(TIMEOUT_MS // 100 - 1):
        _pass_ms(core, services, 100)
    assert services.requests.is_open(asked)
    _pass_ms(core, services, 100)
    assert not services.requests.is_open(asked)
    assert core.closed_connections == {1: RequestTimedOutError.text}


@pytest.mark.parametrize(("attempt_ms", "timeout_ms"), [(1500, 1500), (0, 1), (-1, 1)])
def test_each_attempt_has_its_own_timeout(attempt_ms: int, timeout_ms: int) -> None:
    """``controller.socket.timeout.ms``: a silent controller may have a successor before the request
    times out.
    """
    core, services, asked = _forwarded(attempt_ms, Endpoint("host", 9093))
    assert [sent.timeout_ms for sent in core.sent.values()] == [timeout_ms]
    assert services.requests.is_open(asked)
