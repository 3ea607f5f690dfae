"""The timeout of requests to other brokers."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from pykafka_core.broker.runtime.interbroker.broker_channel import BrokerApi, BrokerChannel
from pykafka_core.broker.runtime.services import create_services
from pykafka_core.config import BrokerConfigs
from pykafka_core.protocol.messages import DescribeTransactionsRequest
from tests.handlers.cluster_world import ClusterWorld
from tests.support.simulated.fake_core import FakeCore

if TYPE_CHECKING:
    from pykafka_core._core import Core

DESCRIBE = BrokerApi(65, (0, 0), "test")


@pytest.mark.parametrize(
    ("settings", "timeout_ms"),
    [
        ({}, 30_000),
        ({"request.timeout.ms": "1500"}, 1500),
        ({"request.timeout.ms": "-1"}, 1),
    ],
)
def test_request_times_out_after_request_timeout_ms(
    settings: dict[str, str], timeout_ms: int
) -> None:
    core, image = FakeCore(), ClusterWorld([1, 2]).image
    at = image.brokers[2].endpoints[0]
    core.peers.add((DESCRIBE.purpose, at.host, at.port))
    services = create_services(cast("Core", core))
    named = settings | {
        "inter.broker.listener.name": at.name,
        "listener.security.protocol.map": f"{at.name}:PLAINTEXT",
    }
    publisher = cast("Any", SimpleNamespace(image=image, settings=BrokerConfigs(named)))
    channel = BrokerChannel(services.core, services.completions, publisher)
    channel.ask(DESCRIBE, 2, DescribeTransactionsRequest(), lambda _: None)
    assert [sent.timeout_ms for sent in core.sent.values()] == [timeout_ms]
