"""`max.connections.per.ip`, its overrides and `max.connection.creation.rate`, as in Kafka: who is beyond the first is
closed, who is beyond the rate waits."""

import time
from contextlib import ExitStack

import pytest

from pykafka_core import Broker
from pykafka_core.protocol.messages import DescribeClusterRequest
from tests.support.patience import PATIENCE_S, eventually
from tests.support.wire import Connection


def is_served(address: str, stack: ExitStack) -> bool:
    """Whether a new connection, which stays open, gets an answer."""
    try:
        connection = stack.enter_context(Connection(address))
        connection.ask(60, 1, DescribeClusterRequest())
    except (AssertionError, ConnectionError):
        return False
    return True


@pytest.mark.parametrize(
    "config",
    [
        {"max.connections.per.ip": "2"},
        {
            "max.connections.per.ip": "1",
            "max.connections.per.ip.overrides": "10.0.0.1:9, 127.0.0.1:2",
        },
    ],
)
def test_an_address_has_as_many_connections_as_it_may_and_the_next_is_closed(
    config: dict[str, str],
) -> None:
    with Broker(config=config) as broker, ExitStack() as stack:
        address = broker.bootstrap_servers
        first = ExitStack()
        assert is_served(address, first)
        assert is_served(address, stack)
        assert not is_served(address, stack)
        assert broker.statistics()["connections_refused"] == 1
        first.close()
        eventually(lambda: is_served(address, stack))


@pytest.mark.interval
def test_connections_come_no_faster_than_their_rate() -> None:
    with Broker(config={"max.connection.creation.rate": "5"}) as broker, ExitStack() as stack:
        address = broker.bootstrap_servers
        began = time.monotonic()
        # Five of the second that has passed, and the others at the rate. More follow where the client itself is slow.
        served = 0
        while served < 10 or broker.statistics()["connections_delayed"] < 4:
            assert is_served(address, stack)
            served += 1
            waited = time.monotonic() - began
            assert served <= 5 + 5 * (waited + 0.1)
            assert waited < PATIENCE_S, "no connection was delayed"
