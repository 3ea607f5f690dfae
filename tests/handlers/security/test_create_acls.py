"""CreateAcls without an authorizer, with the responses of Apache Kafka 4.2.1."""

import pytest

from pykafka_core.protocol.messages import CreateAclsRequest, CreateAclsResponse
from tests.support.simulated.broker import SimulatedBroker

REFUSED = (54, "No Authorizer is configured.")


@pytest.mark.parametrize("version", range(1, 4))
@pytest.mark.parametrize("count", [0, 1, 2])
def test_without_an_authorizer_each_acl_is_rejected(
    broker: SimulatedBroker, version: int, count: int
) -> None:
    creation = CreateAclsRequest.AclCreation(
        resource_type=2, resource_name="t", principal="User:a", host="*", operation=3
    )
    response = broker.ask(CreateAclsRequest(creations=[creation] * count), version)
    assert isinstance(response, CreateAclsResponse)
    assert [(r.error_code, r.error_message) for r in response.results] == [REFUSED] * count
    assert broker.image.acls == {}
