"""DeleteAcls without an authorizer, with the responses of Apache Kafka 4.2.1."""

import pytest

from pykafka_core.protocol.messages import DeleteAclsRequest, DeleteAclsResponse
from tests.support.simulated.broker import SimulatedBroker

REFUSED = (54, "No Authorizer is configured.", 0)


@pytest.mark.parametrize("version", range(1, 4))
@pytest.mark.parametrize("count", [0, 1, 2])
def test_without_an_authorizer_each_filter_is_rejected(
    broker: SimulatedBroker, version: int, count: int
) -> None:
    acl_filter = DeleteAclsRequest.DeleteAclsFilter(resource_type_filter=1, operation=1)
    response = broker.ask(DeleteAclsRequest(filters=[acl_filter] * count), version)
    assert isinstance(response, DeleteAclsResponse)
    refused = [
        (r.error_code, r.error_message, len(r.matching_acls)) for r in response.filter_results
    ]
    assert refused == [REFUSED] * count
