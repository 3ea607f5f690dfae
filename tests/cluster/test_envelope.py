"""Requests that brokers forward to the active controller in an Envelope, as Apache Kafka's do."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafka_core.errors import InvalidRequestError, UnknownTopicOrPartitionError
from pykafka_core.handlers.registry import FORWARDED
from pykafka_core.protocol import decode_response
from pykafka_core.protocol.messages import (
    AllocateProducerIdsRequest,
    DescribeConfigsRequest,
    EnvelopeResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    Message,
)
from pykafka_core.types import RESOURCE_BROKER, RESOURCE_TOPIC
from tests.cluster.clients import create_replicated
from tests.cluster.nodes import Nodes, nodes
from tests.support.wire import Connection, enveloped

ENVELOPE, CREATE_ACLS, DELETE_ACLS = 58, 30, 31
ALTER_CONFIGS = 44
DESCRIBE_CONFIGS, LIST_PARTITION_REASSIGNMENTS, ALLOCATE_PRODUCER_IDS = 32, 46, 67


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Nodes]:
    with nodes(tmp_path) as cluster:
        cluster.start(1, 2, 3)
        yield cluster


def forwarded(cluster: Nodes, api_key: int, version: int, request: Message) -> EnvelopeResponse:
    """Return the active controller's response to a client's request in an envelope."""
    with Connection(cluster.controller_address(cluster.controller())) as connection:
        response = connection.ask(ENVELOPE, 0, enveloped(api_key, version, request))
    assert isinstance(response, EnvelopeResponse)
    return response


def test_requests_that_read_the_image_are_answered_in_an_envelope(cluster: Nodes) -> None:
    """Apache Kafka's brokers forward it: ``kafka-topics --describe`` failed without it."""
    create_replicated(cluster.bootstrap, "orders")
    request = ListPartitionReassignmentsRequest(topics=None)
    response = forwarded(cluster, LIST_PARTITION_REASSIGNMENTS, 0, request)
    assert response.error_code == 0
    assert response.response_data is not None
    inner = decode_response(LIST_PARTITION_REASSIGNMENTS, 0, bytes(response.response_data[5:]))
    assert inner == ListPartitionReassignmentsResponse(error_message=None, topics=[])


def test_large_response_is_sent_in_one_envelope(cluster: Nodes) -> None:
    """It waits for memory first."""
    of = IncrementalAlterConfigsRequest.AlterConfigsResource
    names = [f"{number:0100}" for number in range(1_000)]
    resources = [of(resource_type=RESOURCE_TOPIC, resource_name=name, configs=[]) for name in names]
    request = IncrementalAlterConfigsRequest(resources=resources)
    response = forwarded(cluster, ALTER_CONFIGS, 1, request)
    assert response.error_code == 0
    assert response.response_data is not None
    inner = decode_response(ALTER_CONFIGS, 1, bytes(response.response_data[5:]))
    assert isinstance(inner, IncrementalAlterConfigsResponse)
    found = {(row.resource_name, row.error_code) for row in inner.responses}
    assert found == {(name, UnknownTopicOrPartitionError.code) for name in names}


@pytest.mark.parametrize(
    ("api_key", "request_of_broker"),
    [
        (ALLOCATE_PRODUCER_IDS, AllocateProducerIdsRequest(broker_id=1, broker_epoch=1)),
        (DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=[])),
    ],
    ids=["of brokers", "of any node"],
)
def test_apis_that_brokers_do_not_forward_are_rejected(
    cluster: Nodes, api_key: int, request_of_broker: Message
) -> None:
    version = 4 if api_key == DESCRIBE_CONFIGS else 0
    response = forwarded(cluster, api_key, version, request_of_broker)
    assert response.error_code == InvalidRequestError.code


def test_broker_may_cordon_directories_but_a_client_of_the_controller_may_not(
    cluster: Nodes,
) -> None:
    request = IncrementalAlterConfigsRequest
    change = request.AlterableConfig(name="cordoned.log.dirs", value="*")
    broker = request.AlterConfigsResource(
        resource_type=RESOURCE_BROKER, resource_name="1", configs=[change]
    )
    with Connection(cluster.controller_address(cluster.controller())) as connection:
        direct = connection.ask(ALTER_CONFIGS, 1, request(resources=[broker]))
    assert isinstance(direct, IncrementalAlterConfigsResponse)
    response = forwarded(cluster, ALTER_CONFIGS, 1, request(resources=[broker]))
    assert response.response_data is not None
    inner = decode_response(ALTER_CONFIGS, 1, bytes(response.response_data[5:]))
    assert isinstance(inner, IncrementalAlterConfigsResponse)
    texts = [one.responses[0].error_message or "" for one in (direct, inner)]
    assert ["must be a subset" in text for text in texts] == [True, False]
    assert "requires metadata.version >= 4.3-IV0" in texts[1]


def test_acls_are_forwarded_in_an_envelope() -> None:
    assert {CREATE_ACLS, DELETE_ACLS} < set(FORWARDED)
