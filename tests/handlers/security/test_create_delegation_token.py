"""CreateDelegationToken on a plain listener, with the responses of Apache Kafka 4.2.1."""

import pytest

from pykafka_core.errors import DelegationTokenRequestNotAllowedError
from pykafka_core.protocol.messages import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from tests.support.simulated.broker import SimulatedBroker


@pytest.mark.parametrize("version", range(1, 4))
@pytest.mark.parametrize("owner", [None, "o"])
def test_delegation_token_is_rejected(
    broker: SimulatedBroker, version: int, owner: str | None
) -> None:
    is_given = owner is not None and version == 3
    request = CreateDelegationTokenRequest()
    if is_given:
        request.owner_principal_type, request.owner_principal_name = "User", owner
    response = broker.ask(request, version)
    assert isinstance(response, CreateDelegationTokenResponse)
    assert response.error_code == DelegationTokenRequestNotAllowedError.code
    expected = owner if is_given else "ANONYMOUS"
    assert (response.principal_type, response.principal_name) == ("User", expected)
    assert (response.token_id, response.hmac) == ("", b"")
    assert {
        response.issue_timestamp_ms,
        response.expiry_timestamp_ms,
        response.max_timestamp_ms,
    } == {-1}
