"""What a controller was asked for and cannot commit, as the others have elected another one meanwhile."""

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
    """The active controller, which the others do not reach."""
    node = cluster.controller()
    cluster.isolate(node)
    return node


def alter(setting: str) -> IncrementalAlterConfigsRequest:
    return alteration(RESOURCE_TOPIC, "orders", setting, SETTINGS[setting])


def has_proposed(broker: Broker) -> bool:
    """Whether a batch waits for the quorum: what is asked then waits for that batch."""
    return broker._started.control.dispatcher._controller.in_flight


def is_altered(broker: Broker) -> bool:
    """By its image."""
    return SETTINGS.items() <= broker._image().configs.of(RESOURCE_TOPIC, "orders").items()


def test_what_clients_asked_of_its_broker_the_next_controller_decides(
    cluster: Cluster, cut_off: int
) -> None:
    """They were told NOT_CONTROLLER, or their connections were closed; in Kafka the broker asks the next one."""
    address = cluster.brokers[cut_off].bootstrap_servers
    with Connection(address) as proposed, Connection(address) as waiting:
        proposed.send(ALTER, 1, alter("retention.ms"))
        eventually(lambda: has_proposed(cluster.brokers[cut_off]))
        waiting.send(ALTER, 1, alter("segment.bytes"))
        assert cluster.controller() != cut_off
        cluster.heal()
        answers = [connection.answer(ALTER, 1) for connection in (proposed, waiting)]
    assert [answer.responses[0].error_code for answer in answers] == [0, 0]
    for broker in cluster.brokers:
        eventually(partial(is_altered, broker))


def test_brokers_are_told_to_ask_the_next_controller(cluster: Cluster, cut_off: int) -> None:
    """In the envelope: a broker passes on to its client what is inside."""
    (at,) = cluster.brokers[cut_off]._started.controllers
    with Connection(f"{at.host}:{at.port}") as connection:
        connection.send(ENVELOPE, 0, enveloped(ALTER, 1, alter("retention.ms")))
        assert cluster.controller() != cut_off
        cluster.heal()
        answer = connection.answer(ENVELOPE, 0)
    assert (answer.error_code, answer.response_data) == (NotControllerError.code, None)
