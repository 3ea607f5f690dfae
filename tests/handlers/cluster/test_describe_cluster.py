"""DescribeCluster: KIP-700, KIP-919."""

import pytest

from pykafka_core.handlers.cluster.describe_cluster import CLUSTER_OPERATIONS
from pykafka_core.protocol.messages import DescribeClusterRequest, DescribeClusterResponse
from pykafka_core.types import NO_AUTHORIZED_OPERATIONS
from tests.support.simulated.broker import SimulatedBroker


def describe(
    broker: SimulatedBroker, version: int = 2, endpoint_type: int = 1, operations: bool = False
) -> DescribeClusterResponse:
    request = DescribeClusterRequest(
        endpoint_type=endpoint_type, include_cluster_authorized_operations=operations
    )
    response = broker.ask(request, version)
    assert isinstance(response, DescribeClusterResponse)
    return response


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_described_in_every_version(broker: SimulatedBroker, version: int) -> None:
    response = describe(broker, version)
    assert (response.error_code, response.cluster_id) == (0, broker.identity.cluster_id)
    assert response.controller_id == 1
    assert [(b.broker_id, b.host, b.port, b.rack) for b in response.brokers] == [
        (1, "127.0.0.1", 9092, None)
    ]


def test_rack_is_returned() -> None:
    broker = SimulatedBroker({"broker.rack": "r1"})
    assert [b.rack for b in describe(broker).brokers] == ["r1"]


def test_authorized_operations_are_returned_on_request(broker: SimulatedBroker) -> None:
    assert describe(broker).cluster_authorized_operations == NO_AUTHORIZED_OPERATIONS
    operations = describe(broker, operations=True).cluster_authorized_operations
    assert operations == CLUSTER_OPERATIONS == 8096


@pytest.mark.parametrize(("endpoint_type", "code"), [(2, 114), (0, 115), (7, 115)])
def test_describe_cluster_does_not_describe_controllers(
    broker: SimulatedBroker, endpoint_type: int, code: int
) -> None:
    assert describe(broker, endpoint_type=endpoint_type).error_code == code
