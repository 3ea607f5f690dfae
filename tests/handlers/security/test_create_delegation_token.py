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
    answer = broker.ask(request, version)
    assert isinstance(answer, CreateDelegationTokenResponse)
    assert answer.error_code == DelegationTokenRequestNotAllowedError.code
    expected = owner if is_given else "ANONYMOUS"
    assert (answer.principal_type, answer.principal_name) == ("User", expected)
    assert (answer.token_id, answer.hmac) == ("", b"")
    assert {
        answer.issue_timestamp_ms,
        answer.expiry_timestamp_ms,
        answer.max_timestamp_ms,
    } == {-1}
