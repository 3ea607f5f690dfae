"""What a controller was asked for and cannot commit, as the others have elected another one meanwhile."""

import socket
import struct
from collections.abc import Iterator
from functools import partial

import pytest

from pykafka_core import Broker, Cluster
from pykafka_core.errors import NotControllerError
from pykafka_core.protocol import encode_request
from pykafka_core.protocol.messages import (
    EnvelopeRequest,
    IncrementalAlterConfigsRequest,
)
from pykafka_core.types import RESOURCE_TOPIC
from tests.cluster.clients import eventually
from tests.support.wire import Connection

ENVELOPE, ALTER = 58, 44
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
    of = IncrementalAlterConfigsRequest
    config = of.AlterableConfig(name=setting, config_operation=0, value=SETTINGS[setting])
    resource = of.AlterConfigsResource(
        resource_type=RESOURCE_TOPIC, resource_name="orders", configs=[config]
    )
    return of(resources=[resource])


def has_proposed(broker: Broker) -> bool:
    """Whether a batch waits for the quorum: what is asked then waits for that batch."""
    return broker._started.control.dispatcher._controller.in_flight


def is_altered(broker: Broker) -> bool:
    """By its image."""
    return SETTINGS.items() <= broker._image().configs.of(RESOURCE_TOPIC, "orders").items()


def has_another(cluster: Cluster, than: int) -> bool:
    """Whether another node is the active controller."""
    others = (broker for broker in cluster.brokers if broker.node_id != than)
    return any(
        membership is not None and membership.leads
        for membership in (broker._started.control.dispatcher.membership for broker in others)
    )


def test_what_clients_asked_of_its_broker_the_next_controller_decides(
    cluster: Cluster, cut_off: int
) -> None:
    """They were told NOT_CONTROLLER, or their connections were closed; in Kafka the broker asks the next one."""
    address = cluster.brokers[cut_off].bootstrap_servers
    with Connection(address) as proposed, Connection(address) as waiting:
        proposed.send(ALTER, 1, alter("retention.ms"))
        eventually(lambda: has_proposed(cluster.brokers[cut_off]))
        waiting.send(ALTER, 1, alter("segment.bytes"))
        eventually(lambda: has_another(cluster, cut_off))
        cluster.heal()
        answers = [connection.answer(ALTER, 1) for connection in (proposed, waiting)]
    assert [answer.responses[0].error_code for answer in answers] == [0, 0]
    for broker in cluster.brokers:
        eventually(partial(is_altered, broker))


def test_brokers_are_told_to_ask_the_next_controller(cluster: Cluster, cut_off: int) -> None:
    """In the envelope: a broker passes on to its client what is inside."""
    header = struct.pack(">hhih", ALTER, 1, 7, -1) + b"\0"
    envelope = EnvelopeRequest(
        request_data=header + bytes(encode_request(alter("retention.ms"), 1)),
        request_principal=b"",
        client_host_address=socket.inet_aton("127.0.0.1"),
    )
    (at,) = cluster.brokers[cut_off]._started.controllers
    with Connection(f"{at.host}:{at.port}") as connection:
        connection.send(ENVELOPE, 0, envelope)
        eventually(lambda: has_another(cluster, cut_off))
        cluster.heal()
        answer = connection.answer(ENVELOPE, 0)
    assert (answer.error_code, answer.response_data) == (NotControllerError.code, None)
