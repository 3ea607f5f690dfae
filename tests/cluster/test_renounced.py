"""Requests that a controller cannot commit, because the others have elected another one."""

from collections.abc import Iterator
from functools import partial

import pytest

from pykafka_core import Broker, Cluster
from pykafka_core.errors import NotControllerError
from pykafka_core.protocol.messages import IncrementalAlterConfigsRequest
from pykafka_core.types import RESOURCE_TOPIC
from tests.support.patience import eventually
from tests.support.wire import ALTER, Connection, alteration, enveloped

ENVELOPE = 58
SETTINGS = {"retention.ms": "1000000", "segment.bytes": "2000000"}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as cluster:
        cluster.create_topic("orders", 1)
        yield cluster


@pytest.fixture
def cut_off(cluster: Cluster) -> int:
    """Isolate the active controller from the others, and return it."""
    node = cluster.controller()
    cluster.isolate(node)
    return node


def alter(setting: str) -> IncrementalAlterConfigsRequest:
    return alteration(RESOURCE_TOPIC, "orders", setting, SETTINGS[setting])


def has_proposed(broker: Broker) -> bool:
    """Return whether a batch waits for the quorum; later requests wait for that batch."""
    return broker._started.control.dispatcher._controller.in_flight


def is_altered(broker: Broker) -> bool:
    """Return whether the broker's image has the new settings."""
    return SETTINGS.items() <= broker._image().configs.of(RESOURCE_TOPIC, "orders").items()


def test_next_controller_decides_requests_of_clients_of_the_deposed_one(
    cluster: Cluster, cut_off: int
) -> None:
    """Regression: clients got NOT_CONTROLLER or a closed connection; Kafka forwards again."""
    address = cluster.brokers[cut_off].bootstrap_servers
    with Connection(address) as proposed, Connection(address) as waiting:
        proposed.send(ALTER, 1, alter("retention.ms"))
        eventually(lambda: has_proposed(cluster.brokers[cut_off]))
        waiting.send(ALTER, 1, alter("segment.bytes"))
        assert cluster.controller() != cut_off
        cluster.heal()
        responses = [connection.receive() for connection in (proposed, waiting)]
    assert [response.responses[0].error_code for response in responses] == [0, 0]
    for broker in cluster.brokers:
        eventually(partial(is_altered, broker))


def test_forwarded_requests_fail_with_not_controller_at_a_deposed_controller(
    cluster: Cluster, cut_off: int
) -> None:
    """The error is inside the envelope: a broker passes the inner response to its client."""
    (at,) = cluster.brokers[cut_off]._started.controllers
    with Connection(f"{at.host}:{at.port}") as connection:
        connection.send(ENVELOPE, 0, enveloped(ALTER, 1, alter("retention.ms")))
        assert cluster.controller() != cut_off
        cluster.heal()
        response = connection.receive()
    assert (response.error_code, response.response_data) == (NotControllerError.code, None)
