"""DescribeAcls without an authorizer, with the responses of Apache Kafka 4.2.1."""

import pytest

from pykafka_core.protocol.messages import DescribeAclsRequest, DescribeAclsResponse
from tests.support.simulated.broker import SimulatedBroker

SECURITY_DISABLED = 54


@pytest.mark.parametrize("version", range(1, 4))
def test_without_an_authorizer_there_are_no_acls(broker: SimulatedBroker, version: int) -> None:
    request = DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1)
    response = broker.ask(request, version)
    assert isinstance(response, DescribeAclsResponse)
    assert (response.error_code, response.resources) == (SECURITY_DISABLED, [])
    assert response.error_message == "No Authorizer is configured on the broker"
